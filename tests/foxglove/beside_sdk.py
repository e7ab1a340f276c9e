#!/usr/bin/env python3
"""Compares `ropewalk foxglove` with Foxglove's own SDK: raw video of 1080p and a laser scan, both at 30 Hz, to one client on this host.

    make -C peers foxglove
    .venv/bin/python tests/foxglove/beside_sdk.py --binary target/release [--runs 5] [--seconds 10] [--json]

Both show the topics of the same bus, on which `ropewalk play` publishes, and take turns. Counted are the processor time of the server
while the client listens, as a share of one processor (that of the player is stated beside), and the delays from publication to the client.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import end, quantile
from viewer import image, record, scan, watch

HZ, PORT, TOPICS = 30, 8799, ["/scan", "/camera/image_raw"]


def used(pid: int) -> float:
    """Processor time of a process in seconds, as the scheduler counts it."""
    return sum(int(task.read_text().split()[0]) for task in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def resident(pid: int) -> float:
    """Memory of a process in MB, without what it shares with others."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["RssAnon"].split()[0]) / 1024


def trial(servers: list[list[str]], env: dict[str, str], seconds: float, log: Path) -> dict:
    """Starts the servers, of which the first talks to the client, and returns what one client sees."""
    with log.open("w") as out:
        started = [subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=out, stderr=out) for command in servers]
    try:
        time.sleep(2)
        me = [sys.executable, __file__, "--client", "--seconds", str(seconds)]
        with subprocess.Popen(me, stdout=subprocess.PIPE, text=True) as client:
            line = client.stdout.readline()
            if line.strip() != "began":
                sys.exit(log.read_text())
            before, begun = [used(p.pid) for p in started], time.monotonic()
            # While the client is there: with it go the threads that serve it.
            time.sleep(seconds - 0.5)
            shares = [(used(p.pid) - b) / (time.monotonic() - begun) for p, b in zip(started, before)]
            seen = json.loads(client.stdout.readline())
        topics = seen["topics"]
        return {"cpu_server": shares[0], "cpu_player": sum(shares[1:]), "resident_server_mb": resident(started[0].pid),
                **{f"{name}_{what}": value for name, topic in [("scan", "/scan"), ("image", "/camera/image_raw")]
                   for what, value in [("received_hz", len(topics[topic]["delays"]) / seconds), ("delay_p50_ms", quantile(topics[topic]["delays"], 0.5)),
                                       ("delay_p99_ms", quantile(topics[topic]["delays"], 0.99))]}}
    finally:
        end(started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=Path("target/release"), help="folder with ropewalk")
    parser.add_argument("--peer", type=Path, default=Path("peers/bin/foxglove"), help="the bridge that uses the SDK")
    parser.add_argument("--runs", type=int, default=5, help="runs of each system")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long the client listens in each run")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--client", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        print(json.dumps(watch("127.0.0.1", PORT, "", TOPICS, options.seconds, lambda: print("began", flush=True))))
        return
    ropewalk = str((options.binary / "ropewalk").resolve())
    runs: dict[str, list[dict]] = {"ropewalk foxglove": [], "foxglove SDK": []}
    with tempfile.TemporaryDirectory(prefix="rw") as name:
        folder = Path(name)
        record(folder / "video.bag", [(TOPICS[0], scan(), HZ), (TOPICS[1], image(), HZ)])
        player = [ropewalk, "play", str(folder / "video.bag"), "--loop"]
        systems = {"ropewalk foxglove": [[ropewalk, "foxglove", "--port", str(PORT)], player],
                   "foxglove SDK": [[str(options.peer.resolve()), str(PORT)], player]}
        env = {**os.environ, "ROPEWALK_RUNTIME_DIR": str(folder / "bus")}
        for run in range(options.runs):
            for system, servers in systems.items():
                print(f"run {run + 1} of {options.runs}: {system}", file=sys.stderr)
                runs[system].append(trial(servers, env, options.seconds, folder / "log"))
    cells = [{"system": system, "params": {"hz": HZ, "image": "1920x1080 rgb8", "seconds": options.seconds, "runs": options.runs},
              "metrics": {what: round(statistics.median(run[what] for run in of), 3) for what in of[0]}} for system, of in runs.items()]
    ratios = [ours["cpu_server"] / theirs["cpu_server"] for ours, theirs in zip(*runs.values())]
    cells[0]["metrics"]["cpu_server_by_sdk"] = round(statistics.median(ratios), 3)
    version = subprocess.check_output([ropewalk, "--version"], text=True).strip()
    result = {"experiment": "foxglove-beside-sdk", "machine": {"cores": os.cpu_count(), "kernel": os.uname().release},
              "versions": {"ropewalk": version, "foxglove": "0.30.3"}, "cells": cells}
    print(json.dumps(result) if options.json else json.dumps(cells, indent=1))


if __name__ == "__main__":
    main()
