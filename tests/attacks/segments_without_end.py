#!/usr/bin/env python3
"""A publisher hands its subscribers endless segments: each takes a descriptor and a mapping, or a TiB of address space.

The process must get only its share, another publisher's messages must arrive meanwhile, and everything must be released when it ends.
"""

from __future__ import annotations

import os
import resource
import struct
import time

from kit import bus
import kit

OPEN_FILES = 1024
SEGMENTS = 250
TIB = 1 << 40


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))


def hand_over(s, length: int, many: int) -> int:
    """Sends segments until the subscriber hangs up. Returns how many it accepted at most."""
    fd, _ = bus.memfd(length, bus.SEGMENT_SEALS)
    try:
        for n in range(many):
            try:
                bus.send(s, bus.frame(bus.SEGMENT, struct.pack("<QQ", n + 1, length)), fd)
            except OSError:
                return n
        return many
    finally:
        os.close(fd)


def main() -> None:
    options = kit.arguments()
    ropewalk = options.binary / "ropewalk"
    broken, figures = [], {}
    with kit.stage() as stage:
        env = stage.bus("a")
        folder = stage.folder / "bus-a"
        victim = stage.start("victim", ropewalk, "topic", "echo", "/u", "--wait", "60", env=env, preexec_fn=limited)
        stage.start("first", ropewalk, "topic", "pub", "/u", "std_msgs/String", "data: first", "-r", "5", env=env)
        path = kit.wait_for("the subscriber's socket", lambda: bus.sockets(folder, "s", "/u"))[0]
        kit.wait_for("it hears", lambda: "first" in victim.out.read_text())
        before, space, resident = victim.descriptors(), victim.status("VmSize"), victim.resident()
        peak = most_space = 0
        connections = []
        # A few that take much address space, then many small ones, then address space again.
        for n, (length, many) in enumerate([(TIB, 4)] * 7 + [(4096, SEGMENTS)] + [(TIB, 4)] * 33):
            try:
                s, fds, _, why = bus.welcome(path, "/u", 70_000 + n)
            except OSError as error:
                s, fds, why = None, [], str(error)
            [os.close(fd) for fd in fds]
            if s is None:
                figures["then"] = why
                break
            s.settimeout(0.5)
            connections.append(s)
            taken = hand_over(s, length, many)
            time.sleep(0.2)
            peak, most_space = max(peak, victim.descriptors()), max(most_space, victim.status("VmSize"))
            figures["segments_sent"] = figures.get("segments_sent", 0) + taken
        figures |= {"descriptors_before": before, "descriptors": peak, "of": OPEN_FILES, "space_tib": round((most_space - space) / 2**30, 1),
                    "resident_more": victim.peak() - resident}
        if peak - before > OPEN_FILES * 3 // 8:
            broken.append(f"one process makes a subscriber hold {peak - before} more descriptors, of {OPEN_FILES}")
        if (most_space - space) / 2**30 > 33:
            broken.append(f"one process takes {(most_space - space) / 2**30:.0f} TiB of address space, of 128")
        if victim.peak() - resident > 16 << 20:
            broken.append(f"it uses {(victim.peak() - resident) >> 20} MiB more")
        stage.start("second", ropewalk, "topic", "pub", "/u", "std_msgs/String", "data: second", "-r", "20", env=env)
        kit.wait_for("another publisher's message", lambda: "second" in victim.out.read_text())
        [s.close() for s in connections]
        time.sleep(5)
        figures |= {"descriptors_5_s_later": victim.descriptors(), "space_5_s_later_tib": round((victim.status("VmSize") - space) / 2**30, 1)}
        if victim.descriptors() > before + 8:
            broken.append(f"5 s after it left, {victim.descriptors() - before} descriptors are still held")
    kit.verdict(figures, *broken)


main()
