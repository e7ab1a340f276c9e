"""The flows of Pound between nodes of rclpy, by the contract of ../flow/README.md: `version`, `publish` and `subscribe`. run selects the
middleware. A message is a std_msgs/UInt8MultiArray of BYTES as ROS 1 serializes it; queues of both ends hold 10, as is usual. `know --own K --all N` creates
K nodes on `go` and prints {"values": [seconds]} when all of them know N, those of other hosts among them. `serve` serves the services
(std_srvs/SetBool) and actions (test_msgs/Fibonacci) that are named; `call` calls each service every PERIOD_US, COUNT times, and each action
five times, and prints {"values": [called, answered, p50 ms, p99 ms, goals, goals that succeeded]}."""

import argparse
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "common"))
from orchestrated import Orchestrator, Parser, fail, say, version  # noqa: E402


# What ROS 1 writes before the data.
HEAD = 12


class Flow:
    def __init__(self, text):
        topic, *numbers = text.split(",")
        try:
            self.bytes, self.period, self.offset, self.count = map(int, numbers)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text}: give TOPIC,BYTES,PERIOD_US,OFFSET_US,COUNT") from None
        self.topic = topic
        self.sequence, self.stamp, self.arrival, self.sent = [], [], [], 0


def node(command):
    import rclpy

    rclpy.init(signal_handler_options=rclpy.signals.SignalHandlerOptions.NO)
    return rclpy, rclpy.create_node(f"flow_{command}_{os.getpid()}", enable_rosout=False, start_parameter_services=False)


