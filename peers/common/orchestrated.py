"""Code shared by the processes in Python: the orchestrator sends `go` and `stop`, and reads their lines."""

import argparse
import json
import os
import signal
import sys
import threading


def fail(code, text):
    print(text, file=sys.stderr, flush=True)
    os._exit(code)  # other threads may be inside the middleware


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Orchestrator:
    """The orchestrator's commands, read by a thread that blocks on stdin."""

    def __init__(self):
        self.go, self.stop = threading.Event(), threading.Event()
        for word in signal.SIGTERM, signal.SIGINT:
            signal.signal(word, lambda *_: self.end())
        threading.Thread(target=self.watch, daemon=True).start()

    def end(self):
        self.stop.set()
        self.go.set()

    def watch(self):
        for line in sys.stdin:
            if line.strip() == "go":
                self.go.set()
            if line.strip() == "stop":
                break
        self.end()


def version(system, **more):
    """Prints the version, and further fields."""
    if system == "ropewalk-python":
        from importlib.metadata import version

        number = version("ropewalk")
    elif system.startswith("rclpy"):
        number = of_rclpy(system)
    else:
        import rospkg

        number = rospkg.RosPack().get_manifest("rospy").version
    python = ".".join(map(str, sys.version_info[:3]))
    say(json.dumps({"system": system, "version": f"{number}, Python {python}", **more}))


def of_rclpy(system):
    """The version of rclpy, and of the middleware that carries its messages."""
    from importlib.metadata import version

    if system == "rclpy-ropewalk":
        import rclpy

        carrier = rclpy.get_rmw_implementation_identifier()
    else:
        carrier = f"{version('ros-rmw-fastrtps-cpp')}, Fast DDS {version('ros-fastdds')}"
    return f"{version('ros-rclpy')}, {carrier}"


class Parser(argparse.ArgumentParser):
    def error(self, message):
        fail(2, message.replace("\n", " "))
