"""A client of the Foxglove protocol for the tests, by the protocol's specification, with Python's own modules only.

    client.py URL '{"protocols": [...], "headers": {...}}' STEP...

Each step is a JSON array; results are lines of JSON. It shares no code with the server.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import struct
import sys
import time
from collections import deque
from urllib.parse import urlsplit

WATCHDOG = 60.0


class WebSocket:
    def __init__(self, url: str, protocols: list[str], headers: dict[str, str]) -> None:
        parts = urlsplit(url)
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=WATCHDOG)
        lines = {
            "Host": parts.netloc,
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Protocol": ", ".join(protocols),
            **headers,
        }
        head = f"GET {parts.path or '/'}?{parts.query} HTTP/1.1\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in lines.items()) + "\r\n"
        self.socket.sendall(head.encode())
        self.file = self.socket.makefile("rb")
        self.status = self.file.readline().decode().strip()
        self.headers = {}
        while line := self.file.readline().decode().strip():
            name, value = line.split(":", 1)
            self.headers[name.lower()] = value.strip()

    def send(self, opcode: int, payload: bytes) -> None:
        mask = os.urandom(4)
        n = len(payload)
        head = bytes([0x80 | opcode])
        if n < 126:
            head += bytes([0x80 | n])
        elif n < 65536:
            head += struct.pack(">BH", 0x80 | 126, n)
        else:
            head += struct.pack(">BQ", 0x80 | 127, n)
        self.socket.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(payload)))

    def receive(self) -> tuple[int, bytes]:
        first, n = self.file.read(2)
        if n == 126:
            (n,) = struct.unpack(">H", self.file.read(2))
        elif n == 127:
            (n,) = struct.unpack(">Q", self.file.read(8))
        return first & 15, self.file.read(n)


class Client:
    def __init__(self, web: WebSocket) -> None:
        self.web = web
        self.channels: dict[str, dict] = {}
        self.services: dict[str, dict] = {}
        self.subscribed: dict[int, str] = {}
        self.data: list[tuple[str, bytes]] = []
        self.ops: list[dict] = []
        self.binary: list[bytes] = []
        # It answers pings as if it received this many bytes a second.
        self.rate = float("inf")
        self.unanswered, self.owes = 0, False
        # The last frames, for errors.
        self.history: deque[str] = deque(maxlen=12)

    def receive(self) -> None:
        opcode, payload = self.web.receive()
        self.history.append(f"{opcode}: {len(payload)} bytes" if opcode != 1 else payload[:80].decode(errors="replace"))
        self.unanswered += len(payload)
        self.owes = opcode != 9 and (self.owes or len(payload) >= 1 << 15)
        if opcode == 9:
            time.sleep(self.unanswered / self.rate)
            self.unanswered = 0
            self.web.send(10, payload)
        elif opcode == 1:
            op = json.loads(payload)
            self.ops.append(op)
            match op["op"]:
                case "advertise":
                    self.channels.update({c["topic"]: c for c in op["channels"]})
                case "unadvertise":
                    self.channels = {t: c for t, c in self.channels.items() if c["id"] not in op["channelIds"]}
                case "advertiseServices":
                    self.services.update({s["name"]: s for s in op["services"]})
        elif opcode == 2 and payload[0] == 1:
            (subscription,) = struct.unpack_from("<I", payload, 1)
            self.data.append((self.subscribed[subscription], payload[13:]))
        elif opcode == 2:
            self.binary.append(payload)

    def until(self, done) -> object:
        end = time.monotonic() + WATCHDOG
        while not (found := done()):
            if time.monotonic() > end:
                raise SystemExit("watchdog")
            self.receive()
        return found

    def step(self, what: str, *args) -> object:
        send = lambda op: self.web.send(1, json.dumps(op).encode())
        match what:
            case "channel":
                return self.until(lambda: self.channels.get(args[0]))
            case "gone":
                return self.until(lambda: args[0] not in self.channels)
            case "subscribe":
                channel = self.until(lambda: self.channels.get(args[0]))
                number = len(self.subscribed) + 100
                self.subscribed[number] = args[0]
                return send({"op": "subscribe", "subscriptions": [{"id": number, "channelId": channel["id"]}]})
            case "unsubscribe":
                number = next(n for n, topic in self.subscribed.items() if topic == args[0])
                return send({"op": "unsubscribe", "subscriptionIds": [number]})
            case "data":
                found = self.until(lambda: next((d for d in self.data if d[0] == args[0]), None))
                self.data.remove(found)
                # The ping behind a long message.
                self.until(lambda: len(found[1]) < 1 << 15 or not self.owes)
                return found[1].hex()
            case "op":
                found = self.until(lambda: next((o for o in self.ops if o["op"] == args[0]), None))
                self.ops.remove(found)
                return found
            case "until":
                # The first of these ops with these values; those before it are forgotten.
                def found_one() -> dict | None:
                    while found := next((o for o in self.ops if o["op"] == args[0]), None):
                        self.ops.remove(found)
                        if contains(found, args[1]):
                            return found
                    return None

                return self.until(found_one)
            case "send":
                return send(args[0])
            case "bytes":
                return self.web.send(2, bytes.fromhex(args[0]))
            case "binary":
                return self.until(lambda: self.binary and self.binary.pop(0)).hex()
            case "call":
                service = self.until(lambda: self.services.get(args[0]))
                encoding = args[1].encode()
                head = struct.pack("<BIII", 2, service["id"], 7, len(encoding))
                return self.web.send(2, head + encoding + bytes.fromhex(args[2]))
            case "rate":
                self.rate = args[0]
                return None
            case "wait":
                return input()
        raise SystemExit(f"unknown step {what}")


def contains(value: object, wanted: object) -> bool:
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(contains(value.get(k), v) for k, v in wanted.items())
    return value == wanted


def main() -> None:
    options = json.loads(sys.argv[2])
    web = WebSocket(sys.argv[1], options.get("protocols", ["foxglove.websocket.v1"]), options.get("headers", {}))
    print(json.dumps([web.status, web.headers.get("sec-websocket-protocol")]), flush=True)
    if " 101 " not in web.status:
        return
    client = Client(web)
    for step in sys.argv[3:]:
        try:
            result = client.step(*json.loads(step))
        except TimeoutError:
            raise SystemExit(f"{step[:80]} takes too long; topics: {sorted(client.channels)}; {client.history}") from None
        print(json.dumps(result), flush=True)


main()
