"""Unchanged nodes of rclpy over Fast DDS, and over rmw_ropewalk on the bus, with `ropewalk ros2` between them (tests/ros2/run)."""

from __future__ import annotations

import os
import random
import sys
import time
import unittest
from pathlib import Path

import harness

SEES = """
import sys, time, rclpy
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String
from sensor_msgs.msg import Image
rclpy.init()
node = Node("eye")
def until(what, seconds=60):
    end = time.time() + seconds
    while not what() and time.time() < end:
        rclpy.spin_once(node, timeout_sec=0.05)
    return what()
def ask(future):
    rclpy.spin_until_future_complete(node, future, timeout_sec=60)
    return future.result()
latched = QoSProfile(depth=5, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""

# Images are published once there is a subscriber. Queues hold all of them, so that a host that gets no processor for a second loses none.
SENDS = (
    SEES
    + """
qos = QoSProfile(depth=60, reliability=ReliabilityPolicy.{how})
strings, images = node.create_publisher(String, "/words", 20), node.create_publisher(Image, "/pictures", qos)
assert until(lambda: strings.get_subscription_count() and images.get_subscription_count())
time.sleep(1)
for i in range(20):
    strings.publish(String(data=f"word {{i}}"))
begun = time.time()
for i in range(60):
    images.publish(Image(height=i, data=bytes([i]) * 1_000_000))
    time.sleep(max(0, begun + (i + 1) / 30 - time.time()))
until(lambda: not strings.get_subscription_count())
print("sent")
"""
)
TAKES = (
    SEES
    + """
qos = QoSProfile(depth=60, reliability=ReliabilityPolicy.{how})
words, pictures = [], []
node.create_subscription(String, "/words", lambda m: words.append(m.data), 20)
node.create_subscription(Image, "/pictures", lambda m: pictures.append((m.height, len(m.data), set(m.data[::1000]) == {{m.height}})), qos)
until(lambda: len(words) >= 20 and len(pictures) >= 60, 40)
until(lambda: False, 1)
print("words", words == [f"word {{i}}" for i in range(20)], len(words))
print("pictures", sorted(pictures) == [(i, 1_000_000, True) for i in range(60)], len(pictures))
"""
)

CALLS = (
    SEES
    + """
from rclpy.action import ActionClient
from std_srvs.srv import SetBool
from test_msgs.action import Fibonacci
client = node.create_client(SetBool, "switch")
assert client.wait_for_service(60)
right = 0
for i in range(200):
    answer = ask(client.call_async(SetBool.Request(data=bool(i % 2))))
    right += answer is not None and answer.success == (i % 2 == 0) and answer.message == "switched"
print("right", right)
action, feedback = ActionClient(node, Fibonacci, "fibonacci"), []
assert action.wait_for_server(60)
def call(order, cancel):
    goal = ask(action.send_goal_async(Fibonacci.Goal(order=order), feedback_callback=lambda f: feedback.append(f)))
    assert goal.accepted
    if cancel:
        until(lambda: len(feedback) > 4)
        ask(goal.cancel_goal_async())
    return ask(goal.get_result_async())
