#!/usr/bin/env python3
"""Controllers request a robot's largest telemetry and subscribe to all of it, read nothing, and claim that everything has arrived.

The robot's memory for them must be bounded per peer and released when they are gone, and another controller must be served meanwhile.
"""

from __future__ import annotations

import os
import random
import socket
import struct
import time

from kit import arguments, free_port, stage, verdict, wait_for
from kit.remote_wire import EXECUTED, TWIST, Controller, field, fields, first, twist, write_keys

# Data on its way to one key, queued telemetry frames for its subscribers, and the program itself.
BUDGET = (128 + 64 + 64) << 20
CONNECTIONS = 30
REQUESTS = 900
ALL_OF_IT = 1 << 62


def largest(controller: Controller) -> tuple[int, int]:
    """Returns the number of the telemetry kind with the longest newest value, and that length."""
    welcome = fields(first(controller.hello("attacker"), 10, b""))
    numbers = [first(fields(kind), 1) for kind in welcome.get(4, [])]
    length = lambda n: len(first(fields(first(controller.ask(field(12, field(1, n))), 11, b"")), 2, b""))
    return max(((length(n), n) for n in numbers))[::-1]


def main() -> None:
    options = arguments()
    broken, figures = [], {}
    with stage() as s:
        pairs = write_keys(s.folder, "robot", "honest", "hostile")
        address = f"tcp://127.0.0.1:{free_port(socket.SOCK_STREAM)}"
        robot = s.start("robot", options.binary / "ropewalk", "robot", "sim", "--json", "--zmq", address, "--rate", "100",
                        "--key", s.folder / "robot.key", "--allow", s.folder / "controllers", env=s.bus("robot"))
        connect = lambda who, lazy=False: Controller(address, random.getrandbits(62) | 1, pairs[who], pairs["robot"][0], lazy)
        honest, scout = connect("honest"), connect("hostile")
        wait_for("the robot answers", lambda: honest.hello("honest"))
        wait_for("it moves", lambda: honest.command(TWIST, twist(0.1), expiry_ms=2000) == EXECUTED)
        time.sleep(1)
        number, length = largest(scout)
        figures["longest_answer"] = length
        before, descriptors = robot.peak(), robot.descriptors()
        hostile = []
        for _ in range(CONNECTIONS):
            controller = connect("hostile", True)
            controller.hello("hostile")
            hostile.append(controller)
        for controller in hostile:
            # It reads nothing more from the socket.
            controller.socket.send(b"\x02" + struct.pack("<IB", 1, 1))
        executed = 0
        for n in range(REQUESTS):
            for controller in hostile:
                controller.send(field(12, field(1, number)))
                if n % 10 == 0:
                    # What earlier versions of the protocol accepted as proof, and a guess for this one.
                    controller.socket.send(b"\x03" + struct.pack("<IQQ", 1, ALL_OF_IT, ALL_OF_IT))
                    controller.socket.send(b"\x03" + os.urandom(8))
            if n % 45 == 0:
                executed += honest.command(TWIST, twist(0.0), expiry_ms=20_000) == EXECUTED
        time.sleep(3)
        figures |= {
            "requests": CONNECTIONS * REQUESTS,
            "asked_for_mib": CONNECTIONS * REQUESTS * length >> 20,
            "before_mib": before >> 20,
            "peak_mib": robot.peak() >> 20,
            "descriptors": robot.descriptors() - descriptors,
            "stops_of_another_key": executed,
        }
        if robot.peak() > BUDGET:
            broken.append(f"the robot took {robot.peak() >> 20} MiB, more than {BUDGET >> 20}")
        if executed < 20:
            broken.append(f"only {executed} of 20 stops of another key were executed meanwhile")
        for controller in [scout, *hostile]:
            controller.close()
        time.sleep(5)
        figures |= {"left_mib": robot.resident() >> 20, "descriptors_left": robot.descriptors() - descriptors}
        if robot.resident() > before + (32 << 20):
            broken.append(f"5 s after they left, it holds {(robot.resident() - before) >> 20} MiB more than before")
        if robot.descriptors() > descriptors:
            broken.append(f"it keeps {robot.descriptors() - descriptors} descriptors of controllers that left")
        honest.close()
    verdict(figures, *broken)


if __name__ == "__main__":
    main()
