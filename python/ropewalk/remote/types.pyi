# Made by python/tests/make_stubs.py; do not edit.
from collections.abc import Iterable, Mapping, MutableMapping, MutableSequence
from typing import Any

from google.protobuf.message import Message as _Message

# ControlMessageType
NO_CONTROL_DATA: int
PROTOCOL_VERSION: int
LIBRARY_VERSION: int
GIT_VERSION: int
HEARTBEAT: int
TELEMETRY_REQUEST: int
MAP_REQUEST: int
FILE_REQUEST: int
LOG_LEVEL_SELECT: int
PERMISSION: int
TARGET_POSE_COMMAND: int
TWIST_COMMAND: int
JOINTS_COMMAND: int
SIMPLE_ACTIONS_COMMAND: int
COMPLEX_ACTION_COMMAND: int
GOTO_COMMAND: int
ROBOT_TRAJECTORY_COMMAND: int
CONTROL_MESSAGE_TYPE_NUMBER: int

# TelemetryMessageType
NO_TELEMETRY_DATA: int
CURRENT_POSE: int
JOINT_STATE: int
CONTROLLABLE_JOINTS: int
SIMPLE_ACTIONS: int
COMPLEX_ACTIONS: int
ROBOT_NAME: int
ROBOT_STATE: int
LOG_MESSAGE: int
VIDEO_STREAMS: int
SIMPLE_SENSOR: int
WRENCH_STATE: int
MAP: int
POSES: int
TRANSFORMS: int
PERMISSION_REQUEST: int
POINTCLOUD: int
IMU_VALUES: int
CONTACT_POINTS: int
CURRENT_TWIST: int
CURRENT_ACCELERATION: int
CAMERA_INFORMATION: int
IMAGE: int
IMAGE_LAYERS: int
ODOMETRY: int
CONTROLLABLE_FRAMES: int
FILE_DEFINITION: int
ROBOT_MODEL_INFORMATION: int
INTERFACE_OPTIONS: int
CHANNELS_DEFINITION: int
LASER_SCAN: int
TELEMETRY_MESSAGE_TYPES_NUMBER: int

# LogLevel
NONE: int
FATAL: int
ERROR: int
WARN: int
INFO: int
DEBUG: int
CUSTOM: int

# PosesType
POSES_UNDEFINED: int
POSES_PATH: int
POSES_BOX: int
POSES_CIRCLE: int
POSES_SPHERE: int
POSES_CYLINDER: int

# ControllableFrameTypes
UNDEFINED_FRAME_CONTROL_TYPE: int
TWIST_CONTROL: int
POSE_CONTROL: int
GOTO_CONTROL: int

# ControllableFrameMovementType
UNDEFINED_CONTROL: int
MOVEMENT_CONTROL: int
MANIPULATION_CONTROL: int
WHOLE_BODY_CONTROL: int

# SimpleActionType
UNDEFINED: int
VALUE_INT: int
VALUE_FLOAT: int
TRIGGER: int

# ComplexActionType
UNDEFINED_COMPLEX_ACTION: int
POSE: int
POSE_LIST: int
TWIST: int
TWIST_LIST: int
AREA: int
VOLUME: int

class TimeStamp(_Message):
    secs: int
    nsecs: int
    def __init__(
        self,
        *,
        secs: int | None = ...,
        nsecs: int | None = ...,
    ) -> None: ...

class Header(_Message):
    @property
    def timestamp(self) -> TimeStamp: ...
    frame: str
    seq: int
    def __init__(
        self,
        *,
        timestamp: TimeStamp | Mapping[str, Any] | None = ...,
        frame: str | None = ...,
        seq: int | None = ...,
    ) -> None: ...

class ChannelsDefinition(_Message):
    @property
    def channel(self) -> MutableSequence[ChannelDefinition]: ...
    def __init__(
        self,
        *,
        channel: Iterable[ChannelDefinition | Mapping[str, Any]] | None = ...,
    ) -> None: ...

class ChannelDefinition(_Message):
    name: str
    messagetype: int
    channelno: int
    def __init__(
        self,
        *,
        name: str | None = ...,
        messagetype: int | None = ...,
        channelno: int | None = ...,
    ) -> None: ...

