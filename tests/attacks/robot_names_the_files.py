#!/usr/bin/env python3
"""A robot of version 6 answers `files get` with names of its own choice: hidden files, existing files, and paths out of the folder.

Only the requested file may be written, in a folder of its own.
"""

from __future__ import annotations

import socket
import struct
import threading
from pathlib import Path

from kit import arguments, free_port, stage, verdict
from kit.remote_wire import field, zmq

PROTOCOL_VERSION = 1
# Names that the robot gives to the single file that it sends.
OUTSIDE = "/tmp/ropewalk-attack-x"
NAMES = [".bashrc", "sub/.profile", "mine", "../x", "../../x", OUTSIDE, "link/x", "a/../../x", ".ssh/authorized_keys"]


def answer(name: str) -> bytes:
    return field(3, field(1, name) + field(2, b"theirs"))


class Robot(threading.Thread):
    """Answers requests of version 6 with files under the given name."""

    def __init__(self, context: zmq.Context, requests: str, telemetry: str) -> None:
        super().__init__(daemon=True)
        self.rep = context.socket(zmq.REP)
        self.rep.bind(requests)
        self.pub = context.socket(zmq.PUB)
        self.pub.bind(telemetry)
        self.name_of_file = ""

    def run(self) -> None:
        while True:
            request = self.rep.recv()
            kind = request[0] if request else 0
            if is_file_request(request):
                self.rep.send(answer(self.name_of_file))
            elif kind == PROTOCOL_VERSION:
                self.rep.send(b"6")
            else:
                self.rep.send(request[:1])


def is_file_request(request: bytes) -> bool:
    return b"model" in request


def main() -> None:
    options = arguments()
    broken, refused = [], 0
    context = zmq.Context()
    with stage() as s:
        requests, telemetry = (f"tcp://127.0.0.1:{free_port(socket.SOCK_STREAM)}" for _ in range(2))
        robot = Robot(context, requests, telemetry)
        robot.start()
        for n, name in enumerate(NAMES):
            for command in ["files get model", "files get model wanted"]:
                # The working folder, with an existing file and an existing link.
                home = s.folder / f"home{n}{command.count(' ')}" / "work"
                home.mkdir(parents=True)
                (home / "mine").write_text("mine")
                (home / "model").mkdir()
                (home / "model" / "mine").write_text("mine")
                (home / "model" / "link").symlink_to(s.folder)
                robot.name_of_file = name
                script = s.write("script", command + "\n")
                before = {p for p in s.folder.rglob("*") if p.suffix not in (".out", ".err")}
                control = s.start(f"control{n}{command.count(' ')}", "sh", "-c",
                                  f"exec {options.binary.resolve()}/ropewalk control {requests} --v6 {telemetry} --insecure < {script}",
                                  cwd=home, env=s.bus("base"))
                control.process.wait(60)
                refused += control.process.returncode != 0
                made = {p for p in s.folder.rglob("*") if p.suffix not in (".out", ".err")} - before
                allowed = {home / "model" / "mine"}
                if name == OUTSIDE:
                    # The name is relative to the requested folder.
                    below = home / "model" / name.lstrip("/")
                    allowed |= {below, below.parent}
                bad = [str(p.relative_to(s.folder)) for p in made - allowed]
                if bad:
                    broken.append(f"{command!r}: the robot's name {name!r} created {bad}")
                if Path(OUTSIDE).exists():
                    broken.append(f"{command!r}: {OUTSIDE} was created")
                if (home / "mine").read_text() != "mine" or (home / "model" / "mine").read_text() != "mine":
                    broken.append(f"{command!r}: the robot's name {name!r} replaced a file")
    verdict({"names": len(NAMES), "refused": refused, "of": 2 * len(NAMES)}, *broken)


if __name__ == "__main__":
    main()