def publish(flows, orchestrator):
    import numpy
    from std_msgs.msg import UInt8MultiArray

    rclpy, own = node("publish")
    publishers = [own.create_publisher(UInt8MultiArray, f.topic, 10) for f in flows]
    while not all(p.get_subscription_count() for p in publishers) and not orchestrator.stop.wait(0.01):
        pass
    say("ready")
    orchestrator.go.wait()
    start = time.monotonic_ns()

    def send(flow, publisher):
        message = UInt8MultiArray(data=bytes(flow.bytes - HEAD))
        words = numpy.frombuffer(message.data, numpy.uint8)[:16].view("<u8")
        for k in range(flow.count):
            due = start + (flow.offset + k * flow.period) * 1000
            left = (due - time.monotonic_ns()) / 1e9
            if left > 0:
                time.sleep(left)
            if orchestrator.stop.is_set():
                return
            words[1] = k
            words[0] = time.monotonic_ns()
            publisher.publish(message)
            flow.sent += 1

    threads = [threading.Thread(target=send, args=pair) for pair in zip(flows, publishers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say(json.dumps({"published": [{"topic": f.topic, "sent": f.sent} for f in flows]}))
    orchestrator.stop.wait()
    own.destroy_node()
    rclpy.shutdown()


def subscribe(flows, orchestrator):
    from std_msgs.msg import UInt8MultiArray

    rclpy, own = node("subscribe")

    def receive(flow, message):
        now = time.monotonic_ns()
        data = memoryview(message.data)
        flow.stamp.append(int.from_bytes(data[:8], "little"))
        flow.sequence.append(int.from_bytes(data[8:16], "little"))
        flow.arrival.append(now)

    for flow in flows:
        own.create_subscription(UInt8MultiArray, flow.topic, lambda m, flow=flow: receive(flow, m), 10)
    executor = rclpy.executors.SingleThreadedExecutor()
    executor.add_node(own)
    say("ready")
    while not orchestrator.stop.is_set():
        executor.spin_once(timeout_sec=0.2)
    say(json.dumps({"received": [{"topic": f.topic, "sequence": f.sequence, "stamp_ns": f.stamp, "arrival_ns": f.arrival} for f in flows]}))
    own.destroy_node()
    rclpy.shutdown()


def know(own, all_nodes, orchestrator):
    """Creates nodes, each with its own context, like processes; prints the seconds until all of them know all."""
    import rclpy

    say("ready")
    orchestrator.go.wait()
    start = time.monotonic()
    nodes = []
    for i in range(own):
        context = rclpy.Context()
        rclpy.init(context=context, signal_handler_options=rclpy.signals.SignalHandlerOptions.NO)
        nodes.append(rclpy.create_node(f"node_{os.getpid()}_{i}", context=context))
    unknowing = list(nodes)
    while unknowing and not orchestrator.stop.wait(0.01):
        unknowing = [n for n in unknowing if len(n.get_node_names()) < all_nodes]
    say(json.dumps({"values": [time.monotonic() - start]}))
    orchestrator.stop.wait()


def serve(services, actions, orchestrator):
    import rclpy.action
    from std_srvs.srv import SetBool
    from test_msgs.action import Fibonacci

    rclpy, own = node("serve")

    def switch(request, response):
        response.success, response.message = request.data, "switched"
        return response

    def execute(goal):
        feedback = Fibonacci.Feedback(sequence=[0, 1])
        for _ in range(goal.request.order):
            feedback.sequence.append(feedback.sequence[-1] + feedback.sequence[-2])
            goal.publish_feedback(feedback)
        goal.succeed()
        return Fibonacci.Result(sequence=feedback.sequence)

    held = [own.create_service(SetBool, name, switch) for name in services]
    held += [rclpy.action.ActionServer(own, Fibonacci, name, execute) for name in actions]
    executor = rclpy.executors.SingleThreadedExecutor()
    executor.add_node(own)
    say("ready")
    while not orchestrator.stop.is_set():
        executor.spin_once(timeout_sec=0.2)
    say(json.dumps({"values": []}))
    os._exit(0)


def call(services, actions, count, period, orchestrator):
    import rclpy.action
    from std_srvs.srv import SetBool
    from test_msgs.action import Fibonacci

    rclpy, own = node("call")
    executor = rclpy.executors.SingleThreadedExecutor()
    executor.add_node(own)
    clients = [own.create_client(SetBool, name) for name in services]
    goals = [rclpy.action.ActionClient(own, Fibonacci, name) for name in actions]
    while not all(c.service_is_ready() for c in clients) or not all(g.server_is_ready() for g in goals):
        executor.spin_once(timeout_sec=0.05)
        if orchestrator.stop.is_set():
            os._exit(0)
    say("ready")
    orchestrator.go.wait()
    start, delays, succeeded = time.monotonic(), [], 0

    def done(future, patience=10):
        executor.spin_until_future_complete(future, patience)
        return future.result() if future.done() else None

    for k in range(count):
        executor.spin_once(timeout_sec=max(0, start + k * period / 1e6 - time.monotonic()))
        while time.monotonic() < start + k * period / 1e6:
            executor.spin_once(timeout_sec=max(0, start + k * period / 1e6 - time.monotonic()))
        for client in clients:
            sent = time.monotonic()
            answer = done(client.call_async(SetBool.Request(data=bool(k % 2))))
            if answer is not None and answer.success == bool(k % 2):
                delays.append((time.monotonic() - sent) * 1e3)
    for action in goals * 5:
        goal = done(action.send_goal_async(Fibonacci.Goal(order=5)))
        result = done(goal.get_result_async()) if goal is not None and goal.accepted else None
        succeeded += result is not None and list(result.result.sequence) == [0, 1, 1, 2, 3, 5, 8]
    delays.sort()
    part = lambda share: delays[min(len(delays) - 1, int(share * len(delays)))] if delays else -1.0  # noqa: E731
    say(json.dumps({"values": [count * len(clients), len(delays), part(0.5), part(0.99), 5 * len(goals), succeeded]}))
    orchestrator.stop.wait()
    os._exit(0)


def main():
    parser = Parser(allow_abbrev=False, add_help=False)
    parser.add_argument("command", choices=["version", "publish", "subscribe", "know", "serve", "call"])
    parser.add_argument("--system", choices=["rclpy-ropewalk", "rclpy-fastdds-lan", "rclpy-fastdds-local"], required=True)
    parser.add_argument("--flow", type=Flow, action="append", default=[])
    parser.add_argument("--service", action="append", default=[])
    parser.add_argument("--action", action="append", default=[])
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--period-us", type=int, default=200_000)
    parser.add_argument("--own", type=int, default=1)
    parser.add_argument("--all", type=int, default=1)
    o = parser.parse_args()
    if o.command == "version":
        return version(o.system)
    if o.command == "know":
        know(o.own, o.all, Orchestrator())
        os._exit(0)
    if o.command == "serve":
        serve(o.service, o.action, Orchestrator())
    if o.command == "call":
        call(o.service, o.action, o.count, o.period_us, Orchestrator())
    if not o.flow:
        parser.error("--flow is missing: give TOPIC,BYTES,PERIOD_US,OFFSET_US,COUNT")
    orchestrator = Orchestrator()
    try:
        {"publish": publish, "subscribe": subscribe}[o.command](o.flow, orchestrator)
    except Exception as error:  # one line, as the contract requires
        fail(1, f"{o.system}: {type(error).__name__}: {error}".replace("\n", " "))


if __name__ == "__main__":
    main()
