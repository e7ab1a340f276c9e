#!/usr/bin/env python3
"""Small recordings that need much memory when they are opened and played.

Each file has at most a few megabytes on disk and is of a different kind: a chunk of the smallest messages, overlapping chunks that
decompress to the limit, an index with endless counts, uncounted node names. `ropewalk play` must stay within its budget.
"""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

import kit

# From `recording::Limits`: chunks in memory, one that is being read, and its index of messages.
BUDGET = 900 << 20
# The same for small chunks: 128 MiB of texts, and a chunk of 30 MB that is being read.
TEXTS = 320 << 20
MAGIC = b"\x89MCAP0\r\n"
PATIENCE = 18


def field(name: str, value: bytes) -> bytes:
    whole = name.encode() + b"=" + value
    return struct.pack("<I", len(whole)) + whole


def record(op: int, data: bytes = b"", **fields: bytes) -> bytes:
    header = field("op", bytes([op])) + b"".join(field(k, v) for k, v in fields.items())
    return struct.pack("<I", len(header)) + header + struct.pack("<I", len(data)) + data


def u32(n: int) -> bytes:
    return struct.pack("<I", n)


def u64(n: int) -> bytes:
    return struct.pack("<Q", n)


def bag(*records: bytes, index: int = 0, connections: int = 0, chunks: int = 0) -> bytes:
    head = record(3, index_pos=u64(index), conn_count=u32(connections), chunk_count=u32(chunks))
    return b"#ROSBAG V2.0\n" + head + b"".join(records)


def repeated(head: bytes, one: bytes, total: int) -> tuple[bytes, int]:
    """Returns an LZ4 frame of `head` and repetitions of `one`, up to about `total` bytes, and its uncompressed length."""
    block = 4 << 20
    out, length = bytes.fromhex("04224d18607073"), 0
    while length < total:
        first = (head if length == 0 else b"") + one
        times = (block - len(first)) // len(one) - 1
        rest = times * len(one)

        def count(n: int) -> bytes:
            """Encodes the part of a count that exceeds its four bits."""
            return b"" if n < 15 else b"\xff" * ((n - 15) // 255) + bytes([(n - 15) % 255])

        # The last sequence has only literals, at least five bytes.
        packed = bytes([min(len(first), 15) << 4 | 15]) + count(len(first)) + first
        packed += struct.pack("<H", len(one)) + count(rest - 4)
        packed += bytes([min(len(one), 15) << 4]) + count(len(one)) + one
        out += u32(len(packed)) + packed
        length += len(first) + rest + len(one)
    return out + u32(0), length


def chunk(head: bytes, one: bytes, total: int) -> bytes:
    data, length = repeated(head, one, total)
    return record(5, data, compression=b"lz4", size=u32(length))


def connection(number: int, topic: bytes = b"/a", caller: bytes = b"/n") -> bytes:
    data = field("type", b"std_msgs/String") + field("md5sum", b"992ce8a1687cec8c8bd883ec73ca41d1") + field("message_definition", b"string data\n")
    return record(7, data + field("callerid", caller), conn=u32(number), topic=topic)


def message(number: int, at: int, data: bytes) -> bytes:
    return record(2, data, conn=u32(number), time=struct.pack("<II", at, 0))


def smallest_messages() -> bytes:
    """A chunk of five million empty messages."""
    return bag(chunk(connection(1), message(1, 1, b""), 240 << 20))


def overlapping_chunks() -> bytes:
    """Chunks that decompress to 240 MB each and are all due at the same time."""
    return bag(*(chunk(connection(1), message(1, n, b"\0" * 4_000), 240 << 20) for n in (1, 1, 1, 1)))


def endless_counts(path: Path) -> None:
    """An index of 40 chunks whose counts take 200 MB each, all of them holes in the file."""
    first = chunk(connection(1), message(1, 1, u32(1) + b"a"), 1)
    start = len(bag())
    index = start + len(first)
    data = bag(first, index=index, connections=1, chunks=40) + connection(1)
    with path.open("wb") as out:
        out.write(data)
        for n in range(40):
            info = record(6, ver=u32(1), chunk_pos=u64(start), start_time=bytes(8), end_time=bytes(8), count=u32(1))
            out.write(info[:-4] + u32(200 << 20))
            out.seek(200 << 20, os.SEEK_CUR)
        out.truncate()


def uncounted_metadata() -> bytes:
    """An MCAP file of 99 channels, each with a compressed node name of 30 MB."""
    def mcap(op: int, body: bytes) -> bytes:
        return bytes([op]) + u64(len(body)) + body

    def text(data: bytes) -> bytes:
        return u32(len(data)) + data

    # A zstd block that repeats one byte takes four bytes, for up to 128 KiB.
    chunks = []
    for n in range(1, 100):
        # A channel whose metadata has a node name of 30 MB.
        filled = 240 * (128 << 10)
        head = struct.pack("<HH", n, 0) + text(b"/a") + text(b"ros1") + u32(4 + 8 + 4 + filled) + text(b"callerid") + u32(filled)
        whole = len(head) + filled
        record_head = b"\x04" + u64(whole)
        plain = len(record_head) + whole
        first = record_head + head
        frame = b"\x28\xb5\x2f\xfd\xa0" + u32(plain)
        frame += struct.pack("<I", len(first) << 3)[:3] + first
        frame += b"".join(struct.pack("<I", (128 << 10) << 3 | 1 << 1 | (k == 239))[:3] + b"n" for k in range(240))
        chunks.append(mcap(6, bytes(16) + u64(plain) + u32(0) + text(b"zstd") + u64(len(frame)) + frame))
    return MAGIC + mcap(1, text(b"ros1") + text(b"x")) + b"".join(chunks)


def play(stage: kit.Stage, binary: Path, name: str, path: Path) -> dict:
    """Plays a file. Returns its peak memory, whether it ended, and how."""
    program = stage.start(name, binary / "ropewalk", "play", "--speed", "1000000", path, env=stage.bus(name))
    peak, begun = 0, time.monotonic()
    while program.is_alive() and time.monotonic() - begun < PATIENCE and peak <= 4 * BUDGET:
        try:
            peak = max(peak, program.peak())
        except (OSError, KeyError):
            break
        time.sleep(0.05)
    ended = not program.is_alive()
    if not ended:
        # A watchdog: the duration is not under test.
        program.process.kill()
        program.process.wait()
    status = program.process.returncode if ended else None
    reported = program.log().strip().splitlines()
    size = path.stat()
    return {
        "file_kib": size.st_blocks // 2,
        "peak_mib": round(peak / 2**20, 1),
        "seconds": round(time.monotonic() - begun, 1),
        "status": status,
        "reported": reported[-1][:160] if reported else "",
    }


options = kit.arguments()
figures = {}
with kit.stage() as stage:
    for make in (smallest_messages, overlapping_chunks, uncounted_metadata):
        path = stage.folder / f"{make.__name__}.bag"
        path.write_bytes(make())
        figures[make.__name__] = play(stage, options.binary, make.__name__, path)
    path = stage.folder / "endless_counts.bag"
    endless_counts(path)
    figures["endless_counts"] = play(stage, options.binary, "endless_counts", path)

budgets = {name: (TEXTS if name in ("uncounted_metadata", "endless_counts") else BUDGET) >> 20 for name in figures}
broken = [f"{n}: {f['peak_mib']} MiB of {budgets[n]}" for n, f in figures.items() if f["peak_mib"] > budgets[n]]
broken += [f"{n}: ended by signal {-f['status']}" for n, f in figures.items() if (f["status"] or 0) < 0]
kit.verdict(figures, *broken)
