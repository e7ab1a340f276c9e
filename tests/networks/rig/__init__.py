"""Code that the networks share: hosts in network namespaces, README's link between two of them, and how much of its topics arrives.

A network is a program of its own in this folder, like an attack (`tests/attacks/kit`, here as `kit`). It measures what a link
delivers without a problem and, in the same run, with it. Its verdict depends only on these shares, never on times.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable, NoReturn

import kit

# Share of each topic that must arrive, relative to the run without the problem.
ENOUGH = 0.99
# Time right after a change of the network in which the link may lose messages.
GRACE_S = 1.0
TOPICS = ("/scan", "/camera", "/cmd_vel")
CLONE_NEWNET = 0x40000000


def ip(*arguments: object) -> None:
    subprocess.run(["ip", *map(str, arguments)], check=True)


class Spaces:
    """Network namespaces by host, which are removed afterwards."""

    made = itertools.count()

    def __init__(self, *hosts: str) -> None:
        self.prefix = f"rw{os.getpid()}-{next(self.made)}"
        self.names: dict[str, str] = {}
        for host in hosts:
            self.add(host)

    def __enter__(self) -> "Spaces":
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], check=False)

    def add(self, host: str) -> None:
        self.names[host] = f"{self.prefix}-{host}"
        ip("netns", "add", self.names[host])
        self.ip(host, "link", "set", "lo", "up")

    def ip(self, host: str, *arguments: object) -> None:
        ip("-n", self.names[host], *arguments)

    def command(self, host: str, *command: object) -> list[object]:
        """Returns the prefix that runs a command on a host. (`ip netns exec` would hide the control groups from it.)"""
        return ["nsenter", f"--net=/run/netns/{self.names[host]}", *command]

    def run(self, host: str, *command: object) -> str:
        words = [str(c) for c in self.command(host, *command)]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    def write(self, host: str, path: str, value: object) -> None:
        """Sets a value below /proc/sys/net."""
        self.run(host, "sh", "-c", f"echo {value} > /proc/sys/net/{path}")

    def cable(self, a: str, of_a: str, b: str, of_b: str, name: str = "") -> None:
        """Connects two hosts with a cable, `to-B` here and `to-A` there, with these addresses (none: '')."""
        (at_a, at_b) = (name or f"to-{b}", name or f"to-{a}")
        self.ip(a, "link", "add", at_a, "type", "veth", "peer", "name", at_b, "netns", self.names[b])
        for host, device, address in ((a, at_a, of_a), (b, at_b, of_b)):
            if address:
                self.ip(host, "address", "add", address, "dev", device, *(("nodad",) if ":" in address else ()))
            self.ip(host, "link", "set", device, "up")

    def enter(self, host: str) -> "Inside":
        return Inside(Path("/run/netns") / self.names[host])


class Inside:
    """Moves this thread into a network namespace for the block; sockets and devices created in it stay there."""

    libc = ctypes.CDLL(None, use_errno=True)

    def __init__(self, space: Path) -> None:
        self.space = space

    @classmethod
    def set(cls, fd: int) -> None:
        if cls.libc.setns(fd, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")

    def __enter__(self) -> None:
        self.before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        fd = os.open(self.space, os.O_RDONLY)
        self.set(fd)
        os.close(fd)

    def __exit__(self, *_: object) -> None:
        self.set(self.before)
        os.close(self.before)


class Wire:
    """A wire between hosts `base` (10.8.0.1) and `robot` (10.8.0.2), which reorders and duplicates (box.py)."""

    ADDRESS = {"base": "10.8.0.1", "robot": "10.8.0.2"}

    def __init__(self, spaces: Spaces, stage: kit.Stage) -> None:
        ends = [f"/run/netns/{spaces.names[host]}" for host in ("base", "robot")]
        self.reported = (stage.folder / "box.out").open("w+")
        self.process = subprocess.Popen([sys.executable, "-m", "rig.box", *ends], cwd=Path(__file__).parent.parent,
                                        stdin=subprocess.PIPE, stdout=self.reported, text=True)
        kit.wait_for("the wire", lambda: Path(self.reported.name).read_text())
        for host, (own, peer) in {"base": (1, 2), "robot": (2, 1)}.items():
            spaces.ip(host, "address", "add", f"10.8.0.{own}", "peer", f"10.8.0.{peer}", "dev", "wire")
            spaces.ip(host, "link", "set", "wire", "mtu", 1500, "up")

    def set(self, **how: float) -> None:
        """Sets the treatment of all further packets in both directions; see box.py."""
        self.process.stdin.write(json.dumps(how) + "\n")
        self.process.stdin.flush()

    def counts(self) -> dict[str, int]:
        """Ends it. Returns what it did with the packets."""
        self.process.stdin.close()
        self.process.wait(10)
        return json.loads(Path(self.reported.name).read_text().splitlines()[-1])


def pair(spaces: Spaces) -> dict[str, str]:
    """Connects the hosts `base` and `robot` with a cable. Returns their addresses."""
    spaces.cable("base", "10.8.0.1/24", "robot", "10.8.0.2/24")
    return dict(Wire.ADDRESS)


def switch(spaces: Spaces, **address: str) -> None:
    """Connects hosts with a switch, which is a host `switch`; each has a device `lan`."""
    spaces.add("switch")
    spaces.ip("switch", "link", "add", "bridge", "type", "bridge")
    spaces.ip("switch", "link", "set", "bridge", "up")
    for index, (host, own) in enumerate(address.items()):
        spaces.ip(host, "link", "add", "lan", "type", "veth", "peer", "name", f"port{index}", "netns", spaces.names["switch"])
        spaces.ip("switch", "link", "set", f"port{index}", "master", "bridge", "up")
        spaces.ip(host, "address", "add", f"{own}/24", "dev", "lan")
        spaces.ip(host, "link", "set", "lan", "up")


def keys(stage: kit.Stage, ropewalk: Path, *hosts: str) -> None:
    subprocess.run([ropewalk, "keys", "team", "rovers"], cwd=stage.folder, check=True, stdout=subprocess.DEVNULL)
    for host in hosts:
        subprocess.run([ropewalk, "keys", "host", host], cwd=stage.folder, check=True, stdout=subprocess.DEVNULL)


# README's topics, with the directions of the robot or the base.
OF_README = """topics:
  - {name: /scan,    priority: 100, direction: %s, depth: 2, deadline: 100ms}
  - {name: /camera,  priority: 10,  direction: %s, rate_limit: 5Hz}
  - {name: /cmd_vel, priority: 120, direction: %s}
