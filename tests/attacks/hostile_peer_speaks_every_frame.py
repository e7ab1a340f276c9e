#!/usr/bin/env python3
"""A peer with the keys of a host sends a link everything that QUIC and the link's frames allow: every frame with extreme values, malformed,
endless, and unassigned ones. Meanwhile an honest peer exchanges the three topics of the README with the same link."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import time
from typing import Iterator

import kit
from kit import quic, wire
from kit.wire import v

MB = 1 << 20
TOP = (1 << 62) - 1
# Honest flows alone, then during each of the waves.
ALONE_S = 5.0
WAVE_S = 1.2
# `peers: memory` of the hostile peer, and what docs/wire/link.md grants it in addition: partial messages by their full length,
# announcements, fragments for parity; the equations of one fountain at a time, at most 2.4 kB for each of 56,403 symbols; and the
# memory of the process itself.
SHARED = 64 * MB
BOUNDS = (128 + 9 + 4 + 130) * MB
OWN = 24 * MB
GIVEN_BACK_WITHIN_S = 5
# Next to a Python process that occupies one processor.
LEAST_OF_ALONE = 0.9
MORE_P99_MS = 25

# Symbols of a large fountain's messages. The allocator keeps about 2 kB of each after they are freed.
LARGE = 6_000

HONEST = {"/scan": ("robot", 20, 4250), "/camera": ("robot", 5, 50_000), "/cmd_vel": ("base", 20, 100)}


def processor_s(program: kit.Program) -> float:
    fields = open(f"/proc/{program.pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Waves:
    """Each method yields datagrams of frames to send, endlessly."""

    def __init__(self, peer: quic.Peer) -> None:
        self.peer = peer
        self.random = random.Random(4)
        self.first = 0

    def topics(self, count: int, **more: object) -> range:
        """Announces topics that no earlier wave announced."""
        self.first += count
        for topic in range(self.first - count, self.first):
            for frame in wire.announce(topic, wire.announcement(f"/t/{topic}", "a/B", **more)):
                self.peer.send(frame)
        self.peer.serve(0.3)
        return range(self.first - count, self.first)

    def greetings(self) -> Iterator[list[bytes]]:
        """Hosts with other names, endless sessions, and values above their limits."""
        n = 0
        while True:
            n += 1
            if n % 2:
                self.peer.session = self.random.getrandbits(32) | 1
            name = ("\u00e9" * 32 if n % 3 else "x" * 64).encode()
            head = wire.struct.pack("<QIB", self.random.getrandbits(64), self.peer.theirs, n % 2)
            yield [b"\x01RPWK" + head + v(0xFFFFFFFF) + v(0xFFFFFFFF) + v(len(name)) + name] + [b"\x02"] * 200

    def announcements(self) -> Iterator[list[bytes]]:
        """Definitions of 256 KiB on endless topics, most of them never completed."""
        whole = wire.announcement("/t/long", "a/B", definition="x" * (256 << 10), depth=TOP, priority=127)
        n = 0
        while True:
            n += 1
            piece = self.random.randrange(0, len(whole) - 1100)
            yield [b"\x03" + v(n % 5000 + 10_000) + v(n % 7 + 1) + v(len(whole)) + v(piece) + b"\x01" + v(1100) + whole[piece:piece + 1100]]
            for frame in wire.announce(5000 + n % 3000, wire.announcement(f"/t/many-{n}", "y" * 256, definition="z" * 700), n):
                yield [frame]

    def announcements_of_flows(self) -> Iterator[list[bytes]]:
        """Topics of sources that do not exist, for hosts that do not exist."""
        n = 0
        while True:
            n += 1
            hosts = ["base"] + [f"h{n}-{i}" for i in range(61)]
            for topic in ("/t/x", "?greeting", f"/t/flow-{n}"):
                body = wire.announcement(topic, "a/B", relayed=wire.via(f"source-{n}", n, hosts))
                yield wire.announce(n % 20_000, body, n // 20_000 + 1) + [wire.route(TOP, 16, (1 << 62) - 1), wire.data(n % 20_000, n, 4, [], 0, b"abcd")]

    def answers_about_topics(self) -> Iterator[list[bytes]]:
        """Declares each topic of the link unknown, incomplete or refused, again and again."""
        n = 0
        while True:
            n += 1
            yield [b"\x04" + v(t) + v(e) + bytes([state]) + v(missing)
                   for t in range(8) for e, state, missing in ((0, 3, 0), (1, 0, n % 50), (1, 2, 0), (2, 1, 0xFFFFFFFF), (1, 1, 0))]

    def beginnings(self) -> Iterator[list[bytes]]:
        """Fragments of 64 MiB messages that are never completed, with numbers that jump."""
        topics = self.topics(60, depth=8)
        number = 0
        while True:
            number += 1
            for topic in topics:
                yield [wire.data(topic, number * (1 << 18), 100, [64 * MB - 200], 64 * MB - 200 - 300, bytes(50)) for _ in range(2)] + [
                    wire.more(topic, number * (1 << 18) + 1, 0x7FFFFFFF, bytes(900))]

    def partial_reliable(self) -> Iterator[list[bytes]]:
        """Every second piece of thousands of reliable messages: as many gaps as possible."""
        topics = self.topics(30, depth=1024, reliability=1, ordering=2)
        place = 0
        while True:
            place += 256
            for topic in topics:
                yield [wire.data(topic, (place // 256) % 1024, 0, [1 * MB], (place * 7 + 128 * i) % (1 * MB - 70), bytes(64), acknowledge=True)
                       for i in range(10)]

    def parity(self) -> Iterator[list[bytes]]:
        """Fragments and parities that do not match, each with 32 unknowns to solve."""
        topics = self.topics(100, reliability=2)
        first = 0
        while True:
            first += 16
            for topic in topics:
                fragment = wire.data(topic, first, 0, [900], 0, bytes(100))
                yield [b"\x13" + v(topic) + v(first) + v(len(fragment)) + fragment,
                       b"\x14" + v(topic) + v(first) + b"\x20\x07" + v(1000) + self.random.randbytes(1000)]

    def fountains(self) -> Iterator[list[bytes]]:
        """Messages as fountains: small ones that can be decoded at once, and large ones with tiny symbols."""
        topics = self.topics(20, reliability=3, depth=1024)
        number = 0
        while True:
            number += 1
            for topic in topics:
                def object_(length: int, symbol: int) -> bytes:
                    return b"\x48" + v(topic) + v(number) + bytes(8) + v(symbol) + v(length) + b"\x00"

                frames = [object_(64 * 10, 64)]
                frames += [b"\x4b" + v(topic) + v(number) + v((1 << 23) - 1 - i) + v(64) + self.random.randbytes(64) for i in range(12)]
                yield frames

    def large_fountains(self) -> Iterator[list[bytes]]:
        """Messages of thousands of tiny repair symbols, which are decoded once all have arrived."""
        (topic,) = self.topics(1, reliability=3, depth=4)
        number = id_ = 0
        length = 64 * LARGE
        while True:
            number += 1
            yield [b"\x48" + v(topic) + v(number) + bytes(8) + v(64) + v(length) + b"\x00"]
            for _ in range((LARGE + 20) // 15 + 1):
                id_ += 15
                yield [b"\x4a" + v(topic) + v(number) + v(60_000 + (id_ + i) % 8_000_000) + v(64) + self.random.randbytes(64) for i in range(15)]

    def acknowledgements(self) -> Iterator[list[bytes]]:
        """Acknowledgements, receipts and counts for data that was never sent."""
        n = 0
        while True:
            n += 1
            t = n % 6
            refused = [(TOP - i, 200 + i % 50) for i in range(16)]
            yield [wire.acknowledgement(t, TOP, TOP, held=TOP, top=TOP, refused=refused, runs=[(TOP, TOP)], partial=[(TOP, [(TOP, 1)])][:n % 2])]
            yield [wire.acknowledgement(t, n, 0, runs=[(1, 1)] * 200, partial=[(i, [(0, 1), (1, 1)]) for i in range(60)])]
            yield [b"\x08" + v(TOP) + v(TOP) + v(TOP), b"\x12" + v(TOP - n) + v(0) + v(TOP), b"\x11" + v(t) + v(TOP), b"\x05" + v(t) + v(TOP)]

    def wishes(self) -> Iterator[list[bytes]]:
        """Each frame requests an answer."""
        while True:
            yield [b"\x07"] * 500
            yield [wire.hello(self.peer.name, 0, True)]

    def counts(self) -> Iterator[list[bytes]]:
        """Reports whose sums overflow."""
        while True:
            yield [b"\x06" + v(t << 1 | who) + v(TOP) + v(TOP) + v(27) + b"".join(bytes([r]) + v(TOP) for r in range(1, 28))
                   for t in range(2) for who in (0, 1)]
            yield [b"\x06" + v(self.random.getrandbits(32) << 1) + v(TOP) + v(TOP) + v(8) + (b"\x14" + v(TOP)) * 8 for _ in range(8)]

    def air(self) -> Iterator[list[bytes]]:
        """Claims, clocks, rhythms and deadlines with extreme values."""
        n = 0
        while True:
            n += 1
            hosts = [self.random.getrandbits(32) for _ in range(8)]
            yield [wire.clock(TOP if n % 2 else 0, (1 << 60) if n % 3 else -(1 << 60)), wire.claims([(h, 127, 255, n % 256) for h in hosts]),
                   wire.rhythms([(h, 127, 0, TOP, 0xFFFFFFFF * (n % 2), 0xFFFFFFFF, 0xFFFFFFFF) for h in hosts])]
            yield [b"\x23" + v(n % 5) + v(TOP) + v(TOP * (n % 2)) + v(TOP)] * 40

    def ways(self) -> Iterator[list[bytes]]:
        """Short routes to every host, and to hosts that do not exist."""
        n = 0
        while True:
            n += 1
            hosts = [wire.host_id(h) for h in ("robot", "base")] + [self.random.getrandbits(64) for _ in range(54)]
            yield [wire.ways(n, n, n, n, [(h, TOP - (n % 3), n % 2, n % 256) for h in hosts])]
            yield [b"\x39" + v(t) + v(TOP) for t in range(40)] + [b"\x3b" + v(TOP) + b"\x10" + v(TOP) + v(0xFFFFFFFF)] * 20

    def malformed(self) -> Iterator[list[bytes]]:
        """Frames of all other waves, changed or truncated at any position."""
        def steady() -> Iterator[list[bytes]]:
            many = [wave(self) for wave in (Waves.announcements, Waves.answers_about_topics, Waves.acknowledgements, Waves.counts, Waves.air,
                                            Waves.ways, Waves.announcements_of_flows, Waves.greetings)]
            while True:
                for wave in many:
                    yield next(wave)

        for frames in steady():
            bytes_ = bytearray(b"".join(frames))
            for _ in range(self.random.randrange(1, 4)):
                bytes_[self.random.randrange(len(bytes_))] = self.random.getrandbits(8)
            yield [bytes(bytes_[: self.random.randrange(1, len(bytes_) + 1)])]


# What QUIC forbids, or what is expensive for the receiver: frames of RFC 9000, section 19.
STREAMS = [bytes([0x0B]) + v(4 * i) + v(1000) + bytes(1000) for i in range(40)]
FORBIDDEN = {
    "streams": STREAMS,
    "resets": [b"\x04" + v(4 * i) + v(0) + v(TOP) for i in range(40)],
    "stops": [b"\x05" + v(4 * i + 1) + v(0) for i in range(40)],
    "far crypto": [b"\x06" + v(60_000 * i) + v(1000) + bytes(1000) for i in range(1, 40)],
    "limits": [b"\x10" + v(TOP) + b"\x12" + v(1 << 60) + b"\x13" + v(1 << 60) + b"\x11" + v(0) + v(TOP)],
    "ids": [b"\x18" + v(i) + v(0) + b"\x08" + os.urandom(8) + os.urandom(16) for i in range(1, 200)],
    "retired ids": [b"\x19" + v(i) for i in range(200)],
    "challenges": [b"\x1a" + os.urandom(8) for _ in range(400)],
    "acknowledgements of nothing": [b"\x02" + v(TOP - 1) + v(0) + v(0) + v(TOP - 2)],
    "tokens": [b"\x07" + v(900) + bytes(900)],
    "unknown": [b"\x3f" + bytes(20)],
}


class Attack:
    def __init__(self, stage: kit.Stage, ropewalk: object) -> None:
        self.stage, self.ropewalk = stage, ropewalk
        self.ports = {name: kit.free_port() for name in ("base", "robot", "mallory")}
        self.most = [0, 0]

        def keys(*arguments: str) -> None:
            subprocess.run([ropewalk, "keys", *arguments], cwd=stage.folder, check=True, stdout=subprocess.DEVNULL)

        keys("team", "rovers")
        for host in self.ports:
            keys("host", host, "--team", "rovers")
        self.base = self.daemon("base", f"""
  - {{name: robot, address: '127.0.0.1:{self.ports["robot"]}'}}
  - {{name: mallory, address: '127.0.0.1:{self.ports["mallory"]}', memory: 64MiB, allow: {{publish: ['/t/*'], subscribe: ['/cmd_vel'], air: false}}}}
