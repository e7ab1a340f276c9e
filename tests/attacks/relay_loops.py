#!/usr/bin/env python3
"""Four hosts in a ring relay for each other. A fifth claims to two of them that it has a short route to every host, and sends what it is
given to forward back to its sender and to the other neighbour, with the maximum number of hops. Nothing may circulate, and the hosts'
messages for each other must arrive."""

from __future__ import annotations

import subprocess
import time

import kit
from kit import wire
from kit.relay import BESIDE, Relay, Side
from kit.wire import v

RING = ["a", "b", "c", "d"]
RATE = 20
SECONDS = 6.0
# Additional forwarded datagrams per message: each host may forward once to each neighbour.
MOST_FORWARDED = 2 * len(RING)
# Minimum share of the messages that arrive without the liar.
LEAST = 0.9
SETTLE_S = 7.0


def main() -> None:
    ropewalk = (kit.arguments().binary / "ropewalk").resolve()
    with kit.stage() as stage:
        def keys(*arguments: str) -> None:
            subprocess.run([ropewalk, "keys", *arguments], cwd=stage.folder, check=True, stdout=subprocess.DEVNULL)

        keys("team", "rovers")
        for host in [*RING, "mallory"]:
            keys("host", host, "--team", "rovers")
        ports = {host: kit.free_port() for host in [*RING, "to-a", "to-c"]}
        daemons: dict[str, kit.Program] = {}
        for i, host in enumerate(RING):
            near = [RING[i - 1], RING[(i + 1) % len(RING)]]
            peers = [f"{{name: {n}, address: '127.0.0.1:{ports[n]}', relay: true}}" for n in near]
            if f"to-{host}" in ports:
                peers.append(f"{{name: mallory, address: '127.0.0.1:{ports['to-' + host]}', relay: true, allow: {{}}}}")
            peers += [f"{{name: {n}}}" for n in RING if n != host and n not in near]
            topics = "\n".join(f"  - {{name: /scan_{n}, priority: 100, direction: {'out' if n == host else 'in'}, depth: 8}}" for n in RING)
            listed = "\n".join(f"  - {p}" for p in peers)
            file = stage.write(f"{host}.yaml", f"""
host: {host}
keys: rovers/hosts/{host}
radio: {{bind: '127.0.0.1:{ports[host]}', rate: 54Mbit/s}}
relay: true
peers:
{listed}
topics:
{topics}
""")
            daemons[host] = stage.start(host, ropewalk, "link", file, "--json", "--every", "0.2", env=stage.bus(host))

        def state(host: str) -> dict:
            return daemons[host].json()[-1]

        kit.wait_for("the ring", lambda: all(d.json() and len(state(h)["sealing"]["keys"]) >= 1 and
                                             sum(p["up"] for p in state(h)["peers"]) >= 2 for h, d in daemons.items()), 40)
        # Sender and receiver: across the ring, both ways, and next to each other.
        flows = {("a", "c"), ("c", "a"), ("b", "d"), ("a", "b")}
        echoes = {(to, source): stage.start(f"echo-{to}-{source}", ropewalk, "topic", "echo", f"/scan_{source}", "--wait", 200, env=stage.bus(to))
                  for source, to in flows}
        turns = iter(range(1 << 30))
        relay: Relay | None = None

        def serve(seconds: float) -> None:
            if relay is None:
                time.sleep(seconds)
            else:
                relay.serve(seconds)

        def lines() -> dict[tuple[str, str], int]:
            return {key: sum(line.startswith("data:") for line in e.lines()) for key, e in echoes.items()}

        def measure(seconds: float) -> dict:
            """Returns the share of each flow that arrived, and the number of messages and datagrams sent per published message."""
            serve(0.5)
            before = {h: state(h) for h in RING}
            heard = lines()
            pubs = [stage.start(f"pub-{next(turns)}", ropewalk, "topic", "pub", f"/scan_{host}", "std_msgs/String", f"data: of-{host}", "--rate", RATE, "-n",
                                round(RATE * seconds), "--wait", 30, env=stage.bus(host)) for host in ("a", "b", "c")]
            while any(p.is_alive() for p in pubs):
                serve(0.1)
            serve(0.7)
            after = {h: state(h) for h in RING}
            now = lines()
            count = RATE * seconds
            return {
                "share": {f"{source}>{to}": round((now[to, source] - heard[to, source]) / count, 3) for to, source in echoes},
                "forwarded_a_message": round(sum(after[h]["relay"]["forwarded"] - before[h]["relay"]["forwarded"] for h in RING) / (3 * count), 2),
                "datagrams_a_message": round(sum(after[h]["radio"]["datagrams"] - before[h]["radio"]["datagrams"] for h in RING) / (3 * count), 1),
            }

        measure(1.0)
        alone = measure(3.0)
        relay = Relay("mallory", stage.folder / "rovers/hosts/mallory",
                      {host: (("127.0.0.1", ports[f"to-{host}"]), ("127.0.0.1", ports[host])) for host in ("a", "c")})
        everybody = [wire.host_id(h) for h in RING]
        relay.haste = 0.03
        relay.lies = lambda side: [(h, relay.counts[h], 1, 1) for h in everybody if h != wire.host_id(side.host) and h in relay.counts]
        numbers: dict[tuple[int, int], int] = {}
        looped = 0

        def loop(side: Side, kind: int, frame: bytes) -> list[bytes]:
            """Forwards to the other side, back to the sender, and once more to the other side, with all hops restored."""
            nonlocal looped
            if kind & 0xF8 != 0x40 or frame[0] != 0x3A:
                return [frame]
            _, at = wire.read_v(frame, 1)
            fresh = frame[:at] + b"\x10" + frame[at + 1 :]
            _, end = wire.read_v(fresh, at + 1)
            topic, at_number = wire.read_v(fresh, end + 1)
            _, rest = wire.read_v(fresh, at_number)
            for to in relay.sides:
                key = (id(to), topic)
                for _ in range(3):
                    numbers[key] = numbers.get(key, -1) + 1
                    to.peer.send(fresh[:end] + fresh[end : end + 1] + v(topic + BESIDE) + v(numbers[key]) + fresh[rest:])
                    looped += 1
            return [fresh]

        relay.change = loop
        kit.wait_for("the liar's links", lambda: (serve(0.1), all(s.peer.up for s in relay.sides))[1])
        announced = 0

        def announce() -> None:
            """Announces what passes to both sides as available from the liar."""
            nonlocal announced
            every = [frame for frames in relay.announced.values() for frame in frames]
            for frame in every[announced:]:
                for to in relay.sides:
                    to.peer.send(*relay.again(frame))
            announced = len(every)

        end = time.monotonic() + SETTLE_S
        first = measure(2.0)
        while time.monotonic() < end:
            serve(0.3)
            announce()
        announce()
        beside = measure(SECONDS)
        low = {flow: share for flow, share in beside["share"].items() if share < LEAST * min(1, alone["share"][flow])}
        ways = {h: {w["host"]: w["over"] for w in state(h)["ways"]} for h in RING}
        figures = {"alone": alone, "first": first, "beside": beside, "looped": looped, "ways": ways,
                   "passed": {h: len(f) for h, f in relay.recorded.items()}}
        broken = [f"the link of {h} ended: {d.log()[-300:]}" for h, d in daemons.items() if not d.is_alive()]
        if beside["forwarded_a_message"] > alone["forwarded_a_message"] + MOST_FORWARDED:
            broken.append(f"{beside['forwarded_a_message']} messages are forwarded per message, {alone['forwarded_a_message']} without the liar")
        if low:
            broken.append(f"shares of the hosts' messages that arrived: {low}")
        more = {flow: share for flow, share in beside["share"].items() if share > 1.01}
        if more:
            broken.append(f"messages arrived more than once: {more}")
    kit.verdict(figures, *broken)


if __name__ == "__main__":
    main()
