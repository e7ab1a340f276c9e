#!/usr/bin/env python3
"""A peer of a link claims airtime with ten small datagrams per second, for itself and for hosts that do not exist.

The victim sends scans to a base. The liar is a peer of the victim or of the base. If the peer that it talks through, or the
victim, allows it nothing (`allow: {}`), the victim's figures must be the same as without it. If it is allowed everything, the
victim must keep a tenth of the airtime.
"""

from __future__ import annotations

import threading
import time

from kit import Stage, arguments, free_port, stage, verdict, wait_for
from kit.wire import Peer, claims, clock, rhythms, short_id

SECONDS = 4.0
AFTER = 1.5
SCAN = 4250
LEAST_SHARE = 0.1
# Tolerance for processes on one machine that is also busy otherwise.
MORE_DELAY_MS = 5


class Liar(threading.Thread):
    """Keeps its session up, and sends ten datagrams per second; `lies` are their claims about the air."""

    def __init__(self, to: int, port: int, lies: bool) -> None:
        super().__init__(daemon=True)
        self.peer = Peer("liar", ("127.0.0.1", port), ("127.0.0.1", to))
        self.lies = lies
        self.ended = threading.Event()

    def frames(self) -> list[bytes]:
        # All hosts on this machine share one clock.
        now = time.monotonic_ns() // 1000
        made_up = int(time.monotonic() * 2) % 10 * 8 + 77
        hosts = [short_id("liar")] + [made_up + n for n in range(7)]
        beats = [(hosts[n // 4], 120 + n % 4, 0, now + n * 620, 5_000, 2_400, 1_000) for n in range(8)]
        return [clock(now, 0), claims([(h, 127, 255, 0) for h in hosts]), rhythms(beats)]

    def run(self) -> None:
        while not self.ended.is_set():
            if self.peer.up and self.lies:
                self.peer.send(*self.frames())
            else:
                self.peer.send(b"\x02")
            self.peer.serve(0.1)


def config(host: str, port: int, peers: dict[str, tuple[int, str]], direction: str) -> str:
    """`peers`: the port and further settings of each."""
    listed = "\n".join(f"  - {{name: {name}, address: '127.0.0.1:{at}'{more}}}" for name, (at, more) in peers.items())
    return f"""
host: {host}
radio: {{bind: '127.0.0.1:{port}', rate: 6Mbit/s}}
peers:
{listed}
topics:
  - {{name: /scan, direction: {direction}, priority: 50, depth: 2}}
  - {{name: /back, direction: {"out" if direction == "in" else "in"}, priority: 60}}
"""


def status(program) -> dict | None:
    states = program.json()
    return states[-1] if states else None


def flow(hosts: Stage, at: str, binary, liar_of: str | None, *, by_base: str | None, by_victim: str | None, lies: bool,
         rate: float) -> dict:
    """Returns the figures of the victim's scans. `by_base`, `by_victim`: how each configures the liar, if it lists it."""
    ports = {name: free_port() for name in ("victim", "base", "liar", "nobody")}
    lists = {
        "victim": {"base": (ports["base"], "")},
        "base": {"victim": (ports["victim"], ", allow: {publish: [/scan], subscribe: [/back]}")},
    }
    for host, more in (("victim", by_victim), ("base", by_base)):
        if more is not None:
            lists[host]["liar"] = (ports["liar" if host == liar_of else "nobody"], more)
    daemons = {}
    for host, direction in (("base", "in"), ("victim", "out")):
        file = hosts.write(f"{at}-{host}.yaml", config(host, ports[host], lists[host], direction))
        env = hosts.bus(f"{at}-{host}")
        daemons[host] = hosts.start(f"{at}-{host}", binary / "ropewalk", "link", file, "--json", env=env)
    liar = Liar(ports[liar_of], ports["liar"], lies) if liar_of else None
    if liar:
        liar.start()
    wait_for(f"links ({at})", lambda: all(status(d) for d in daemons.values()))
    wait_for(f"the base ({at})", lambda: any(p["up"] for p in status(daemons["victim"])["peers"] if p["name"] == "base"))
    if liar:
        wait_for("the liar to be a peer", lambda: liar.peer.up)
    # Delays are measured with clocks that traffic in both directions synchronizes.
    back = hosts.start(f"{at}-back", binary / "ropewalk", "topic", "pub", "/back", "std_msgs/String", "data: x", "--rate", 20,
                       "--wait", 30, env=hosts.bus(f"{at}-base"))
    scans = hosts.start(f"{at}-scans", binary / "ropewalk", "topic", "pub", "/scan", "std_msgs/String",
                        "data: " + "x" * SCAN, "--rate", rate, "-n", round(rate * SECONDS), "--wait", 30,
                        env=hosts.bus(f"{at}-victim"))
    wait_for(f"scans ({at})", lambda: not scans.is_alive(), 60)
    yields = status(daemons["victim"])["radio"]
    # States are printed once per second.
    time.sleep(AFTER)
    sender, receiver = status(daemons["victim"]), status(daemons["base"])
    sent = next((t for t in sender["sent"] if t["peer"] == "base"), {"offered": 0})
    got = next((t for t in receiver["received"] if t["name"] == "/scan"), {"delivered": 0, "delay": None})
    if liar:
        liar.ended.set()
        liar.join()
        liar.peer.socket.close()
    for program in (scans, back, *daemons.values()):
        program.stop()
    delay = got["delay"] or {}
    return {
        "offered": sent["offered"],
        "delivery": round(got["delivered"] / max(sent["offered"], 1), 3),
        "scans_per_s": round(got["delivered"] / SECONDS, 1),
        "mean_delay_ms": round(delay["mean_us"] / 1e3, 2) if delay else None,
        "yields_to": [(y["host"], round(y["share"], 2)) for y in yields.get("yields_to", [])],
        "claimants": yields["claimants"],
        "rhythms": yields["rhythms"],
    }


def main() -> None:
    options = arguments()
    figures, broken = {}, []
    with stage() as hosts:
        def run(name: str, liar_of: str | None, *, by_base=None, by_victim=None, lies=True, rate=20.0) -> dict:
            at = name.replace(" ", "-")
            figures[name] = flow(hosts, at, options.binary, liar_of, by_base=by_base, by_victim=by_victim, lies=lies, rate=rate)
            return figures[name]

        alone = run("honest", "victim", by_victim=", allow: {}", lies=False)
        denied = {
            "direct": run("direct", "victim", by_victim=", allow: {}"),
            "common peer denies": run("common peer denies", "base", by_base=", allow: {}"),
            "victim denies": run("victim denies", "base", by_base="", by_victim=", allow: {}"),
        }
        for name, f in denied.items():
            delays = [f["mean_delay_ms"], alone["mean_delay_ms"]]
            slower = None not in delays and delays[0] > delays[1] + MORE_DELAY_MS
            if f["delivery"] < 0.98 * alone["delivery"] or slower:
                broken.append(f"{name}: {f} instead of {alone}")
        all_alone = run("saturated alone", "victim", by_victim="", lies=False, rate=200.0)
        for name, liar_of, more in (
            ("saturated direct", "victim", {"by_victim": ""}),
            ("saturated through the base", "base", {"by_base": ""}),
        ):
            f = run(name, liar_of, rate=200.0, **more)
            share = f["scans_per_s"] / all_alone["scans_per_s"]
            f["share"] = round(share, 3)
            # This includes the liar's own datagrams and contention with them.
            if share < 0.95 * LEAST_SHARE:
                broken.append(f"{name}: {share:.3f} of the air is left")
    verdict(figures, *broken)


if __name__ == "__main__":
    main()
