# Made by `ropewalk gen python`; do not edit.
import numpy as np
import ropewalk
from collections.abc import Sequence
from numpy.typing import ArrayLike
from . import actionlib_msgs
from . import geometry_msgs
from . import std_msgs

GetMap: ropewalk.ServiceType

class GetMapAction(ropewalk.Message):
    action_goal: GetMapActionGoal
    action_result: GetMapActionResult
    action_feedback: GetMapActionFeedback
    def __init__(self, *, action_goal: GetMapActionGoal = ..., action_result: GetMapActionResult = ..., action_feedback: GetMapActionFeedback = ...) -> None: ...

class GetMapActionFeedback(ropewalk.Message):
    header: std_msgs.Header
    status: actionlib_msgs.GoalStatus
    feedback: GetMapFeedback
    def __init__(self, *, header: std_msgs.Header = ..., status: actionlib_msgs.GoalStatus = ..., feedback: GetMapFeedback = ...) -> None: ...

class GetMapActionGoal(ropewalk.Message):
    header: std_msgs.Header
    goal_id: actionlib_msgs.GoalID
    goal: GetMapGoal
    def __init__(self, *, header: std_msgs.Header = ..., goal_id: actionlib_msgs.GoalID = ..., goal: GetMapGoal = ...) -> None: ...

class GetMapActionResult(ropewalk.Message):
    header: std_msgs.Header
    status: actionlib_msgs.GoalStatus
    result: GetMapResult
    def __init__(self, *, header: std_msgs.Header = ..., status: actionlib_msgs.GoalStatus = ..., result: GetMapResult = ...) -> None: ...

class GetMapFeedback(ropewalk.Message):
    def __init__(self) -> None: ...

class GetMapGoal(ropewalk.Message):
    def __init__(self) -> None: ...

class GetMapResult(ropewalk.Message):
    map: OccupancyGrid
    def __init__(self, *, map: OccupancyGrid = ...) -> None: ...

GetPlan: ropewalk.ServiceType

class GridCells(ropewalk.Message):
    header: std_msgs.Header
    cell_width: float
    cell_height: float
    @property
    def cells(self) -> np.ndarray: ...
    @cells.setter
    def cells(self, value: ArrayLike | Sequence[geometry_msgs.Point] | ropewalk.Sized) -> None: ...
    def __init__(self, *, header: std_msgs.Header = ..., cell_width: float = ..., cell_height: float = ..., cells: ArrayLike | Sequence[geometry_msgs.Point] | ropewalk.Sized = ...) -> None: ...

LoadMap: ropewalk.ServiceType

class MapMetaData(ropewalk.Message):
    map_load_time: ropewalk.Time
    resolution: float
    width: int
    height: int
    origin: geometry_msgs.Pose
    def __init__(self, *, map_load_time: ropewalk.Time = ..., resolution: float = ..., width: int = ..., height: int = ..., origin: geometry_msgs.Pose = ...) -> None: ...

class OccupancyGrid(ropewalk.Message):
    header: std_msgs.Header
    info: MapMetaData
    @property
    def data(self) -> np.ndarray: ...
    @data.setter
    def data(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, header: std_msgs.Header = ..., info: MapMetaData = ..., data: ArrayLike | ropewalk.Sized = ...) -> None: ...

class Odometry(ropewalk.Message):
    header: std_msgs.Header
    child_frame_id: str
    pose: geometry_msgs.PoseWithCovariance
    twist: geometry_msgs.TwistWithCovariance
    def __init__(self, *, header: std_msgs.Header = ..., child_frame_id: str = ..., pose: geometry_msgs.PoseWithCovariance = ..., twist: geometry_msgs.TwistWithCovariance = ...) -> None: ...

class Path(ropewalk.Message):
    header: std_msgs.Header
    poses: list[geometry_msgs.PoseStamped]
    def __init__(self, *, header: std_msgs.Header = ..., poses: list[geometry_msgs.PoseStamped] = ...) -> None: ...

SetMap: ropewalk.ServiceType
