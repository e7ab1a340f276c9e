#!/usr/bin/env python3
"""Make the small recordings under tests/vectors/recording with independent writers.

    python3 -m venv venv && venv/bin/pip install rosbags==0.11.9 mcap==1.6.0 lz4 zstandard
    venv/bin/python tests/recording/make_fixtures.py

Every file but cdr.mcap, latched.bag and transient.mcap holds the same messages; expected.txt lists them in time order, one a line:
topic, log time in ns, length, CRC-32 of the data. The files are the same on every run.

Those below `odd` have one defect each, after public bug reports. odd/expected.json has the expected result for each: messages
played, messages left out by reason, damaged parts, and the exit code of `ropewalk play`.
"""

import json
import struct
import zlib
from pathlib import Path

import lz4.block

from mcap.writer import CompressionType, IndexType, Writer as McapWriter
from rosbags.rosbag1 import Writer as BagWriter
from rosbags.typesys import Stores, get_typestore

OUT = Path(__file__).resolve().parent.parent / "vectors" / "recording"
STORE = get_typestore(Stores.ROS1_NOETIC)
START = 1_700_000_000_000_000_000
TOPICS = {  # topic: type, latched, callerid
    "/chatter": ("std_msgs/msg/String", 1, "/talker"),
    "/scan": ("sensor_msgs/msg/LaserScan", 0, "/laser"),
    "/empty": ("std_msgs/msg/Empty", 0, None),
}


def string(text):
    data = text.encode()
    return struct.pack("<I", len(data)) + data


