#!/usr/bin/env python3
"""Times /tf at a client of `ropewalk foxglove` over a wire of 20 Mbit/s, beside raw video of 1080p.

    .venv/bin/python tests/foxglove/over_20mbit.py --binary target/release [--seconds 30] [--without-video] [--json]

Needs root and the packages of `make setup`. The robot's host plays transforms at 50 Hz and images of 6.2 MB at 10 Hz (500 Mbit/s); the
client subscribes to both, answers pings as browsers do, and compares each transform's time of publication with its arrival; both hosts
have one clock.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import end, quantile
from viewer import image, record, transforms, watch

IMAGES_HZ, TF_HZ, TOKEN, PORT = 10, 50, "4c1d0a7be8f24fd6", 8765
SCENARIO = """description: A robot and a viewer on a wire of 20 Mbit/s.
hosts: [robot, viewer]
media:
  - name: wire
    wire: {rate: 20Mbit/s}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=Path("target/release"), help="folder with ropewalk")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long the client listens")
    parser.add_argument("--without-video", action="store_true", help="send transforms alone")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--client", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        print(json.dumps(watch(options.client, PORT, TOKEN, ["/tf", "/camera/image_raw"], options.seconds)))
        return
    ropewalk = str((options.binary / "ropewalk").resolve())
    lab = f"view{os.getpid()}"
    started: list[subprocess.Popen] = []
    with tempfile.TemporaryDirectory(prefix="rw") as name:
        folder = Path(name)
        video = [] if options.without_video else [("/camera/image_raw", image(), IMAGES_HZ)]
        record(folder / "video.bag", [("/tf", transforms(), TF_HZ), *video])
        (folder / "wire.yaml").write_text(SCENARIO)
        subprocess.run([ropewalk, "lab", "up", str(folder / "wire.yaml"), "--name", lab], check=True, stdout=subprocess.DEVNULL)
        try:
            state = json.loads(subprocess.check_output([ropewalk, "lab", "status", "--name", lab, "--json"]))
            addresses = {h["name"]: h["address"] for h in state["hosts"]}

            def on(host: str) -> list[str]:
                return [ropewalk, "lab", "exec", "--name", lab, host, "--"]

            def start(*command: str) -> None:
                bus = {**os.environ, "ROPEWALK_RUNTIME_DIR": str(folder / "bus")}
                out = open(folder / f"{len(started)}.log", "w")
                started.append(subprocess.Popen([*on("robot"), *command], env=bus, stdout=out, stderr=out, stdin=subprocess.DEVNULL))

            start(ropewalk, "foxglove", "--host", "0.0.0.0", "--port", str(PORT), "--token", TOKEN)
            start(ropewalk, "play", str(folder / "video.bag"), "--loop")
            time.sleep(3)
            me = [sys.executable, __file__, "--client", addresses["robot"], "--seconds", str(options.seconds)]
            done = subprocess.run([*on("viewer"), *me], stdout=subprocess.PIPE, text=True)
            if done.returncode:
                sys.exit("\n".join(log.read_text() for log in folder.glob("*.log")))
            seen = json.loads(done.stdout)
            sizes, delays = seen["topics"]["/camera/image_raw"]["sizes"], seen["topics"]["/tf"]["delays"]
            metrics = {"tf_received": len(delays), "tf_delay_ms": {"p50": quantile(delays, 0.5), "p99": quantile(delays, 0.99), "max": quantile(delays, 1.0)},
                       "images_received": len(sizes), "image_bytes_p50": quantile(sizes, 0.5), "image_bytes_max": quantile(sizes, 1.0),
                       "seconds": options.seconds, "notes": seen["notes"]}
            cell = {"system": "ropewalk foxglove", "params": {"wire_mbit_s": 20, "video": not options.without_video}, "metrics": metrics}
            version = subprocess.check_output([ropewalk, "--version"], text=True).strip()
            result = {"experiment": "tf-beside-video", "machine": {"cores": os.cpu_count(), "kernel": os.uname().release},
                      "versions": {"ropewalk": version}, "cells": [cell]}
            print(json.dumps(result) if options.json else json.dumps(metrics, indent=1))
        finally:
            end(started)
            subprocess.run([ropewalk, "lab", "down", "--name", lab], check=False, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
