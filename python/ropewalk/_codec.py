"""Messages as Python objects: docs/wire/control-part.md in Python.

A codec is made once for each type, from its description. Arrays of elements of fixed size are numpy arrays, of
structured types where the elements are messages; long ones are data parts, and are read where they lie.
"""

from __future__ import annotations

import json
import keyword
import struct
from typing import Any, Callable, NamedTuple

import numpy as np

from ._errors import ContentError

LIFTED = 1 << 31
MAX_COUNT = LIFTED - 1
MAX_PARTS = 32
#: Shorter arrays stay in the control part, since lifting them costs more than copying.
THRESHOLD = 256
#: Elements without content, which no length bounds.
MAX_EMPTY = 4096


class Time(NamedTuple):
    """ROS 1 `time`: since 1970."""

    sec: int = 0
    nsec: int = 0


class Duration(NamedTuple):
    """ROS 1 `duration`."""

    sec: int = 0
    nsec: int = 0


class Sized(NamedTuple):
    """An array to come: so many elements, which `allocate` gives a place."""

    count: int


class Message:
    """A message: its fields are attributes, set by keyword at first."""

    __slots__ = ("_native", "_loan", "__weakref__")
    _codec: "Codec"

    def __init__(self, **fields: Any) -> None:
        self._loan = None
        self._native = None
        for name, default in self._codec.defaults:
            setattr(self, name, fields.pop(name) if name in fields else default())
        if fields:
            raise ContentError(f"{self._codec.name} has no field {', '.join(sorted(fields))}")

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name, _ in self._codec.defaults)
        return f"{type(self).__name__}({fields})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(getattr(self, name), getattr(other, name)) for name, _ in self._codec.defaults)

    __hash__ = None  # type: ignore[assignment]

    @property
    def stamp_ns(self) -> int:
        """When its source published it, in nanoseconds since 1970; 0 of a message that was not taken."""
        return self._native.info()[0] if self._native is not None else 0

    @property
    def sequence(self) -> int:
        """Its publisher's count, from 1 up; 0 of a message that was not taken."""
        return self._native.info()[1] if self._native is not None else 0

    @property
    def lost(self) -> int:
        """How many were lost between the one taken before and this one."""
        return self._native.info()[3] if self._native is not None else 0


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(np.asarray(a), np.asarray(b))
    return bool(a == b)


_WORDS = {
    "bool": "?", "int8": "b", "uint8": "B", "char": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
    "int64": "q", "uint64": "Q", "float32": "f", "float64": "d", "time": "II", "duration": "ii",
}  # fmt: skip
_DTYPES = {
    "?": "?", "b": "i1", "B": "u1", "h": "<i2", "H": "<u2", "i": "<i4", "I": "<u4", "q": "<i8", "Q": "<u8",
    "f": "<f4", "d": "<f8",
}  # fmt: skip
_PAIRS = {"time": Time, "duration": Duration}


def _word(kind: str, ros2: bool) -> str:
    if kind == "byte":
        return "B" if ros2 else "b"
    return _WORDS[kind]


class _Reader:
    __slots__ = ("control", "at", "parts", "next", "empties", "field")

    def __init__(self, control: bytes, parts: list[Any]) -> None:
        self.control, self.at, self.parts, self.next, self.empties = control, 0, parts, 0, 0
        self.field = "message"

    def take(self, n: int) -> int:
        """Where the next `n` bytes begin."""
        at = self.at
        if n > len(self.control) - at:
            raise ContentError(f"{self.field}: the message ends at byte {len(self.control)}")
        self.at = at + n
        return at

    def word(self) -> int:
        return int.from_bytes(self.control[self.take(4) : self.at], "little")

    def count(self, bound: int | None) -> int:
        n = self.word()
        self.check(n, bound)
        return n

    def check(self, n: int, bound: int | None) -> None:
        if n > MAX_COUNT or (bound is not None and n > bound):
            raise ContentError(f"{self.field}: {n} elements, at most {bound if bound is not None else MAX_COUNT}")


class _Lift(NamedTuple):
    """A data part to be: what to copy into it, and where its view belongs."""

    dtype: np.dtype
    count: int
    source: np.ndarray | None
    owner: Message
    field: str


class _Writer:
    __slots__ = ("control", "lifts", "threshold")

    def __init__(self, threshold: int) -> None:
        self.control, self.threshold = bytearray(), threshold
        self.lifts: list[_Lift] = []

    def count(self, name: str, n: int, bound: int | None, flag: int = 0) -> None:
        limit = MAX_COUNT if bound is None else bound
        if n > limit:
            raise ContentError(f"{name}: {n} elements, at most {limit}")
        self.control += (n | flag).to_bytes(4, "little")


