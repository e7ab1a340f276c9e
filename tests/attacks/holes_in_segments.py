#!/usr/bin/env python3
"""A publisher hands over segments that consist of holes: reading them allocates pages, which are charged to the reader.

The control parts of the messages lie in the holes, so every reader copies them. The reader must not be charged.
"""

from __future__ import annotations

import time

from kit import bus
import kit

SEGMENT = 1 << 40
BLOCK = 64 << 20
BLOCKS = 12


def main() -> None:
    options = kit.arguments()
    broken, figures = [], {}
    with kit.stage() as stage:
        env = stage.bus("a")
        folder = stage.folder / "bus-a"
        offer = bus.Offer(folder, "/holes", 7, bus.info(7, "/holes"), bus.frame(bus.REFUSE, b"\3\0\0"))
        victim = stage.start("victim", options.binary / "ropewalk", "record", stage.folder / "out.mcap", "--duration", "20", env=env)

        def found() -> object:
            offer.serve()
            return bus.sockets(folder, "s", "/holes")

        path = kit.wait_for("the victim subscribes", found)[0]
        s, fds, shape, why = bus.welcome(path, "/holes", 8)
        if s is None:
            kit.verdict({}, f"the publisher was refused: {why}")
        time.sleep(0.5)
        before = victim.peak()
        writer = bus.Writer(s, fds[0], shape, SEGMENT)
        for i in range(BLOCKS):
            writer.write(i * BLOCK, BLOCK, BLOCK - 4096)
            writer.push(i * BLOCK, BLOCK)
        bus.ring(fds[1])
        time.sleep(5)
        figures["announced_bytes"] = SEGMENT
        figures["queued_bytes"] = BLOCKS * BLOCK
        figures["victims_peak_more"] = victim.peak() - before
        figures["publishers_pages_kib"] = __import__("os").fstat(writer.fd).st_blocks // 2
        figures["victim_lives"] = victim.is_alive()
        figures["log"] = victim.log()[-200:]
        if figures["publishers_pages_kib"] > 4 * BLOCKS + 64:
            broken.append(f"reading allocated {figures['publishers_pages_kib']} KiB of pages")
        if figures["victims_peak_more"] > 16 << 20:
            broken.append(f"the reader used {figures['victims_peak_more']} bytes more")
        if not victim.is_alive():
            broken.append("the reader ended")
    kit.verdict(figures, *broken)


main()
