#!/usr/bin/env python3
"""A robot is revoked while a base dials it without an answer. It must not get in when it answers with its old keys."""

import shutil
import signal
import socket
import subprocess
import time

import kit

# A dial lives for 10 s.
PATIENCE = 14


def team(stage: kit.Stage, ropewalk: object) -> object:
    def keys(*arguments: object) -> None:
        subprocess.run([ropewalk, "keys", *map(str, arguments)], cwd=stage.folder, check=True, stdout=subprocess.DEVNULL)

    keys("team", "rovers")
    for host in ("base", "robot"):
        keys("host", host, "--team", "rovers")
        # Each host has its own copy, as on separate machines.
        shutil.copytree(stage.folder / "rovers/hosts" / host, stage.folder / f"keys-{host}")
    return keys


def attempt(carrier: str, ropewalk: object) -> float | None:
    """Returns after how many seconds the revoked robot was admitted, or `None`."""
    with kit.stage() as stage:
        keys = team(stage, ropewalk)
        kind = socket.SOCK_DGRAM if carrier == "quic" else socket.SOCK_STREAM
        ports = {host: kit.free_port(kind) for host in ("base", "robot")}

        def start(host: str, peer: str) -> kit.Program:
            file = stage.write(f"{host}.yaml", f"""
host: {host}
keys: keys-{host}
radio: {{carrier: {carrier}, bind: '127.0.0.1:{ports[host]}', rate: unlimited}}
peers: [{{name: {peer}, address: '127.0.0.1:{ports[peer]}'}}]
topics: [{{name: /cmd_vel, direction: both}}]
""")
            return stage.start(host, ropewalk, "link", file, "--json", "--every", "0.2", env=stage.bus(host))

        robot = start("robot", "base")
        kit.wait_for("the robot's port", lambda: "link up" in robot.log() or robot.lines())
        robot.process.send_signal(signal.SIGSTOP)
        base = start("base", "robot")
        kit.wait_for("the base's first state", base.lines)
        time.sleep(2)
        keys("revoke", "robot", "--team", "rovers")
        shutil.copy(stage.folder / "rovers/revoked.pem", stage.folder / "keys-base/revoked.pem")
        time.sleep(1.5)
        robot.process.send_signal(signal.SIGCONT)
        began = time.monotonic()
        while (since := time.monotonic() - began) < PATIENCE:
            if any(peer["up"] for state in base.json() for peer in state["peers"]):
                return since
            time.sleep(0.1)
        return None


def main() -> None:
    ropewalk = (kit.arguments().binary / "ropewalk").resolve()
    let_in = {carrier: attempt(carrier, ropewalk) for carrier in ("quic", "tls")}
    broken = [f"over {c}, a revoked host was admitted after {s:.1f} s" for c, s in let_in.items() if s is not None]
    kit.verdict({"let_in_after_s": let_in}, *broken)


if __name__ == "__main__":
    main()
