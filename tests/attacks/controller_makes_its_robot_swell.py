#!/usr/bin/env python3
"""A hostile controller sends commands that are small on the wire and large in memory, and fills the robot's tables.

The robot must stay within its memory budget, and serve other controllers meanwhile.
"""

from __future__ import annotations

import random
import socket
import time

from kit import arguments, free_port, stage, verdict, wait_for
from kit.remote_wire import EXECUTED, TWIST, Controller, field, twist

# Resident bytes of a robot: 128 MiB for one decoded message, queued requests, and the program.
BUDGET = 300 << 20
# As many empty poses as a request may hold.
EMPTY_POSES = field(3, b"") * ((4 << 20) // 2 - 200)
SENDERS = 4


def main() -> None:
    options = arguments()
    broken = []
    with stage() as s:
        address = f"tcp://127.0.0.1:{free_port(socket.SOCK_STREAM)}"
        robot = s.start("robot", options.binary / "ropewalk", "robot", "sim", "--json", "--zmq", address, env=s.bus("robot"))
        honest = Controller(address, random.getrandbits(62) | 1)
        wait_for("the robot answers", lambda: honest.hello("honest"))
        wait_for("it moves", lambda: honest.command(TWIST, twist(0.1), expiry_ms=2000) == EXECUTED)
        # It announces that it will be silent for a while.
        honest.beat(60_000)
        before = robot.peak()
        senders = [Controller(address, random.getrandbits(62) | 1) for _ in range(SENDERS)]
        kind = honest.commands["robot_remote_control.RobotTrajectory"]
        for sender in senders:
            sender.hello("hostile")
            for _ in range(10):
                sender.send(field(11, field(1, kind) + field(2, EMPTY_POSES)))
        # The holder itself, since its command reaches the handler.
        for _ in range(3):
            honest.ask(field(11, field(1, kind) + field(2, EMPTY_POSES)))
        for number in range(1, 3000):
            sender = senders[0]
            sender.number = number + (1 << 40)
            sender.send(field(10, field(1, "x" * 10_000) + field(2, 2)))
        stops = sum(honest.command(TWIST, twist(0.0), expiry_ms=20_000) == EXECUTED for _ in range(20))
        time.sleep(1)
        peak = robot.peak()
        for controller in [honest, *senders]:
            controller.close()
        time.sleep(5)
        left = robot.resident()
        if peak > BUDGET:
            broken.append(f"the robot took {peak >> 20} MiB, more than {BUDGET >> 20}")
        if stops < 20:
            broken.append(f"only {stops} of 20 stops were executed meanwhile")
    verdict({"before_mib": before >> 20, "peak_mib": peak >> 20, "left_mib": left >> 20, "stops": stops}, *broken)


if __name__ == "__main__":
    main()