_Read = Callable[[_Reader], Any]
_Write = Callable[[_Writer, Any, Message], None]


class Codec:
    """Reads and writes the messages of one type; `Message` is their class."""

    def __init__(self, description: dict[str, Any]) -> None:
        self.name: str = description["name"]
        self.ros2: bool = description["ros2"]
        self.layout = description["layout"]
        self.description = description
        #: The type itself, of codecs that were asked for.
        self.type: Any = None
        self.defaults: list[tuple[str, Callable[[], Any]]] = []
        self.readers: list[tuple[str, _Read]] = []
        self.writers: list[tuple[str, _Write]] = []
        names = [_attribute(f["name"]) for f in description["fields"]]
        constants = {n: _constant(kind, text, self.ros2) for n, kind, text in description["constants"]}
        body = {"__slots__": tuple(names), "_codec": self, "__doc__": self.name}
        self.Message = type(self.name.split("/")[-1], (Message,), {**constants, **body})
        self._run: list[tuple[str, str]] = []
        for name, field in zip(names, description["fields"]):
            self._add(name, field)
        self._end_run()

    def decode(self, control: bytes, parts: list[Any], native: Any = None) -> Message:
        """The message that a control part and data parts are; `parts` are what numpy makes arrays of in place."""
        reader = _Reader(control, parts)
        message = self._read(reader)
        if reader.at != len(control):
            raise ContentError(f"{len(control) - reader.at} bytes follow the last field")
        if reader.next != len(parts):
            raise ContentError(f"{len(parts)} data parts, of which its fields have {reader.next}")
        message._native = native
        return message

    def encode(self, message: Message, threshold: int = THRESHOLD) -> _Writer:
        """Control part and data parts of a message."""
        if type(message) is not self.Message:
            raise ContentError(f"expected a {self.name}, not {type(message).__name__}: make one with message()")
        writer = _Writer(threshold)
        self._write(writer, message)
        return writer

    def packed_dtype(self) -> np.dtype:
        """Elements in the control part: without padding."""
        return np.dtype([self._element(f, packed=True) for f in self._content()])

    def dtype(self) -> np.dtype:
        """Elements in data parts: as a C structure."""
        fields = [self._element(f, packed=False) for f in self._content()]
        plain = [(n, np.dtype((d, s[0]) if s else d)) for n, d, *s in fields]
        offsets, at = [], 0
        for (_, dtype), field in zip(plain, self._content()):
            align = _alignment(field, self.ros2)
            at = -(-at // align) * align
            offsets.append(at)
            at += dtype.itemsize
        return np.dtype({
            "names": [n for n, _ in plain], "formats": [d for _, d in plain], "offsets": offsets,
            "itemsize": self.layout[0],
        })  # fmt: skip

    def _content(self) -> list[dict[str, Any]]:
        return [f for f in self.description["fields"] if not _is_nothing(f)]

    def _element(self, f: dict[str, Any], packed: bool) -> tuple[Any, ...]:
        if f["kind"] == "message":
            inner = codec(f["type"])
            dtype = inner.packed_dtype() if packed else inner.dtype()
        else:
            dtype = _primitive(f["kind"], self.ros2)
        return (f["name"], dtype, (f["n"],)) if f["arity"] == "fixed" else (f["name"], dtype)

    # Reading and writing of whole messages

    def _read(self, reader: _Reader) -> Message:
        message = self.Message.__new__(self.Message)
        message._loan = message._native = None
        for name, read in self.readers:
            reader.field = name
            if type(name) is str:
                setattr(message, name, read(reader))
            else:
                for n, value in zip(name, read(reader)):
                    setattr(message, n, value)
        return message

    def _write(self, writer: _Writer, message: Message) -> None:
        for name, write in self.writers:
            try:
                write(writer, getattr(message, name) if type(name) is str else message, message)
            except ContentError:
                raise
            except (struct.error, TypeError, ValueError, OverflowError, AttributeError) as e:
                raise ContentError(f"{self.name}, {name}: {e}") from e

    # Fields

    def _add(self, name: str, f: dict[str, Any]) -> None:
        kind, arity = f["kind"], f["arity"]
        if arity == "one" and kind not in ("string", "wstring", "message", "time", "duration"):
            zero = False if kind == "bool" else 0.0 if kind.startswith("float") else 0
            default = _constant(kind, f["default"], self.ros2) if f["default"] is not None else zero
            self.defaults.append((name, lambda: default))
            self._run.append((name, _word(kind, self.ros2)))
            return
        self._end_run()
        read, write, default = self._one(f) if arity == "one" else self._array(name, f)
        self.readers.append((name, read))
        self.writers.append((name, write))
        self.defaults.append((name, default))

    def _end_run(self) -> None:
        """Neighbouring numbers are read and written at once."""
        if not self._run:
            return
        names = tuple(n for n, _ in self._run)
        words = struct.Struct("<" + "".join(w for _, w in self._run))
        self._run = []

        def read(reader: _Reader) -> tuple[Any, ...]:
            return words.unpack_from(reader.control, reader.take(words.size))

        def write(writer: _Writer, _: Any, message: Message) -> None:
            writer.control += words.pack(*[getattr(message, n) for n in names])

        self.readers.append((names, read))  # type: ignore[arg-type]
        self.writers.append((names, write))  # type: ignore[arg-type]

    def _one(self, f: dict[str, Any]) -> tuple[_Read, _Write, Callable[[], Any]]:
        kind = f["kind"]
        if kind == "message":
            inner = codec(f["type"])

            def write(writer: _Writer, value: Any, _: Message) -> None:
                if type(value) is not inner.Message:
                    raise TypeError(f"expected a {inner.name}, not {type(value).__name__}")
                inner._write(writer, value)

            return inner._read, write, inner.Message
        if kind in _PAIRS:
            words, pair = struct.Struct("<" + _WORDS[kind]), _PAIRS[kind]
            return (
                lambda r: pair(*words.unpack_from(r.control, r.take(8))),
                lambda w, value, _: w.control.extend(words.pack(*value)),
                pair,
            )
        if kind in ("string", "wstring"):
            unit, encoding, errors = (1, "utf-8", "surrogateescape") if kind == "string" else (2, "utf-16-le", "surrogatepass")
            bound = f["bound"]

            def read(reader: _Reader) -> str:
                n = reader.count(bound) * unit
                return str(reader.control[reader.take(n) : reader.at], encoding, errors)

            def write_text(writer: _Writer, value: Any, _: Message) -> None:
                data = value if isinstance(value, bytes) else value.encode(encoding, errors)
                writer.count(f["name"], len(data) // unit, bound)
                writer.control += data

            default = _constant(kind, f["default"], self.ros2) if f["default"] is not None else ""
            return read, write_text, lambda: default
        number = struct.Struct("<" + _word(kind, self.ros2))
        return (
            lambda r: number.unpack_from(r.control, r.take(number.size))[0],
            lambda w, value, _: w.control.extend(number.pack(value)),
            int,
        )

    def _array(self, name: str, f: dict[str, Any]) -> tuple[_Read, _Write, Callable[[], Any]]:
        if not _is_fixed(f):
            return self._list(name, f)
        if _is_nothing({**f, "arity": "one"}):
            return self._empties(name, f)
        if f["kind"] == "message":
            inner = codec(f["type"])
            natural, packed = inner.dtype(), inner.packed_dtype()
        else:
            natural = packed = _primitive(f["kind"], self.ros2)
        if f["arity"] == "fixed":
            return _fixed_array(f, packed)
        bound = f["n"]

        def read(reader: _Reader) -> np.ndarray:
            n = reader.word()
            lifted, n = n & LIFTED, n & MAX_COUNT
            reader.check(n, bound)
            if not lifted:
                at = reader.take(n * packed.itemsize)
                return np.frombuffer(reader.control, packed, n, at) if n else np.zeros(0, natural)
            if reader.next >= len(reader.parts):
                raise ContentError(f"{name}: its data part is missing")
            part = np.asarray(reader.parts[reader.next])
            reader.next += 1
            if part.nbytes != n * natural.itemsize:
                raise ContentError(f"{name}: {n} elements in a data part of {part.nbytes} bytes")
            return part.view(natural)

        def write(writer: _Writer, value: Any, message: Message) -> None:
            array = None if isinstance(value, Sized) else _elements(value, natural)
            n = value.count if array is None else len(array)
            if n > 0 and n * natural.itemsize >= writer.threshold and len(writer.lifts) < MAX_PARTS:
                writer.count(name, n, bound, LIFTED)
                writer.lifts.append(_Lift(natural, n, array, message, name))
                return
            if array is None:
                # Too short to be lifted: it gets memory of its own.
                array = np.zeros(n, natural)
                setattr(message, name, array)
            writer.count(name, n, bound)
            writer.control += (array if packed is natural else array.astype(packed)).tobytes()

        return read, write, lambda: np.zeros(0, natural)

    def _list(self, name: str, f: dict[str, Any]) -> tuple[_Read, _Write, Callable[[], Any]]:
        one_read, one_write, one_default = self._one(f)
        fixed = f["arity"] == "fixed"
        bound = f["n"]

        def read(reader: _Reader) -> list[Any]:
            n = bound if fixed else reader.count(bound)
            # Each element takes bytes, so that what is made is in proportion to what came.
            return [one_read(reader) for _ in range(n)]

        def write(writer: _Writer, value: Any, message: Message) -> None:
            if fixed and len(value) != bound:
                raise ContentError(f"{name}: {len(value)} elements instead of {bound}")
            if not fixed:
                writer.count(name, len(value), bound)
            for element in value:
                one_write(writer, element, message)

        return read, write, lambda: [one_default() for _ in range(bound)] if fixed else []

    def _empties(self, name: str, f: dict[str, Any]) -> tuple[_Read, _Write, Callable[[], Any]]:
        inner, fixed, bound = codec(f["type"]), f["arity"] == "fixed", f["n"]

        def read(reader: _Reader) -> list[Any]:
            n = bound if fixed else reader.count(bound)
            reader.empties += 0 if fixed else n
            if reader.empties > MAX_EMPTY:
                raise ContentError(f"{name}: more than {MAX_EMPTY} elements without content")
            return [inner.Message() for _ in range(n)]

        def write(writer: _Writer, value: Any, _: Message) -> None:
            if not fixed:
                writer.count(name, len(value), bound)

        return read, write, lambda: [inner.Message() for _ in range(bound)] if fixed else []


def _fixed_array(f: dict[str, Any], packed: np.dtype) -> tuple[_Read, _Write, Callable[[], Any]]:
    name, n = f["name"], f["n"]

    def read(reader: _Reader) -> np.ndarray:
        return np.frombuffer(reader.control, packed, n, reader.take(n * packed.itemsize))

    def write(writer: _Writer, value: Any, _: Message) -> None:
        array = _elements(value, packed)
        if len(array) != n:
            raise ContentError(f"{name}: {len(array)} elements instead of {n}")
        writer.control += array.tobytes()

    return read, write, lambda: np.zeros(n, packed)


def _elements(value: Any, dtype: np.dtype) -> np.ndarray:
    """One-dimensional, contiguous, of the type; of an array that is so already the same memory."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        value = np.frombuffer(value, np.uint8)
    array = np.asarray(value)
    if array.dtype != dtype:
        if array.size and dtype.names is None and not np.can_cast(array.dtype, dtype, "same_kind"):
            exact = array.astype(dtype)
            if array.dtype.kind not in "iub" or not np.array_equal(exact, array):
                raise TypeError(f"an array of {array.dtype} is none of {dtype}")
            array = exact
        elif array.size and array.dtype.kind in "iu" and dtype.kind in "iu" and not np.array_equal(array.astype(dtype), array):
            raise OverflowError(f"a number does not fit {dtype}")
        else:
            array = array.astype(dtype) if array.size else np.zeros(0, dtype)
    return np.ascontiguousarray(array).reshape(-1)


def _primitive(kind: str, ros2: bool) -> np.dtype:
    if kind in _PAIRS:
        word = _DTYPES[_WORDS[kind][0]]
        return np.dtype([("sec", word), ("nsec", word)])
    return np.dtype(_DTYPES[_word(kind, ros2)])


def _alignment(f: dict[str, Any], ros2: bool) -> int:
    if f["kind"] == "message":
        return int(f["type"]["layout"][1])
    return struct.calcsize("<" + _word(f["kind"], ros2)[0])


def _is_fixed(f: dict[str, Any]) -> bool:
    """Whether all elements have the same size."""
    if f["kind"] == "message":
        return f["type"]["layout"] is not None
    return f["kind"] not in ("string", "wstring")


def _is_nothing(f: dict[str, Any]) -> bool:
    empty = f["kind"] == "message" and f["type"]["layout"] is not None and f["type"]["layout"][0] == 0
    return (empty and f["arity"] != "variable") or (f["arity"] == "fixed" and f["n"] == 0)


def _attribute(name: str) -> str:
    """A field that is called as something of the class, or as a word of Python, gets an underscore."""
    return name + "_" if name in _TAKEN or keyword.iskeyword(name) else name


def _constant(kind: str, text: str, ros2: bool) -> Any:
    if kind in ("string", "wstring"):
        quoted = ros2 and len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'"
        return text[1:-1] if quoted else text
    if kind == "bool":
        return text.strip().lower() in ("true", "1")
    return float(text) if kind.startswith("float") else int(text, 0)


_TAKEN = {n for n in dir(Message) if not n.startswith("__")}
_codecs: dict[str, Codec] = {}


def codec(description: dict[str, Any]) -> Codec:
    """The codec of a type, made once."""
    key = json.dumps(description, sort_keys=True)
    if key not in _codecs:
        _codecs[key] = Codec(description)
    return _codecs[key]
