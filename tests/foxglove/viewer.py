"""What the measurements of `ropewalk foxglove` share: a recording of video with a small topic, and a client that times both."""

from __future__ import annotations

import base64
import json
import os
import socket
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy
from rosbags.rosbag1 import Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

WIDTH, HEIGHT = 1920, 1080
TYPES = get_typestore(Stores.ROS1_NOETIC)
TYPES.register(get_types_from_msg("geometry_msgs/TransformStamped[] transforms", "tf2_msgs/msg/TFMessage"))


def header(frame: str) -> object:
    return TYPES.types["std_msgs/msg/Header"](0, TYPES.types["builtin_interfaces/msg/Time"](0, 0), frame)


def transforms() -> object:
    vector = TYPES.types["geometry_msgs/msg/Vector3"](1.0, 2.0, 3.0)
    rotation = TYPES.types["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0)
    pose = TYPES.types["geometry_msgs/msg/Transform"](vector, rotation)
    return TYPES.types["tf2_msgs/msg/TFMessage"]([TYPES.types["geometry_msgs/msg/TransformStamped"](header("map"), "base_link", pose)])


def scan() -> object:
    ranges = numpy.linspace(1.0, 9.0, 360, dtype=numpy.float32)
    return TYPES.types["sensor_msgs/msg/LaserScan"](header("laser"), -3.14, 3.14, 0.0175, 0.0, 0.1, 0.1, 10.0, ranges, ranges)


def image() -> object:
    pixels = numpy.random.default_rng(1).integers(0, 255, WIDTH * HEIGHT * 3, dtype=numpy.uint8)
    return TYPES.types["sensor_msgs/msg/Image"](header("map"), HEIGHT, WIDTH, "rgb8", 0, WIDTH * 3, pixels)


def record(path: Path, topics: list[tuple[str, object, int]]) -> None:
    """Writes one second of each topic, message and rate in Hz."""
    with Writer(path) as writer:
        for topic, message, rate in topics:
            connection = writer.add_connection(topic, message.__msgtype__, typestore=TYPES)
            data = TYPES.serialize_ros1(message, message.__msgtype__)
            for i in range(rate):
                writer.write(connection, 10**9 + i * 10**9 // rate, data)


def watch(address: str, port: int, token: str, topics: list[str], seconds: float, began: Callable[[], None] = lambda: None) -> dict:
    """Subscribes to the topics and returns each one's delays in ms (from publication, by the host's clock) and sizes. Calls `began` at the
    first message, and listens for `seconds` from then on."""
    web = socket.create_connection((address, port), timeout=30)
    key = base64.b64encode(os.urandom(16)).decode()
    query = f"?token={token}" if token else ""
    web.sendall(f"GET /{query} HTTP/1.1\r\nHost: {address}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Protocol: foxglove.websocket.v1, foxglove.sdk.v1\r\n\r\n".encode())
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

    seen = {topic: {"delays": [], "sizes": []} for topic in topics}
    notes, end = [], None
    while end is None or time.monotonic() < end:
        opcode, payload = receive()
        if opcode == 9:
            send(10, payload)
        elif opcode == 1:
            op = json.loads(payload)
            for channel in op["channels"] if op["op"] == "advertise" else []:
                if channel["topic"] in topics:
                    wanted = {"id": topics.index(channel["topic"]), "channelId": channel["id"]}
                    send(1, json.dumps({"op": "subscribe", "subscriptions": [wanted]}, separators=(",", ":")).encode())
            if op["op"] == "status":
                notes.append(op["message"])
        elif opcode == 2 and payload[0] == 1:
            number, stamp = struct.unpack_from("<IQ", payload, 1)
            if end is None:
                end = time.monotonic() + seconds
                began()
            seen[topics[number]]["delays"].append((time.time_ns() - stamp) / 1e6)
            seen[topics[number]]["sizes"].append(len(payload))
    return {"topics": seen, "notes": notes}
