"""Messages as Python objects: their classes, and the layout of their fields (docs/wire/control-part.md).

A codec is made once for each type, from its description. Arrays of elements of fixed size are numpy arrays, of
structured types where the elements are messages; long ones are data parts, and are read where they lie. Reading and
writing is native (`_native.Codec`, python/src/codec).
"""

from __future__ import annotations

import difflib
import json
import keyword
import struct
from typing import Any, Callable, NamedTuple

import numpy as np

from . import _native
from ._arrays import Duration, Field, Mismatch, Numbers, Pairs, Records, Sized, Time
from ._errors import ContentError, Error

__all__ = ["Codec", "Duration", "Encoded", "Lift", "Message", "Sized", "Time", "codec"]

#: Shorter arrays stay in the control part, since a data part of their own costs more than copying.
THRESHOLD = 256


class Message:
    """A message: its fields are attributes, initially set by keyword. The constructor raises ContentError for a value that
    could not be published."""

    __slots__ = ("_native", "_loan", "__weakref__")
    _codec: "Codec"

    def __init__(self, **fields: Any) -> None:
        self._loan = None
        self._native = None
        given = []
        for position, (name, default) in enumerate(self._codec.defaults):
            if name in fields:
                value = fields.pop(name)
                given.append((position, value))
            else:
                value = default()
            setattr(self, name, value)
        if fields:
            raise ContentError(_no_fields(self._codec, fields))
        # Last, so that a debugger can show the refused message.
        for position, value in given:
            self._codec.native.check(position, value)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name, _ in self._codec.defaults)
        return f"{type(self).__name__}({fields})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        exact = self._codec.exact.get
        return all(_same(getattr(self, name), getattr(other, name), exact(name)) for name, _ in self._codec.defaults)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy: its fields, stamp and sequence. A deep copy has its own arrays, and holds no block."""
        taken = None if self._native is None else _Taken(self._native.info())
        values = tuple(getattr(self, name) for name, _ in self._codec.defaults)
        return _restored, (self._codec.key, self._codec.definition(), values, taken)

    @property
    def stamp_ns(self) -> int:
        """When its source published it, in nanoseconds since 1970; 0 if it was not taken."""
        return self._native.info()[0] if self._native is not None else 0

    @property
    def sequence(self) -> int:
        """Its publisher's sequence number, starting at 1; 0 if it was not taken."""
        return self._native.info()[1] if self._native is not None else 0

    @property
    def lost(self) -> int:
        """Number of messages lost between the previously taken one and this one."""
        return self._native.info()[3] if self._native is not None else 0


def _no_fields(made: "Codec", wrong: dict[str, Any]) -> str:
    known = [name for name, _ in made.defaults]
    text = f"{made.name} has no field {', '.join(sorted(wrong))}"
    near = [match for name in sorted(wrong) for match in difflib.get_close_matches(name, known, 1)]
    hint = f" (did you mean {', '.join(near)}?)" if near else ""
    return f"{text}{hint}; it has {', '.join(known) or 'none'}"


class _Taken:
    """What a copy of a taken message keeps of its metadata."""

    def __init__(self, info: tuple[int, int, int, int, bool]) -> None:
        self._info = info

    def info(self) -> tuple[int, int, int, int, bool]:
        return self._info


def _restored(key: str, definition: str | None, values: tuple[Any, ...], taken: _Taken | None) -> Message:
    made = codec(json.loads(key))
    if definition is not None and made.type is None:
        try:
            made.type = _native.Type(made.name, definition, ros2=made.ros2)
        except Error:
            # A service's request and response have names that no definition has; their messages need no type of their
            # own.
            pass
    names = [name for name, _ in made.defaults]
    message = made.unchecked(dict(zip(names, values)))
    message._native = taken
    return message


def _same(a: Any, b: Any, exact: Field | None) -> bool:
    if exact is not None and a is not b:
        # Values that are published the same are equal, whether list or array.
        try:
            a, b = exact(a), exact(b)
        except Mismatch:
            pass
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


class Lift(NamedTuple):
    """A future data part: the array to copy into it."""

    source: np.ndarray


class Encoded(NamedTuple):
    """A message as encoded in a block."""

    control: bytes
    lifts: list[Lift]


