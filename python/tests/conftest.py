import os
import subprocess
import sys
import textwrap

import pytest

import ropewalk

#: Long enough for any machine; it bounds hanging, not speed.
LONG = 60.0


@pytest.fixture
def bus(tmp_path, monkeypatch):
    """The test's own bus."""
    monkeypatch.setenv("ROPEWALK_RUNTIME_DIR", str(tmp_path / "bus"))
    return tmp_path / "bus"


@pytest.fixture
def node(bus):
    return ropewalk.Node("tests")


@pytest.fixture
def program(bus):
    """Starts Python programs on the bus, and kills them at the end."""
    started = []

    def start(text, **options):
        # -X dev: warnings, memory debug hooks, and other checks.
        child = subprocess.Popen(
            [sys.executable, "-X", "dev", "-c", textwrap.dedent(text)], stdout=subprocess.PIPE, text=True,
            env=os.environ, **options,
        )  # fmt: skip
        started.append(child)
        return child

    yield start
    for child in started:
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.fixture
def ends(node):
    """A connected publisher and subscriber of a type."""

    def make(kind, topic="/ends", publisher=None, **options):
        p = node.publisher(topic, kind, **(publisher or {}))
        s = node.subscriber(topic, kind, **options)
        assert p.wait_for_subscribers(1, LONG) and s.wait_for_publishers(1, LONG)
        return p, s

    return make
