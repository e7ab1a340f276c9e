"""What users see at the prompt: names, representations, suggestions."""

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
