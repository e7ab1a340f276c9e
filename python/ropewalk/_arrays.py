"""Turns the values that users set into exactly the elements of a field, or refuses them.

Fields of structures go by name and never by position. Integers are exact; real numbers are rounded to the nearest one
of the field's type, but never to infinity. Every refusal states what was given and what is wanted
(docs/decisions/203-python-messages-as-numpy-views.md).
"""

from __future__ import annotations

import operator
import struct
from array import array as typed
from collections.abc import Mapping, Set
from typing import Any, NamedTuple

import numpy as np


class Time(NamedTuple):
    """ROS 1 `time`, since 1970."""

    sec: int = 0
    nsec: int = 0


class Duration(NamedTuple):
    """ROS 1 `duration`."""

    sec: int = 0
    nsec: int = 0


class Sized(NamedTuple):
    """An array of `count` elements to come, which `allocate` places in a block."""

    count: int


class Mismatch(ValueError):
    """A value does not match its field."""


#: Formats of bytes-like objects that only say "bytes".
_RAW = ("B", "c")
#: Maximum number of a structure's field names that an error lists.
_NAMES = 12


class Numbers:
    """Elements that are numbers or bools."""

    padded = False

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype
        self.text = dtype.name
        self._wanted = dtype.kind
        if self._wanted == "b":
            self._low, self._high = 0, 1
        elif self._wanted != "f":
            self._low, self._high = (int(x) for x in (np.iinfo(dtype).min, np.iinfo(dtype).max))

    def of_array(self, given: np.ndarray) -> np.ndarray:
        """An array of any shape with the same numbers."""
        have, kind = given.dtype, given.dtype.kind
        if have == self.dtype:
            return given
        if kind == "O":
            return self.of_list(given.ravel().tolist()).reshape(given.shape)
        if kind not in "biuf" or (kind == "f" and self._wanted != "f"):
            raise Mismatch(f"{words(have)} cannot be converted to {self.text}")
        if self._wanted == "f":
            return self._rounded(given)
        if given.size and not np.can_cast(have, self.dtype, "safe"):
            for number in (int(given.min()), int(given.max())):
                if not self._low <= number <= self._high:
                    raise Mismatch(f"{number} is outside {self._low} to {self._high}")
        return given.astype(self.dtype)

    def of_list(self, values: list[Any]) -> np.ndarray:
        """An array of the numbers in a list."""
        if not values:
            return np.zeros(0, self.dtype)
        kinds = set(map(type, values))
        _refuse_others(values, [kind for kind in kinds if not self._takes(kind)])
        if np.bool_ in kinds:
            values = [bool(v) if type(v) is np.bool_ else v for v in values]
        if np.longdouble in kinds:
            return self._rounded(np.array(values, np.longdouble))
        code = {"b": "B", "f": "d"}.get(self._wanted, self.dtype.char.replace("l", "q").replace("L", "Q"))
        try:
            numbers = np.frombuffer(typed(code, values), code)
        except OverflowError:
            if self._wanted == "f":
                raise Mismatch(f"an integer is too large for {self.text}") from None
            self._refuse_outside([operator.index(v) for v in values])
            raise
        if self._wanted == "b":
            self._refuse_outside(numbers.tolist())
        return self._rounded(numbers) if self._wanted == "f" else numbers.astype(self.dtype, copy=False)

    def _takes(self, kind: type) -> bool:
        if issubclass(kind, np.generic):
            real = self._wanted == "f" and issubclass(kind, np.floating)
            return real or issubclass(kind, (np.bool_, np.integer)) and not issubclass(kind, np.timedelta64)
        if issubclass(kind, int):
            return True
        if issubclass(kind, (np.ndarray, complex)) or self._wanted == "b":
            return False
        return hasattr(kind, "__float__" if self._wanted == "f" else "__index__")

    def _refuse_outside(self, numbers: list[int]) -> None:
        for i, number in enumerate(numbers):
            if not self._low <= number <= self._high:
                raise Mismatch(f"element {i} is {number}, outside {self._low} to {self._high}")

    def _rounded(self, given: np.ndarray) -> np.ndarray:
        """Rounds like `struct`: through float64, and nothing finite becomes infinite."""
        if np.can_cast(given.dtype, self.dtype, "safe") and given.dtype.kind == "f":
            return given.astype(self.dtype)
        with np.errstate(all="ignore"):
            rounded = given.astype(np.float64).astype(self.dtype)
        lost = np.isinf(rounded) & np.isfinite(given)
        if lost.any():
            raise Mismatch(f"{given[lost][0]} is too large for {self.text}")
        return rounded


