"""The messages of remote control, by name: `types.Twist(linear={"x": 0.5})`. Classes of Google's protobuf."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from .. import _native

_PACKAGE = "robot_remote_control"


def _load() -> dict[str, Any]:
    files = descriptor_pb2.FileDescriptorSet.FromString(_native.descriptors())
    # A separate pool: the program's pool may have another version of these files.
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.AddSerializedFile(file.SerializeToString())
    classes = {}
    for file in files.file:
        if file.package != _PACKAGE:
            continue
        for message in file.message_type:
            descriptor = pool.FindMessageTypeByName(f"{_PACKAGE}.{message.name}")
            classes[message.name] = message_factory.GetMessageClass(descriptor)
        for enum in file.enum_type:
            for value in enum.value:
                classes[value.name] = value.number
    return classes


_classes = _load()
globals().update(_classes)
__all__ = sorted(_classes)
