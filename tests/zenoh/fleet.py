"""Measures a fleet on one router: robots, each with its own bus and its own `ropewalk ros2 --wire zenoh`, and an operators' host that
records all of them. Prints a table, or with --json the results.

    ROPEWALK=target/release/ropewalk .venv/bin/python tests/zenoh/fleet.py --router-python target/zenoh/venv/bin/python

Everything runs on one machine, so the figures say what its processors carry together: `cpu` tells which process takes them. Needs the
Python packages of Ropewalk (`make python`) and mcap here, and eclipse-zenoh in --router-python.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from mcap.reader import make_reader

import ropewalk

HERE = Path(__file__).resolve().parent
TICKS = os.sysconf("SC_CLK_TCK")
# Robots, and per robot: rate of scans of 1 kB, rate of images of 64 kB.
STEPS = [(1, 10, 0), (10, 10, 0), (25, 10, 0), (50, 10, 0), (50, 10, 1), (50, 10, 5), (50, 10, 10)]


@dataclass
class Running:
    """Processes by their part: router, robots' bridges, base's bridge, recorder."""

    folder: Path
    parts: dict[str, list[subprocess.Popen[bytes]]] = field(default_factory=dict)

    def start(self, part: str, command: list[str], runtime: Path | None = None) -> subprocess.Popen[bytes]:
        env = dict(os.environ)
        if runtime:
            runtime.mkdir(mode=0o700, exist_ok=True)
            env["ROPEWALK_RUNTIME_DIR"] = str(runtime)
        log = open(self.folder / f"{part}.log", "ab")
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE if part == "router" else log, stderr=log)
        self.parts.setdefault(part, []).append(process)
        return process

    def cpu(self) -> dict[str, float]:
        """Seconds of processor time so far, by part."""
        def of(pid: int) -> float:
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            return (int(words[11]) + int(words[12])) / TICKS

        return {part: sum(of(p.pid) for p in all_of) for part, all_of in self.parts.items()}

    def check(self) -> None:
        for part, processes in self.parts.items():
            if any(p.poll() is not None for p in processes):
                log = self.folder / f"{part}.log"
                sys.exit(f"{part} has ended: {log.read_text()[-2000:]}")

    def end(self) -> None:
        for processes in reversed(self.parts.values()):
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(30)


def bridge(running: Running, part: str, name: str, topics: str) -> None:
    config, session = running.folder / f"{name}.yaml", running.folder / "client.json5"
    # The base's bridge takes what the robots' bridges send.
    config.write_text(f"wire: zenoh\nfrom_bridges: true\nzenoh: {{config: '{session}'}}\ndomain: 0\ntopics: [{topics}]\n")
    running.start(part, [os.environ["ROPEWALK"], "ros2", str(config), "--json", "--every", "10"], running.folder / name)


def send(publisher: object, fill: str, size: int, rate: float, begin: float, seconds: float, late: list[float]) -> None:
    """Publishes with the time of sending in the header."""
    data = np.zeros(size, dtype=np.uint8)
    for i in range(int(rate * seconds)):
        at = begin + i / rate
        time.sleep(max(0.0, at - time.time()))
        message = publisher.message()
        now = time.time_ns()
        late.append(now / 1e9 - at)
        message.header.stamp = ropewalk.Time(*divmod(now, 1_000_000_000))
        setattr(message, fill, data if fill == "data" else np.zeros(size // 4, dtype=np.float32))
        publisher.publish(message)


def measure(robots: int, scans: float, images: float, seconds: float, router_python: str) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="rwfleet") as folder:
        running = Running(Path(folder))
        try:
            with socket.socket() as one:
                one.bind(("127.0.0.1", 0))
                endpoint = f"tcp/127.0.0.1:{one.getsockname()[1]}"
            router = running.start("router", [router_python, str(HERE / "router.py"), endpoint])
            assert router.stdout and router.stdout.readline() == b"ready\n"
            # As the guide advises: everything passes the router.
            session = {"mode": "client", "connect": {"endpoints": [endpoint]}, "scouting": {"multicast": {"enabled": False}}}
            (running.folder / "client.json5").write_text(json.dumps(session))
            threads, late, expected = [], [], {"/scan": 0, "/image": 0}
            bridge(running, "base", "base", "{name: '/*', direction: to_bus}")
            nodes = []
            for i in range(robots):
                bridge(running, "robots", f"robot{i}", f"{{name: '/robot{i}/*', direction: to_ros, bus: '/*'}}")
                nodes.append(ropewalk.Node("robot", runtime_dir=str(running.folder / f"robot{i}")))
            recording = running.folder / "fleet.mcap"
            command = [os.environ["ROPEWALK"], "record", str(recording), "-a"]
            running.start("recorder", command, running.folder / "base")
            kinds = [("/scan", "sensor_msgs/LaserScan", "ranges", 1000, scans), ("/image", "sensor_msgs/Image", "data", 64_000, images)]
            publishers = [
                (node.publisher(topic, kind), topic, fill, size, rate)
                for node in nodes
                for topic, kind, fill, size, rate in kinds
                if rate
            ]
            began = time.time()
            while time.time() < began + 60 and any(p.subscriber_count == 0 for p, *_ in publishers):
                time.sleep(0.2)
                running.check()
            connected = time.time() - began
            time.sleep(5)
            before, begin = running.cpu(), time.time() + 1
            for k, (publisher, topic, fill, size, rate) in enumerate(publishers):
                expected[topic] += int(rate * seconds)
                arguments = (publisher, fill, size, rate, begin + k / len(publishers) / rate, seconds, late)
                threads.append(threading.Thread(target=send, args=arguments))
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            used = {part: (now - before[part]) / seconds for part, now in running.cpu().items()}
            time.sleep(3)
            for process in running.parts["recorder"]:
                process.terminate()
                process.wait(60)
            delays: dict[str, list[float]] = {"/scan": [], "/image": []}
            with open(recording, "rb") as file:
                for _, channel, message in make_reader(file).iter_messages(log_time_order=False):
                    sec, nsec = struct.unpack_from("<iI", message.data, 4)
                    topic = "/" + channel.topic.rpartition("/")[2]
                    if topic in delays:
                        delays[topic].append((message.log_time - sec * 1_000_000_000 - nsec) / 1e6)
            out: dict[str, object] = {"matched_s": round(connected, 1), "cpu_cores": {k: round(v, 3) for k, v in used.items()}}
            out["sender_late_ms_p99"] = round(float(np.percentile(late, 99)) * 1e3, 1)
            for topic, all_of in delays.items():
                if expected[topic]:
                    name = topic[1:]
                    out[f"{name}_delivered"] = round(len(all_of) / expected[topic], 4)
                    if all_of:
                        out[f"{name}_ms_p50"] = round(statistics.median(all_of), 2)
                        out[f"{name}_ms_p99"] = round(float(np.percentile(all_of, 99)), 1)
            return out
        finally:
            running.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--router-python", default=sys.executable, help="an interpreter with eclipse-zenoh")
    parser.add_argument("--seconds", type=float, default=20, help="how long each step lasts")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    cells = []
    for robots, scans, images in STEPS:
        metrics = measure(robots, scans, images, args.seconds, args.router_python)
        params = {"robots": robots, "scan_hz": scans, "scan_bytes": 1000, "image_hz": images, "image_bytes": 64_000}
        cells.append({"system": "ropewalk-zenoh", "params": params, "metrics": metrics})
        if not args.json:
            print(params, metrics, flush=True)
    if args.json:
        machine = {"cpus": os.cpu_count(), "kernel": platform.release()}
        print(json.dumps({"experiment": "fleet", "machine": machine, "versions": {"ropewalk": ropewalk.__version__}, "cells": cells}, indent=1))


if __name__ == "__main__":
    main()