class _Structures:
    """Elements with fields, which are matched by name."""

    dtype: np.dtype
    text: str
    padded: bool
    #: Name, column, and number of elements if it is an array.
    parts: list[tuple[str, Any, int | None]]

    def of_array(self, given: np.ndarray) -> np.ndarray:
        """An array of any shape with the same content."""
        have = given.dtype
        if have == self.dtype and not self.padded:
            return given
        if have.kind == "O":
            return self.of_list(given.ravel().tolist()).reshape(given.shape)
        if have.names is None:
            raise Mismatch(f"{words(have)} has no fields with names")
        if set(have.names) != set(self.dtype.names or ()):
            raise Mismatch("the field names differ")
        # Padding stays zero.
        made = np.zeros(given.shape, self.dtype)
        for name, part, count in self.parts:
            values = given[name]
            shape = given.shape if count is None else (*given.shape, count)
            if values.shape != shape:
                raise Mismatch(f"{name}: each has the shape {values.shape[given.ndim :]} instead of {shape[given.ndim :]}")
            made[name] = _within(name, part.of_array, values)
        return made

    def of_list(self, values: list[Any]) -> np.ndarray:
        raise NotImplementedError


class Pairs(_Structures):
    """Elements that are times or durations."""

    padded = False

    def __init__(self, word: np.dtype, kind: Any) -> None:
        self.kind = kind
        self.dtype = np.dtype([("sec", word), ("nsec", word)])
        self.text = words(self.dtype)
        self._numbers = Numbers(word)
        self.parts = [("sec", self._numbers, None), ("nsec", self._numbers, None)]

    def of_list(self, values: list[Any]) -> np.ndarray:
        pairs = [_within(f"element {i}", _pair, value, self.kind) for i, value in enumerate(values)]
        made = np.zeros(len(values), self.dtype)
        for i, name in enumerate(("sec", "nsec")):
            made[name] = _within(name, self._numbers.of_list, [p[i] for p in pairs])
        return made


class Records(_Structures):
    """Elements that are messages of fixed size. `members` are attribute, name, column and count of each field."""

    def __init__(self, name: str, kind: type, dtype: np.dtype, members: list[tuple[str, str, Any, int | None]]) -> None:
        self.kind = kind
        self.dtype = dtype
        self.text = f"{name} {words(dtype)}"
        self.padded = _content(dtype) != dtype.itemsize
        self.parts = [(field, column, count) for _, field, column, count in members]
        self._attributes = [
            (attribute, field, column.of_list if count is None else Field(column, count, None).each)
            for attribute, field, column, count in members
        ]

    def of_list(self, values: list[Any]) -> np.ndarray:
        kinds = set(map(type, values))
        _refuse_others(values, [k for k in kinds if k is not self.kind and not issubclass(k, np.void)])
        made = np.zeros(len(values), self.dtype)
        if any(k is not self.kind for k in kinds):
            for i, value in enumerate(values):
                one = self.of_array(np.asarray(value).reshape(1)) if isinstance(value, np.void) else self.of_list([value])
                made[i] = one[0]
            return made
        for attribute, field, column in self._attributes:
            made[field] = _within(attribute, column, [getattr(value, attribute) for value in values])
        return made


