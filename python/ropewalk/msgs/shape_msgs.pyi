# Made by `ropewalk gen python`; do not edit.
import numpy as np
import ropewalk
from collections.abc import Sequence
from numpy.typing import ArrayLike
from . import geometry_msgs

class Mesh(ropewalk.Message):
    @property
    def triangles(self) -> np.ndarray: ...
    @triangles.setter
    def triangles(self, value: ArrayLike | Sequence[MeshTriangle] | ropewalk.Sized) -> None: ...
    @property
    def vertices(self) -> np.ndarray: ...
    @vertices.setter
    def vertices(self, value: ArrayLike | Sequence[geometry_msgs.Point] | ropewalk.Sized) -> None: ...
    def __init__(self, *, triangles: ArrayLike | Sequence[MeshTriangle] | ropewalk.Sized = ..., vertices: ArrayLike | Sequence[geometry_msgs.Point] | ropewalk.Sized = ...) -> None: ...

class MeshTriangle(ropewalk.Message):
    @property
    def vertex_indices(self) -> np.ndarray: ...
    @vertex_indices.setter
    def vertex_indices(self, value: ArrayLike) -> None: ...
    def __init__(self, *, vertex_indices: ArrayLike = ...) -> None: ...

class Plane(ropewalk.Message):
    @property
    def coef(self) -> np.ndarray: ...
    @coef.setter
    def coef(self, value: ArrayLike) -> None: ...
    def __init__(self, *, coef: ArrayLike = ...) -> None: ...

class SolidPrimitive(ropewalk.Message):
    BOX: int
    SPHERE: int
    CYLINDER: int
    CONE: int
    BOX_X: int
    BOX_Y: int
    BOX_Z: int
    SPHERE_RADIUS: int
    CYLINDER_HEIGHT: int
    CYLINDER_RADIUS: int
    CONE_HEIGHT: int
    CONE_RADIUS: int
    type: int
    @property
    def dimensions(self) -> np.ndarray: ...
    @dimensions.setter
    def dimensions(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, type: int = ..., dimensions: ArrayLike | ropewalk.Sized = ...) -> None: ...
