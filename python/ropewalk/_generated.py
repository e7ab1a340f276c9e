"""Classes of messages that ROS 2 generates, as found in a sourced installation. They can be used wherever a type is
expected, and messages are instances of them. They have their own arrays: publishing copies them once into the block,
and taking copies them once out of it."""

from __future__ import annotations

import array
import importlib
from typing import Any, Callable, NamedTuple

import numpy as np

from ._arrays import Mismatch
from ._codec import Codec, Message, _attribute, codec
from ._errors import TypeUnknown

__all__ = ["Generated", "is_generated", "is_generated_service", "name_of"]

#: Types that rosidl keeps as `array.array`, or as numpy arrays if the length is fixed, with their typecodes.
_CODES = {
    "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q",
    "float": "f", "double": "d",
}  # fmt: skip

#: Converts a field's value from one class to the other.
_Convert = Callable[[Any], Any]


def is_generated(kind: Any) -> bool:
    """Whether it is a class of messages that rosidl generated."""
    return isinstance(kind, type) and hasattr(kind, "SLOT_TYPES") and hasattr(kind, "get_fields_and_field_types")


def is_generated_service(kind: Any) -> bool:
    """Whether it is a class of a service."""
    return isinstance(kind, type) and is_generated(getattr(kind, "Request", None)) and is_generated(getattr(kind, "Response", None))


def name_of(kind: type) -> str:
    """The type's name: sensor_msgs/Image for sensor_msgs.msg._image.Image."""
    return f"{kind.__module__.split('.')[0]}/{kind.__name__}"


class _Step(NamedTuple):
    """A field: its name in the definition and in Ropewalk's messages, and the converters of its value in both
    directions."""

    field: str
    attribute: str
    ours: _Convert
    theirs: _Convert


class Generated:
    """Converts messages of a generated class to those of a codec, and back."""

    def __init__(self, kind: type, made: Codec) -> None:
        self.kind, self.codec = kind, made
        fields = made.description["fields"]
        # A type of another version is another type with the same name.
        here, there = [f["name"] for f in fields], list(kind.get_fields_and_field_types())  # type: ignore[attr-defined]
        if here != there:
            raise TypeUnknown(
                f"{made.name} has the fields {', '.join(here)} in the definition that was found, and {', '.join(there)} in {kind.__module__}: "
                "source only one installation (AMENT_PREFIX_PATH)"
            )
        slots = kind.SLOT_TYPES  # type: ignore[attr-defined]
        self._steps = [_Step(f["name"], _attribute(f["name"]), *_converters(f, slot)) for f, slot in zip(fields, slots)]

    def ours(self, message: Any) -> Message:
        """Converts to a message of the codec."""
        if type(message) is not self.kind:
            raise Mismatch(f"given {type(message).__name__}, wanted a {self.codec.name}")
        return self.codec.unchecked({s.attribute: s.ours(getattr(message, s.field)) for s in self._steps})

    def theirs(self, message: Any) -> Any:
        """Converts a message or an element of an array to an instance of the class."""
        made = self.kind()
        is_element = isinstance(message, np.void)
        for s in self._steps:
            value = message[s.field] if is_element else getattr(message, s.attribute)
            setattr(made, s.field, s.theirs(value))
        return made


def _same(value: Any) -> Any:
    return value


def _converters(f: dict[str, Any], slot: Any) -> tuple[_Convert, _Convert]:
    """Returns the converters to Ropewalk's value and to ROS 2's value."""
    if f["arity"] == "one":
        return _one(f, slot)
    inner = slot.value_type
    code = _CODES.get(getattr(inner, "typename", ""))
    if code is not None:
        # Buffers are used unchanged.
        dtype = np.dtype(code)
        if f["arity"] == "fixed":
            return _same, lambda value: np.array(value, dtype)
        return _same, lambda value: array.array(code, np.ascontiguousarray(value, dtype).tobytes())
    ours, theirs = _one(f, inner)
    return lambda value: [ours(v) for v in value], lambda value: [theirs(v) for v in value]


def _one(f: dict[str, Any], slot: Any) -> tuple[_Convert, _Convert]:
    if f["kind"] == "message":
        inner = Generated(getattr(importlib.import_module(".".join(slot.namespaces)), slot.name), codec(f["type"]))
        return inner.ours, inner.theirs
    kind = getattr(slot, "typename", "text")
    if kind == "octet":
        return lambda value: value[0], lambda value: bytes([int(value)])
    if kind == "boolean":
        return _same, bool
    if kind == "text":
        return _same, str
    return _same, float if kind in ("float", "double") else int
