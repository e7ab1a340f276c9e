#!/usr/bin/env python3
"""Test `peer` against nodes of ROS 2 over Fast DDS, and against participants of Cyclone DDS.

    cargo build --release -p ropewalk-rtps --example peer
    crates/rtps/examples/peers.py ros2 target/ros2-kilted target/release/examples/peer [TEST...]
    crates/rtps/examples/peers.py cyclone FOLDER-OF-A-VENV target/release/examples/peer [TEST...]

`OURS_BY` and `THEIRS_BY` are commands that run the two, such as `ip netns exec a`; `RANGE=subnet` and
`ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET` let them discover each other over a network. Linux permits `RECEIVE_BUFFER=212992` by default.

The first needs an environment made by tests/ros2/install, the second one with the package `cyclonedds`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

DOMAIN = int(os.environ.get("ROS_DOMAIN_ID", "47"))
STRING = "std_msgs::msg::dds_::String_"
IMAGE = "sensor_msgs::msg::dds_::Image_"
IMAGES = 60
CALLS = 200


class Process:
    """A program and its output lines."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.lines: list[str] = []
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    def wait_for(self, what: str, count: int = 1, seconds: float = 60) -> list[str]:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = [line for line in self.lines if line.startswith(what)]
            if len(found) >= count or self.process.poll() is not None:
                return found
            time.sleep(0.02)
        return [line for line in self.lines if line.startswith(what)]

    def end(self) -> list[str]:
        assert self.process.stdin
        if not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.thread.join()
        return self.lines


def ros2_env(venv: Path) -> dict[str, str]:
    libs = sorted({str(p.parent) for p in (venv / "lib").rglob("*.so*") if p.parent.name.endswith(".libs")})
    return {
        **os.environ,
        "_ROS_WHEELS_BOOTSTRAP_COMPLETE": "1",
        "LD_LIBRARY_PATH": ":".join([f"{venv}/lib", *libs]),
        "ROS_DOMAIN_ID": str(DOMAIN),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST"),
        "ROS_LOG_DIR": "/tmp/rtps-ros-log",
    }


