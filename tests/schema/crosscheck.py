"""Compare the schema crate with ROS 1's own tools and with rosbags.

    .venv/bin/python tests/schema/crosscheck.py --binary target/release/examples/crosscheck

The binary is `cargo build --example crosscheck -p ropewalk-schema`. Needs the Debian packages of apt.txt, and
requirements.txt in a venv made by `/usr/bin/python3 -m venv --system-site-packages`. Installs nothing.

Exit status: 0 everything agrees, 1 something differs, 2 it could not run.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import random
import struct
import subprocess
import sys
import threading
from pathlib import Path

SHARE = Path("/usr/share")
SEPARATOR = "=" * 80

# Minimum numbers of types for a meaningful comparison.
LEAST = {"Debian messages": 153, "Debian services": 15, "ROS 1 store": 160, "ROS 2 store": 130}


class CannotRun(Exception):
    """The comparison could not be made."""


class Binary:
    """The program under test: one request per line, one answer per line."""

    def __init__(self, path: str) -> None:
        try:
            self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        except OSError as e:
            raise CannotRun(f"cannot start {path}: {e}") from e

    def ask(self, **request: object) -> dict:
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except OSError as e:
            raise CannotRun(f"the program under test is gone: {e}") from e
        if not line:
            raise CannotRun(f"the program under test ended ({self.process.wait()}) at {str(request)[:300]}")
        return json.loads(line)


class Tally:
    """What was compared, and what differed."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.failures: list[str] = []

    def compare(self, what: str, name: str, ours: object, theirs: object) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1
        if ours != theirs:
            self.failures.append(f"{what}: {name}: ours {str(ours)[:400]}, theirs {str(theirs)[:400]}")

    def check(self, what: str, name: str, answer: dict) -> bool:
        if "error" in answer:
            self.failures.append(f"{what}: {name}: {answer['error'][:1500]}")
        return "error" not in answer


def require(what: str, count: int, kind: str) -> None:
    if count < LEAST[kind]:
        raise CannotRun(f"{what}: {count} types found, at least {LEAST[kind]} expected; see tests/schema/apt.txt")


# --- ROS 1's own tools ---------------------------------------------------------------------------------------


def data_parts(context: "genmsg.MsgContext", spec: "genmsg.MsgSpec", path: str = "") -> list[str]:
    """The rule of the TZC paper (Fig. 4), applied to genmsg's own view of a type: each variable-length array of
    fixed-length elements, at any nesting level."""
    import genmsg

    def sub(base: str) -> "genmsg.MsgSpec":
        return context.get_registered("std_msgs/Header" if base == "Header" else base)

    def is_fixed(base: str) -> bool:
        if genmsg.msgs.is_builtin(base):
            return base != "string"
        return all(is_fixed(f.base_type) and (not f.is_array or f.array_len is not None) for f in sub(base).parsed_fields())

    found = []
    for field in spec.parsed_fields():
        here = f"{path}{field.name}" + ("[]" if field.is_array else "")
        if field.is_array and field.array_len is None and is_fixed(field.base_type):
            found.append(here)
        elif not genmsg.msgs.is_builtin(field.base_type):
            found += data_parts(context, sub(field.base_type), here + ".")
    return found


