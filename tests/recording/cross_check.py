#!/usr/bin/env python3
"""Check an MCAP file that Ropewalk wrote with independent readers.

    cargo run --release -p ropewalk-recording --example convert -- out.mcap [some.bag]
    venv/bin/python tests/recording/cross_check.py out.mcap [some.bag]

Every channel's MD5 must match its definition, every message must match its type to the last byte (both checked
by rosbags), and if a bag is given, topics, times and bytes must be those of the bag. For the packages see
make_fixtures.py.
"""

import sys
from pathlib import Path

from mcap.reader import make_reader
from rosbags.rosbag1 import Reader as BagReader
from rosbags.typesys import get_types_from_msg, get_typestore, Stores


def main():
    path = Path(sys.argv[1])
    rows = []
    stores = {}
    with open(path, "rb") as stream:
        reader = make_reader(stream, validate_crcs=True)
        assert reader.get_header().profile == "ros1"
        for schema, channel, message in reader.iter_messages(log_time_order=True):
            assert (schema.encoding, channel.message_encoding) == ("ros1msg", "ros1")
            store, name = stores.get(schema.id) or stores.setdefault(schema.id, store_for(schema))
            md5 = store.generate_msgdef(name)[1]
            assert md5 == channel.metadata["md5sum"], f"{channel.topic}: {md5}"
            parsed = store.deserialize_ros1(message.data, name)
            again = bytes(store.serialize_ros1(parsed, name))
            assert again == message.data, f"{channel.topic}: not {name} to the last byte"
            rows.append((message.log_time, channel.topic, message.data))
    assert rows, "messages"
    if len(sys.argv) > 2:
        with BagReader(sys.argv[2]) as bag:
            theirs = [(time, connection.topic, bytes(data)) for connection, time, data in bag.messages()]
        assert sorted(theirs) == sorted(rows), "not the bag's messages"
    print(f"{path}: {len(rows)} messages agree")


def store_for(schema):
    store = get_typestore(Stores.EMPTY)
    name = schema.name.replace("/", "/msg/")
    store.register(get_types_from_msg(schema.data.decode(), name))
    return store, name


if __name__ == "__main__":
    main()
