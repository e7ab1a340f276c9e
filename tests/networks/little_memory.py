#!/usr/bin/env python3
"""A base whose control group limits the daemon to little memory: large messages that do not fit are lost, counted and reported,
small ones arrive as before, and nothing is killed."""

import os
import struct
import time
from pathlib import Path

import kit
import rig

# Limit of the daemon, of which the bus leaves 16 MiB free, and the length of messages that do not fit.
LIMIT = 24 << 20
LARGE = 7_000_000


class Group:
    """A control group with a memory limit, version 2 or 1."""

    def __init__(self, bytes_: int) -> None:
        own = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines())
        name = f"ropewalk-{os.getpid()}"
        root = Path("/sys/fs/cgroup")
        places = [(root / own.get("", "/").lstrip("/") / name, "memory.max", "memory.peak"),
                  (root / "memory" / own.get("memory", "/").lstrip("/") / name, "memory.limit_in_bytes", "memory.max_usage_in_bytes")]
        self.path, self.peak_file = None, ""
        for path, limit, peak in places:
            try:
                path.mkdir()
                if not (path / limit).exists():
                    raise FileNotFoundError(limit)
                (path / limit).write_text(str(bytes_))
            except OSError:
                if path.is_dir():
                    path.rmdir()
                continue
            self.path, self.peak_file = path, peak
            return

    def enter(self) -> None:
        """Must be called by the process to limit."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def peak(self) -> float:
        try:
            return round(int((self.path / self.peak_file).read_text()) / 1e6, 1)
        except OSError:
            return -1.0

    def remove(self) -> None:
        for _ in range(50):
            try:
                return self.path.rmdir()
            except OSError:
                time.sleep(0.1)


def record(path: Path, topic: str, count: int, spacing: float) -> None:
    """Writes a recording (MCAP, ROS 1) with this many large texts."""
    def text(value: str) -> bytes:
        return struct.pack("<I", len(value)) + value.encode()

    def part(kind: int, *parts: bytes) -> bytes:
        return struct.pack("<BQ", kind, sum(map(len, parts))) + b"".join(parts)

    definition = text("string data")
    with path.open("wb") as file:
        file.write(b"\x89MCAP0\r\n" + part(1, text("ros1"), text("")))
        file.write(part(3, struct.pack("<H", 1), text("std_msgs/String"), text("ros1msg"), definition))
        file.write(part(4, struct.pack("<HH", 1, 1), text(topic), text("ros1"), struct.pack("<I", 0)))
        for number in range(count):
            at = int((1 + number * spacing) * 1e9)
            file.write(part(5, struct.pack("<HIQQ", 1, number, at, at), struct.pack("<I", LARGE), b"m" * LARGE))
        file.write(part(15, struct.pack("<I", 0)) + part(2, struct.pack("<QQI", 0, 0, 0)) + b"\x89MCAP0\r\n")


def attempt(ropewalk: object, limit: int, seconds: float) -> dict:
    group = Group(limit)
    if group.path is None:
        kit.cannot_run("cannot create a memory control group here")

    with rig.Spaces("base", "robot") as spaces, kit.stage() as stage:
        address = rig.pair(spaces)
        rig.keys(stage, ropewalk, "base", "robot")
        link = rig.Readme(stage, ropewalk, spaces, rig.QUIC.replace("auto", "unlimited"))
        link.more = "  - {name: /map, priority: 1, direction: %s}\n"
        link.publish()
        link.start("base", link.config("base", "robot", "0.0.0.0:7400", f"{address['robot']}:7400"), preexec_fn=group.enter)
        link.start("robot", link.config("robot", "base", "0.0.0.0:7400", f"{address['base']}:7400"))
        try:
            figures = {"limit_mb": round(limit / 1e6, 1), "up_s": link.up()}
            if figures["up_s"] is None:
                return figures | {"without": {}, "with": {}, "says": link.daemons["base"].log().splitlines()[-2:]}
            time.sleep(rig.GRACE_S)
            figures["without"] = link.measure(seconds)
            recording = stage.folder / "map.mcap"
            record(recording, "/map", 6, 0.5)
            stage.start("play", ropewalk, "play", recording, "--loop", env=stage.bus("robot"))
            time.sleep(2)
            figures["with"] = link.measure(seconds)
            base = link.state("base")
            figures["maps"] = {
                "offered": sum(t["offered"] for t in link.state("robot").get("sent", []) if t["name"] == "/map"),
                "sent": [(t["sent"], t["drops"]) for t in link.state("robot").get("sent", []) if t["name"] == "/map"],
                "received": [(t["delivered"], t["drops"]) for t in base.get("received", []) if t["name"] == "/map"]}
            daemon = link.daemons["base"]
            figures["alive"] = daemon.is_alive()
            if figures["alive"]:
                figures["peak_mb"] = group.peak()
            said = [line[-300:] for line in daemon.log().splitlines()]
            figures["says"] = [line for line in said if "WARN" in line][-2:] if figures["alive"] else said[-2:]
            return figures
        finally:
            for daemon in link.daemons.values():
                daemon.stop()
            group.remove()


def main() -> None:
    kit.need_root()
    options = kit.arguments(seconds={"type": float, "default": 4.0, "help": "seconds to measure, once without and once with"},
                            limit={"type": int, "default": LIMIT >> 20, "help": "memory limit of the daemon in MiB"})
    ropewalk = (options.binary / "ropewalk").resolve()
    figures = rig.beside_each_other({"base": lambda: attempt(ropewalk, options.limit << 20, options.seconds)})
    base = figures["base"]
    broken = [] if base.get("alive", True) else ["the daemon died"]
    if base.get("maps") and not any(drops for _, drops in base["maps"]["received"]):
        broken.append("nothing reports that large messages were lost")
    rig.judge(figures, *broken)


if __name__ == "__main__":
    main()
