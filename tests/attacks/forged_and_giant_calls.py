#!/usr/bin/env python3
"""A peer forges replies of another peer's service, replies to calls that nobody made, makes ten thousand calls without reading an answer,
and sends the beginnings and ends of requests and replies of 60 MiB. Meanwhile a base calls the robot's service."""

from __future__ import annotations

import os
import struct
import subprocess
import threading
import time

import kit
from kit import quic, wire
from kit.wire import v

MB = 1 << 20
MD5 = bytes.fromhex("6a2e34150c00229791cc89ff309fff21")
DEFINITION = "int64 a\nint64 b\n---\nint64 sum\n"
GIANT = 60 * MB
CALLS = 10_000
GIANT_S = 9.0
HELD_S = 1.8
SMALL = 800
# `peers: memory` of the hostile peer at both ends, and what docs/wire/link.md grants it in addition.
SHARED = 128 * MB
BOUNDS = (128 + 9 + 4) * MB
OWN = 24 * MB
GIVEN_BACK_WITHIN_S = 5
FORGED = 666


def header(kind: int, run: int, number: int, left: int = 0, outcome: int = 0) -> bytes:
    return struct.pack("<BBHIQI", kind, outcome, 0, run, number, left)


def announced(name: str, first: int = 0) -> bytes:
    return wire.announcement(name, "rospy_tutorials/AddTwoInts", md5=MD5, definition=DEFINITION, priority=127, depth=1024, reliability=1, ordering=1,
                             first=first)


