"""The message and service types of ROS's standard packages, by package:

    from ropewalk.msgs.sensor_msgs import Image

The definitions are those of ROS 1 (Noetic); subscribers convert messages between these types and ROS 2's of the same
names. For types that only ROS 2 has, and for those of your own packages, see `ropewalk.Type` and `ropewalk gen python`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .. import _native, message_class

_MESSAGES, _SERVICES = map(frozenset, _native.standard_names())


def _package(module: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package's module. Creates a type when it is first used, since creating all types
    takes long."""
    package = module.rpartition(".")[2]

    def create(short: str) -> Any:
        name = f"{package}/{short}"
        if name in _MESSAGES:
            made: Any = message_class(_native.standard_type(name))
        elif name in _SERVICES:
            made = _native.standard_service(name)
        else:
            raise AttributeError(f"ROS 1's {package} has no type {short}")
        setattr(sys.modules[module], short, made)
        return made

    def names() -> list[str]:
        return sorted(n.partition("/")[2] for n in _MESSAGES | _SERVICES if n.startswith(package + "/"))

    return create, names