"""
QUIC = "{bind: '%s', rate: auto}"
UDP = "{carrier: udp, insecure_udp: true, bind: '%s', rate: auto}"
TLS = "{carrier: tls, bind: '%s', rate: unlimited}"


class Readme:
    """README's link between `base` and `robot` with publishers for its three topics: scans of 3 kB and commands of 60 B at
    20 Hz, images of 60 kB at 5 Hz."""

    def __init__(self, stage: kit.Stage, ropewalk: Path, spaces: Spaces | None, radio: str = QUIC) -> None:
        self.stage, self.ropewalk, self.spaces, self.radio = stage, ropewalk, spaces, radio
        self.daemons: dict[str, kit.Program] = {}
        # Additional environment of all programs of a host.
        self.env: dict[str, dict] = {}
        # Another topic of the robot.
        self.more = ""
        # A host's clock as a function of this one's.
        self.clocks: dict[str, Callable[[float], float]] = {}
        self.publishers: list[kit.Program] = []

    def on(self, host: str, *command: object) -> list[object]:
        return self.spaces.command(host, *command) if self.spaces else list(command)

    def publish(self, *topics: str) -> None:
        for topic, host, size, rate in (("/scan", "robot", 3000, 20), ("/camera", "robot", 60_000, 5), ("/cmd_vel", "base", 60, 20)):
            if not topics or topic in topics:
                self.publishers.append(self.stage.start(
                    f"pub{topic.replace('/', '-')}", self.ropewalk, "topic", "pub", topic, "std_msgs/String",
                    f"data: {'x' * size}", "--rate", rate, env=self.stage.bus(host) | self.env.get(host, {})))

    def silence(self) -> None:
        """Ends all publishers."""
        for program in self.publishers:
            program.stop()
        self.publishers = []

    def config(self, host: str, peer: str, bind: str, address: str) -> Path:
        secret = "" if "carrier: udp" in self.radio else f"keys: rovers/hosts/{host}\n"
        ways = ("out", "out", "in") if host == "robot" else ("in", "in", "out")
        at = f", address: '{address}'" if address else ""
        return self.stage.write(f"{host}.yaml", f"host: {host}\n{secret}radio: {self.radio % bind}\n"
                                f"peers:\n  - {{name: {peer}{at}}}\n{OF_README % ways}{self.more % ways[0] if self.more else ''}")

    def start(self, host: str, file: Path, name: str = "", **options) -> kit.Program:
        command = self.on(host, self.ropewalk, "link", file, "--json", "--every", "0.1")
        env = self.stage.bus(host) | self.env.get(host, {})
        daemon = self.stage.start(name or f"link-{host}", *command, env=env, **options)
        self.daemons[host] = daemon
        return daemon

    def start_both(self, address: dict[str, str], bind: str = "0.0.0.0:7400") -> None:
        """Starts both daemons, each with the other's address (of port 7400; '': none)."""
        for host, peer in (("base", "robot"), ("robot", "base")):
            self.start(host, self.config(host, peer, bind, f"{address[peer]}:7400" if address[peer] else ""))

    def up(self, patience: float = 20) -> float | None:
        """Waits until both ends are up. Returns how long that took, or nothing."""
        began = time.monotonic()
        while time.monotonic() < began + patience:
            states = [self.state(host) for host in ("base", "robot")]
            if all(s.get("peers") and s["peers"][0]["up"] for s in states):
                return round(time.monotonic() - began, 2)
            time.sleep(0.05)
        return None

    def compare(self, seconds: float, trouble: Callable[[], object], *, without_s: float | None = None, grace_s: float = GRACE_S) -> dict:
        """Returns the shares of the topics over this many seconds, without a problem and, from `grace_s` after it starts, with it."""
        figures = {"up_s": self.up()}
        if figures["up_s"] is None:
            return figures | {"without": {}, "with": {}}
        time.sleep(GRACE_S)
        figures["without"] = self.measure(without_s or seconds)
        trouble()
        time.sleep(grace_s)
        figures["with"] = self.measure(seconds)
        return figures

    def state(self, host: str) -> dict:
        """Returns the newest state that a daemon printed."""
        with self.daemons[host].out.open("rb") as out:
            out.seek(max(0, out.seek(0, os.SEEK_END) - (1 << 16)))
            lines = out.read().decode(errors="replace").split("\n")
        # The last line may be incomplete.
        for line in reversed(lines[:-1]):
            try:
                return json.loads(line)
            except ValueError:
                continue
        return {}

    def counts(self, moment: float) -> dict[str, tuple[float, float]]:
        """Returns messages offered and delivered for each topic until a moment of `time.monotonic`."""
        states = {host: (self.daemons[host].json(), self.clocks.get(host, float)(moment)) for host in ("base", "robot")}
        found = {}
        for sender, receiver, topics in (("robot", "base", ("/scan", "/camera")), ("base", "robot", ("/cmd_vel",))):
            for topic in topics:
                found[topic] = (count_at(*states[sender], "sent", "offered", topic),
                                count_at(*states[receiver], "received", "delivered", topic))
        return found

    def measure(self, seconds: float) -> dict[str, float]:
        """Measures for this long which share of the offered messages of each topic is delivered."""
        began = time.monotonic()
        time.sleep(seconds)
        ended = time.monotonic()
        # Wait until both have printed a later state.
        time.sleep(0.4)
        (before, after) = (self.counts(moment) for moment in (began, ended))
        shares = {}
        for topic in TOPICS:
            (offered, delivered) = (a - b for a, b in zip(after[topic], before[topic]))
            # One may be on its way.
            shares[topic] = round(min(1.0, (delivered + 1) / offered), 3) if offered > 1 else 0.0
        return shares


