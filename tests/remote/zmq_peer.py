#!/usr/bin/env python3
"""A pyzmq socket, driven line by line, so that tests talk to an independent ZeroMQ implementation.

    zmq_peer.py req ADDRESS          REQ with REQ_CORRELATE and REQ_RELAXED: a line is sent, the answer printed
    zmq_peer.py req-plain ADDRESS    REQ without
    zmq_peer.py dealer ADDRESS       a line is sent as parts with commas between, each answer's parts printed
    zmq_peer.py rep ADDRESS          prints each request, answers with the next line
    zmq_peer.py router ADDRESS       prints each request's parts; a line (parts) is an answer, `-` none
    zmq_peer.py pub ADDRESS          sends each line to everyone
    zmq_peer.py sub ADDRESS          prints each frame
    zmq_peer.py sub-stalled ADDRESS  subscribes, reads nothing until a line comes, then all

Lines are hexadecimal; an empty frame is `.`. Without an answer within 15 s it prints `timeout`; within one second if the
line begins with `silent `, which means that no answer is expected. A socket that binds prints its address first.
"""

import os
import sys
import threading
import time

import zmq


def show(frame):
    return bytes(frame).hex() or "."


def parse(text):
    return b"" if text == "." else bytes.fromhex(text)


def say(text):
    print(text, flush=True)


def end_with(parent):
    """Exits when the test is gone: a socket that waits forever would not notice."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)


def main():
    threading.Thread(target=end_with, args=[os.getppid()], daemon=True).start()
    mode, address = sys.argv[1:]
    kind = {"req": zmq.REQ, "req-plain": zmq.REQ, "dealer": zmq.DEALER, "rep": zmq.REP, "router": zmq.ROUTER,
            "pub": zmq.PUB, "sub": zmq.SUB, "sub-stalled": zmq.SUB}[mode]
    socket = zmq.Context().socket(kind)
    socket.linger = 0
    if mode == "req":
        socket.setsockopt(zmq.REQ_CORRELATE, 1)
        socket.setsockopt(zmq.REQ_RELAXED, 1)
    if mode == "sub-stalled":
        socket.rcvhwm = 1
        socket.rcvbuf = 4096
    if kind == zmq.SUB:
        socket.subscribe(b"")
    if mode in ("rep", "router", "pub"):
        socket.bind(address)
        say(socket.last_endpoint.decode())
    else:
        socket.connect(address)
    if mode == "sub-stalled":
        say("connected")
        sys.stdin.readline()
    if kind == zmq.SUB:
        socket.rcvtimeo = -1
        while True:
            say(show(socket.recv()))
    if mode == "rep":
        socket.rcvtimeo = -1
        while True:
            say(show(socket.recv()))
            socket.send(parse(sys.stdin.readline().strip()))
    if mode == "router":
        socket.rcvtimeo = -1
        while True:
            peer, *parts = socket.recv_multipart()
            say(",".join(map(show, parts)))
            line = sys.stdin.readline().strip()
            if line != "-":
                socket.send_multipart([peer, *map(parse, line.split(","))])
    for line in sys.stdin:
        parts = line.strip().removeprefix("silent ")
        socket.rcvtimeo = 15000 if parts == line.strip() else 1000
        parts = [parse(part) for part in parts.split(",")]
        socket.send_multipart(parts)
        if mode != "pub":
            try:
                say(",".join(map(show, socket.recv_multipart())))
            except zmq.Again:
                say("timeout")


if __name__ == "__main__":
    main()
