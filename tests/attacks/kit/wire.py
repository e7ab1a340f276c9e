"""A peer of a link over plain UDP, in Python, after docs/wire/link.md. It is for attacks, so it checks nothing."""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from dataclasses import dataclass, field
from typing import Iterator


def v(n: int) -> bytes:
    """Encodes a variable-length integer (RFC 9000, section 16)."""
    for size, mark, bound in ((1, 0, 1 << 6), (2, 1, 1 << 14), (4, 2, 1 << 30), (8, 3, 1 << 62)):
        if n < bound:
            return (n | mark << (8 * size - 2)).to_bytes(size, "big")
    raise ValueError(n)


def read_v(data: bytes, at: int) -> tuple[int, int]:
    """Decodes a variable-length integer. Returns it and where it ends."""
    size = 1 << (data[at] >> 6)
    value = int.from_bytes(data[at : at + size], "big") & ((1 << (8 * size - 2)) - 1)
    return value, at + size


def host_id(name: str) -> int:
    """Returns a host's ID: FNV-1a of its name."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & (1 << 64) - 1
    return h


def short_id(name: str) -> int:
    """Returns the short ID that claims and rhythms carry."""
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
    """Returns the frames of an announcement, each for a datagram of its own."""
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


def more(topic: int, number: int, offset: int, bytes_: bytes) -> bytes:
    return b"\x51" + v(topic) + v(number) + v(offset) + v(len(bytes_)) + bytes_


def acknowledgement(topic: int, newest: int, base: int, *, held: int = 0, top: int = 0, refused: list[tuple[int, int]] = [],
                    runs: list[tuple[int, int]] = [], partial: list[tuple[int, list[tuple[int, int]]]] = []) -> bytes:
    """`runs`, and the missing parts in `partial`, are pairs of a gap and a length."""
    def pairs(all_: list[tuple[int, int]]) -> bytes:
        return v(len(all_)) + b"".join(v(a) + v(b) for a, b in all_)

    head = b"\x10" + b"".join(map(v, (topic, newest, held, base, top)))
    head += v(len(refused)) + b"".join(v(n) + bytes([reason]) for n, reason in refused)
    return head + pairs(runs) + v(len(partial)) + b"".join(v(n) + pairs(missing) for n, missing in partial)


def ways(serial: int, echo: int, heard: int, count: int, entries: list[tuple[int, int, int, int]], held: int = 0) -> bytes:
    """Encodes route entries of (host, its own count, cost in µs, hops)."""
    head = b"\x38" + b"".join(map(v, (serial, echo, heard, held, count, len(entries))))
    return head + b"".join(struct.pack("<Q", h) + v(seq) + v(cost) + bytes([hops]) for h, seq, cost, hops in entries)


def route(number: int, hops: int, hosts: int) -> bytes:
    return b"\x3a" + v(number) + bytes([hops]) + v(hosts)


def via(source: str, run: int, hosts: list[str]) -> bytes:
    """Returns what follows an announcement of a topic that may use relays."""
    head = struct.pack("<QI", host_id(source), run) + v(len(source)) + source.encode()
    return head + v(len(hosts)) + b"".join(struct.pack("<Q", host_id(h)) for h in hosts)


def claims(entries: list[tuple[int, int, int, int]]) -> bytes:
    """Entries of (short id of the host, priority, demand in ms, age in ms)."""
    return bytes([0x20, len(entries)]) + b"".join(struct.pack("<IBBB", *e) for e in entries)


def clock(now_us: int, ahead_us: int | None = None) -> bytes:
    """Encodes the sender's clock; with `ahead_us` also by how much the receiver's clock is ahead, with an error of one microsecond."""
    if ahead_us is None:
        return b"\x21" + v(now_us) + b"\x00"
    zigzag = ahead_us * 2 if ahead_us >= 0 else -2 * ahead_us - 1
    return b"\x21" + v(now_us) + b"\x01" + v(zigzag) + v(1) + v(1)


def rhythms(entries: list[tuple[int, int, int, int, int, int, int]]) -> bytes:
    """Encodes entries of (short ID, priority, age in ms, next at, period, airtime, spread), times in µs by the sender's clock."""
    return bytes([0x22, len(entries)]) + b"".join(
        struct.pack("<IBB", *e[:3]) + b"".join(map(v, e[3:])) for e in entries)