def count_at(states: list[dict], moment: float, way: str, count: str, topic: str, peer: str | None = None) -> float:
    """Interpolates a count of a topic (of one peer) at a moment of the daemon's clock from the states before and after it."""
    def of(state: dict) -> int:
        return sum(t[count] for t in state[way] if t["name"] == topic and peer in (None, t["peer"]))

    states = [s for s in states if s.get("uptime_clock_s")]
    pairs = zip(states, states[1:])
    (before, after) = next(((a, b) for a, b in pairs if b["uptime_clock_s"] >= moment), (states[-1],) * 2)
    (from_s, to_s) = before["uptime_clock_s"], after["uptime_clock_s"]
    part = min(1.0, max(0.0, (moment - from_s) / (to_s - from_s))) if to_s > from_s else 0.0
    return of(before) + part * (of(after) - of(before))


def shortfalls(name: str, figures: dict) -> list[str]:
    """Lists topics that get less than without the problem."""
    if figures.get("up_s", 0) is None:
        return [f"{name}: the link does not come up"]
    without, beside = figures["without"], figures["with"]
    return [f"{name}: {topic} {beside.get(topic, 0.0)}, without {without.get(topic, 0.0)}"
            for topic in TOPICS if beside.get(topic, 0.0) < ENOUGH * max(0.9, without.get(topic, 0.0))]


def beside_each_other(attempts: dict[str, Callable[[], dict]]) -> dict[str, dict]:
    """Runs attempts concurrently, since they mostly wait. Returns the figures of each. Attempts that fall short are repeated alone,
    at most twice: on a busy machine a message or two may be lost, but hardly each time."""
    with ThreadPoolExecutor(max(1, len(attempts))) as pool:
        figures = dict(zip(attempts, pool.map(lambda name: attempts[name](), attempts)))
    for name in list(attempts) * 2:
        if shortfalls(name, figures[name]):
            figures[name] = attempts[name]()
    return figures


def judge(figures: dict[str, dict], *broken: str) -> NoReturn:
    """Prints the verdict over attempts, from their shares `without` and `with`, and other failures."""
    short = [text for name, f in figures.items() if "with" in f for text in shortfalls(name, f)]
    kit.verdict(figures, *short, *broken)
