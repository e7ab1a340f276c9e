"""A participant of Cyclone DDS, for `peers.py`."""

import os
import struct
import sys
import time
from dataclasses import dataclass

import cyclonedds.idl.annotations as annotate
import cyclonedds.idl.types as types
from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration
from peers import CALLS, DOMAIN, IMAGE, IMAGES, STRING, report, until_eof


@dataclass
@annotate.final
class Text(IdlStruct, typename=STRING):
    data: str


@dataclass
@annotate.final
class Numbered(IdlStruct, typename=IMAGE):
    number: types.uint32
    data: types.sequence[types.uint8]

    # Octet by octet, a megabyte takes Python several seconds.
    def serialize(self, buffer: object = None, use_version_2: bool = False) -> bytes:
        return b"\0\1\0\0" + struct.pack("<II", self.number, len(self.data)) + self.data

    @classmethod
    def deserialize(cls, data: bytes, **_: object) -> "Numbered":
        return cls(struct.unpack_from("<I", data, 4)[0], data[12:])


@dataclass
@annotate.final
class Request(IdlStruct, typename="std_srvs::srv::dds_::SetBool_Request_"):
    """With the header of rmw_cyclonedds_cpp, which correlates requests and replies."""

    guid: types.uint64
    number: types.int64
    data: bool


@dataclass
@annotate.final
class Reply(IdlStruct, typename="std_srvs::srv::dds_::SetBool_Response_"):
    guid: types.uint64
    number: types.int64
    success: bool
    message: str


def main(role: str, *args: str) -> None:
    ended = until_eof()
    participant = DomainParticipant(DOMAIN)
    sent: dict[int, float] = {}
    came: dict[int, float] = {}

    def qos(reliable: bool, depth: int, durability=Policy.Durability.Volatile) -> Qos:
        reliability = Policy.Reliability.Reliable(duration(seconds=1)) if reliable else Policy.Reliability.BestEffort
        return Qos(reliability, durability, Policy.History.KeepLast(depth))

    def wait(until, seconds: float, act=lambda: None) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not until() and not ended.is_set():
            act()
            time.sleep(0.001)

    def exchange(kind, topic: str, policies: Qos, message_of, number_of, count: int, period: float) -> None:
        writer = DataWriter(participant, Topic(participant, topic, kind), qos=policies)
        reader = DataReader(participant, Topic(participant, topic + "_back", kind), qos=policies)

        def take() -> None:
            for message in reader.take(N=20):
                came.setdefault(number_of(message), time.monotonic())

        wait(lambda: writer.get_matched_subscriptions() and reader.get_matched_publications(), 20)
        wait(lambda: False, 1)
        begin = time.monotonic()
        for n in range(count):
            message = message_of(n)
            sent[n] = time.monotonic()
            writer.write(message)
            wait(lambda: False, begin + (n + 1) * period - time.monotonic(), take)
        wait(lambda: len(came) == count, 5, take)
        report(sent, came)

    kept = qos(True, 100, Policy.Durability.TransientLocal) + Qos(
        Policy.DurabilityService(0, Policy.History.KeepLast(100), 1000, 100, 1000)
    )
    if role == "chatter":
        exchange(Text, "rt/chatter", qos(True, 10), lambda n: Text(str(n)), lambda m: int(m.data), 20, 0.05)
    elif role == "images":
        data = bytes(1_000_000)
        exchange(Numbered, "rt/img", qos(args[0] != "best", 10), lambda n: Numbered(n, data), lambda m: m.number, IMAGES, float(os.environ.get("PERIOD", "0.0333")))
    elif role == "late":
        reader = DataReader(participant, Topic(participant, "rt/latched", Text), qos=kept)
        wait(ended.is_set, 60, lambda: [print(m.data, flush=True) for m in reader.take(N=50)])
    elif role == "latch":
        writer = DataWriter(participant, Topic(participant, "rt/latched", Text), qos=kept)
        for n in range(21):
            writer.write(Text(f"kept {n}"))
        print("latched", flush=True)
    elif role == "client":
        writer = DataWriter(participant, Topic(participant, "rq/setRequest", Request), qos=qos(True, 10))
        reader = DataReader(participant, Topic(participant, "rr/setReply", Reply), qos=qos(True, 10))
        wait(lambda: writer.get_matched_subscriptions() and reader.get_matched_publications(), 20)
        # The server may not have discovered the other endpoint yet.
        wait(lambda: False, 0.5)
        good = 0
        for n in range(CALLS):
            writer.write(Request(0x0123456789ABCDEF, n + 1, n % 2 == 1))
            got: list[Reply] = []
            wait(lambda: got, 3, lambda: got.extend(reader.take(N=10)))
            good += got == [Reply(0x0123456789ABCDEF, n + 1, n % 2 == 1, "done")]
        print(f"answers {good} of {CALLS}", flush=True)
    elif role == "server":
        writer = DataWriter(participant, Topic(participant, "rr/setReply", Reply), qos=qos(True, 10))
        reader = DataReader(participant, Topic(participant, "rq/setRequest", Request), qos=qos(True, 10))
        answer = lambda r: writer.write(Reply(r.guid, r.number, r.data, "done"))
        wait(ended.is_set, 60, lambda: [answer(r) for r in reader.take(N=50)])
    elif role == "watch":
        writer = DataWriter(participant, Topic(participant, "rt/watched", Text), qos=kept)
        while not ended.is_set():
            wait(ended.is_set, 0.1)
            print(f"publishers 1 subscribers {len(writer.get_matched_subscriptions())}", flush=True)
    ended.wait()


if __name__ == "__main__":
    main(*sys.argv[2:])