def debian(binary: Binary, tally: Tally, rng: random.Random, rounds: int) -> None:
    import genmsg
    import genmsg.gentools
    import genmsg.msg_loader
    import rosmsg

    # Only packages that apt.txt installs with their Python code: rosmsg cannot load the types of other packages on this machine.
    lines = (Path(__file__).parent / "apt.txt").read_text().split()
    packages = {line.removeprefix("ros-").replace("-", "_") for line in lines if line.startswith("ros-")}
    others = sorted({p.parts[-3] for p in SHARE.glob("*/msg/*.msg")} - packages)
    if others:
        print(f"left out, since tests/schema/apt.txt does not have them: {', '.join(others)}")
    messages = sorted(f"{p.parts[-3]}/{p.stem}" for p in SHARE.glob("*/msg/*.msg") if p.parts[-3] in packages)
    services = sorted(f"{p.parts[-3]}/{p.stem}" for p in SHARE.glob("*/srv/*.srv") if p.parts[-3] in packages)
    require("/usr/share", len(messages), "Debian messages")
    require("/usr/share", len(services), "Debian services")
    search = {p.parts[-2]: [str(p)] for p in SHARE.glob("*/msg")}

    tally.check("open", "debian", binary.ask(op="open", flavour="ros1", env=True))
    definitions = {}
    for name in messages:
        context = genmsg.msg_loader.MsgContext.create_default()
        spec = genmsg.msg_loader.load_msg_by_type(context, name, search)
        genmsg.msg_loader.load_depends(context, spec, search)
        text = genmsg.gentools.compute_full_text(context, spec)
        definitions[name] = spec.text
        answer = binary.ask(op="message", type=name)
        if not tally.check("Debian message", name, answer):
            continue
        tally.compare("md5 of Debian messages, genmsg", name, answer["md5"], genmsg.gentools.compute_md5(context, spec))
        tally.compare("md5 of Debian messages, rosmsg md5", name, answer["md5"], rosmsg.rosmsg_md5(rosmsg.MODE_MSG, name))
        tally.compare("full text of Debian messages", name, answer["definition"], text)
        tally.compare("data parts of Debian messages, the rule", name, sorted(answer["parts"]), sorted(data_parts(context, spec)))
        embedded = binary.ask(op="embedded", type=name, text=text)
        if tally.check("embedded text", name, embedded):
            tally.compare("embedded text, md5", name, embedded["md5"], answer["md5"])
            tally.compare("embedded text, round trip", name, embedded["definition"], text)
    for name in services:
        context = genmsg.msg_loader.MsgContext.create_default()
        spec = genmsg.msg_loader.load_srv_by_type(context, name, {p.parts[-2]: [str(p)] for p in SHARE.glob("*/srv")})
        genmsg.msg_loader.load_depends(context, spec, search)
        answer = binary.ask(op="service", type=name)
        if tally.check("Debian service", name, answer):
            tally.compare("md5 of Debian services, genmsg", name, answer["md5"], genmsg.gentools.compute_md5(context, spec))
            theirs = rosmsg.rosmsg_md5(rosmsg.MODE_SRV, name)
            tally.compare("md5 of Debian services, rossrv md5", name, answer["md5"], theirs)
            depends = context.get_all_depends(spec.request.full_name) + context.get_all_depends(spec.response.full_name)
            text = spec.text
            for depend in dict.fromkeys(depends):
                text += f"\n{SEPARATOR}\nMSG: {depend}\n{definitions[depend]}"
            tally.compare("full text of Debian services", name, answer["definition"], text)

    # The same types with the definitions that are part of the crate.
    tally.check("open", "shipped", binary.ask(op="open", flavour="ros1"))
    for name in messages + services:
        kind = "message" if name in messages else "service"
        answer = binary.ask(op=kind, type=name)
        if tally.check("shipped definition", name, answer):
            mode = rosmsg.MODE_MSG if kind == "message" else rosmsg.MODE_SRV
            tally.compare("md5 of shipped ROS 1 definitions", name, answer["md5"], rosmsg.rosmsg_md5(mode, name))

    # Values: rosbags learns Debian's definitions from their text.
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    types = {}
    for name, text in definitions.items():
        full = name.replace("/", "/msg/")
        if full not in store.fielddefs:
            types.update(get_types_from_msg(text, full))
    store.register(types)
    tally.check("open", "debian", binary.ask(op="open", flavour="ros1", env=True))
    for name in messages:
        for i in range(rounds):
            convert(binary, tally, store, name.replace("/", "/msg/"), "round trips, Debian's types", rng, i)


# --- the grammar of ROS 1 -------------------------------------------------------------------------------------


KINDS = ["int8", "uint8", "int32", "uint64", "float32", "float64", "bool", "byte", "char", "string", "time", "Header", "std_msgs/String"]
BRACKETS = ["", "", "", "", "[]", "[3]", "[03]", "[0]", "[-1]", "[ 2]", "[][]"]
FIELD_NAMES = ["a", "b", "c1", "x_y", "A", "_a", "9a", "a-b", "a b", ""]
VALUES = ["0", "1", "-1", "255", "256", "-129", "+5", "007", "1_0", "1__0", "0x1f", "1e3", "1.5", ".5", "inf", "nan", "True", "False", "true", "None", "01", "", "a b", "1=2", "'x'", "#"]
SPACES = [" ", " ", " ", "  ", "\t", " \t", "\t ", "\u00a0", " \x0c"]