class Codec:
    """Reads and writes the messages of one type; `Message` is their class."""

    def __init__(self, description: dict[str, Any], key: str) -> None:
        #: The description as text, which identifies the type in pickles.
        self.key = key
        self._definition: str | None = None
        self.name: str = description["name"]
        self.ros2: bool = description["ros2"]
        self.layout = description["layout"]
        self.description = description
        #: The type itself, for codecs that were requested directly.
        self.type: Any = None
        self.defaults: list[tuple[str, Callable[[], Any]]] = []
        names = [_attribute(f["name"]) for f in description["fields"]]
        constants = {n: _constant(kind, text, self.ros2) for n, kind, text in description["constants"]}
        body = {"__slots__": tuple(names), "_codec": self, "__doc__": self.name}
        self.Message = type(self.name.split("/")[-1], (Message,), {**constants, **body})
        #: Converters of array fields' values to arrays.
        self.exact: dict[str, Field] = {}
        fields = [(name, self._field(name, f)) for name, f in zip(names, description["fields"])]
        self.native = _native.Codec(self.name, self.Message, fields)

    def unchecked(self, values: dict[str, Any]) -> Message:
        """A message of values of all its fields, which are checked only when it is published."""
        made: Message = object.__new__(self.Message)
        made._loan = made._native = None
        for name, value in values.items():
            setattr(made, name, value)
        return made

    def decode(self, control: bytes, parts: list[Any]) -> Message:
        """Decodes a control part and data parts; `parts` are objects that numpy can view in place."""
        return self.native.decode(control, parts)

    def encode(self, message: Message, threshold: int = THRESHOLD) -> Encoded:
        """Control part and data parts of a message."""
        control, sources = self.native.encode(message, threshold)
        return Encoded(control, [Lift(source) for source in sources])

    def definition(self) -> str | None:
        """The type's definition with those of all types that it uses; only for codecs that were requested directly."""
        if self._definition is None and self.type is not None:
            self._definition = self.type.definition
        return self._definition

    def column(self, packed: bool) -> Records:
        """Array elements that are messages of this type."""
        members = [
            (_attribute(f["name"]), f["name"], self._column(f, packed), f["n"] if f["arity"] == "fixed" else None)
            for f in self._content()
        ]
        return Records(self.name, self.Message, self.packed_dtype() if packed else self.dtype(), members)

    def _column(self, f: dict[str, Any], packed: bool) -> Numbers | Pairs | Records:
        if f["kind"] == "message":
            return codec(f["type"]).column(packed)
        dtype = _primitive(f["kind"], self.ros2)
        return Pairs(dtype["sec"], _PAIRS[f["kind"]]) if f["kind"] in _PAIRS else Numbers(dtype)

    def packed_dtype(self) -> np.dtype:
        """Layout of elements in the control part: without padding."""
        return np.dtype([self._element(f, packed=True) for f in self._content()])

    def dtype(self) -> np.dtype:
        """Layout of elements in data parts: like a C structure."""
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

    # Fields: their defaults, and their operations for the native codec.

    def _field(self, name: str, f: dict[str, Any]) -> tuple[Any, ...]:
        op, default = self._one(f) if f["arity"] == "one" else self._array(f)
        self.defaults.append((name, default))
        if op[0] in ("bulk", "fixed"):
            self.exact[name] = op[-1]
        return op

    def _one(self, f: dict[str, Any]) -> tuple[tuple[Any, ...], Callable[[], Any]]:
        kind = f["kind"]
        if kind == "message":
            inner = codec(f["type"])
            return ("message", inner.native), inner.Message
        if kind in _PAIRS:
            return ("pair", _WORDS[kind][0], _PAIRS[kind]), _PAIRS[kind]
        text = _constant(kind, f["default"], self.ros2) if f["default"] is not None else None
        if kind in ("string", "wstring"):
            return ("text", 1 if kind == "string" else 2, f["bound"]), lambda: text or ""
        zero = False if kind == "bool" else 0.0 if kind.startswith("float") else 0
        default = zero if text is None else text
        return ("word", _word(kind, self.ros2)), lambda: default

    def _array(self, f: dict[str, Any]) -> tuple[tuple[Any, ...], Callable[[], Any]]:
        fixed, n = f["arity"] == "fixed", f["n"]
        count, bound = (n, None) if fixed else (None, n)
        wanted = f"a list of {f['type']['name'] if f['kind'] == 'message' else f['kind']}"
        if not _is_fixed(f):
            op, default = self._one(f)
            return ("list", op, count, bound, wanted), lambda: [default() for _ in range(n)] if fixed else []
        if _is_nothing({**f, "arity": "one"}):
            inner = codec(f["type"])
            return ("empties", inner.native, count, bound, wanted), lambda: [inner.Message() for _ in range(n)] if fixed else []
        if f["kind"] == "message":
            inner = codec(f["type"])
            natural, packed, word = inner.dtype(), inner.packed_dtype(), None
        else:
            natural = packed = _primitive(f["kind"], self.ros2)
            word = None if f["kind"] in _PAIRS else _word(f["kind"], self.ros2)
        exact = Field(self._column(f, packed=fixed), count, bound)
        if fixed:
            return ("fixed", packed, n, exact), lambda: np.zeros(n, packed)
        return ("bulk", natural, packed, bound, word, exact), lambda: np.zeros(0, natural)


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
    """Appends an underscore to a field that is named like an attribute of the class or a Python keyword."""
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
    """Returns the codec of a type, created once."""
    key = json.dumps(description, sort_keys=True)
    if key not in _codecs:
        _codecs[key] = Codec(description, key)
    return _codecs[key]
