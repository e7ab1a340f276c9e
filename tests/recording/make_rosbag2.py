#!/usr/bin/env python3
"""Make the rosbag2 folders under tests/vectors/recording/rosbag2 with the package `rosbags`.

    python3 -m venv venv && venv/bin/pip install rosbags==0.11.9 mcap==1.6.0
    venv/bin/python tests/recording/make_rosbag2.py [FOLDER]

Every folder holds the same messages; expected.txt lists them in time order, one a line: topic, log time in ns, length, CRC-32 of the
data. `old` is a database as Foxy wrote it (without definitions). `split` has three files whose messages
overlap in time; `rosbags` writes each of them and this program writes the metadata.
"""

import shutil
import sqlite3
import sys
import zlib
from pathlib import Path

import numpy
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore
from ruamel.yaml import YAML

OUT = Path(__file__).resolve().parent.parent / "vectors" / "recording" / "rosbag2"
STORE = get_typestore(Stores.ROS2_JAZZY)
START = 1_700_000_000_000_000_000
FOREVER = QosTime(9223372036, 854775807)


def qos(history, depth, reliability, durability):
    return Qos(history, depth, reliability, durability, FOREVER, FOREVER, QosLiveliness.AUTOMATIC, FOREVER, False)


TOPICS = {
    "/chatter": ("std_msgs/msg/String", [qos(QosHistory.KEEP_LAST, 3, QosReliability.RELIABLE, QosDurability.TRANSIENT_LOCAL)]),
    "/scan": ("sensor_msgs/msg/LaserScan", [qos(QosHistory.KEEP_LAST, 5, QosReliability.BEST_EFFORT, QosDurability.VOLATILE)]),
    "/empty": ("std_msgs/msg/Empty", []),
}


def scan(index):
    stamp = START + index * 33_000_000
    types = STORE.types
    time = types["builtin_interfaces/msg/Time"](stamp // 10**9, stamp % 10**9)
    header = types["std_msgs/msg/Header"](time, "laser")
    ranges = numpy.array([1.0 + ((index * 7 + beam * 13) % 100) / 50 for beam in range(24)], numpy.float32)
    none = numpy.array([], numpy.float32)
    return types["sensor_msgs/msg/LaserScan"](header, -1.5, 1.5, 0.125, 0.0, 0.033, 0.1, 8.0, ranges, none)


def messages():
    """Yields messages in the order of writing, which is not the order of time."""
    string, empty = STORE.types["std_msgs/msg/String"], STORE.types["std_msgs/msg/Empty"]
    for index in range(20):
        time = START + index * 33_000_000
        yield "/scan", time, scan(index)
        if index % 4 == 0:
            yield "/chatter", time + 5_000_000, string(f"message {index}, ümlaut")
        if index % 5 == 3:
            yield "/chatter", time - 100_000_001, string(f"late {index}")
        if index == 10:
            yield "/empty", time + 1, empty()


def serialized():
    for topic, time, message in messages():
        yield topic, time, bytes(STORE.serialize_cdr(message, TOPICS[topic][0]))


def write(folder, storage, mode=CompressionMode.NONE, version=9, wanted=lambda index: True):
    shutil.rmtree(folder, ignore_errors=True)
    writer = Writer(folder, version=version, storage_plugin=storage)
    if mode != CompressionMode.NONE:
        writer.set_compression(mode, CompressionFormat.ZSTD)
    with writer:
        connections = {
            topic: writer.add_connection(topic, kind, typestore=STORE, offered_qos_profiles=profiles)
            for topic, (kind, profiles) in TOPICS.items()
        }
        for index, (topic, time, data) in enumerate(serialized()):
            if wanted(index):
                writer.write(connections[topic], time, data)


def load(path):
    return YAML(typ="safe").load(path)


def dump(metadata, path):
    yaml = YAML(typ="safe")
    yaml.default_flow_style = False
    yaml.dump(metadata, path)


def split(folder):
    """Three files of one recording; every third message is in each."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    parts = []
    for part in range(3):
        whole = folder / f"part{part}"
        write(whole, StoragePlugin.MCAP, wanted=lambda index, part=part: index % 3 == part)
        parts.append(load(whole / "metadata.yaml")["rosbag2_bagfile_information"])
        (whole / f"part{part}.mcap").rename(folder / f"split_{part}.mcap")
        shutil.rmtree(whole)
    information = parts[0]
    begin = min(part["starting_time"]["nanoseconds_since_epoch"] for part in parts)
    end = max(part["starting_time"]["nanoseconds_since_epoch"] + part["duration"]["nanoseconds"] for part in parts)
    information["starting_time"]["nanoseconds_since_epoch"] = begin
    information["duration"]["nanoseconds"] = end - begin
    information["message_count"] = sum(part["message_count"] for part in parts)
    for index, topic in enumerate(information["topics_with_message_count"]):
        topic["message_count"] = sum(part["topics_with_message_count"][index]["message_count"] for part in parts)
    information["relative_file_paths"] = [f"split_{part}.mcap" for part in range(3)]
    information["files"] = [part["files"][0] | {"path": f"split_{index}.mcap"} for index, part in enumerate(parts)]
    dump({"rosbag2_bagfile_information": information}, folder / "metadata.yaml")


def old(folder):
    """The tables of Foxy's rosbag2, and its metadata of version 4."""
    write(folder, StoragePlugin.SQLITE3, version=8)
    new = sqlite3.connect(folder / f"{folder.name}.db3")
    database = sqlite3.connect(folder / f"{folder.name}_0.db3")
    database.executescript(
        "CREATE TABLE topics(id INTEGER PRIMARY KEY,name TEXT NOT NULL,type TEXT NOT NULL,serialization_format TEXT NOT NULL,"
        "offered_qos_profiles TEXT NOT NULL);"
        "CREATE TABLE messages(id INTEGER PRIMARY KEY,topic_id INTEGER NOT NULL,timestamp INTEGER NOT NULL, data BLOB NOT NULL);"
        "CREATE INDEX timestamp_idx ON messages (timestamp ASC);"
    )
    for row in new.execute("SELECT id, name, type, serialization_format, offered_qos_profiles FROM topics"):
        database.execute("INSERT INTO topics VALUES(?, ?, ?, ?, ?)", row)
    for row in new.execute("SELECT id, topic_id, timestamp, data FROM messages"):
        database.execute("INSERT INTO messages VALUES(?, ?, ?, ?)", row)
    database.commit()
    database.close()
    new.close()
    (folder / f"{folder.name}.db3").unlink()
    metadata = load(folder / "metadata.yaml")
    information = metadata["rosbag2_bagfile_information"]
    for key in ("files", "custom_data", "ros_distro"):
        del information[key]
    for topic in information["topics_with_message_count"]:
        del topic["topic_metadata"]["type_description_hash"]
    information["version"] = 4
    information["relative_file_paths"] = [f"{folder.name}_0.db3"]
    dump(metadata, folder / "metadata.yaml")


def main():
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else OUT
    out.mkdir(parents=True, exist_ok=True)
    for name, storage in (("sqlite3", StoragePlugin.SQLITE3), ("mcap", StoragePlugin.MCAP)):
        write(out / name, storage)
        write(out / f"{name}_file", storage, CompressionMode.FILE, version=8)
        write(out / f"{name}_message", storage, CompressionMode.MESSAGE)
    split(out / "split")
    old(out / "old")
    rows = sorted(serialized(), key=lambda row: row[1])
    lines = [f"{topic} {time} {len(data)} {zlib.crc32(data):08x}\n" for topic, time, data in rows]
    (out / "expected.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
