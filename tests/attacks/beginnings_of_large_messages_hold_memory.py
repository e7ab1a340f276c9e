#!/usr/bin/env python3
"""A peer sends 100 bytes of a 60 MB message on each of 50 topics: how much the link holds for it, then and after the peer is gone."""

from __future__ import annotations

import time

import kit
from kit import wire

TOPICS = 50
MESSAGE = 60_000_000
FRAGMENT = 100
MB = 1 << 20
# `peers: memory` of the victim. One partial message may exceed it, and the process itself needs memory.
BUDGET = 64 * MB
OWN = 24 * MB
GIVEN_BACK_WITHIN_S = 5


def main() -> None:
    options = kit.arguments()
    kit.need_root()  # Required to read another process's memfds.
    here, there = kit.free_port(), kit.free_port()
    config = f"""
host: victim
radio: {{bind: '127.0.0.1:{here}', rate: 100Mbit/s, carrier: udp}}
peers: [{{name: hostile, address: '127.0.0.1:{there}', memory: {BUDGET // MB}MiB}}]
topics: [{{name: '/t/*', direction: in}}]
"""
    with kit.stage() as stage:
        path = stage.write("victim.yaml", config)
        victim = stage.start("victim", options.binary / "ropewalk", "link", path, env=stage.bus("victim"))
        peer = wire.Peer("hostile", ("127.0.0.1", there), ("127.0.0.1", here))
        if not peer.come_up():
            kit.verdict({}, f"the link never came up: {victim.log()[-400:]}")
        peer.serve(0.5)
        before = sum(victim.memory())

        for topic in range(TOPICS):
            for frame in wire.announce(topic, wire.announcement(f"/t/{topic}", "a/B", depth=4)):
                peer.send(frame)
            peer.serve(0.02)
        peer.serve(1)
        sent = peak = 0
        # Twice, since displaced data must be freed too; offsets at the end, where the beginning is missing.
        for number in range(2):
            for topic in range(TOPICS):
                frame = wire.data(topic, number, 100, [MESSAGE - 100], MESSAGE - FRAGMENT, bytes(FRAGMENT))
                peer.send(frame)
                sent += len(frame)
                peer.serve(0.01)
            peak = max(peak, sum(victim.memory()))
        # Enough of some messages to make the link allocate their memory.
        for topic in range(4):
            for offset in range(0, MESSAGE // 14, 1200):
                peer.send(wire.data(topic, 9, 100, [MESSAGE - 100], offset, bytes(1200)))
                if offset % (1200 * 50) == 0:
                    peer.serve(0.001)
                    peak = max(peak, sum(victim.memory()))
        alive = victim.is_alive()
        peer.socket.close()
        ended = time.monotonic()
        left = peak
        while left > before + OWN and time.monotonic() < ended + 20:
            time.sleep(0.1)
            left = sum(victim.memory())
        took = time.monotonic() - ended

    figures = {
        "sent_bytes": sent,
        "before_mb": round(before / MB, 1),
        "peak_mb": round(peak / MB, 1),
        "left_mb": round(left / MB, 1),
        "given_back_s": round(took, 1),
    }
    broken = []
    if not alive:
        broken.append("the link ended")
    if peak > before + BUDGET + MESSAGE + OWN:
        broken.append(f"{sent} bytes made the link hold {peak / MB:.0f} MB")
    if left > before + OWN:
        broken.append(f"{left / MB:.0f} MB are still held after the peer is gone")
    elif took > GIVEN_BACK_WITHIN_S:
        broken.append(f"the memory was released only after {took:.1f} s")
    kit.verdict(figures, *broken)


main()
