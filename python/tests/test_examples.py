"""The examples run, and print what they should."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples/python"


@pytest.fixture
def pair(bus):
    """Runs two examples until both end by themselves, and gives what they print."""

    def run(*names):
        started = [
            subprocess.Popen([sys.executable, EXAMPLES / f"{n}.py"], stdout=subprocess.PIPE, text=True) for n in names
        ]
        told = [child.communicate()[0] for child in started]
        assert [child.returncode for child in started] == [0] * len(started)
        return told

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
