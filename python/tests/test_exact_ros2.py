"""Like test_exact.py, compared with rclpy's messages: Ropewalk publishes the values that their fields keep.

The messages are installed as wheels, into a separate folder, since ROS 1's packages have the same names: ROS2_MESSAGES
names the folder (`make python` does)."""

import collections
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from ropewalk import ContentError, Type
from ropewalk._codec import codec
from test_exact import COUNT, NEVER, Pair, Values

FOLDER = os.environ.get("ROS2_MESSAGES")
FIELDS = [
    *(("std_msgs", f"{kind}MultiArray", "data", kind.lower()) for kind in (
        "UInt8", "Int8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64", "Float32", "Float64",
    )),
    ("sensor_msgs", "CameraInfo", "k", "float64"), ("sensor_msgs", "CameraInfo", "d", "float64"),
    ("sensor_msgs", "LaserScan", "ranges", "float32"), ("sensor_msgs", "Image", "data", "uint8"), ("sensor_msgs", "JointState", "name", "string"),
    ("sensor_msgs", "Imu", "orientation_covariance", "float64"),
]  # fmt: skip


class Field(Pair):
    """A field of Ropewalk and of rclpy."""

    def __init__(self, package, name, field, base):
        import importlib

        self.theirs = getattr(importlib.import_module(f"{package}.msg"), name)
        self.ours = codec(json.loads(Type(f"{package}/{name}", ros2=True).describe()))
        self.field, self.base, self.inner = field, base, None
        self.dtype = np.dtype(object) if base == "string" else getattr(self.ours.Message(), field).dtype

    def published(self, value):
        made = self.ours.Message(**{self.field: value})
        return getattr(self.ours.decode(self.ours.encode(made, NEVER).control, []), self.field)

    def kept(self, value):
        made = self.theirs()
        setattr(made, self.field, self.plain(value))
        kept = getattr(made, self.field)
        return kept if self.base == "string" else np.asarray(kept)


def compare():
    values, published = Values(13), collections.Counter()
    fields = [Field(*field) for field in FIELDS]
    for i in range(COUNT):
        field = values.random.choice(fields)
        value = values.any(field)
        if field.field in ("k", "orientation_covariance") and values.random.random() < 0.8:
            value = values.numbers(np.dtype(values.random.choice(["f8", "f4", ">f8", "i4"])), (9,))
            value = value.tolist() if values.random.random() < 0.5 else value
        reported = f"{i}: {field.theirs.__name__}.{field.field} of {value!r}"
        try:
            ours = field.published(value)
        except ContentError as e:
            assert f", {field.field}: given " in str(e) and "wanted " in str(e), f"{reported}: {e}"
            published[False] += 1
            continue
        kept = field.kept(value)
        if field.base == "string":
            assert ours == kept, reported
        else:
            assert ours.dtype == kept.dtype and ours.tobytes() == kept.tobytes(), f"{reported}: {kept!r}"
        published[True] += 1
    assert min(published[True], published[False]) > COUNT / 5, published


def test_random_values_are_published_as_rclpy_keeps_them_or_refused():
    if not FOLDER:
        pytest.skip("ROS2_MESSAGES names no folder with ROS 2's messages; `make python` does")
    folders = os.pathsep.join([FOLDER, os.path.dirname(__file__)])
    command = [sys.executable, "-X", "dev", "-c", "import test_exact_ros2; test_exact_ros2.compare()"]
    subprocess.run(command, env=os.environ | {"PYTHONPATH": folders}, check=True, timeout=110)
