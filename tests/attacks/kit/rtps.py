"""A DDS participant in Python for the attacks on the bridge to ROS 2. It announces itself and endpoints, and writes samples, with plain sockets.

`again` retransmits lost announcements; there is no other reliability.
"""

from __future__ import annotations

import os
import socket
import struct
import threading

# Discovery entities: writer and reader for participants, for writers, for readers.
PARTICIPANTS = (b"\0\1\0\xc2", b"\0\1\0\xc7")
WRITERS = (b"\0\0\3\xc2", b"\0\0\3\xc7")
READERS = (b"\0\0\4\xc2", b"\0\0\4\xc7")
# All built-in discovery endpoints.
BUILTIN = 0xC3F
STRING = "std_msgs::msg::dds_::String_"
STRING_HASH = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"
INFO = ("ros_discovery_info", "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_")


def metatraffic(domain: int, number: int = 0) -> int:
    """Returns the discovery port of a domain's participant on this host; its data port is the next."""
    return 7400 + 250 * domain + 10 + 2 * number


def parameter(number: int, value: bytes) -> bytes:
    value += b"\0" * (-len(value) % 4)
    return struct.pack("<HH", number, len(value)) + value


def text(value: str) -> bytes:
    return struct.pack("<I", len(value) + 1) + value.encode() + b"\0"


def octets(value: bytes) -> bytes:
    return struct.pack("<I", len(value)) + value


def submessage(kind: int, body: bytes, flags: int = 1) -> bytes:
    return struct.pack("<BBH", kind, flags, len(body)) + body


def data(writer: bytes, reader: bytes, number: int, payload: bytes) -> bytes:
    head = struct.pack("<HH", 0, 16) + reader + writer + struct.pack("<iI", number >> 32, number & 0xFFFFFFFF)
    return submessage(0x15, head + payload, 5)


def heartbeat(writer: bytes, reader: bytes, last: int, count: int) -> bytes:
    """Builds a heartbeat: without it a reader does not know whether there are earlier samples."""
    return submessage(0x07, reader + writer + struct.pack("<iIiIi", 0, 1, 0, last, count), 3)


def string(value: str) -> bytes:
    """`std_msgs/String` in CDR."""
    return b"\0\1\0\0" + text(value)


class Participant:
    """A participant and its announcements to the first `others` participants of the domain on this host."""

    def __init__(self, domain: int, others: int = 1) -> None:
        self.domain = domain
        self.prefix = b"\1\xfe" + os.urandom(10)
        self.metatraffic, self.data = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        for s in (self.metatraffic, self.data):
            s.bind(("127.0.0.1", 0))
        self.ports = [metatraffic(domain, n) for n in range(others)]
        self.announced: list[bytes] = []
        self.numbers: dict[bytes, int] = {}
        self.count = 0
        # The prefix of the first participant that sends something.
        self.other = b""
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self) -> None:
        while True:
            try:
                datagram = self.metatraffic.recv(65536)
            except OSError:
                return
            if datagram[:4] == b"RTPS" and not self.other:
                self.other = datagram[8:20]

    def message(self, *submessages: bytes) -> bytes:
        return b"RTPS\2\3\1\xfe" + self.prefix + b"".join(submessages)

    def send(self, *submessages: bytes, port: int | None = None) -> None:
        for to in [port] if port else self.ports:
            self.metatraffic.sendto(self.message(*submessages), ("127.0.0.1", to))

    def guid(self, entity: bytes) -> bytes:
        return self.prefix + entity

    def announce(self) -> None:
        """Announces itself, and confirms that it received the other's messages."""

        def locator(s: socket.socket) -> bytes:
            return struct.pack("<iI", 1, s.getsockname()[1]) + bytes(12) + socket.inet_aton("127.0.0.1")

        said = b"\0\3\0\0" + b"".join(
            [
                parameter(0x15, b"\2\3"),
                parameter(0x16, b"\1\xfe"),
                parameter(0x50, self.guid(b"\0\0\1\xc1")),
                parameter(0x58, struct.pack("<I", BUILTIN)),
                parameter(0x2, struct.pack("<iI", 60, 0)),
                parameter(0x32, locator(self.metatraffic)),
                parameter(0x31, locator(self.data)),
                parameter(0x2C, octets(b"enclave=/;")),
                parameter(1, b""),
            ]
        )
        self.send(data(*PARTICIPANTS, 1, said))
        if self.other:
            self.count += 1
            for writer, reader in (WRITERS, READERS):
                nothing = reader + writer + struct.pack("<iIIi", 0, 1, 0, self.count)
                self.send(submessage(0x0E, self.other), submessage(0x06, nothing, 3))

    def endpoint(self, entity: bytes, topic: str, kind: str, reliable: bool = False, kept: bool = False, user: bytes = b"") -> None:
        """Announces a writer or a reader, depending on the last byte of `entity`."""
        through = WRITERS if entity[3] & 7 in (2, 3) else READERS
        number = self.numbers[through[0]] = self.numbers.get(through[0], 0) + 1
        said = b"\0\3\0\0" + b"".join(
            [
                parameter(0x5A, self.guid(entity)),
                parameter(0x5, text(topic)),
                parameter(0x7, text(kind)),
                parameter(0x1A, struct.pack("<IiI", 2 if reliable else 1, 0, 0)),
                parameter(0x1D, struct.pack("<I", int(kept))),
                parameter(0x2C, octets(user)),
                parameter(1, b""),
            ]
        )
        self.announced.append(data(*through, number, said))
        self.send(self.announced[-1], self.beat(*through))

    def again(self) -> None:
        """Announces all endpoints again."""
        for said in self.announced:
            self.send(said)
        for through in (WRITERS, READERS):
            if through[0] in self.numbers:
                self.send(self.beat(*through))

    def write(self, entity: bytes, payload: bytes) -> None:
        """Writes a sample for all readers."""
        number = self.numbers[entity] = self.numbers.get(entity, 0) + 1
        for port in self.ports:
            self.send(data(entity, bytes(4), number, payload), self.beat(entity, bytes(4)), port=port + 1)

    def beat(self, writer: bytes, reader: bytes) -> bytes:
        self.count += 1
        return heartbeat(writer, reader, self.numbers[writer], self.count)

    def close(self) -> None:
        self.metatraffic.close()
        self.data.close()