class Caller(threading.Thread):
    """Makes calls from the base one after the other, and records the answers and how long each took."""

    def __init__(self, ropewalk: object, env: dict, service: str = "/add_two_ints", pause: float = 0.05) -> None:
        super().__init__(daemon=True)
        self.command = [str(ropewalk), "service", "call", service, "{a: 20, b: 22}", "--timeout", "5"]
        self.env = {**os.environ, **env}
        self.pause = pause
        self.ended = threading.Event()
        self.answers: list[tuple[float, float, str]] = []

    def run(self) -> None:
        while not self.ended.is_set():
            began = time.monotonic()
            done = subprocess.run(self.command, env=self.env, capture_output=True, text=True)
            self.answers.append((began, time.monotonic() - began, (done.stdout + done.stderr).strip()))
            time.sleep(self.pause)

    def since(self, began: float) -> dict:
        mine = [a for a in self.answers if a[0] >= began]
        right = [a for a in mine if a[2] == "sum: 42"]
        took = sorted(a[1] for a in mine)
        return {"calls": len(mine), "right": len(right), "forged": sum(str(FORGED) in a[2] for a in mine),
                "median_ms": round(took[len(took) // 2] * 1e3) if took else None, "most_ms": round(took[-1] * 1e3) if took else None,
                "others": sorted({a[2] for a in mine} - {"sum: 42"})[:3]}


class Mallory:
    def __init__(self, stage: kit.Stage, ports: dict[str, int], host: str) -> None:
        self.peer = quic.Peer("mallory", ("127.0.0.1", ports[f"mallory-{host}"]), ("127.0.0.1", ports[host]),
                              keys=stage.folder / "rovers/hosts/mallory")

    def announce(self, topic: int, name: str) -> None:
        for frame in wire.announce(topic, announced(name)):
            self.peer.send(frame)

    def small(self, topic: int, number: int, bytes_: bytes) -> None:
        self.peer.send(wire.data(topic, number, len(bytes_), [], 0, bytes_, stamp=time.monotonic_ns(), acknowledge=True))

    def giant(self, topic: int, number: int, head: bytes, until: float, share: float = 1.0, length: int = GIANT) -> int:
        """Sends a message of 60 MiB, or the beginning of it. Returns the number of bytes."""
        offset, step = 0, 1350
        while offset < length * share and time.monotonic() < until:
            piece = (head if offset == 0 else b"") + bytes(step - (len(head) if offset == 0 else 0))
            piece = piece[: length - offset]
            self.peer.send(wire.data(topic, number, length, [], offset, piece))
            offset += len(piece)
            if offset // step % 64 == 0:
                self.peer.take(0)
            if offset // step % 1000 == 0:
                self.peer.serve(0)
        return offset


def learn(peer: quic.Peer, name: str, seconds: float) -> tuple[int, int] | None:
    """Returns run and number of a request that arrived on the topic announced as `name`."""
    topics = set()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        peer.got.clear()
        peer.serve(0.1, keep=True)
        for datagram in peer.got:
            for kind, began, stop in wire.frames(datagram):
                topic, at = wire.read_v(datagram, began + 1) if kind not in (1, 2, 7) else (0, 0)
                if kind == 0x03:
                    # The receiver requests it until it is accepted.
                    edition, _ = wire.read_v(datagram, at)
                    peer.send(b"\x04" + v(topic) + v(edition) + b"\x01" + v(0))
                    if name.encode() in datagram[began:stop]:
                        topics.add(topic)
                elif 0x40 <= kind <= 0x47 and topic in topics:
                    _, at = wire.read_v(datagram, at)
                    at += 16 if kind & 1 else 8
                    _, at = wire.read_v(datagram, at)
                    _, at = wire.read_v(datagram, at)
                    at += 1
                    if kind & 2:
                        _, at = wire.read_v(datagram, at)
                    run, number = struct.unpack_from("<IQ", datagram, at + 4)
                    return run, number
    return None


def main() -> None:
    kit.need_root()  # Required to read another process's memfds.
    folder = kit.arguments().binary.resolve()
    ropewalk = folder / "ropewalk"
    if not (folder / "add_two_ints_server").exists():
        kit.cannot_run("it needs the example add_two_ints_server")
    with kit.stage() as stage:
        def keys(*arguments: str) -> None:
            subprocess.run([ropewalk, "keys", *arguments], cwd=stage.folder, check=True, stdout=subprocess.DEVNULL)

        keys("team", "rovers")
        ports = {name: kit.free_port() for name in ("robot", "base", "mallory-robot", "mallory-base")}
        for host in ("robot", "base", "mallory"):
            keys("host", host, "--team", "rovers")

        def start(host: str, other: str, services: str) -> kit.Program:
            file = stage.write(f"{host}.yaml", f"""
host: {host}
keys: rovers/hosts/{host}
radio: {{bind: '127.0.0.1:{ports[host]}', rate: unlimited}}
peers:
  - {{name: {other}, address: '127.0.0.1:{ports[other]}'}}
  - {{name: mallory, address: '127.0.0.1:{ports["mallory-" + host]}', memory: 128MiB}}
topics: []
services:
{services}""")
            return stage.start(host, ropewalk, "link", file, "--json", "--every", "0.5", env=stage.bus(host))

        server = stage.start("server", folder / "add_two_ints_server", env=stage.bus("robot"))
        robot = start("robot", "base", "  - {name: /add_two_ints, role: serve}\n")
        base = start("base", "robot", "  - {name: /add_two_ints, role: call, from: robot}\n  - {name: /lure, role: call, from: mallory}\n")
        daemons = (robot, base)
        to_robot, to_base = (Mallory(stage, ports, host) for host in ("robot", "base"))
        for m in (to_robot, to_base):
            if not m.peer.come_up():
                kit.verdict({}, f"the hostile peer never came up: {robot.log()[-400:]} {base.log()[-400:]}")
        caller = Caller(ropewalk, stage.bus("base"))

        def serve(seconds: float) -> None:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                to_robot.peer.serve(0.03)
                to_base.peer.serve(0.03)

        caller.start()
        # The server exits after three seconds without a request, which happens on a machine busy with the flood.
        Caller(ropewalk, stage.bus("robot"), pause=1.0).start()
        kit.wait_for("a first answer", lambda: (serve(0.1), any(a[2] == "sum: 42" for a in caller.answers))[1])
        alone_from = time.monotonic()
        serve(4)
        alone = caller.since(alone_from)
        before = {p.name: p.memory() for p in (*daemons, server)}
        most = {name: list(b) for name, b in before.items()}

        def look() -> None:
            for p in (*daemons, server):
                if p.is_alive():
                    most[p.name] = [max(a, b) for a, b in zip(most[p.name], p.memory())]

        beside_from = time.monotonic()
        # The base calls a service of the peer, which learns from this how the base numbers its calls.
        to_base.announce(1, "/lure?reply")
        to_base.announce(2, "/add_two_ints?reply")
        serve(0.5)
        lured = Caller(ropewalk, stage.bus("base"), "/lure")
        lured.start()
        known = learn(to_base.peer, "/lure?request", 6)
        run, number = known or (1, 1)
        forged = 0
        sum_ = struct.pack("<q", FORGED)
        for round_ in range(20):
            for near in range(-20, 40):
                for topic in (1, 2):
                    to_base.small(topic, forged // 2, header(2, run, max(1, number + near + round_ * 3)) + sum_)
                    forged += 1
            serve(0.1)
            look()
        lured.ended.set()
        # Endless calls whose answers it never reads.
        to_robot.announce(1, "/add_two_ints?request")
        to_robot.peer.serve(0.3)
        called = 0
        for n in range(CALLS):
            to_robot.small(1, n, header(1, 7 + n % 20, n + 1, left=3_600_000) + struct.pack("<qq", n, 1))
            called += 1
            if n % 100 == 0:
                to_robot.peer.serve(0.001)
                to_base.peer.serve(0.001)
            if n % 1000 == 0:
                look()
        serve(0.5)
        look()
        # Beginnings of requests that together take all memory for requests, and receive a byte now and then.
        to_robot.announce(2, "/add_two_ints?request")
        to_robot.peer.serve(0.2)
        lengths = [60 * MB, 3 * MB, 512 << 10, 256 << 10, 128 << 10, 100 << 10]
        places = [to_robot.giant(2, 100 + i, header(1, 97, 1, left=3_600_000), time.monotonic() + 5, 0.08, length)
                  for i, length in enumerate(lengths)]
        # And as many small ones as allowed, all without their end.
        for i in range(SMALL):
            to_robot.peer.send(wire.data(2, 200 + i, 60, [], 0, header(1, 97, 2 + i, left=3_600_000) + bytes(10)))
            if i % 64 == 0:
                to_robot.peer.serve(0)
        look()
        held_from = time.monotonic()
        while time.monotonic() < held_from + HELD_S:
            serve(0.5)
            for i, length in enumerate(lengths):
                places[i] = min(places[i] + 1, length - 1)
                to_robot.peer.send(wire.data(2, 100 + i, length, [], places[i], b"x"))
            look()
        held = caller.since(held_from)
        # Giant requests and replies: the beginnings of many, and a complete one.
        until = time.monotonic() + GIANT_S
        giant = 0
        for m, topic, first in ((to_base, 3, header(2, run, number)), (to_robot, 2, header(1, 99, 1, left=3_600_000))):
            m.announce(topic, "/lure?reply" if m is to_base else "/add_two_ints?request")
            m.peer.serve(0.2)
            for number_ in range(1, 9):
                giant += m.giant(topic, number_, first, until, 0.01)
            look()
        # The complete one takes the first number, so that the receiver does not wait for an earlier one.
        whole = to_robot.giant(2, 0, header(1, 98, 1, left=3_600_000), until)
        look()
        serve(1)
        look()
        beside = caller.since(beside_from)
        alive = [p.name for p in (*daemons,) if not p.is_alive()]
        states = {p.name: p.json()[-1] for p in daemons}
        services = [{k: s[k] for k in ("peer", "name", "role", "open", "calls", "answered", "failed", "repeated", "late")}
                    for p in states.values() for s in p["services"]]
        caller.ended.set()
        for m in (to_robot, to_base):
            m.peer.socket.close()
        ended = time.monotonic()
        # Half a minute without calls ends the server, which frees its memory.
        pending = {p.name: p for p in daemons}
        took = {}
        while pending and time.monotonic() < ended + 15:
            for name, p in list(pending.items()):
                if not p.is_alive() or sum(p.memory()) <= sum(before[name]) + OWN:
                    took[name] = round(time.monotonic() - ended, 1)
                    del pending[name]
            time.sleep(0.1)
        figures = {"alone": alone, "beside": beside, "while_memory_is_held": held, "knows_the_base_s_calls": known is not None, "forged_replies": forged, "calls": called,
                   "giant_bytes": giant + whole, "whole_giant": whole >= GIANT, "services": services,
                   "more_mb": {n: [round((m - b) / MB, 1) for m, b in zip(most[n], before[n])] for n in most}, "given_back_s": took}
        broken = [f"the link of {name} ended" for name in alive]
        if beside["forged"]:
            broken.append(f"{beside['forged']} forged answers were accepted")
        if beside["right"] < beside["calls"] or not beside["calls"]:
            broken.append(f"{beside['right']} of {beside['calls']} honest calls were answered: {beside['others']}")
        for p in daemons:
            grown = [m - b for m, b in zip(most[p.name], before[p.name])]
            if grown[0] > BOUNDS + OWN or grown[1] > SHARED + GIANT + OWN:
                broken.append(f"the link of {p.name} took {grown[0] / MB:.0f} MB, and {grown[1] / MB:.0f} MB of shared memory")
            if took.get(p.name, 99) > GIVEN_BACK_WITHIN_S:
                broken.append(f"the link of {p.name} did not release its memory within {GIVEN_BACK_WITHIN_S} s of the peer's end")
    kit.verdict(figures, *broken)


if __name__ == "__main__":
    main()