class InterfaceOptions(_Message):
    dynamicSimpleActions: bool
    dynamicComplexActions: bool
    def __init__(
        self,
        *,
        dynamicSimpleActions: bool | None = ...,
        dynamicComplexActions: bool | None = ...,
    ) -> None: ...

class HeartBeat(_Message):
    heartBeatDuration: float
    def __init__(
        self,
        *,
        heartBeatDuration: float | None = ...,
    ) -> None: ...

class RobotName(_Message):
    value: str
    def __init__(
        self,
        *,
        value: str | None = ...,
    ) -> None: ...

class RobotState(_Message):
    @property
    def header(self) -> Header: ...
    @property
    def state(self) -> MutableSequence[str]: ...
    @property
    def state_name(self) -> MutableSequence[str]: ...
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        state: Iterable[str] | None = ...,
        state_name: Iterable[str] | None = ...,
    ) -> None: ...

class LogMessage(_Message):
    @property
    def header(self) -> Header: ...
    level: int
    message: str
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        level: int | None = ...,
        message: str | None = ...,
    ) -> None: ...

class PermissionRequest(_Message):
    @property
    def header(self) -> Header: ...
    description: str
    requestuid: str
    granted: bool
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        description: str | None = ...,
        requestuid: str | None = ...,
        granted: bool | None = ...,
    ) -> None: ...

class Permission(_Message):
    @property
    def header(self) -> Header: ...
    requestuid: str
    granted: bool
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        requestuid: str | None = ...,
        granted: bool | None = ...,
    ) -> None: ...

class Vector2(_Message):
    x: float
    y: float
    def __init__(
        self,
        *,
        x: float | None = ...,
        y: float | None = ...,
    ) -> None: ...

class Vector3(_Message):
    x: float
    y: float
    z: float
    def __init__(
        self,
        *,
        x: float | None = ...,
        y: float | None = ...,
        z: float | None = ...,
    ) -> None: ...

class Vector3Array(_Message):
    @property
    def elements(self) -> MutableSequence[Vector3]: ...
    def __init__(
        self,
        *,
        elements: Iterable[Vector3 | Mapping[str, Any]] | None = ...,
    ) -> None: ...

class Position(_Message):
    x: float
    y: float
    z: float
    def __init__(
        self,
        *,
        x: float | None = ...,
        y: float | None = ...,
        z: float | None = ...,
    ) -> None: ...

class Orientation(_Message):
    x: float
    y: float
    z: float
    w: float
    def __init__(
        self,
        *,
        x: float | None = ...,
        y: float | None = ...,
        z: float | None = ...,
        w: float | None = ...,
    ) -> None: ...

class Pose(_Message):
    @property
    def header(self) -> Header: ...
    @property
    def position(self) -> Position: ...
    @property
    def orientation(self) -> Orientation: ...
    orientation2d: float
    @property
    def covariance(self) -> MutableSequence[float]: ...
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        position: Position | Mapping[str, Any] | None = ...,
        orientation: Orientation | Mapping[str, Any] | None = ...,
        orientation2d: float | None = ...,
        covariance: Iterable[float] | None = ...,
    ) -> None: ...

class PoseWithCovariance(_Message):
    @property
    def pose(self) -> Pose: ...
    @property
    def covariance(self) -> MutableSequence[float]: ...
    def __init__(
        self,
        *,
        pose: Pose | Mapping[str, Any] | None = ...,
        covariance: Iterable[float] | None = ...,
    ) -> None: ...

class Poses(_Message):
    @property
    def header(self) -> Header: ...
    @property
    def origin(self) -> Pose: ...
    @property
    def poses(self) -> MutableSequence[Pose]: ...
    type: int
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        origin: Pose | Mapping[str, Any] | None = ...,
        poses: Iterable[Pose | Mapping[str, Any]] | None = ...,
        type: int | None = ...,
    ) -> None: ...

class Twist(_Message):
    @property
    def header(self) -> Header: ...
    @property
    def linear(self) -> Vector3: ...
    @property
    def angular(self) -> Vector3: ...
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        linear: Vector3 | Mapping[str, Any] | None = ...,
        angular: Vector3 | Mapping[str, Any] | None = ...,
    ) -> None: ...