def grammar(binary: Binary, tally: Tally, rng: random.Random, rounds: int) -> None:
    """Random definitions at the edges of the grammar: both accept them with the same checksum, or neither does.

    Intended differences are left out: `package/msg/Type`, names beyond ASCII, and bool constants that are texts or lists, which
    genmsg evaluates as Python.
    """
    import genmsg
    import genmsg.gentools
    import genmsg.msg_loader

    def pick(choices: list[str]) -> str:
        """Picks mostly the first, so that many definitions are odd in one place only."""
        return choices[0] if rng.random() < 0.6 else rng.choice(choices)

    def line() -> str:
        kind, name = rng.choice(KINDS) + pick(BRACKETS), rng.choice(FIELD_NAMES[:5]) if rng.random() < 0.8 else rng.choice(FIELD_NAMES)
        before, after = pick(["", " ", "\t"]), pick(["", " ", "\t", " # = 3", "#", "\r"])
        if rng.random() < 0.5:
            value = pick([rng.choice(["0", "1", "7", "100"]), *VALUES])
            if kind == "bool" and value.startswith("'"):
                value = "1"
            return f"{before}{kind}{pick(SPACES)}{name}{pick(['', ' ', chr(9)])}={pick(['', ' '])}{value}{after}"
        return f"{before}{kind}{pick(SPACES)}{name}{after}"

    search = {"std_msgs": [str(SHARE / "std_msgs/msg")]}
    for _ in range(1000 * rounds):
        text = "\n".join(line() for _ in range(rng.randint(1, 3)))
        context = genmsg.msg_loader.MsgContext.create_default()
        try:
            spec = genmsg.msg_loader.load_msg_from_string(context, text, "t/T")
            genmsg.msg_loader.load_depends(context, spec, search)
            theirs = genmsg.gentools.compute_md5(context, spec)
        except Exception:  # whatever it raises, it refuses the text
            theirs = None
        answer = binary.ask(op="embedded", type="t/T", text=text)
        key = "of random definitions, accepted"
        tally.counts[key] = tally.counts.get(key, 0) + (theirs is not None)
        tally.compare("random definitions, genmsg", repr(text), answer.get("md5"), theirs)


# --- rosbags -------------------------------------------------------------------------------------------------


def rosbags_stores(binary: Binary, tally: Tally, rng: random.Random, rounds: int) -> None:
    from rosbags.typesys import Stores, get_typestore

    names = [s.name for s in Stores]
    if "ROS2_DASHING" not in names or "ROS2_LYRICAL" not in names or "ROS1_NOETIC" not in names:
        raise CannotRun(f"rosbags has the stores {names}; see tests/schema/requirements.txt")
    for item in Stores:
        if item.name in ("EMPTY", "LATEST"):
            continue
        store = get_typestore(item)
        ros1 = item.name.startswith("ROS1")
        require(item.name, len(store.fielddefs), "ROS 1 store" if ros1 else "ROS 2 store")
        version = 1 if ros1 else 2
        hashes = with_char_as_uint8(get_typestore(item))
        texts, sums = {}, {}
        for name in store.fielddefs:
            text, sums[name] = store.generate_msgdef(name, ros_version=version)
            texts[name] = text.split(SEPARATOR)[0]
        opened = binary.ask(op="open", flavour="ros1" if ros1 else "ros2", messages=texts)
        if not tally.check("open", item.name, opened):
            continue
        for name in store.fielddefs:
            answer = binary.ask(op="message", type=name)
            if not tally.check(item.name, name, answer):
                continue
            if ros1:
                tally.compare("md5, ROS 1 store", name, answer["md5"], sums[name])
            tally.compare(f"RIHS01, {item.name}", name, answer["rihs01"], hashes.hash_rihs01(name))
            key = "of these, types with `char`, which rosbags hashes unlike ROS 2"
            tally.counts[key] = tally.counts.get(key, 0) + (store.hash_rihs01(name) != hashes.hash_rihs01(name))
            for i in range(rounds):
                convert(binary, tally, store, name, f"round trips, {item.name}", rng, i)
        if item.name == "ROS2_JAZZY":
            shipped_ros2(binary, tally, store, hashes)


