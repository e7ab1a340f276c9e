"""The nodes of `ropewalk bench scale` in Python (README.md): `ropewalk-python` with Ropewalk's package, and `rospy`."""

import argparse
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "common"))
from orchestrated import Orchestrator, Parser, fail, say, version  # noqa: E402

PROBE = 0xFFFFFFFF


class Log:
    """Arrival times of the answers."""

    def __init__(self, o):
        self.echoes = len(o.answers)
        self.at = [0] * (o.messages * self.echoes)
        self.heard = [False] * self.echoes
        self.back = [0] * self.echoes  # one thread for each
        self.closed = False

    def receive(self, now, number, echo):
        if number == PROBE:
            self.heard[echo] = True
            return
        place = number * self.echoes + echo
        if not self.closed and place < len(self.at) and not self.at[place]:
            self.at[place] = now
            self.back[echo] += 1

    def write(self, path, sent):
        with open(path, "w") as file:
            file.write("id,sent_ns,recv_ns\n")
            for number in range(len(sent) * self.echoes):
                file.write(f"{number},{sent[number // self.echoes]},{self.at[number] or ''}\n")


def run_sender(o, orchestrator, log, send):
    stop, pause = orchestrator.stop, 0.02
    while not all(log.heard):
        send(PROBE)
        until = time.monotonic() + pause
        while time.monotonic() < until and not all(log.heard):
            if stop.wait(0.005):
                return
        pause = min(2 * pause, 1)
    say("ready")
    orchestrator.go.wait()
    sent, refused, start = [], 0, time.monotonic() + 0.2 + o.offset_us / 1e6
    for number in range(o.messages):
        left = start + number / o.hz - time.monotonic()
        if left > 0:
            time.sleep(left)
        if stop.is_set():
            break
        sent.append(time.monotonic_ns())
        refused += not send(number)
    until = time.monotonic() + o.linger_ms / 1e3
    while sum(log.back) < len(log.at) and time.monotonic() < until and not stop.wait(0.005):
        pass
    log.closed = True
    say("closed")
    stop.wait()
    log.write(o.log, sent)
    say(json.dumps({"sent": len(sent), "returned": sum(log.back), "refused": refused}))


