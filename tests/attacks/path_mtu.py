#!/usr/bin/env python3
"""Networks that pass only small packets, report it or drop them silently, from the start or from some moment on. All topics of
a link must arrive as without the limit, once the link has found it; how long that takes is shown as `back_s`."""

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import kit

# How long messages are counted, once none has been lost for CALM_S since the link is up or the path has changed.
COUNTED_S = 5.0
CALM_S = 1.0
WATCHDOG_S = 15.0
ENOUGH = 0.99
# (name, IP version, MTU, silent, from the start)
PATHS = [
    ("ordinary", 4, 1500, False, True),
    ("1280, ICMP", 4, 1280, False, True),
    ("1280, silent", 4, 1280, True, True),
    ("1420, silent", 4, 1420, True, True),
    ("1000, silent", 4, 1000, True, True),
    ("576, silent", 4, 576, True, True),
    ("9000", 4, 9000, False, True),
    ("1280, ICMP, IPv6", 6, 1280, False, True),
    ("1280, silent, IPv6", 6, 1280, True, True),
    ("1000 in mid-flow, silent", 4, 1000, True, False),
    ("1280 in mid-flow, silent, IPv6", 6, 1280, True, False),
]


class Network:
    """Hosts `base` and `robot`, joined by two routers."""

    def __init__(self, name: str, version: int, mtu: int) -> None:
        self.spaces = {host: f"rw{os.getpid()}-{name}-{host}" for host in ("base", "left", "right", "robot")}
        self.version = version
        for space in self.spaces.values():
            self.ip("netns", "add", space)
            self.ip("-n", space, "link", "set", "lo", "up")
        own = max(mtu, 1500)
        for net, (a, b) in enumerate((("base", "left"), ("left", "right"), ("right", "robot")), 1):
            ends = [f"to-{b}", f"to-{a}"]
            self.ip("-n", self.spaces[a], "link", "add", ends[0], "mtu", own, "type", "veth",
                    "peer", "name", ends[1], "mtu", own, "netns", self.spaces[b])
            for host, device, last in ((a, ends[0], 1), (b, ends[1], 2)):
                address = f"10.9.{net}.{last}/24" if version == 4 else f"fd09:0:0:{net}::{last}/64"
                more = () if version == 4 else ("nodad",)
                self.ip("-n", self.spaces[host], "address", "add", address, "dev", device, *more)
                self.ip("-n", self.spaces[host], "link", "set", device, "up")
        for host, via in (("base", self.at(1, 2)), ("left", self.at(2, 2)), ("right", self.at(2, 1)), ("robot", self.at(3, 1))):
            self.ip("-n", self.spaces[host], "-6" if version == 6 else "-4", "route", "add", "default", "via", via)
        for host in ("left", "right"):
            path = "ipv4/ip_forward" if version == 4 else "ipv6/conf/all/forwarding"
            self.run(host, "sh", "-c", f"echo 1 > /proc/sys/net/{path}")

    def at(self, net: int, last: int) -> str:
        return f"10.9.{net}.{last}" if self.version == 4 else f"fd09:0:0:{net}::{last}"

    def address(self, host: str) -> str:
        found = self.at(1, 1) if host == "base" else self.at(3, 2)
        return found if self.version == 4 else f"[{found}]"

    def limit(self, mtu: int, silent: bool) -> None:
        """Stops passing packets above `mtu`. A router that cannot forward a packet notifies its sender; one whose
        device receives too long a frame drops it silently."""
        ends = (("left", "to-base"), ("right", "to-robot")) if silent else (("left", "to-right"), ("right", "to-left"))
        for host, device in ends:
            # Linux accepts frames that are longer by a VLAN tag.
            self.ip("-n", self.spaces[host], "link", "set", device, "mtu", mtu - 4 if silent and mtu > 1280 else mtu)

    @staticmethod
    def ip(*arguments: object) -> None:
        subprocess.run(["ip", *map(str, arguments)], check=True)

    def run(self, host: str, *command: str) -> None:
        subprocess.run(["ip", "netns", "exec", self.spaces[host], *command], check=True)

    def remove(self) -> None:
        for space in self.spaces.values():
            subprocess.run(["ip", "netns", "del", space], check=False)


def accounts(robot: kit.Program, base: kit.Program) -> dict[str, tuple[int, int, int]]:
    """Returns the number of messages offered, lost and in flight for each topic, at one moment of its sender."""
    found = {}
    for sender in (robot, base):
        for t in sender.json()[-1]["sent"]:
            if account := t.get("account"):
                found[t["name"]] = (account["offered"], sum(account["dropped"].values()), account["in_flight"])
    return found


