"""A C++ program with ROS 2's own message classes and Ropewalk's headers, without rcl, between nodes of rclpy (tests/ros2/run)."""

from __future__ import annotations

import os
import re
import tempfile
import unittest
from pathlib import Path

import harness
from echo import Echo

ROOT = harness.HERE.parent.parent
PACKAGES = ["builtin_interfaces", "geometry_msgs", "rcl_interfaces", "sensor_msgs", "std_msgs", "std_srvs", "test_msgs"]

class Generated(Echo):
    def test_classes_of_ros_2_are_published_taken_called_and_served(self) -> None:
        built = Path(os.environ["ROPEWALK"]).parent
        venv = Path(os.environ["ROS2_VENV"])
        source = harness.HERE / "generated.cpp"
        headers = [line[len("#include <") : -len(".hpp>")].split("/") for line in source.read_text().splitlines() if re.match("#include <.*/(msg|srv)/", line)]
        camel = ["/".join([package, folder, "".join(w.capitalize() for w in name.split("_"))]) for package, folder, name in headers]
        with tempfile.TemporaryDirectory() as folder:
            program, library = Path(folder) / "generated", Path(folder) / "libropewalk.so"
            # With the name that it is installed under.
            library.symlink_to(built / "libropewalk_c.so")
            library.with_name("libropewalk.so.0").symlink_to(built / "libropewalk_c.so")
            links = [f"-L{folder}", "-lropewalk", f"-Wl,-rpath,{folder}", "-pthread", "-lrosidl_typesupport_cpp"]
            links += [f"-l{package}__rosidl_typesupport_cpp" for package in PACKAGES]
            self.compile(source, program, venv, f"-I{ROOT}/cpp/include", f"-I{ROOT}/crates/capi/include", *links)
            env = {k: v for k, v in harness.environment(self.host("")).items() if k not in ("LD_PRELOAD", "AMENT_PREFIX_PATH")}
            services = [name for name in camel if "/srv/" in name]
            # Definitions of the installation, then those of the classes, without the messages: some have lost the quotes of default values.
            for args, prefix, names in ([], {"AMENT_PREFIX_PATH": str(venv)}, camel), (["services"], {}, services):
                self.passes([program, *args], env | prefix, names)


if __name__ == "__main__":
    unittest.main()
