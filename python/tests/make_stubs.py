"""Writes the stubs of `ropewalk.remote`'s messages and kinds, from the installed package. Run it after changing the
messages. With --check it compares instead, and fails if they differ."""

import keyword
import sys
from pathlib import Path

from google.protobuf import descriptor_pb2

from ropewalk import _native
from ropewalk.remote import command, telemetry

FOLDER = Path(__file__).parents[1] / "ropewalk/remote"
HEAD = "# Made by python/tests/make_stubs.py; do not edit.\n"
FIELD = descriptor_pb2.FieldDescriptorProto
NUMBERS = {
    FIELD.TYPE_DOUBLE: "float", FIELD.TYPE_FLOAT: "float", FIELD.TYPE_BOOL: "bool", FIELD.TYPE_STRING: "str",
    FIELD.TYPE_BYTES: "bytes",
}  # fmt: skip


def files():
    return [f for f in descriptor_pb2.FileDescriptorSet.FromString(_native.descriptors()).file
            if f.package == "robot_remote_control"]  # fmt: skip


def word(field):
    if field.type == FIELD.TYPE_MESSAGE:
        return field.type_name.rpartition(".")[2] if ".robot_remote_control." in field.type_name else "_Message"
    return NUMBERS.get(field.type, "int")


def types():
    out = [HEAD, "from collections.abc import Iterable, Mapping, MutableMapping, MutableSequence\nfrom typing import Any\n\n",
           "from google.protobuf.message import Message as _Message\n"]  # fmt: skip
    for file in files():
        for enum in file.enum_type:
            out.append(f"\n# {enum.name}\n")
            out += [f"{value.name}: int\n" for value in enum.value]
        for message in file.message_type:
            maps = {n.name: n.field for n in message.nested_type if n.options.map_entry}
            out.append(f"\nclass {message.name}(_Message):\n")
            init = []
            # Python keywords such as `from` are accessible through getattr and **.
            for field in message.field:
                if keyword.iskeyword(field.name):
                    continue
                one, entry = word(field), maps.get(field.type_name.rpartition(".")[2])
                is_message = field.type == FIELD.TYPE_MESSAGE
                given = f"{one} | Mapping[str, Any]" if is_message else one
                if entry is not None:
                    pair = f"{word(entry[0])}, {word(entry[1])}"
                    kind, given, settable = f"MutableMapping[{pair}]", f"Mapping[{pair}]", False
                elif field.label == FIELD.LABEL_REPEATED:
                    kind, given, settable = f"MutableSequence[{one}]", f"Iterable[{given}]", False
                else:
                    kind, settable = one, not is_message
                if settable:
                    out.append(f"    {field.name}: {kind}\n")
                else:
                    out.append(f"    @property\n    def {field.name}(self) -> {kind}: ...\n")
                init.append(f"        {field.name}: {given} | None = ...,\n")
            if len(init) < len(message.field):
                init.append("        **others: Any,\n")
            star = "        *,\n" if init and "**" not in init[0] else ""
            out.append(f"    def __init__(\n        self,\n{star}{''.join(init)}    ) -> None: ...\n")
    return "".join(out)


def kinds(module, kind):
    out = [HEAD, f"from . import types\nfrom ._kinds import {kind}\n\n"]
    for name in module.__all__:
        out.append(f"{name}: {kind}[types.{getattr(module, name).message.DESCRIPTOR.name}]\n")
    return "".join(out)


made = {
    "types.pyi": types(),
    "command.pyi": kinds(command, "CommandKind"),
    "telemetry.pyi": kinds(telemetry, "TelemetryKind"),
}
for name, text in made.items():
    path = FOLDER / name
    if "--check" not in sys.argv:
        path.write_text(text)
    elif path.read_text() != text:
        sys.exit(f"{path} differs from the messages: run python/tests/make_stubs.py")
