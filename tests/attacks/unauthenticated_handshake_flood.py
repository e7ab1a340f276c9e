#!/usr/bin/env python3
"""Unauthenticated peers connect 1,500 times per second to both ends of a link, over TCP silently and over QUIC with an overheard first
packet, from a hundred addresses. A link that is restarted meanwhile must come up at most a second later than without them."""

import multiprocessing
import select
import socket
import subprocess
import time

import kit

RATE = 1500
# Loopback addresses that the attackers connect from, including the peers' own.
ADDRESSES = [f"127.0.0.{n}" for n in range(1, 101)]
# Maximum additional time for a peer to come up, on a machine that is busy with the attackers themselves.
MOST = 1.0
TIMES = 3


def connect(port: int, rate: float) -> None:
    """Opens connections to a TCP port at a rate and sends nothing; keeps the newest 200."""
    kept = []
    begun = time.monotonic()
    count = 0
    while True:
        while count < (time.monotonic() - begun) * rate:
            s = socket.socket()
            s.setblocking(False)
            try:
                s.bind((ADDRESSES[count % len(ADDRESSES)], 0))
                s.connect(("127.0.0.1", port))
            except BlockingIOError:
                pass
            except OSError:
                s.close()
                count += 1
                continue
            kept.append(s)
            count += 1
            if len(kept) > 200:
                kept.pop(0).close()
        time.sleep(0.002)


def replay(port: int, packet: bytes, rate: float) -> None:
    """Sends an overheard first QUIC packet to a port at a rate, each time from another address and port."""
    begun = time.monotonic()
    count = 0
    while True:
        while count < (time.monotonic() - begun) * rate:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                s.bind((ADDRESSES[count % len(ADDRESSES)], 0))
                try:
                    s.sendto(packet, ("127.0.0.1", port))
                except OSError:
                    pass
            count += 1
        time.sleep(0.002)


def overhear(port: int) -> bytes:
    """Returns the first complete packet that is sent to a port without another listener."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", port))
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if select.select([s], [], [], 1)[0]:
                packet = s.recv(2000)
                if packet[0] & 0xC0 == 0xC0:
                    return packet
    kit.verdict({}, "no packet was overheard")


def attempt(carrier: str, ropewalk: object) -> tuple[list[float], list[float]]:
    """Measures how long the robot's link takes to come up, without attackers and with them."""
    with kit.stage() as stage:
        def keys(*arguments: object) -> None:
            command = [ropewalk, "keys", *map(str, arguments)]
            subprocess.run(command, cwd=stage.folder, check=True, stdout=subprocess.DEVNULL)

        keys("team", "rovers")
        kind = socket.SOCK_DGRAM if carrier == "quic" else socket.SOCK_STREAM
        ports = {host: kit.free_port(kind) for host in ("base", "robot")}
        for host in ports:
            keys("host", host, "--team", "rovers")

        def start(host: str, peer: str, name: str) -> kit.Program:
            file = stage.write(f"{host}.yaml", f"""
host: {host}
keys: rovers/hosts/{host}
radio: {{carrier: {carrier}, bind: '127.0.0.1:{ports[host]}', rate: unlimited}}
peers: [{{name: {peer}, address: '127.0.0.1:{ports[peer]}'}}]
topics: [{{name: /cmd_vel, direction: both}}]
""")
            return stage.start(name, ropewalk, "link", file, "--json", "--every", "0.1", env=stage.bus(host))

        base = start("base", "robot", "base")
        packets = {}
        if carrier == "quic":
            packets["base"] = overhear(ports["robot"])
        turns = []

        def up() -> float:
            """Returns the seconds from the robot's first state, which it writes once its port is open, until it is up."""
            turns.append(None)
            robot = start("robot", "base", f"robot-{len(turns)}")
            kit.wait_for("the robot's port", robot.lines)
            began = time.monotonic()
            kit.wait_for("the link", lambda: any(state["peers"][0]["up"] for state in robot.json() if state["peers"]), 60)
            took = time.monotonic() - began
            robot.stop()
            return took

        without = [up() for _ in range(TIMES)]
        attackers = []
        for host, port in ports.items():
            if carrier == "tls":
                arguments = (connect, (port, RATE))
            else:
                # Send the base's packet to both ends; one of them knows it.
                arguments = (replay, (port, packets["base"], RATE))
            attackers.append(multiprocessing.Process(target=arguments[0], args=arguments[1], daemon=True))
        for attacker in attackers:
            attacker.start()
        time.sleep(2)
        try:
            among = [up() for _ in range(TIMES)]
            if not base.is_alive():
                kit.verdict({}, f"the base's link over {carrier} ended: {base.log()[-500:]}")
        finally:
            for attacker in attackers:
                attacker.kill()
                attacker.join()
        return without, among


def main() -> None:
    ropewalk = (kit.arguments().binary / "ropewalk").resolve()
    figures, broken = {}, []
    for carrier in ("tls", "quic"):
        without, among = attempt(carrier, ropewalk)
        figures[carrier] = {"up_s_without": [round(t, 2) for t in without], "up_s_among": [round(t, 2) for t in among]}
        if max(among) > max(without) + MOST:
            broken.append(f"over {carrier}, a link took {max(among):.1f} s to come up, {max(without):.1f} s without attackers")
    kit.verdict(figures, *broken)


if __name__ == "__main__":
    main()
