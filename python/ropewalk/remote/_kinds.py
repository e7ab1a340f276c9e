"""The kinds of commands and telemetry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .._errors import ContentError

B = TypeVar("B")


@dataclass(frozen=True)
class CommandKind(Generic[B]):
    """A kind of command. Create your own with `CommandKind("acme.Spray", acme_pb2.Litres, moves="nozzle")`."""

    #: The name by which both ends know it.
    name: str
    #: The class of its bodies, from Google's protobuf; None: bodies are bytes.
    message: type[B] | None = None
    #: The subsystem that it moves: only the controller with the right to move it may send such commands.
    moves: str | None = None


@dataclass(frozen=True)
class TelemetryKind(Generic[B]):
    """A kind of telemetry, like `CommandKind`."""

    name: str
    message: type[B] | None = None


def encode(kind: CommandKind[Any] | TelemetryKind[Any], body: Any) -> bytes:
    """Encodes a body; bytes are passed through."""
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body)
    descriptor = getattr(body, "DESCRIPTOR", None)
    if descriptor is None:
        raise ContentError(f"{kind.name} carries {_carries(kind)}, not a {type(body).__name__}")
    if kind.message is not None and descriptor.full_name != kind.message.DESCRIPTOR.full_name:
        raise ContentError(f"{kind.name} carries {_carries(kind)}, not {descriptor.full_name}")
    return bytes(body.SerializeToString())


def decode(kind: CommandKind[Any] | TelemetryKind[Any], body: bytes) -> Any:
    """Decodes a body."""
    if kind.message is None:
        return body
    try:
        return kind.message.FromString(body)
    except Exception as e:
        raise ContentError(f"not a valid {kind.name}: {e}") from e


def _carries(kind: CommandKind[Any] | TelemetryKind[Any]) -> str:
    return "bytes" if kind.message is None else str(kind.message.DESCRIPTOR.full_name)
