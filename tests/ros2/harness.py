"""Processes for the ROS 2 tests: nodes, links and `ropewalk`, each on the bus of its host."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import IO

HERE = Path(__file__).resolve().parent
LONG = 60.0


def environment(folder: str, domain: int = 0, dds: bool = False) -> dict[str, str]:
    """Returns the environment of a node over rmw_ropewalk, or with `dds` of one over Fast DDS on this host."""
    own = {"ROPEWALK_RUNTIME_DIR": folder, "ROS_DOMAIN_ID": str(domain), "ROS_LOG_DIR": folder}
    if dds:
        own |= {"RMW_IMPLEMENTATION": "rmw_fastrtps_cpp", "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    else:
        own |= {"RMW_IMPLEMENTATION": "rmw_ropewalk", "LD_PRELOAD": os.environ["RMW_ROPEWALK"]}
    return {**os.environ, **own}


class Process:
    """A peer. `lines` is everything that it writes; `printed` is its standard output, which contains no warnings of rclpy."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self.printed: list[str] = []
        self.threads = [
            threading.Thread(target=self.read, args=(self.process.stdout, [self.lines, self.printed]), daemon=True),
            threading.Thread(target=self.read, args=(self.process.stderr, [self.lines]), daemon=True),
        ]
        for thread in self.threads:
            thread.start()

    def read(self, stream: IO[str], kept: list[list[str]]) -> None:
        for line in stream:
            for lines in kept:
                lines.append(line.rstrip())

    def join(self) -> None:
        for thread in self.threads:
            thread.join()

    def ended(self, seconds: float = LONG) -> list[str]:
        """Returns what it printed, once it has ended successfully."""
        assert self.process.wait(seconds) == 0, self.lines[-20:]
        self.join()
        return self.printed

    def close(self) -> None:
        self.join()
        # A thread of the library that panics does not end its process.
        assert not any("panicked at" in line for line in self.lines), self.lines[-40:]
        for stream in (self.process.stdout, self.process.stderr):
            assert stream
            stream.close()

    def wait_for(self, what: str, count: int = 1) -> list[str]:
        end = time.monotonic() + LONG
        while True:
            found = [line for line in self.lines if line.startswith(what)]
            if len(found) >= count:
                return found
            if time.monotonic() > end or self.process.poll() is not None:
                raise AssertionError(f"{what!r} {count} times, found {found[:3]} in {self.lines[-20:]}")
            time.sleep(0.02)

    def end(self, how: signal.Signals = signal.SIGKILL) -> None:
        self.process.send_signal(how)
        self.process.wait(LONG)
        self.join()


class Scenario(unittest.TestCase):
    """Returns the folder of a host's bus; without a name there is only one host."""

    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="rw2")
        self.processes: list[Process] = []

    def tearDown(self) -> None:
        for process in self.processes:
            if process.process.poll() is None:
                process.end()
            process.close()
        self.folder.cleanup()

    def host(self, name: str) -> str:
        folder = Path(self.folder.name) / name
        folder.mkdir(mode=0o700, exist_ok=True)
        return str(folder)

    def peer(self, role: str, name: str = "", domain: int = 0, host: str = "", dds: bool = False) -> Process:
        env = environment(self.host(host), domain, dds)
        process = Process([sys.executable, str(HERE / "peer.py"), role, name or role], env)
        self.processes.append(process)
        process.wait_for("ready " + env["RMW_IMPLEMENTATION"])
        return process

    def ropewalk(self, *args: str, host: str = "") -> Process:
        env = {k: v for k, v in environment(self.host(host)).items() if k not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
        process = Process([os.environ["ROPEWALK"], *args], env)
        self.processes.append(process)
        return process

    def script(self, text: str, host: str = "", heap: bool = False, domain: int = 0, dds: bool = False) -> list[str]:
        """Returns what a node prints that does something and ends successfully; with `heap`, its publishers' loans may lie in shared memory."""
        env = environment(self.host(host), domain, dds)
        if heap:
            env["LD_PRELOAD"] += ":" + str(Path(os.environ["ROPEWALK"]).with_name("libropewalk_heap.so"))
        process = Process([sys.executable, "-c", text], env)
        self.processes.append(process)
        return process.ended()