def scan(index):
    stamp = START + index * 33_000_000
    header = struct.pack("<III", index, stamp // 10**9, stamp % 10**9) + string("laser")
    ranges = [1.0 + ((index * 7 + beam * 13) % 100) / 50 for beam in range(24)]
    fields = struct.pack("<7f", -1.5, 1.5, 0.125, 0.0, 0.033, 0.1, 8.0)
    return header + fields + struct.pack("<I24f", 24, *ranges) + struct.pack("<I", 0)


def messages():
    """Yields messages in the order of writing, which is not the order of time: some messages are late."""
    for index in range(20):
        time = START + index * 33_000_000
        yield "/scan", time, scan(index)
        if index % 4 == 0:
            yield "/chatter", time + 5_000_000, string(f"message {index}, ümlaut")
        if index % 5 == 3:
            # Recorded 100 ms late: older than the last chunk's messages.
            yield "/chatter", time - 100_000_000, string(f"late {index}")
        if index == 10:
            yield "/empty", time, b""


def definitions(name):
    text, md5 = STORE.generate_msgdef(name)
    return text, md5


def bag(name, compression):
    path = OUT / name
    path.unlink(missing_ok=True)
    writer = BagWriter(path)
    if compression:
        writer.set_compression(compression)
    writer.chunk_threshold = 700
    with writer:
        connections = {
            topic: writer.add_connection(
                topic, kind, typestore=STORE, latching=latched or None, callerid=caller
            )
            for topic, (kind, latched, caller) in TOPICS.items()
        }
        for topic, time, data in messages():
            writer.write(connections[topic], time, data)


def mcap(name, compression, **options):
    with open(OUT / name, "wb") as stream:
        writer = McapWriter(stream, chunk_size=700, compression=compression, **options)
        writer.start(profile="ros1", library="fixture")
        channels = {}
        for topic, (kind, latched, caller) in TOPICS.items():
            text, md5 = definitions(kind)
            schema = writer.register_schema(kind.replace("/msg/", "/"), "ros1msg", text.encode())
            metadata = {"md5sum": md5}
            if latched:
                metadata["latching"] = "true"
            if caller:
                metadata["callerid"] = caller
            channels[topic] = writer.register_channel(topic, "ros1", schema, metadata)
        writer.add_attachment(START, START, "note.txt", "text/plain", b"an attachment in between")
        for sequence, (topic, time, data) in enumerate(messages()):
            writer.add_message(channels[topic], time, data, time - 1000, sequence)
        writer.add_metadata("made", {"by": "make_fixtures.py"})
        writer.finish()


def cdr(name):
    """A ROS 2 recording: one CDR channel and one without schema."""
    with open(OUT / name, "wb") as stream:
        writer = McapWriter(stream, compression=CompressionType.NONE)
        writer.start(profile="ros2", library="fixture")
        schema = writer.register_schema("std_msgs/msg/String", "ros2msg", b"string data\n")
        channel = writer.register_channel("/chatter", "cdr", schema, {})
        plain = writer.register_channel("/json", "json", 0, {})
        writer.add_message(channel, START, b"\0\1\0\0" + string("cdr\0"), START)
        writer.add_message(plain, START + 1, b"{}", START + 1)
        writer.finish()


ODD = OUT / "odd"
STRING = "std_msgs/msg/String", "string data\n"


def odd_bag(name, connections, rows):
    """A bag of connections (topic, type, definition, md5) and rows (connection, seconds after the start, data)."""
    path = ODD / name
    path.unlink(missing_ok=True)
    writer = BagWriter(path)
    with writer:
        made = [writer.add_connection(topic, kind, msgdef=text, md5sum=md5) for topic, kind, text, md5 in connections]
        for which, after, data in rows:
            writer.write(made[which], START + int(after * 10**9), data)


def odd_mcap(name, channels, rows, patch=None, compression=CompressionType.NONE, **options):
    """As odd_bag, with channels (topic, message encoding, type, schema encoding, definition), with None for no schema."""
    path = ODD / name
    with open(path, "wb") as stream:
        writer = McapWriter(stream, chunk_size=options.pop("chunk_size", 1 << 20), compression=compression, **options)
        writer.start(profile="ros2", library="fixture")
        made = []
        for topic, encoding, kind, language, text in channels:
            schema = writer.register_schema(kind, language, text.encode()) if kind else 0
            made.append(writer.register_channel(topic, encoding, schema, {}))
        for which, after, data in rows:
            writer.add_message(made[which], START + int(after * 10**9), data, START + int(after * 10**9))
        writer.finish()
    if patch:
        path.write_bytes(patch(bytearray(path.read_bytes())))


def string_cdr(text, encapsulation=1):
    return bytes([0, encapsulation, 0, 0]) + string(text + "\0")


def damaged_chunk(data):
    """Inverts some bytes of the second chunk's zstd frame."""
    first = data.index(b"\x28\xb5\x2f\xfd")
    second = data.index(b"\x28\xb5\x2f\xfd", first + 1)
    for at in range(second + 6, second + 40):
        data[at] ^= 0x5A
    return data


def wrong_span(data):
    """Makes the second chunk claim that it begins after its messages; without checksums."""
    start = struct.unpack("<Q", data[-28 + 0 : -20])[0]
    at, seen = start, 0
    while at < len(data) - 37:
        op, length = data[at], struct.unpack("<Q", data[at + 1 : at + 9])[0]
        if op == 8:
            seen += 1
            if seen == 2:
                data[at + 9 : at + 17] = struct.pack("<Q", START + 3600 * 10**9)
        at += 9 + length
    assert seen > 2
    return data


def lz4_block(name):
    """A chunk in LZ4's block format, which MCAP does not have; no summary."""
    body = record(3, struct.pack("<H", 1) + string("std_msgs/msg/String") + string("ros2msg") + string("string data\n"))
    body += record(4, struct.pack("<HH", 1, 1) + string("/good") + string("cdr") + string(""))
    body += record(5, struct.pack("<HIQQ", 1, 0, START, START) + string_cdr("x" * 40))
    packed = lz4.block.compress(body, store_size=False)
    chunk = struct.pack("<QQQI", START, START, len(body), zlib.crc32(body)) + string("lz4")
    chunk += struct.pack("<Q", len(packed)) + packed
    magic = b"\x89MCAP0\r\n"
    whole = magic + record(1, string("ros2") + string("fixture")) + record(6, chunk) + record(15, bytes(4))
    (ODD / name).write_bytes(whole + record(2, bytes(20)) + magic)


def record(op, body):
    return struct.pack("<BQ", op, len(body)) + body


def odd():
    ODD.mkdir(exist_ok=True)
    kind, text = STRING
    md5 = STORE.generate_msgdef(kind)[1]
    int8 = STORE.generate_msgdef("std_msgs/msg/Int8")[1]
    good = "/good", kind, text, md5
    cdr = "/good", "cdr", kind, "ros2msg", text
    expected = {}

    def right(name, played, left_out=None, parts=0, index_lies=False, **options):
        lost = bool(left_out) or parts > 0
        expected[name] = {"played": played, "left_out": left_out or {}, "damaged_parts": parts, "exit": 3 if lost else 0}
        expected[name] |= {"index_lies": True} if index_lies else {}
        expected[name] |= options

    hello = [(0, 0.0, string("a")), (1, 0.001, b"\5"), (0, 0.002, string("b"))]
    odd_bag("unknown_type.bag", [good, ("/odd", "my_msgs/msg/Odd", "other_msgs/Gone x\n", "0" * 32)], hello)
    right("unknown_type.bag", 2, {"type": 1})
    odd_bag("no_definition.bag", [good, ("/int", "std_msgs/msg/Int8", "", int8)], hello)
    right("no_definition.bag", 3)
    odd_bag("unknown_sum.bag", [good, ("/int", "std_msgs/msg/Int8", "", "1" * 32)], hello)
    right("unknown_sum.bag", 2, {"type": 1})
    twice = "uint8 A=1\nuint8 A=2\nuint8 x\n"
    odd_bag("constant_twice.bag", [good, ("/t", "my_msgs/msg/T", twice, "e25a3591d32a47cdb97b4674439d0983")], hello)
    right("constant_twice.bag", 3)
    odd_bag("name.bag", [good, ("/my-topic", "std_msgs/msg/Int8", "int8 data\n", int8)], hello)
    right("name.bag", 2, {"name": 1})
    odd_bag("short_message.bag", [good, ("/int", "std_msgs/msg/Int8", "int8 data\n", int8)],
            [(0, 0.0, string("a")), (1, 0.001, b"\5\5"), (1, 0.002, b"\5"), (0, 0.003, b"\xff\xff\xff\xff")])
    right("short_message.bag", 2, {"content": 2})
    odd_bag("gap.bag", [good], [(0, -1_700_000_000, string("before the clock was set")), (0, 0.0, string("after"))])
    right("gap.bag", 2)
    odd_bag("empty.bag", [], [])
    right("empty.bag", 0)

    rows = [(0, 0.0, string_cdr("first")), (1, 0.001, string_cdr("odd")), (0, 0.002, string_cdr("last"))]
    odd_mcap("schemaless.mcap", [cdr, ("/none", "cdr", None, "", "")], rows)
    right("schemaless.mcap", 2, {"schemaless": 1})
    odd_mcap("idl.mcap", [cdr, ("/idl", "cdr", "my_msgs/msg/P", "ros2idl", "module my_msgs { };")], rows)
    right("idl.mcap", 2, {"type": 1})
    odd_mcap("json.mcap", [cdr, ("/json", "json", "my_msgs/msg/P", "jsonschema", "{}")], rows)
    right("json.mcap", 2, {"encoding": 1})
    odd_mcap("xcdr2.mcap", [cdr], [*rows[::2], (0, 0.001, string_cdr("xcdr2", 7))])
    right("xcdr2.mcap", 2, {"content": 1})
    info = struct.pack("<BBBBB3xII16s4xq", 0, 1, 0, 0, 1, 1, 2, b"client", 3)
    add = "int64 a\nint64 b\n---\nint64 sum\n"
    event = "/add/_service_event", "cdr", "example_interfaces/srv/AddTwoInts_Event", "ros2msg", add
    event_data = info + struct.pack("<I4xqqI", 1, 2, 3, 0)
    odd_mcap("service_event.mcap", [event], [(0, 0.0, event_data)])
    right("service_event.mcap", 1)
    many = [(0, n / 1000, string_cdr(f"message {n}")) for n in range(60)]
    odd_mcap("damaged_chunk.mcap", [cdr], many, damaged_chunk, CompressionType.ZSTD, chunk_size=900)
    lost = len(many) - sum(1 for _ in readable(ODD / "damaged_chunk.mcap"))
    right("damaged_chunk.mcap", len(many) - lost, {"damage": lost}, 1)
    odd_mcap("wrong_span.mcap", [cdr], many, wrong_span, chunk_size=900, enable_crcs=False)
    right("wrong_span.mcap", 60, index_lies=True)
    odd_mcap("schemas_not_repeated.mcap", [cdr], many, chunk_size=900, repeat_schemas=False)
    right("schemas_not_repeated.mcap", 60)
    lz4_block("lz4_block.mcap")
    right("lz4_block.mcap", 0, {}, 1)
    odd_mcap("empty.mcap", [cdr], [])
    right("empty.mcap", 0)
    (ODD / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


def readable(path):
    """Returns messages of the chunks with a correct checksum, from the indexes next to them."""
    from mcap.records import Chunk
    from mcap.stream_reader import StreamReader, breakup_chunk

    with open(path, "rb") as stream:
        for item in StreamReader(stream, emit_chunks=True).records:
            if isinstance(item, Chunk):
                try:
                    records = breakup_chunk(item, validate_crc=True)
                except Exception:
                    continue
                yield from (r for r in records if type(r).__name__ == "Message")


def latched(name):
    """Two nodes that latch one message each on one topic, and one that ticks for 4 s."""
    path = OUT / name
    path.unlink(missing_ok=True)
    with BagWriter(path) as writer:
        def add(topic, latching, caller):
            return writer.add_connection(topic, "std_msgs/msg/String", typestore=STORE, latching=latching, callerid=caller)
        static = [add("/static", 1, f"/p{number}") for number in (1, 2)]
        tick = add("/tick", None, "/clock")
        for number, connection in enumerate(static, 1):
            writer.write(connection, START + number * 1_000_000, string(f"from p{number}"))
        for number in range(8):
            writer.write(tick, START + number * 500_000_000, string(f"tick {number}"))


def transient(name):
    """As rosbag2 records a durable publisher, whose depth DDS does not announce, and one that ticks for 4 s."""
    with open(OUT / name, "wb") as stream:
        writer = McapWriter(stream, compression=CompressionType.NONE)
        writer.start(profile="ros2", library="fixture")
        schema = writer.register_schema("std_msgs/msg/String", "ros2msg", b"string data\n")
        offered = "- history: 3\n  depth: 0\n  reliability: 1\n  durability: 1\n"
        durable = writer.register_channel("/tl", "cdr", schema, {"offered_qos_profiles": offered})
        tick = writer.register_channel("/tick", "cdr", schema, {})
        writer.add_message(durable, START, b"\0\1\0\0" + string("robot_description\0"), START)
        for number in range(8):
            time = START + number * 500_000_000
            writer.add_message(tick, time, b"\0\1\0\0" + string(f"tick {number}\0"), time)
        writer.finish()


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    bag("none.bag", None)
    bag("bz2.bag", BagWriter.CompressionFormat.BZ2)
    bag("lz4.bag", BagWriter.CompressionFormat.LZ4)
    mcap("none.mcap", CompressionType.NONE)
    mcap("lz4.mcap", CompressionType.LZ4)
    mcap("zstd.mcap", CompressionType.ZSTD)
    mcap("unchunked.mcap", CompressionType.NONE, use_chunking=False)
    mcap("no_summary.mcap", CompressionType.ZSTD, index_types=IndexType.NONE, use_statistics=False,
         repeat_channels=False, repeat_schemas=False, use_summary_offsets=False)
    cdr("cdr.mcap")
    odd()


    latched("latched.bag")
    transient("transient.mcap")
    lines = [
        f"{topic} {time} {len(data)} {zlib.crc32(data):08x}\n"
        for topic, time, data in sorted(messages(), key=lambda message: message[1])
    ]
    (OUT / "expected.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