done = call(10, False)
print("status", done.status, list(done.result.sequence), len(feedback) > 4)
feedback.clear()
print("cancelled", call(500, True).status)
action.destroy()
node.destroy_node()
rclpy.shutdown()
"""
)

ALL = """
topics: [{name: '/*', direction: both}, {name: /rosout, direction: to_bus, level: warn}]
services: [%s]
"""


class Bridge(harness.Scenario):
    """A bridge, and what is common to tests of it."""

    def setUp(self) -> None:
        super().setUp()
        # A domain of its own: other programs on this machine may use DDS.
        self.domain = random.randrange(100, 200)

    def bridge(self, services: str = "", more: str = "", text: str = "") -> harness.Process:
        config = Path(self.folder.name) / f"bridge{len(self.processes)}.yaml"
        # The action of the tests, in a package of definitions.
        share = next(p for p in Path(os.environ["LD_LIBRARY_PATH"].split(":")[0]).parent.glob("share/test_msgs/action/Fibonacci.action"))
        config.write_text(
            f"domain: {self.domain}\nrange: localhost\ndefinitions: [{share.parents[2]}]\n" + (text or ALL % services) + more
        )
        return self.ropewalk("ros2", str(config))

    def dds(self, text: str) -> list[str]:
        return self.script(text, domain=self.domain, dds=True)

    def begin(self, text: str, dds: bool) -> harness.Process:
        env = harness.environment(self.host(""), self.domain if dds else 0, dds)
        process = harness.Process([sys.executable, "-c", text], env)
        self.processes.append(process)
        return process

    def check_calls(self, lines: list[str]) -> None:
        self.assertIn("right 200", lines)
        self.assertIn("status 4 [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55] True", lines)
        self.assertIn("cancelled 5", lines)


# The bridge subscribes to feedback before there is a client, so that the first goal's feedback is not lost.
FEEDBACK = "/fibonacci/_action/feedback"
HEARS_FEEDBACK = f"{SEES}print(until(lambda: node.count_subscribers('{FEEDBACK}') == 1))"


class Bridged(Bridge):
    def test_topics_cross_both_ways_whole(self) -> None:
        self.bridge()
        for how in ["RELIABLE", "BEST_EFFORT"]:
            for takes_dds in [False, True]:
                with self.subTest(how=how, to="domain" if takes_dds else "bus"):
                    taker = self.begin(TAKES.format(how=how), takes_dds)
                    sender = self.begin(SENDS.format(how=how), not takes_dds)
                    words, pictures = taker.ended(120)
                    self.assertEqual(words, "words True 20")
                    if how == "RELIABLE":
                        self.assertEqual(pictures, "pictures True 60")
                    else:
                        # On a busy processor a socket overflows, and best effort allows that. On an idle host all messages arrive.
                        self.assertGreater(int(pictures.split()[-1]), 40, pictures)
                    self.assertEqual(sender.ended(120), ["sent"])

    def test_services_and_actions_of_the_domain_are_called_from_the_bus(self) -> None:
        self.bridge("{name: /switch, direction: to_bus}", "actions: [{name: /fibonacci, direction: to_bus}]")
        self.peer("serve", domain=self.domain, dds=True)
        self.peer("act", domain=self.domain, dds=True)
        self.assertEqual(self.dds(HEARS_FEEDBACK), ["True"])
        self.check_calls(self.script(CALLS))

    def test_services_and_actions_of_the_bus_are_called_from_the_domain(self) -> None:
        self.bridge("{name: /switch, direction: to_ros}", "actions: [{name: /fibonacci, direction: to_ros}]")
        self.peer("serve")
        self.peer("act")
        begun = time.monotonic()
        while not any(line.startswith("subscriber ropewalk") for line in self.ropewalk("topic", "info", FEEDBACK).ended()):
            self.assertLess(time.monotonic(), begun + harness.LONG, "the bridge does not subscribe to feedback")
        self.check_calls(self.dds(CALLS))

    def test_nodes_and_endpoints_of_each_side_are_seen_on_the_other(self) -> None:
        self.bridge("{name: /switch, direction: to_bus}")
        looks = SEES + """
print("sees", until(lambda: ("talk", "/") in node.get_node_names_and_namespaces()))
print(until(lambda: node.count_publishers("/chatter") == 1))
types = lambda: dict(node.get_publisher_names_and_types_by_node("talk", "/"))
print(until(lambda: "/image" in types()) and types()["/image"])
info, = node.get_publishers_info_by_topic("/chatter")
print(info.node_name, info.node_namespace, info.topic_type, str(info.topic_type_hash)[:12], info.qos_profile.reliability.name)
ear = node.create_subscription(String, "/heard", lambda m: None, 10)
until(lambda: False, 4)
"""
        # In both directions at once: each side has its own talker.
        for dds in [True, False]:
            with self.subTest(looks_from="bus" if dds else "domain"):
                talker = self.peer("talk", domain=self.domain if dds else 0, dds=dds)
                lines = self.script(looks, domain=0 if dds else self.domain, dds=not dds)
                self.assertEqual(
                    lines[:4],
                    ["sees True", "True", "['sensor_msgs/msg/Image']", "talk / std_msgs/msg/String RIHS01_df668 RELIABLE"],
                )
                talker.end()
                lines = self.script(
                    SEES + 'print(until(lambda: "talk" not in node.get_node_names()))', domain=0 if dds else self.domain, dds=not dds
                )
                self.assertEqual(lines[-1], "True")

    def test_what_is_kept_reaches_those_who_come_late(self) -> None:
        self.bridge()
        for dds in [True, False]:
            with self.subTest(kept_by="domain" if dds else "bus"):
                latched = self.peer("latch", domain=self.domain if dds else 0, dds=dds)
                for _ in range(2):
                    late = self.peer("late", domain=0 if dds else self.domain, dds=not dds)
                    self.assertEqual(late.wait_for("heard"), ["heard kept"])
                    late.end()
                latched.end()

    def test_the_log_and_the_clock_cross(self) -> None:
        self.bridge()
        speaks = SEES + """
from rosgraph_msgs.msg import Clock
clock = node.create_publisher(Clock, "/clock", 10)
count = 0
def tick():
    global count
    count += 1
    message = Clock()
    message.clock.sec = count
    clock.publish(message)
    node.get_logger().info("not worth it")
    node.get_logger().warn("worth it")
node.create_timer(0.1, tick)
print("ready", flush=True)
rclpy.spin(node)
"""
        hears = SEES + """
