"""rospy nodes that import ropewalk.rospy instead, among themselves and with plain nodes, under a roscore."""

import json
import os
import socket
import subprocess
import sys
import textwrap
import time

import pytest

MISSING = "install the Debian packages of tests/ros1/apt.txt"
try:
    import rospy as plain_rospy
    from std_msgs.msg import String

    from ropewalk import rospy
except ImportError:
    assert "CI" not in os.environ, MISSING
    pytest.skip(MISSING, allow_module_level=True)

#: A hang is a failure; slowness is not.
WATCHDOG = 100.0

TALK = """
    rospy.init_node("talk", anonymous=True, disable_signals=True)
    publisher = rospy.Publisher("camera", Image, queue_size=4)
    i = 0
    while not rospy.is_shutdown():
        image = Image(width=640, height=480, encoding="mono8", step=640, data=bytes([i % 251]) * 640 * 480)
        image.header.stamp = rospy.Time(1000 + i, 5)
        image.header.frame_id = "camera"
        publisher.publish(image)
        i += 1
        time.sleep(0.02)
"""
HEAR = """
    kept = []
    def heard(image):
        data = image.data
        same = data == bytes([(image.header.stamp.secs - 1000) % 251]) * 640 * 480
        kept.append((image.header.stamp.secs, data))
        kept[:] = kept[-KEEP:]
        same = same and all(d[0] == d[-1] == (s - 1000) % 251 for s, d in kept)
        caller = bool(image._connection_header["callerid"])
        line = [image.header.stamp.secs, image.header.frame_id, type(data).__name__, len(data), same, caller]
        print(json.dumps(line) + "\\n", end="", flush=True)
    rospy.init_node("hear", anonymous=True, disable_signals=True)
    subscriber = rospy.Subscriber("camera", Image, heard)
    while not rospy.is_shutdown():
        time.sleep(0.1)
"""


