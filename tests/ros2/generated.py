"""A program in C++ with ROS 2's own message classes and Ropewalk's headers, without rcl, between nodes of rclpy (tests/ros2/run)."""

from __future__ import annotations

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import house

ROOT = house.HERE.parent.parent
PACKAGES = ["builtin_interfaces", "geometry_msgs", "sensor_msgs", "std_msgs", "test_msgs"]

CHECK = """
import importlib, random, sys, time
sys.path.insert(0, %r)
import rclpy
from rclpy.node import Node
import values
from sensor_msgs.msg import Image
from test_msgs.msg import BasicTypes, UnboundedSequences
names = %r
rclpy.init()
node, chance = Node("check"), random.Random(7)
wrong = []
for name in names:
    package, _, kind = name.split("/")
    type_ = getattr(importlib.import_module(package + ".msg"), kind)
    came = []
    back = node.create_subscription(type_, "back/" + name.replace("/", "_"), came.append, 100)
    there = node.create_publisher(type_, "there/" + name.replace("/", "_"), 100)
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
    if came != sent:
        wrong.append((name, len(came), len(sent)))
print("types", len(names), "wrong", wrong)
node.destroy_node()
rclpy.shutdown()
"""


class Generated(house.Scenario):
    def test_classes_of_ros_2_are_published_and_taken(self) -> None:
        built = Path(os.environ["ROPEWALK"]).parent
        venv = Path(os.environ["ROS2_VENV"])
        source = house.HERE / "generated.cpp"
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
            env = {k: v for k, v in house.environment(self.host("")).items() if k != "LD_PRELOAD"} | {"AMENT_PREFIX_PATH": str(venv)}
            echo = subprocess.Popen([program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            try:
                self.assertEqual(echo.stdout.readline(), "ready\n")
                text = source.read_text()
                names = [line[len("#include <") : -len(".hpp>")] for line in text.splitlines() if "/msg/" in line and line.startswith("#include")]
                camel = ["/".join([*n.split("/")[:2], "".join(w.capitalize() for w in n.split("/")[2].split("_"))]) for n in names]
                lines = self.script(CHECK % (str(house.HERE), camel))
                self.assertEqual(lines, [f"types {len(camel)} wrong []"])
            finally:
                echo.stdin.close()
                echo.wait(30)
                echo.stdout.close()
            self.assertEqual(echo.returncode, 0)


if __name__ == "__main__":
    unittest.main()
