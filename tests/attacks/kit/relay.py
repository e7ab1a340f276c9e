"""A host that hosts with keys allow to relay (`relay: true`), in Python. It forwards their traffic for each other frame by frame.

Its user can make it do more: `change` may replace frames that pass, `lies` may announce routes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from . import quic, wire
from .wire import read_v, v

# Cheaper than any true route: µs of airtime per datagram.
NEAR = 1
PROBES_EVERY_S = 0.1
# First number of its own topics.
BESIDE = 2000


class Side:
    """One of its two neighbours."""

    def __init__(self, host: str, peer: quic.Peer) -> None:
        self.host, self.peer = host, peer
        self.serial = self.newest = self.heard = self.count = 0
        self.heard_at = self.probed_at = 0.0
        # By number of a datagram sent here: the last datagram of the other side that was forwarded before it.
        self.passed: dict[int, int] = {}
        self.last = 0


class Relay:
    """Between two hosts."""

    def __init__(self, name: str, keys: Path, at: dict[str, tuple[tuple[str, int], tuple[str, int]]]) -> None:
        """`at`: for each host, the address to bind and the host's address."""
        self.sides = [Side(host, quic.Peer(name, bind, to, keys=keys)) for host, (bind, to) in at.items()]
        # For each message frame that passes: what to forward instead.
        self.change: Callable[[Side, int, bytes], list[bytes]] = lambda side, kind, frame: [frame]
        # Additional route entries for a neighbour: (host ID, its count, cost, hops).
        self.lies: Callable[[Side], list[tuple[int, int, int, int]]] = lambda side: []
        # By how many seconds it appears nearer than it is.
        self.haste = 0.0
        # Counts of hosts, as reported by the neighbours.
        self.counts: dict[int, int] = {}
        # Data frames that passed from each host: the route and everything after it.
        self.recorded: dict[str, list[bytes]] = {host: [] for host in at}
        # Announcements that passed from each host.
        self.announced: dict[str, list[bytes]] = {host: [] for host in at}
        self.datagrams = 0

    def other(self, side: Side) -> Side:
        return self.sides[self.sides[0] is side]

    def serve(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for side in self.sides:
                self.probe(side)
                for datagram in side.peer.take(0.002):
                    if side.peer.hear(datagram):
                        self.datagrams += 1
                        self.pass_on(side, datagram)
                side.peer.flush()

    def probe(self, side: Side) -> None:
        now = time.monotonic()
        if now < side.probed_at + PROBES_EVERY_S:
            return
        side.probed_at = now
        side.peer.greet()
        if not side.peer.up:
            side.serial = side.newest = side.heard = 0
            return
        side.serial += 1
        other = self.other(side)
        entries = [(wire.host_id(other.host), other.count, NEAR, 1)] if other.count else []
        held = round((now - side.heard_at + self.haste) * 1e6) if side.newest else 0
        side.peer.send(wire.ways(side.serial, side.newest, side.heard, int(now * 10), entries + self.lies(side), held))

    def pass_on(self, side: Side, datagram: bytes) -> None:
        other = self.other(side)
        number, _ = read_v(datagram, 5)
        side.last = max(side.last, number)
        out: list[bytes] = []
        # A data frame is forwarded with the route in front of it.
        route = b""
        asks = False
        for kind, began, end in wire.frames(datagram):
            frame = datagram[began:end]
            if kind == 0x38:
                fields, at = [], began + 1
                for _ in range(5):
                    value, at = read_v(datagram, at)
                    fields.append(value)
                side.newest, side.heard, side.heard_at = max(side.newest, fields[0]), side.heard + 1, time.monotonic()
                side.count = fields[4]
                entries, at = read_v(datagram, at)
                for _ in range(entries):
                    host = int.from_bytes(datagram[at : at + 8], "little")
                    reported, at = read_v(datagram, at + 8)
                    _, at = read_v(datagram, at)
                    at += 1
                    self.counts[host] = max(reported, self.counts.get(host, 0))
                self.counts[wire.host_id(side.host)] = side.count
            elif kind in (0x3A, 0x3B):
                _, at = read_v(frame, 1)
                route = frame[:at] + bytes([max(frame[at] - 1, 1)]) + frame[at + 1 :]
            elif kind == 0x07:
                asks = True
            elif kind == 0x10:
                # As numbers of datagrams that the other end sent.
                topic, at = read_v(frame, 1)
                newest, at = read_v(frame, at)
                _, at = read_v(frame, at)
                out.append(b"\x10" + v(topic) + v(side.passed.get(newest, 0)) + v(0) + frame[at:])
            elif kind in (0x03, 0x04, 0x05, 0x11, 0x39):
                out.append(frame)
                if kind == 0x03:
                    self.announced[side.host].append(frame)
            elif 0x40 <= kind <= 0x51:
                self.recorded[side.host].append(route + frame)
                out.extend(self.change(side, kind, route + frame))
                route = b""
        if asks:
            side.peer.send(b"\x08" + v(side.last) + v(0) + v(0))
        if not other.peer.up:
            return
        # A data frame may extend to the end of its datagram, so nothing may be appended to it.
        if out and len(b"".join(out)) <= len(datagram) + 8:
            self.send(other, number, out)
        else:
            for frame in out:
                self.send(other, number, [frame])

    def again(self, announcement: bytes) -> list[bytes]:
        """Repeats an announcement under another number, for messages sent in addition to those that pass."""
        topic, at = read_v(announcement, 1)
        return [b"\x03" + v(topic + BESIDE) + announcement[at:]]

    def send(self, to: Side, number: int, frames: list[bytes]) -> None:
        to.passed[to.peer.number] = number
        to.peer.send(*frames)