def attempt(index: int, ropewalk: object, version: int, mtu: int, silent: bool, at_start: bool) -> dict:
    network = Network(str(index), version, mtu)
    try:
        with kit.stage() as stage:
            subprocess.run([ropewalk, "keys", "team", "rovers"], cwd=stage.folder, check=True, stdout=subprocess.DEVNULL)
            for host in ("base", "robot"):
                subprocess.run([ropewalk, "keys", "host", host], cwd=stage.folder, check=True, stdout=subprocess.DEVNULL)
            if at_start and mtu != max(mtu, 1500):
                network.limit(mtu, silent)

            def start(host: str, peer: str, out: str, into: str) -> kit.Program:
                bind = "0.0.0.0" if version == 4 else "[::]"
                file = stage.write(f"{host}.yaml", f"""
host: {host}
keys: rovers/hosts/{host}
radio: {{bind: '{bind}:7400', rate: auto}}
peers:
  - {{name: {peer}, address: '{network.address(peer)}:7400'}}
topics:
  - {{name: /scan,    priority: 100, direction: {out}, depth: 2, deadline: 100ms}}
  - {{name: /camera,  priority: 10,  direction: {out}, rate_limit: 5Hz}}
  - {{name: /cmd_vel, priority: 120, direction: {into}}}
""")
                command = ("ip", "netns", "exec", network.spaces[host], ropewalk, "link", file, "--json", "--every", "0.1")
                return stage.start(host, *command, env=stage.bus(host))

            publishers = []

            def publish(host: str, topic: str, size: int, rate: float) -> None:
                publishers.append(stage.start(f"pub{topic.replace('/', '-')}", ropewalk, "topic", "pub", topic, "std_msgs/String",
                            f"data: {'x' * size}", "--rate", rate, env=stage.bus(host)))

            publish("robot", "/scan", 3000, 20)
            publish("robot", "/camera", 60_000, 5)
            publish("base", "/cmd_vel", 60, 20)
            time.sleep(1)
            base, robot = start("base", "robot", "in", "out"), start("robot", "base", "out", "in")
            began = time.monotonic()
            kit.wait_for("the first states", lambda: base.json() and robot.json())

            def up() -> bool:
                return all(p.json()[-1]["peers"][0]["up"] for p in (base, robot))

            end = time.monotonic() + 15
            while not up():
                if time.monotonic() > end:
                    return {"up_s": None, "part": 0.0}
                time.sleep(0.05)
            figures = {"up_s": round(time.monotonic() - began, 2)}
            if not at_start:
                time.sleep(3)
                network.limit(mtu, silent)
            changed = calm_since = time.monotonic()
            before = accounts(robot, base)
            while (now := time.monotonic()) < calm_since + CALM_S and now < changed + WATCHDOG_S:
                time.sleep(0.1)
                last, before = before, accounts(robot, base)
                if any(before[topic][1] != last.get(topic, before[topic])[1] for topic in before):
                    calm_since = time.monotonic()
            figures["back_s"] = round(calm_since - changed, 1)
            time.sleep(COUNTED_S)
            for publisher in publishers:
                publisher.stop()
            # Once nobody publishes, all that was offered is soon known to be delivered or lost.
            end = time.monotonic() + 3
            after = accounts(robot, base)
            while any(in_flight for _, _, in_flight in after.values()) and time.monotonic() < end:
                time.sleep(0.1)
                after = accounts(robot, base)
            parts = {}
            for topic, (offered, lost, in_flight) in after.items():
                (o, l, _) = before.get(topic, (0, 0, 0))
                parts[topic] = 1.0 - (lost - l + in_flight) / max(1, offered - o)
            figures |= {"parts": {t: round(p, 3) for t, p in parts.items()}, "part": round(min(parts.values(), default=0.0), 3)}
            figures["offered"] = {topic: offered - before.get(topic, (0, 0, 0))[0] for topic, (offered, _, _) in after.items()}
            figures["topics"] = len(parts)
            figures["path_mtu"] = robot.json()[-1]["peers"][0].get("path_mtu")
            return figures
    finally:
        network.remove()


def main() -> None:
    kit.need_root()
    options = kit.arguments(only={"default": "", "help": "paths whose names contain this"})
    ropewalk, only = (options.binary / "ropewalk").resolve(), options.only
    paths = {name: (index, ropewalk, *path) for index, (name, *path) in enumerate(PATHS) if only in name}
    # The attempts mostly wait.
    with ThreadPoolExecutor(2) as pool:
        figures = dict(zip(paths, pool.map(lambda path: attempt(*path), paths.values())))
    for name, path in paths.items():
        if figures[name]["part"] < ENOUGH:
            # On a busy machine a message or two in a hundred may be lost, but hardly twice in a row.
            figures[name] = attempt(*path)
    broken = [f"{name}: {f}" for name, f in figures.items() if f["part"] < ENOUGH or f.get("topics") != 3]
    kit.verdict(figures, *broken)


if __name__ == "__main__":
    main()
