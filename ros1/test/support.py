"""A roscore of a test's own, and programs whose lines are looked at."""

import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

# A hang is a failure; how long something takes is not.
WATCHDOG = 300


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Process:
    """A program whose lines on both streams are kept."""

    def __init__(self, command, env):
        self.command = command
        self.lines = []
        self.changed = threading.Condition()
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line.rstrip("\n"))
                self.changed.notify_all()

    def expect(self, pattern, count=1):
        """The `count`th line that matches, waiting for it."""
        deadline = time.monotonic() + WATCHDOG
        with self.changed:
            while True:
                found = [m for m in (re.search(pattern, line) for line in self.lines) if m]
                if len(found) >= count:
                    return found[count - 1]
                if time.monotonic() > deadline or not self.reader.is_alive():
                    raise AssertionError(f"{self.command} has no {count} lines like {pattern!r}:\n" + "\n".join(self.lines[-20:]))
                self.changed.wait(0.2)

    def count(self, pattern):
        with self.changed:
            return sum(1 for line in self.lines if re.search(pattern, line))

    def end(self, how=signal.SIGINT):
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.reader.join()
        self.process.stdout.close()


class Roscore(unittest.TestCase):
    """A roscore, a bus, and what was started, which ends with the test."""

    #: The prefix that Ropewalk and its package were installed below.
    prefix = ""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.running = []
        self.addCleanup(lambda: [p.end() for p in reversed(self.running)])
        port = free_port()
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("ROS", "ROPEWALK", "XDG_RUNTIME"))}
        self.env |= {
            "ROS_MASTER_URI": f"http://127.0.0.1:{port}",
            "ROS_IP": "127.0.0.1",
            "ROS_HOME": self.folder.name + "/home",
            "ROS_PACKAGE_PATH": f"{self.prefix}/share:/usr/share",
            "ROPEWALK_RUNTIME_DIR": self.bus("bus"),
            "PYTHONUNBUFFERED": "1",
            "ROSCONSOLE_STDOUT_LINE_BUFFERED": "1",
        }
        self.start(["/usr/bin/python3", "/usr/bin/rosmaster", "--core", "-p", str(port), "-w", "3"])
        deadline = time.monotonic() + WATCHDOG
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def bus(self, name):
        path = f"{self.folder.name}/{name}"
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path

    def start(self, command, **env):
        process = Process(command, self.env | env)
        self.running.append(process)
        return process

    def tool(self, *command):
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=WATCHDOG)
        return done.stdout + done.stderr
