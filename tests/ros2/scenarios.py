"""Unchanged nodes of rclpy over rmw_ropewalk (tests/ros2/run)."""

from __future__ import annotations

import sys
import time
import unittest

import harness
from harness import LONG


class Scenario(harness.Scenario):
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

    def test_memory_of_large_messages_is_used_again(self) -> None:
        lines = self.script(
            """
import resource, time, rclpy
from rclpy.node import Node
from sensor_msgs.msg import Image
rclpy.init()
node = Node("eye")
publisher = node.create_publisher(Image, "image", 2)
subscription = node.create_subscription(Image, "image", lambda m: None, 2)
while publisher.get_subscription_count() < 1:
    time.sleep(0.01)
image = Image(data=bytes(4_000_000))
def faults(rounds):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(rounds):
        publisher.publish(image)
        with subscription.handle:
            assert len(subscription.handle.take_message(Image, False)[0].data) == 4_000_000
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / rounds
faults(10)
print("faults", faults(20))
node.destroy_node()
rclpy.shutdown()
"""
        )
        # A page fault for each 4 KiB of a message in C and one in Python would be 2,000.
        self.assertLess(float(lines[0].split()[1]), 500)

    def test_who_waits_for_one_event_is_not_woken_by_another(self) -> None:
        lines = self.script(
            """
import time, rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from std_msgs.msg import String
rclpy.init()
node = Node("idle")
kept = node.create_publisher(String, "chatter", 2), node.create_subscription(String, "chatter", lambda m: None, 2)
executor = SingleThreadedExecutor()
executor.add_node(node)
end = time.monotonic() + 1
while time.monotonic() < end:
    executor.spin_once(timeout_sec=0.1)
before, began = time.process_time(), time.monotonic()
for _ in range(20):
    executor.spin_once(timeout_sec=0.1)
print("busy", (time.process_time() - before) / (time.monotonic() - began))
node.destroy_node()
rclpy.shutdown()
"""
        )
        # The match of its own two endpoints raises events that nobody takes. A node that spins in a busy loop would use a whole processor.
        self.assertLess(float(lines[0].split()[1]), 0.5)

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
# A node appears before its endpoints do.
topics = lambda: dict(node.get_publisher_names_and_types_by_node("talk", "/")) if "talk" in node.get_node_names() else {}
services = lambda: dict(node.get_service_names_and_types())
while (len(node.get_node_names()) < 3 or not {"/chatter", "/image"} <= topics().keys() or "/switch" not in services()) and time.time() < end:
    time.sleep(0.02)
print(sorted(node.get_node_names_and_namespaces()))
print(dict(node.get_topic_names_and_types())["/chatter"], services()["/switch"])
print(topics()["/image"], node.count_publishers("/chatter"))
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

    def test_incompatible_policies_are_reported_at_both_ends_and_nothing_arrives(self) -> None:
        self.peer("unreliable")
        lines = self.script(
            """
import time, rclpy
from rclpy.node import Node
from rclpy.event_handler import SubscriptionEventCallbacks
from std_msgs.msg import String
rclpy.init()
node = Node("strict")
got, reported = [], []
events = SubscriptionEventCallbacks(incompatible_qos=lambda e: reported.append((e.total_count, e.last_policy_kind.name)))
node.create_subscription(String, "strict", got.append, 10, event_callbacks=events)
end = time.time() + 30
while not reported and time.time() < end:
    rclpy.spin_once(node, timeout_sec=0.1)
for _ in range(10):
    rclpy.spin_once(node, timeout_sec=0.05)
print("reported", reported, len(got))
node.destroy_node()
rclpy.shutdown()
"""
        )
        self.assertIn("reported [(1, 'RMW_QOS_POLICY_RELIABILITY')] 0", lines)

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
        # rclpy destroys every service of a node except the one that describes types.
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
# The bus unregisters the last ones in a separate thread.
end = time.time() + 30
while count()[0] > before[0] + 8 and time.time() < end:
    time.sleep(0.1)
after = count()
print("descriptors", after[0] <= before[0] + 8, "threads", after[1] <= before[1] + 2, before, after)
rclpy.shutdown()
"""
        )
        self.assertTrue([line for line in lines if line.startswith("descriptors True threads True")], lines)

    def test_an_executor_turns_fifty_entities(self) -> None:
        lines = self.script(
            """
import time, rclpy
from rclpy.executors import MultiThreadedExecutor
from rclpy.node import Node
from std_msgs.msg import String
from std_srvs.srv import SetBool
rclpy.init()
node, other = Node("many"), Node("other")
heard, served, answers, ticks = set(), set(), set(), set()
def serve(n):
    def answer(request, response):
        served.add(n)
        response.message = str(n)
        return response
    return answer
for n in range(20):
    node.create_subscription(String, f"topic_{n}", lambda m, n=n: heard.add((n, m.data)), 10)