class TwistWithCovariance(_Message):
    @property
    def twist(self) -> Twist: ...
    @property
    def covariance(self) -> MutableSequence[float]: ...
    def __init__(
        self,
        *,
        twist: Twist | Mapping[str, Any] | None = ...,
        covariance: Iterable[float] | None = ...,
    ) -> None: ...

class Acceleration(_Message):
    @property
    def linear(self) -> Vector3: ...
    @property
    def angular(self) -> Vector3: ...
    def __init__(
        self,
        *,
        linear: Vector3 | Mapping[str, Any] | None = ...,
        angular: Vector3 | Mapping[str, Any] | None = ...,
    ) -> None: ...

class Transform(_Message):
    @property
    def header(self) -> Header: ...
    @property
    def transform(self) -> Pose: ...
    to: str
    @property
    def covariance(self) -> MutableSequence[float]: ...
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        transform: Pose | Mapping[str, Any] | None = ...,
        to: str | None = ...,
        covariance: Iterable[float] | None = ...,
        **others: Any,
    ) -> None: ...

class Transforms(_Message):
    @property
    def transform(self) -> MutableSequence[Transform]: ...
    def __init__(
        self,
        *,
        transform: Iterable[Transform | Mapping[str, Any]] | None = ...,
    ) -> None: ...

class Odometry(_Message):
    @property
    def header(self) -> Header: ...
    child_frame_id: str
    @property
    def pose(self) -> PoseWithCovariance: ...
    @property
    def twist(self) -> TwistWithCovariance: ...
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        child_frame_id: str | None = ...,
        pose: PoseWithCovariance | Mapping[str, Any] | None = ...,
        twist: TwistWithCovariance | Mapping[str, Any] | None = ...,
    ) -> None: ...

class GoTo(_Message):
    @property
    def header(self) -> Header: ...
    max_forward_speed: float
    @property
    def waypoint_pose(self) -> Pose: ...
    waypoint_max_forward_speed: float
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        max_forward_speed: float | None = ...,
        waypoint_pose: Pose | Mapping[str, Any] | None = ...,
        waypoint_max_forward_speed: float | None = ...,
    ) -> None: ...

class JointState(_Message):
    @property
    def header(self) -> Header: ...
    @property
    def name(self) -> MutableSequence[str]: ...
    @property
    def position(self) -> MutableSequence[float]: ...
    @property
    def velocity(self) -> MutableSequence[float]: ...
    @property
    def effort(self) -> MutableSequence[float]: ...
    @property
    def acceleration(self) -> MutableSequence[float]: ...
    @property
    def tics(self) -> MutableSequence[int]: ...
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        name: Iterable[str] | None = ...,
        position: Iterable[float] | None = ...,
        velocity: Iterable[float] | None = ...,
        effort: Iterable[float] | None = ...,
        acceleration: Iterable[float] | None = ...,
        tics: Iterable[int] | None = ...,
    ) -> None: ...

class JointCommand(_Message):
    @property
    def header(self) -> Header: ...
    @property
    def name(self) -> MutableSequence[str]: ...
    @property
    def position(self) -> MutableSequence[float]: ...
    @property
    def velocity(self) -> MutableSequence[float]: ...
    @property
    def effort(self) -> MutableSequence[float]: ...
    @property
    def acceleration(self) -> MutableSequence[float]: ...
    @property
    def tics(self) -> MutableSequence[int]: ...
    @property
    def kp_gain(self) -> MutableSequence[float]: ...
    @property
    def kd_gain(self) -> MutableSequence[float]: ...
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        name: Iterable[str] | None = ...,
        position: Iterable[float] | None = ...,
        velocity: Iterable[float] | None = ...,
        effort: Iterable[float] | None = ...,
        acceleration: Iterable[float] | None = ...,
        tics: Iterable[int] | None = ...,
        kp_gain: Iterable[float] | None = ...,
        kd_gain: Iterable[float] | None = ...,
    ) -> None: ...

class ControllableFrame(_Message):
    frame: str
    @property
    def type(self) -> MutableSequence[int]: ...
    movement_type: int
    def __init__(
        self,
        *,
        frame: str | None = ...,
        type: Iterable[int] | None = ...,
        movement_type: int | None = ...,
    ) -> None: ...

