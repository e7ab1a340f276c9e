"""Code that the attacks share: programs under attack, their peak memory and descriptors, a verdict.

An attack is a program of its own in this folder, started as `attack.py --binary FOLDER`. It imports nothing of
Ropewalk. It ends with `verdict(...)`: status 0 if the attack fails, 1 if it succeeds, 4 if it cannot run here
(`run` counts that as a failure in CI). It prints its measurements to stdout as one line of JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, Iterator, NoReturn

CANNOT_RUN = 4


def arguments(**more: dict) -> argparse.Namespace:
    """Parses the command line of an attack: --binary, the folder with `ropewalk`, and the options in `more`."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--binary", type=Path, default=Path("target/tested"), help="folder that holds the built `ropewalk`")
    for name, options in more.items():
        parser.add_argument(f"--{name}", **options)
    return parser.parse_args()


def verdict(figures: dict, *broken: str) -> NoReturn:
    """Prints the figures. Each text in `broken` says how the attack succeeded."""
    print(json.dumps({"attack": Path(sys.argv[0]).stem, "held": not broken, **figures}))
    for text in broken:
        print(f"{Path(sys.argv[0]).stem}: {text}", file=sys.stderr)
    sys.exit(1 if broken else 0)


def cannot_run(why: str) -> NoReturn:
    """Exits because this machine lacks something that the attack needs."""
    print(f"NOT RUN: {Path(sys.argv[0]).stem}: {why}", file=sys.stderr)
    sys.exit(CANNOT_RUN)


def need_root() -> None:
    """Exits unless run by root: some attacks change users or create network namespaces."""
    if os.geteuid() != 0:
        cannot_run("it needs root")


class Program:
    """A program under attack, or an honest one beside it. Its output goes to files in `folder`."""

    def __init__(self, folder: Path, name: str, *command: object, env: dict | None = None, **options) -> None:
        self.name = name
        self.out = folder / f"{name}.out"
        self.err = folder / f"{name}.err"
        with self.out.open("ab") as out, self.err.open("ab") as err:
            self.process = subprocess.Popen(
                [str(c) for c in command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**os.environ, **(env or {})},
                **options,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def status(self, key: str) -> int:
        """Returns a number from /proc/PID/status, such as VmRSS or VmHWM (kB)."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(f"{key}:"):
                return int(line.split()[1])
        raise KeyError(key)

    def shared(self) -> int:
        """Bytes of shared memory that it has reserved: pages of its memfds, touched or not. Needs root."""
        seen: dict[int, int] = {}
        folder = f"/proc/{self.pid}/map_files"
        for name in os.listdir(folder):
            try:
                path = os.path.join(folder, name)
                if os.readlink(path).startswith("/memfd:"):
                    about = os.stat(path)
                    seen[about.st_ino] = about.st_blocks * 512
            except OSError:
                continue
        return sum(seen.values())

    def memory(self) -> tuple[int, int]:
        """Returns its private bytes, and its bytes of shared memory. Needs root."""
        return self.status("RssAnon") * 1024, self.shared()

    def resident(self) -> int:
        """Bytes of memory that it has now, including shared memory."""
        return self.status("VmRSS") * 1024

    def peak(self) -> int:
        """Its peak memory in bytes since `forget_peak`, or ever."""
        return self.status("VmHWM") * 1024

    def forget_peak(self) -> None:
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def lines(self) -> list[str]:
        return self.out.read_text(errors="replace").splitlines()

    def log(self) -> str:
        return self.err.read_text(errors="replace")

    def json(self) -> list[dict]:
        """Returns the complete lines of its stdout that are JSON objects."""
        found = []
        for line in self.lines():
            with contextlib.suppress(ValueError):
                value = json.loads(line)
                if isinstance(value, dict):
                    found.append(value)
        return found

    def stop(self, patience: float = 10) -> int:
        """Ends it with SIGINT, then SIGKILL. Returns its status."""
        if self.is_alive():
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()


@contextlib.contextmanager
def stage() -> Iterator["Stage"]:
    """A folder for an attack and its programs, which is removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="ropewalk-attack-"))
    made = Stage(folder)
    try:
        yield made
    finally:
        for program in reversed(made.programs):
            program.stop()
        shutil.rmtree(folder, ignore_errors=True)


class Stage:
    """Programs, and a runtime folder for each simulated host."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs: list[Program] = []

    def bus(self, host: str) -> dict[str, str]:
        """Returns the environment for the programs of one host."""
        return {"ROPEWALK_RUNTIME_DIR": str(self.folder / f"bus-{host}")}

    def start(self, name: str, *command: object, env: dict | None = None, **options) -> Program:
        program = Program(self.folder, name, *command, env=env, **options)
        self.programs.append(program)
        return program

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path


def free_port(kind: int = socket.SOCK_DGRAM) -> int:
    """Returns a port of the loopback interface that is currently free."""
    with socket.socket(socket.AF_INET, kind) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(what: str, check: Callable[[], object], patience: float = 30) -> object:
    """Waits until `check` returns something true. The timeout is a watchdog: it ends the attack as broken."""
    end = time.monotonic() + patience
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > end:
            verdict({}, f"timeout: {what}")
        time.sleep(0.02)