@pytest.fixture
def ros(tmp_path):
    """Starts programs under the test's own roscore, each with `rospy` of the named module."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("ROS", "ROPEWALK", "XDG_RUNTIME"))}
    env |= {"ROS_MASTER_URI": f"http://127.0.0.1:{port}", "ROS_IP": "127.0.0.1", "ROS_HOME": str(tmp_path / "home")}
    started = []

    def run(command, **more):
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env | more))
        return started[-1]

    def start(module, text, bus="bus", keep=1):
        folder = tmp_path / bus
        folder.mkdir(mode=0o700, exist_ok=True)
        importing = {"plain": "import rospy", "ropewalk": "from ropewalk import rospy"}[module]
        text = f"import json, time\nfrom sensor_msgs.msg import Image\n{importing}\nKEEP = {keep}\n" + textwrap.dedent(text)
        return run([sys.executable, "-c", text], ROPEWALK_RUNTIME_DIR=str(folder))

    run(["/usr/bin/python3", "/usr/bin/rosmaster", "--core", "-p", str(port), "-w", "3"])
    deadline = time.monotonic() + WATCHDOG
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    yield start
    for child in reversed(started):
        child.kill()
        child.wait()
        child.stdout.close()


def hear(node, count=20):
    """The next messages that it prints: stamps, and how the data arrived, and whether over a ROS connection."""
    lines = [json.loads(node.stdout.readline() or "null") for _ in range(count)]
    assert all(line is not None for line in lines), "the node ended"
    assert all((frame, length, same) == ("camera", 640 * 480, True) for _, frame, _, length, same, _ in lines), lines
    stamps = [line[0] for line in lines]
    # None twice: each message arrives over one transport only.
    assert sorted(set(stamps)) == stamps
    return {(line[2], line[5]) for line in lines}


def test_one_changed_line_moves_images_to_the_bus(ros):
    ears = [ros("ropewalk", HEAR), ros("ropewalk", HEAR)]
    ros("ropewalk", TALK)
    for ear in ears:
        assert hear(ear) == {("Array", False)}


def test_plain_nodes_hear_and_are_heard(ros):
    ros("ropewalk", TALK)
    assert hear(ros("plain", HEAR)) == {("bytes", True)}


def test_plain_publishers_are_heard(ros):
    ear = ros("ropewalk", HEAR)
    ros("plain", TALK)
    assert hear(ear) == {("bytes", True)}


def test_each_message_comes_once_where_both_kinds_publish(ros):
    ear = ros("ropewalk", HEAR)
    ros("plain", TALK)
    hear(ear, 5)
    ros("ropewalk", TALK)
    seen = []
    deadline = time.monotonic() + WATCHDOG
    # Until messages have arrived over the bus for a while.
    while sum(1 for s, kind in seen if kind == "Array") < 50:
        assert time.monotonic() < deadline, seen
        stamp, _, kind, _, same, _ = json.loads(ear.stdout.readline())
        assert same
        seen.append((stamp, kind))
    for kind in ("Array", "bytes"):
        stamps = [s for s, k in seen if k == kind]
        assert sorted(set(stamps)) == stamps, f"{kind}: twice"


def test_another_host_is_reached_through_ros(ros):
    ear = ros("ropewalk", HEAR, bus="far")
    ros("ropewalk", TALK)
    assert hear(ear) == {("bytes", True)}


def test_without_a_bus_everything_goes_through_ros(ros, tmp_path):
    (tmp_path / "file").write_text("")
    talk = TALK
    ear = ros("ropewalk", HEAR)
    bad = 'import os; os.environ["ROPEWALK_RUNTIME_DIR"] = "relative"\n'
    ros("ropewalk", textwrap.dedent(bad) + textwrap.dedent(talk))
    assert hear(ear) == {("bytes", True)}


def test_a_node_that_keeps_many_gets_copies_and_loses_none_of_them(ros):
    ear = ros("ropewalk", HEAR, keep=200)
    ros("ropewalk", TALK)
    kinds = hear(ear, 250)
    assert kinds == {("Array", False), ("bytes", False)}


def test_other_types_are_rospys():
    assert rospy.Time is plain_rospy.Time and rospy.rostime is plain_rospy.rostime
    assert type(rospy.Publisher("/chatter", String, queue_size=1)) is plain_rospy.Publisher


def test_arrays_are_used_as_bytes_and_tuples_are():
    import numpy as np

    octets = np.frombuffer(b"\xff\xffab", np.uint8).view(rospy.Array)
    assert octets and not octets[:0]
    assert octets[0] + octets[1] == 510
    assert octets == b"\xff\xffab" and octets != b"" and octets[2:] == b"ab"
    assert octets[2:].decode() == "ab" and list(octets[:2]) == [255, 255]
    assert octets.startswith(b"\xff") and bytes(octets) == b"\xff\xffab"
    assert np.frombuffer(octets, np.uint8).sum() == 510 + 97 + 98
    grid = octets.reshape(2, 2)
    assert grid[1, 0] == 97 and (grid == np.array([[255, 255], [97, 98]])).all()
    assert type(octets.astype(np.int32) + 1) is np.ndarray
    ranges = np.array([1.0, 2.5], np.float32).view(rospy.Array)
    assert ranges == (1.0, 2.5) and min(ranges) == 1.0 and isinstance(ranges[1], float)
    with pytest.raises(AttributeError):
        ranges.decode()


def test_values_go_over_the_bus_as_they_are_or_not_at_all():
    import numpy as np
    from sensor_msgs.msg import Image, LaserScan

    from ropewalk import ContentError

    images, scans = rospy._Shape.of(Image), rospy._Shape.of(LaserScan)
    encode = images.shared._codec.encode
    for data in (b"abc", (97, 98, 99), np.array([97, 98, 99]), memoryview(b"abc")):
        assert encode(images.out(Image(data=data))).control == encode(images.out(Image(data=b"abc"))).control
        assert not isinstance(data, np.ndarray) or images.plain(Image(data=data)).data == b"abc"
    for data in (np.array([256]), np.zeros((2, 2), np.uint8), np.array([1.5])):
        with pytest.raises(ContentError, match="data: given .* wanted an array of uint8"):
            encode(images.out(Image(data=data)))
        with pytest.raises(ValueError, match="wanted an array of uint8"):
            images.plain(Image(data=data))
    with pytest.raises(ContentError, match="ranges: given .* wanted an array of float32"):
        scans.shared._codec.encode(scans.out(LaserScan(ranges=[1e300])))


def test_what_goes_over_the_bus():
    from geometry_msgs.msg import PolygonStamped
    from sensor_msgs.msg import CameraInfo, Image, LaserScan, PointCloud2

    for kind, large in ((Image, True), (PointCloud2, True), (LaserScan, True), (CameraInfo, True), (PolygonStamped, False), (String, False)):
        assert rospy._goes_over_the_bus(kind) == large, kind
