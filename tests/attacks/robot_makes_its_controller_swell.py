#!/usr/bin/env python3
"""A hostile robot answers with endless file lists, and with messages that are small on the wire and large in memory.

The controller must end each request, and stay within its memory budget.
"""

from __future__ import annotations

import socket
import struct
import threading
import time

from kit import arguments, free_port, stage, verdict
from kit.remote_wire import EXECUTED, field, fields, first, zmq

# Resident bytes of a controller: 128 MiB for one decoded message, its frame, a list of paths of 32 MiB, and the program.
BUDGET = 400 << 20
PATIENCE_S = 40
# Two bytes make an element of a repeated field.
EMPTY_FILES = field(3, b"") * (8 << 20)
EMPTY_POSES = field(3, b"") * (8 << 20)
PAGE = field(13, field(1, 1 << 40) + field(5, field(1, "x" * 240) + field(2, 1)) * 1000)
WIDE_PAGE = field(13, field(1, 1 << 40) + field(5, b"") * (8 << 20))


class OwnRobot(threading.Thread):
    """Speaks Ropewalk's own protocol; answers every file request with a page."""

    def __init__(self, context: zmq.Context, address: str) -> None:
        super().__init__(daemon=True)
        self.router = context.socket(zmq.ROUTER)
        self.router.bind(address)
        self.page = PAGE
        self.pages = 0

    def run(self) -> None:
        while True:
            peer, message = self.router.recv_multipart()
            if message[0] != 1:
                continue
            request = fields(message[9:])
            head = field(1, first(request, 2)) + field(2, 77, fixed=True) + field(3, time.monotonic_ns(), fixed=True)
            body = b""
            if 10 in request:
                body = field(10, field(1, "rover") + field(2, 2) + field(8, 99, fixed=True))
            elif 15 in request:
                body = self.page
                self.pages += 1
            self.router.send_multipart([peer, b"\x04" + message[1:9] + head + field(4, EXECUTED) + body])


class V6Robot(threading.Thread):
    """Speaks version 6; answers requests for files and values with given data."""

    def __init__(self, context: zmq.Context, requests: str, telemetry: str) -> None:
        super().__init__(daemon=True)
        self.rep = context.socket(zmq.REP)
        self.rep.bind(requests)
        self.pub = context.socket(zmq.PUB)
        self.pub.bind(telemetry)

    def run(self) -> None:
        while True:
            request = self.rep.recv()
            kind = request[0] if request else 0
            answers = {1: b"6", 5: EMPTY_POSES if request[1:2] == b"\x0d" else b"", 7: EMPTY_FILES}
            self.rep.send(answers.get(kind, request[:1]))


def main() -> None:
    options = arguments()
    broken, figures = [], {}
    context = zmq.Context()
    with stage() as s:
        own = f"tcp://127.0.0.1:{free_port(socket.SOCK_STREAM)}"
        robot = OwnRobot(context, own)
        robot.start()
        requests, telemetry = (f"tcp://127.0.0.1:{free_port(socket.SOCK_STREAM)}" for _ in range(2))
        V6Robot(context, requests, telemetry).start()
        v6 = f"{requests} --v6 {telemetry}"
        cases = [("endless list", own, "files ls x", PAGE), ("list of empty names", own, "files ls x", WIDE_PAGE),
                 ("empty files", v6, "files get x", PAGE), ("empty poses", v6, "get poses", PAGE)]
        for n, (name, where, line, page) in enumerate(cases):
            robot.page, robot.pages = page, 0
            script = s.write(f"script{n}", line + "\n")
            binary = options.binary.resolve() / "ropewalk"
            control = s.start(f"control{n}", "sh", "-c", f"exec {binary} control {where} --insecure --json < {script}",
                              cwd=s.folder, env=s.bus("base"))
            end, peak = time.monotonic() + PATIENCE_S, 0
            while control.is_alive() and time.monotonic() < end and peak < 4 * BUDGET:
                try:
                    peak = max(peak, control.peak())
                except (KeyError, FileNotFoundError):
                    pass  # It has just ended.
                time.sleep(0.005)
            ended = not control.is_alive()
            control.stop(1)
            answers = [e for e in control.json() if e.get("ok") is False]
            figures[name] = {"peak_mib": peak >> 20, "ended": ended, "refused": bool(answers), "pages": robot.pages}
            if peak > BUDGET:
                broken.append(f"{name}: the controller took {peak >> 20} MiB, more than {BUDGET >> 20}")
            # A malformed answer is requested again for two minutes, like a lost one: only memory counts here.
            if not ended and name != "list of empty names":
                broken.append(f"{name}: the request did not end")
    verdict(figures, *broken)


if __name__ == "__main__":
    main()
