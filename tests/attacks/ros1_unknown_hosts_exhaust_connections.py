#!/usr/bin/env python3
"""Unknown hosts connect to the ROS 1 bridge hundreds of times per second, send nothing, and try to stop or divert it.

Nodes on this host, whose requests take a second to arrive, must be answered all the time. A false `publisherUpdate` must not
override the master, and `shutdown` must be refused.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
import time
import xmlrpc.client

import kit
from kit import ros

RATE = 500
SECONDS = 8


def flood(ports: list[int], stop: threading.Event) -> None:
    """Connects and sends nothing."""
    held: list[socket.socket] = []
    begun = time.monotonic()
    for n in itertools.count():
        if stop.is_set():
            break
        with contextlib.suppress(OSError):
            held.append(ros.connect(ports[n % len(ports)], f"127.0.1.{1 + n % 200}", 0.2))
        for old in held[:-400]:
            old.close()
        del held[:-400]
        time.sleep(max(0.0, begun + n / RATE - time.monotonic()))
    for s in held:
        s.close()
    made.append(n)


def slow_call(port: int) -> bool:
    """Makes a call whose second half arrives a second later, as over a bad radio link."""
    request = ros.post(xmlrpc.client.dumps(("/honest",), "getPid").encode())
    try:
        with ros.connect(port) as s:
            s.sendall(request[:20])
            time.sleep(1)
            s.sendall(request[20:])
            return ros.answer(s)[0] == 1
    except (OSError, ValueError, IndexError):
        return False


def slow_listener(port: int) -> bool:
    """A subscriber whose header takes a second to arrive."""
    fields = ros.header(callerid="/listener", topic="/out", type="std_msgs/String", md5sum=ros.STRING_MD5)
    try:
        with ros.connect(port) as s:
            s.sendall(fields[:20])
            time.sleep(1)
            s.sendall(fields[20:])
            ros.read_header(s)
            return len(ros.exactly(s, 4)) == 4
    except (OSError, ValueError, IndexError):
        return False


made: list[int] = []
options = kit.arguments()
with kit.stage() as stage:
    master = ros.Master()
    diverted = threading.Event()
    publisher = ros.Publisher("std_msgs/String", ros.STRING_MD5, lambda s: s.recv(1))
    hostile = ros.Publisher("std_msgs/String", ros.STRING_MD5, lambda s: (diverted.set(), s.recv(1)))
    master.publish("/chatter", "std_msgs/String", "/talker", publisher.uri)
    program, api = ros.start_bridge(stage, options.binary, master, "--topic", "/chatter=to_bus", "--topic", "/out=to_ros")
    stage.start(
        "pub", options.binary / "ropewalk", "topic", "pub", "--rate", "20", "/out", "std_msgs/String", "data: a", env=stage.bus("robot")
    )
    kit.wait_for("/out is in ROS", lambda: "/out" in master.publishers)
    _, _, place = ros.call(api, "requestTopic", "/honest", "/out", [["TCPROS"]])
    descriptors = program.descriptors()
    stop = threading.Event()
    flooder = threading.Thread(target=flood, args=([api, place[2]], stop))
    flooder.start()
    calls, listeners = [], []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        calls.append(slow_call(api))
        listeners.append(slow_listener(place[2]))
    most = program.descriptors() - descriptors
    stop.set()
    flooder.join()
    time.sleep(5)
    kept = program.descriptors() - descriptors
    with contextlib.suppress(OSError, ValueError, IndexError, xmlrpc.client.Fault):
        ros.call(api, "publisherUpdate", "/master", "/chatter", [hostile.uri], source="127.0.1.1")
    is_diverted = diverted.wait(3)
    with contextlib.suppress(OSError, ValueError, IndexError, xmlrpc.client.Fault):
        ros.call(api, "shutdown", "/master", "an unknown host's wish", source="127.0.1.1")
    time.sleep(2)
    alive = program.is_alive()
    program.stop()

broken = []
if not all(calls) or not all(listeners):
    broken.append(f"{calls.count(False)} of {len(calls)} calls and {listeners.count(False)} of {len(listeners)} subscribers on this host were disconnected")
if kept > 4:
    broken.append(f"{kept} descriptors kept after 5 s")
if is_diverted:
    broken.append("the bridge subscribed where an unknown host's publisherUpdate sent it")
if not alive:
    broken.append("an unknown host's shutdown ended the bridge")
figures = {
    "connects": made[0],
    "calls": len(calls),
    "calls_lost": calls.count(False),
    "subscribers_lost": listeners.count(False),
    "descriptors": most,
    "kept_descriptors": kept,
    "diverted": is_diverted,
    "alive": alive,
}
kit.verdict(figures, *broken)
