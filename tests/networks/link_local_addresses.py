#!/usr/bin/env python3
"""README's link over link-local IPv6 addresses (fe80::…%DEVICE), compared to one over IPv4. The base has two devices with the
same network on both, so that only the device name says where the robot is."""

import subprocess
import time

import kit
import rig


def attempt(ropewalk: object, scoped: bool, carrier: str, seconds: float) -> dict:
    with rig.Spaces("base", "robot", "other") as spaces, kit.stage() as stage:
        address = rig.pair(spaces)
        spaces.cable("base", "10.8.1.1/24", "other", "10.8.1.2/24")
        if scoped:
            spaces.ip("base", "address", "add", "fe80::1/64", "dev", "to-robot", "nodad")
            spaces.ip("base", "address", "add", "fe80::3/64", "dev", "to-other", "nodad")
            spaces.ip("robot", "address", "add", "fe80::2/64", "dev", "to-base", "nodad")
            # The same address on the network of the other device.
            spaces.ip("other", "address", "add", "fe80::2/64", "dev", "to-base", "nodad")
            address = {"base": "[fe80::1%to-base]", "robot": "[fe80::2%to-robot]"}
        rig.keys(stage, ropewalk, "base", "robot")
        link = rig.Readme(stage, ropewalk, spaces, carrier)
        link.publish()
        link.start_both(address, "[::]:7400" if scoped else "0.0.0.0:7400")
        figures = {"up_s": link.up(8)}
        if figures["up_s"] is None:
            return figures | {"shares": {}, "says": link.daemons["robot"].log().splitlines()[-1:]}
        time.sleep(rig.GRACE_S)
        return figures | {"shares": link.measure(seconds)}


def refusals(ropewalk: object) -> dict[str, str]:
    """Returns the error for a configuration whose address names no device, or one that does not exist."""
    said = {}
    with kit.stage() as stage:
        for name, address in (("none", "[fe80::1]:7400"), ("unknown", "[fe80::1%nowhere0]:7400")):
            file = stage.write(f"{name}.yaml", f"host: robot\nradio: {rig.UDP % '[::]:7400'}\npeers:\n"
                               f"  - {{name: base, address: '{address}'}}\n")
            done = subprocess.run([ropewalk, "link", "--check", file], capture_output=True, text=True)
            said[name] = f"{done.returncode} {done.stderr.strip().replace(str(stage.folder), '')}"
    return said


def main() -> None:
    kit.need_root()
    options = kit.arguments(seconds={"type": float, "default": 4.0, "help": "seconds to measure"})
    ropewalk = (options.binary / "ropewalk").resolve()

    def pair(carrier: str) -> dict:
        (without, scoped) = (attempt(ropewalk, scoped, carrier, options.seconds) for scoped in (False, True))
        return scoped | {"without": without["shares"], "with": scoped["shares"]}

    figures = rig.beside_each_other({
        name: lambda c=c: pair(c) for name, c in (("quic", rig.QUIC), ("udp", rig.UDP), ("tls", rig.TLS))})
    figures["refused"] = refusals(ropewalk)
    broken = [f"an address with no such device is not refused: {said}" for name, said in figures["refused"].items()
              if not said.startswith("2 ") or "device" not in said]
    rig.judge(figures, *broken)


if __name__ == "__main__":
    main()
