"""Clocks of a host that run at another rate, or stop while it is suspended (clock.c)."""

import mmap
import struct
import subprocess
import time
from pathlib import Path

import kit


class Clock:
    """Shared by all programs of a host that run in this environment."""

    def __init__(self, stage: kit.Stage, name: str) -> None:
        library = stage.folder / "clock.so"
        if not library.exists():
            source = Path(__file__).with_name("clock.c")
            try:
                subprocess.run(["cc", "-O1", "-Wall", "-shared", "-fPIC", "-o", library, source], check=True)
            except (OSError, subprocess.CalledProcessError) as e:
                kit.cannot_run(f"cannot replace the clocks here: {e}")
        self.path = stage.folder / f"clock-{name}"
        self.path.write_bytes(bytes(24))
        with self.path.open("r+b") as file:
            self.map = mmap.mmap(file.fileno(), 24)
        self.lost, self.rate, self.since = 0, 0, time.monotonic_ns()
        self.env = {"LD_PRELOAD": str(library), "CLOCK_FILE": str(self.path)}

    def set(self, parts_per_million: float) -> None:
        """Makes the clocks run fast by this much. Call it once."""
        self.rate, self.since = int(parts_per_million * 1000), time.monotonic_ns()
        self.map[:] = struct.pack("=qqq", self.rate, self.lost, self.since)

    def lose(self, seconds: float) -> None:
        """Lets this much time pass unnoticed."""
        self.lost += int(seconds * 1e9)
        self.map[8:16] = struct.pack("=q", self.lost)

    def read(self, moment: float) -> float:
        """Returns what the clock shows at a moment of the true one."""
        return moment + (moment - self.since * 1e-9) * self.rate * 1e-9 - self.lost * 1e-9
