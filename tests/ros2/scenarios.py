"""Unchanged nodes of rclpy over rmw_ropewalk (tests/ros2/run)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
LONG = 60.0


def environment(folder: str, domain: int = 0) -> dict[str, str]:
    own = {
        "RMW_IMPLEMENTATION": "rmw_ropewalk",
        "LD_PRELOAD": os.environ["RMW_ROPEWALK"],
        "ROPEWALK_RUNTIME_DIR": folder,
        "ROS_DOMAIN_ID": str(domain),
        "ROS_LOG_DIR": folder,
    }
    return {**os.environ, **own}


class Process:
    """A peer; what it prints is kept."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines: list[str] = []
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    def wait_for(self, what: str, count: int = 1) -> list[str]:
        end = time.monotonic() + LONG
        while True:
            found = [line for line in self.lines if line.startswith(what)]
            if len(found) >= count:
                return found
            if time.monotonic() > end or self.process.poll() is not None:
                raise AssertionError(f"{what!r} {count} times, found {found[:3]} in {self.lines[-20:]}")
            time.sleep(0.02)

    def end(self, how: signal.Signals = signal.SIGKILL) -> None:
        self.process.send_signal(how)
        self.process.wait(LONG)
        self.thread.join()


class Scenario(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="rw2")
        self.processes: list[Process] = []

    def tearDown(self) -> None:
        for process in self.processes:
            if process.process.poll() is None:
                process.end()
            process.process.stdout.close()
        self.folder.cleanup()

    def peer(self, role: str, name: str = "", domain: int = 0) -> Process:
        process = Process([sys.executable, str(HERE / "peer.py"), role, name or role], environment(self.folder.name, domain))
        self.processes.append(process)
        process.wait_for("ready rmw_ropewalk")
        return process

    def ropewalk(self, *args: str) -> Process:
        env = {k: v for k, v in environment(self.folder.name).items() if k not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
        process = Process([os.environ["ROPEWALK"], *args], env)
        self.processes.append(process)
        return process

    def script(self, text: str) -> list[str]:
        """A node that does something and ends well."""
        process = Process([sys.executable, "-c", text], environment(self.folder.name))
        self.processes.append(process)
        self.assertEqual(process.process.wait(LONG), 0, process.lines)
        process.thread.join()
        return process.lines

    def test_strings_and_images_reach_nodes_of_other_processes(self) -> None:
        ears = [self.peer("listen", f"ear{n}") for n in range(2)]
        self.peer("talk")
        for ear in ears:
            ear.wait_for("heard hello", 20)
            images = ear.wait_for("image", 20)
            self.assertTrue(all(line.endswith("1000000 True") for line in images), images)

    def test_the_end_of_either_side_is_survived(self) -> None:
        talker, ear = self.peer("talk"), self.peer("listen")
        ear.wait_for("heard", 5)
        talker.end()
        before = len(ear.lines)
        self.peer("talk", "second")
        ear.wait_for("heard", before + 5)
        ear.end()
        other = self.peer("listen", "other")
        other.wait_for("heard", 5)

    def test_what_is_transient_local_reaches_who_comes_later_by_its_depth(self) -> None:
        self.peer("latch")
        late = self.peer("late")
        self.assertEqual(late.wait_for("heard"), ["heard kept"])

    def test_domains_are_apart(self) -> None:
        self.peer("talk", domain=1)
        other, same = self.peer("listen"), self.peer("listen", "same", domain=1)
        same.wait_for("heard", 10)
        self.assertFalse([line for line in other.lines if line.startswith("heard")])

    def test_services_answer_two_hundred_calls(self) -> None:
        self.peer("serve")
        lines = self.script(
            """
import rclpy
from rclpy.node import Node
from std_srvs.srv import SetBool
rclpy.init()
node = Node("caller")
client = node.create_client(SetBool, "switch")
assert client.wait_for_service(30)
right = 0
for i in range(200):
    future = client.call_async(SetBool.Request(data=bool(i % 2)))
    rclpy.spin_until_future_complete(node, future, timeout_sec=30)
    right += future.result().success == (i % 2 == 0) and future.result().message == "switched"
print("right", right)
node.destroy_node()
rclpy.shutdown()
"""
        )
        self.assertIn("right 200", lines)

    def test_actions_give_feedback_and_are_cancelled(self) -> None:
        self.peer("act")
        lines = self.script(
            """
import rclpy
from rclpy.action import ActionClient
from rclpy.node import Node
from test_msgs.action import Fibonacci
rclpy.init()
node = Node("caller")
client = ActionClient(node, Fibonacci, "fibonacci")
assert client.wait_for_server(30)
feedback = []
def call(order, cancel):
    future = client.send_goal_async(Fibonacci.Goal(order=order), feedback_callback=lambda f: feedback.append(len(f.feedback.sequence)))
    rclpy.spin_until_future_complete(node, future, timeout_sec=30)
    goal = future.result()
    assert goal.accepted
    if cancel:
        while len(feedback) < 5:
            rclpy.spin_once(node, timeout_sec=0.1)
        rclpy.spin_until_future_complete(node, goal.cancel_goal_async(), timeout_sec=30)
    result = goal.get_result_async()
    rclpy.spin_until_future_complete(node, result, timeout_sec=30)
    return result.result()
done = call(10, False)
print("status", done.status, list(done.result.sequence), len(feedback))
feedback.clear()
print("cancelled", call(500, True).status)
client.destroy()
node.destroy_node()
rclpy.shutdown()
"""
        )
        self.assertIn("status 4 [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55] 9", lines)
        self.assertIn("cancelled 5", lines)

    def test_the_graph_knows_nodes_topics_types_and_endpoints(self) -> None:
        self.peer("talk")
        self.peer("serve")
        lines = self.script(
            """
import time, rclpy
from rclpy.node import Node
rclpy.init()
node = Node("eye", namespace="/high")
end = time.time() + 30
while len(node.get_node_names()) < 3 and time.time() < end:
    time.sleep(0.02)
print(sorted(node.get_node_names_and_namespaces()))
print(dict(node.get_topic_names_and_types())["/chatter"], dict(node.get_service_names_and_types())["/switch"])
print(dict(node.get_publisher_names_and_types_by_node("talk", "/"))["/image"], node.count_publishers("/chatter"))
info, = node.get_publishers_info_by_topic("/chatter")
print(info.node_name, info.topic_type, str(info.topic_type_hash)[:12], info.qos_profile.depth)
node.destroy_node()
rclpy.shutdown()
"""
        )
        self.assertEqual(
            lines[:4],
            [
                "[('eye', '/high'), ('serve', '/'), ('talk', '/')]",
                "['std_msgs/msg/String'] ['std_srvs/srv/SetBool']",
                "['sensor_msgs/msg/Image'] 1",
                "talk std_msgs/msg/String RIHS01_df668 10",
            ],
        )

    def test_policies_that_do_not_fit_are_told_at_both_ends_and_nothing_comes(self) -> None:
        self.peer("unreliable")
        lines = self.script(
            """
import time, rclpy
from rclpy.node import Node
from rclpy.event_handler import SubscriptionEventCallbacks
from std_msgs.msg import String
rclpy.init()
node = Node("strict")
got, told = [], []
events = SubscriptionEventCallbacks(incompatible_qos=lambda e: told.append((e.total_count, e.last_policy_kind.name)))
node.create_subscription(String, "strict", got.append, 10, event_callbacks=events)
end = time.time() + 30
while not told and time.time() < end:
    rclpy.spin_once(node, timeout_sec=0.1)
for _ in range(10):
    rclpy.spin_once(node, timeout_sec=0.05)
print("told", told, len(got))
node.destroy_node()
rclpy.shutdown()
"""
        )
        self.assertIn("told [(1, 'RMW_QOS_POLICY_RELIABILITY')] 0", lines)

    def test_parameters_are_read_and_set_from_another_process(self) -> None:
        self.peer("talk")
        lines = self.script(
            """
import rclpy
from rclpy.node import Node
from rclpy.parameter_client import AsyncParameterClient
rclpy.init()
node = Node("caller")
client = AsyncParameterClient(node, "talk")
assert client.wait_for_services(30)
def ask(future):
    rclpy.spin_until_future_complete(node, future, timeout_sec=30)
    return future.result()
print(ask(client.get_parameters(["use_sim_time"])).values[0].bool_value)
print(ask(client.set_parameters([rclpy.Parameter("use_sim_time", value=False)])).results[0].successful)
node.destroy_node()
rclpy.shutdown()
"""
        )
        self.assertEqual(lines[:2], ["False", "True"])

    def test_a_thousand_entities_come_and_go_and_nothing_is_left(self) -> None:
        lines = self.script(
            """
import os, time, rclpy
from rclpy.node import Node
from std_msgs.msg import String
from std_srvs.srv import SetBool
rclpy.init()
def cycle(n):
    for _ in range(n):
        # rclpy destroys every service of a node but the one that describes types.
        node = Node("brief", parameter_overrides=[rclpy.Parameter("start_type_description_service", value=False)])
        node.create_publisher(String, "t", 1)
        node.create_subscription(String, "t", lambda _: None, 1)
        node.create_client(SetBool, "s")
        node.create_service(SetBool, "s", lambda q, r: r)
        node.destroy_node()
cycle(20)
count = lambda: (len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")))
before = count()
cycle(200)
# The bus takes leave of the last ones in a thread of its own.
end = time.time() + 30
while count()[0] > before[0] + 8 and time.time() < end:
    time.sleep(0.1)
after = count()
print("descriptors", after[0] <= before[0] + 8, "threads", after[1] <= before[1] + 2, before, after)
rclpy.shutdown()
"""
        )
        self.assertTrue([line for line in lines if line.startswith("descriptors True threads True")], lines)

    def test_ropewalks_own_tools_meet_the_nodes(self) -> None:
        self.peer("talk")
        echo = self.ropewalk("topic", "echo", "/chatter")
        end = time.monotonic() + LONG
        while not any("hello" in line for line in echo.lines):
            self.assertLess(time.monotonic(), end, echo.lines)
            time.sleep(0.05)
        ear = self.peer("listen", "ear")
        self.ropewalk("topic", "pub", "--ros2", "--rate", "10", "/chatter", "std_msgs/String", "data: from the command line")
        end = time.monotonic() + LONG
        while not any("from the command line" in line for line in ear.lines):
            self.assertLess(time.monotonic(), end, ear.lines[-5:])
            time.sleep(0.05)


if __name__ == "__main__":
    unittest.main()
