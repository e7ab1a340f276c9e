"""The Python code in README and the guides runs unchanged, with every warning an error.

The blocks of each text run in order, as one program. This file provides what they leave out (a camera, another process
that publishes).
"""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def blocks(path):
    return [(path, m.group(1)) for m in re.finditer(r"^```python\n(.*?)^```$", (ROOT / path).read_text(), re.M | re.S)]


#: Code that runs before a block, by a string in the block; it also ends blocks that would run forever.
BEFORE = {
    "camera.read_into": """
        class camera:
            read_into = staticmethod(lambda array: array.fill(7))
        """,
    "for image in": """
        import ropewalk, threading, time
        def talk():
            talker = ropewalk.Node("talker").publisher("/image", "sensor_msgs/Image")
            while True:
                talker.publish(talker.message(data=bytes(1000)))
                time.sleep(0.01)
        threading.Thread(target=talk, daemon=True).start()
        node = ropewalk.Node("viewer")
        """,
    "Point = ropewalk": """
        import numpy
        publisher = node.publisher("/marker", "visualization_msgs/Marker")
        def check():
            try:
                publisher.publish(marker)
            except ropewalk.ContentError as e:
                assert "points: given an array of {y: float32, x: float32}, shape (1,), wanted" in str(e), e
            else:
                raise AssertionError("it was published")
        """,
    "add_two_ints": """
        ADD = ropewalk.ServiceType("rospy_tutorials/AddTwoInts", "int64 a\\nint64 b\\n---\\nint64 sum\\n")
        adder = node.server("/add_two_ints", ADD)
        threading.Thread(target=lambda: adder.serve(lambda r: {"sum": r.a + r.b}), daemon=True).start()
        # The last line serves forever.
        serve, ropewalk.Server.serve = ropewalk.Server.serve, lambda *_: None
        """,
    "robot.share": """
        from pathlib import Path
        Path("model").mkdir()
        Path("model/rover.urdf").write_text("<robot/>")
        share, robot.share = robot.share, lambda name, path: share(name, "model")
        """,
    "remote.Robot(node": """
        class base:
            drive = staticmethod(lambda *_: None)
        """,
    "make_key": """
        from ropewalk import remote
        from ropewalk.remote import Zmq
        from pathlib import Path
        Path("controllers").write_text(remote.make_key("desk.key") + " desk\\n")
        """,
    "from ropewalk import rospy": """
        try:
            import rospy as _
        except ImportError:
            raise SystemExit(0)
        """,
}
AFTER = {"add_two_ints": "ropewalk.Server.serve = serve", "Point = ropewalk": "check()"}

RUN = """
import ast, asyncio, inspect, sys
class Enough(Exception): pass
def said(*what):
    lines.append(what)
    if "for image in" in text:
        raise Enough
lines, names = [], {"print": said}
async def run(before, code, after):
    exec(before, names)
    made = eval(compile(code, code, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    if inspect.iscoroutine(made):
        await made
    exec(after, names)
for before, text, after in BLOCKS:
    try:
        asyncio.run(run(before, text, after))
    except Enough:
        pass
for end in ("desk", "robot"):
    if end in names:
        names[end].stop()
"""


@pytest.mark.parametrize("path", ["README.md", "docs/guide/python.md", "docs/guide/remote-zmq.md", "docs/guide/ros1-zero-copy.md"])
def test_the_python_of_a_text_runs(path, bus, tmp_path):
    def part(of, text):
        return "\n".join(textwrap.dedent(code) for word, code in of.items() if word in text)

    found = blocks(path)
    assert found, f"{path} has no Python any more"
    program = f"BLOCKS = {[(part(BEFORE, text), text, part(AFTER, text)) for _, text in found]!r}\n{RUN}"
    folder = tmp_path / "here"
    folder.mkdir()
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=folder, env=os.environ, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr, done.stderr
