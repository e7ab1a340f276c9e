#!/usr/bin/env python3
"""Unknown hosts send the ROS 1 bridge long requests and connection headers on many connections at once.

A call of a node takes a few hundred bytes. 16 connections send a body of 16 MiB each, made of the smallest XML-RPC values, then
60 send a header of 1 MiB each. The bridge must stay within its budget, answer a node meanwhile, and release everything
within 5 s.
"""

from __future__ import annotations

import contextlib
import struct
import threading
import time

import kit
from kit import ros

LONG = 16 << 20
# Budgets: 64 KiB of body or 256 KiB of header per connection, the parsed data, and threads.
BODIES = 24 << 20
HEADERS = 64 << 20
RETURNED = 16 << 20


def send(port: int, source: str, data: bytes, hold: threading.Event) -> None:
    with contextlib.suppress(OSError), ros.connect(port, source, 20) as s:
        s.sendall(data)
        hold.wait(20)


class Clients:
    """Many connections that send the same data at once."""

    def __init__(self, program: kit.Program, api: int, port: int, data: bytes, connections: int) -> None:
        before, fds, hold, self.answered, tries = program.resident(), program.descriptors(), threading.Event(), 0, 0
        program.forget_peak()
        threads = [threading.Thread(target=send, args=(port, f"127.0.0.{9 + i % 4}", data, hold)) for i in range(connections)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 6
        while time.monotonic() < end:
            tries += 1
            with contextlib.suppress(OSError, ValueError, IndexError):
                self.answered += ros.call(api, "getPid", "/honest")[0] == 1
            time.sleep(0.1)
        self.lost = tries - self.answered
        self.peak = program.peak() - before
        self.descriptors = program.descriptors() - fds
        hold.set()
        for thread in threads:
            thread.join()
        time.sleep(5)
        self.kept = program.resident() - before
        self.kept_descriptors = program.descriptors() - fds

    def figures(self) -> dict:
        return {
            "peak_mib": round(self.peak / 2**20, 1),
            "kept_mib": round(self.kept / 2**20, 1),
            "descriptors": self.descriptors,
            "kept_descriptors": self.kept_descriptors,
            "answered": self.answered,
            "lost": self.lost,
        }


options = kit.arguments()
with kit.stage() as stage:
    master = ros.Master()
    publisher = ros.Publisher("std_msgs/String", ros.STRING_MD5, lambda s: s.recv(1))
    master.publish("/chatter", "std_msgs/String", "/talker", publisher.uri)
    program, api = ros.start_bridge(stage, options.binary, master, "--topic", "/chatter=to_bus", "--topic", "/out=to_ros")
    stage.start(
        "pub", options.binary / "ropewalk", "topic", "pub", "--rate", "5", "/out", "std_msgs/String", "data: a", env=stage.bus("robot")
    )
    kit.wait_for("/out is in ROS", lambda: "/out" in master.publishers)
    _, _, place = ros.call(api, "requestTopic", "/honest", "/out", [["TCPROS"]])
    values = b"<value/>" * ((LONG - 200) // 8)
    body = b"<?xml version='1.0'?><methodCall><methodName>getPid</methodName><params><param><value><array><data>" + values
    bodies = Clients(program, api, api, ros.post(body.ljust(LONG)), 16)
    field = b"k=" + b"\x00" * ((1 << 20) - 16)
    long_header = struct.pack("<II", len(field) + 5, len(field)) + field
    headers = Clients(program, api, place[2], long_header, 60)
    alive = program.is_alive()
    program.stop()

broken = []
if not alive:
    broken.append("the bridge ended")
for what, load, budget in (("bodies", bodies, BODIES), ("headers", headers, HEADERS)):
    if load.peak > budget:
        broken.append(f"{what}: {load.peak} bytes taken, of {budget}")
    if load.kept > RETURNED or load.kept_descriptors > 4:
        broken.append(f"{what}: {load.kept} bytes and {load.kept_descriptors} descriptors kept after 5 s")
    if load.lost:
        broken.append(f"{what}: {load.lost} calls of a node on this host were not answered")
kit.verdict({"bodies": bodies.figures(), "headers": headers.figures()}, *broken)
