#!/usr/bin/env python3
"""A robot whose clocks run 500 ppm fast or slow, the worst case of a crystal, and ten times that: the drift of an hour
then takes six minutes."""


import kit
import rig
from rig.clock import Clock

RATES_PPM = {"fast": 500, "slow": -500, "ten_times_as_fast": 5000}


def attempt(ropewalk: object, parts_per_million: float, seconds: float) -> dict:
    with rig.Spaces("base", "robot") as spaces, kit.stage() as stage:
        address = rig.pair(spaces)
        rig.keys(stage, ropewalk, "base", "robot")
        link = rig.Readme(stage, ropewalk, spaces)
        clock = Clock(stage, "robot")
        link.env["robot"], link.clocks["robot"] = clock.env, clock.read
        link.publish()
        link.start_both(address)
        figures = link.compare(seconds, lambda: clock.set(parts_per_million), without_s=seconds / 3)
        about = (link.state("base").get("peers") or [{}])[0]
        return {"ppm": parts_per_million} | figures | {"clock": about.get("clock")}


def main() -> None:
    kit.need_root()
    options = kit.arguments(seconds={"type": float, "default": 12.0, "help": "seconds to measure with drift"})
    ropewalk = (options.binary / "ropewalk").resolve()
    rig.judge(rig.beside_each_other({
        name: lambda ppm=ppm: attempt(ropewalk, ppm, options.seconds) for name, ppm in RATES_PPM.items()}))


if __name__ == "__main__":
    main()