class ControllableFrames(_Message):
    @property
    def controllable_frames(self) -> MutableSequence[ControllableFrame]: ...
    def __init__(
        self,
        *,
        controllable_frames: Iterable[ControllableFrame | Mapping[str, Any]] | None = ...,
    ) -> None: ...

class NamedValue(_Message):
    name: str
    value: float
    def __init__(
        self,
        *,
        name: str | None = ...,
        value: float | None = ...,
    ) -> None: ...

class ActionDependency(_Message):
    depends_on_action: str
    depends_on_action_in_state: float
    def __init__(
        self,
        *,
        depends_on_action: str | None = ...,
        depends_on_action_in_state: float | None = ...,
    ) -> None: ...

class SimpleActionDef(_Message):
    type: int
    min_state: float
    max_state: float
    step_size: float
    @property
    def value_names(self) -> MutableSequence[NamedValue]: ...
    @property
    def action_dependency(self) -> MutableSequence[ActionDependency]: ...
    def __init__(
        self,
        *,
        type: int | None = ...,
        min_state: float | None = ...,
        max_state: float | None = ...,
        step_size: float | None = ...,
        value_names: Iterable[NamedValue | Mapping[str, Any]] | None = ...,
        action_dependency: Iterable[ActionDependency | Mapping[str, Any]] | None = ...,
    ) -> None: ...

class SimpleAction(_Message):
    @property
    def header(self) -> Header: ...
    name: str
    @property
    def type(self) -> SimpleActionDef: ...
    state: float
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        name: str | None = ...,
        type: SimpleActionDef | Mapping[str, Any] | None = ...,
        state: float | None = ...,
    ) -> None: ...

class SimpleActions(_Message):
    @property
    def actions(self) -> MutableSequence[SimpleAction]: ...
    def __init__(
        self,
        *,
        actions: Iterable[SimpleAction | Mapping[str, Any]] | None = ...,
    ) -> None: ...

class ComplexAction(_Message):
    name: str
    type: int
    @property
    def poses(self) -> MutableSequence[Pose]: ...
    @property
    def twists(self) -> MutableSequence[Twist]: ...
    def __init__(
        self,
        *,
        name: str | None = ...,
        type: int | None = ...,
        poses: Iterable[Pose | Mapping[str, Any]] | None = ...,
        twists: Iterable[Twist | Mapping[str, Any]] | None = ...,
    ) -> None: ...

class ComplexActions(_Message):
    @property
    def actions(self) -> MutableSequence[ComplexAction]: ...
    def __init__(
        self,
        *,
        actions: Iterable[ComplexAction | Mapping[str, Any]] | None = ...,
    ) -> None: ...

class SimpleSensor(_Message):
    @property
    def header(self) -> Header: ...
    name: str
    @property
    def size(self) -> Vector2: ...
    @property
    def value(self) -> MutableSequence[float]: ...
    @property
    def scale(self) -> Vector2: ...
    @property
    def value_names(self) -> MutableSequence[str]: ...
    @property
    def local_offset(self) -> Position: ...
    @property
    def local_orientation(self) -> Orientation: ...
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        name: str | None = ...,
        size: Vector2 | Mapping[str, Any] | None = ...,
        value: Iterable[float] | None = ...,
        scale: Vector2 | Mapping[str, Any] | None = ...,
        value_names: Iterable[str] | None = ...,
        local_offset: Position | Mapping[str, Any] | None = ...,
        local_orientation: Orientation | Mapping[str, Any] | None = ...,
    ) -> None: ...

class GridMap(_Message):
    @property
    def header(self) -> Header: ...
    frame: str
    @property
    def origin(self) -> Pose: ...
    @property
    def layers(self) -> MutableSequence[SimpleSensor]: ...
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        frame: str | None = ...,
        origin: Pose | Mapping[str, Any] | None = ...,
        layers: Iterable[SimpleSensor | Mapping[str, Any]] | None = ...,
    ) -> None: ...

