"""Unchanged nodes of rclpy on two hosts, each with its own bus, over a link with `ros2: true` (tests/ros2/run)."""

from __future__ import annotations

import socket
import unittest
from pathlib import Path

import harness

SEES = """
import sys, time, rclpy
from rclpy.node import Node
rclpy.init()
node = Node("eye")
def until(what):
    end = time.time() + 60
    while not what() and time.time() < end:
        rclpy.spin_once(node, timeout_sec=0.05)
    return what()
"""


def port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Linked(harness.Scenario):
    rate = "54Mbit/s"

    def setUp(self) -> None:
        super().setUp()
        self.ports = {"robot": port(), "base": port()}

    def link(self, host: str, more: str = "ros2: true", namespace: str = "") -> harness.Process:
        other = "base" if host == "robot" else "robot"
        config = Path(self.folder.name) / f"{host}.yaml"
        config.write_text(
            f"""
host: {host}
radio: {{bind: '127.0.0.1:{self.ports[host]}', rate: {self.rate}}}
peers: [{{name: {other}, address: '127.0.0.1:{self.ports[other]}'{namespace}}}]
{more}
"""
        )
        return self.ropewalk("link", str(config), host=host)

    def links(self, more: str = "ros2: true") -> None:
        self.link("robot", more)
        self.link("base", more)

    def test_topics_and_the_graph_cross(self) -> None:
        self.links()
        talker = self.peer("talk", host="robot")
        ear = self.peer("listen", host="base")
        ear.wait_for("heard hello", 10)
        ear.wait_for("image", 5)
        lines = self.script(
            SEES
            + """
print("sees", until(lambda: ("talk", "/") in node.get_node_names_and_namespaces()))
types = lambda: dict(node.get_publisher_names_and_types_by_node("talk", "/"))
print(until(lambda: "/image" in types()) and types()["/image"], until(lambda: node.count_publishers("/chatter") == 1))
info, = node.get_publishers_info_by_topic("/chatter")
print(info.node_name, info.topic_type, str(info.topic_type_hash)[:12], info.qos_profile.depth, info.qos_profile.reliability.name)
from std_msgs.msg import String
heard = node.create_subscription(String, "chatter", lambda m: None, 10)
print("matched", until(lambda: heard.get_publisher_count() == 1) if hasattr(heard, "get_publisher_count") else True)
""",
            host="base",
        )
        self.assertEqual(
            lines[:4],
            ["sees True", "['sensor_msgs/msg/Image'] True", "talk std_msgs/msg/String RIHS01_df668 10 RELIABLE", "matched True"],
        )
        # The robot's talker has a subscriber, and a node that dies disappears.
        lines = self.script(SEES + 'print(until(lambda: node.count_subscribers("/chatter") == 1))', host="robot")
        self.assertEqual(lines[-1], "True")
        talker.end()
        lines = self.script(SEES + 'print(until(lambda: "talk" not in node.get_node_names()))', host="base")
        self.assertEqual(lines[-1], "True")

    def test_services_actions_and_parameters_cross(self) -> None:
        self.links()
        self.peer("serve", host="robot")
        self.peer("act", host="robot")
        lines = self.script(
            SEES
            + """
from rclpy.action import ActionClient
from rclpy.parameter_client import AsyncParameterClient
from std_srvs.srv import SetBool
from test_msgs.action import Fibonacci
def ask(future):
    rclpy.spin_until_future_complete(node, future, timeout_sec=60)
    return future.result()
client = node.create_client(SetBool, "switch")
assert client.wait_for_service(60)
right = 0
for i in range(200):
    answer = ask(client.call_async(SetBool.Request(data=bool(i % 2))))
    right += answer.success == (i % 2 == 0) and answer.message == "switched"
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
parameters = AsyncParameterClient(node, "serve")
assert parameters.wait_for_services(60)
print("parameter", ask(parameters.get_parameters(["use_sim_time"])).values[0].bool_value)
action.destroy()
node.destroy_node()
rclpy.shutdown()
""",
            host="base",
        )
        self.assertIn("right 200", lines)
        self.assertIn("status 4 [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55] True", lines)
        self.assertIn("cancelled 5", lines)
        self.assertIn("parameter False", lines)

    def test_qualities_of_service_cross(self) -> None:
        self.links()
        self.peer("latch", host="robot")
        self.peer("unreliable", host="robot")
        late = self.peer("late", host="base")
        self.assertEqual(late.wait_for("heard"), ["heard kept"])
        lines = self.script(
            SEES
            + """
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import String
strict, lax, reported = [], [], []
events = SubscriptionEventCallbacks(incompatible_qos=lambda e: reported.append(e.last_policy_kind.name))
node.create_subscription(String, "strict", strict.append, 10, event_callbacks=events)
node.create_subscription(String, "strict", lax.append, QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT))
print("reported", until(lambda: len(reported) and len(lax) > 10) and reported[0], len(strict))
""",
            host="base",
        )
        self.assertIn("reported RMW_QOS_POLICY_RELIABILITY 0", lines)

    def test_what_the_radio_cannot_carry_is_reported_as_lost(self) -> None:
        self.rate = "6Mbit/s"
        self.links()
        self.peer("talk", host="robot")
        lines = self.script(
            SEES
            + """
from rclpy.event_handler import SubscriptionEventCallbacks
from sensor_msgs.msg import Image
got, lost = [], []
events = SubscriptionEventCallbacks(message_lost=lambda e: lost.append(e.total_count))
node.create_subscription(Image, "image", got.append, 10, event_callbacks=events)
print("lost", until(lambda: len(lost) > 1 and lost[-1] > 10 and len(got) > 1), lost == sorted(lost))
""",
            host="base",
        )
        self.assertEqual(lines[-1], "lost True True")

    def test_what_is_listed_crosses_alone_and_in_the_peers_namespace(self) -> None:
        listed = "ros2: graph\ntopics: [{name: /chatter, direction: both, reliability: reliable, priority: 90}]"
        self.link("robot", listed)
        self.link("base", listed, ", namespace: /far")
        self.peer("talk", host="robot")
        lines = self.script(
            SEES
            + """
from std_msgs.msg import String
heard = []
node.create_subscription(String, "/far/chatter", heard.append, 10)
print("heard", until(lambda: len(heard) > 4), until(lambda: ("talk", "/far") in node.get_node_names_and_namespaces()))
types = lambda: dict(node.get_publisher_names_and_types_by_node("talk", "/far"))
print(until(types) and types())
""",
            host="base",
        )
        self.assertEqual(lines[:2], ["heard True True", "{'/far/chatter': ['std_msgs/msg/String']}"])

    def test_a_link_that_is_killed_and_comes_back_joins_both_again(self) -> None:
        self.links()
        self.peer("talk", host="robot")
        ear = self.peer("listen", host="base")
        ear.wait_for("heard", 5)
        robot = self.processes[0]
        robot.end()
        self.link("robot")
        before = len(ear.wait_for("heard"))
        ear.wait_for("heard", before + 20)
        lines = self.script(SEES + 'print("sees", until(lambda: "talk" in node.get_node_names()))', host="base")
        self.assertEqual(lines[-1], "sees True")


if __name__ == "__main__":
    unittest.main()
