"""A peer on a bus, in Python, after docs/wire/bus.md. It is for attacks, so it checks nothing."""

from __future__ import annotations

import array
import fcntl
import mmap
import os
import select
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

HELLO, REFUSE, ATTACH, WELCOME, SEGMENT, READY, INFO = 1, 2, 3, 4, 5, 8, 10
PUBLISHER, SUBSCRIBER, OBSERVER = 1, 2, 3
# F_ADD_SEALS with SEAL, SHRINK, GROW, and FUTURE_WRITE for segments.
ADD_SEALS, RING_SEALS, SEGMENT_SEALS = 1033, 1 | 2 | 4, 1 | 2 | 4 | 16
STRING = ("std_msgs/String", bytes.fromhex("992ce8a1687cec8c8bd883ec73ca41d1"), "string data\n")


def frame(kind: int, body: bytes = b"") -> bytes:
    return b"RWLK" + struct.pack("<HH", 3, kind) + body


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<H", len(data)) + data


def topic_hash(topic: str, domain: int = 0) -> int:
    """FNV-1a over the domain and the topic."""
    h = 0xCBF29CE484222325
    for byte in struct.pack("<I", domain) + topic.encode():
        h = ((h ^ byte) * 0x100000001B3) & (1 << 64) - 1
    return h


def offer(node: str = "", history: int = 0) -> bytes:
    """What a publisher announces about itself; empty for others."""
    return text(node) + struct.pack("<IBI", history, 0, 0)


# ROS version of a type: unspecified.
FLAVOUR = bytes(49)


def hello(role: int, identity: int, topic: str, type_name: str = STRING[0], md5: bytes = STRING[1]) -> bytes:
    head = struct.pack("<HBIQ", 1, role, 0, identity)
    return frame(HELLO, head + text(topic) + text(type_name) + md5 + FLAVOUR + offer())


def attach(depth: int, held: int, history: int = 0) -> bytes:
    return frame(ATTACH, struct.pack("<IIQBIQ", depth, held, 1 << 40, 0, history, 0))


def info(identity: int, topic: str, type_name: str = STRING[0], md5: bytes = STRING[1], definition: str = STRING[2],
         refusals: tuple[str, ...] = ()) -> bytes:
    """What a publisher without subscribers announces about itself."""
    head = struct.pack("<BIQIQQ", PUBLISHER, 0, identity, 0, 0, 0)
    body = definition.encode()
    state = struct.pack("<QQQIBQ", 1 << 28, 0, 0, 0, 0, 0) + offer() + struct.pack("<Q", 0) + bytes(40) + struct.pack("<H", 0)
    reported = bytes([len(refusals)]) + b"".join(map(text, refusals))
    return frame(INFO, head + text(topic) + text(type_name) + md5 + FLAVOUR + struct.pack("<I", len(body)) + body + state + reported)


