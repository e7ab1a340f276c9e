#!/usr/bin/env python3
"""A base with thirty robots: how much of each robot's topics arrives, compared to a single robot, and what the hub's daemon
uses for it."""

import json
import time

import kit
import rig

ROBOTS = 30
# Scans of 3 kB at 4 Hz and images of 20 kB at 1 Hz from each robot, commands of 60 B at 5 Hz to each: 8 Mbit/s with thirty.
RATES = {"/scan": (3000, 4), "/camera": (20_000, 1), "/cmd_vel": (60, 5)}


def publish(stage: kit.Stage, ropewalk: object, host: str, *topics: str) -> None:
    for topic in topics:
        size, rate = RATES[topic]
        stage.start(f"pub-{host}{topic.replace('/', '-')}", ropewalk, "topic", "pub", topic, "std_msgs/String",
                    f"data: {'x' * size}", "--rate", rate, env=stage.bus(host))


def newest(program: kit.Program) -> dict:
    """Returns the last state that it printed."""
    with program.out.open("rb") as out:
        out.seek(max(0, out.seek(0, 2) - (1 << 19)))
        whole = out.read().split(b"\n")[:-1]
    return json.loads(whole[-1]) if whole and whole[-1].startswith(b"{") else {}


def counts(hub: list[dict], robots: dict[str, list[dict]], moment: float) -> dict[str, tuple[float, float]]:
    """Returns messages offered and delivered until a moment, by topic and robot."""
    found = {}
    for name, robot in robots.items():
        for topic in ("/scan", "/camera"):
            found[f"{topic} {name}"] = (rig.count_at(robot, moment, "sent", "offered", topic),
                                        rig.count_at(hub, moment, "received", "delivered", topic, name))
        found[f"/cmd_vel {name}"] = (rig.count_at(hub, moment, "sent", "offered", "/cmd_vel", name),
                                     rig.count_at(robot, moment, "received", "delivered", "/cmd_vel"))
    return found


def shares(before: dict, after: dict) -> dict[str, float]:
    """Returns by topic: the share that arrived from all robots, and the lowest share of one robot."""
    result = {}
    for topic in rig.TOPICS:
        of = [(after[k][0] - before[k][0], after[k][1] - before[k][1]) for k in after if k.startswith(f"{topic} ") and k in before]
        offered, delivered = sum(o for o, _ in of), sum(d for _, d in of)
        result[topic] = round(min(1.0, (delivered + 1) / offered), 3) if offered else 0.0
        result[f"least of {topic}"] = round(min((min(1.0, (d + 1) / o) for o, d in of if o), default=0.0), 3)
        result[f"robots with {topic}"] = sum(d > 0 for _, d in of)
    return result


def attempt(ropewalk: object, count: int, seconds: float) -> dict:
    names = [f"robot{i:02}" for i in range(count)]
    with rig.Spaces("base", *names) as spaces, kit.stage() as stage:
        rig.switch(spaces, base="10.8.0.1", **{name: f"10.8.0.{10 + i}" for i, name in enumerate(names)})
        rig.keys(stage, ropewalk, "base", *names)

        def start(host: str, peers: list[tuple[str, str, str]], ways: tuple) -> kit.Program:
            listed = "".join(f"  - {{name: {p}, address: '{a}:7400'{more}}}\n" for p, a, more in peers)
            file = stage.write(f"{host}.yaml", f"host: {host}\nkeys: rovers/hosts/{host}\nradio: {rig.QUIC % '0.0.0.0:7400'}\n"
                               f"peers:\n{listed}{rig.OF_README % ways}")
            return stage.start(f"link-{host}", *spaces.command(host, ropewalk, "link", file, "--json", "--every", "0.25"),
                               env=stage.bus(host))

        for index, name in enumerate(names):
            publish(stage, ropewalk, name, "/scan", "/camera")
        for name in names:
            # In its robot's namespace.
            stage.start(f"pub-base-{name}", ropewalk, "topic", "pub", f"/{name}/cmd_vel", "std_msgs/String",
                        f"data: {'x' * RATES['/cmd_vel'][0]}", "--rate", RATES["/cmd_vel"][1], env=stage.bus("base"))
        peers = [(name, f"10.8.0.{10 + i}", ", namespace: '/{peer}'") for i, name in enumerate(names)]
        hub = start("base", peers, ("in", "in", "out"))
        robots = {name: start(name, [("base", "10.8.0.1", "")], ("out", "out", "in")) for name in names}
        began = time.monotonic()

        def are_up() -> bool:
            listed = newest(hub).get("peers", [])
            return len(listed) == count and all(p["up"] for p in listed)

        while not are_up():
            if time.monotonic() > began + 40:
                return {"up_s": None, "without": {}, "with": {}, "says": hub.log()[-500:]}
            time.sleep(0.2)
        figures = {"up_s": round(time.monotonic() - began, 2)}
        time.sleep(3)
        used, at = ticks(hub), time.monotonic()
        time.sleep(seconds)
        now = time.monotonic()
        took, used = now - at, ticks(hub) - used
        time.sleep(0.6)
        states = {name: program.json() for name, program in robots.items()}
        ends = [counts(hub.json(), states, moment) for moment in (at, now)]
        figures["shares"] = shares(*ends)
        figures["hub"] = {"processor": round(used / 100 / took, 3), "peak_mb": round(hub.peak() / 1e6, 1),
                          "descriptors": hub.descriptors()}
        return figures


def ticks(program: kit.Program) -> int:
    """Returns the processor time in hundredths of a second."""
    fields = open(f"/proc/{program.pid}/stat").read().rsplit(") ", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def main() -> None:
    kit.need_root()
    options = kit.arguments(seconds={"type": float, "default": 8.0, "help": "seconds to measure"},
                            robots={"type": int, "default": ROBOTS, "help": "number of robots"})
    ropewalk = (options.binary / "ropewalk").resolve()
    figures = {"one": attempt(ropewalk, 1, options.seconds / 2)}
    for _ in range(2):
        figures["many"] = attempt(ropewalk, options.robots, options.seconds)
        broken = broken_of(figures, options.robots)
        if not broken:
            break
    kit.verdict(figures, *broken)


def broken_of(figures: dict, robots: int) -> list[str]:
    if figures["many"]["up_s"] is None:
        return ["not all robots come up"]
    (one, many) = (figures[name].get("shares", {}) for name in ("one", "many"))
    short = [f"{topic}: {many[topic]}, of one robot {one.get(topic)}" for topic in rig.TOPICS
             if many[topic] < rig.ENOUGH * max(0.9, one.get(topic, 0.0))]
    return short + [f"{topic}: only {many[f'robots with {topic}']} robots" for topic in rig.TOPICS
                    if many[f"robots with {topic}"] < robots]


if __name__ == "__main__":
    main()
