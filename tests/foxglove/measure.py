"""What the measurements in this folder and in `tests/drive` share."""

from __future__ import annotations

import subprocess


def end(started: list[subprocess.Popen]) -> None:
    """Ends the processes, the last one first."""
    for process in reversed(started):
        process.terminate()
    for process in started:
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def quantile(values: list[float], share: float) -> float:
    values = sorted(values)
    return round(values[min(len(values) - 1, int(share * len(values)))], 2) if values else float("nan")
