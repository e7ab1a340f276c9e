"""Kills one part of the running demo with SIGKILL, again and again, at random moments.

    python3 tests/demo/kill.py --binary target/release/ropewalk --kills 100

Each round runs the demo with every part in its own process, kills one of publisher, robot-link, radio,
base-link and subscriber in turn, and checks that
- nothing hangs (a watchdog ends the round as failed);
- the survivors go on until the demo ends them, and losses are reported: every message is delivered or counted;
- survivors do not hold more descriptors than before the kill, and those that shared memory with the dead part do
  not map more of it;
- afterwards no process, no file and no shared memory is left: the numbers are the same as before the round.

Exit status: 0 all rounds good, 1 a check failed, 2 it could not run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

PARTS = ["publisher", "robot-link", "radio", "base-link", "subscriber"]
STARTED = re.compile(r"started ([a-z-]+) \(pid (\d+)\)")
# Pairs that share memory: the survivor must release it.
PEERS = {"publisher": "robot-link", "robot-link": "publisher", "base-link": "subscriber", "subscriber": "base-link"}
WATCHDOG_S = 90
SETTLE_S = 10


class Failed(Exception):
    """A check failed."""


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def mapped(pid: int) -> int:
    """Bytes of shared memory that a process maps from memfds."""
    total = 0
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        if "/memfd:" in line:
            low, high = line.split()[0].split("-")
            total += int(high, 16) - int(low, 16)
    return total


def started_here(pid: int, marker: str) -> bool:
    """Whether this test started a process, by a mark in its environment."""
    try:
        return marker.encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def baseline(folder: Path, marker: str) -> dict:
    """Returns processes with the mark, shared memory that they map, and files in the folder for temporary files."""
    pids = [int(p) for p in os.listdir("/proc") if p.isdigit() and started_here(int(p), marker)]
    shm = 0
    for pid in pids:
        try:
            shm += mapped(pid)
        except OSError:
            pass
    files = sorted(str(p) for p in folder.rglob("*"))
    return {"processes": len(pids), "shared memory": shm, "files": files}


def settle(check, what: str):
    """Waits until `check` returns something true. Fails after a while."""
    deadline = time.monotonic() + SETTLE_S
    while True:
        result = check()
        if result:
            return result
        if time.monotonic() > deadline:
            raise Failed(what() if callable(what) else what)
        time.sleep(0.02)


class Round:
    """One demo with one kill."""

    def __init__(self, binary: str, seconds: float, folder: Path, marker: str, recording: str | None) -> None:
        self.tmp = folder / "t"
        self.json = folder / "out.json"
        self.json.unlink(missing_ok=True)
        env = dict(os.environ, TMPDIR=str(self.tmp), ROPEWALK_KILL_TEST=marker)
        command = [binary, "demo", "--separate", "--only", "priority", "--tries", "1", "--seconds", str(seconds)]
        command += ["--json", str(self.json), "--figure", str(folder / "figure.svg")]
        if recording:
            command += ["--recording", recording]
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.pids: dict[str, int] = {}
        self.lines: list[str] = []
        self.all_started = threading.Event()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self) -> None:
        for line in self.process.stderr:
            self.lines.append(line.rstrip())
            if match := STARTED.search(line):
                self.pids[match[1]] = int(match[2])
                if len(self.pids) == len(PARTS):
                    self.all_started.set()
        self.all_started.set()

    def run(self, victim: str, after: float) -> str:
        """Kills `victim` this long after the parts were started. Returns the outcome of the demo."""
        if not self.all_started.wait(WATCHDOG_S) or len(self.pids) != len(PARTS):
            raise Failed("the parts were not started")
        time.sleep(after)
        survivors = {n: p for n, p in self.pids.items() if n != victim}
        before = {}
        for name, pid in survivors.items():
            try:
                before[name] = (descriptors(pid), mapped(pid))
            except OSError:
                pass  # the demo is over, or this part is
        try:
            os.kill(self.pids[victim], signal.SIGKILL)
        except ProcessLookupError:
            return self.finish(victim, killed=False)
        self.check_survivors(victim, survivors, before)
        return self.finish(victim, killed=True)

    def check_survivors(self, victim: str, survivors: dict, before: dict) -> None:
        """Checks that descriptors and mappings of the survivors return at least to their earlier numbers."""
        for name, pid in survivors.items():
            def good(name=name, pid=pid):
                try:
                    now = (descriptors(pid), mapped(pid))
                except OSError:
                    return True  # it ended, as it may once the demo is over
                if name not in before or self.connecting():
                    return True  # it was inspected while it was still starting
                shares = PEERS.get(victim) == name
                return now[0] <= before[name][0] and (not shares or now[1] <= before[name][1])
            settle(good, f"{name} keeps more descriptors or memory than before the kill: {before.get(name)}")

    def connecting(self) -> bool:
        return any("before the demo had begun" in line for line in self.lines)

    def finish(self, victim: str, killed: bool) -> str:
        try:
            code = self.process.wait(WATCHDOG_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failed(f"the demo hung after {victim} was killed") from None
        self.reader.join(WATCHDOG_S)
        text = "\n".join(self.lines)
        if "panicked" in text:
            raise Failed("a survivor panicked")
        if not killed or "killed by signal 9" not in text:
            if code != 0:
                raise Failed(f"nothing was killed in time, yet exit code {code}")
            return "over before the kill"
        if code == 1 and "before the demo had begun" in text:
            return "killed before the begin"
        if code != 3:
            raise Failed(f"exit code {code} instead of 3")
        return self.check_counts(victim)

    def check_counts(self, victim: str) -> str:
        cells = json.loads(self.json.read_text())["cells"]
        sent = received = 0
        for cell in cells:
            m = cell["metrics"]
            if m["received"] + sum(m["drops"].values()) < m["sent"]:
                raise Failed(f"{cell['params']['topic']}: of {m['sent']} sent, {m['received']} received, only {m['drops']} reported")
            if victim != "subscriber" and not m["content_equal"]:
                raise Failed(f"{cell['params']['topic']}: content differs")
            sent, received = sent + m["sent"], received + m["received"]
        return f"{received} of {sent} messages delivered, the rest reported"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--recording")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    args = parser.parse_args()
    if not os.access(args.binary, os.X_OK):
        print(f"{args.binary} cannot be run: build it first", file=sys.stderr)
        return 2
    print(f"seed {args.seed}")
    chance = random.Random(args.seed)
    failures = 0
    outcomes: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="rk-") as name:
        folder = Path(name)
        tmp = folder / "t"
        tmp.mkdir()
        for i in range(args.kills):
            marker = f"kill-{os.getpid()}-{i}-{args.seed}"
            victim = PARTS[i % len(PARTS)]
            after = chance.uniform(0.0, args.seconds + 1.0)
            start = baseline(tmp, marker)
            demo = Round(args.binary, args.seconds, folder, marker, args.recording)
            try:
                outcome = demo.run(victim, after)
                settle(
                    lambda: baseline(tmp, marker) == start,
                    lambda: f"not as before: {start} became {baseline(tmp, marker)}",
                )
            except Failed as failure:
                failures += 1
                outcome = f"FAILED: {failure}\n  " + "\n  ".join(demo.lines[-30:])
                if demo.process.poll() is None:
                    demo.process.kill()
                    demo.process.wait()
            kind = outcome.split(",")[-1].split(":")[0].strip()
            outcomes[kind] = outcomes.get(kind, 0) + 1
            print(f"{i + 1}/{args.kills}: {victim} killed after {after:.2f} s: {outcome}", flush=True)
    for kind, count in sorted(outcomes.items()):
        print(f"{count} × {kind}")
    print(f"{args.kills - failures} passed, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
