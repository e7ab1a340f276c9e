"""A C++ node on rcl that learns its types at run time, between nodes of rclpy (tests/ros2/run)."""

from __future__ import annotations

import os
import sys
import tempfile
import unittest
from pathlib import Path

import harness
from echo import Echo

NAMES = [
    *["builtin_interfaces/msg/Time", "geometry_msgs/msg/PoseStamped", "sensor_msgs/msg/LaserScan"],
    *["std_msgs/msg/String", "test_msgs/msg/BasicTypes", "test_msgs/msg/Nested"],
]
RUN = "import ctypes, os, sys; os._exit(ctypes.CDLL(sys.argv[1]).run())"  # The end of Fast DDS' own library takes minutes.


class Dynamic(Echo):
    def test_types_are_learned_at_run_time(self) -> None:
        venv = Path(os.environ["ROS2_VENV"])
        if "kilted" in venv.name:
            self.skipTest("Kilted's rosidl_dynamic_typesupport_fastrtps ends the process when it creates any message, over Fast DDS as well")
        packages = sorted({name.split("/")[0] for name in NAMES})
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "dynamic.so"
            links = ["-lrcl", "-lrcutils", "-lrmw", "-lrosidl_dynamic_typesupport", "-lrosidl_typesupport_c", "-lrosidl_runtime_c"]
            links += [f"-l{package}__rosidl_typesupport_c" for package in packages]
            self.compile(harness.HERE / "dynamic.cpp", program, venv, "-fPIC", "-shared", *links)
            self.passes([sys.executable, "-c", RUN, program], harness.environment(self.host("")), NAMES)


if __name__ == "__main__":
    unittest.main()
