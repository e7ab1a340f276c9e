#!/usr/bin/env python3
"""Tests CONTRACT.md with every built peer: all messages arrive, latencies are plausible, each process ends with its stdin,
nothing is left behind, and bad arguments give one clear line.

Usage: peers/test.py [SYSTEM...]     (default: every program in peers/bin)
"""

import json
import os
import pathlib
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

BIN = pathlib.Path(__file__).resolve().parent / "bin"
ROS = {"tcpros", "nodelay", "nodelet", "rospy", "image-raw", "image-ropewalk", "image-view", "flow", "remote"}
SUBSCRIBERS, SIZE, WARMUP, MESSAGES, RATE = 2, 65536, 10, 50, 100
PATIENCE_S = 60  # a watchdog, not a measured limit


class Peer:
    """One running peer; its stdout lines arrive through a queue."""

    def __init__(self, environment, system, command, *arguments, program=None):
        self.name = f"{system} {command}"
        self.process = subprocess.Popen(
            [BIN / (program or system), command, "--system", system, *map(str, arguments)],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        self.lines, self.errors = queue.Queue(), []
        self.threads = [threading.Thread(target=self._read, daemon=True), threading.Thread(target=self._complain, daemon=True)]
        for thread in self.threads:
            thread.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def _complain(self):
        self.errors.extend(self.process.stderr)

    def line(self):
        try:
            line = self.lines.get(timeout=PATIENCE_S)
        except queue.Empty:
            raise AssertionError(f"{self.name}: no line within {PATIENCE_S} s; stderr: {''.join(self.errors)}") from None
        assert line is not None, f"{self.name}: stdout ended; stderr: {''.join(self.errors)}"
        return line

    def expect(self, word):
        line = self.line()
        assert line == word, f"{self.name}: expected {word!r}, got {line!r}"

    def tell(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def end(self, how):
        """Ends it by `stop`, by the end of stdin, or by SIGTERM; each must give exit code 0."""
        if how == "stop":
            self.tell("stop")
        elif how == "term":
            self.process.send_signal(signal.SIGTERM)
        else:
            self.process.stdin.close()

    def ended(self):
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"{self.name}: does not end; stderr: {''.join(self.errors)}") from None
        assert code == 0, f"{self.name}: exit code {code}; stderr: {''.join(self.errors)}"


class Place:
    """A temporary folder and, for ROS, a roscore; checks at the end that nothing was left behind."""

    def __init__(self, system):
        self.system = system

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="p", dir="/tmp")
        self.core = None
        self.environment = {**os.environ, "TMPDIR": self.folder, "ROPEWALK_RUNTIME_DIR": self.folder}
        self.shm = set(os.listdir("/dev/shm"))
        if self.system in ROS:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            self.logs = tempfile.mkdtemp(prefix="roslog", dir="/tmp")
            self.environment.update(ROS_MASTER_URI=f"http://127.0.0.1:{port}", ROS_IP="127.0.0.1", ROS_HOME=self.logs)
            self.core = subprocess.Popen(["/usr/bin/roscore", "-p", str(port)], env=self.environment,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            deadline = time.monotonic() + PATIENCE_S
            while socket.socket().connect_ex(("127.0.0.1", port)):
                assert time.monotonic() < deadline, "roscore does not start"
                time.sleep(0.1)
        return self

    def __exit__(self, kind, *_):
        if self.core:
            self.core.terminate()
            self.core.wait(PATIENCE_S)
            shutil.rmtree(self.logs, ignore_errors=True)
        self._wait_for_helpers()
        left = [str(path.relative_to(self.folder)) for path in pathlib.Path(self.folder).rglob("*")]
        # rclpy does not release what its contexts hold before the process ends; the next process on the bus removes
        # such sockets.
        left = [] if self.system == "rclpy-ropewalk" else left
        shm = set(os.listdir("/dev/shm")) - self.shm
        running = self._running()
        shutil.rmtree(self.folder)
        if kind is None:
            assert not left, f"files left in the temporary folder: {left}"
            assert not shm, f"files left in /dev/shm: {sorted(shm)}"
            assert not running, f"processes left: {running}"

    def _wait_for_helpers(self):
        """A daemon that the peers started ends after the last of them."""
        deadline = time.monotonic() + PATIENCE_S
        while self._running() and time.monotonic() < deadline:
            time.sleep(0.1)

    def _running(self):
        return [pid for pid in filter(str.isdigit, os.listdir("/proc")) if self._mine(pid)]

    def _mine(self, pid):
        try:
            return f"TMPDIR={self.folder}".encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return False


def check_published(line):
    result = json.loads(line)
    assert result["published"] + result["refused"] == MESSAGES and result["refused"] == 0, result
    assert len(result["publish_ns"]) == result["published"], result
    assert all(0 < ns < 10**9 for ns in result["publish_ns"]), result


def check_received(line):
    result = json.loads(line)
    assert result["received"] == MESSAGES == len(result["latency_ns"]), result["received"]
    assert result["sequence"] == list(range(WARMUP, WARMUP + MESSAGES)), result["sequence"]
    assert all(500 < ns < 10**9 for ns in result["latency_ns"]), result["latency_ns"]
    return sorted(result["latency_ns"])[MESSAGES // 2] / 1000


def cell(system, place, topic, publisher_first=False, end="stop", extra=()):
    size = ["--topic", topic, "--size", SIZE, "--subscribers", SUBSCRIBERS, "--warmup", WARMUP, "--messages", MESSAGES]
    subscribers, publisher = [], None
    for step in ("publish", "subscribe") if publisher_first else ("subscribe", "publish"):
        if step == "publish":
            publisher = Peer(place.environment, system, "publish", *size, "--rate", RATE)
        else:
            subscribers = [Peer(place.environment, system, "subscribe", *size, "--index", i, *extra) for i in range(SUBSCRIBERS)]
            for peer in subscribers:
                peer.expect("ready")
    publisher.expect("ready")
    publisher.tell("go")
    check_published(publisher.line())
    for peer in subscribers:
        peer.expect("done")
        peer.end(end)
    medians = [check_received(peer.line()) for peer in subscribers]
    publisher.end(end)
    for peer in [*subscribers, publisher]:
        peer.ended()
    return medians


def stopped_midway(system, place):
    """stdin ends while the publisher sends: all processes end by themselves."""
    size = ["--topic", "midway", "--size", 4096, "--subscribers", 1, "--warmup", 0, "--messages", 100000]
    subscriber = Peer(place.environment, system, "subscribe", *size, "--index", 0)
    publisher = Peer(place.environment, system, "publish", *size, "--rate", 20)
    subscriber.expect("ready")
    publisher.expect("ready")
    publisher.tell("go")
    time.sleep(1)
    publisher.end("stdin")
    sent = json.loads(publisher.line())["published"]
    subscriber.end("stdin")
    received = json.loads(subscriber.line())["received"]
    assert 0 < received <= sent < 100, (received, sent)
    publisher.ended()
    subscriber.ended()


def alone(system, place, commands):
    """Without a peer, each process still ends with its stdin."""
    size = ["--topic", "alone", "--size", 4096, "--warmup", 0, "--messages", 10]
    for command in commands:
        extra = {"publish": ["--subscribers", 1, "--rate", 30], "subscribe": ["--subscribers", 1, "--index", 0]}.get(command, [])
        peer = Peer(place.environment, system, command, *size, *extra)
        time.sleep(0.5)
        peer.end("stdin")
        peer.ended()


def round_trips(system, place):
    size = ["--topic", "round", "--size", 4096, "--warmup", WARMUP, "--messages", 1000]
    pong = Peer(place.environment, system, "pong", *size)
    ping = Peer(place.environment, system, "ping", *size)
    pong.expect("ready")
    ping.expect("ready")
    ping.tell("go")
    times = json.loads(ping.line())["round_trip_ns"]
    assert len(times) == 1000 and all(20 < ns < 10**9 for ns in times), times
    for peer in (ping, pong):
        peer.end("stop")
        peer.ended()
    return sorted(times)[500] / 2000


def inside_one_process(system, place, end):
    run = Peer(place.environment, system, "run", "--topic", "intra", "--size", SIZE, "--subscribers", SUBSCRIBERS,
               "--warmup", WARMUP, "--messages", MESSAGES, "--rate", RATE)
    run.expect("ready")
    run.tell("go")
    check_published(run.line())
    run.expect("done")
    run.end(end)
    medians = [check_received(run.line()) for _ in range(SUBSCRIBERS)]
    run.ended()
    return medians


def bad_arguments(system, command):
    good = ["--topic", "bad", "--size", "4096", "--messages", "10"]
    for arguments in (
        ["nonsense", "--system", system, *good],
        [command, "--system", "nonsense", *good],
        [command, "--system", system, *good, "--nonsense", "1"],
        [command, "--system", system, *good, "--size"],
        [command, "--system", system, *good, "--size", "4k"],
        [command, "--system", system, *good, "--size", "8"],
        [command, "--system", system, *good, "--size", "99999999999999999999"],
        [command, "--system", system, *good, "--messages", "-1"],
        [command, "--system", system, *good, "--subscribers", "0"],
        [command, "--system", system, *good, "--rate", "nan"],
        [command, "--system", system, *good, "--fifo", "100"],
        [command, "--system", system, *good, "--depth", "0"],
        [command, "--system", system, *good, "--topic", "../x"],
        [command, "--system", system],
        [],
    ):
        result = subprocess.run([BIN / system, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
        assert result.returncode == 2, (arguments, result)
        assert not result.stdout and result.stderr.count("\n") == 1 and len(result.stderr) > 10, (arguments, result)


def check(system):
    version = json.loads(subprocess.check_output([BIN / system, "version", "--system", system], text=True))
    assert version["system"] == system and version["version"], version
    modes = version["modes"]
    text = []
    with Place(system) as place:
        if "intra" in modes:
            bad_arguments(system, "run")
            for end in ("stop", "stdin", "term"):
                text.append(f"intra {inside_one_process(system, place, end)}")
        else:
            bad_arguments(system, "publish")
            alone(system, place, ["publish", "subscribe"])
            text.append(f"subscribers first {cell(system, place, 'first')}")
            text.append(f"publisher first {cell(system, place, 'second/x', publisher_first=True, end='stdin')}")
            cell(system, place, "third", end="term")
            stopped_midway(system, place)
        if "spin" in modes:
            alone(system, place, ["ping", "pong"])
            text.append(f"spin {cell(system, place, 'fourth', extra=['--spin'])}")
            text.append(f"round trip / 2 {round_trips(system, place):.2f}")
    print(f"ok   {system} {version['version']}: medians in µs: {'; '.join(text)}", flush=True)


def check_refused(program, arguments):
    """Bad arguments give one clear line."""
    result = subprocess.run([BIN / program, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
    assert result.returncode == 2 and not result.stdout and result.stderr.count("\n") == 1, (arguments, result)


def check_remote():
    """peers/remote/README.md: twists by a service and by topics, and blocks, are answered and take time."""
    for arguments in (
        ["nonsense", "--system", "tcpros"],
        ["call", "--system", "nonsense"],
        ["call", "--system", "tcpros", "--count", "0"],
        ["throw", "--system", "tcpros", "--bytes", "7"],
        ["say", "--system", "tcpros", "--patience-ms"],
        [],
    ):
        check_refused("remote", arguments)
    plan = ["--count", "20", "--warm-up", "2"]
    with Place("remote") as place:
        for system, desk, robot in (("tcpros", ["call", *plan], "serve"), ("nodelay", ["say", *plan], "echo"), ("tcpros", ["throw", *plan, "--bytes", "1000003"], "repeat")):
            robot = Peer(place.environment, system, robot, program="remote")
            desk = Peer(place.environment, system, *desk, program="remote")
            robot.expect("ready")
            desk.expect("ready")
            desk.tell("go")
            values = json.loads(desk.line())["values"]
            assert len(values) == 20 and all(0 < ms < 10**4 for ms in values), (desk.name, values)
            desk.end("stop")
            robot.end("stdin")
            for peer in (desk, robot):
                peer.ended()
    print("ok   remote", flush=True)


def check_flow():
    """peers/flow/README.md: all messages of two flows arrive, with every transport and source."""
    flows = ["--flow", "/laser,1000,10000,0,50", "--flow", "/image,64000,100000,3000,5"]
    expected = {"/laser": 50, "/image": 5}
    for arguments in (
        ["nonsense", "--system", "udpros", *flows],
        ["publish", "--system", "nonsense", *flows],
        ["publish", "--system", "udpros"],
        ["publish", "--system", "udpros", "--flow", "/laser,1000,10000,0"],
        ["publish", "--system", "udpros", "--flow", "laser,1000,10000,0,5"],
        ["publish", "--system", "udpros", "--flow", "/laser,10,10000,0,5"],
        ["publish", "--system", "udpros", *flows, "--source", "nonsense"],
        ["publish", "--system", "udpros", *flows, "--queue"],
        [],
    ):
        check_refused("flow", arguments)
    with Place("flow") as place:
        for system, source in (("tcpros", "periodic"), ("nodelay", "roscpp"), ("udpros", "periodic"), ("mixed", "periodic")):
            subscriber = Peer(place.environment, system, "subscribe", *flows, program="flow")
            publisher = Peer(place.environment, system, "publish", *flows, "--source", source, program="flow")
            subscriber.expect("ready")
            publisher.expect("ready")
            publisher.tell("go")
            sent = json.loads(publisher.line())["published"]
            assert {s["topic"]: s["sent"] for s in sent} == expected, sent
            time.sleep(0.5)
            subscriber.end("stop")
            for flow in json.loads(subscriber.line())["received"]:
                assert flow["sequence"] == list(range(expected[flow["topic"]])), (system, flow)
                assert all(0 < a - s < 10**9 for s, a in zip(flow["stamp_ns"], flow["arrival_ns"])), (system, flow)
            publisher.end("stdin")
            for peer in (subscriber, publisher):
                peer.ended()
    print("ok   flow", flush=True)


def check_copycount():
    """A program with a known number of copies."""
    program = """if True:
        import ctypes, os, sys
        libc, n = ctypes.CDLL(None), 1 << 20
        a, b = ctypes.create_string_buffer(n), ctypes.create_string_buffer(n)
        for _ in range(3):
            libc.memcpy(a, b, n)
            libc.memmove(a, b, n // 2)
            libc.memset(a, 1, n)
            libc.memcpy(a, b, n // 2 - 1)
        fd = os.open("/dev/zero", os.O_RDWR)
        libc.write(fd, a, 900000)
        libc.read(fd, a, 700000)
        if sys.argv[1] == "term":
            os.kill(os.getpid(), 15)
    """
    for how, code in (("exit", 0), ("term", -signal.SIGTERM)):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "out.json")
            environment = {**os.environ, "LD_PRELOAD": str(BIN / "libcopycount.so"), "COPYCOUNT_OUT": str(out), "COPYCOUNT_MIN": str(1 << 19)}
            result = subprocess.run([sys.executable, "-c", program, how], env=environment, timeout=PATIENCE_S)
            assert result.returncode == code, result
            counted = json.loads(out.read_text())
        assert counted["user_copies"] == 6 and counted["user_copies_bytes"] == 3 * ((1 << 20) + (1 << 19)), counted
        # Python itself reads and writes a little.
        assert 900000 <= counted["kernel_in_bytes"] < 910000, counted
        assert 700000 <= counted["kernel_out_bytes"] < 2500000, counted
    print("ok   copycount", flush=True)


# Programs of other experiments, with other contracts.
OTHERS = {"flow": check_flow, "remote": check_remote}


def main():
    if not sys.argv[1:] and (BIN / "libcopycount.so").exists():
        check_copycount()
    names = sys.argv[1:] or sorted(path.name for path in BIN.iterdir() if path.suffix != ".so" and not path.name.startswith(".") and path.name not in ("ros", "zenoh", "brake", *OTHERS))
    assert names, f"no program in {BIN}: run `make -C peers all`"
    failed = 0
    if not sys.argv[1:]:
        names += [name for name in OTHERS if (BIN / name).exists()]
    for name in names:
        try:
            OTHERS[name]() if name in OTHERS else check(name)
        except (AssertionError, ValueError, KeyError) as error:
            print(f"FAIL {name}: {error!r}", flush=True)
            failed += 1
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