class Field:
    """An array field. Called with a user's value, it returns a one-dimensional array of its elements."""

    def __init__(self, column: Any, count: int | None, bound: int | None) -> None:
        self.column, self.count, self.bound = column, count, bound
        n = str(count) if count is not None else "n" if bound is None else f"at most {bound}"
        self._wanted = f"an array of {column.text}, shape ({n},)"

    def __call__(self, value: Any) -> np.ndarray:
        try:
            made = self._exact(value)
            n = len(made)
            if (self.count is not None and n != self.count) or (self.bound is not None and n > self.bound):
                raise Mismatch(f"it has {n} elements")
            return made
        except (TypeError, ValueError, OverflowError, BufferError) as e:
            given = _given(value)
            cause = None if isinstance(e, Mismatch) else e
            raise Mismatch(f"given {given}, wanted {self._wanted}: {e}") from cause

    def each(self, values: list[Any]) -> np.ndarray:
        """One array per value, in a second dimension."""
        return np.array([self(value) for value in values], self.column.dtype)

    def _exact(self, value: Any) -> np.ndarray:
        column = self.column
        if type(value) is np.ndarray and value.ndim == 1 and value.dtype == column.dtype and not column.padded:
            return value
        if isinstance(value, (list, tuple)) and not isinstance(value, (Time, Duration, Sized)):
            return column.of_list(list(value))
        array, raw = _array(value)
        if array is None:
            return column.of_list(items(value))
        if array.ndim != 1:
            flat = ": to use the elements one after another, pass .reshape(-1)" if array.ndim else ""
            raise Mismatch(f"it has {array.ndim} dimensions{flat}")
        if raw and column.dtype.itemsize != 1:
            raise Mismatch("bytes have no type: give them one with numpy.frombuffer(value, dtype)")
        return column.of_array(array) if array.size else np.zeros(0, column.dtype)


def scalar(value: Any, word: str) -> Any:
    """A number of the kind that `struct` calls `word`, or a bool, as Python's own type."""
    why = ""
    try:
        if isinstance(value, np.ndarray):
            if value.ndim or isinstance(value, np.ma.MaskedArray):
                raise Mismatch("an array is not a number")
            value = value[()]
        numbers = _SCALARS[word]
        if numbers._takes(type(value)):
            exact = numbers.of_list([value])[0].item()
            # The exact number: float32 values are rounded when they are written.
            return float(value) if word in "fd" else exact
    except (TypeError, ValueError, OverflowError) as e:
        why = f": {e}".replace("element 0 is ", "")
    raise Mismatch(f"given {_shown(value)}, wanted {_SCALARS[word].text}{why}")


def pair(value: Any, kind: Any) -> tuple[Any, Any]:
    """A time or duration as seconds and nanoseconds."""
    try:
        return _pair(value, kind)
    except Mismatch as e:
        raise Mismatch(f"given {_shown(value)}, wanted a {kind.__name__}: {e}") from None


def _pair(value: Any, kind: Any) -> tuple[Any, Any]:
    if isinstance(value, kind) or (type(value) in (tuple, list) and len(value) == 2):
        return value[0], value[1]
    if isinstance(value, np.void) and set(value.dtype.names or ()) == {"sec", "nsec"}:
        return value["sec"], value["nsec"]
    # The classes of rospy.
    if type(value).__name__ == kind.__name__ and hasattr(value, "secs") and hasattr(value, "nsecs"):
        return value.secs, value.nsecs
    raise Mismatch(f"{_a(type(value))} is not a {kind.__name__}")


def listed(value: Any, wanted: str) -> list[Any]:
    """The elements of a list; `wanted` describes them for errors."""
    try:
        return items(value)
    except Mismatch as e:
        raise Mismatch(f"given {_given(value)}, wanted {wanted}: {e}") from None


