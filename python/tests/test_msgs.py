"""The standard types of `ropewalk.msgs`."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest
import ropewalk
from ropewalk import _native

from conftest import LONG

FOLDER = Path(ropewalk.__file__).parent / "msgs"
PACKAGES = sorted(path.stem for path in FOLDER.glob("*.pyi"))


def test_every_type_of_every_package_is_as_its_stub_says():
    messages, services = map(set, _native.standard_names())
    found = set()
    for package in PACKAGES:
        module = importlib.import_module(f"ropewalk.msgs.{package}")
        for node in ast.parse((FOLDER / f"{package}.pyi").read_text()).body:
            if isinstance(node, ast.ClassDef):
                made = getattr(module, node.name)
                assert made._codec.type.md5 == _native.standard_type(f"{package}/{node.name}").md5
                stub = {a.arg for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "__init__" for a in f.args.kwonlyargs}
                assert stub == {name for name, _ in made._codec.defaults}, made
            elif isinstance(node, ast.AnnAssign):
                made = getattr(module, node.target.id)
                assert isinstance(made, ropewalk.ServiceType), made
            else:
                continue
            found.add(f"{package}/{made.__name__ if isinstance(made, type) else node.target.id}")
        assert {f"{package}/{name}" for name in dir(module)} == {n for n in messages | services if n.startswith(package + "/")}
    assert found == messages | services
    assert PACKAGES == sorted({name.partition("/")[0] for name in found})


def test_publishers_subscribers_and_services_take_the_types(node):
    from ropewalk.msgs.sensor_msgs import Image
    from ropewalk.msgs.std_msgs import Header
    from ropewalk.msgs.std_srvs import SetBool

    publisher, subscriber = node.publisher("/image", Image), node.subscriber("/image", Image)
    assert publisher.wait_for_subscribers(1, LONG) and subscriber.wait_for_publishers(1, LONG)
    publisher.publish(Image(header=Header(frame_id="map"), width=3, data=b"abc"))
    image = subscriber.take(LONG)
    assert type(image) is Image and image.header.frame_id == "map" and bytes(image.data) == b"abc"
    assert "std_srvs/SetBool" in repr(node.client("/switch", SetBool))


def test_a_type_that_does_not_exist_is_no_name():
    with pytest.raises(ImportError, match="Imag"):
        from ropewalk.msgs.sensor_msgs import Imag  # noqa: F401
    with pytest.raises(AttributeError, match="ROS 1's sensor_msgs has no type Imag"):
        importlib.import_module("ropewalk.msgs.sensor_msgs").Imag


TYPED = """
import numpy as np
import ropewalk
from ropewalk.msgs.sensor_msgs import Image
from ropewalk.msgs.std_msgs import Header
from ropewalk.msgs.visualization_msgs import Marker
from ropewalk.msgs.geometry_msgs import Point

node = ropewalk.Node("camera")
publisher = node.publisher("/image", Image)
image = Image(width=1920, header=Header(frame_id="map"), data=[1, 2])
image.data = ropewalk.Sized(7)
image.data[:] = 7
publisher.publish(image)
Marker(points=[Point(x=1.0)])
for taken in node.subscriber("/image", Image):
    reveal_type(taken)
    reveal_type(taken.data)
node.subscriber("/image")
node.publisher("/image", "sensor_msgs/Image").publish(publisher.message())
Image(width="x")
image.widht = 3
"""


def test_types_are_known_to_mypy(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "typed.py"
    program.write_text(TYPED)
    # The package that runs, as an import: its own code is not checked.
    (tmp_path / "ropewalk").symlink_to(FOLDER.parent)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache"), "typed.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=110)
    taken, data, *wrong, _ = [line.partition(": ")[2] for line in done.stdout.splitlines()]
    assert taken.endswith('Revealed type is "ropewalk.msgs.sensor_msgs.Image"'), done.stdout + done.stderr
    assert "ndarray" in data, done.stdout
    assert wrong == [
        'error: Argument "width" to "Image" has incompatible type "str"; expected "int"  [arg-type]',
        'error: "Image" has no attribute "widht"; maybe "width"?  [attr-defined]',
    ], done.stdout
