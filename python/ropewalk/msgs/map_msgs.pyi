# Made by `ropewalk gen python`; do not edit.
import numpy as np
import ropewalk
from collections.abc import Sequence
from numpy.typing import ArrayLike
from . import nav_msgs
from . import sensor_msgs
from . import std_msgs

GetMapROI: ropewalk.ServiceType

GetPointMap: ropewalk.ServiceType

GetPointMapROI: ropewalk.ServiceType

class OccupancyGridUpdate(ropewalk.Message):
    header: std_msgs.Header
    x: int
    y: int
    width: int
    height: int
    @property
    def data(self) -> np.ndarray: ...
    @data.setter
    def data(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, header: std_msgs.Header = ..., x: int = ..., y: int = ..., width: int = ..., height: int = ..., data: ArrayLike | ropewalk.Sized = ...) -> None: ...

class PointCloud2Update(ropewalk.Message):
    ADD: int
    DELETE: int
    header: std_msgs.Header
    type: int
    points: sensor_msgs.PointCloud2
    def __init__(self, *, header: std_msgs.Header = ..., type: int = ..., points: sensor_msgs.PointCloud2 = ...) -> None: ...

class ProjectedMap(ropewalk.Message):
    map: nav_msgs.OccupancyGrid
    min_z: float
    max_z: float
    def __init__(self, *, map: nav_msgs.OccupancyGrid = ..., min_z: float = ..., max_z: float = ...) -> None: ...

class ProjectedMapInfo(ropewalk.Message):
    frame_id: str
    x: float
    y: float
    width: float
    height: float
    min_z: float
    max_z: float
    def __init__(self, *, frame_id: str = ..., x: float = ..., y: float = ..., width: float = ..., height: float = ..., min_z: float = ..., max_z: float = ...) -> None: ...

ProjectedMapsInfo: ropewalk.ServiceType

SaveMap: ropewalk.ServiceType

SetMapProjections: ropewalk.ServiceType
