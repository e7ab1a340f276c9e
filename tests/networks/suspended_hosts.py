#!/usr/bin/env python3
"""A link's daemon that is stopped and continued, at either end, and a robot that is suspended with all its programs and does
not notice. A second after its return, everything must arrive as before."""

import os
import signal
import time

import kit
import rig
from rig.clock import Clock


def stop(link: rig.Readme, host: str, seconds: float, clock: Clock | None) -> None:
    """Stops the daemon of a host for this long, or the whole host, whose clocks then stop as well."""
    daemon = link.daemons[host]
    programs = [daemon] if clock is None else [daemon, *(p for p in link.publishers if p.name != "pub-cmd_vel")]
    for program in programs:
        os.kill(program.pid, signal.SIGSTOP)
    began = time.monotonic()
    time.sleep(seconds)
    if clock:
        clock.lose(time.monotonic() - began)
    for program in programs:
        os.kill(program.pid, signal.SIGCONT)


def attempt(ropewalk: object, host: str, away: float, suspend: bool, seconds: float) -> dict:
    with rig.Spaces("base", "robot") as spaces, kit.stage() as stage:
        address = rig.pair(spaces)
        rig.keys(stage, ropewalk, "base", "robot")
        link = rig.Readme(stage, ropewalk, spaces)
        clock = Clock(stage, "robot") if suspend else None
        if clock:
            link.env["robot"], link.clocks["robot"] = clock.env, clock.read
        link.publish()
        link.start_both(address)
        return {"away_s": away} | link.compare(seconds, lambda: stop(link, host, away, clock))


def main() -> None:
    kit.need_root()
    options = kit.arguments(
        seconds={"type": float, "default": 4.0, "help": "seconds to measure, once without and once with"},
        away={"type": float, "default": 1.0, "help": "factor that lengthens the absences"})
    ropewalk = (options.binary / "ropewalk").resolve()
    rig.judge(rig.beside_each_other({
        "robot_stopped": lambda: attempt(ropewalk, "robot", 5 * options.away, False, options.seconds),
        "base_stopped": lambda: attempt(ropewalk, "base", 10 * options.away, False, options.seconds),
        "robot_suspended": lambda: attempt(ropewalk, "robot", 10 * options.away, True, options.seconds)}))


if __name__ == "__main__":
    main()