def with_char_as_uint8(store: object) -> object:
    """The store as ROS 2 sees it when it hashes.

    rosidl turns `char` into `uint8` before it describes a type (rosidl_adapter's table of IDL types), whereas rosbags
    hashes it as FIELD_TYPE_CHAR. GOLDEN has hashes from files that ROS 2's own generator wrote.
    """

    def change(value: object) -> object:
        if isinstance(value, tuple) and value and value[0] == "char":
            return ("uint8", *value[1:])
        return tuple(change(v) for v in value) if isinstance(value, tuple) else value

    for name, (constants, fields) in list(store.fielddefs.items()):
        store.fielddefs[name] = (constants, [(field, change(desc)) for field, desc in fields])
    return store


# From ROS 2 Jazzy's generated type descriptions.
GOLDEN = {
    "std_msgs/msg/Int32": "RIHS01_b6578ded3c58c626cfe8d1a6fb6e04f706f97e9f03d2727c9ff4e74b1cef0deb",
    "std_msgs/msg/Header": "RIHS01_f49fb3ae2cf070f793645ff749683ac6b06203e41c891e17701b1cb597ce6a01",
    "builtin_interfaces/msg/Time": "RIHS01_b106235e25a4c5ed35098aa0a61a3ee9c9b18d197f398b0e4206cea9acf9c197",
    "service_msgs/msg/ServiceEventInfo": "RIHS01_41bcbbe07a75c9b52bc96bfd5c24d7f0fc0a08c0cb7921b3373c5732345a6f45",
}


def shipped_ros2(binary: Binary, tally: Tally, store: object, hashes: object) -> None:
    tally.check("open", "shipped", binary.ask(op="open", flavour="ros2"))
    for name, golden in GOLDEN.items():
        answer = binary.ask(op="message", type=name)
        if tally.check("golden RIHS01", name, answer):
            tally.compare("RIHS01 of ROS 2's own generator", name, answer["rihs01"], golden)
    for name in store.fielddefs:
        answer = binary.ask(op="message", type=name)
        if "unknown type" in answer.get("error", ""):
            continue
        if tally.check("shipped definition", name, answer):
            tally.compare("RIHS01 of shipped ROS 2 definitions", name, answer["rihs01"], hashes.hash_rihs01(name))


# --- the golden messages --------------------------------------------------------------------------------------


class Reader:
    """Reads a control part and data parts as docs/wire/control-part.md describes them, into ROS 1 bytes.

    Shares nothing with the program under test: definitions come from rosbags, and the layout of data parts from
    ctypes, which uses that of the C compiler.
    """

    WORDS = {"bool": "B", "byte": "B", "octet": "B", "char": "B", "int8": "b", "uint8": "B", "int16": "h"}
    WORDS |= {"uint16": "H", "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q", "float32": "f", "float64": "d"}

    def __init__(self, fielddefs: dict, control: bytes, parts: list[bytes]) -> None:
        from rosbags.interfaces import Nodetype

        self.fielddefs, self.control, self.parts, self.kinds = fielddefs, control, list(parts), Nodetype
        self.at = 0

    def take(self, length: int) -> bytes:
        piece = self.control[self.at : self.at + length]
        if len(piece) < length:
            raise ValueError("the control part is too short")
        self.at += length
        return piece

    def fields(self, name: str) -> list:
        return [(n, d) for n, d in self.fielddefs[name][1] if n != DUMMY]

    def message(self, name: str) -> bytes:
        return b"".join(self.value(desc) for _, desc in self.fields(name))

    def value(self, desc: tuple) -> bytes:
        kind, detail = desc
        if kind == self.kinds.NAME and detail.endswith("/wstring"):
            length = self.take(4)
            return length + self.take(2 * int.from_bytes(length, "little"))
        if kind == self.kinds.NAME:
            return self.message(detail)
        if kind == self.kinds.BASE and detail[0] == "string":
            length = self.take(4)
            return length + self.take(int.from_bytes(length, "little"))
        if kind == self.kinds.BASE:
            return self.take(struct.calcsize(self.WORDS[detail[0]]))
        element, size = detail
        if kind == self.kinds.ARRAY:
            return b"".join(self.value(element) for _ in range(size))
        word = int.from_bytes(self.take(4), "little")
        count = word & 0x7FFFFFFF
        if not word >> 31:
            return count.to_bytes(4, "little") + b"".join(self.value(element) for _ in range(count))
        ctype = self.ctype(element)
        part = self.parts.pop(0)
        if len(part) != count * ctypes.sizeof(ctype):
            raise ValueError(f"a data part has {len(part)} bytes, {count} times {ctypes.sizeof(ctype)} expected")
        return count.to_bytes(4, "little") + b"".join(self.packed(x, element) for x in (ctype * count).from_buffer_copy(part))

    def ctype(self, desc: tuple) -> type:
        kind, detail = desc
        if kind == self.kinds.BASE:
            names = {"f": ctypes.c_float, "d": ctypes.c_double, "b": ctypes.c_int8, "B": ctypes.c_uint8}
            names |= {"h": ctypes.c_int16, "H": ctypes.c_uint16, "i": ctypes.c_int32, "I": ctypes.c_uint32}
            return (names | {"q": ctypes.c_int64, "Q": ctypes.c_uint64})[self.WORDS[detail[0]]]
        if kind == self.kinds.ARRAY:
            return self.ctype(detail[0]) * detail[1]
        fields = [(n, self.ctype(d)) for n, d in self.fields(detail)]
        return type("Element", (ctypes.Structure,), {"_fields_": fields})

    def packed(self, value: object, desc: tuple) -> bytes:
        kind, detail = desc
        if kind == self.kinds.BASE:
            return struct.pack("<" + self.WORDS[detail[0]], value)
        if kind == self.kinds.ARRAY:
            return b"".join(self.packed(x, detail[0]) for x in value)
        return b"".join(self.packed(getattr(value, n), d) for n, d in self.fields(detail))