class BinaryMap(_Message):
    type: str
    data: bytes
    def __init__(
        self,
        *,
        type: str | None = ...,
        data: bytes | None = ...,
    ) -> None: ...

class Map(_Message):
    @property
    def map(self) -> _Message: ...
    def __init__(
        self,
        *,
        map: _Message | Mapping[str, Any] | None = ...,
    ) -> None: ...

class ChannelFloat(_Message):
    name: str
    @property
    def values(self) -> MutableSequence[float]: ...
    def __init__(
        self,
        *,
        name: str | None = ...,
        values: Iterable[float] | None = ...,
    ) -> None: ...

class PointCloud(_Message):
    @property
    def header(self) -> Header: ...
    @property
    def origin(self) -> Pose: ...
    @property
    def points(self) -> MutableSequence[Position]: ...
    @property
    def channels(self) -> MutableSequence[ChannelFloat]: ...
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        origin: Pose | Mapping[str, Any] | None = ...,
        points: Iterable[Position | Mapping[str, Any]] | None = ...,
        channels: Iterable[ChannelFloat | Mapping[str, Any]] | None = ...,
    ) -> None: ...

class LaserScan(_Message):
    @property
    def header(self) -> Header: ...
    vertical_size: int
    horizontal_size: int
    vertical_angle_resolution: float
    start_angle: float
    horizontal_angle_resolution: float
    scan_speed: float
    range_min: float
    range_max: float
    @property
    def ranges(self) -> MutableSequence[float]: ...
    @property
    def remissions(self) -> MutableSequence[float]: ...
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        vertical_size: int | None = ...,
        horizontal_size: int | None = ...,
        vertical_angle_resolution: float | None = ...,
        start_angle: float | None = ...,
        horizontal_angle_resolution: float | None = ...,
        scan_speed: float | None = ...,
        range_min: float | None = ...,
        range_max: float | None = ...,
        ranges: Iterable[float] | None = ...,
        remissions: Iterable[float] | None = ...,
    ) -> None: ...

class IMU(_Message):
    @property
    def header(self) -> Header: ...
    @property
    def acceleration(self) -> Vector3: ...
    @property
    def gyro(self) -> Vector3: ...
    @property
    def mag(self) -> Vector3: ...
    @property
    def orientation(self) -> Orientation: ...
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        acceleration: Vector3 | Mapping[str, Any] | None = ...,
        gyro: Vector3 | Mapping[str, Any] | None = ...,
        mag: Vector3 | Mapping[str, Any] | None = ...,
        orientation: Orientation | Mapping[str, Any] | None = ...,
    ) -> None: ...

class ContactPoint(_Message):
    name: str
    @property
    def position(self) -> Vector3: ...
    contact: float
    slip: float
    friction_coefficient: float
    groupId: int
    def __init__(
        self,
        *,
        name: str | None = ...,
        position: Vector3 | Mapping[str, Any] | None = ...,
        contact: float | None = ...,
        slip: float | None = ...,
        friction_coefficient: float | None = ...,
        groupId: int | None = ...,
    ) -> None: ...

class ContactPoints(_Message):
    @property
    def header(self) -> Header: ...
    @property
    def contacts(self) -> MutableSequence[ContactPoint]: ...
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        contacts: Iterable[ContactPoint | Mapping[str, Any]] | None = ...,
    ) -> None: ...

class Wrench(_Message):
    @property
    def header(self) -> Header: ...
    @property
    def force(self) -> Vector3: ...
    @property
    def torque(self) -> Vector3: ...
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        force: Vector3 | Mapping[str, Any] | None = ...,
        torque: Vector3 | Mapping[str, Any] | None = ...,
    ) -> None: ...

class WrenchState(_Message):
    @property
    def header(self) -> Header: ...
    @property
    def wrenches(self) -> MutableSequence[Wrench]: ...
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        wrenches: Iterable[Wrench | Mapping[str, Any]] | None = ...,
    ) -> None: ...

class VideoStream(_Message):
    url: str
    @property
    def camerapose(self) -> Pose: ...
    def __init__(
        self,
        *,
        url: str | None = ...,
        camerapose: Pose | Mapping[str, Any] | None = ...,
    ) -> None: ...