def items(value: Any) -> list[Any]:
    """The elements of an ordered, finite collection."""
    if isinstance(value, (str, bytes, bytearray, memoryview, Mapping, Set, Time, Duration, Sized)):
        raise Mismatch("it is not a list")
    if isinstance(value, np.ndarray) and value.ndim != 1:
        raise Mismatch(f"it has {value.ndim} dimensions")
    if not (hasattr(type(value), "__len__") and hasattr(type(value), "__iter__")):
        raise Mismatch("it is not a list")
    return list(value)


def _array(value: Any) -> tuple[np.ndarray | None, bool]:
    """Returns the value if it is an array, or the array inside it, and whether its elements are known only as bytes."""
    if isinstance(value, np.ma.MaskedArray):
        mask = np.ma.getmask(value)
        # A structure's mask has a byte for each of its fields.
        if mask is not np.ma.nomask and b"\x01" in mask.tobytes():
            raise Mismatch("masked elements have no value: give value.filled(...)")
        return np.asarray(np.ma.getdata(value)), False
    if isinstance(value, np.ndarray):
        return np.asarray(value), False
    if isinstance(value, str):
        raise Mismatch("text is not an array")
    if isinstance(value, np.generic) and not isinstance(value, bytes):
        return np.asarray(value), False
    try:
        view = memoryview(value)
    except TypeError:
        of_numpy = any(hasattr(type(value), name) for name in ("__array__", "__array_interface__", "__array_struct__"))
        return (np.asarray(value) if of_numpy else None), False
    raw = view.format in _RAW and not isinstance(value, typed)
    array = np.asarray(view)
    return (array.view(np.uint8) if view.format == "c" else array), raw


def _within(name: str, f: Any, *values: Any) -> Any:
    try:
        return f(*values)
    except Mismatch as e:
        raise Mismatch(f"{name}: {e}") from None


def _refuse_others(values: list[Any], kinds: list[type]) -> None:
    for i, value in enumerate(values if kinds else []):
        if type(value) in kinds:
            raise Mismatch(f"element {i} is {_a(type(value))}")


def words(dtype: np.dtype) -> str:
    """Describes a type of elements, for errors."""
    if dtype.names is not None:
        names = [f"{name}: {words(dtype[name])}" for name in dtype.names[:_NAMES]]
        return f"{{{', '.join(names)}{', …' if len(dtype.names) > _NAMES else ''}}}"
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return f"{words(base)}[{', '.join(map(str, shape))}]"
    return dtype.name if dtype.isnative else f"{dtype.name} of the other byte order"


def _content(dtype: np.dtype) -> int:
    """Number of bytes without padding."""
    if dtype.names is not None:
        return sum(_content(dtype[name]) for name in dtype.names)
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return int(np.prod(shape)) * _content(base)
    return dtype.itemsize


def _given(value: Any) -> str:
    if isinstance(value, np.ndarray):
        masked = "a masked array" if isinstance(value, np.ma.MaskedArray) else "an array"
        return f"{masked} of {words(value.dtype)}, shape {value.shape}"
    if isinstance(value, memoryview):
        return f"a memoryview of {value.format!r}, shape {value.shape}"
    if isinstance(value, np.generic):
        return f"a number of {words(value.dtype)}, shape ()"
    if hasattr(type(value), "__len__"):
        try:
            len(value)
        except Exception:
            return _a(type(value))
        kinds = sorted({k.__name__ for k in map(type, value)}) if type(value) in (list, tuple) else []
        return f"{_a(type(value))} of length {len(value)}{' with elements of ' if kinds else ''}{', '.join(kinds[:_NAMES])}"
    return _a(type(value))


def _shown(value: Any) -> str:
    """Describes a value by its text, if that is short and can be created, and its type."""
    try:
        text = repr(value)
    except Exception:
        text = ""
    return f"{text} ({type(value).__name__})" if 0 < len(text) <= 60 else _a(type(value))


def _a(kind: type) -> str:
    return f"{'an' if kind.__name__[:1].lower() in 'aeio' else 'a'} {kind.__name__}"


_SCALARS = {word: Numbers(np.dtype(word)) for word in "?bBhHiIqQfd"}
