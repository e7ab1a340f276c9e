"""What kinds of commands and telemetry there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .._errors import ContentError

B = TypeVar("B")


@dataclass(frozen=True)
class CommandKind(Generic[B]):
    """A kind of command. Make one for a kind of your own: `CommandKind("acme.Spray", acme_pb2.Litres, moves="nozzle")`."""

    #: What both ends know it by.
    name: str
    #: The class of its bodies, of Google's protobuf; None: bodies are bytes.
    message: type[B] | None = None
    #: The subsystem that it moves: such commands are for whoever has the right to.
    moves: str | None = None


@dataclass(frozen=True)
class TelemetryKind(Generic[B]):
    """A kind of telemetry, as `CommandKind`."""

    name: str
    message: type[B] | None = None


def encode(kind: CommandKind[Any] | TelemetryKind[Any], body: Any) -> bytes:
    """The body's bytes; those that are bytes already are taken as they are."""
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body)
    descriptor = getattr(body, "DESCRIPTOR", None)
    if descriptor is None:
        raise ContentError(f"{kind.name} carries {_carries(kind)}, not a {type(body).__name__}")
    if kind.message is not None and descriptor.full_name != kind.message.DESCRIPTOR.full_name:
        raise ContentError(f"{kind.name} carries {_carries(kind)}, not {descriptor.full_name}")
    return bytes(body.SerializeToString())


def decode(kind: CommandKind[Any] | TelemetryKind[Any], body: bytes) -> Any:
    """What the bytes are a body of."""
    if kind.message is None:
        return body
    try:
        return kind.message.FromString(body)
    except Exception as e:
        raise ContentError(f"this is no body of {kind.name}: {e}") from e


def _carries(kind: CommandKind[Any] | TelemetryKind[Any]) -> str:
    return "bytes" if kind.message is None else str(kind.message.DESCRIPTOR.full_name)
