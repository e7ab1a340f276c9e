"""The peers in Python (CONTRACT.md): `ropewalk-python` with Ropewalk's package, `rospy`, and `rclpy-…` with nodes of ROS 2. The payload
is the data of a sensor_msgs/Image."""

import argparse
import json
import os
import re
import sys
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "common"))
from orchestrated import Orchestrator, Parser, fail, say, version  # noqa: E402


class Log:
    def __init__(self, o):
        self.o, self.latency, self.sequence = o, [], []
        self.last = o.warmup + o.messages - 1

    def receive(self, payload):
        """Called first in the callback; `payload` is an array, or bytes."""
        now = time.monotonic_ns()
        payload = memoryview(payload)
        sent = int.from_bytes(payload[:8], "little")
        sequence = int.from_bytes(payload[8:16], "little")
        if sequence >= self.o.warmup:
            if sequence > self.last:
                fail(1, f"message {sequence} does not belong to this cell: give each cell its own --topic")
            self.latency.append(now - sent)
            self.sequence.append(sequence)
        if self.o.work_us:
            time.sleep(self.o.work_us / 1e6)
        if sequence == self.last:
            say("done")

    def print(self):
        say(json.dumps({"received": len(self.latency), "latency_ns": self.latency, "sequence": self.sequence}))


def send_all(o, orchestrator, loan, publish):
    """`loan()` returns a writable array for the next payload, `publish(array)` sends it."""
    took, refused = [], 0
    period = 1 / o.rate if o.rate > 0 else 0
    start = time.monotonic() + 0.2
    for sequence in range(o.warmup + o.messages):
        left = start + period * sequence - time.monotonic()
        if left > 0:
            orchestrator.stop.wait(left)
        if orchestrator.stop.is_set():
            break
        payload = loan()
        if payload is None:
            refused += sequence >= o.warmup
            continue
        payload[:] = (sequence * 31 + 1) & 0xFF
        payload[8:16] = list(sequence.to_bytes(8, "little"))
        # numpy's cheapest way to write eight bytes is a view of one word, which needs no new object for the stamp.
        stamp = payload[:8].view("<u8")
        before = time.monotonic_ns()
        stamp[0] = before
        publish(payload)
        if sequence >= o.warmup:
            took.append(time.monotonic_ns() - before)
    say(json.dumps({"published": len(took), "refused": int(refused), "publish_ns": took}))


class Ropewalk:
    def __init__(self, o, orchestrator):
        import ropewalk

        self.ropewalk, self.o, self.orchestrator = ropewalk, o, orchestrator
        self.node = ropewalk.Node("bench")

    def publish(self):
        o = self.o
        limit = {"memory_limit": o.limit} if o.limit else {}
        publisher = self.node.publisher(o.topic, "sensor_msgs/Image", **limit)
        while publisher.subscriber_count < o.subscribers and not self.orchestrator.stop.wait(0.005):
            pass
        image = publisher.message(width=o.size, height=1, step=o.size, encoding="mono8")
        image.header.frame_id = "camera"

        def loan():
            try:
                publisher.allocate(image, data=o.size)
            except self.ropewalk.MemoryShort:
                return None
            return image.data

        ready_and_go(self.orchestrator)
        send_all(o, self.orchestrator, loan, lambda _: publisher.publish(image))
        self.orchestrator.stop.wait()

    def subscribe(self):
        log = Log(self.o)
        depth = {"depth": self.o.depth or 32}
        subscriber = self.node.subscriber(self.o.topic, "sensor_msgs/Image", **depth)
        say("ready")
        while not self.orchestrator.stop.is_set():
            image = subscriber.take(0.5)
            if image is not None:
                log.receive(image.data)
                # As with a callback's argument, which is released before the next message arrives.
                del image
        log.print()


class Rospy:
    def __init__(self, o, orchestrator):
        import rospy
        from sensor_msgs.msg import Image

        self.rospy, self.Image, self.o, self.orchestrator = rospy, Image, o, orchestrator
        rospy.init_node("ropewalk_bench_" + o.command, anonymous=True, disable_signals=True, disable_rosout=True)

    def publish(self):
        import numpy

        o = self.o
        publisher = self.rospy.Publisher(o.topic, self.Image, queue_size=o.depth or 32)
        while publisher.get_num_connections() < o.subscribers and not self.orchestrator.stop.wait(0.005):
            pass
        image = self.Image(width=o.size, height=1, step=o.size, encoding="mono8")
        image.header.frame_id = "camera"
        payload = numpy.zeros(o.size, numpy.uint8)

        def publish(pixels):
            # A rospy message's data are bytes; every user of rospy has this copy.
            image.data = pixels.tobytes()
            publisher.publish(image)

        ready_and_go(self.orchestrator)
        send_all(o, self.orchestrator, lambda: payload, publish)
        self.orchestrator.stop.wait()

    def subscribe(self):
        log = Log(self.o)
        # Without a large buffer, rospy falls behind forever with large messages.
        subscriber = self.rospy.Subscriber(self.o.topic, self.Image, lambda image: log.receive(image.data),
                                           queue_size=self.o.depth or 32, buff_size=2 * self.o.size + 65536)
        say("ready")
        self.orchestrator.stop.wait()
        subscriber.unregister()
        log.print()


