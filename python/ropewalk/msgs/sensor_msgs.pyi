# Made by `ropewalk gen python`; do not edit.
import numpy as np
import ropewalk
from collections.abc import Sequence
from numpy.typing import ArrayLike
from . import geometry_msgs
from . import std_msgs

class BatteryState(ropewalk.Message):
    POWER_SUPPLY_STATUS_UNKNOWN: int
    POWER_SUPPLY_STATUS_CHARGING: int
    POWER_SUPPLY_STATUS_DISCHARGING: int
    POWER_SUPPLY_STATUS_NOT_CHARGING: int
    POWER_SUPPLY_STATUS_FULL: int
    POWER_SUPPLY_HEALTH_UNKNOWN: int
    POWER_SUPPLY_HEALTH_GOOD: int
    POWER_SUPPLY_HEALTH_OVERHEAT: int
    POWER_SUPPLY_HEALTH_DEAD: int
    POWER_SUPPLY_HEALTH_OVERVOLTAGE: int
    POWER_SUPPLY_HEALTH_UNSPEC_FAILURE: int
    POWER_SUPPLY_HEALTH_COLD: int
    POWER_SUPPLY_HEALTH_WATCHDOG_TIMER_EXPIRE: int
    POWER_SUPPLY_HEALTH_SAFETY_TIMER_EXPIRE: int
    POWER_SUPPLY_TECHNOLOGY_UNKNOWN: int
    POWER_SUPPLY_TECHNOLOGY_NIMH: int
    POWER_SUPPLY_TECHNOLOGY_LION: int
    POWER_SUPPLY_TECHNOLOGY_LIPO: int
    POWER_SUPPLY_TECHNOLOGY_LIFE: int
    POWER_SUPPLY_TECHNOLOGY_NICD: int
    POWER_SUPPLY_TECHNOLOGY_LIMN: int
    header: std_msgs.Header
    voltage: float
    temperature: float
    current: float
    charge: float
    capacity: float
    design_capacity: float
    percentage: float
    power_supply_status: int
    power_supply_health: int
    power_supply_technology: int
    present: bool
    @property
    def cell_voltage(self) -> np.ndarray: ...
    @cell_voltage.setter
    def cell_voltage(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    @property
    def cell_temperature(self) -> np.ndarray: ...
    @cell_temperature.setter
    def cell_temperature(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    location: str
    serial_number: str
    def __init__(self, *, header: std_msgs.Header = ..., voltage: float = ..., temperature: float = ..., current: float = ..., charge: float = ..., capacity: float = ..., design_capacity: float = ..., percentage: float = ..., power_supply_status: int = ..., power_supply_health: int = ..., power_supply_technology: int = ..., present: bool = ..., cell_voltage: ArrayLike | ropewalk.Sized = ..., cell_temperature: ArrayLike | ropewalk.Sized = ..., location: str = ..., serial_number: str = ...) -> None: ...

class CameraInfo(ropewalk.Message):
    header: std_msgs.Header
    height: int
    width: int
    distortion_model: str
    @property
    def D(self) -> np.ndarray: ...
    @D.setter
    def D(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    @property
    def K(self) -> np.ndarray: ...
    @K.setter
    def K(self, value: ArrayLike) -> None: ...
    @property
    def R(self) -> np.ndarray: ...
    @R.setter
    def R(self, value: ArrayLike) -> None: ...
    @property
    def P(self) -> np.ndarray: ...
    @P.setter
    def P(self, value: ArrayLike) -> None: ...
    binning_x: int
    binning_y: int
    roi: RegionOfInterest
    def __init__(self, *, header: std_msgs.Header = ..., height: int = ..., width: int = ..., distortion_model: str = ..., D: ArrayLike | ropewalk.Sized = ..., K: ArrayLike = ..., R: ArrayLike = ..., P: ArrayLike = ..., binning_x: int = ..., binning_y: int = ..., roi: RegionOfInterest = ...) -> None: ...

class ChannelFloat32(ropewalk.Message):
    name: str
    @property
    def values(self) -> np.ndarray: ...
    @values.setter
    def values(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, name: str = ..., values: ArrayLike | ropewalk.Sized = ...) -> None: ...

class CompressedImage(ropewalk.Message):
    header: std_msgs.Header
    format: str
    @property
    def data(self) -> np.ndarray: ...
    @data.setter
    def data(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, header: std_msgs.Header = ..., format: str = ..., data: ArrayLike | ropewalk.Sized = ...) -> None: ...

class FluidPressure(ropewalk.Message):
    header: std_msgs.Header
    fluid_pressure: float
    variance: float
    def __init__(self, *, header: std_msgs.Header = ..., fluid_pressure: float = ..., variance: float = ...) -> None: ...

class Illuminance(ropewalk.Message):
    header: std_msgs.Header
    illuminance: float
    variance: float
    def __init__(self, *, header: std_msgs.Header = ..., illuminance: float = ..., variance: float = ...) -> None: ...

class Image(ropewalk.Message):
    header: std_msgs.Header
    height: int
    width: int
    encoding: str
    is_bigendian: int
    step: int
    @property
    def data(self) -> np.ndarray: ...
    @data.setter
    def data(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, header: std_msgs.Header = ..., height: int = ..., width: int = ..., encoding: str = ..., is_bigendian: int = ..., step: int = ..., data: ArrayLike | ropewalk.Sized = ...) -> None: ...

class Imu(ropewalk.Message):
    header: std_msgs.Header
    orientation: geometry_msgs.Quaternion
    @property
    def orientation_covariance(self) -> np.ndarray: ...
    @orientation_covariance.setter
    def orientation_covariance(self, value: ArrayLike) -> None: ...
    angular_velocity: geometry_msgs.Vector3
    @property
    def angular_velocity_covariance(self) -> np.ndarray: ...
    @angular_velocity_covariance.setter
    def angular_velocity_covariance(self, value: ArrayLike) -> None: ...
    linear_acceleration: geometry_msgs.Vector3
    @property
    def linear_acceleration_covariance(self) -> np.ndarray: ...
    @linear_acceleration_covariance.setter
    def linear_acceleration_covariance(self, value: ArrayLike) -> None: ...
    def __init__(self, *, header: std_msgs.Header = ..., orientation: geometry_msgs.Quaternion = ..., orientation_covariance: ArrayLike = ..., angular_velocity: geometry_msgs.Vector3 = ..., angular_velocity_covariance: ArrayLike = ..., linear_acceleration: geometry_msgs.Vector3 = ..., linear_acceleration_covariance: ArrayLike = ...) -> None: ...

class JointState(ropewalk.Message):
    header: std_msgs.Header
    name: list[str]
    @property
    def position(self) -> np.ndarray: ...
    @position.setter
    def position(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    @property
    def velocity(self) -> np.ndarray: ...
    @velocity.setter
    def velocity(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    @property
    def effort(self) -> np.ndarray: ...
    @effort.setter
    def effort(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, header: std_msgs.Header = ..., name: list[str] = ..., position: ArrayLike | ropewalk.Sized = ..., velocity: ArrayLike | ropewalk.Sized = ..., effort: ArrayLike | ropewalk.Sized = ...) -> None: ...

class Joy(ropewalk.Message):
    header: std_msgs.Header
    @property
    def axes(self) -> np.ndarray: ...
    @axes.setter
    def axes(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    @property
    def buttons(self) -> np.ndarray: ...
    @buttons.setter
    def buttons(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, header: std_msgs.Header = ..., axes: ArrayLike | ropewalk.Sized = ..., buttons: ArrayLike | ropewalk.Sized = ...) -> None: ...

class JoyFeedback(ropewalk.Message):
    TYPE_LED: int
    TYPE_RUMBLE: int
    TYPE_BUZZER: int
    type: int
    id: int
    intensity: float
    def __init__(self, *, type: int = ..., id: int = ..., intensity: float = ...) -> None: ...

class JoyFeedbackArray(ropewalk.Message):
    @property
    def array(self) -> np.ndarray: ...
    @array.setter
    def array(self, value: ArrayLike | Sequence[JoyFeedback] | ropewalk.Sized) -> None: ...
    def __init__(self, *, array: ArrayLike | Sequence[JoyFeedback] | ropewalk.Sized = ...) -> None: ...

class LaserEcho(ropewalk.Message):
    @property
    def echoes(self) -> np.ndarray: ...
    @echoes.setter
    def echoes(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, echoes: ArrayLike | ropewalk.Sized = ...) -> None: ...

class LaserScan(ropewalk.Message):
    header: std_msgs.Header
    angle_min: float
    angle_max: float
    angle_increment: float
    time_increment: float
    scan_time: float
    range_min: float
    range_max: float
    @property
    def ranges(self) -> np.ndarray: ...
    @ranges.setter
    def ranges(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    @property
    def intensities(self) -> np.ndarray: ...
    @intensities.setter
    def intensities(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, header: std_msgs.Header = ..., angle_min: float = ..., angle_max: float = ..., angle_increment: float = ..., time_increment: float = ..., scan_time: float = ..., range_min: float = ..., range_max: float = ..., ranges: ArrayLike | ropewalk.Sized = ..., intensities: ArrayLike | ropewalk.Sized = ...) -> None: ...

class MagneticField(ropewalk.Message):
    header: std_msgs.Header
    magnetic_field: geometry_msgs.Vector3
    @property
    def magnetic_field_covariance(self) -> np.ndarray: ...
    @magnetic_field_covariance.setter
    def magnetic_field_covariance(self, value: ArrayLike) -> None: ...
    def __init__(self, *, header: std_msgs.Header = ..., magnetic_field: geometry_msgs.Vector3 = ..., magnetic_field_covariance: ArrayLike = ...) -> None: ...

class MultiDOFJointState(ropewalk.Message):
    header: std_msgs.Header
    joint_names: list[str]
    @property
    def transforms(self) -> np.ndarray: ...
    @transforms.setter
    def transforms(self, value: ArrayLike | Sequence[geometry_msgs.Transform] | ropewalk.Sized) -> None: ...
    @property
    def twist(self) -> np.ndarray: ...
    @twist.setter
    def twist(self, value: ArrayLike | Sequence[geometry_msgs.Twist] | ropewalk.Sized) -> None: ...
    @property
    def wrench(self) -> np.ndarray: ...
    @wrench.setter
    def wrench(self, value: ArrayLike | Sequence[geometry_msgs.Wrench] | ropewalk.Sized) -> None: ...
    def __init__(self, *, header: std_msgs.Header = ..., joint_names: list[str] = ..., transforms: ArrayLike | Sequence[geometry_msgs.Transform] | ropewalk.Sized = ..., twist: ArrayLike | Sequence[geometry_msgs.Twist] | ropewalk.Sized = ..., wrench: ArrayLike | Sequence[geometry_msgs.Wrench] | ropewalk.Sized = ...) -> None: ...

class MultiEchoLaserScan(ropewalk.Message):
    header: std_msgs.Header
    angle_min: float
    angle_max: float
    angle_increment: float
    time_increment: float
    scan_time: float
    range_min: float
    range_max: float
    ranges: list[LaserEcho]
    intensities: list[LaserEcho]
    def __init__(self, *, header: std_msgs.Header = ..., angle_min: float = ..., angle_max: float = ..., angle_increment: float = ..., time_increment: float = ..., scan_time: float = ..., range_min: float = ..., range_max: float = ..., ranges: list[LaserEcho] = ..., intensities: list[LaserEcho] = ...) -> None: ...

class NavSatFix(ropewalk.Message):
    COVARIANCE_TYPE_UNKNOWN: int
    COVARIANCE_TYPE_APPROXIMATED: int
    COVARIANCE_TYPE_DIAGONAL_KNOWN: int
    COVARIANCE_TYPE_KNOWN: int
    header: std_msgs.Header
    status: NavSatStatus
    latitude: float
    longitude: float
    altitude: float
    @property
    def position_covariance(self) -> np.ndarray: ...
    @position_covariance.setter
    def position_covariance(self, value: ArrayLike) -> None: ...
    position_covariance_type: int
    def __init__(self, *, header: std_msgs.Header = ..., status: NavSatStatus = ..., latitude: float = ..., longitude: float = ..., altitude: float = ..., position_covariance: ArrayLike = ..., position_covariance_type: int = ...) -> None: ...

class NavSatStatus(ropewalk.Message):
    STATUS_NO_FIX: int
    STATUS_FIX: int
    STATUS_SBAS_FIX: int
    STATUS_GBAS_FIX: int
    SERVICE_GPS: int
    SERVICE_GLONASS: int
    SERVICE_COMPASS: int
    SERVICE_GALILEO: int
    status: int
    service: int
    def __init__(self, *, status: int = ..., service: int = ...) -> None: ...

class PointCloud(ropewalk.Message):
    header: std_msgs.Header
    @property
    def points(self) -> np.ndarray: ...
    @points.setter
    def points(self, value: ArrayLike | Sequence[geometry_msgs.Point32] | ropewalk.Sized) -> None: ...
    channels: list[ChannelFloat32]
    def __init__(self, *, header: std_msgs.Header = ..., points: ArrayLike | Sequence[geometry_msgs.Point32] | ropewalk.Sized = ..., channels: list[ChannelFloat32] = ...) -> None: ...

class PointCloud2(ropewalk.Message):
    header: std_msgs.Header
    height: int
    width: int
    fields: list[PointField]
    is_bigendian: bool
    point_step: int
    row_step: int
    @property
    def data(self) -> np.ndarray: ...
    @data.setter
    def data(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    is_dense: bool
    def __init__(self, *, header: std_msgs.Header = ..., height: int = ..., width: int = ..., fields: list[PointField] = ..., is_bigendian: bool = ..., point_step: int = ..., row_step: int = ..., data: ArrayLike | ropewalk.Sized = ..., is_dense: bool = ...) -> None: ...

class PointField(ropewalk.Message):
    INT8: int
    UINT8: int
    INT16: int
    UINT16: int
    INT32: int
    UINT32: int
    FLOAT32: int
    FLOAT64: int
    name: str
    offset: int
    datatype: int
    count: int
    def __init__(self, *, name: str = ..., offset: int = ..., datatype: int = ..., count: int = ...) -> None: ...

class Range(ropewalk.Message):
    ULTRASOUND: int
    INFRARED: int
    header: std_msgs.Header
    radiation_type: int
    field_of_view: float
    min_range: float
    max_range: float
    range: float
    def __init__(self, *, header: std_msgs.Header = ..., radiation_type: int = ..., field_of_view: float = ..., min_range: float = ..., max_range: float = ..., range: float = ...) -> None: ...

class RegionOfInterest(ropewalk.Message):
    x_offset: int
    y_offset: int
    height: int
    width: int
    do_rectify: bool
    def __init__(self, *, x_offset: int = ..., y_offset: int = ..., height: int = ..., width: int = ..., do_rectify: bool = ...) -> None: ...

class RelativeHumidity(ropewalk.Message):
    header: std_msgs.Header
    relative_humidity: float
    variance: float
    def __init__(self, *, header: std_msgs.Header = ..., relative_humidity: float = ..., variance: float = ...) -> None: ...

SetCameraInfo: ropewalk.ServiceType

class Temperature(ropewalk.Message):
    header: std_msgs.Header
    temperature: float
    variance: float
    def __init__(self, *, header: std_msgs.Header = ..., temperature: float = ..., variance: float = ...) -> None: ...

class TimeReference(ropewalk.Message):
    header: std_msgs.Header
    time_ref: ropewalk.Time
    source: str
    def __init__(self, *, header: std_msgs.Header = ..., time_ref: ropewalk.Time = ..., source: str = ...) -> None: ...
