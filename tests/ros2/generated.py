"""A program in C++ with ROS 2's own message classes and Ropewalk's headers, without rcl, between nodes of rclpy (tests/ros2/run)."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import house

ROOT = house.HERE.parent.parent
PACKAGES = ["builtin_interfaces", "geometry_msgs", "rcl_interfaces", "sensor_msgs", "std_msgs", "std_srvs", "test_msgs"]

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
    # The program is no node: what says that it is there is what comes back.
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
        # Data parts, of which the first is a small one.
        sent += [Image(data=chance.randbytes(n)) for n in (256, 300_000, 1, 2_000_001)]
    if type_ is UnboundedSequences:
        # And of structures with padding, booleans among their fields.
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

# The requests that the server got and the responses that the client got, and those that were sent.
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


class Generated(house.Scenario):
    def test_classes_of_ros_2_are_published_taken_called_and_served(self) -> None:
        built = Path(os.environ["ROPEWALK"]).parent
        venv = Path(os.environ["ROS2_VENV"])
        source = house.HERE / "generated.cpp"
        headers = [line[len("#include <") : -len(".hpp>")].split("/") for line in source.read_text().splitlines() if re.match("#include <.*/(msg|srv)/", line)]
        camel = ["/".join([package, folder, "".join(w.capitalize() for w in name.split("_"))]) for package, folder, name in headers]
        with tempfile.TemporaryDirectory() as folder:
            program, library = Path(folder) / "generated", Path(folder) / "libropewalk.so"
            # As it is installed.
            library.symlink_to(built / "libropewalk_c.so")
            library.with_name("libropewalk.so.0").symlink_to(built / "libropewalk_c.so")
            command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", source, "-o", program, f"-I{ROOT}/cpp/include", f"-I{ROOT}/crates/capi/include"]
            command += [arg for each in (venv / "include").iterdir() for arg in ("-isystem", each)]
            command += [f"-L{venv}/lib", f"-L{folder}", "-lropewalk", f"-Wl,-rpath,{folder}", "-pthread", "-lrosidl_typesupport_cpp"]
            command += [f"-l{package}__rosidl_typesupport_cpp" for package in PACKAGES] + ["-Wl,--allow-shlib-undefined"]
            subprocess.run(command, check=True)
            env = {k: v for k, v in house.environment(self.host("")).items() if k not in ("LD_PRELOAD", "AMENT_PREFIX_PATH")}
            services = [name for name in camel if "/srv/" in name]
            # Definitions of the installation, then the classes' own, without the messages: some have lost quotes of default values.
            for args, prefix, names in ([], {"AMENT_PREFIX_PATH": str(venv)}, camel), (["services"], {}, services):
                echo = subprocess.Popen([program, *args], env=env | prefix, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                try:
                    self.assertEqual(echo.stdout.readline(), "ready\n")
                    self.assertEqual(self.script(CHECK % (str(house.HERE), names)), [f"types {len(names)} wrong []"])
                finally:
                    echo.stdin.close()
                    echo.wait(30)
                    echo.stdout.close()
                self.assertEqual(echo.returncode, 0)


if __name__ == "__main__":
    unittest.main()