# Content of a frame after its kind: v a variable-length integer, 1 to 8 that many bytes, b bytes preceded by their length.
SHAPES = {
    0x02: "", 0x03: "vvvv1b", 0x04: "vv1v", 0x05: "vv", 0x07: "", 0x08: "vvv", 0x11: "vv", 0x12: "vvv", 0x13: "vvb", 0x14: "vv11b",
    0x23: "vvvv", 0x39: "vv", 0x3A: "v1v", 0x3B: "v1vv", 0x4A: "vvvb", 0x4B: "vvvb", 0x51: "vvvb",
}


def frames(datagram: bytes) -> Iterator[tuple[int, int, int]]:
    """Returns kind, start and end of each frame of a valid datagram."""
    _, at = read_v(datagram, 5)

    def skip(shape: str) -> None:
        nonlocal at
        for what in shape:
            if what in "vb":
                value, at = read_v(datagram, at)
                at += value if what == "b" else 0
            else:
                at += int(what)

    def repeat(shape: str) -> None:
        nonlocal at
        count, at = read_v(datagram, at)
        for _ in range(count):
            skip(shape)

    while at < len(datagram):
        kind, began = datagram[at], at
        at += 1
        if kind in SHAPES:
            skip(SHAPES[kind])
        elif kind == 0x01:
            at += 17
            skip("vvb")
        elif kind == 0x06:
            skip("vvv")
            repeat("1v")
        elif kind == 0x10:
            skip("vvvvv")
            repeat("v1")
            repeat("vv")
            count, at = read_v(datagram, at)
            for _ in range(count):
                skip("v")
                repeat("vv")
        elif kind in (0x20, 0x22):
            count = datagram[at]
            at += 1
            skip(("4111" if kind == 0x20 else "411vvvv") * count)
        elif kind == 0x21:
            skip("v1")
            skip("vvv" if datagram[at - 1] & 1 else "")
        elif kind == 0x38:
            skip("vvvvv")
            repeat("8vv1")
        elif kind == 0x50:
            at = len(datagram)
        elif 0x40 <= kind <= 0x4F:
            data_alike = kind >= 0x4C
            skip("vv8" + ("8" if kind & 1 and not data_alike else "") + "vv")
            parts = datagram[at]
            at += 1
            skip("v" * (parts if parts < 128 else 0))
            if kind & (1 if data_alike else 2) and kind not in (0x48, 0x49):
                skip("b")
            elif kind not in (0x48, 0x49):
                at = len(datagram)
        else:
            raise ValueError(f"frame {kind:#x} at {began} of {datagram.hex()}")
        yield kind, began, at


@dataclass
class Peer:
    """One end of a link's session. Only `serve`, `send` and `come_up` send anything."""

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
        head = b"\xb7" + struct.pack("<I", self.session) + v(self.number)
        self.number += 1
        self.give(head + b"".join(frames))

    def give(self, datagram: bytes) -> None:
        """Sends a datagram as it is."""
        try:
            self.socket.sendto(datagram, self.to)
        except OSError:
            pass  # Its port is not open yet.

    def take(self, timeout: float) -> list[bytes]:
        """Returns received datagrams, after `timeout` at the latest."""
        if not select.select([self.socket], [], [], timeout)[0]:
            return []
        try:
            return [self.socket.recv(65536)]
        except OSError:
            return []

    def greet(self) -> None:
        self.send(hello(self.name, self.theirs, not self.up))

    def serve(self, seconds: float, keep: bool = False) -> None:
        """Answers greetings and keeps the session up for this long. `keep`: collect received datagrams in `got`."""
        end = time.monotonic() + seconds
        greets = 0.0
        while (now := time.monotonic()) < end:
            if now >= greets:
                self.greet()
                greets = now + 0.1
            for datagram in self.take(min(0.02, end - now)):
                if self.hear(datagram) and keep:
                    self.got.append(datagram)

    def hear(self, datagram: bytes) -> bool:
        """Handles a greeting in front of a datagram. Returns `False` if the datagram does not belong to the link."""
        if len(datagram) < 6 or datagram[0] != 0xB7:
            return False
        (session,) = struct.unpack_from("<I", datagram, 1)
        _, at = read_v(datagram, 5)
        if datagram[at : at + 5] == b"\x01RPWK":
            (seen,) = struct.unpack_from("<I", datagram, at + 13)
            self.theirs = session
            self.up = seen == self.session
        return True

    def come_up(self, patience: float = 20) -> bool:
        """Greets until the other end knows this session."""
        end = time.monotonic() + patience
        while not self.up and time.monotonic() < end:
            self.serve(0.1)
        self.serve(0.1)
        return self.up
