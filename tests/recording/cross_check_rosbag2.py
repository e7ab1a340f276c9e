#!/usr/bin/env python3
"""Compare what `rosbags` and Ropewalk read from each other's rosbag2 folders.

    .venv/bin/python tests/recording/cross_check_rosbag2.py target/tested/examples/convert

Recreates the folders of make_rosbag2.py. `convert` rewrites each as a new folder, and `rosbags` must find the same in both:
topics, types, definitions, offered QoS, times and bytes of all messages.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import make_rosbag2
from mcap.reader import make_reader
from rosbags.rosbag2 import Reader


def found(path):
    """Returns what `rosbags` reads: messages by time, and what it knows about their channels."""
    with Reader(path) as bag:
        rows = [
            (time, c.topic, c.msgtype, tuple(c.ext.offered_qos_profiles), c.msgdef.data.strip(), bytes(data))
            for c, time, data in bag.messages()
        ]
        counts = {(c.topic, c.msgtype): c.msgcount for c in bag.connections}
        return sorted(rows), counts, (bag.start_time, bag.end_time, bag.message_count)


def main():
    convert = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = Path(folder, "theirs"), Path(folder, "ours")
        subprocess.run([sys.executable, make_rosbag2.__file__, theirs], check=True)
        ours.mkdir()
        names = sorted(path.name for path in theirs.iterdir() if path.is_dir())
        assert len(names) == 8, names
        for name in names:
            subprocess.run([convert, ours / name, theirs / name], check=True, stdout=subprocess.DEVNULL)
            rows, counts, span = found(theirs / name)
            again, counted, same = found(ours / name)
            assert len(rows) == 30 and rows == again, name
            assert (counts, span) == (counted, same), f"{name}: {counts} {span}, ours {counted} {same}"
            with open(ours / name / f"{name}_0.mcap", "rb") as stream:
                reader = make_reader(stream, validate_crcs=True)
                assert reader.get_header().profile == "ros2"
                assert sum(1 for _ in reader.iter_messages()) == 30
            print(f"{name}: 30 messages agree")


if __name__ == "__main__":
    main()
