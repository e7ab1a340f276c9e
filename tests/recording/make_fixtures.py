#!/usr/bin/env python3
"""Make the small recordings under tests/vectors/recording, by writers that are not ours.

    python3 -m venv venv && venv/bin/pip install rosbags==0.11.9 mcap==1.6.0 lz4 zstandard
    venv/bin/python tests/recording/make_fixtures.py

Every file holds the same messages; expected.txt lists them in time order, one a line:
topic, log time in ns, length, CRC-32 of the data. The files are the same on every run.
"""

import struct
import zlib
from pathlib import Path

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
    """In the order of writing, which is not the order of time: some messages come late."""
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
    lines = [
        f"{topic} {time} {len(data)} {zlib.crc32(data):08x}\n"
        for topic, time, data in sorted(messages(), key=lambda message: message[1])
    ]
    (OUT / "expected.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
