"""A peer of a link that uses QUIC with the keys of a host, in Python, after docs/wire/link.md; with `aioquic` (PyPI).

It can send what RFC 9000 forbids: `inject` puts arbitrary bytes into a packet as frames.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import select
import ssl
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import cannot_run, wire

try:
    from aioquic.quic import events
    from aioquic.quic.configuration import QuicConfiguration
    from aioquic.quic.connection import QuicConnection
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.x509 import load_pem_x509_certificate
except ImportError:
    cannot_run("it needs aioquic (tests/attacks/requirements.txt)")

ALPN = "ropewalk-link/4"
# Size in bytes of the carrier's largest datagram, and of its packets.
DATAGRAM = 1438
PACKET = 1472


class Raw(bytes):
    """QUIC frames as they appear in a packet. The first kind takes one byte."""


class Reckless(QuicConnection):
    """A connection without congestion control and pacing."""

    def _write_datagram_frame(self, builder, data, frame_type):  # noqa: ANN001, ANN202
        if not isinstance(data, Raw):
            return super()._write_datagram_frame(builder=builder, data=data, frame_type=frame_type)
        builder.start_frame(data[0], capacity=len(data)).push_bytes(data[1:])
        return True

    def datagrams_to_send(self, now: float) -> list:
        self._loss._pacer.packet_time = None
        self._loss._cc.congestion_window = 1 << 40
        return super().datagrams_to_send(now)


def admission(folder: Path) -> bytes:
    """Returns the required destination connection ID of a first packet."""
    secret = bytes.fromhex((folder / "admission.key").read_text().strip())
    random = os.urandom(8)
    return random + hmac.new(secret, random, hashlib.sha256).digest()[:8]


def host_key(folder: Path) -> Ed25519PrivateKey:
    """Reads a host's key. It is a PKCS #8 key after RFC 5958 that includes the public key, which `cryptography` cannot read."""
    text = (folder / "host.key").read_text()
    der = base64.b64decode("".join(line for line in text.splitlines() if "-" not in line))
    at = der.index(b"\x04\x22\x04\x20") + 4
    return Ed25519PrivateKey.from_private_bytes(der[at : at + 32])


def piece(number: int, length: int, offset: int, bytes_: bytes) -> bytes:
    """One piece of a long datagram."""
    return b"\xc3" + b"".join(n.to_bytes(2, "little") for n in (number, length, offset)) + bytes_


def part(number: int, index: int, count: int, bytes_: bytes) -> bytes:
    """One part of a packet: a UDP datagram."""
    return b"\x15" + number.to_bytes(2, "little") + bytes([index << 4 | count]) + bytes_


@dataclass
class Peer(wire.Peer):
    """One end of a link's session over QUIC. `keys` is the folder of a host's bundle. It dials, and ignores connection attempts of others."""

    keys: Path = Path()
    # UDP payload size of its packets in bytes.
    size: int = PACKET
    # How the other end closed the last connection.
    ended: str = ""
    connected: bool = False
    _parts: dict[int, dict[int, bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.dial()

    def dial(self) -> None:
        """Opens a connection. Forgets an existing one without closing it."""
        settings = QuicConfiguration(
            alpn_protocols=[ALPN],
            is_client=True,
            max_datagram_frame_size=65536,
            max_datagram_size=self.size,
            verify_mode=ssl.CERT_NONE,
            connection_id_length=4,
            idle_timeout=10,
        )
        settings.certificate = load_pem_x509_certificate((self.keys / "host.pem").read_bytes())
        settings.private_key = host_key(self.keys)
        self.connection = Reckless(configuration=settings)
        self.connection._peer_cid.cid = self.connection._original_destination_connection_id = admission(self.keys)
        self.connection.connect(self.to, time.monotonic())
        self.connected = False
        self._dialled = time.monotonic()
        self.flush()

    def inject(self, frames: bytes) -> None:
        """Sends QUIC frames in a packet that they fit into."""
        self.connection._datagrams_pending.append(Raw(frames))

    def give(self, datagram: bytes) -> None:
        if self.connected:
            self.connection._datagrams_pending.append(datagram)
            # Sending many together is cheaper.
            if len(self.connection._datagrams_pending) >= 32:
                self.flush()

    def flush(self) -> None:
        """Passes pending data to the socket."""
        for packet, _ in self.connection.datagrams_to_send(time.monotonic()):
            self.raw(packet)

    def raw(self, packet: bytes) -> None:
        """Sends a UDP datagram as it is."""
        try:
            self.socket.sendto(packet, self.to)
        except OSError:
            pass  # The other end's buffer is full, or its port is closed.

    def whole(self, packet: bytes) -> bytes | None:
        """Returns the packet that this datagram, possibly a part, completes."""
        if packet[0] & 0x40:
            return packet
        number, index, count = int.from_bytes(packet[1:3], "little"), packet[3] >> 4, packet[3] & 15
        parts = self._parts.setdefault(number, {})
        parts[index] = packet[4:]
        if len(parts) < count:
            return None
        del self._parts[number]
        return b"".join(parts[i] for i in sorted(parts))

    def take(self, timeout: float) -> list[bytes]:
        """Returns received datagrams, after `timeout` at the latest."""
        now = time.monotonic()
        timer = self.connection.get_timer()
        if timer is not None and timer <= now:
            self.connection.handle_timer(now)
        if not self.connected and now > self._dialled + 1:
            self.dial()
        self.flush()
        if select.select([self.socket], [], [], timeout)[0]:
            for _ in range(64):
                try:
                    packet, _ = self.socket.recvfrom(65536, 0x40)
                except OSError:
                    break
                if packet and (packet := self.whole(packet)):
                    self.connection.receive_datagram(packet, self.to, time.monotonic())
        found = []
        while event := self.connection.next_event():
            if isinstance(event, events.HandshakeCompleted):
                self.connected = True
            elif isinstance(event, events.DatagramFrameReceived):
                found.append(event.data)
        # At once, and not three timeouts later like the event.
        if (end := self.connection._close_event) and self.connected:
            self.ended = f"{end.error_code:#x} {end.reason_phrase}"
            self.connected = self.up = False
            self._dialled = time.monotonic() - 0.9
        self.flush()
        # Path probes are already answered, and nothing here is split into pieces.
        return [d for d in found if d[:1] not in (b"\xc4", b"\xc3")]

    def close(self) -> None:
        """Closes the connection."""
        self.connection.close(error_code=0)
        self.flush()
        self.socket.close()