for n in range(10):
    node.create_timer(0.05, lambda n=n: ticks.add(n))
    node.create_service(SetBool, f"service_{n}", serve(n))
publishers = [other.create_publisher(String, f"topic_{n}", 10) for n in range(20)]
clients = [other.create_client(SetBool, f"service_{n}") for n in range(10)]
executor = MultiThreadedExecutor(4)
executor.add_node(node)
executor.add_node(other)
assert all(c.wait_for_service(30) for c in clients)
end = time.time() + 30
while any(p.get_subscription_count() < 1 for p in publishers) and time.time() < end:
    executor.spin_once(timeout_sec=0.05)
for n, publisher in enumerate(publishers):
    publisher.publish(String(data=str(n)))
futures = [client.call_async(SetBool.Request()) for client in clients]
for n, future in enumerate(futures):
    future.add_done_callback(lambda f, n=n: answers.add((n, f.result().message)))
while (len(heard), len(served), len(answers), len(ticks)) != (20, 10, 10, 10) and time.time() < end:
    executor.spin_once(timeout_sec=0.05)
print(heard == {(n, str(n)) for n in range(20)}, len(served), answers == {(n, str(n)) for n in range(10)}, len(ticks))
executor.shutdown()
node.destroy_node()
other.destroy_node()
rclpy.shutdown()
"""
        )
        self.assertEqual(lines[-1], "True 10 True 10")

    def test_a_lifecycle_node_is_configured_and_activated_by_another(self) -> None:
        self.peer("live")
        lines = self.script(
            """
import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.node import Node
rclpy.init()
node = Node("manager")
def ask(kind, name, request):
    client = node.create_client(kind, name)
    assert client.wait_for_service(30)
    future = client.call_async(request)
    rclpy.spin_until_future_complete(node, future, timeout_sec=30)
    return future.result()
for transition in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
    done = ask(ChangeState, "live/change_state", ChangeState.Request(transition=Transition(id=transition)))
    print(done.success, ask(GetState, "live/get_state", GetState.Request()).current_state.label)
node.destroy_node()
rclpy.shutdown()
"""
        )
        self.assertEqual(lines[:2], ["True inactive", "True active"])

    def test_a_child_of_a_fork_does_no_harm(self) -> None:
        lines = self.script(
            """
import os, time, rclpy
from rclpy.node import Node
from std_msgs.msg import String
rclpy.init()
node = Node("parent")
heard = []
node.create_subscription(String, "t", lambda m: heard.append(m.data), 10)
publisher = node.create_publisher(String, "t", 10)
end = time.time() + 30
while publisher.get_subscription_count() < 1 and time.time() < end:
    rclpy.spin_once(node, timeout_sec=0.05)
for child in range(5):
    pid = os.fork()
    if pid == 0:
        # A child is not part of the bus: publishing fails in it, and its end does not affect the parent.
        try:
            publisher.publish(String(data="of the child"))
        except Exception:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    publisher.publish(String(data=f"after {child}"))
while len(heard) < 5 and time.time() < end:
    rclpy.spin_once(node, timeout_sec=0.05)
print(heard)
node.destroy_node()
rclpy.shutdown()
"""
        )
        self.assertEqual(lines[-1], str([f"after {n}" for n in range(5)]))

    def test_null_arguments_of_every_function_are_refused(self) -> None:
        # In a process without LD_PRELOAD, so nothing is initialised.
        text = """
import ctypes, os, subprocess
library = os.environ["RMW_ROPEWALK"]
names = [line.split()[-1] for line in subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True).stdout.splitlines()]
names = sorted({n for n in names if n.startswith("rmw_")})
handle = ctypes.CDLL(library)
# Functions without arguments, or that return a structure, a number or a text.
others = {"rmw_get_implementation_identifier", "rmw_get_serialization_format", "rmw_feature_supported", "rmw_event_type_is_supported",
          "rmw_set_log_severity", "rmw_get_zero_initialized_init_options"}
pointers = {"rmw_create_node", "rmw_create_publisher", "rmw_create_subscription", "rmw_create_client", "rmw_create_service",
            "rmw_create_guard_condition", "rmw_create_wait_set", "rmw_node_get_graph_guard_condition"}
wrong = []
for name in names:
    if name in others:
        continue
    function = getattr(handle, name)
    function.restype = ctypes.c_void_p if name in pointers else ctypes.c_int
    result = function(*[None] * 12)
    if (result is not None) if name in pointers else result == 0:
        wrong.append((name, result))
print("functions", len(names), "wrong", wrong)
"""
        env = {k: v for k, v in harness.environment(self.host("")).items() if k != "LD_PRELOAD"}
        process = harness.Process([sys.executable, "-X", "faulthandler", "-c", text], env)
        self.processes.append(process)
        count, wrong = process.ended()[-1].split(" wrong ")
        self.assertEqual((int(count.split()[1]), wrong), (95, "[]"))

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
