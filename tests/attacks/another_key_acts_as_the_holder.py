#!/usr/bin/env python3
"""A second allowed key uses the number of the controller that holds the right to move.

It must not move anything, spoil a stop of the holder, or hide that the holder died.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time

from kit import arguments, free_port, stage, verdict, wait_for
import socket

from kit.remote_wire import EXECUTED, TWIST, Controller, twist, write_keys

STOPS = 1000
# The robot documents 1 s plus twice the round trip; the machine may be busy.
STATED_S = 3.0


def holder_process(address: str, number: int, keys, robot: bytes) -> int:
    """Moves the robot and keeps alive with heartbeats. Returns its pid."""
    pid = os.fork()
    if pid:
        return pid
    controller = Controller(address, number, keys, robot)
    controller.hello("holder")
    while controller.command(TWIST, twist(0.2), expiry_ms=2000) != EXECUTED:
        time.sleep(0.05)
    print("holds", flush=True)
    while True:
        controller.beat(100)
        time.sleep(0.1)


def attack(folder, address: str, pairs, robot) -> tuple[dict, list[str]]:
    broken = []
    robot_key = pairs["robot"][0]
    number = random.getrandbits(62) | 1
    holder = Controller(address, number, pairs["holder"], robot_key)
    wait_for("the robot answers", lambda: holder.hello("holder"))
    wait_for("the holder moves it", lambda: holder.command(TWIST, twist(0.2), expiry_ms=2000) == EXECUTED)

    other = Controller(address, number, pairs["other"], robot_key)
    other.hello("other")
    reported = other.holder()
    as_holder = poisoned = executed = 0
    outcomes: dict[int, int] = {}
    for n in range(STOPS):
        # A sequence number above all that the holder will use, and a plausible one.
        jump = (1 << 62) + n if n % 2 else holder.sequence + 2
        as_holder += other.command(TWIST, twist(1.0), sequence=jump, expiry_ms=2000) == EXECUTED
        outcome = holder.command(TWIST, twist(0.0), expiry_ms=5000)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        executed += outcome == EXECUTED
    if as_holder:
        broken.append(f"{as_holder} of {STOPS} commands of another key were executed as the holder's")
    if executed < STOPS:
        broken.append(f"only {executed} of {STOPS} stops of the holder were executed: outcomes {outcomes}")

    # Use the number that the robot reports for the holder.
    thief = Controller(address, reported or 1, pairs["other"], robot_key)
    thief.hello("thief")
    stolen = thief.command(TWIST, twist(1.0), sequence=(1 << 62) + 5000, expiry_ms=2000) == EXECUTED
    if stolen:
        broken.append("the number that the robot reports for the holder moves it")
    for controller in (thief, other, holder):
        controller.close()

    # The holder dies; another key continues its heartbeats with the same number.
    wait_for("the robot notices that the first holder is gone",
             lambda: any(e.get("event") == "link_lost" for e in robot.json()))
    number = random.getrandbits(62) | 1
    pid = holder_process(address, number, pairs["holder"], robot_key)
    other = Controller(address, number, pairs["other"], robot_key)
    wait_for("the second holder moves it", lambda: other.hello("other") and other.holder() not in (0, None))
    over = threading.Event()

    def beats() -> None:
        while not over.is_set():
            other.beat(20_000)
            time.sleep(0.05)

    thread = threading.Thread(target=beats)
    thread.start()
    time.sleep(0.5)
    losses = lambda: sum(e.get("event") == "link_lost" for e in robot.json())
    before = losses()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    died = time.monotonic()
    while losses() == before and time.monotonic() < died + 15:
        time.sleep(0.02)
    noticed = time.monotonic() - died
    over.set()
    thread.join()
    if noticed > STATED_S:
        broken.append(f"the holder's death was noticed after {noticed:.1f} s, not within {STATED_S} s")
    figures = {
        "stops_executed": executed, "stops": STOPS, "executed_as_the_holder": as_holder,
        "moved_by_the_told_number": stolen, "death_noticed_s": round(noticed, 2),
    }
    return figures, broken


def main() -> None:
    options = arguments()
    with stage() as s:
        pairs = write_keys(s.folder, "robot", "holder", "other")
        address = f"tcp://127.0.0.1:{free_port(socket.SOCK_STREAM)}"
        robot = s.start("robot", options.binary / "ropewalk", "robot", "sim", "--json", "--zmq", address,
                        "--key", s.folder / "robot.key", "--allow", s.folder / "controllers", env=s.bus("robot"))
        figures, broken = attack(s.folder, address, pairs, robot)
    verdict(figures, *broken)


if __name__ == "__main__":
    main()
