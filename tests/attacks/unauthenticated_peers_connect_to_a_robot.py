#!/usr/bin/env python3
"""Unauthenticated peers open as many connections to a robot's ZeroMQ port as they can, and send nothing.

A controller must still get in, and all descriptors must be released within 5 s after the peers are gone.
"""

from __future__ import annotations

import random
import resource
import socket
import time

from kit import arguments, cannot_run, free_port, stage, verdict, wait_for
from kit.remote_wire import EXECUTED, TWIST, Controller, twist, write_keys

PEERS = 4000
# The limit in a login shell, and the limit to which systemd lets a program raise it.
SOFT, HARD = 1024, 524_288


def main() -> None:
    options = arguments()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < 4 * PEERS:
        cannot_run(f"it needs {4 * PEERS} open files, the hard limit is {hard}")
    most = HARD if hard == resource.RLIM_INFINITY else min(hard, HARD)
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * PEERS, hard))
    limited = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (SOFT, most))
    broken, figures = [], {}
    with stage() as s:
        pairs = write_keys(s.folder, "robot", "honest")
        port = free_port(socket.SOCK_STREAM)
        address = f"tcp://127.0.0.1:{port}"
        robot = s.start("robot", options.binary / "ropewalk", "robot", "sim", "--json", "--zmq", address,
                        "--key", s.folder / "robot.key", "--allow", s.folder / "controllers", env=s.bus("robot"), preexec_fn=limited)
        first = Controller(address, random.getrandbits(62) | 1, pairs["honest"], pairs["robot"][0])
        wait_for("the robot answers", lambda: first.hello("first"))
        before, memory = robot.descriptors(), robot.resident()
        peers = []
        end = time.monotonic() + 15
        while len(peers) < PEERS and time.monotonic() < end:
            peer = socket.socket()
            peer.setblocking(False)
            peer.connect_ex(("127.0.0.1", port))
            peers.append(peer)
            time.sleep(0.001)
        time.sleep(2)
        figures |= {"peers": len(peers), "descriptors": robot.descriptors(), "memory_more_mib": (robot.peak() - memory) >> 20}
        second = Controller(address, random.getrandbits(62) | 1, pairs["honest"], pairs["robot"][0])
        began = time.monotonic()
        moved = second.hello("second") and second.command(TWIST, twist(0.1), expiry_ms=5000) == EXECUTED
        figures["another_controller_s"] = round(time.monotonic() - began, 2) if moved else None
        if not moved:
            broken.append(f"a controller cannot connect next to {len(peers)} silent connections")
        if robot.peak() - memory > 128 << 20:
            broken.append(f"unauthenticated peers take {(robot.peak() - memory) >> 20} MiB")
        for peer in peers:
            peer.close()
        time.sleep(5)
        figures["descriptors_5_s_later"] = robot.descriptors()
        if robot.descriptors() > before + 8:
            broken.append(f"5 s after they left, {robot.descriptors() - before} descriptors are still held")
        first.close()
        second.close()
    verdict(figures, *broken)


if __name__ == "__main__":
    main()