class Rospy:
    def __init__(self, o, orchestrator):
        import rospy
        from sensor_msgs.msg import Image, LaserScan
        from std_msgs.msg import Header

        self.rospy, self.o, self.orchestrator = rospy, o, orchestrator
        self.type = Header if o.bytes < 128 else LaserScan if o.bytes < 100_000 else Image
        rospy.init_node("ropewalk_scale_" + o.command, anonymous=True, disable_signals=True, disable_rosout=True)

    def message(self):
        bytes, message = self.o.bytes, self.type()
        if bytes < 128:
            message.frame_id = ("Hello World" * 12)[:bytes]
        elif bytes < 100_000:
            message.ranges = [1.0] * ((bytes - 52) // 4)
        else:
            message.height, message.width, message.step, message.encoding = 1, bytes - 42, bytes - 42, "mono8"
            message.data = bytes_of(bytes - 42)
        return message

    def header(self, message):
        return message if self.o.bytes < 128 else message.header

    def publisher(self, topic):
        return self.rospy.Publisher(topic, self.type, queue_size=self.o.queue, tcp_nodelay=True)

    def subscriber(self, topic, callback):
        # Without a large buffer, rospy falls behind forever.
        buffer = 2 * self.o.bytes + 65536
        return self.rospy.Subscriber(topic, self.type, callback, queue_size=self.o.queue, buff_size=buffer, tcp_nodelay=True)

    def send(self):
        log, publisher, message = Log(self.o), self.publisher(self.o.publish), self.message()
        header = self.header(message)

        def listen(echo):
            return lambda m: log.receive(time.monotonic_ns(), self.header(m).stamp.secs, echo)

        subscribers = [self.subscriber(topic, listen(echo)) for echo, topic in enumerate(self.o.answers)]

        def send(number):
            header.stamp.secs = number
            publisher.publish(message)
            return True

        run_sender(self.o, self.orchestrator, log, send)
        for subscriber in subscribers:
            subscriber.unregister()

    def echo(self):
        echoed = [0] * len(self.o.ways)

        def answer(i, publisher):
            def callback(message):
                publisher.publish(message)
                echoed[i] += 1

            return callback

        for i, (topic, output) in enumerate(self.o.ways):
            self.subscriber(topic, answer(i, self.publisher(output)))
        say("ready")
        self.orchestrator.stop.wait()
        say(json.dumps({"echoed": sum(echoed)}))


class Ropewalk:
    def __init__(self, o, orchestrator):
        import ropewalk

        self.ropewalk, self.o, self.orchestrator = ropewalk, o, orchestrator
        self.node = ropewalk.Node("bench")
        kinds = ("std_msgs/Header", "sensor_msgs/LaserScan", "sensor_msgs/Image")
        self.type = kinds[(o.bytes >= 128) + (o.bytes >= 100_000)]

    def message(self, publisher):
        import numpy

        bytes = self.o.bytes
        if bytes < 128:
            return publisher.message(frame_id=("Hello World" * 12)[:bytes])
        if bytes < 100_000:
            return publisher.message(ranges=numpy.ones((bytes - 52) // 4, numpy.float32))
        data = numpy.frombuffer(bytes_of(bytes - 42), numpy.uint8)
        return publisher.message(height=1, width=len(data), step=len(data), encoding="mono8", data=data)

    def header(self, message):
        return message if self.o.bytes < 128 else message.header

    def listen(self, topic, callback):
        """A thread for each subscriber, as in rospy."""

        def take():
            subscriber = self.node.subscriber(topic, self.type, depth=self.o.queue)
            ready.set()
            while not self.orchestrator.stop.is_set():
                message = subscriber.take(0.5)
                if message is not None:
                    callback(message)

        ready = threading.Event()
        threading.Thread(target=take, daemon=True).start()
        ready.wait()

    def publish(self, publisher, message):
        try:
            publisher.publish(message)
        except self.ropewalk.MemoryShort:
            return False
        return True

    def send(self):
        log, publisher = Log(self.o), self.node.publisher(self.o.publish, self.type)
        message = self.message(publisher)
        header = self.header(message)

        def listen(echo):
            return lambda m: log.receive(time.monotonic_ns(), self.header(m).stamp[0], echo)

        for echo, topic in enumerate(self.o.answers):
            self.listen(topic, listen(echo))

        def send(number):
            header.stamp = self.ropewalk.Time(number, 0)
            return self.publish(publisher, message)

        run_sender(self.o, self.orchestrator, log, send)

    def echo(self):
        echoed = [0] * len(self.o.ways)

        def answer(i, publisher):
            def callback(message):
                echoed[i] += self.publish(publisher, message)

            return callback

        for i, (topic, output) in enumerate(self.o.ways):
            self.listen(topic, answer(i, self.node.publisher(output, self.type)))
        say("ready")
        self.orchestrator.stop.wait()
        say(json.dumps({"echoed": sum(echoed)}))


def bytes_of(count):
    return bytes(range(256)) * (count // 256) + bytes(count % 256)


def way(text):
    ends = text.split(":")
    if len(ends) != 2 or not all(ends):
        raise argparse.ArgumentTypeError(f"{text}: give IN:OUT")
    return ends


def listed(one):
    return lambda text: [one(part) for part in text.split(",")]


def options():
    parser = Parser(allow_abbrev=False, add_help=False)
    parser.add_argument("command", choices=["version", "send", "echo"])
    parser.add_argument("--system", choices=["ropewalk-python", "rospy"], required=True)
    for name in "publish", "log":
        parser.add_argument("--" + name)
    for name in "bytes", "queue", "messages", "offset-us", "linger-ms":
        parser.add_argument("--" + name, type=int, default=0)
    parser.add_argument("--hz", type=float)
    parser.add_argument("--answers", type=listed(str))
    parser.add_argument("--ways", type=listed(way))
    o = parser.parse_args()
    needed = {"version": [], "send": [o.bytes, o.queue, o.publish, o.answers, o.hz, o.messages, o.log], "echo": [o.bytes, o.queue, o.ways]}
    if not all(needed[o.command]):
        parser.error(f"{o.command}: an option is missing: see README.md")
    return o


def main():
    o = options()
    if o.command == "version":
        return version(o.system)
    orchestrator = Orchestrator()
    try:
        node = (Ropewalk if o.system == "ropewalk-python" else Rospy)(o, orchestrator)
        getattr(node, o.command)()
    except Exception as error:  # one line, as the contract requires
        fail(1, f"{o.system}: {type(error).__name__}: {error}".replace("\n", " "))
    sys.stdout.flush()
    os._exit(0)  # rospy's threads end slowly


if __name__ == "__main__":
    main()
