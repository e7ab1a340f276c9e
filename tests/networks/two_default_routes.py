#!/usr/bin/env python3
"""Hosts with two uplinks. The robot's preferred uplink dies, noticed or not, so that its packets leave through the other one,
from another address. The base is called at an address that its own packets do not use."""

import time

import kit
import rig


def build(spaces: rig.Spaces) -> None:
    """Base and robot each have two uplinks, `left` and `right`, to one router."""
    for net, (host, way) in enumerate((("base", "left"), ("base", "right"), ("robot", "left"), ("robot", "right")), 1):
        spaces.cable(host, f"10.8.{net}.1/24", "router", f"10.8.{net}.2/24", name=f"{host[0]}-{way}")
        metric = 100 if way == "left" else 200
        spaces.ip(host, "route", "add", "default", "via", f"10.8.{net}.2", "metric", metric)
    spaces.write("router", "ipv4/ip_forward", 1)
    # Most providers drop packets from an address of the other uplink, so packets leave through the uplink of their address.
    for net, host in ((1, "base"), (2, "base"), (3, "robot"), (4, "robot")):
        spaces.ip(host, "rule", "add", "from", f"10.8.{net}.1", "table", net)
        spaces.ip(host, "route", "add", "default", "via", f"10.8.{net}.2", "table", net)


def die(spaces: rig.Spaces, how: str) -> None:
    """Cuts the robot's left uplink."""
    if how == "noticed":
        spaces.ip("robot", "link", "set", "r-left", "down")
    elif how == "unnoticed":
        # Frames go to a station that no longer exists. A monitor of the uplinks prefers the other one after a while.
        for host, at in (("robot", "10.8.3.2"), ("router", "10.8.3.1")):
            spaces.ip(host, "neighbour", "replace", at, "lladdr", "02:00:00:00:00:99", "dev", "r-left", "nud", "permanent")
        time.sleep(2)
        spaces.ip("robot", "route", "replace", "default", "via", "10.8.4.2", "metric", "50")
    else:
        # The cable is still there, but the preference changes.
        spaces.ip("robot", "route", "replace", "default", "via", "10.8.4.2", "metric", "50")


def attempt(ropewalk: object, address: dict[str, str], how: str, radio: str, seconds: float) -> dict:
    with rig.Spaces("base", "robot", "router") as spaces, kit.stage() as stage:
        build(spaces)
        rig.keys(stage, ropewalk, "base", "robot")
        link = rig.Readme(stage, ropewalk, spaces, radio)
        link.publish()
        link.start_both(address)
        return link.compare(seconds, lambda: how and die(spaces, how))


def main() -> None:
    kit.need_root()
    options = kit.arguments(seconds={"type": float, "default": 4.0, "help": "seconds to measure, once without and once with"},
                            only={"default": "", "help": "only attempts whose name contains this"})
    ropewalk = (options.binary / "ropewalk").resolve()
    preferred = {"base": "10.8.1.1", "robot": "10.8.3.1"}
    # Attempts that call each at the address of its other uplink; a robot without an address is never called.
    other = {"base": "10.8.2.1", "robot": "10.8.4.1"}
    attempts = {f"{how}, {name}": (preferred, how, radio)
                for how in ("noticed", "unnoticed", "preference") for name, radio in (("quic", rig.QUIC),)}
    attempts["noticed, tls"] = (preferred, "noticed", rig.TLS)
    attempts |= {f"called elsewhere, {name}": (other, "", radio)
                 for name, radio in (("quic", rig.QUIC), ("tls", rig.TLS))}
    rig.judge(rig.beside_each_other({
        name: lambda a=a: attempt(ropewalk, *a, options.seconds) for name, a in attempts.items() if options.only in name}))


if __name__ == "__main__":
    main()
