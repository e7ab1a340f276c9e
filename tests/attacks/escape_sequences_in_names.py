#!/usr/bin/env python3
"""A publisher puts escape sequences into its topic, its type, its definition and its refusals.

No command may print any of them, neither on standard output nor in its log.
"""

from __future__ import annotations

import os
import select
import subprocess
import threading

from kit import bus
import kit

EVIL = "\x1b]0;owned\x07\x1b[2J\u009b31m\u202e\u200b\r\x08"


def bad(data: bytes) -> list[str]:
    """Returns characters that a terminal interprets or hides."""
    text = data.decode(errors="replace")
    found = {c for c in text if c not in "\n\t" and (ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u200b")}
    return sorted(f"U+{ord(c):04X}" for c in found)


def main() -> None:
    options = kit.arguments()
    broken, figures = [], {}
    with kit.stage() as stage:
        env = {**os.environ, **stage.bus("a"), "RUST_LOG": "debug"}
        folder = stage.folder / "bus-a"
        mismatch = bus.frame(bus.REFUSE, b"\1" + bus.text(f"the type is {EVIL} here"))
        name, kind = f"/scan{EVIL}", f"std_msgs/String{EVIL}"
        offers = [
            bus.Offer(folder, name, 1, bus.info(1, name), mismatch),
            bus.Offer(folder, "/type", 2, bus.info(2, "/type", kind), bus.hello(bus.PUBLISHER, 2, "/type", kind)),
            bus.Offer(folder, "/refused", 3, bus.info(3, "/refused", refusals=(f"not {EVIL} so", EVIL)), mismatch),
            bus.Offer(folder, "/text", 4, bus.info(4, "/text", definition=f"string data # {EVIL.strip()}\n"), mismatch),
        ]
        by_fd = {o.listener.fileno(): o for o in offers}
        stop = threading.Event()

        def serve() -> None:
            while not stop.is_set():
                for fd in select.select(list(by_fd), [], [], 0.1)[0]:
                    try:
                        by_fd[fd].serve()
                    except OSError:
                        pass

        thread = threading.Thread(target=serve)
        thread.start()
        commands = {
            "list": ("topic", "list"),
            "list_json": ("topic", "list", "--json"),
            "info": ("topic", "info", "/refused"),
            "info_text": ("topic", "info", "/text"),
            "info_name": ("topic", "info", name),
            "echo": ("topic", "echo", "/refused", "--wait", "1", "-n", "1"),
            "echo_type": ("topic", "echo", "/type", "--wait", "1", "-n", "1"),
            "doctor": ("doctor", "--no-measure"),
            "top": ("top", "-n", "1"),
            "service": ("service", "call", f"/a{EVIL}", "{}", "--timeout", "1"),
            "publish": ("topic", "pub", name, "std_msgs/String", "data: a", "--wait", "1"),
            "show": ("msg", "show", f"a/B{EVIL}"),
        }
        for what, command in commands.items():
            try:
                done = subprocess.run([options.binary / "ropewalk", *command], env=env, capture_output=True, timeout=20)
                out, err = done.stdout, done.stderr
            except subprocess.TimeoutExpired as over:
                out, err = over.stdout or b"", over.stderr or b""
            figures[what] = {"out": len(out), "err": len(err)}
            for stream, data in (("standard output", out), ("log", err)):
                # C1 and bidirectional control characters are legal in JSON, and so are escapes.
                if found := bad(data):
                    broken.append(f"`ropewalk {command[0]} {command[1]}` prints {', '.join(found)} to its {stream}")
            if what == "info" and b"not " not in out:
                broken.append(f"the refusal is not printed at all: {out!r} {err!r}")
        stop.set()
        thread.join()
    kit.verdict(figures, *broken)


main()
