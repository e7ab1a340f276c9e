#!/usr/bin/env python3
"""A tenth of the packets delayed behind others by up to 20 ms, and a tenth arriving twice, over each carrier as in the README."""


import kit
import rig

CARRIERS = {"quic": rig.QUIC, "udp": rig.UDP, "tls": rig.TLS}
TROUBLE = {"share": 0.1, "late": 0.02, "twice": 0.1}


def attempt(ropewalk: object, radio: str, seconds: float) -> dict:
    with rig.Spaces("base", "robot") as spaces, kit.stage() as stage:
        wire = rig.Wire(spaces, stage)
        rig.keys(stage, ropewalk, "base", "robot")
        link = rig.Readme(stage, ropewalk, spaces, radio)
        link.publish()
        link.start_both(wire.ADDRESS)
        figures = link.compare(seconds, lambda: wire.set(**TROUBLE))
        states = {host: link.state(host) for host in ("base", "robot")}
        figures["drops"] = {t["name"]: t["drops"] for s in states.values() for t in s.get("received", []) if t["drops"]}
        figures["packets"] = wire.counts()
        return figures


def main() -> None:
    kit.need_root()
    options = kit.arguments(seconds={"type": float, "default": 5.0, "help": "seconds to measure, once without and once with"},
                            only={"default": "", "help": "only carriers whose name contains this"})
    ropewalk = (options.binary / "ropewalk").resolve()
    rig.judge(rig.beside_each_other({
        name: lambda radio=radio: attempt(ropewalk, radio, options.seconds)
        for name, radio in CARRIERS.items() if options.only in name}))


if __name__ == "__main__":
    main()