class VideoStreams(_Message):
    @property
    def stream(self) -> MutableSequence[VideoStream]: ...
    def __init__(
        self,
        *,
        stream: Iterable[VideoStream | Mapping[str, Any]] | None = ...,
    ) -> None: ...

class RegionOfInterest(_Message):
    x_offset: int
    y_offset: int
    height: int
    width: int
    do_rectify: bool
    def __init__(
        self,
        *,
        x_offset: int | None = ...,
        y_offset: int | None = ...,
        height: int | None = ...,
        width: int | None = ...,
        do_rectify: bool | None = ...,
    ) -> None: ...

class CameraInfo(_Message):
    @property
    def header(self) -> Header: ...
    width: int
    height: int
    distortion_model: str
    @property
    def D(self) -> MutableSequence[float]: ...
    @property
    def K(self) -> MutableSequence[float]: ...
    @property
    def R(self) -> MutableSequence[float]: ...
    @property
    def P(self) -> MutableSequence[float]: ...
    binning_x: int
    binning_y: int
    @property
    def roi(self) -> RegionOfInterest: ...
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        width: int | None = ...,
        height: int | None = ...,
        distortion_model: str | None = ...,
        D: Iterable[float] | None = ...,
        K: Iterable[float] | None = ...,
        R: Iterable[float] | None = ...,
        P: Iterable[float] | None = ...,
        binning_x: int | None = ...,
        binning_y: int | None = ...,
        roi: RegionOfInterest | Mapping[str, Any] | None = ...,
    ) -> None: ...

class CameraInformation(_Message):
    @property
    def camerainfo(self) -> MutableSequence[CameraInfo]: ...
    def __init__(
        self,
        *,
        camerainfo: Iterable[CameraInfo | Mapping[str, Any]] | None = ...,
    ) -> None: ...

class Image(_Message):
    @property
    def header(self) -> Header: ...
    height: int
    width: int
    encoding: str
    is_bigendian: int
    step: int
    data: bytes
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        height: int | None = ...,
        width: int | None = ...,
        encoding: str | None = ...,
        is_bigendian: int | None = ...,
        step: int | None = ...,
        data: bytes | None = ...,
    ) -> None: ...

class ImageLayers(_Message):
    @property
    def header(self) -> Header: ...
    @property
    def layers(self) -> MutableSequence[Image]: ...
    def __init__(
        self,
        *,
        header: Header | Mapping[str, Any] | None = ...,
        layers: Iterable[Image | Mapping[str, Any]] | None = ...,
    ) -> None: ...

class File(_Message):
    identifier: str
    path: str
    remote_path: str
    def __init__(
        self,
        *,
        identifier: str | None = ...,
        path: str | None = ...,
        remote_path: str | None = ...,
    ) -> None: ...

class FileDefinition(_Message):
    @property
    def file(self) -> MutableSequence[File]: ...
    @property
    def isFolder(self) -> MutableSequence[bool]: ...
    def __init__(
        self,
        *,
        file: Iterable[File | Mapping[str, Any]] | None = ...,
        isFolder: Iterable[bool] | None = ...,
    ) -> None: ...

class FileTransfer(_Message):
    path: str
    data: bytes
    def __init__(
        self,
        *,
        path: str | None = ...,
        data: bytes | None = ...,
    ) -> None: ...

class FolderTransfer(_Message):
    identifier: str
    compressed: bool
    @property
    def file(self) -> MutableSequence[FileTransfer]: ...
    uncompressed_size: int
    def __init__(
        self,
        *,
        identifier: str | None = ...,
        compressed: bool | None = ...,
        file: Iterable[FileTransfer | Mapping[str, Any]] | None = ...,
        uncompressed_size: int | None = ...,
    ) -> None: ...

class FileRequest(_Message):
    identifier: str
    compressed: bool
    def __init__(
        self,
        *,
        identifier: str | None = ...,
        compressed: bool | None = ...,
    ) -> None: ...

class RobotModelInformation(_Message):
    @property
    def filedef(self) -> FileDefinition: ...
    modelfilename: str
    def __init__(
        self,
        *,
        filedef: FileDefinition | Mapping[str, Any] | None = ...,
        modelfilename: str | None = ...,
    ) -> None: ...