class Rclpy:
    """rclpy/run selects the middleware."""

    def __init__(self, o, orchestrator):
        # The processes of a cell share a folder; other programs on this machine may use DDS.
        os.environ["ROS_DOMAIN_ID"] = str(1 + zlib.crc32(os.environ.get("ROPEWALK_RUNTIME_DIR", "").encode()) % 100)
        import rclpy
        from rclpy.qos import QoSProfile
        from sensor_msgs.msg import Image

        self.rclpy, self.Image, self.o, self.orchestrator = rclpy, Image, o, orchestrator
        self.qos = QoSProfile(depth=o.depth or 32)
        # The orchestrator's signals end it.
        rclpy.init(signal_handler_options=rclpy.signals.SignalHandlerOptions.NO)
        self.node = rclpy.create_node(f"ropewalk_bench_{o.command}_{os.getpid()}", enable_rosout=False, start_parameter_services=False)

    def end(self):
        self.node.destroy_node()
        self.rclpy.shutdown()

    def publish(self):
        import numpy

        o = self.o
        publisher = self.node.create_publisher(self.Image, o.topic, self.qos)
        while publisher.get_subscription_count() < o.subscribers and not self.orchestrator.stop.wait(0.005):
            pass
        image = self.Image(width=o.size, height=1, step=o.size, encoding="mono8", data=bytes(o.size))
        image.header.frame_id = "camera"
        # Fills the message's own array, because an assigned one is copied.
        payload = numpy.frombuffer(image.data, numpy.uint8)
        ready_and_go(self.orchestrator)
        send_all(o, self.orchestrator, lambda: payload, lambda _: publisher.publish(image))
        self.orchestrator.stop.wait()
        self.end()

    def subscribe(self):
        log = Log(self.o)
        subscription = self.node.create_subscription(self.Image, self.o.topic, lambda image: log.receive(image.data), self.qos)
        executor = self.rclpy.executors.SingleThreadedExecutor()
        executor.add_node(self.node)
        say("ready")
        while not self.orchestrator.stop.is_set():
            executor.spin_once(timeout_sec=0.5)
        self.node.destroy_subscription(subscription)
        log.print()
        self.end()


def ready_and_go(orchestrator):
    if not orchestrator.stop.is_set():
        say("ready")
    orchestrator.go.wait()


SYSTEMS = {
    "ropewalk-python": Ropewalk,
    "rospy": Rospy,
    "rclpy-ropewalk": Rclpy,
    "rclpy-fastdds": Rclpy,
    "rclpy-fastdds-udp": Rclpy,
}


def number(low, high):
    def read(text):
        if not text.isdecimal() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text}: give a whole number from {low} to {high}")
        return int(text)

    return read


def hertz(text):
    value = float(text)
    if not 0 <= value <= 1e6:
        raise argparse.ArgumentTypeError(f"{text}: give 0 to 1000000 Hz")
    return value


def topic(text):
    if not re.fullmatch("[A-Za-z0-9_/]{1,40}", text):
        raise argparse.ArgumentTypeError(f"{text}: use 1 to 40 letters, digits, _ and /")
    return "/" + text.lstrip("/")


def options():
    parser = Parser(allow_abbrev=False, add_help=False)
    parser.add_argument("command", choices=["version", "publish", "subscribe"])
    parser.add_argument("--system", choices=list(SYSTEMS), required=True)
    parser.add_argument("--topic", type=topic)
    parser.add_argument("--rate", type=hertz, default=0)
    many = 100_000_000
    for name, default, low, high in [
        ("size", None, 16, 1 << 30), ("subscribers", 1, 1, 64), ("index", 0, 0, 63), ("warmup", 0, 0, many), ("messages", None, 1, many),
        ("fifo", 0, 1, 99), ("limit", 0, 1, 1 << 40), ("work-us", 0, 0, 60_000_000), ("depth", 0, 1, 256),
    ]:
        parser.add_argument("--" + name, type=number(low, high), default=default)
    o = parser.parse_args()
    if o.command != "version" and None in (o.topic, o.size, o.messages):
        parser.error("--topic, --size or --messages is missing: give the topic, the payload's bytes, and the number of measured messages")
    return o


def main():
    o = options()
    if o.command == "version":
        return version(o.system, modes=["block"])
    if o.fifo:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(o.fifo))
        except PermissionError as error:
            fail(1, f"--fifo {o.fifo}: {error}; run as root or raise `ulimit -r`")
    orchestrator = Orchestrator()
    try:
        peer = SYSTEMS[o.system](o, orchestrator)
        getattr(peer, o.command)()
    except Exception as error:  # one line, as the contract requires
        fail(1, f"{o.system}: {type(error).__name__}: {error}".replace("\n", " "))
    sys.stdout.flush()
    if not isinstance(peer, Rclpy):
        os._exit(0)  # rospy's threads end slowly


if __name__ == "__main__":
    main()
