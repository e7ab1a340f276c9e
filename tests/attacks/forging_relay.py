#!/usr/bin/env python3
"""A relay that robots let forward for others, with no rights of its own (`relay: true, allow: {}`), impersonates a base that is not running.
Then it alters, repeats and swaps what the base sends, claims that topics are the base's, and tries to read."""

from __future__ import annotations

import os
import struct
import subprocess
import time

import kit
from kit import wire
from kit.relay import BESIDE, Relay, Side
from kit.wire import v

MD5 = bytes.fromhex("992ce8a1687cec8c8bd883ec73ca41d1")
RATE = 20
SECONDS = 6.0
# Share of the traffic over an honest relay; commands are best effort, and a route change may lose some.
LEAST = 0.9
# The relay claims message numbers so far ahead that the genuine ones never reach them, but not so far that it makes the genuine ones
# too old to be accepted: a relay that withholds traffic does not need a forgery for that.
AHEAD = 200
SECRET = "what nobody but the base is to know "


def text(what: str) -> bytes:
    return struct.pack("<I", len(what)) + what.encode()


def whole(frame: bytes) -> bool:
    """Whether a data frame follows the route."""
    _, at = wire.read_v(frame, 1)
    _, end = wire.read_v(frame, at + 1)
    return frame[0] == 0x3A and frame[end] & 0xF8 == 0x40


def announced(topic: str, *, relayed: bytes = b"", reliability: int = 0, type_name: str = "std_msgs/String") -> bytes:
    return wire.announcement(topic, type_name, md5=MD5, definition="string data\n", priority=120, depth=8, reliability=reliability,
                             relayed=relayed)


def forgeries(to: Side, rounds: int) -> int:
    """Sends commands in the base's name to one neighbour, in every form that exists. Returns how many."""
    said = 0
    forms = {
        1000: announced("/cmd_vel", relayed=wire.via("base", 7, ["robot"])),
        1001: announced("/cmd_vel", relayed=wire.via("base", 8, ["base", "robot"]), reliability=1),
        1002: announced("/cmd_vel"),
        1003: announced("/cmd_vel", relayed=wire.via("relay", 9, ["robot"])),
        1004: announced("/cmd_vel", relayed=wire.via("robot", 9, ["robot"])),
        1005: announced("/base/cmd_vel", relayed=wire.via("base", 7, ["robot"])),
    }
    for topic, body in forms.items():
        for frame in wire.announce(topic, body):
            to.peer.send(frame)
    to.peer.serve(0.3)
    for number in range(rounds):
        body = text(f"forged {number}")
        for topic in forms:
            # Plain, as a compressed message (stored LZ4), and as a sealed one.
            envelopes = (None, b"\x01\x00" + struct.pack("<II", len(body), len(body)) + body,
                         b"\x03" + v(1) + v(number + 1) + struct.pack("<H", number & 0xFFFF) + body + os.urandom(16))
            for form, envelope in enumerate(envelopes):
                n = 3 * number + form
                frames = [] if topic == 1002 else [wire.route(n + 1, 8, 1 if topic != 1001 else 2)]
                if envelope is None:
                    frames.append(wire.data(topic, n, len(body), [], 0, body, stamp=time.time_ns(), acknowledge=topic == 1001))
                else:
                    head = b"\x42" + v(topic) + v(n) + struct.pack("<Q", time.time_ns()) + v(0) + v(len(envelope)) + b"\x80"
                    frames.append(head + v(len(envelope)) + envelope)
                to.peer.send(*frames)
                said += 1
        to.peer.serve(0.005)
    return said