from rcl_interfaces.msg import Log
from rosgraph_msgs.msg import Clock
clocks, logs = [], []
node.create_subscription(Clock, "/clock", lambda m: clocks.append(m.clock.sec), 10)
node.create_subscription(Log, "/rosout", lambda m: logs.append((m.level, m.msg, m.name)), 100)
print(until(lambda: len(clocks) > 9 and len([l for l in logs if l[1] == "worth it"]) > 4))
print(clocks == list(range(clocks[0], clocks[-1] + 1)))
print({l for l in logs if l[2] == "eye"})
"""
        speaker = self.begin(speaks, True)
        speaker.wait_for("ready")
        lines = self.script(hears)
        self.assertEqual(lines, ["True", "True", "{(30, 'worth it', 'eye')}"])

    def test_kept_messages_cross_once_despite_a_pause_without_listeners(self) -> None:
        self.bridge()
        for dds in [True, False]:
            with self.subTest(kept_in="domain" if dds else "bus"):
                latched = self.peer("latch", domain=self.domain if dds else 0, dds=dds)
                for _ in range(2):
                    late = self.peer("late", domain=0 if dds else self.domain, dds=not dds)
                    late.wait_for("heard")
                    # Longer than the bridge stays subscribed without a subscriber, and than a second copy takes.
                    time.sleep(2)
                    self.assertEqual(late.wait_for("heard"), ["heard kept"])
                    late.end()
                    time.sleep(5)
                latched.end()

    def heard_again(self, ear: harness.Process, since: float, what: str) -> None:
        """Checks that messages arrive again, each once, and prints when the first one did."""
        before = len([line for line in ear.lines if line.startswith("heard")])
        ear.wait_for("heard", before + 1)
        print(f"\nheard {time.monotonic() - since:.2f} s after {what} was started again", file=sys.stderr)
        after = ear.wait_for("heard", before + 20)[before:]
        self.assertEqual(len(set(after)), len(after), "no message arrives twice")

    def test_a_bridge_that_is_killed_and_started_again_joins_both_again(self) -> None:
        bridge = self.bridge()
        for dds in [True, False]:
            with self.subTest(speaks_in="domain" if dds else "bus"):
                speaks, hears = (self.domain if dds else 0), (0 if dds else self.domain)
                others = [self.peer("talk", domain=speaks, dds=dds), self.peer("latch", domain=speaks, dds=dds)]
                ear = self.peer("listen", domain=hears, dds=not dds)
                ear.wait_for("heard", 5)
                bridge.end()
                time.sleep(0.5)
                begun = time.monotonic()
                bridge = self.bridge()
                self.heard_again(ear, begun, "the bridge")
                late = self.peer("late", domain=hears, dds=not dds)
                self.assertEqual(late.wait_for("heard"), ["heard kept"])
                for process in [*others, ear, late]:
                    process.end()

    def test_a_node_of_the_domain_that_is_killed_and_started_again_is_heard_again(self) -> None:
        self.bridge()
        ear = self.peer("listen")
        for n in range(3):
            nodes = [self.peer("talk", domain=self.domain, dds=True), self.peer("latch", f"latch{n}", domain=self.domain, dds=True)]
            self.heard_again(ear, time.monotonic(), "the node")
            # What a killed node kept is there, too, until the domain notices that it is gone.
            late = self.peer("late")
            late.wait_for(f"heard kept of latch{n}")
            heard = [line for line in late.printed if line.startswith("heard kept")]
            self.assertEqual(len(set(heard)), len(heard), "no message arrives twice")
            for node in [late, *nodes]:
                node.end()
            time.sleep(1)

    def test_of_two_bridges_one_works_and_the_other_takes_over(self) -> None:
        first = self.bridge()
        ear, far = self.peer("listen"), self.peer("listen", "far", domain=self.domain, dds=True)
        self.peer("talk", domain=self.domain, dds=True)
        ear.wait_for("heard", 5)
        self.bridge()
        heard = ear.wait_for("heard", 60)
        self.assertEqual(len(set(heard)), len(heard), "no message arrives twice")
        heard = far.wait_for("heard", 60)
        self.assertEqual(len(set(heard)), len(heard), "no message returns")
        first.end()
        before = len(ear.wait_for("heard"))
        heard = ear.wait_for("heard", before + 20)
        self.assertEqual(len(set(heard)), len(heard), "no message arrives twice")

    def test_the_commands_see_and_reach_the_domain(self) -> None:
        self.bridge("{name: /switch, direction: to_bus}")
        self.peer("serve", domain=self.domain, dds=True)
        self.peer("talk", domain=self.domain, dds=True)
        echo = self.ropewalk("topic", "echo", "/chatter", "--count", "3")
        self.assertTrue(any("hello" in line for line in echo.ended()))
        call = self.ropewalk("service", "call", "/switch", "{data: false}")
        self.assertTrue(any("switched" in line for line in call.ended()))


if __name__ == "__main__":
    unittest.main()
