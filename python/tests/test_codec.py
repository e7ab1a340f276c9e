"""The golden messages of tests/vectors/schema, which every language's implementation reads and writes."""

import json
from pathlib import Path

import numpy as np
import pytest

from ropewalk import ContentError, Type
from ropewalk._codec import codec

VECTORS = sorted((Path(__file__).parents[2] / "tests/vectors/schema").glob("*.json"))


def plain(value):
    """A value as the vectors write it."""
    if isinstance(value, np.ndarray):
        return [plain(x) for x in value]
    if isinstance(value, np.void):
        return {n: plain(value[n]) for n in value.dtype.names}
    if hasattr(value, "_codec"):
        return {n: plain(getattr(value, n)) for n, _ in value._codec.defaults}
    if isinstance(value, tuple):
        return {"secs": value[0], "nsecs": value[1]}
    if isinstance(value, list):
        return [plain(x) for x in value]
    if isinstance(value, np.generic):
        value = value.item()
    return "inf" if value == float("inf") else value


def times(value):
    """numpy's fields of times are named as in rospy."""
    if isinstance(value, dict):
        if set(value) == {"sec", "nsec"}:
            return {"secs": value["sec"], "nsecs": value["nsec"]}
        return {k: times(v) for k, v in value.items()}
    return [times(x) for x in value] if isinstance(value, list) else value


@pytest.mark.parametrize("path", VECTORS, ids=lambda p: p.stem)
def test_golden_messages_come_back_byte_for_byte(path):
    vector = json.loads(path.read_text())
    kind = Type(vector["type"], vector["definition"], md5=vector["md5"], ros2=vector["flavour"] == "ros2")
    c = codec(json.loads(kind.describe()))
    control = bytes.fromhex(vector["control"])
    parts = [np.frombuffer(bytes.fromhex(p), np.uint8) for p in vector["parts"]]
    message = c.decode(control, parts)
    assert times(plain(message)) == vector["value"]
    written = c.encode(message, vector["threshold"])
    assert bytes(written.control) == control
    assert [lift.source.tobytes() for lift in written.lifts] == [p.tobytes() for p in parts]

    for i in range(len(control)):
        with pytest.raises(ContentError):
            c.decode(control[:i], parts)
        for bit in range(8):
            mutant = bytearray(control)
            mutant[i] ^= 1 << bit
            try:
                c.decode(bytes(mutant), parts)
            except ContentError:
                pass
    with pytest.raises(ContentError):
        c.decode(control, [*parts, np.zeros(1, np.uint8)])


def test_every_standard_type_is_understood():
    for name in ["sensor_msgs/PointCloud2", "nav_msgs/Odometry", "std_msgs/Empty", "visualization_msgs/MarkerArray"]:
        kind = Type(name)
        c = codec(json.loads(kind.describe()))
        empty = c.Message()
        written = c.encode(empty)
        assert c.decode(bytes(written.control), []) == empty
    marker = codec(json.loads(Type("visualization_msgs/Marker").describe())).Message
    assert marker.CUBE == 1 and marker().pose.orientation.w == 0.0


def test_what_does_not_fit_is_refused():
    c = codec(json.loads(Type("t/T", "uint8 a\nuint8[] b\nfloat32[2] c\nstring s\nstd_msgs/Header h").describe()))
    good = c.Message(a=255, b=[1, 2], c=[1, 2.5], s="text")
    assert c.decode(bytes(c.encode(good).control), []).b.tolist() == [1, 2]
    for field, value in [
        ("a", 256), ("a", "x"), ("b", [300]), ("b", ["x"]), ("b", [1.5]), ("c", [1, 2, 3]), ("s", 7), ("h", "header"),
    ]:  # fmt: skip
        bad = c.Message()
        setattr(bad, field, value)
        with pytest.raises(ContentError):
            c.encode(bad)
    with pytest.raises(ContentError, match="no field nonsense"):
        c.Message(nonsense=1)
    with pytest.raises(ContentError, match="expected a t/T"):
        c.encode(object())
