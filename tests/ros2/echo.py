"""Nodes of rclpy with a C++ program in between: what it forwards is compared with what was sent."""

from __future__ import annotations

import subprocess
from pathlib import Path

import harness

CHECK = """
import importlib, random, sys, time
sys.path.insert(0, %r)
import rclpy
from rclpy.node import Node
import values
from rcl_interfaces.msg import ParameterValue
from rcl_interfaces.srv import GetParameters
from sensor_msgs.msg import Image
from sensor_msgs.srv import SetCameraInfo
from test_msgs.msg import BasicTypes, UnboundedSequences
names = %r
rclpy.init()
node, chance = Node("check"), random.Random(7)
wrong = []

def published(type_, topic):
    came = []
    back = node.create_subscription(type_, "back/" + topic, came.append, 100)
    there = node.create_publisher(type_, "there/" + topic, 100)
    end = time.monotonic() + 20
    # The program is not a node: only its echo shows that it is there.
    while not came and time.monotonic() < end:
        there.publish(type_())
        rclpy.spin_once(node, timeout_sec=0.05)
    before = -1
    while before != len(came):
        before = len(came)
        rclpy.spin_once(node, timeout_sec=0.2)
    came.clear()
    sent = [type_()] + [values.filled(type_, chance) for _ in range(20)]
    if type_ is Image:
        # Data parts; the first one is small.
        sent += [Image(data=chance.randbytes(n)) for n in (256, 300_000, 1, 2_000_001)]
    if type_ is UnboundedSequences:
        # And of structures with padding that contain booleans.
        sent += [type_(basic_types_values=[values.filled(BasicTypes, chance) for _ in range(n)], bool_values=[b > 127 for b in chance.randbytes(900)])
                 for n in (7, 500)]
    for message in sent:
        there.publish(message)
    while len(came) < len(sent) and time.monotonic() < end:
        rclpy.spin_once(node, timeout_sec=0.5)
    return came, sent

def filled(type_):
    message = values.filled(type_, chance)
    # In data parts.
    numbers = [chance.random() for _ in range(chance.choice([1, 100, 40_000]))]
    if type_ is SetCameraInfo.Request:
        message.camera_info.d = numbers
    if type_ is GetParameters.Response:
        message.values.append(ParameterValue(double_array_value=numbers))
    return message

# Returns the requests that the server got and the responses that the client got, and those that were sent.
def called(type_, topic):
    requests, responses = [], []
    def answer(request, response):
        requests.append(request)
        if responses:
            response = filled(type_.Response)
        responses.append(response)
        return response
    back = node.create_service(type_, "back/" + topic, answer)
    there = node.create_client(type_, "there/" + topic)
    there.wait_for_service(60)
    came, sent = [], [type_.Request()] + [filled(type_.Request) for _ in range(20)]
    for request in sent:
        future = there.call_async(request)
        rclpy.spin_until_future_complete(node, future, timeout_sec=60)
        if not future.done():
            break
        came.append(future.result())
    return requests + came, sent + responses

for name in names:
    package, folder, kind = name.split("/")
    type_ = getattr(importlib.import_module(package + "." + folder), kind)
    came, right = (published if folder == "msg" else called)(type_, name.replace("/", "_"))
    if came != right:
        wrong.append((name, len(came), len(right)))
print("types", len(names), "wrong", wrong)
node.destroy_node()
rclpy.shutdown()
"""


class Echo(harness.Scenario):
    def compile(self, source: Path, program: Path, venv: Path, *args: object) -> None:
        command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", source, "-o", program]
        command += [arg for each in (venv / "include").iterdir() for arg in ("-isystem", each)]
        subprocess.run([*command, f"-L{venv}/lib", *args, "-Wl,--allow-shlib-undefined"], check=True)

    def passes(self, command: list[object], env: dict[str, str], names: list[str]) -> None:
        """Runs a program that forwards messages and requests of these types until its standard input ends."""
        echo = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert echo.stdin and echo.stdout
        try:
            self.assertEqual(echo.stdout.readline(), "ready\n")
            self.assertEqual(self.script(CHECK % (str(harness.HERE), names)), [f"types {len(names)} wrong []"])
        finally:
            echo.stdin.close()
            echo.wait(30)
            echo.stdout.close()
        self.assertEqual(echo.returncode, 0)
