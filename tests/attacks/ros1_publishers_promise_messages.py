#!/usr/bin/env python3
"""ROS 1 publishers announce large messages to the bridge and send only a few kilobytes of each.

40 publishers of one topic at one address each begin an image of 60 MiB and stop after 8 KiB. The bridge must not reserve
more than the address's share, must disconnect a publisher that announces 1 GiB, and must release everything within 5 s of their end.
"""

from __future__ import annotations

import struct
import threading
import time

import kit
from kit import ros

PUBLISHERS = 40
PIXELS = 60 << 20
# `known_memory` in the configuration below, plus room for the bridge itself.
SHARE = 256 << 20
ROOM = 64 << 20
RETURNED = 24 << 20


def image(length: int) -> bytes:
    """Returns the head of a sensor_msgs/Image with this many bytes of pixels, preceded by the length."""
    head = struct.pack("<III", 1, 2, 3) + struct.pack("<I", 3) + b"cam" + struct.pack("<II", 1, length)
    head += struct.pack("<I", 5) + b"mono8" + b"\0" + struct.pack("<II", length, length)
    return struct.pack("<I", len(head) + length) + head


def begin(s) -> None:
    s.sendall(image(PIXELS) + b"\x55" * 8192)
    over.wait(60)


def boast(s) -> None:
    s.sendall(image((1 << 30) - 100) + b"\x55" * 8192)
    s.settimeout(10)
    try:
        is_left = s.recv(1) == b""
    except ConnectionError:
        is_left = True
    except TimeoutError:
        is_left = False
    if is_left:
        left.set()
    over.wait(60)


over, left = threading.Event(), threading.Event()
options = kit.arguments()
with kit.stage() as stage:
    master = ros.Master()
    nodes = [ros.Publisher("sensor_msgs/Image", ros.IMAGE_MD5, begin) for _ in range(PUBLISHERS)]
    boaster = ros.Publisher("sensor_msgs/Image", ros.IMAGE_MD5, boast)
    master.publish("/camera", "sensor_msgs/Image", "/boaster", boaster.uri)
    config = stage.write(
        "bridge.yaml",
        "known_memory: 256MiB\ntopics: [{name: /camera, direction: to_bus}]\n",
    )
    program, api = ros.start_bridge(stage, options.binary, master, str(config))
    is_left = left.wait(15)
    boaster.close()
    before, reserved_before, descriptors = program.resident(), ros.bus_memory(program), program.descriptors()
    program.forget_peak()
    for n, node in enumerate(nodes):
        master.publish("/camera", "sensor_msgs/Image", f"/camera{n}", node.uri)
    ros.call(api, "publisherUpdate", "/master", "/camera", [n.uri for n in nodes])
    reserved = 0
    end = time.monotonic() + 8
    while time.monotonic() < end:
        reserved = max(reserved, ros.bus_memory(program) - reserved_before)
        time.sleep(0.1)
    most = program.descriptors() - descriptors
    master.publishers["/camera"].clear()
    for node in nodes:
        node.close()
    ros.call(api, "publisherUpdate", "/master", "/camera", [])
    over.set()
    time.sleep(5)
    peak = program.peak() - before
    kept = program.resident() - before
    reserved_kept = ros.bus_memory(program) - reserved_before
    descriptors_kept = program.descriptors() - descriptors
    alive = program.is_alive()
    program.stop()

broken = []
if not alive:
    broken.append("the bridge ended")
if not is_left:
    broken.append("a publisher that announces 1 GiB was not disconnected")
if reserved > SHARE + ROOM or peak > SHARE + ROOM:
    broken.append(f"{reserved} bytes of shared memory reserved and {peak} resident, of a share of {SHARE}")
if reserved_kept > RETURNED or kept > RETURNED or descriptors_kept > 8:
    broken.append(f"kept after 5 s: {reserved_kept} bytes of shared memory, {kept} resident, {descriptors_kept} descriptors")
figures = {
    "reserved_mib": round(reserved / 2**20, 1),
    "peak_mib": round(peak / 2**20, 1),
    "reserved_kept_mib": round(reserved_kept / 2**20, 1),
    "kept_mib": round(kept / 2**20, 1),
    "descriptors": most,
    "descriptors_kept": descriptors_kept,
    "left_a_promise_of_1_gib": is_left,
}
kit.verdict(figures, *broken)
