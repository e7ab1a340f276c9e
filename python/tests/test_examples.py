"""The examples run, and print the expected output."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from conftest import LONG

EXAMPLES = Path(__file__).parents[2] / "examples/python"


@pytest.fixture
def pair(bus):
    """Runs two examples until both end by themselves, and returns their output."""

    def run(*names):
        started = [
            subprocess.Popen([sys.executable, "-X", "dev", "-W", "error", "-u", EXAMPLES / f"{n}.py"], stdout=subprocess.PIPE, text=True)
            for n in names
        ]
        reported = [child.communicate()[0] for child in started]
        assert [child.returncode for child in started] == [0] * len(started)
        return reported

    return run


def test_pictures_are_seen(pair):
    seen, published = pair("camera_subscriber", "camera_publisher")
    assert published.count("\n") == 90
    assert ": 2073600 pixels, mean 127" in seen


def test_sums_are_answered(pair):
    asked, answered = pair("add_two_ints_client", "add_two_ints_server")
    assert asked.startswith("1 + 2 = 3\n40 + 2 = 42\n")
    assert asked.endswith("the sum does not fit into 64 bits\n")
    assert answered == "answered 3\nanswered 42\n"


def test_speeds_are_heard(pair):
    heard, _ = pair("twist_subscriber", "twist_publisher")
    assert heard.endswith("speed 1.9\n")


def test_a_brake_is_set_and_released(pair):
    asked, answered = pair("brake_client", "brake_server")
    assert asked == "the brake is set\nthe brake is released\n"
    assert answered == "set\nreleased\n"


def test_an_extension_is_understood(pair):
    (printed,) = pair("remote_extension")
    assert printed == "spray 2 l: executed\nspray 2.5 l: executed\nspray 1 l: rejected: only 0.5 l are left\nleft: 0.5 l\n"


def test_a_robot_is_commanded(pair):
    robot, desk = pair("robot", "controller")
    assert robot.startswith("desk says 0.5 m/s\ndesk says 0.25 m/s\n") and robot.endswith("rover says 0 m/s\n")
    lines = [line for line in desk.splitlines() if "moves" not in line]
    assert lines == [
        "0.5 m/s: executed", "2 m/s: rejected: faster than 1 m/s", "it is moved by desk", "0.25 m/s: executed",
    ]  # fmt: skip


def test_a_red_light_stops(pair):
    brake, robot = pair("red_light_brake", "red_light_robot")
    assert brake.startswith("red in picture 3")
    assert robot.startswith("stopped ") and robot.endswith(" ms after the light turned red\n")


def test_scans_are_filtered(bus, node):
    scans = node.publisher("/scan", "sensor_msgs/LaserScan")
    near = node.subscriber("/scan/near", "sensor_msgs/LaserScan")
    example = subprocess.Popen(
        [sys.executable, "-X", "dev", "-W", "error", "-u", EXAMPLES / "lidar_filter.py", "2"], stdout=subprocess.PIPE, text=True
    )
    assert scans.wait_for_subscribers(1, LONG) and near.wait_for_publishers(1, LONG)
    scan = scans.message(angle_max=1.0, ranges=np.arange(1, 101, dtype=np.float32))
    scan.header.frame_id = "laser"
    scans.publish(scan)
    kept = near.take(LONG)
    assert kept.header.frame_id == "laser" and kept.range_max == 2
    assert list(kept.ranges[:2]) == [1, 2] and np.isinf(kept.ranges[2:]).all()
    assert example.communicate()[0] == "2 of 100 are near\n"
    assert example.returncode == 0