class Tests:
    def __init__(self, kind: str, venv: Path, peer: Path) -> None:
        self.kind, self.peer = kind, str(peer)
        self.how = "cyclone" if kind == "cyclone" else "fast"
        self.env = ros2_env(venv) if kind == "ros2" else {**os.environ, "CYCLONEDDS_URI": CYCLONE}
        self.python = str(venv / "bin/python")

    def ours(self, *tasks: str) -> Process:
        return Process([*os.environ.get("OURS_BY", "").split(), self.peer, str(DOMAIN), *tasks], dict(os.environ))

    def theirs(self, *args: str) -> Process:
        file = __file__ if self.kind == "ros2" else str(Path(__file__).with_name("peers_cyclone.py"))
        return Process([*os.environ.get("THEIRS_BY", "").split(), self.python, file, "ros2-role" if self.kind == "ros2" else "", *args], self.env)

    def run(self, names: list[str]) -> int:
        failed = 0
        for name in names or [n for n in dir(self) if n.startswith("test_")]:
            started = time.monotonic()
            reported = getattr(self, name if name.startswith("test_") else f"test_{name}")()
            good = reported[0]
            failed += not good
            print(f"{'ok    ' if good else 'FAILED'} {name} {reported[1]} ({time.monotonic() - started:.1f} s)", flush=True)
        return failed

    def both(self, ours: Process, theirs: Process, what: str, count: int = 1, seconds: float = 60) -> tuple[list[str], list[str], list[str]]:
        found = theirs.wait_for(what, count, seconds)
        mine, other = ours.end(), theirs.end()
        if os.environ.get("SHOW"):
            print("\n".join(f"  ours   {line}" for line in mine) + "\n" + "\n".join(f"  theirs {line}" for line in other))
        return found, mine, other

    def test_chatter(self) -> tuple[bool, str]:
        ours = self.ours(f"echo|rt/chatter|{STRING}|rt/chatter_back|reliable")
        found, mine, _ = self.both(ours, self.theirs("chatter"), "back ")
        hashes = [line for line in mine if line.startswith("endpoint") and "typehash=RIHS01_" in line]
        return found == ["back 20 of 20"] and (len(hashes) >= 2 or self.kind == "cyclone"), f"{found} hashes {len(hashes)}"

    def image(self, how: str) -> tuple[bool, str]:
        ours = self.ours(f"echo|rt/img|{IMAGE}|rt/img_back|{how}")
        found, _, other = self.both(ours, self.theirs("images", how), "back ")
        return found == [f"back {IMAGES} of {IMAGES}"], f"{found} {[line for line in other if line.startswith('round trip')]}"

    def test_images_best_effort(self) -> tuple[bool, str]:
        return self.image("best")

    def test_images_reliable(self) -> tuple[bool, str]:
        return self.image("reliable")

    def test_late_joiner_of_ours(self) -> tuple[bool, str]:
        ours = self.ours(f"latch|rt/latched|{STRING}|21")
        time.sleep(1)
        found, _, _ = self.both(ours, self.theirs("late"), "kept ", 21, 20)
        return found == [f"kept {n}" for n in range(21)], f"{len(found)} of 21"

    def test_late_joiner_of_theirs(self) -> tuple[bool, str]:
        theirs = self.theirs("latch")
        theirs.wait_for("latched")
        time.sleep(1)
        ours = self.ours(f"late|rt/latched|{STRING}")
        found = ours.wait_for("late ", 21, 20)
        ours.end(), theirs.end()
        return found == [f"late kept {n}" for n in range(21)], f"{len(found)} of 21"

    def test_their_client(self) -> tuple[bool, str]:
        found, _, _ = self.both(self.ours(f"serve|set|{self.how}"), self.theirs("client"), "answers ")
        return found == [f"answers {CALLS} of {CALLS}"], str(found)

    def test_their_server(self) -> tuple[bool, str]:
        theirs = self.theirs("server")
        ours = self.ours(f"call|set|{CALLS}|{self.how}")
        found = ours.wait_for("answer ", CALLS)
        mine, _ = ours.end(), theirs.end()
        hashes = {line.split()[-1] for line in mine if line.startswith("endpoint") and "/set" in line}
        expected = [f"answer Some({n % 2}) to Some({n + 1})" for n in range(CALLS)]
        return found == expected, f"{len(found)} of {CALLS} {hashes}"

    def test_graph(self) -> tuple[bool, str]:
        if self.kind == "cyclone":
            return True, "has no graph of ROS 2"
        ours = self.ours(f"echo|rt/chatter|{STRING}|rt/chatter_back|reliable", f"serve|set|{self.how}", "node|bridged")
        found, _, _ = self.both(ours, self.theirs("graph"), "graph ")
        return found == ["graph whole"], str(found)

    def test_leaving_is_seen_at_once(self) -> tuple[bool, str]:
        theirs = self.theirs("watch")
        ours = self.ours(f"late|rt/watched|{STRING}")
        seen = theirs.wait_for("publishers 1 subscribers 1", 1, 20)
        none = "publishers 1 subscribers 0"
        before = len(theirs.wait_for(none, 0))
        ours.end()
        gone = theirs.wait_for(none, before + 1, 5)[before:]
        theirs.end()
        return bool(seen and gone), f"seen {len(seen)} gone {len(gone)}"


CYCLONE = """<CycloneDDS><Domain><General><Interfaces><NetworkInterface address="127.0.0.1" multicast="true"/></Interfaces>
</General></Domain></CycloneDDS>"""


def until_eof() -> threading.Event:
    ended = threading.Event()

    def read() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    return ended


def report(sent: dict[int, float], came: dict[int, float]) -> None:
    trips = sorted((came[n] - sent[n]) * 1e3 for n in came if n in sent)
    if trips:
        print(f"round trip ms: median {trips[len(trips) // 2]:.1f} worst {trips[-1]:.1f}", flush=True)
    print(f"back {len(came)} of {len(sent)}", flush=True)


