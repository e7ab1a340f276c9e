#!/usr/bin/env python3
"""A robot behind a NAT that forgets a mapping after two idle seconds: while all publishers pause, after the NAT is restarted,
and after the uplink was down for longer than that."""

import subprocess
import textwrap
import time

import kit
import rig

IDLE_S = 2


def build(spaces: rig.Spaces) -> None:
    """The robot has a private address, and the base cannot call it."""
    spaces.cable("robot", "192.168.7.2/24", "nat", "192.168.7.1/24")
    spaces.cable("base", "10.8.1.1/24", "nat", "10.8.1.2/24")
    spaces.ip("robot", "route", "add", "default", "via", "192.168.7.1")
    spaces.write("nat", "ipv4/ip_forward", 1)
    # Random ports, like a NAT for many hosts: a new mapping differs from the old one.
    rules = """
        table ip nat {
            chain out {
                type nat hook postrouting priority srcnat;
                oifname "to-base" masquerade fully-random
            }
        }
        table ip filter {
            chain forward {
                type filter hook forward priority filter; policy drop;
                iifname "to-robot" accept
                ct state established,related accept
            }
        }
        """
    command = [str(c) for c in spaces.command("nat", "nft", "-f", "-")]
    try:
        subprocess.run(command, input=textwrap.dedent(rules), text=True, check=True)
        for name in ("udp_timeout", "udp_timeout_stream", "generic_timeout"):
            spaces.write("nat", f"netfilter/nf_conntrack_{name}", IDLE_S)
        spaces.write("nat", "netfilter/nf_conntrack_tcp_timeout_established", IDLE_S)
    except (OSError, subprocess.CalledProcessError) as e:
        kit.cannot_run(f"cannot set up a NAT here (nft, nf_conntrack): {e}")


def pause(spaces: rig.Spaces, link: rig.Readme) -> None:
    link.silence()
    time.sleep(3 * IDLE_S)
    link.publish()
    # Topics without a publisher are announced again.
    time.sleep(1)


def forget(spaces: rig.Spaces, link: rig.Readme) -> None:
    """Restarts the NAT: its mappings are lost, and the robot's next packet creates another one."""
    spaces.ip("nat", "link", "set", "to-base", "down")
    spaces.write("nat", "netfilter/nf_conntrack_udp_timeout_stream", 0)
    time.sleep(0.3)
    spaces.write("nat", "netfilter/nf_conntrack_udp_timeout_stream", IDLE_S)
    spaces.ip("nat", "link", "set", "to-base", "up")


def cut(spaces: rig.Spaces, link: rig.Readme) -> None:
    spaces.ip("nat", "link", "set", "to-base", "down")
    time.sleep(2.5 * IDLE_S)
    spaces.ip("nat", "link", "set", "to-base", "up")


def attempt(ropewalk: object, trouble: object, radio: str, seconds: float) -> dict:
    with rig.Spaces("base", "robot", "nat") as spaces, kit.stage() as stage:
        build(spaces)
        rig.keys(stage, ropewalk, "base", "robot")
        link = rig.Readme(stage, ropewalk, spaces, radio)
        link.publish()
        # README's base has an address for each peer; here the NAT answers at it.
        link.start_both({"base": "10.8.1.1", "robot": "10.8.1.2"})
        return link.compare(seconds, lambda: trouble(spaces, link))


def main() -> None:
    kit.need_root()
    options = kit.arguments(seconds={"type": float, "default": 4.0, "help": "seconds to measure, once without and once with"},
                            only={"default": "", "help": "only attempts whose name contains this"})
    ropewalk = (options.binary / "ropewalk").resolve()
    attempts = {"silent publishers": (pause, rig.QUIC), "NAT restarted": (forget, rig.QUIC),
                "uplink down": (cut, rig.QUIC), "uplink down, tls": (cut, rig.TLS)}
    rig.judge(rig.beside_each_other({
        name: lambda a=a: attempt(ropewalk, *a, options.seconds) for name, a in attempts.items() if options.only in name}))


if __name__ == "__main__":
    main()
