#!/usr/bin/env python3
"""Times /tf at a client of `ropewalk foxglove` over a wire of 20 Mbit/s, beside raw video of 1080p.

    .venv/bin/python tests/foxglove/over_20mbit.py --binary target/release [--seconds 30] [--without-video] [--json]

Needs root and the packages of `make setup`. The robot's host plays transforms at 50 Hz and images of 6.2 MB at 10 Hz (500 Mbit/s); the
client subscribes to both, answers pings as browsers do, and compares each transform's time of publication with its arrival; both hosts
have one clock.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy
from rosbags.rosbag1 import Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

WIDTH, HEIGHT, IMAGES_HZ, TF_HZ, TOKEN, PORT = 1920, 1080, 10, 50, "4c1d0a7be8f24fd6", 8765
SCENARIO = """description: A robot and a viewer on a wire of 20 Mbit/s.
hosts: [robot, viewer]
media:
  - name: wire
    wire: {rate: 20Mbit/s}
"""


def record(path: Path, video: bool) -> None:
    """Writes one second of both topics."""
    types = get_typestore(Stores.ROS1_NOETIC)
    types.register(get_types_from_msg("geometry_msgs/TransformStamped[] transforms", "tf2_msgs/msg/TFMessage"))
    stamp = types.types["builtin_interfaces/msg/Time"](0, 0)
    header = types.types["std_msgs/msg/Header"](0, stamp, "map")
    vector = types.types["geometry_msgs/msg/Vector3"](1.0, 2.0, 3.0)
    rotation = types.types["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0)
    pose = types.types["geometry_msgs/msg/Transform"](vector, rotation)
    transforms = types.types["tf2_msgs/msg/TFMessage"]([types.types["geometry_msgs/msg/TransformStamped"](header, "base_link", pose)])
    pixels = numpy.random.default_rng(1).integers(0, 255, WIDTH * HEIGHT * 3, dtype=numpy.uint8)
    image = types.types["sensor_msgs/msg/Image"](header, HEIGHT, WIDTH, "rgb8", 0, WIDTH * 3, pixels)
    topics = [("/tf", transforms, TF_HZ)] + ([("/camera/image_raw", image, IMAGES_HZ)] if video else [])
    with Writer(path) as writer:
        for topic, message, rate in topics:
            connection = writer.add_connection(topic, message.__msgtype__, typestore=types)
            data = types.serialize_ros1(message, message.__msgtype__)
            for i in range(rate):
                writer.write(connection, 10**9 + i * 10**9 // rate, data)


def client(address: str, seconds: float) -> None:
    """Runs on the viewer's host; prints the delays of /tf in ms, and the images' sizes."""
    web = socket.create_connection((address, PORT), timeout=30)
    key = base64.b64encode(os.urandom(16)).decode()
    web.sendall(f"GET /?token={TOKEN} HTTP/1.1\r\nHost: {address}:{PORT}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: foxglove.websocket.v1\r\n\r\n".encode())
    stream = web.makefile("rb", 1 << 20)
    status = stream.readline()
    if b" 101 " not in status:
        sys.exit(status.decode())
    while stream.readline().strip():
        pass

    def send(opcode: int, payload: bytes) -> None:
        web.sendall(struct.pack(">BB", 0x80 | opcode, 0x80 | len(payload)) + bytes(4) + payload)

    def receive() -> tuple[int, bytes]:
        first, n = stream.read(2)
        n = struct.unpack(">H", stream.read(2))[0] if n == 126 else struct.unpack(">Q", stream.read(8))[0] if n == 127 else n
        return first & 15, stream.read(n)

    numbers = {"/tf": 1, "/camera/image_raw": 2}
    delays, sizes, notes, end = [], [], [], time.monotonic() + seconds
    begun = None
    while time.monotonic() < end:
        opcode, payload = receive()
        if opcode == 9:
            send(10, payload)
        elif opcode == 1:
            op = json.loads(payload)
            for channel in op["channels"] if op["op"] == "advertise" else []:
                if channel["topic"] in numbers:
                    wanted = {"id": numbers[channel["topic"]], "channelId": channel["id"]}
                    send(1, json.dumps({"op": "subscribe", "subscriptions": [wanted]}, separators=(",", ":")).encode())
            if op["op"] == "status":
                notes.append(op["message"])
        elif opcode == 2 and payload[0] == 1:
            number, stamp = struct.unpack_from("<IQ", payload, 1)
            begun = begun or time.monotonic()
            if number == 1:
                delays.append((time.time_ns() - stamp) / 1e6)
            else:
                sizes.append(len(payload))
    print(json.dumps({"delays": delays, "sizes": sizes, "notes": notes, "seconds": time.monotonic() - (begun or end)}))


def quantile(values: list[float], share: float) -> float:
    values = sorted(values)
    return round(values[min(len(values) - 1, int(share * len(values)))], 2) if values else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=Path("target/release"), help="folder with ropewalk")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long the client listens")
    parser.add_argument("--without-video", action="store_true", help="send transforms alone")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--client", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        return client(options.client, options.seconds)
    ropewalk = str((options.binary / "ropewalk").resolve())
    lab = f"view{os.getpid()}"
    started: list[subprocess.Popen] = []
    with tempfile.TemporaryDirectory(prefix="rw") as name:
        folder = Path(name)
        record(folder / "video.bag", not options.without_video)
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
            sizes, delays = seen["sizes"], seen["delays"]
            metrics = {"tf_received": len(delays), "tf_delay_ms": {"p50": quantile(delays, 0.5), "p99": quantile(delays, 0.99), "max": quantile(delays, 1.0)},
                       "images_received": len(sizes), "image_bytes_p50": quantile(sizes, 0.5), "image_bytes_max": quantile(sizes, 1.0),
                       "seconds": round(seen["seconds"], 1), "notes": seen["notes"]}
            cell = {"system": "ropewalk foxglove", "params": {"wire_mbit_s": 20, "video": not options.without_video}, "metrics": metrics}
            version = subprocess.check_output([ropewalk, "--version"], text=True).strip()
            result = {"experiment": "tf-beside-video", "machine": {"cores": os.cpu_count(), "kernel": os.uname().release},
                      "versions": {"ropewalk": version}, "cells": [cell]}
            print(json.dumps(result) if options.json else json.dumps(metrics, indent=1))
        finally:
            for process in reversed(started):
                process.terminate()
            for process in started:
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
            subprocess.run([ropewalk, "lab", "down", "--name", lab], check=False, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