def main() -> None:
    ropewalk = (kit.arguments().binary / "ropewalk").resolve()
    with kit.stage() as stage:
        def keys(*arguments: object) -> None:
            subprocess.run([ropewalk, "keys", *map(str, arguments)], cwd=stage.folder, check=True, stdout=subprocess.DEVNULL)

        keys("team", "rovers")
        ports = {}
        for host in ("robot", "base", "relay"):
            keys("host", host, "--team", "rovers")
        for name in ("robot", "base", "to-robot", "to-base"):
            ports[name] = kit.free_port()

        def start(host: str, other: str, topics: str) -> kit.Program:
            file = stage.write(f"{host}.yaml", f"""
host: {host}
keys: rovers/hosts/{host}
radio: {{bind: '127.0.0.1:{ports[host]}', rate: 54Mbit/s}}
peers:
  - {{name: {other}}}
  - {{name: relay, address: '127.0.0.1:{ports["to-" + host]}', relay: true, allow: {{}}}}
topics:
{topics}""")
            return stage.start(host, ropewalk, "link", file, "--json", "--every", "0.2", env=stage.bus(host))

        robot = start("robot", "base", """
  - {name: /cmd_vel, priority: 120, direction: in}
  - {name: /base/cmd_vel, priority: 120, direction: in}
  - {name: /scan, priority: 100, direction: out, depth: 8}
""")
        echoes = [stage.start(f"echo{i}", ropewalk, "topic", "echo", name, "--wait", 100, env=stage.bus("robot"))
                  for i, name in enumerate(("/cmd_vel", "/base/cmd_vel"))]
        relay = Relay("relay", stage.folder / "rovers/hosts/relay", {
            host: (("127.0.0.1", ports[f"to-{host}"]), ("127.0.0.1", ports[host])) for host in ("robot", "base")})
        to_robot, to_base = relay.sides
        base_id = wire.host_id("base")
        # Claimed count of a base that is up.
        count = int(time.time()) << 8
        relay.lies = lambda side: [(base_id, count + int(time.monotonic() * 10), 1, 1)] if side is to_robot and not to_base.count else []
        kit.wait_for("the robot's link", lambda: (relay.serve(0.1), to_robot.peer.up)[1])
        relay.serve(1)
        ways = robot.json()[-1]["ways"]
        said = forgeries(to_robot, 20)
        relay.serve(1)
        taken = sum(line.startswith("data:") for echo in echoes for line in echo.lines())
        sealing = robot.json()[-1]["sealing"]

        base = start("base", "robot", """
  - {name: /cmd_vel, priority: 120, direction: out, depth: 8}
  - {name: /scan, direction: in}
""")

        def agreed() -> bool:
            relay.serve(0.2)
            states = [p.json()[-1] for p in (robot, base) if p.json()]
            return len(states) == 2 and all(s["sealing"]["keys"] for s in states)

        kit.wait_for("keys of robot and base over the relay", agreed, 40)
        scans = stage.start("scans", ropewalk, "topic", "echo", "/scan", "--wait", 100, env=stage.bus("base"))
        counts = iter(range(1 << 30))

        def publish(topic: str, what: str, host: str, seconds: float) -> kit.Program:
            # One publisher per text; each takes a moment.
            return stage.start(f"pub-{next(counts)}", ropewalk, "topic", "pub", topic, "std_msgs/String", f"data: {what}", "--rate", RATE,
                               "-n", round(RATE * seconds), "--wait", 30, env=stage.bus(host))

        def flow(seconds: float) -> dict[str, float]:
            """Returns the shares of commands and scans that arrive."""
            before = [sum(line.startswith("data:") for line in p.lines()) for p in (echoes[0], scans)]
            programs = [publish("/cmd_vel", "genuine", "base", seconds), publish("/scan", SECRET * 40, "robot", seconds)]
            while any(p.is_alive() for p in programs):
                relay.serve(0.1)
            relay.serve(0.5)
            after = [sum(line.startswith("data:") for line in p.lines()) for p in (echoes[0], scans)]
            return {name: round((a - b) / (RATE * seconds), 3) for name, a, b in zip(("/cmd_vel", "/scan"), after, before)}

        flow(1.0)
        honest = flow(2.0)
        tried = {"altered": 0, "renumbered": 0, "repeated": 0, "swapped": 0}

        numbers: dict[tuple[str, int], int] = {}

        def beside_it(side: Side, frame: bytes, number: int | None = None) -> bytes:
            """Replays a message that passed, as if the relay sent it by itself, under another number of its source if there is one."""
            of_source, at = wire.read_v(frame, 1)
            _, end = wire.read_v(frame, at + 1)
            kind = frame[end]
            topic, at_number = wire.read_v(frame, end + 1)
            _, rest = wire.read_v(frame, at_number)
            place = (side.host, topic)
            numbers[place] = numbers.get(place, -1) + 1
            route = frame[:1] + v(of_source if number is None else number) + frame[at:end]
            return route + bytes([kind]) + v(topic + BESIDE) + v(numbers[place]) + frame[rest:]

        def change(side: Side, kind: int, frame: bytes) -> list[bytes]:
            """Returns forgeries of what passes, and of what passed before, to send before and after it."""
            if kind & 0xF8 != 0x40 or frame[0] not in (0x3A, 0x3B):
                return [frame]
            number, _ = wire.read_v(frame, 1)
            old = [f for f in relay.recorded[side.host][-40:-1] if f[0] == 0x3A and whole(f)][:5]
            tried["repeated"] += len(old)
            later = [beside_it(side, f) for f in old]
            # One kind of forgery per message, since an accepted number is not checked again.
            match number % 3:
                case 0:
                    altered = bytearray(beside_it(side, frame, number + AHEAD))
                    altered[-1 - tried["altered"] % 16] ^= 1
                    tried["altered"] += 1
                    return [bytes(altered), frame, *later]
                case 1:
                    tried["renumbered"] += 1
                    return [beside_it(side, frame, number + AHEAD), frame, *later]
                case _:
                    mine = [f for f in relay.recorded[relay.other(side).host][-10:] if f[0] == 0x3A and whole(f)][:1]
                    tried["swapped"] += len(mine)
                    return [*(beside_it(side, f, number + AHEAD) for f in mine), frame, *later]

        relay.change = change
        for side in relay.sides:
            for frame in relay.announced[side.host]:
                relay.other(side).peer.send(*relay.again(frame))
        relay.serve(0.3)
        beside = flow(SECONDS)
        said += forgeries(to_robot, 10)
        relay.change = lambda side, kind, frame: [frame]
        after = flow(2.0)
        lines = [line for echo in echoes for line in echo.lines() if line.startswith("data:")]
        foreign = [line for line in lines if line.strip() not in ("data: genuine", "data: 'genuine'", 'data: "genuine"')]
        foreign += [line for line in scans.lines() if line.startswith("data:") and SECRET not in line]
        published = round(RATE * (1.0 + 2.0 + SECONDS + 2.0))
        more = max(0, len(lines) - published)
        passed = sum(len(f) for host in relay.recorded for f in relay.recorded[host])
        read = sum(SECRET.encode() in f for host in relay.recorded for f in relay.recorded[host])
        dropped = {t["name"]: t["drops"] for t in robot.json()[-1]["received"]}
        figures = {"said_of_a_base_that_is_off": said, "taken": taken, "ways_told": [w["host"] for w in ways], "sealing": sealing, "tried": tried,
                   "foreign": len(foreign), "more_than_published": more, "honest": honest, "beside": beside, "after": after,
                   "passed_bytes": passed, "read": read, "robot_dropped": dropped}
        broken = []
        if taken or foreign:
            broken.append(f"{taken} of {said} forged commands were accepted, and {len(foreign)} others that nobody published: {foreign[:2]}")
        if more:
            broken.append(f"{more} commands arrived more often than they were published")
        if read or not passed:
            broken.append(f"{read} frames of {passed} bytes can be read" if passed else "nothing passed")
        for name, share in (("beside", beside), ("after", after)):
            if min(share.values()) < LEAST * min(1, min(honest.values())):
                broken.append(f"{name} forgeries, {share} of the honest flow arrived, {honest} without")
        if not robot.is_alive() or not base.is_alive():
            broken.append("a link ended")
    kit.verdict(figures, *broken)


if __name__ == "__main__":
    main()
