#!/usr/bin/env python3
"""A member of a group replaces each new socket in the group's runtime folder by a link to a file of root.

The attacker uses inotify to win the race. The file's mode and owner must not change, programs of both users must still find
each other, and `doctor` must name a folder in which members can do that.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import struct
import subprocess
import time
from pathlib import Path

from kit import bus
import kit

GROUP = 65534
TOPICS = 60
WANTED = 1000


def become_member() -> None:
    os.setgroups([])
    os.setgid(GROUP)
    os.setuid(GROUP)


def hostile(folder: Path, secret: Path, reported: int, pids: int) -> None:
    """Offers topics, so that other users bind sockets, and replaces whatever appears."""
    become_member()
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    libc.inotify_add_watch(watch, str(folder).encode(), 0x100 | 0x80 | 0x04)  # CREATE, MOVED_TO, ATTRIB
    events = swapped = 0
    while True:
        try:
            data = os.read(watch, 65536)
        except BlockingIOError:
            data = b""
        at = 0
        while at < len(data):
            _, mask, _, length = struct.unpack_from("<iIII", data, at)
            name = data[at + 16 : at + 16 + length].rstrip(b"\0").decode()
            at += 16 + length
            path = folder / name
            if f".{pids}." in name or name == "moved" or path.is_symlink():
                continue  # The attacker's own.
            events += 1
            try:
                os.rename(path, folder / "moved")
                os.symlink(secret, path)
                swapped += 1
            except OSError:
                pass
            if mask & 0x40000000:
                # For a folder: place a link in it, if it can be entered.
                try:
                    os.symlink(secret, path / "x")
                    swapped += 1
                except OSError:
                    pass
        os.pwrite(reported, struct.pack("<QQ", events, swapped), 0)


def offers(folder: Path) -> None:
    """Topics of the attacker, for others to subscribe to."""
    become_member()
    made = []
    for i in range(TOPICS):
        o = bus.Offer(folder, f"/t{i}", 1000 + i, bus.info(1000 + i, f"/t{i}"), bus.frame(bus.REFUSE, b"\3\0\0"))
        os.chmod(o.path, 0o660)
        made.append(o)
    while True:
        for o in made:
            o.serve_now()


def serve_now(self: bus.Offer) -> None:
    self.listener.setblocking(False)
    try:
        visitor, _ = self.listener.accept()
    except BlockingIOError:
        time.sleep(0.0002)
        return
    with visitor:
        visitor.settimeout(1)
        kind, body, _ = bus.receive(visitor)
        if kind == bus.HELLO:
            try:
                visitor.send(self.answer if body[2] == bus.OBSERVER else self.refuse)
            except OSError:
                pass


bus.Offer.serve_now = serve_now


def child(f, *arguments) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            f(*arguments)
        finally:
            os._exit(1)
    return pid


def main() -> None:
    options = kit.arguments()
    kit.need_root()
    broken = []
    with kit.stage() as stage:
        os.chmod(stage.folder, 0o711)
        shutil.copy(options.binary / "ropewalk", stage.folder / "ropewalk")
        ropewalk = stage.folder / "ropewalk"
        os.chmod(ropewalk, 0o755)
        folder = stage.folder / "bus"
        env = {"ROPEWALK_RUNTIME_DIR": str(folder), "ROPEWALK_GROUP": str(GROUP), "RUST_LOG": "error"}
        run = lambda *c: subprocess.run([ropewalk, *c], env={**os.environ, **env}, capture_output=True, text=True)
        run("topic", "list")
        mode = os.stat(folder).st_mode & 0o7777
        if mode != 0o3770 or os.stat(folder).st_gid != GROUP:
            broken.append(f"the folder is created with mode {mode:o}")
        secret = stage.folder / "secret"
        secret.touch(0o600)
        before = os.stat(secret)
        reported = os.open(stage.folder / "reported", os.O_CREAT | os.O_RDWR)
        os.pwrite(reported, bytes(16), 0)
        figures = {}
        # First as it is created, then with an older recommended mode: without setgid and the sticky bit, members may rename everything.
        for name, folder_mode in (("sticky", 0o3770), ("old", 0o770)):
            os.chmod(folder, folder_mode)
            os.pwrite(reported, bytes(16), 0)
            attackers = [child(offers, folder)]
            attackers.append(child(hostile, folder, secret, reported, attackers[0]))
            time.sleep(0.5)
            try:
                end = time.monotonic() + 60
                while (events := struct.unpack("<QQ", os.pread(reported, 16, 0)))[0] < WANTED and time.monotonic() < end:
                    recorder = stage.start("recorder", ropewalk, "record", stage.folder / "out.mcap", "--duration", "2", env=env)
                    recorder.process.wait(30)
                    (stage.folder / "out.mcap").unlink(missing_ok=True)
            finally:
                for pid in attackers:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
            figures[name] = dict(zip(("events", "swapped"), events))
            if events[0] < WANTED:
                broken.append(f"only {events[0]} events in the {name} folder: the test proves nothing")
            after = os.stat(secret)
            if (after.st_mode, after.st_uid, after.st_gid) != (before.st_mode, before.st_uid, before.st_gid):
                broken.append(f"{name} folder: root's file has mode {after.st_mode & 0o7777:o}, group {after.st_gid}")
            found = run("doctor", "--no-measure", "--json").stdout
            fixes = [c["fix"] for c in json.loads(found)["checks"] if c["check"] == "runtime folder"]
            if (folder_mode == 0o770) != any(f and "chmod 3770" in f for f in fixes):
                broken.append(f"doctor says of the {name} folder: {fixes}")
            for entry in folder.iterdir():
                entry.rmdir() if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        os.chmod(folder, 0o3770)
        # Honest programs of both users find each other.
        publish = ("topic", "pub", "/honest", "std_msgs/String", "data: hello", "-r", "20")
        for number, (publisher, subscriber) in enumerate(((None, become_member), (become_member, None))):
            talker = stage.start(f"talker{number}", ropewalk, *publish, env=env, preexec_fn=publisher)
            heard = stage.start(f"heard{number}", ropewalk, "topic", "echo", "/honest", "-n", "3", env=env, preexec_fn=subscriber)
            status = heard.process.wait(30)
            figures[f"honest_{number}"] = len(heard.lines())
            if status or "hello" not in heard.out.read_text():
                broken.append(f"honest members do not find each other: {heard.log()}")
            talker.stop()
    kit.verdict(figures, *broken)


main()