def vectors(tally: Tally) -> None:
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    files = sorted((Path(__file__).parent.parent / "vectors" / "schema").glob("*.json"))
    if len(files) < 5:
        raise CannotRun("tests/vectors/schema has too few messages")
    for file in files:
        vector = json.loads(file.read_text())
        name = vector["type"].replace("/", "/msg/")
        definitions = get_types_from_msg(vector["definition"], name)
        store = get_typestore(Stores.ROS1_NOETIC if vector["flavour"] == "ros1" else Stores.ROS2_JAZZY)
        store.register({k: v for k, v in definitions.items() if k not in store.fielddefs})
        reader = Reader(
            {**store.fielddefs, **definitions}, bytes.fromhex(vector["control"]), [bytes.fromhex(p) for p in vector["parts"]]
        )
        joined = reader.message(name)
        tally.compare("golden messages, joined", file.name, joined.hex(), vector["ros1"])
        tally.compare("golden messages, all read", file.name, (reader.at, reader.parts), (len(reader.control), []))
        if "wstring" not in vector["definition"]:
            message = store.deserialize_ros1(bytes.fromhex(vector["ros1"]), name)
            tally.compare("golden messages, CDR", file.name, bytes(store.serialize_cdr(message, name)).hex(), vector["cdr"])


# --- random values -------------------------------------------------------------------------------------------

RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "uint8": (0, 2**8 - 1),
    "char": (0, 2**8 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}
SIZES = {"bool": 1, "byte": 1, "octet": 1, "char": 1, "float32": 4, "float64": 8}
DUMMY = "structure_needs_at_least_one_member"
TEXTS = ["", "a", "map", "base_link", "é ü 漢字 🤖", "x" * 300, "- : # \" ' \\ \n\t", "yes", "1.5", "nan", "null", "~"]


def primitive(name: str, rng: random.Random) -> object:
    if name == "bool":
        return rng.random() < 0.5
    if name == "string":
        return rng.choice(TEXTS)
    if name in ("float32", "float64"):
        import numpy

        special = [0.0, -0.0, float("inf"), float("-inf"), 1e-3, 1.5e7]
        x = rng.choice(special) if rng.random() < 0.3 else rng.uniform(-1e6, 1e6)
        return float(numpy.float32(x)) if name == "float32" else x
    if name in ("byte", "octet"):
        return rng.randint(0, 127)
    low, high = RANGES[name]
    return rng.choice([low, high, rng.randint(low, high)])