def ring_length(depth: int, held: int) -> int:
    return -(-(16 + 8 * depth + 8 * (depth + held)) * 8 // mmap.PAGESIZE) * mmap.PAGESIZE


def memfd(length: int, seals: int, fill: bool = False) -> tuple[int, mmap.mmap]:
    """Returns a sealed memfd and a writable mapping of it; without `fill` it consists of holes."""
    fd = os.memfd_create("attack", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, length)
    if fill:
        os.posix_fallocate(fd, 0, length)
    mapped = mmap.mmap(fd, length)
    fcntl.fcntl(fd, ADD_SEALS, seals)
    return fd, mapped


def connect(path: Path) -> socket.socket:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(10)
    s.connect(str(path))
    return s


def send(s: socket.socket, data: bytes, *fds: int) -> None:
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    s.sendmsg([data], rights)


def receive(s: socket.socket) -> tuple[int, bytes, list[int]]:
    """Returns the next frame: its kind, its body, its descriptors. Kind 0 at the end."""
    data, ancillary = b"", []
    for _ in range(2):
        try:
            data, ancillary, _, _ = s.recvmsg(1 << 18, socket.CMSG_SPACE(64))
            break
        except ConnectionResetError:
            continue  # The other end left something unread; its own data is still there.
        except TimeoutError:
            break
    fds = array.array("i")
    for level, kind, rights in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(rights[: len(rights) // fds.itemsize * fds.itemsize])
    if len(data) < 8:
        return 0, b"", list(fds)
    return struct.unpack_from("<H", data, 6)[0], data[8:], list(fds)


def sockets(folder: Path, role: str, topic: str | None = None) -> list[Path]:
    """Returns the sockets of publishers (`p`) or subscribers (`s`)."""
    begin = "" if topic is None else f"{topic_hash(topic):016x}"
    return [p for p in folder.glob(f"*.{role}.*.*") if p.name.startswith(begin) and not p.name.startswith(".")]


def refusal(body: bytes) -> str:
    return body[3:].decode(errors="replace")


@dataclass
class Offer:
    """A publisher's socket in a runtime folder; `serve` answers connections."""

    folder: Path
    topic: str
    identity: int
    answer: bytes
    # Sent instead of a hello to processes that want to attach.
    refuse: bytes | None = None

    def __post_init__(self) -> None:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.path = self.folder / f"{topic_hash(self.topic):016x}.p.{os.getpid()}.{self.identity:016x}"
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(self.path))
        self.listener.listen(64)

    def serve(self) -> bool:
        """Answers one connection, if one is pending."""
        if not select.select([self.listener], [], [], 0.02)[0]:
            return False
        visitor, _ = self.listener.accept()
        with visitor:
            visitor.settimeout(2)
            kind, body, _ = receive(visitor)
            if kind == HELLO:
                visitor.send(self.answer if body[2] == OBSERVER or self.refuse is None else self.refuse)
        return True


def subscribe(path: Path, topic: str, identity: int) -> tuple[socket.socket | None, list[int], str]:
    """Attaches as a subscriber of depth 1. Returns the connection and its descriptors, or why it was refused."""
    s = connect(path)
    s.send(hello(SUBSCRIBER, identity, topic))
    kind, body, _ = receive(s)
    if kind != HELLO:
        return None, [], refusal(body)
    ring, mapped = memfd(ring_length(1, 1), RING_SEALS)
    mapped.close()
    bell = os.pipe()
    try:
        send(s, attach(1, 1), ring, bell[0])
    except BrokenPipeError:
        pass  # The reason arrives first.
    kind, body, _ = receive(s)
    if kind != WELCOME:
        for fd in (ring, *bell):
            os.close(fd)
        return None, [], refusal(body)
    s.send(frame(READY))
    return s, [ring, *bell], ""


def welcome(path: Path, topic: str, identity: int) -> tuple[socket.socket | None, list[int], tuple[int, int], str]:
    """Connects to a subscriber as a publisher, and welcomes it. Returns its ring and doorbell, its depth and max_held."""
    s = connect(path)
    s.send(hello(PUBLISHER, identity, topic))
    kind, body, _ = receive(s)
    if kind != HELLO:
        return None, [], (0, 0), refusal(body)
    kind, body, fds = receive(s)
    if kind != ATTACH:
        return None, fds, (0, 0), refusal(body)
    s.send(frame(WELCOME))
    kind, _, _ = receive(s)
    if kind != READY:
        return None, fds, (0, 0), "not ready"
    return s, fds, struct.unpack_from("<II", body), ""


class Writer:
    """The publisher's end of a ring, and a segment of holes. It queues any given block, and reuses nothing."""

    def __init__(self, s: socket.socket, ring: int, shape: tuple[int, int], segment: int) -> None:
        self.socket, self.shape, self.segment = s, shape, segment
        self.ring = mmap.mmap(ring, ring_length(*shape))
        self.fd, self.memory = memfd(segment, SEGMENT_SEALS)
        send(s, frame(SEGMENT, struct.pack("<QQ", 1, segment)), self.fd)
        self.pushed = 0

    def write(self, offset: int, length: int, control: int) -> None:
        """Writes the header of a block whose control part of `control` bytes begins 64 bytes later."""
        self.pushed += 1
        head = b"RWBK" + struct.pack("<HHQQQQQQQ", 1, 0, length, self.pushed, 0, 0, 64, control, 0)
        self.memory[offset : offset + 64] = head[:64]

    def push(self, offset: int, length: int) -> None:
        depth, _ = self.shape
        n, cell = self.pushed, (self.pushed - 1) % sum(self.shape)
        word = lambda i, value: struct.pack_into("<Q", self.ring, i * 8, value)
        word(16 + 8 * depth + 8 * cell, n * 4 + 1)
        entry = 16 + 8 * (n % depth)
        for i, value in enumerate((1, offset, length, 1, 0), 1):
            word(entry + i, value)
        word(entry, n << 16 | cell)
        word(0, n)


def ring(bell: int) -> None:
    """Rings a subscriber's doorbell."""
    fd = os.open(f"/proc/self/fd/{bell}", os.O_WRONLY | os.O_NONBLOCK)
    os.write(fd, b"x")
    os.close(fd)
