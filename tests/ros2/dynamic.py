"""A node that learns its types at run time, in C++ on rcl, between nodes of rclpy (tests/ros2/run)."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import house
from generated import CHECK

NAMES = [
    *["builtin_interfaces/msg/Time", "geometry_msgs/msg/PoseStamped", "sensor_msgs/msg/LaserScan"],
    *["std_msgs/msg/String", "test_msgs/msg/BasicTypes", "test_msgs/msg/Nested"],
]
RUN = "import ctypes, os, sys; os._exit(ctypes.CDLL(sys.argv[1]).run())"  # The end of Fast DDS' own library takes minutes.


class Dynamic(house.Scenario):
    def test_types_are_learned_at_run_time(self) -> None:
        venv = Path(os.environ["ROS2_VENV"])
        if "kilted" in venv.name:
            self.skipTest("Kilted's rosidl_dynamic_typesupport_fastrtps ends the process when it makes any message, over Fast DDS as well")
        packages = sorted({name.split("/")[0] for name in NAMES})
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "dynamic.so"
            command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", house.HERE / "dynamic.cpp", "-o", program]
            command += [arg for each in (venv / "include").iterdir() for arg in ("-isystem", each)]
            command += [f"-L{venv}/lib", "-lrcl", "-lrcutils", "-lrmw", "-lrosidl_dynamic_typesupport", "-lrosidl_typesupport_c", "-lrosidl_runtime_c"]
            command += [f"-l{package}__rosidl_typesupport_c" for package in packages] + ["-Wl,--allow-shlib-undefined"]
            subprocess.run(command, check=True)
            env = house.environment(self.host(""))
            echo = subprocess.Popen([sys.executable, "-c", RUN, program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            try:
                self.assertEqual(echo.stdout.readline(), "ready\n")
                self.assertEqual(self.script(CHECK % (str(house.HERE), NAMES)), [f"types {len(NAMES)} wrong []"])
            finally:
                echo.stdin.close()
                echo.wait(30)
                echo.stdout.close()
                self.assertEqual(echo.returncode, 0)


if __name__ == "__main__":
    unittest.main()
