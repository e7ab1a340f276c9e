#!/usr/bin/env python3
"""Hostile DDS participants attack the bridge to ROS 2 while an honest one publishes: random and damaged datagrams, 12,000 endpoints, node names
that are invalid or belong to others, samples without a type, and requests that nobody answers.

The bridge's memory must stay bounded, and the honest messages must keep arriving.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import socket
import struct
import threading
import time

import kit
from kit import rtps

# Bytes by which the bridge may grow, whatever three participants send.
MOST_MEMORY = 128 << 20
# Maximum time in seconds without an honest message.
MOST_SILENCE = 5.0
ENDPOINTS = 4000
HONEST = b"\0\0\1\3"


def talk(participant: rtps.Participant, stop: threading.Event) -> None:
    """An honest node that publishes a number every 50 ms."""
    for n in itertools.count():
        if stop.is_set():
            return
        if n % 20 == 0:
            participant.announce()
            participant.again()
        participant.write(HONEST, rtps.string(f"honest {n}"))
        sent.append(n)
        time.sleep(0.05)


def noise(ports: list[int], seeds: list[bytes], stop: threading.Event) -> None:
    """Sends random datagrams, and valid ones with bytes changed, removed or repeated."""
    chance = random.Random(7)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        while not stop.is_set():
            for _ in range(20):
                datagram = bytearray(chance.choice(seeds))
                for _ in range(chance.randrange(4)):
                    datagram[chance.randrange(len(datagram))] = chance.randrange(256)
                kind = chance.randrange(4)
                if kind == 0:
                    datagram = datagram[: chance.randrange(len(datagram))]
                elif kind == 1:
                    datagram = bytearray(os.urandom(chance.randrange(1, 1500)))
                elif kind == 2:
                    datagram += datagram[20:] * chance.randrange(20)
                with contextlib.suppress(OSError):
                    s.sendto(datagram[:60000], ("127.0.0.1", chance.choice(ports)))
                made["datagrams"] += 1
            time.sleep(0.01)


def flood(domain: int, which: int, stop: threading.Event) -> None:
    """Announces endpoints and false nodes, and writes samples that match no type."""
    own = rtps.Participant(domain)
    own.announce()
    kit.wait_for("the bridge's answer", lambda: own.other)
    own.announce()
    own.endpoint(b"\0\0\1\3", *rtps.INFO, reliable=True, kept=True)
    own.endpoint(b"\0\0\2\3", "rq/switchRequest", "std_srvs::srv::dds_::SetBool_Request_", reliable=True)
    for n in range(ENDPOINTS):
        entity = struct.pack(">I", (n + 16) << 8 | (3 if n % 3 else 4))
        kind = rtps.STRING if n % 2 else f"odd::msg::dds_::Odd{n}_"
        topic = ["rt/flood%d" % n, "rt/same", "rq/serves%dRequest" % n][n % 3]
        own.endpoint(entity, topic, kind, user=b"typehash=" + os.urandom(20))
        made["endpoints"] += 1
        if n % 50 == 0:
            own.announce()
            time.sleep(0.02)
    chance = random.Random(which)
    while not stop.is_set():
        own.announce()
        own.again() if chance.randrange(20) == 0 else None
        for lie in (
            os.urandom(chance.randrange(1000)),
            b"\0\1\0\0" + own.guid(b"\0\0\1\xc1") + struct.pack("<I", 0xFFFFFFFF),
            b"\0\1\0\0" + honest.guid(b"\0\0\1\xc1") + struct.pack("<I", 1) + rtps.text("/") + rtps.text("false") + bytes(8),
        ):
            own.write(b"\0\0\1\3", lie)
        for _ in range(20):
            own.write(b"\0\0\2\3", b"\0\1\0\0\1")
            own.write(struct.pack(">I", (chance.randrange(ENDPOINTS) + 16) << 8 | 3), os.urandom(chance.randrange(2000)))
        made["samples"] += 43
        time.sleep(0.02)
    own.close()


sent: list[int] = []
made = {"datagrams": 0, "endpoints": 0, "samples": 0}
options = kit.arguments()
domain = random.SystemRandom().randrange(100, 200)
with kit.stage() as stage:
    config = stage.write(
        "bridge.yaml",
        f"domain: {domain}\nrange: localhost\ntopics: [{{name: '/*', direction: both}}]\nservices: [{{name: '/*', direction: to_bus}}]\n",
    )
    env = stage.bus("robot")
    bridge = stage.start("bridge", options.binary / "ropewalk", "ros2", config, env=env)
    honest = rtps.Participant(domain)
    honest.endpoint(HONEST, "rt/honest", rtps.STRING, user=f"typehash={rtps.STRING_HASH};".encode())
    stop = threading.Event()
    threads = [threading.Thread(target=talk, args=(honest, stop), daemon=True)]
    threads[0].start()
    echo = stage.start("echo", options.binary / "ropewalk", "topic", "echo", "/honest", env=env)
    heard = lambda: sum("honest " in line for line in echo.lines())
    kit.wait_for("the honest messages", heard)
    time.sleep(1)
    before = bridge.resident()
    begun_sent, begun_heard = len(sent), heard()
    # Use its own name: DDS has no identities, so an impostor of the honest participant would be believed.
    own = rtps.Participant(domain)
    own.endpoint(HONEST, "rt/noise", rtps.STRING, reliable=True)
    seeds = [own.message(said) for said in own.announced] + [own.message(rtps.data(HONEST, bytes(4), 1, rtps.string("seed")), own.beat(rtps.WRITERS[0], bytes(4)))]
    ports = [rtps.metatraffic(domain), rtps.metatraffic(domain) + 1]
    threads += [threading.Thread(target=noise, args=(ports, seeds, stop), daemon=True)]
    threads += [threading.Thread(target=flood, args=(domain, n, stop), daemon=True) for n in range(3)]
    for thread in threads[1:]:
        thread.start()
    most, silence, last, at = before, 0.0, heard(), time.monotonic()
    end = time.monotonic() + 25
    while time.monotonic() < end and bridge.is_alive():
        time.sleep(0.1)
        most = max(most, bridge.resident())
        now = heard()
        if now > last:
            last, at = now, time.monotonic()
        silence = max(silence, time.monotonic() - at)
    alive, descriptors = bridge.is_alive(), bridge.descriptors() if bridge.is_alive() else 0
    got, out = heard() - begun_heard, len(sent) - begun_sent
    stop.set()
    for thread in threads:
        thread.join()
    log = len(bridge.log())
    problem = "" if alive else bridge.log()[-500:]

broken = []
if not alive:
    broken.append(f"the bridge ended: {problem}")
if most - before > MOST_MEMORY:
    broken.append(f"the bridge grew by {(most - before) >> 20} MiB; its participants may use {MOST_MEMORY >> 20} MiB")
if silence > MOST_SILENCE:
    broken.append(f"no honest message arrived for {silence:.1f} s")
if got < out / 2:
    broken.append(f"{got} of {out} honest messages arrived")
if log > 1 << 20:
    broken.append(f"the bridge wrote {log >> 10} KiB of log")
figures = {
    **made,
    "honest_sent": out,
    "honest_heard": got,
    "silence_s": round(silence, 1),
    "memory_mib": (most - before) >> 20,
    "descriptors": descriptors,
    "log_kib": log >> 10,
}
kit.verdict(figures, *broken)
