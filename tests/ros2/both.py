"""ROS 1 and ROS 2 in one system, with the example's configurations: nodes of rospy (Debian's, with its roscore) and of rclpy over Fast DDS,
with `ropewalk ros1` and `ropewalk ros2` in between (tests/ros2/run)."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
import unittest
from pathlib import Path

import harness

EXAMPLE = harness.HERE.parents[1] / "examples" / "ros1_and_ros2"
TYPES = [
    "std_msgs/String",
    "std_msgs/Float64MultiArray",
    "geometry_msgs/PoseStamped",
    "sensor_msgs/CameraInfo",
    "sensor_msgs/CompressedImage",
    "sensor_msgs/Image",
    "sensor_msgs/Imu",
    "sensor_msgs/LaserScan",
    "sensor_msgs/PointCloud2",
]

# Sends messages with random values to ROS 2, takes the ones that return, and compares the bytes. The ROS 1 publisher counts in `seq`.
ROS1 = """
import io, random, sys, threading
import genpy, rospy, roslib.message
from std_srvs.srv import SetBool, SetBoolResponse
types = sys.argv[1:]
random.seed(7)
def fill(message):
    for name, of in zip(message.__slots__, message._slot_types):
        if of == "std_msgs/Header":
            message.header.frame_id, message.header.stamp = "frame", rospy.Time(random.randrange(1 << 30), random.randrange(10**9))
        else:
            setattr(message, name, value(of, getattr(message, name)))
    return message
def value(of, now):
    if of.endswith("]"):
        of, count = of[:-1].rsplit("[", 1)
        n = int(count) if count else random.randrange(1, 50)
        if of in ("uint8", "char"):
            return bytes(random.randrange(256) for _ in range(n * (1 if count else 4000)))
        cls = None if genpy.base.is_simple(of) or of == "string" else roslib.message.get_message_class(of)
        return [value(of, cls() if cls else None) for _ in range(n)]
    if of == "string":
        return "".join(random.choice("abc \\u00e4\\u20ac") for _ in range(random.randrange(20)))
    if of == "bool":
        return bool(random.randrange(2))
    if of in ("float32", "float64"):
        return random.randrange(-1000, 1000) / 8
    if of in ("time", "duration"):
        return type(now)(random.randrange(1 << 30), random.randrange(10**9))
    if genpy.base.is_simple(of):
        return random.randrange(100)
    return fill(now)
def plain(message):
    if hasattr(message, "header"):
        message.header.seq = 0
    out = io.BytesIO()
    message.serialize(out)
    return out.getvalue()
rospy.init_node("one")
for i, name in enumerate(types):
    cls = roslib.message.get_message_class(name)
    sent, came, done = [plain(fill(cls())) for _ in range(5)], [], threading.Event()
    def take(message, came=came, sent=sent, done=done):
        came.append(plain(message))
        if len(came) == len(sent):
            done.set()
    subscriber = rospy.Subscriber("/back/m%d" % i, cls, take)
    publisher = rospy.Publisher("/there/m%d" % i, cls, queue_size=10)
    while not (publisher.get_num_connections() and subscriber.get_num_connections()) and not rospy.is_shutdown():
        rospy.sleep(0.05)
    # The domain discovers what the bridge has connected a moment later.
    rospy.sleep(3)
    for bytes_ in sent:
        publisher.publish(cls().deserialize(bytes_))
    done.wait(30)
    print("same", name, came == sent, len(came), flush=True)
server = rospy.Service("/switch_ros1", SetBool, lambda r: SetBoolResponse(not r.data, "of ROS 1"))
call = rospy.ServiceProxy("/switch_ros2", SetBool)
call.wait_for_service(60)
print("called", sum(call(bool(i % 2)).success == (i % 2 == 0) for i in range(20)), call(True).message, flush=True)
print("serving", flush=True)
rospy.spin()
"""

ROS2 = """
import importlib, sys, rclpy
from rclpy.executors import MultiThreadedExecutor
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from std_srvs.srv import SetBool
rclpy.init()
node, group = Node("two"), ReentrantCallbackGroup()
for i, name in enumerate(sys.argv[1:]):
    package, of = name.split("/")
    cls = getattr(importlib.import_module(package + ".msg"), of)
    publisher = node.create_publisher(cls, f"/back/m{i}", 10)
    node.create_subscription(cls, f"/there/m{i}", publisher.publish, 10, callback_group=group)
def switch(request, response):
    response.success, response.message = not request.data, "of ROS 2"
    return response
node.create_service(SetBool, "/switch_ros2", switch, callback_group=group)
client = node.create_client(SetBool, "/switch_ros1", callback_group=group)
def ask():
    if not client.service_is_ready():
        return
    timer.cancel()
    right = sum(client.call(SetBool.Request(data=bool(i % 2))).success == (i % 2 == 0) for i in range(20))
    print("called", right, client.call(SetBool.Request(data=True)).message, flush=True)
timer = node.create_timer(0.2, ask, callback_group=group)
print("ready", flush=True)
executor = MultiThreadedExecutor(4)
executor.add_node(node)
executor.spin()
"""


class Both(harness.Scenario):
    def setUp(self) -> None:
        super().setUp()
        self.domain = random.randrange(100, 200)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.ros1 = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME")}
        self.ros1 |= {"ROS_MASTER_URI": f"http://127.0.0.1:{port}", "ROS_HOSTNAME": "127.0.0.1", "ROS_LOG_DIR": self.folder.name}
        self.core = subprocess.Popen(
            ["/usr/bin/roscore", "-p", str(port)], env=self.ros1, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + harness.LONG
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                self.assertLess(time.monotonic(), end, "roscore does not answer")
                time.sleep(0.1)

    def tearDown(self) -> None:
        # roscore's processes are in its session.
        os.killpg(self.core.pid, signal.SIGINT)
        self.core.wait(harness.LONG)
        super().tearDown()

    def begin(self, command: list[str], env: dict[str, str]) -> harness.Process:
        process = harness.Process(command, env)
        self.processes.append(process)
        return process

    def test_messages_and_services_cross_both_ways_byte_for_byte(self) -> None:
        self.ropewalk("ros1", str(EXAMPLE / "ros1.yaml"), "--master", self.ros1["ROS_MASTER_URI"])
        self.ropewalk("ros2", str(EXAMPLE / "ros2.yaml"), "--domain", str(self.domain), "--range", "localhost")
        two = self.begin([sys.executable, "-c", ROS2, *TYPES], harness.environment(self.host(""), self.domain, dds=True))
        two.wait_for("ready")
        one = self.begin(["/usr/bin/python3", "-c", ROS1, *TYPES], self.ros1)
        self.assertEqual(one.wait_for("same", len(TYPES)), [f"same {name} True 5" for name in TYPES])
        self.assertEqual(one.wait_for("called"), ["called 20 of ROS 2"])
        self.assertEqual(two.wait_for("called"), ["called 20 of ROS 1"])


if __name__ == "__main__":
    unittest.main()