def ros2_role(role: str, *args: str) -> None:
    import rclpy
    from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

    ended = until_eof()
    rclpy.init()
    node = rclpy.create_node("theirs")
    sent: dict[int, float] = {}
    came: dict[int, float] = {}

    def spin(seconds: float, until=lambda: False) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not until() and not ended.is_set():
            rclpy.spin_once(node, timeout_sec=0.005)

    def exchange(publisher, message_of, count: int, period: float) -> None:
        spin(20, lambda: publisher.get_subscription_count() > 0 and node.count_publishers(publisher.topic + "_back") > 0)
        spin(1)
        begin = time.monotonic()
        for n in range(count):
            message = message_of(n)
            sent[n] = time.monotonic()
            publisher.publish(message)
            spin(begin + (n + 1) * period - time.monotonic())
        spin(5, lambda: len(came) == count)
        report(sent, came)

    if role == "chatter":
        from std_msgs.msg import String

        node.create_subscription(String, "/chatter_back", lambda m: came.setdefault(int(m.data), time.monotonic()), 10)
        exchange(node.create_publisher(String, "/chatter", 10), lambda n: String(data=str(n)), 20, 0.05)
    elif role == "images":
        from sensor_msgs.msg import Image

        best = args[0] == "best"
        qos = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT if best else ReliabilityPolicy.RELIABLE)
        data = bytes(1_000_000)

        def image(n: int) -> Image:
            message = Image(height=1000, width=1000, encoding="mono8", step=1000)
            message.header.frame_id = str(n)
            message.data.frombytes(data) if not message.data else None
            return message

        node.create_subscription(Image, "/img_back", lambda m: came.setdefault(int(m.header.frame_id), time.monotonic()), qos)
        exchange(node.create_publisher(Image, "/img", qos), image, IMAGES, 1 / 30)
    elif role in ("late", "latch"):
        from std_msgs.msg import String

        qos = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        if role == "late":
            node.create_subscription(String, "/latched", lambda m: print(m.data, flush=True), qos)
        else:
            publisher = node.create_publisher(String, "/latched", qos)
            for n in range(21):
                publisher.publish(String(data=f"kept {n}"))
            print("latched", flush=True)
    elif role == "client":
        from std_srvs.srv import SetBool

        client = node.create_client(SetBool, "/set")
        client.wait_for_service(20)
        good = 0
        for n in range(CALLS):
            future = client.call_async(SetBool.Request(data=n % 2 == 1))
            spin(3, future.done)
            good += future.done() and future.result().success == (n % 2 == 1) and future.result().message == "done"
        print(f"answers {good} of {CALLS}", flush=True)
    elif role == "server":
        from std_srvs.srv import SetBool

        def serve(request, response):
            response.success, response.message = request.data, "done"
            return response

        node.create_service(SetBool, "/set", serve)
    elif role == "graph":
        end = time.monotonic() + 20
        while (missing := missing_of_graph(node)) and time.monotonic() < end:
            spin(0.2)
        print(f"graph {missing or 'whole'}", flush=True)
    elif role == "watch":
        from std_msgs.msg import String

        node.create_publisher(String, "/watched", QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL))
        while not ended.is_set():
            spin(0.1)
            print(f"publishers {node.count_publishers('/watched')} subscribers {node.count_subscribers('/watched')}", flush=True)
    while not ended.is_set():
        rclpy.spin_once(node, timeout_sec=0.05)
    rclpy.shutdown()


def missing_of_graph(node) -> list[str]:
    """Returns what rclpy does not show of a peer with the endpoints of `test_graph`."""
    publishers = node.get_publishers_info_by_topic("/chatter_back")
    subscriptions = node.get_subscriptions_info_by_topic("/chatter")
    whole = {
        "nodes": ("bridged", "/") in node.get_node_names_and_namespaces(),
        "topics": dict(node.get_topic_names_and_types()).get("/chatter_back") == ["std_msgs/msg/String"],
        "services": dict(node.get_service_names_and_types()).get("/set") == ["std_srvs/srv/SetBool"],
        "counts": node.count_publishers("/chatter_back") == 1 and node.count_subscribers("/chatter") == 1,
        "node of a publisher": [(i.node_name, i.topic_type) for i in publishers] == [("bridged", "std_msgs/msg/String")],
        "node of a subscription": [i.node_name for i in subscriptions] == ["bridged"],
        "hash": [str(i.topic_type_hash)[:13] for i in publishers] == ["RIHS01_df668c"],
        "policies": [i.qos_profile.reliability.name for i in publishers] == ["RELIABLE"],
    }
    if "bridged" in node.get_node_names():
        whole["topics of a node"] = "/chatter_back" in dict(node.get_publisher_names_and_types_by_node("bridged", "/"))
        whole["services of a node"] = "/set" in dict(node.get_service_names_and_types_by_node("bridged", "/"))
    return [name for name, shown in whole.items() if not shown]


def main() -> int:
    kind = sys.argv[1]
    if kind == "ros2-role":
        ros2_role(*sys.argv[2:])
        return 0
    return Tests(kind, Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve()).run(sys.argv[4:])


if __name__ == "__main__":
    sys.exit(main())
