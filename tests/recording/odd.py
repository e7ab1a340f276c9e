#!/usr/bin/env python3
"""Play odd recordings and compare the result with what other readers find in them.

    .venv/bin/python tests/recording/odd.py --binary target/tested/ropewalk [FOLDER]

FOLDER (tests/vectors/recording/odd) has .bag and .mcap files, and expected.json if the correct results are known. The packages
`mcap` and `rosbags` read the files if they can. Then Ropewalk must find as many messages of each topic as they do, each either
played or left out.

Exit status: 0 everything agrees, 1 something differs, 2 it could not run.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ODD = Path(__file__).resolve().parent.parent / "vectors" / "recording" / "odd"


def theirs(path):
    """Returns messages by topic, or None and the reason if the package cannot read the file."""
    from mcap.reader import make_reader
    from rosbags.rosbag1 import Reader

    try:
        if path.suffix == ".bag":
            with Reader(path) as bag:
                return Counter(connection.topic for connection, _, _ in bag.messages()), ""
        with open(path, "rb") as stream:
            reader = make_reader(stream, validate_crcs=True)
            return Counter(channel.topic for _, channel, _ in reader.iter_messages()), ""
    except Exception as error:  # whatever they raise, they cannot read it
        return None, f"{type(error).__name__}: {error}"


def ours(binary, path, folder):
    environment = os.environ | {"ROPEWALK_RUNTIME_DIR": f"{folder}/bus"}
    command = [binary, "play", "--json", "--speed", "1000", "--skip-gaps=1", path]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    if done.returncode not in (0, 3):
        return done.returncode, {}, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", required=True, help="the built `ropewalk`")
    parser.add_argument("folder", nargs="?", type=Path, default=ODD)
    arguments = parser.parse_args()
    files = sorted(p for p in arguments.folder.iterdir() if p.suffix in (".bag", ".mcap"))
    try:
        import mcap.reader  # noqa: F401
        import rosbags.rosbag1  # noqa: F401
    except ImportError as error:
        print(f"cannot run: {error}; see tests/recording/requirements.txt", file=sys.stderr)
        return 2
    if not files or not Path(arguments.binary).exists():
        print(f"cannot run: no recordings in {arguments.folder}, or no {arguments.binary}", file=sys.stderr)
        return 2
    known = arguments.folder / "expected.json"
    expected = json.loads(known.read_text()) if known.exists() else {}
    failures = [f"{name}: does not exist" for name in expected if not (arguments.folder / name).exists()]
    with tempfile.TemporaryDirectory() as folder:
        for path in files:
            code, result, reported = ours(arguments.binary, path, folder)
            left = result.get("left_out", {})
            line = f"{path.name}: played {result.get('messages')}, left out {left}, exit {code}"
            found, why = theirs(path)
            if code not in (0, 3):
                failures.append(f"{line}: {reported}")
            elif found is not None and result["messages"] + sum(left.values()) != sum(found.values()):
                failures.append(f"{line}; {sum(found.values())} are in it: {dict(found)}")
            elif (code == 3) != bool(left or result["damaged_parts"]):
                failures.append(f"{line}: the exit code does not report what was left out")
            right = expected.get(path.name)
            if right and (result.get("messages"), left, code) != (right["played"], right["left_out"], right["exit"]):
                failures.append(f"{line}; expected {right}")
            print(line + (f"; they find {sum(found.values())}" if found is not None else f"; they cannot read it ({why})"))
    for failure in failures:
        print(f"DIFFERS {failure}", file=sys.stderr)
    print(f"{len(files)} recordings, {len(failures)} differences")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
