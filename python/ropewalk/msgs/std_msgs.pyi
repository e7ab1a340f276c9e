# Made by `ropewalk gen python`; do not edit.
import numpy as np
import ropewalk
from collections.abc import Sequence
from numpy.typing import ArrayLike

class Bool(ropewalk.Message):
    data: bool
    def __init__(self, *, data: bool = ...) -> None: ...

class Byte(ropewalk.Message):
    data: int
    def __init__(self, *, data: int = ...) -> None: ...

class ByteMultiArray(ropewalk.Message):
    layout: MultiArrayLayout
    @property
    def data(self) -> np.ndarray: ...
    @data.setter
    def data(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, layout: MultiArrayLayout = ..., data: ArrayLike | ropewalk.Sized = ...) -> None: ...

class Char(ropewalk.Message):
    data: int
    def __init__(self, *, data: int = ...) -> None: ...

class ColorRGBA(ropewalk.Message):
    r: float
    g: float
    b: float
    a: float
    def __init__(self, *, r: float = ..., g: float = ..., b: float = ..., a: float = ...) -> None: ...

class Duration(ropewalk.Message):
    data: ropewalk.Duration
    def __init__(self, *, data: ropewalk.Duration = ...) -> None: ...

class Empty(ropewalk.Message):
    def __init__(self) -> None: ...

class Float32(ropewalk.Message):
    data: float
    def __init__(self, *, data: float = ...) -> None: ...

class Float32MultiArray(ropewalk.Message):
    layout: MultiArrayLayout
    @property
    def data(self) -> np.ndarray: ...
    @data.setter
    def data(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, layout: MultiArrayLayout = ..., data: ArrayLike | ropewalk.Sized = ...) -> None: ...

class Float64(ropewalk.Message):
    data: float
    def __init__(self, *, data: float = ...) -> None: ...

class Float64MultiArray(ropewalk.Message):
    layout: MultiArrayLayout
    @property
    def data(self) -> np.ndarray: ...
    @data.setter
    def data(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, layout: MultiArrayLayout = ..., data: ArrayLike | ropewalk.Sized = ...) -> None: ...

class Header(ropewalk.Message):
    seq: int
    stamp: ropewalk.Time
    frame_id: str
    def __init__(self, *, seq: int = ..., stamp: ropewalk.Time = ..., frame_id: str = ...) -> None: ...

class Int16(ropewalk.Message):
    data: int
    def __init__(self, *, data: int = ...) -> None: ...

class Int16MultiArray(ropewalk.Message):
    layout: MultiArrayLayout
    @property
    def data(self) -> np.ndarray: ...
    @data.setter
    def data(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, layout: MultiArrayLayout = ..., data: ArrayLike | ropewalk.Sized = ...) -> None: ...

class Int32(ropewalk.Message):
    data: int
    def __init__(self, *, data: int = ...) -> None: ...

class Int32MultiArray(ropewalk.Message):
    layout: MultiArrayLayout
    @property
    def data(self) -> np.ndarray: ...
    @data.setter
    def data(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, layout: MultiArrayLayout = ..., data: ArrayLike | ropewalk.Sized = ...) -> None: ...

class Int64(ropewalk.Message):
    data: int
    def __init__(self, *, data: int = ...) -> None: ...

class Int64MultiArray(ropewalk.Message):
    layout: MultiArrayLayout
    @property
    def data(self) -> np.ndarray: ...
    @data.setter
    def data(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, layout: MultiArrayLayout = ..., data: ArrayLike | ropewalk.Sized = ...) -> None: ...

class Int8(ropewalk.Message):
    data: int
    def __init__(self, *, data: int = ...) -> None: ...

class Int8MultiArray(ropewalk.Message):
    layout: MultiArrayLayout
    @property
    def data(self) -> np.ndarray: ...
    @data.setter
    def data(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, layout: MultiArrayLayout = ..., data: ArrayLike | ropewalk.Sized = ...) -> None: ...

class MultiArrayDimension(ropewalk.Message):
    label: str
    size: int
    stride: int
    def __init__(self, *, label: str = ..., size: int = ..., stride: int = ...) -> None: ...

class MultiArrayLayout(ropewalk.Message):
    dim: list[MultiArrayDimension]
    data_offset: int
    def __init__(self, *, dim: list[MultiArrayDimension] = ..., data_offset: int = ...) -> None: ...

class String(ropewalk.Message):
    data: str
    def __init__(self, *, data: str = ...) -> None: ...

class Time(ropewalk.Message):
    data: ropewalk.Time
    def __init__(self, *, data: ropewalk.Time = ...) -> None: ...

class UInt16(ropewalk.Message):
    data: int
    def __init__(self, *, data: int = ...) -> None: ...

class UInt16MultiArray(ropewalk.Message):
    layout: MultiArrayLayout
    @property
    def data(self) -> np.ndarray: ...
    @data.setter
    def data(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, layout: MultiArrayLayout = ..., data: ArrayLike | ropewalk.Sized = ...) -> None: ...

class UInt32(ropewalk.Message):
    data: int
    def __init__(self, *, data: int = ...) -> None: ...

class UInt32MultiArray(ropewalk.Message):
    layout: MultiArrayLayout
    @property
    def data(self) -> np.ndarray: ...
    @data.setter
    def data(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, layout: MultiArrayLayout = ..., data: ArrayLike | ropewalk.Sized = ...) -> None: ...

class UInt64(ropewalk.Message):
    data: int
    def __init__(self, *, data: int = ...) -> None: ...

class UInt64MultiArray(ropewalk.Message):
    layout: MultiArrayLayout
    @property
    def data(self) -> np.ndarray: ...
    @data.setter
    def data(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, layout: MultiArrayLayout = ..., data: ArrayLike | ropewalk.Sized = ...) -> None: ...

class UInt8(ropewalk.Message):
    data: int
    def __init__(self, *, data: int = ...) -> None: ...

class UInt8MultiArray(ropewalk.Message):
    layout: MultiArrayLayout
    @property
    def data(self) -> np.ndarray: ...
    @data.setter
    def data(self, value: ArrayLike | ropewalk.Sized) -> None: ...
    def __init__(self, *, layout: MultiArrayLayout = ..., data: ArrayLike | ropewalk.Sized = ...) -> None: ...
