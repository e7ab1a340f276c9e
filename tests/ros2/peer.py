"""An ordinary rclpy node. The argument says what it does. It prints a line for each event."""

from __future__ import annotations

import sys
import time

import rclpy
from rclpy.action import ActionClient, ActionServer, CancelResponse
from rclpy.executors import MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image
from std_msgs.msg import String
from std_srvs.srv import SetBool
from test_msgs.action import Fibonacci


def say(*what: object) -> None:
    print(*what, flush=True)


def listen(node: Node) -> None:
    node.create_subscription(String, "chatter", lambda m: say("heard", m.data), 10)
    node.create_subscription(Image, "image", lambda m: say("image", m.height, len(m.data), set(m.data) == {m.height}), 10)


def talk(node: Node) -> None:
    strings = node.create_publisher(String, "chatter", 10)
    images = node.create_publisher(Image, "image", 10)
    count = 0

    def tick() -> None:
        nonlocal count
        count += 1
        strings.publish(String(data=f"hello {count}"))
        images.publish(Image(height=count % 200, data=bytes([count % 200]) * 1_000_000))

    node.create_timer(0.05, tick)


def latch(node: Node) -> None:
    qos = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    publisher = node.create_publisher(String, "latched", qos)
    publisher.publish(String(data="old"))
    name = node.get_name()
    publisher.publish(String(data="kept" if name == "latch" else f"kept of {name}"))
    node.kept = publisher


def late(node: Node) -> None:
    qos = QoSProfile(depth=5, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    node.create_subscription(String, "latched", lambda m: say("heard", m.data), qos)


def unreliable(node: Node) -> None:
    qos = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
    publisher = node.create_publisher(String, "strict", qos)
    node.create_timer(0.05, lambda: publisher.publish(String(data="lost")))


def serve(node: Node) -> None:
    def switch(request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        response.success, response.message = not request.data, "switched"
        return response

    node.create_service(SetBool, "switch", switch)


def act(node: Node) -> None:
    def execute(goal) -> Fibonacci.Result:
        feedback = Fibonacci.Feedback(sequence=[0, 1])
        for _ in range(1, goal.request.order):
            if goal.is_cancel_requested:
                goal.canceled()
                return Fibonacci.Result()
            feedback.sequence.append(feedback.sequence[-1] + feedback.sequence[-2])
            goal.publish_feedback(feedback)
            time.sleep(0.02)
        goal.succeed()
        return Fibonacci.Result(sequence=feedback.sequence)

    from rclpy.callback_groups import ReentrantCallbackGroup
    node.server = ActionServer(
        node, Fibonacci, "fibonacci", execute, cancel_callback=lambda _: CancelResponse.ACCEPT, callback_group=ReentrantCallbackGroup()
    )


def live(node: Node) -> None:
    """Does nothing: it only has to be configurable."""


def main() -> None:
    role, name = sys.argv[1:3]
    rclpy.init()
    node = LifecycleNode(name) if role == "live" else Node(name)
    globals()[role](node)
    executor = MultiThreadedExecutor() if role == "act" else SingleThreadedExecutor()
    executor.add_node(node)
    say("ready", rclpy.get_rmw_implementation_identifier())
    executor.spin()


if __name__ == "__main__":
    main()
