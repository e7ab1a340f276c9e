"""What users see at the prompt: names, representations, suggestions."""

import asyncio
import pickle

import pytest
import ropewalk


def test_the_version_is_stated():
    assert ropewalk.__version__[0].isdigit()


def test_errors_have_the_names_that_users_import():
    with pytest.raises(ropewalk.TypeUnknown) as caught:
        ropewalk.Type("std_msgs/Strng")
    assert (caught.type.__module__, caught.type.__qualname__) == ("ropewalk", "TypeUnknown")
    assert "did you mean std_msgs/String?" in str(caught.value)
    for name in ("Error", "BadName", "ContentError", "Forked", "SystemFault"):
        assert getattr(ropewalk, name).__module__ == "ropewalk"
    assert isinstance(pickle.loads(pickle.dumps(ropewalk.NoPeer("gone"))), ropewalk.NoPeer)


def test_objects_show_what_they_are(node):
    assert repr(node) == f"Node({node.name!r})"
    assert repr(node.publisher("/a", "std_msgs/String")) == "<Publisher of /a, std_msgs/String>"
    assert repr(node.subscriber("/a", "std_msgs/String")) == "<Subscriber of /a, std_msgs/String>"
    assert repr(ropewalk.Type("std_msgs/String")) == "Type('std_msgs/String')"
    assert repr(ropewalk.ServiceType("std_srvs/SetBool")) == "ServiceType('std_srvs/SetBool')"
    assert repr(node.client("/b", "std_srvs/SetBool")) == "<Client of std_srvs/SetBool>"


def test_misspelt_fields_and_topics_get_a_suggestion(node):
    image = ropewalk.message_class("sensor_msgs/Image")
    with pytest.raises(ropewalk.ContentError, match=r"has no field widht \(did you mean width\?\); it has header, "):
        image(widht=3)
    publisher = node.publisher("/chatter", "std_msgs/String")
    with pytest.raises(ropewalk.NoPeer, match=r"did you mean /chatter\?"):
        node.subscriber("/chater", timeout=0.2)
    assert publisher.topic == "/chatter"


def test_a_constructor_refuses_what_could_not_be_published():
    image, header = ropewalk.message_class("sensor_msgs/Image"), ropewalk.message_class("std_msgs/Header")
    scan, path = ropewalk.message_class("sensor_msgs/LaserScan"), ropewalk.message_class("nav_msgs/Path")
    joints = ropewalk.message_class("sensor_msgs/JointState")
    for made, fields, text in (
        (image, {"width": "x"}, "sensor_msgs/Image, width: given 'x' (str), wanted uint32"),
        (image, {"width": -1}, "sensor_msgs/Image, width: given -1 (int), wanted uint32: -1, outside 0 to 4294967295"),
        (image, {"encoding": 7}, "sensor_msgs/Image, encoding: given int, wanted text (str)"),
        (image, {"header": "map"}, "sensor_msgs/Image, header: given str, wanted a std_msgs/Header"),
        (image, {"data": "x"}, "sensor_msgs/Image, data: given a str of length 1, wanted an array of uint8, shape (n,)"),
        (header, {"stamp": 3}, "std_msgs/Header, stamp: given 3 (int), wanted a Time"),
        (scan, {"ranges": [1, "x"]}, "sensor_msgs/LaserScan, ranges: given a list of length 2 with elements of int, str, wanted an array of float32, shape (n,)"),
        (path, {"poses": [header()]}, "nav_msgs/Path, poses: given Header, wanted a geometry_msgs/PoseStamped"),
        (joints, {"name": "wheel"}, "sensor_msgs/JointState, name: given a str of length 5, wanted a list of string"),
    ):  # fmt: skip
        with pytest.raises(ropewalk.ContentError) as refused:
            made(**fields)
        assert str(refused.value).startswith(text), refused.value
    # What is published later may still be filled: sizes, and what `publish` converts.
    assert image(data=ropewalk.Sized(7), width=True + 1).width == 2
    values = [1, 2]
    assert scan(ranges=values).ranges is values


@pytest.mark.parametrize("awaited", [False, True])
def test_a_subscriber_without_a_publisher_warns_once(node, caplog, awaited):
    publisher = node.publisher("/chatter", "std_msgs/String")
    subscriber, other = node.subscriber("/chater", "std_msgs/String"), node.subscriber("/chatter", "std_msgs/String")

    def take(subscriber, timeout):
        if not awaited:
            assert subscriber.take(timeout) is None
            return
        with pytest.raises(asyncio.TimeoutError):
            asyncio.run(asyncio.wait_for(subscriber.receive(), timeout))

    take(subscriber, 5.2)
    take(subscriber, 0.01)
    take(other, 0.01)
    warnings = [r.getMessage() for r in caplog.records if r.name == "ropewalk" and r.levelname == "WARNING"]
    assert len(warnings) == 1 and "nobody published /chater within 5s (did you mean /chatter?)" in warnings[0]
    assert publisher.topic == "/chatter"
