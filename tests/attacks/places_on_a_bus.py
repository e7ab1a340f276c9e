#!/usr/bin/env python3
"""One process takes all subscriber places of a publisher, and all descriptors of a subscriber.

Another process must still be able to subscribe to the publisher, and to publish to the subscriber, and the victim must
keep descriptors for itself.
"""

from __future__ import annotations

import os
import resource
import signal
import time

from kit import bus
import kit

OPEN_FILES = 1024
WELCOMES = 6000


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))


def main() -> None:
    options = kit.arguments()
    ropewalk = options.binary / "ropewalk"
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < 2 * WELCOMES:
        kit.cannot_run(f"it needs {2 * WELCOMES} open files, the hard limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * WELCOMES, hard))
    broken, figures = [], {}
    with kit.stage() as stage:
        env = stage.bus("a")
        folder = stage.folder / "bus-a"
        talk = ("topic", "pub", "/t", "std_msgs/String", "data: hello", "-r", "20", "--wait", "0")
        victim = stage.start("victim", ropewalk, *talk, env=env, preexec_fn=limited)
        path = kit.wait_for("the publisher's socket", lambda: bus.sockets(folder, "p", "/t"))[0]
        kept, why = [], ""
        for i in range(300):
            s, fds, text = bus.subscribe(path, "/t", 10_000 + i)
            why = text or why
            if s is None:
                break
            kept.append((s, fds))
        figures["places_of_256"], figures["refused_as"] = len(kept), why
        honest = stage.start("honest", ropewalk, "topic", "echo", "/t", "-n", "3", env=env)
        try:
            honest.process.wait(20)
        except Exception:
            broken.append(f"another process finds no place next to one process that has {len(kept)}")
        figures["stranger_heard"] = len(honest.lines())
        figures["victims_descriptors"] = victim.descriptors()
        # Silent connections: handshakes of others must still complete.
        silent = []
        for _ in range(200):
            try:
                silent.append(bus.connect(path))
            except OSError:
                break
        again = stage.start("again", ropewalk, "topic", "echo", "/t", "-n", "3", env=env)
        try:
            again.process.wait(20)
        except Exception:
            broken.append(f"{len(silent)} silent connections keep another process out")
        for s, fds in kept:
            s.close()
            [os.close(fd) for fd in fds]
        [s.close() for s in silent]
        time.sleep(5)
        figures["victims_descriptors_5_s_later"] = victim.descriptors()
        if victim.descriptors() > 40:
            broken.append(f"the publisher keeps {victim.descriptors()} descriptors of a process that left")
        victim.stop()

        # A subscriber that one process welcomes endlessly.
        listener = stage.start("listener", ropewalk, "topic", "echo", "/u", "--wait", "60", env=env, preexec_fn=limited)
        talker = ("topic", "pub", "/u", "std_msgs/String", "data: first", "-r", "5")
        first = stage.start("first", ropewalk, *talker, env=env)
        path = kit.wait_for("the subscriber's socket", lambda: bus.sockets(folder, "s", "/u"))[0]
        figures["descriptors_before"] = listener.descriptors()
        # A closed connection must not end this script.
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        kept, why, peak = [], "", 0
        end = time.monotonic() + 60
        for i in range(WELCOMES):
            try:
                s, fds, _, text = bus.welcome(path, "/u", 50_000 + i)
            except OSError as error:
                why = str(error)
                break
            [os.close(fd) for fd in fds]
            if s is None:
                why = text
                break
            kept.append(s)
            if i % 50 == 0:
                peak = max(peak, listener.descriptors())
            if time.monotonic() > end:
                break
        peak = max(peak, listener.descriptors())
        figures |= {"welcomes": len(kept), "then": why, "listeners_descriptors": peak, "of": OPEN_FILES}
        if peak > OPEN_FILES * 3 // 4:
            broken.append(f"one process makes a subscriber hold {peak} of its {OPEN_FILES} descriptors")
        second = stage.start("second", ropewalk, "topic", "pub", "/u", "std_msgs/String", "data: second", "-r", "20", env=env)
        end = time.monotonic() + 20
        while "second" not in listener.out.read_text() and time.monotonic() < end:
            time.sleep(0.1)
        if "second" not in listener.out.read_text():
            broken.append("another publisher's messages do not arrive meanwhile")
        [s.close() for s in kept]
        time.sleep(5)
        figures["listeners_descriptors_5_s_later"] = listener.descriptors()
        if listener.descriptors() > figures["descriptors_before"] + 20:
            broken.append("the subscriber keeps descriptors of a process that left")
        del first, second
    kit.verdict(figures, *broken)


main()
