#!/usr/bin/env python3
"""Drives a simulated rover from the page in a real Chromium, over one hop of 802.11a at 6 Mbit/s, beside a camera that fills most of it.

    python3 tests/drive/over_wifi.py --binary target/release [--seconds 60] [--json]

Needs root, Chromium, and Ropewalk's Python package. The rover's host sends images of 64 kB at 6.67 Hz (3.4 Mbit/s) and a laser scan;
the base's host serves the page, and Chromium runs there. A key is held, and each twist is timed in the page until the robot's
answer is back. `--without-camera` leaves the images out: what the rest takes.
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

sys.path.insert(0, str(Path(__file__).parents[1] / "foxglove"))
from measure import end, quantile  # noqa: E402

CAMERA = """
import time, numpy, ropewalk
node = ropewalk.Node("camera")
publisher = node.publisher("/camera/image", "sensor_msgs/Image")
image = publisher.message(width=256, height=256, encoding="mono8", step=256)
publisher.wait_for_subscribers(1, timeout=60)
count, start = 0, time.monotonic()
while True:
    publisher.allocate(image, data=65536)
    image.data[:] = count % 256
    now = time.time_ns()
    image.header.stamp = ropewalk.Time(now // 10**9, now % 10**9)
    publisher.publish(image)
    count += 1
    time.sleep(max(0.0, start + count * 0.15 - time.monotonic()))
"""


def config(host: str, peer: str, address: str, out: bool) -> str:
    direction, role = ("out", "serve") if out else ("in", "call, from: robot")
    allow = ", allow: {call: ['/rover/remote/*'], subscribe: ['/*']}" if out else ""
    topics = {"/camera/image": 10, "/scan": 100, "/rover/remote/telemetry/*": 50}
    of_topics = "".join(f"  - {{name: '{t}', direction: {direction}{f', priority: {p}, depth: 2' if out else ''}}}\n" for t, p in topics.items())
    return f"""host: {host}
radio: {{bind: '0.0.0.0:7400', rate: 6Mbit/s, insecure_udp: true}}
peers:
  - {{name: {peer}, address: '{address}:7400'{allow}}}
services:
  - {{name: /rover/remote/command, role: {role}, priority: 110, depth: 64}}
  - {{name: /rover/remote/request, role: {role}, priority: 60}}
topics:
{of_topics}"""


class Browser:
    """Chromium's debugging protocol over pipes."""

    def __init__(self, command: list[str], folder: Path) -> None:
        to, back = folder / "to", folder / "from"
        os.mkfifo(to)
        os.mkfifo(back)
        arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe",
                     f"--user-data-dir={folder}/profile"]
        line = f'exec chromium {" ".join(arguments)} 3<"{to}" 4>"{back}"'
        self.process = subprocess.Popen([*command, "sh", "-c", line], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env={**os.environ, "HOME": str(folder)})
        self.to, self.back = open(to, "wb", buffering=0), open(back, "rb")
        self.number, self.session, self.rest = 0, None, b""

    def call(self, method: str, **params: object) -> dict:
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.to.write(json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                self.rest += os.read(self.back.fileno(), 1 << 16)
            line, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(line)
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, url: str) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=1440, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url=url)

    def evaluate(self, expression: str) -> object:
        done = self.call("Runtime.evaluate", expression=f"(() => {{ try {{ return {expression}; }} catch {{ return null; }} }})()",
                         returnByValue=True)
        return done["result"].get("value")

    def wait(self, expression: str, patience: float = 60) -> None:
        end = time.monotonic() + patience
        while not self.evaluate(expression):
            if time.monotonic() > end:
                shown = self.evaluate("document.getElementById('drive').innerText + document.getElementById('camera').innerText")
                sys.exit(f"never: {expression}; the page shows {shown}")
            time.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=Path("target/release"), help="folder with ropewalk")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the key is held")
    parser.add_argument("--without-camera", action="store_true", help="send no images")
    parser.add_argument("--page", type=Path, help="folder with the page's files (default: those in the program)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    ropewalk = str((options.binary / "ropewalk").resolve())
    lab = f"drive{os.getpid()}"
    started: list[subprocess.Popen] = []
    with tempfile.TemporaryDirectory(prefix="rw") as name:
        folder = Path(name)
        subprocess.run([ropewalk, "lab", "up", "wifi-1hop", "--name", lab], check=True, stdout=subprocess.DEVNULL)
        try:
            state = json.loads(subprocess.check_output([ropewalk, "lab", "status", "--name", lab, "--json"]))
            addresses = {h["name"]: h["address"] for h in state["hosts"]}

            def on(host: str) -> list[str]:
                return [ropewalk, "lab", "exec", "--name", lab, host, "--"]

            def start(host: str, *command: str) -> None:
                bus = {**os.environ, "ROPEWALK_RUNTIME_DIR": str(folder / f"bus-{host}")}
                out = open(folder / f"{host}-{len(started)}.log", "w")
                started.append(subprocess.Popen([*on(host), *command], env=bus, stdout=out, stderr=out, stdin=subprocess.DEVNULL))

            for host, peer in (("robot", "base"), ("base", "robot")):
                (folder / f"{host}.yaml").write_text(config(host, peer, addresses[peer], host == "robot"))
                start(host, ropewalk, "link", str(folder / f"{host}.yaml"))
            start("robot", ropewalk, "robot", "sim", "--name", "rover", "--rate", "10")
            if not options.without_camera:
                start("robot", sys.executable, "-c", CAMERA)
            page = ["--page", str(options.page)] if options.page else []
            start("base", ropewalk, "web", "--port", "8766", "--drive", "--speed", "0.05", *page)
            browser = Browser(on("base"), folder)
            started.append(browser.process)
            browser.open("http://localhost:8766/")
            browser.wait("document.body.dataset.drive === 'idle'")
            limit = "none" if options.without_camera else "2000"
            browser.evaluate(f"(document.getElementById('drive-limit').value = '{limit}', "
                             "document.getElementById('drive-limit').dispatchEvent(new Event('change')))")
            browser.wait("document.getElementById('drive-robot').value === 'rover' && !document.getElementById('drive-request').disabled")
            browser.evaluate("document.getElementById('drive-request').click()")
            browser.wait("document.body.dataset.drive === 'ready'")
            times: list[float] = []
            robot: list[float] = []
            ages: list[float] = []
            last = time.monotonic() + options.seconds
            locked = 0
            while time.monotonic() < last:
                # A rover that holds its course meets a wall.
                key = ("a", "KeyA") if len(times) % 2 else ("d", "KeyD")
                browser.call("Input.dispatchKeyEvent", type="keyDown", key=key[0], code=key[1])
                until = min(last, time.monotonic() + 5)
                while time.monotonic() < until:
                    time.sleep(0.5)
                    age = browser.evaluate("document.getElementById('camera-facts').innerText")
                    if isinstance(age, str) and age.split(" ms old")[0].isdigit():
                        ages.append(float(age.split(" ms old")[0]))
                    locked += browser.evaluate("document.body.dataset.drive") == "locked"
                browser.call("Input.dispatchKeyEvent", type="keyUp", key=key[0], code=key[1])
                browser.wait("document.body.dataset.drive === 'ready'")
                times += browser.evaluate("window.ropewalkDrive.roundTrips.splice(0)") or []
                robot += browser.evaluate("window.ropewalkDrive.robotTrips.splice(0)") or []
            failed = int(browser.evaluate("document.getElementById('drive-failed').textContent") or 0)
            metrics = {"twists": len(times), "not_executed": failed, "page_to_robot_and_back_ms": {
                "p50": quantile(times, 0.5), "p99": quantile(times, 0.99), "max": quantile(times, 1.0)},
                "server_to_robot_and_back_ms": {"p50": quantile(robot, 0.5), "p99": quantile(robot, 0.99), "max": quantile(robot, 1.0)},
                "picture_age_ms": {"p50": quantile(ages, 0.5), "p99": quantile(ages, 0.99)}, "times_locked": locked}
            cell = {"system": "ropewalk web", "params": {"scenario": "wifi-1hop", "camera": not options.without_camera}, "metrics": metrics}
            version = subprocess.check_output([ropewalk, "--version"], text=True).strip()
            result = {"experiment": "drive-over-wifi", "machine": {"cores": os.cpu_count(), "kernel": os.uname().release},
                      "versions": {"ropewalk": version}, "cells": [cell]}
            print(json.dumps(result) if options.json else json.dumps(metrics, indent=1))
        finally:
            end(started)
            subprocess.run([ropewalk, "lab", "down", "--name", lab], check=False, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
