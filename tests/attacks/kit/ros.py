"""A ROS 1 graph in Python for the attacks on the bridge: a master, calls of a node, and TCPROS, with plain sockets."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import xml.parsers.expat
import xmlrpc.client
from pathlib import Path
from socketserver import ThreadingMixIn
from xmlrpc.server import SimpleXMLRPCRequestHandler, SimpleXMLRPCServer

import kit

STRING_MD5 = "992ce8a1687cec8c8bd883ec73ca41d1"
IMAGE_MD5 = "060021388200f6f0f447d0fcd9c64743"


class Server(ThreadingMixIn, SimpleXMLRPCServer):
    daemon_threads = True
    request_queue_size = 256


class Handler(SimpleXMLRPCRequestHandler):
    rpc_paths = ()


def serve(functions: object) -> Server:
    """An XML-RPC server on loopback, in its own thread."""
    server = Server(("127.0.0.1", 0), requestHandler=Handler, logRequests=False, allow_none=True)
    server.register_instance(functions)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class Master:
    """The part of a master that the bridge needs. `publishers` are addresses of nodes by topic."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.types: dict[str, str] = {}
        self.publishers: dict[str, dict[str, str]] = {}
        self.subscribers: dict[str, dict[str, str]] = {}
        self.uri = "http://127.0.0.1:%d/" % serve(self).server_address[1]

    def publish(self, topic: str, kind: str, node: str, uri: str) -> None:
        with self.lock:
            self.types[topic] = kind
            self.publishers.setdefault(topic, {})[node] = uri

    def _dispatch(self, method: str, params: tuple) -> object:
        return getattr(self, "on_" + method, lambda *_: [0, f"no {method} here", 0])(*params)

    def on_getParam(self, caller, key):
        return [1, "", "attacked"]

    def on_getPid(self, caller):
        return [1, "", os.getpid()]

    def on_getTopicTypes(self, caller):
        with self.lock:
            return [1, "", [[t, k] for t, k in self.types.items()]]

    def on_getSystemState(self, caller):
        with self.lock:
            nodes = lambda which: [[t, list(n)] for t, n in which.items() if n]
            return [1, "", [nodes(self.publishers), nodes(self.subscribers), []]]

    def on_registerSubscriber(self, caller, topic, kind, api):
        with self.lock:
            self.subscribers.setdefault(topic, {})[caller] = api
            return [1, "", list(self.publishers.get(topic, {}).values())]

    def on_registerPublisher(self, caller, topic, kind, api):
        self.publish(topic, kind, caller, api)
        return [1, "", list(self.subscribers.get(topic, {}).values())]

    def on_unregisterSubscriber(self, caller, topic, api):
        with self.lock:
            return [1, "", int(self.subscribers.get(topic, {}).pop(caller, None) is not None)]

    def on_unregisterPublisher(self, caller, topic, api):
        with self.lock:
            return [1, "", int(self.publishers.get(topic, {}).pop(caller, None) is not None)]

    def bridge(self) -> str | None:
        """Returns the address of the bridge's methods, once the bridge has registered anything."""
        with self.lock:
            both = [*self.subscribers.values(), *self.publishers.values()]
            return next((nodes["/ropewalk"] for nodes in both if "/ropewalk" in nodes), None)


def port_of(uri: str) -> int:
    return int(uri.rstrip("/").rsplit(":", 1)[1])


def connect(port: int, source: str = "127.0.0.1", timeout: float = 5) -> socket.socket:
    """Connects to a port of this host from an address in 127.0.0.0/8; each address is a separate peer."""
    return socket.create_connection(("127.0.0.1", port), timeout, (source, 0))


def post(body: bytes, length: int | None = None) -> bytes:
    head = f"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\nContent-Length: {len(body) if length is None else length}\r\n\r\n"
    return head.encode() + body


def call(port: int, method: str, *params: object, source: str = "127.0.0.1", timeout: float = 5) -> list:
    """Calls a node from an address. Raises errors of sockets and XML-RPC."""
    with contextlib.closing(connect(port, source, timeout)) as s:
        s.sendall(post(xmlrpc.client.dumps(params, method).encode()))
        return answer(s)


def answer(s: socket.socket) -> list:
    """Returns the answer to a call, up to the end of the connection."""
    got = b""
    while piece := s.recv(65536):
        got += piece
    try:
        return xmlrpc.client.loads(got.partition(b"\r\n\r\n")[2])[0][0]
    except (xml.parsers.expat.ExpatError, xmlrpc.client.Fault, IndexError) as e:
        raise ConnectionError("no answer") from e


def header(**fields: str) -> bytes:
    """Encodes a connection header, preceded by its length."""
    out = b""
    for key, value in fields.items():
        field = f"{key}={value}".encode()
        out += struct.pack("<I", len(field)) + field
    return struct.pack("<I", len(out)) + out


def exactly(s: socket.socket, n: int) -> bytes:
    got = b""
    while len(got) < n:
        piece = s.recv(n - len(got))
        if not piece:
            raise ConnectionError("it closed")
        got += piece
    return got


def read_header(s: socket.socket) -> dict[str, str]:
    data = exactly(s, struct.unpack("<I", exactly(s, 4))[0])
    fields, at = {}, 0
    while at < len(data):
        (n,) = struct.unpack_from("<I", data, at)
        key, _, value = data[at + 4 : at + 4 + n].decode(errors="replace").partition("=")
        fields[key], at = value, at + 4 + n
    return fields


class Publisher:
    """A node that publishes: `talk(socket)` runs for each subscriber after the headers."""

    def __init__(self, kind: str, md5: str, talk, definition: str = "") -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.fields = {"callerid": "/attacker", "type": kind, "md5sum": md5, "message_definition": definition}
        self.talk = talk
        self.uri = "http://127.0.0.1:%d/" % serve(self).server_address[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _dispatch(self, method: str, params: tuple) -> object:
        if method == "requestTopic":
            return [1, "", ["TCPROS", "127.0.0.1", self.listener.getsockname()[1]]]
        return [0, "no", 0]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                s, _ = self.listener.accept()
                threading.Thread(target=self._one, args=(s,), daemon=True).start()

    def _one(self, s: socket.socket) -> None:
        with contextlib.suppress(OSError, struct.error), s:
            read_header(s)
            s.sendall(header(**self.fields))
            self.talk(s)

    def close(self) -> None:
        self.listener.close()


def bus_memory(program: kit.Program) -> int:
    """Returns the bytes of memory files that a process has reserved; touched or not, others cannot use them."""
    total, seen = 0, set()
    for fd in Path(f"/proc/{program.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if os.readlink(fd).startswith("/memfd:"):
                stat = os.stat(fd)
                if (stat.st_dev, stat.st_ino) not in seen:
                    seen.add((stat.st_dev, stat.st_ino))
                    total += stat.st_blocks * 512
    return total


def start_bridge(stage: kit.Stage, binary: Path, master: Master, *more: str) -> tuple[kit.Program, int]:
    """Starts the bridge. Returns it and the port of its methods."""
    env = {**stage.bus("robot"), "ROS_MASTER_URI": master.uri, "ROS_IP": "", "ROS_HOSTNAME": ""}
    program = stage.start("bridge", binary / "ropewalk", "ros1", "--json", *more, env=env)
    uri = kit.wait_for("the bridge registers at the master", master.bridge)
    return program, port_of(uri)