topics:
  - {{name: /scan, direction: in}}
  - {{name: /camera, direction: in}}
  - {{name: '/t/*', direction: in}}
  - {{name: /cmd_vel, priority: 120, direction: out}}
""")
        self.robot = self.daemon("robot", f"""
  - {{name: base, address: '127.0.0.1:{self.ports["base"]}'}}
topics:
  - {{name: /scan, priority: 100, direction: out, depth: 2, deadline: 100ms}}
  - {{name: /camera, priority: 10, direction: out, rate_limit: 5Hz}}
  - {{name: /cmd_vel, priority: 120, direction: in}}
""")
        for topic, (host, rate, size) in HONEST.items():
            stage.start(f"pub{topic.replace('/', '-')}", ropewalk, "topic", "pub", topic, "std_msgs/String", "data: " + "x" * size,
                        "--rate", rate, "--wait", 30, env=stage.bus(host))
        self.peer = quic.Peer("mallory", ("127.0.0.1", self.ports["mallory"]), ("127.0.0.1", self.ports["base"]),
                              keys=stage.folder / "rovers/hosts/mallory")

    def daemon(self, host: str, rest: str) -> kit.Program:
        file = self.stage.write(f"{host}.yaml", f"""
host: {host}
keys: rovers/hosts/{host}
radio: {{bind: '127.0.0.1:{self.ports[host]}', rate: auto}}
peers:{rest}""")
        return self.stage.start(host, self.ropewalk, "link", file, "--json", "--every", "0.5", env=self.stage.bus(host))

    def figures(self, since: float) -> dict:
        """Returns how much of the honest topics arrived since `since`, by the state's own clock, and the delay of the slowest hundredth."""
        found = {}
        for topic, (host, rate, _) in HONEST.items():
            receiver = self.base if host == "robot" else self.robot
            came = [(s["uptime_clock_s"], t) for s in receiver.json() if s["uptime_clock_s"] > since
                    for t in s["received"] if t["name"] == topic and t["peer"] == host]
            if len(came) < 2:
                found[topic] = {"per_s": 0.0, "p99_ms": None, "median_p99_ms": None}
                continue
            seconds = came[-1][0] - came[0][0]
            delays = {t["recent"]["delay_ms"]["p99"] for _, t in came if t["recent"]}
            found[topic] = {"per_s": round((came[-1][1]["delivered"] - came[0][1]["delivered"]) / seconds, 2),
                            "p99_ms": round(max(delays), 1) if delays else None,
                            "median_p99_ms": round(statistics.median(delays), 1) if delays else None}
        return found

    def look(self) -> None:
        now = self.base.memory()
        self.most = [max(a, b) for a, b in zip(self.most, now)]

    def wave(self, name: str) -> dict:
        """Sends a wave and returns figures about it. Each begins with a new session, about which the link knows nothing."""
        self.peer.session, self.peer.number, self.peer.up = self.waves.random.getrandbits(32) | 1, 0, False
        if not self.peer.come_up(8):
            return {"up": False}
        self.base.forget_peak()
        self.peer.ended = ""
        processor, began = processor_s(self.base), time.monotonic()
        sent = looked = 0
        for frames in getattr(Waves, name)(self.waves):
            self.peer.send(*frames)
            sent += 1
            if sent % 16 == 0:
                self.peer.take(0)
            now = time.monotonic()
            if now > looked + 0.1:
                looked = now
                self.look()
                self.peer.serve(0)
            if now > began + WAVE_S or not self.peer.connected:
                break
        self.peer.serve(0.1)
        took = time.monotonic() - began
        return {"datagrams_per_s": round(sent / took), "peak_mb": round(self.base.peak() / MB), "processor": round((processor_s(self.base) - processor) / took, 2),
                **({"ended": self.peer.ended} if self.peer.ended else {})}

    def forbidden(self) -> dict:
        """Sends what QUIC forbids, and malformed packets. Returns how each connection ended."""
        ends = {}
        for name, frames in FORBIDDEN.items():
            # Open a new connection: some ends go unnoticed, since the link then knows invalid connection IDs.
            self.peer.dial()
            self.peer.up = False
            if not self.peer.come_up(8):
                ends[name] = "never up"
                continue
            self.peer.ended = ""
            for frame in frames:
                self.peer.inject(frame)
            self.peer.serve(0.2)
            ends[name] = self.peer.ended or "held"
            self.look()
        self.peer.dial()
        self.peer.up = False
        self.peer.come_up(8)
        for number in range(3000):
            self.peer.raw(quic.part(number & 0xFFFF, 0, 4, bytes(360)))
            if number % 10 == 0:
                self.peer.raw(os.urandom(60_000))
        for number in range(2000):
            self.peer.give(quic.piece(number, 15_741, 0, bytes(1000)))
            self.peer.give(b"\xc4")
            if number % 50 == 0:
                self.peer.take(0)
        self.peer.serve(0.2)
        self.look()
        return ends

    def many_peers(self) -> int:
        """Opens parallel connections from one host. Returns how many of 40 succeeded."""
        class Other(quic.Peer):
            pass

        others = [Other("mallory", ("127.0.0.1", 0), ("127.0.0.1", self.ports["base"]), keys=self.peer.keys) for _ in range(40)]
        end = time.monotonic() + 2.0
        made = set()
        while time.monotonic() < end:
            for i, other in enumerate(others):
                other.take(0)
                if other.connected:
                    made.add(i)
            self.look()
        for other in others:
            other.socket.close()
        return len(made)

    def run(self) -> None:
        kit.wait_for("the honest link", lambda: all(any(p["up"] for p in s[-1]["peers"] if p["name"] != "mallory") and len(s[-1]["received"])
                                                     for s in (self.base.json(), self.robot.json()) if s) and self.robot.json())
        if not self.peer.come_up():
            kit.verdict({}, f"the hostile peer never came up: {self.peer.ended} {self.base.log()[-500:]}")
        clock = time.clock_gettime
        self.peer.serve(1)
        alone_from = clock(time.CLOCK_MONOTONIC)
        self.peer.serve(ALONE_S)
        alone = self.figures(alone_from)
        before = self.base.memory()
        busy = processor_s(self.base)
        self.peer.serve(1)
        figures_alone = round(processor_s(self.base) - busy, 2)
        descriptors = self.base.descriptors()

        beside_from = clock(time.CLOCK_MONOTONIC)
        self.waves = Waves(self.peer)
        names = [n for n, f in vars(Waves).items() if n not in ("topics", "__init__") and callable(f)]
        waves = {}
        broken = []
        for name in names:
            waves[name] = self.wave(name)
            if not self.base.is_alive():
                broken.append(f"the link ended in '{name}': {self.base.log()[-600:]}")
                kit.verdict({"waves": waves}, *broken)
        ends = self.forbidden()
        many_peers = self.many_peers()
        if not self.base.is_alive():
            kit.verdict({"waves": waves, "ends": ends}, f"the link ended: {self.base.log()[-600:]}")
        beside = self.figures(beside_from)
        most_descriptors = self.base.descriptors()
        self.peer.socket.close()
        ended = time.monotonic()
        left = self.base.memory()
        while sum(left) > sum(before) + OWN and time.monotonic() < ended + 20:
            time.sleep(0.2)
            left = self.base.memory()
        took = time.monotonic() - ended

        figures = {"alone": alone, "processor_alone": figures_alone, "beside": beside, "waves": waves, "ends": ends, "connections_of_40": many_peers,
                   "before_mb": [round(b / MB, 1) for b in before], "most_mb": [round(b / MB, 1) for b in self.most],
                   "left_mb": [round(b / MB, 1) for b in left], "given_back_s": round(took, 1), "descriptors": [descriptors, most_descriptors]}
        for topic in HONEST:
            if beside[topic]["per_s"] < LEAST_OF_ALONE * alone[topic]["per_s"]:
                broken.append(f"{topic}: {beside[topic]['per_s']} messages a second instead of {alone[topic]['per_s']}")
            delays = [f[topic]["median_p99_ms"] for f in (alone, beside)]
            if None in delays or delays[1] > delays[0] + MORE_P99_MS:
                broken.append(f"{topic}: the slowest hundredth takes {delays[1]} ms instead of {delays[0]} ms")
        if self.most[0] > before[0] + BOUNDS + OWN:
            broken.append(f"it made the link use {(self.most[0] - before[0]) / MB:.0f} MB")
        if self.most[1] > before[1] + SHARED + OWN:
            broken.append(f"it made the link use {(self.most[1] - before[1]) / MB:.0f} MB of shared memory")
        if took > GIVEN_BACK_WITHIN_S:
            broken.append(f"{(sum(left) - sum(before)) / MB:.0f} MB were not released within {GIVEN_BACK_WITHIN_S} s of its end")
        kit.verdict(figures, *broken)


def main() -> None:
    kit.need_root()  # Required to read another process's memfds.
    ropewalk = (kit.arguments().binary / "ropewalk").resolve()
    with kit.stage() as stage:
        Attack(stage, ropewalk).run()


if __name__ == "__main__":
    main()
