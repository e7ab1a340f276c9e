"""A peer of a link that speaks plain UDP, in Python, from docs/wire/link.md: for attacks, so it checks nothing."""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from dataclasses import dataclass, field


def v(n: int) -> bytes:
    """A variable-length integer (RFC 9000, section 16)."""
    for size, mark, bound in ((1, 0, 1 << 6), (2, 1, 1 << 14), (4, 2, 1 << 30), (8, 3, 1 << 62)):
        if n < bound:
            return (n | mark << (8 * size - 2)).to_bytes(size, "big")
    raise ValueError(n)


def read_v(data: bytes, at: int) -> tuple[int, int]:
    """A variable-length integer and where it ends."""
    size = 1 << (data[at] >> 6)
    value = int.from_bytes(data[at : at + size], "big") & ((1 << (8 * size - 2)) - 1)
    return value, at + size


def host_id(name: str) -> int:
    """A host's id: FNV-1a of its name."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & (1 << 64) - 1
    return h


def short_id(name: str) -> int:
    """The short id that claims and rhythms carry."""
    h = host_id(name)
    return (h ^ h >> 32) & 0xFFFFFFFF


def hello(name: str, seen: int, asks: bool, host: int | None = None) -> bytes:
    text = name.encode()
    head = struct.pack("<QIB", host_id(name) if host is None else host, seen, asks)
    return b"\x01RPWK" + head + v(64 << 20) + v(0) + v(len(text)) + text


def announcement(name: str, type_name: str, *, md5: bytes = bytes(16), definition: str = "", priority: int = 50,
                 depth: int = 1, reliability: int = 0, ordering: int = 0, first: int = 0, relayed: bytes = b"") -> bytes:
    texts = b"".join(v(len(t)) + t for t in (name.encode(), type_name.encode(), definition.encode()))
    return v(first) + bytes([priority]) + v(depth) + bytes([reliability, ordering]) + md5 + texts + relayed


def announce(topic: int, body: bytes, edition: int = 1) -> list[bytes]:
    """The frames of an announcement, each for a datagram of its own."""
    frames = []
    for offset in range(0, len(body), 1000):
        piece = body[offset : offset + 1000]
        last = offset + 1000 >= len(body)
        frames.append(b"\x03" + v(topic) + v(edition) + v(len(body)) + v(offset) + bytes([last]) + v(len(piece)) + piece)
    return frames


def data(topic: int, number: int, control: int, parts: list[int], offset: int, bytes_: bytes, *, stamp: int = 0,
         acknowledge: bool = False) -> bytes:
    """One fragment of a message whose control part and data parts have these lengths."""
    shape = v(control) + bytes([len(parts)]) + b"".join(map(v, parts))
    kind = 0x42 | (4 if acknowledge else 0)
    head = bytes([kind]) + v(topic) + v(number) + struct.pack("<Q", stamp) + v(offset) + shape
    return head + v(len(bytes_)) + bytes_


def claims(entries: list[tuple[int, int, int, int]]) -> bytes:
    """Entries of (short id of the host, priority, demand in ms, age in ms)."""
    return bytes([0x20, len(entries)]) + b"".join(struct.pack("<IBBB", *e) for e in entries)


def clock(now_us: int, ahead_us: int | None = None) -> bytes:
    """What the sender's clock says; with `ahead_us` also by how much the receiver's is ahead of it, to a microsecond."""
    if ahead_us is None:
        return b"\x21" + v(now_us) + b"\x00"
    zigzag = ahead_us * 2 if ahead_us >= 0 else -2 * ahead_us - 1
    return b"\x21" + v(now_us) + b"\x01" + v(zigzag) + v(1) + v(1)


def rhythms(entries: list[tuple[int, int, int, int, int, int, int]]) -> bytes:
    """Entries of (short id, priority, age in ms, next at, period, airtime, spread), all in µs by the sender's clock."""
    return bytes([0x22, len(entries)]) + b"".join(
        struct.pack("<IBB", *e[:3]) + b"".join(map(v, e[3:])) for e in entries)


@dataclass
class Peer:
    """One end of a link's session. Nothing is sent but by `serve`, `send` and `come_up`."""

    name: str
    bind: tuple[str, int]
    to: tuple[str, int]
    session: int = 0
    theirs: int = 0
    number: int = 0
    up: bool = False
    got: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.session = self.session or int.from_bytes(os.urandom(4), "little") | 1
        family = socket.AF_INET6 if ":" in self.bind[0] else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.bind(self.bind)

    def send(self, *frames: bytes) -> None:
        head = b"\xb5" + struct.pack("<I", self.session) + v(self.number)
        self.number += 1
        try:
            self.socket.sendto(head + b"".join(frames), self.to)
        except OSError:
            pass  # Its port is not open yet.

    def greet(self) -> None:
        self.send(hello(self.name, self.theirs, not self.up))

    def serve(self, seconds: float, keep: bool = False) -> None:
        """Answers greetings, and keeps the session up, for so long. `keep`: datagrams that come are put into `got`."""
        end = time.monotonic() + seconds
        greets = 0.0
        while (now := time.monotonic()) < end:
            if now >= greets:
                self.greet()
                greets = now + 0.1
            if not select.select([self.socket], [], [], min(0.02, end - now))[0]:
                continue
            try:
                datagram = self.socket.recv(65536)
            except OSError:
                continue
            if len(datagram) < 6 or datagram[0] != 0xB5:
                continue
            (session,) = struct.unpack_from("<I", datagram, 1)
            _, at = read_v(datagram, 5)
            if datagram[at : at + 5] == b"\x01RPWK":
                (seen,) = struct.unpack_from("<I", datagram, at + 13)
                self.theirs = session
                self.up = seen == self.session
            if keep:
                self.got.append(datagram)

    def come_up(self, patience: float = 20) -> bool:
        """Greets until the other end knows this session."""
        end = time.monotonic() + patience
        while not self.up and time.monotonic() < end:
            self.serve(0.1)
        self.serve(0.1)
        return self.up
