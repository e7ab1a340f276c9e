"""A node that uses rmw_zenoh's protocol, from one of two libraries: peer.py pyzeros|sdk|plain ROLE NAME [COUNT]

Prints `ready` once it is declared, and then what it receives and does, one line each. `plain` is Zenoh itself with rmw_zenoh's keys, for
a feature that neither library has: publishers that keep messages for late subscribers.
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
import sys
import time
from collections.abc import Callable

import xxhash
import zenoh

LIBRARY, ROLE, NAME = sys.argv[1:4]
COUNT = int(sys.argv[4]) if len(sys.argv) > 4 else 20
PERIOD = float(os.environ.get("PERIOD", "0.02"))
STRING, HASH = "std_msgs/msg/String", "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"
DEFINITION = "string data\n"
SWITCH, SWITCHED = "std_srvs/srv/SetBool", "RIHS01_abe9e4bb6b41b40e6789712c00ec8871923e089af3f667a79992a428cff2da0a"


def say(*words: object) -> None:
    print(*words, flush=True)


def wait_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not what():
        if time.monotonic() > end:
            sys.exit("nobody came")
        time.sleep(0.02)


def publish(put: Callable[[str], None], is_heard: Callable[[], bool]) -> None:
    say("ready")
    wait_for(is_heard)
    # Others learn about the subscription before they can use it.
    time.sleep(1)
    for i in range(COUNT):
        put(f"{LIBRARY} {i}")
        time.sleep(PERIOD)
    say("sent", COUNT)
    time.sleep(1e6)


def with_pyzeros() -> None:
    import numpy as np
    import pyzeros
    from pyzeros.builtin_msgs import Attachment
    from ros2_pyterfaces.cydr.idl import types
    from ros2_pyterfaces.cydr.std_msgs.msg import String
    from ros2_pyterfaces.cydr.std_srvs.srv import SetBool

    def text(data: object) -> str:
        return data.decode() if isinstance(data, bytes) else str(data)

    async def hear() -> None:
        subscription = pyzeros.Sub(String, NAME)
        say("ready")
        async for message in subscription.listen_reliable():
            say("heard", text(message.data))

    async def serve() -> None:
        server = pyzeros.Server(SetBool, NAME)
        say("ready")
        async for responder in server.listen_reliable():
            responder.response.success = not responder.request.data
            responder.response.message = b"switched"
            responder.send()
            say("served")

    async def call() -> None:
        client = pyzeros.Client(SetBool, NAME)
        say("ready")
        await client.wait_for_service()
        right = 0
        for i in range(COUNT):
            answer = await asyncio.wait_for(client.call_async(SetBool.Request(data=bool(i % 2))), 30)
            right += bool(answer.success) == (i % 2 == 0) and text(answer.message) == "switched"
        say("right", right)

    if ROLE == "warm":
        attachment = Attachment(sequence_number=types.int64(1), source_timestamp=types.int64(1), source_gid=np.zeros(16, np.uint8))
        for one in (String(data=b"x"), SetBool.Request(data=True), SetBool.Response(success=True, message=b"x"), attachment):
            type(one).deserialize(one.serialize())
        return
    with pyzeros.auto_context(node=f"{ROLE}_pyzeros"):
        if ROLE == "talk":
            publisher = pyzeros.Pub(String, NAME)
            publish(lambda t: publisher.publish(String(data=t.encode())), lambda: publisher.zenoh_pub.matching_status.matching)
        else:
            asyncio.run({"hear": hear, "serve": serve, "call": call}[ROLE]())


def with_sdk() -> None:
    import zenoh_ros2_sdk as sdk
    from zenoh_ros2_sdk.qos import QosDurability, QosProfile

    port = int(os.environ["ROUTER_PORT"])
    request, response = "bool data\n", "bool success\nstring message\n"
    if ROLE == "talk":
        one = sdk.ROS2Publisher(NAME, STRING, msg_definition=DEFINITION, node_name="talk_sdk", router_port=port)
        publish(lambda t: one.publish(data=t), lambda: one.pub.matching_status.matching)
    elif ROLE in ("hear", "hear_late"):
        qos = QosProfile(durability=QosDurability.TRANSIENT_LOCAL, history_depth=COUNT) if ROLE == "hear_late" else None
        one = sdk.ROS2Subscriber(
            NAME, STRING, lambda m: say("heard", m.data), msg_definition=DEFINITION, node_name=f"{ROLE}_sdk", router_port=port, qos=qos
        )
        say("ready")
        time.sleep(1e6)
    elif ROLE == "serve":

        def answer(asked: object) -> object:
            say("served")
            return server.response_msg_class(success=not asked.data, message="switched")

        server = sdk.ROS2ServiceServer(NAME, SWITCH, answer, request, response, node_name="serve_sdk", router_port=port, type_hash=SWITCHED)
        say("ready")
        time.sleep(1e6)
    elif ROLE == "call":
        client = sdk.ROS2ServiceClient(NAME, SWITCH, request, response, node_name="call_sdk", router_port=port, type_hash=SWITCHED)
        say("ready")
        wait_for(lambda: bool((info := sdk.get_service_info(NAME, router_port=port)) and info.server_count))
        answers = [client.call(data=bool(i % 2)) for i in range(COUNT)]
        say("right", sum(a is not None and a.success == (i % 2 == 0) and a.message == "switched" for i, a in enumerate(answers)))


def with_zenoh() -> None:
    """A publisher that keeps its messages, or a subscription that receives them."""
    import zenoh.ext

    session = zenoh.open(zenoh.Config.from_file(os.environ["ZENOH_SESSION_CONFIG_URI"]))
    domain = os.environ.get("ROS_DOMAIN_ID", "0")
    kind = {"keep": "MP", "follow": "MS"}[ROLE]
    topic = f"{domain}/{NAME.strip('/')}/std_msgs::msg::dds_::String_/{HASH}"
    place = f"@ros2_lv/{domain}/{session.info.zid()}/0"
    mangled = NAME.replace("/", "%")
    key = f"{place}/1/{kind}/%/%/{ROLE}_plain/{mangled}/std_msgs::msg::dds_::String_/{HASH}/:1:,{COUNT}:,:,:,,"
    gid = xxhash.xxh3_128(key.encode()).intdigest().to_bytes(16, "little")
    tokens = [session.liveliness().declare_token(k) for k in (f"{place}/0/NN/%/%/{ROLE}_plain", key)]

    def heard(sample: zenoh.Sample) -> None:
        payload = sample.payload.to_bytes()
        (length,) = struct.unpack_from("<I", payload, 4)
        assert sample.attachment is not None and len(sample.attachment.to_bytes()) == 33
        say("heard", payload[8 : 7 + length].decode())

    if ROLE == "follow":
        history = zenoh.ext.HistoryConfig(detect_late_publishers=True, max_samples=COUNT)
        one = zenoh.ext.declare_advanced_subscriber(session, topic, heard, history=history)
        say("ready")
        time.sleep(1e6)
    one = zenoh.ext.declare_advanced_publisher(
        session, topic, cache=zenoh.ext.CacheConfig(max_samples=COUNT), publisher_detection=True
    )
    for i in range(COUNT):
        text = f"plain {i}".encode() + b"\0"
        payload = b"\0\1\0\0" + struct.pack("<I", len(text)) + text
        one.put(payload, attachment=struct.pack("<qqB", i + 1, time.time_ns(), 16) + gid)
    say("ready", json.dumps(len(tokens)))
    time.sleep(1e6)


{"pyzeros": with_pyzeros, "sdk": with_sdk, "plain": with_zenoh}[LIBRARY]()
