#!/usr/bin/env python3
"""A second daemon for a configuration that already has one, on the same bus or on another: it is refused with a reason, and the
first goes on."""

import os
import subprocess
import time

import kit
import rig


def second(link: rig.Readme, host: str, bus: str) -> dict:
    """Starts a second daemon, on its own bus or on the host's. Returns its outcome."""
    command = [str(c) for c in link.on(host, link.ropewalk, "link", link.stage.folder / f"{host}.yaml")]
    env = os.environ | link.stage.bus(bus)
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=5)
    except subprocess.TimeoutExpired:
        return {"status": None, "said": ""}
    return {"status": done.returncode, "said": done.stderr.strip().splitlines()[-1] if done.stderr else ""}


def main() -> None:
    kit.need_root()
    options = kit.arguments(seconds={"type": float, "default": 4.0, "help": "seconds to measure, once without and once with"})
    ropewalk = (options.binary / "ropewalk").resolve()
    with rig.Spaces("base", "robot") as spaces, kit.stage() as stage:
        address = rig.pair(spaces)
        rig.keys(stage, ropewalk, "base", "robot")
        link = rig.Readme(stage, ropewalk, spaces)
        link.publish()
        link.start_both(address)
        figures = {"up_s": link.up()}
        if figures["up_s"] is None:
            kit.verdict(figures, "the link does not come up")
        time.sleep(rig.GRACE_S)
        figures["without"] = link.measure(options.seconds)
        refused = {"same bus": second(link, "robot", "robot"), "another bus": second(link, "robot", "elsewhere")}
        figures["with"] = link.measure(options.seconds)
        broken = [f"the second daemon on {where} ran" for where, r in refused.items() if r["status"] in (0, None)]
        for where, word in (("same bus", "already used by process"), ("another bus", "0.0.0.0:7400")):
            if word not in refused[where]["said"]:
                broken.append(f"the second daemon on {where} gives no reason: {refused[where]['said']}")
        rig.judge({"link": figures, "refused": refused}, *broken)


if __name__ == "__main__":
    main()
