# Made by `ropewalk gen python`; do not edit.
import numpy as np
import ropewalk
from collections.abc import Sequence
from numpy.typing import ArrayLike
from . import sensor_msgs
from . import std_msgs

class ModelCoefficients(ropewalk.Message):
    header: std_msgs.Header
    @property
    def values(self) -> np.ndarray: ...
    @values.setter
    def values(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, header: std_msgs.Header = ..., values: ArrayLike | ropewalk.Sized = ...) -> None: ...

class PointIndices(ropewalk.Message):
    header: std_msgs.Header
    @property
    def indices(self) -> np.ndarray: ...
    @indices.setter
    def indices(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, header: std_msgs.Header = ..., indices: ArrayLike | ropewalk.Sized = ...) -> None: ...

class PolygonMesh(ropewalk.Message):
    header: std_msgs.Header
    cloud: sensor_msgs.PointCloud2
    polygons: list[Vertices]
    def __init__(self, *, header: std_msgs.Header = ..., cloud: sensor_msgs.PointCloud2 = ..., polygons: list[Vertices] = ...) -> None: ...

UpdateFilename: ropewalk.ServiceType

class Vertices(ropewalk.Message):
    @property
    def vertices(self) -> np.ndarray: ...
    @vertices.setter
    def vertices(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, vertices: ArrayLike | ropewalk.Sized = ...) -> None: ...
