"""Remote's own protocol over ZeroMQ, in Python with pyzmq, after docs/wire/remote.md and remote-zmq.md. For attacks, so it checks nothing."""

from __future__ import annotations

import os
import struct
import sys
import time
from pathlib import Path

from kit import cannot_run

try:
    import zmq
except ImportError:
    # The repository's own interpreter has pyzmq.
    python = Path(__file__).resolve().parents[2] / ".venv/bin/python"
    if not python.exists() or os.environ.get("ROPEWALK_ATTACK_VENV"):
        cannot_run("pyzmq is missing: pip install pyzmq, or make the repository's .venv")
    os.environ["ROPEWALK_ATTACK_VENV"] = "1"
    os.execv(python, [str(python), *sys.argv])

EXECUTED, REJECTED, EXPIRED, UNKNOWN_CONTROLLER = 1, 2, 3, 4
TWIST = "robot_remote_control.Twist"


def varint(n: int) -> bytes:
    out = b""
    while n > 0x7F:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def field(number: int, value: int | bytes | str | float, fixed: bool = False) -> bytes:
    """Encodes one field of a protobuf message; `fixed`: an integer as fixed64."""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if fixed:
        return varint(number << 3 | 1) + struct.pack("<Q", value)
    return varint(number << 3) + varint(value)


def fields(data: bytes) -> dict[int, list]:
    """Decodes the fields of a protobuf message, by number."""
    at, found = 0, {}

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = number()
        kind = key & 7
        if kind == 0:
            value = number()
        elif kind == 1:
            (value,) = struct.unpack_from("<Q", data, at)
            at += 8
        elif kind == 5:
            (value,) = struct.unpack_from("<f", data, at)
            at += 4
        else:
            length = number()
            value = data[at : at + length]
            at += length
        found.setdefault(key >> 3, []).append(value)
    return found


def first(found: dict[int, list], number: int, default=0):
    return found.get(number, [default])[0]


def write_keys(folder: Path, *names: str) -> dict[str, tuple[bytes, bytes]]:
    """Creates keys with these names as `ropewalk robot key` does, and `controllers`, the list of all except the first, which is the robot's."""
    pairs = {name: zmq.curve_keypair() for name in names}
    for name, (public, secret) in pairs.items():
        path = folder / f"{name}.key"
        path.write_text(f"{public.decode()}\n{secret.decode()}\n")
        path.chmod(0o600)
        (folder / f"{name}.key.pub").write_text(f"{public.decode()}\n")
    lines = [f"{public.decode()} {name}\n" for name, (public, _) in list(pairs.items())[1:]]
    (folder / "controllers").write_text("".join(lines))
    return pairs


def vector(x: float) -> bytes:
    return field(1, float(x))


def twist(speed: float) -> bytes:
    """A body of the kind Twist."""
    return field(2, vector(speed)) + field(3, vector(0.0))


class Controller:
    """One connection to a robot, which claims to be the controller with this number. `lazy`: keep almost no incoming data queued here."""

    def __init__(self, address: str, number: int, keys: tuple[bytes, bytes] | None = None, robot: bytes | None = None,
                 lazy: bool = False) -> None:
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.linger = 0
        if keys:
            self.socket.curve_publickey, self.socket.curve_secretkey = keys
            self.socket.curve_serverkey = robot
        if lazy:
            self.socket.rcvhwm, self.socket.rcvbuf = 1, 4096
        self.socket.connect(address)
        self.number, self.sequence, self.asked = number, 0, 0
        self.run = self.stamp = 0
        self.heard = 0.0
        self.commands: dict[str, int] = {}
        self.known_as = 0

    def send(self, what: bytes, sequence: int | None = None, expiry_ms: int = 0) -> int:
        """Sends a request. Returns the envelope's ID."""
        if sequence is None:
            self.sequence += 1
            sequence = self.sequence
        request = field(1, self.number, fixed=True) + field(2, sequence)
        if self.run:
            held = int((time.monotonic() - self.heard) * 1e6)
            request += field(3, field(1, self.run, fixed=True) + field(2, self.stamp, fixed=True) + field(3, held))
        if expiry_ms:
            request += field(4, expiry_ms)
        self.asked += 1
        self.socket.send(b"\x01" + struct.pack("<Q", self.asked) + request + what)
        return self.asked

    def answer(self, asked: int, patience: float = 5) -> dict[int, list] | None:
        """Returns the fields of the response to a request, or `None` if none arrived."""
        end = time.monotonic() + patience
        while (left := end - time.monotonic()) > 0:
            if not self.socket.poll(int(left * 1000) + 1):
                continue
            message = self.socket.recv()
            if message[0] == 7:
                # Return the mark, which tells the robot what has arrived.
                self.socket.send(b"\x03" + message[1:])
            if message[0] != 4:
                continue
            (which,) = struct.unpack_from("<Q", message, 1)
            response = fields(message[9:])
            if first(response, 4) != UNKNOWN_CONTROLLER:
                self.run, self.stamp, self.heard = first(response, 2), first(response, 3), time.monotonic()
            if which == asked:
                return response
        return None

    def ask(self, what: bytes, **options) -> dict[int, list]:
        return self.answer(self.send(what, **options)) or {}

    def hello(self, name: str, version: int = 2, **options) -> dict[int, list]:
        response = self.ask(field(10, field(1, name) + field(2, version)), **options)
        if first(response, 4) == REJECTED and version > 1:
            return self.hello(name, version - 1, **options)
        welcome = fields(first(response, 10, b""))
        for kind in map(fields, welcome.get(3, [])):
            self.commands[first(kind, 2, b"").decode()] = first(kind, 1)
        self.known_as = first(welcome, 8)
        return response

    def command(self, kind: str, body: bytes, **options) -> int:
        """Sends a command and returns its outcome."""
        return first(self.ask(field(11, field(1, self.commands[kind]) + field(2, body)), **options), 4)

    def beat(self, period_ms: int, **options) -> int:
        return first(self.ask(field(13, field(1, period_ms)), **options), 4)

    def holder(self, subsystem: str = "base") -> int:
        """Returns the number of the controller that may move the robot, as the robot reports it."""
        response = self.ask(field(15 - 1, field(1, subsystem) + field(2, 1)))
        return first(fields(first(response, 12, b"")), 2)

    def close(self) -> None:
        self.context.destroy(linger=0)
