"""Classes of messages that ROS 2 generated, used as types. ROS2_MESSAGES names a folder with them (`make python`
does)."""

import os
import subprocess
import sys

import pytest

FOLDER = os.environ.get("ROS2_MESSAGES")
# In its own process, since ROS 1's packages have the same names.
SCRIPT = """
import array, random, sys, tempfile
import numpy as np
import ropewalk
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point32, Polygon, PoseWithCovarianceStamped
from sensor_msgs.msg import CameraInfo, Image, JointState, LaserScan, PointCloud2, PointField
from std_msgs.msg import Bool, Byte, ByteMultiArray, Empty, Header, String

folder = tempfile.mkdtemp()
node, other = ropewalk.Node("a", folder), ropewalk.Node("b", folder)
header = Header(stamp=Time(sec=7, nanosec=8), frame_id="map")
pose = PoseWithCovarianceStamped(header=header)
pose.pose.covariance = np.arange(36.0)
pose.pose.pose.position.x = 1.5
camera = CameraInfo(header=header, width=3, d=[0.5, 0.25], k=np.arange(9.0))
messages = [
    String(data="hello"), Bool(data=True), Byte(data=b"\\x07"), ByteMultiArray(data=[b"\\x01", b"\\xff"]), Empty(), header, pose, camera,
    Image(header=header, height=2, width=2, encoding="mono8", data=array.array("B", bytes(range(256)) * 400)),
    LaserScan(ranges=[0.5] * 1000, angle_min=-1.0), JointState(name=["a", "b"], position=[1.0, 2.0]),
    Polygon(points=[Point32(x=float(i), y=0.5) for i in range(100)]),
    PointCloud2(fields=[PointField(name="x", offset=4, datatype=7, count=1)], data=bytes(1000), is_dense=True),
]
for n, message in enumerate(messages):
    publisher = node.publisher(f"/t{n}", type(message))
    theirs, ours = other.subscriber(f"/t{n}", type(message)), other.subscriber(f"/t{n}")
    assert publisher.wait_for_subscribers(2, 30) and theirs.wait_for_publishers(1, 30)
    assert publisher.publish(message) == 2
    taken = theirs.take(30)
    assert type(taken) is type(message) and taken == message, (taken, message)
    assert theirs.held == 0, "arrays are its own"
    # A taken message of Ropewalk, published unchanged, is the same.
    publisher.publish(ours.take(30))
    assert theirs.take(30) == message

from std_srvs.srv import SetBool
import threading
server, client = node.server("/switch", SetBool), other.client("/switch", SetBool)
def serve(request):
    assert type(request) is SetBool.Request
    return SetBool.Response(success=not request.data, message="switched")
threading.Thread(target=server.serve, args=(serve,), daemon=True).start()
assert client.wait_for_server(30)
answer = client.call(SetBool.Request(data=True), timeout=30)
assert type(answer) is SetBool.Response and (answer.success, answer.message) == (False, "switched")
assert client.call(data=False, timeout=30).success

publisher = node.publisher("/s", String)
for wrong in (Bool(data=True), 7):
    try:
        publisher.publish(wrong)
        raise SystemExit(f"{wrong} was published")
    except (ropewalk.ContentError, TypeError, AttributeError) as e:
        pass
print("all", len(messages))
"""


def test_generated_classes_stand_where_types_may():
    if not FOLDER:
        pytest.skip("ROS2_MESSAGES names no folder with ROS 2's messages; `make python` does")
    own = os.path.dirname(os.path.dirname(sys.modules["ropewalk"].__file__))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([FOLDER, own])}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("all")
