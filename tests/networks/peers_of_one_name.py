#!/usr/bin/env python3
"""A robot's disk copied to another robot: two hosts with the same name and the same keys talk to the base."""


import kit
import rig


def attempt(ropewalk: object, seconds: float) -> dict:
    with rig.Spaces("base", "robot", "copy") as spaces, kit.stage() as stage:
        rig.switch(spaces, base="10.8.0.1", robot="10.8.0.2", copy="10.8.0.3")
        rig.keys(stage, ropewalk, "base", "robot")
        link = rig.Readme(stage, ropewalk, spaces)
        link.publish()
        link.start_both(rig.Wire.ADDRESS)
        copies = []

        def copy() -> None:
            command = spaces.command("copy", ropewalk, "link", stage.folder / "robot.yaml", "--json", "--every", "0.1")
            copies.append(stage.start("link-copy", *command, env=stage.bus("copy")))
            for topic, size, rate in (("/scan", 3000, 20), ("/camera", 60_000, 5)):
                stage.start(f"copy{topic.replace('/', '-')}", ropewalk, "topic", "pub", topic, "std_msgs/String",
                            f"data: {'y' * size}", "--rate", rate, env=stage.bus("copy"))

        figures = link.compare(seconds, copy, grace_s=2)
        if not copies:
            return figures
        figures["copy"] = (copies[0].json() or [{}])[-1].get("peers", [{}])[0].get("up")
        figures["base_says"] = [line for line in link.daemons["base"].log().splitlines() if "WARN" in line or "same" in line][-3:]
        figures["copy_says"] = copies[0].log().splitlines()[-3:]
        return figures


def main() -> None:
    kit.need_root()
    options = kit.arguments(seconds={"type": float, "default": 5.0, "help": "seconds to measure, once without and once with"})
    ropewalk = (options.binary / "ropewalk").resolve()
    rig.judge(rig.beside_each_other({"link": lambda: attempt(ropewalk, options.seconds)}))


if __name__ == "__main__":
    main()
