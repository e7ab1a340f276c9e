# Made by `ropewalk gen python`; do not edit.
import numpy as np
import ropewalk
from collections.abc import Sequence
from numpy.typing import ArrayLike
from . import std_msgs

class Accel(ropewalk.Message):
    linear: Vector3
    angular: Vector3
    def __init__(self, *, linear: Vector3 = ..., angular: Vector3 = ...) -> None: ...

class AccelStamped(ropewalk.Message):
    header: std_msgs.Header
    accel: Accel
    def __init__(self, *, header: std_msgs.Header = ..., accel: Accel = ...) -> None: ...

class AccelWithCovariance(ropewalk.Message):
    accel: Accel
    @property
    def covariance(self) -> np.ndarray: ...
    @covariance.setter
    def covariance(self, value: ArrayLike) -> None: ...
    def __init__(self, *, accel: Accel = ..., covariance: ArrayLike = ...) -> None: ...

class AccelWithCovarianceStamped(ropewalk.Message):
    header: std_msgs.Header
    accel: AccelWithCovariance
    def __init__(self, *, header: std_msgs.Header = ..., accel: AccelWithCovariance = ...) -> None: ...

class Inertia(ropewalk.Message):
    m: float
    com: Vector3
    ixx: float
    ixy: float
    ixz: float
    iyy: float
    iyz: float
    izz: float
    def __init__(self, *, m: float = ..., com: Vector3 = ..., ixx: float = ..., ixy: float = ..., ixz: float = ..., iyy: float = ..., iyz: float = ..., izz: float = ...) -> None: ...

class InertiaStamped(ropewalk.Message):
    header: std_msgs.Header
    inertia: Inertia
    def __init__(self, *, header: std_msgs.Header = ..., inertia: Inertia = ...) -> None: ...

class Point(ropewalk.Message):
    x: float
    y: float
    z: float
    def __init__(self, *, x: float = ..., y: float = ..., z: float = ...) -> None: ...

class Point32(ropewalk.Message):
    x: float
    y: float
    z: float
    def __init__(self, *, x: float = ..., y: float = ..., z: float = ...) -> None: ...

class PointStamped(ropewalk.Message):
    header: std_msgs.Header
    point: Point
    def __init__(self, *, header: std_msgs.Header = ..., point: Point = ...) -> None: ...

class Polygon(ropewalk.Message):
    @property
    def points(self) -> np.ndarray: ...
    @points.setter
    def points(self, value: ArrayLike | Sequence[Point32] | ropewalk.Sized) -> None: ...
    def __init__(self, *, points: ArrayLike | Sequence[Point32] | ropewalk.Sized = ...) -> None: ...

class PolygonStamped(ropewalk.Message):
    header: std_msgs.Header
    polygon: Polygon
    def __init__(self, *, header: std_msgs.Header = ..., polygon: Polygon = ...) -> None: ...

class Pose(ropewalk.Message):
    position: Point
    orientation: Quaternion
    def __init__(self, *, position: Point = ..., orientation: Quaternion = ...) -> None: ...

class Pose2D(ropewalk.Message):
    x: float
    y: float
    theta: float
    def __init__(self, *, x: float = ..., y: float = ..., theta: float = ...) -> None: ...

class PoseArray(ropewalk.Message):
    header: std_msgs.Header
    @property
    def poses(self) -> np.ndarray: ...
    @poses.setter
    def poses(self, value: ArrayLike | Sequence[Pose] | ropewalk.Sized) -> None: ...
    def __init__(self, *, header: std_msgs.Header = ..., poses: ArrayLike | Sequence[Pose] | ropewalk.Sized = ...) -> None: ...

class PoseStamped(ropewalk.Message):
    header: std_msgs.Header
    pose: Pose
    def __init__(self, *, header: std_msgs.Header = ..., pose: Pose = ...) -> None: ...

class PoseWithCovariance(ropewalk.Message):
    pose: Pose
    @property
    def covariance(self) -> np.ndarray: ...
    @covariance.setter
    def covariance(self, value: ArrayLike) -> None: ...
    def __init__(self, *, pose: Pose = ..., covariance: ArrayLike = ...) -> None: ...

class PoseWithCovarianceStamped(ropewalk.Message):
    header: std_msgs.Header
    pose: PoseWithCovariance
    def __init__(self, *, header: std_msgs.Header = ..., pose: PoseWithCovariance = ...) -> None: ...

class Quaternion(ropewalk.Message):
    x: float
    y: float
    z: float
    w: float
    def __init__(self, *, x: float = ..., y: float = ..., z: float = ..., w: float = ...) -> None: ...

class QuaternionStamped(ropewalk.Message):
    header: std_msgs.Header
    quaternion: Quaternion
    def __init__(self, *, header: std_msgs.Header = ..., quaternion: Quaternion = ...) -> None: ...

class Transform(ropewalk.Message):
    translation: Vector3
    rotation: Quaternion
    def __init__(self, *, translation: Vector3 = ..., rotation: Quaternion = ...) -> None: ...

class TransformStamped(ropewalk.Message):
    header: std_msgs.Header
    child_frame_id: str
    transform: Transform
    def __init__(self, *, header: std_msgs.Header = ..., child_frame_id: str = ..., transform: Transform = ...) -> None: ...

class Twist(ropewalk.Message):
    linear: Vector3
    angular: Vector3
    def __init__(self, *, linear: Vector3 = ..., angular: Vector3 = ...) -> None: ...

class TwistStamped(ropewalk.Message):
    header: std_msgs.Header
    twist: Twist
    def __init__(self, *, header: std_msgs.Header = ..., twist: Twist = ...) -> None: ...

class TwistWithCovariance(ropewalk.Message):
    twist: Twist
    @property
    def covariance(self) -> np.ndarray: ...
    @covariance.setter
    def covariance(self, value: ArrayLike) -> None: ...
    def __init__(self, *, twist: Twist = ..., covariance: ArrayLike = ...) -> None: ...

class TwistWithCovarianceStamped(ropewalk.Message):
    header: std_msgs.Header
    twist: TwistWithCovariance
    def __init__(self, *, header: std_msgs.Header = ..., twist: TwistWithCovariance = ...) -> None: ...

class Vector3(ropewalk.Message):
    x: float
    y: float
    z: float
    def __init__(self, *, x: float = ..., y: float = ..., z: float = ...) -> None: ...

class Vector3Stamped(ropewalk.Message):
    header: std_msgs.Header
    vector: Vector3
    def __init__(self, *, header: std_msgs.Header = ..., vector: Vector3 = ...) -> None: ...

class Wrench(ropewalk.Message):
    force: Vector3
    torque: Vector3
    def __init__(self, *, force: Vector3 = ..., torque: Vector3 = ...) -> None: ...

class WrenchStamped(ropewalk.Message):
    header: std_msgs.Header
    wrench: Wrench
    def __init__(self, *, header: std_msgs.Header = ..., wrench: Wrench = ...) -> None: ...
