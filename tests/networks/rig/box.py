"""A wire between two network namespaces that mistreats packets: `python3 -m rig.box SPACE SPACE`.

Each namespace gets a TUN device `wire`. Lines of JSON on stdin set, for all further packets: `share` is the share of packets to
hold back, each for up to `late` seconds, so that later packets arrive first; `twice` is the share to duplicate, with the copy up
to `late` later; `loss` is the share to drop; `delay` is added to every packet. At the end of stdin it prints what it did.
"""

import fcntl
import heapq
import json
import os
import random
import select
import struct
import sys
import time

from rig import Inside

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 1, 0x1000


def device(space: str) -> int:
    with Inside(space):
        fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH14x", b"wire", IFF_TUN | IFF_NO_PI))
    return fd


def main() -> None:
    chance = random.Random(7)
    ends = [device(space) for space in sys.argv[1:3]]
    other = {ends[0]: ends[1], ends[1]: ends[0]}
    how = {"share": 0.0, "late": 0.0, "twice": 0.0, "loss": 0.0, "delay": 0.0}
    counts = {"packets": 0, "late": 0, "twice": 0, "lost": 0}
    waiting: list[tuple[float, int, int, bytes]] = []
    order = 0
    print("ready", flush=True)
    reported = b""
    while True:
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        readable = select.select([*ends, 0], [], [], timeout)[0]
        if 0 in readable:
            more = os.read(0, 4096)
            if not more:
                break
            *lines, reported = (reported + more).split(b"\n")
            for line in lines:
                how |= json.loads(line)
        now = time.monotonic()
        for end in ends:
            if end not in readable:
                continue
            for _ in range(64):
                try:
                    packet = os.read(end, 2048)
                except BlockingIOError:
                    break
                counts["packets"] += 1
                if chance.random() < how["loss"]:
                    counts["lost"] += 1
                    continue
                at = now + how["delay"]
                if chance.random() < how["share"]:
                    counts["late"] += 1
                    at += chance.uniform(0, how["late"])
                order += 1
                heapq.heappush(waiting, (at, order, other[end], packet))
                if chance.random() < how["twice"]:
                    counts["twice"] += 1
                    order += 1
                    heapq.heappush(waiting, (at + chance.uniform(0, how["late"]), order, other[end], packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, end, packet = heapq.heappop(waiting)
            try:
                os.write(end, packet)
            except OSError:
                # Its device is down, or its queue is full.
                counts["lost"] += 1
    print(json.dumps(counts), flush=True)


if __name__ == "__main__":
    main()