def length(rng: random.Random, size: int, round_: int) -> int:
    """Returns the length of an array, short or longer than the threshold of 256 bytes."""
    if round_ % 2:
        return rng.choice([256 // size + rng.randint(0, 3), 700 // size + 1])
    return rng.choice([0, 1, 2, 5])


class Maker:
    """Makes random messages of one store."""

    def __init__(self, store: object, rng: random.Random, round_: int) -> None:
        from rosbags.interfaces import Nodetype

        self.store, self.rng, self.round, self.kinds = store, rng, round_, Nodetype

    def message(self, name: str, depth: int = 0) -> object:
        _, fields = self.store.fielddefs[name]
        values = {n: self.value(desc, name, depth) for n, desc in fields}
        # The member that IDL requires in an empty message is zero.
        if DUMMY in values:
            values[DUMMY] = 0
        return self.store.types[name](**values)

    def value(self, desc: object, owner: str, depth: int) -> object:
        kind, detail = desc
        if kind == self.kinds.BASE:
            if owner.startswith("builtin_interfaces/"):
                return self.rng.randint(0, 2**31 - 1)
            value = primitive(detail[0], self.rng)
            # Cut a bounded string to its bound.
            return value.encode()[: detail[1]].decode(errors="ignore") if detail[0] == "string" and detail[1] else value
        if kind == self.kinds.NAME:
            return self.message(detail, depth + 1)
        element, bound = detail
        if kind == self.kinds.ARRAY:
            count = bound
        else:
            size = SIZES.get(element[1][0], 8) if element[0] == self.kinds.BASE else 24
            count = length(self.rng, size, self.round) if depth < 2 else self.rng.choice([0, 1, 2])
            if element[0] == self.kinds.BASE and element[1][0] == "string":
                count = min(count, 20)
            if bound:
                count = min(count, bound)
        values = [self.value(element, owner, depth + 1) for _ in range(count)]
        if element[0] == self.kinds.BASE and element[1][0] != "string":
            import numpy

            dtype = {"byte": "uint8", "octet": "uint8", "char": "uint8"}.get(element[1][0], element[1][0])
            return numpy.array(values, dtype=dtype)
        return values


def convert(
    binary: Binary, tally: Tally, store: object, name: str, what: str, rng: random.Random, round_: int
) -> None:
    message = Maker(store, rng, round_).message(name)
    ros1 = bytes(store.serialize_ros1(message, name))
    little = bytes(store.serialize_cdr(message, name, little_endian=True))
    big = bytes(store.serialize_cdr(message, name, little_endian=False))
    answer = binary.ask(op="convert", type=name, ros1=ros1.hex(), cdr=little.hex(), cdr_be=big.hex())
    if tally.check(what, name, answer):
        tally.compare(what, name, answer["cdr"], little.hex())
        key = "of these, messages with data parts"
        tally.counts[key] = tally.counts.get(key, 0) + (len(answer["parts"]) > 0)
        # rosbags reads Ropewalk's CDR and writes the same ROS 1 bytes.
        back = store.serialize_ros1(store.deserialize_cdr(bytes.fromhex(answer["cdr"]), name), name)
        tally.compare("rosbags reads our CDR", name, bytes(back).hex(), ros1.hex())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", required=True, help="the built example `crosscheck` of crates/schema")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=4, help="random messages a type (even: short arrays, odd: long)")
    args = parser.parse_args()

    tally = Tally()
    rng = random.Random(args.seed)
    try:
        import rosbags  # noqa: F401

        binary = Binary(args.binary)
        watchdog = threading.Timer(600, binary.process.kill)
        watchdog.daemon = True
        watchdog.start()
        vectors(tally)
        debian(binary, tally, rng, args.rounds)
        tally.check("open", "shipped", binary.ask(op="open", flavour="ros1"))
        grammar(binary, tally, rng, args.rounds)
        rosbags_stores(binary, tally, rng, args.rounds)
    except (CannotRun, ImportError) as e:
        print(f"cannot run: {e}\nsee tests/schema/apt.txt and tests/schema/requirements.txt", file=sys.stderr)
        return 2
    for what, count in tally.counts.items():
        print(f"{count:6} {what}")
    for failure in tally.failures[:20]:
        print(f"DIFFERS {failure}", file=sys.stderr)
    print(f"{len(tally.failures)} differences, {sum(tally.counts.values())} comparisons, seed {args.seed}")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
