# Made by `ropewalk gen python`; do not edit.
import numpy as np
import ropewalk
from collections.abc import Sequence
from numpy.typing import ArrayLike
from . import geometry_msgs
from . import std_msgs

class ImageMarker(ropewalk.Message):
    CIRCLE: int
    LINE_STRIP: int
    LINE_LIST: int
    POLYGON: int
    POINTS: int
    ADD: int
    REMOVE: int
    header: std_msgs.Header
    ns: str
    id: int
    type: int
    action: int
    position: geometry_msgs.Point
    scale: float
    outline_color: std_msgs.ColorRGBA
    filled: int
    fill_color: std_msgs.ColorRGBA
    lifetime: ropewalk.Duration
    @property
    def points(self) -> np.ndarray: ...
    @points.setter
    def points(self, value: ArrayLike | Sequence[geometry_msgs.Point] | ropewalk.Sized) -> None: ...
    @property
    def outline_colors(self) -> np.ndarray: ...
    @outline_colors.setter
    def outline_colors(self, value: ArrayLike | Sequence[std_msgs.ColorRGBA] | ropewalk.Sized) -> None: ...
    def __init__(self, *, header: std_msgs.Header = ..., ns: str = ..., id: int = ..., type: int = ..., action: int = ..., position: geometry_msgs.Point = ..., scale: float = ..., outline_color: std_msgs.ColorRGBA = ..., filled: int = ..., fill_color: std_msgs.ColorRGBA = ..., lifetime: ropewalk.Duration = ..., points: ArrayLike | Sequence[geometry_msgs.Point] | ropewalk.Sized = ..., outline_colors: ArrayLike | Sequence[std_msgs.ColorRGBA] | ropewalk.Sized = ...) -> None: ...

class InteractiveMarker(ropewalk.Message):
    header: std_msgs.Header
    pose: geometry_msgs.Pose
    name: str
    description: str
    scale: float
    menu_entries: list[MenuEntry]
    controls: list[InteractiveMarkerControl]
    def __init__(self, *, header: std_msgs.Header = ..., pose: geometry_msgs.Pose = ..., name: str = ..., description: str = ..., scale: float = ..., menu_entries: list[MenuEntry] = ..., controls: list[InteractiveMarkerControl] = ...) -> None: ...

class InteractiveMarkerControl(ropewalk.Message):
    INHERIT: int
    FIXED: int
    VIEW_FACING: int
    NONE: int
    MENU: int
    BUTTON: int
    MOVE_AXIS: int
    MOVE_PLANE: int
    ROTATE_AXIS: int
    MOVE_ROTATE: int
    MOVE_3D: int
    ROTATE_3D: int
    MOVE_ROTATE_3D: int
    name: str
    orientation: geometry_msgs.Quaternion
    orientation_mode: int
    interaction_mode: int
    always_visible: bool
    markers: list[Marker]
    independent_marker_orientation: bool
    description: str
    def __init__(self, *, name: str = ..., orientation: geometry_msgs.Quaternion = ..., orientation_mode: int = ..., interaction_mode: int = ..., always_visible: bool = ..., markers: list[Marker] = ..., independent_marker_orientation: bool = ..., description: str = ...) -> None: ...

class InteractiveMarkerFeedback(ropewalk.Message):
    KEEP_ALIVE: int
    POSE_UPDATE: int
    MENU_SELECT: int
    BUTTON_CLICK: int
    MOUSE_DOWN: int
    MOUSE_UP: int
    header: std_msgs.Header
    client_id: str
    marker_name: str
    control_name: str
    event_type: int
    pose: geometry_msgs.Pose
    menu_entry_id: int
    mouse_point: geometry_msgs.Point
    mouse_point_valid: bool
    def __init__(self, *, header: std_msgs.Header = ..., client_id: str = ..., marker_name: str = ..., control_name: str = ..., event_type: int = ..., pose: geometry_msgs.Pose = ..., menu_entry_id: int = ..., mouse_point: geometry_msgs.Point = ..., mouse_point_valid: bool = ...) -> None: ...

class InteractiveMarkerInit(ropewalk.Message):
    server_id: str
    seq_num: int
    markers: list[InteractiveMarker]
    def __init__(self, *, server_id: str = ..., seq_num: int = ..., markers: list[InteractiveMarker] = ...) -> None: ...

class InteractiveMarkerPose(ropewalk.Message):
    header: std_msgs.Header
    pose: geometry_msgs.Pose
    name: str
    def __init__(self, *, header: std_msgs.Header = ..., pose: geometry_msgs.Pose = ..., name: str = ...) -> None: ...

class InteractiveMarkerUpdate(ropewalk.Message):
    KEEP_ALIVE: int
    UPDATE: int
    server_id: str
    seq_num: int
    type: int
    markers: list[InteractiveMarker]
    poses: list[InteractiveMarkerPose]
    erases: list[str]
    def __init__(self, *, server_id: str = ..., seq_num: int = ..., type: int = ..., markers: list[InteractiveMarker] = ..., poses: list[InteractiveMarkerPose] = ..., erases: list[str] = ...) -> None: ...

class Marker(ropewalk.Message):
    ARROW: int
    CUBE: int
    SPHERE: int
    CYLINDER: int
    LINE_STRIP: int
    LINE_LIST: int
    CUBE_LIST: int
    SPHERE_LIST: int
    POINTS: int
    TEXT_VIEW_FACING: int
    MESH_RESOURCE: int
    TRIANGLE_LIST: int
    ADD: int
    MODIFY: int
    DELETE: int
    DELETEALL: int
    header: std_msgs.Header
    ns: str
    id: int
    type: int
    action: int
    pose: geometry_msgs.Pose
    scale: geometry_msgs.Vector3
    color: std_msgs.ColorRGBA
    lifetime: ropewalk.Duration
    frame_locked: bool
    @property
    def points(self) -> np.ndarray: ...
    @points.setter
    def points(self, value: ArrayLike | Sequence[geometry_msgs.Point] | ropewalk.Sized) -> None: ...
    @property
    def colors(self) -> np.ndarray: ...
    @colors.setter
    def colors(self, value: ArrayLike | Sequence[std_msgs.ColorRGBA] | ropewalk.Sized) -> None: ...
    text: str
    mesh_resource: str
    mesh_use_embedded_materials: bool
    def __init__(self, *, header: std_msgs.Header = ..., ns: str = ..., id: int = ..., type: int = ..., action: int = ..., pose: geometry_msgs.Pose = ..., scale: geometry_msgs.Vector3 = ..., color: std_msgs.ColorRGBA = ..., lifetime: ropewalk.Duration = ..., frame_locked: bool = ..., points: ArrayLike | Sequence[geometry_msgs.Point] | ropewalk.Sized = ..., colors: ArrayLike | Sequence[std_msgs.ColorRGBA] | ropewalk.Sized = ..., text: str = ..., mesh_resource: str = ..., mesh_use_embedded_materials: bool = ...) -> None: ...

class MarkerArray(ropewalk.Message):
    markers: list[Marker]
    def __init__(self, *, markers: list[Marker] = ...) -> None: ...

class MenuEntry(ropewalk.Message):
    FEEDBACK: int
    ROSRUN: int
    ROSLAUNCH: int
    id: int
    parent_id: int
    title: str
    command: str
    command_type: int
    def __init__(self, *, id: int = ..., parent_id: int = ..., title: str = ..., command: str = ..., command_type: int = ...) -> None: ...
