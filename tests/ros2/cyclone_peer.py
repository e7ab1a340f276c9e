"""A node as rmw_cyclonedds_cpp makes them, of Cyclone DDS alone: services have the header that correlates requests and responses in their
payload, and there are no type hashes. The argument says what it does; it prints a line for each event."""

import os
import struct
import sys
import time
import uuid
from collections.abc import Callable
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

EXECUTING, CANCELING, SUCCEEDED, CANCELED = 2, 3, 4, 5


@dataclass
@annotate.final
class String(IdlStruct, typename="std_msgs::msg::dds_::String_"):
    data: str


@dataclass
@annotate.final
class Image(IdlStruct, typename="sensor_msgs::msg::dds_::Image_"):
    """An image without a frame or an encoding. Octet by octet, a megabyte would take several seconds."""

    height: types.uint32
    data: types.sequence[types.uint8]

    def serialize(self, buffer: object = None, use_version_2: bool = False) -> bytes:
        # Stamp, frame_id, height, width, encoding, is_bigendian, step.
        head = struct.pack("<iII4xIIIxB2xI", 0, 0, 1, self.height, 0, 1, 0, 0)
        return b"\0\1\0\0" + head + struct.pack("<I", len(self.data)) + bytes(self.data)

    @classmethod
    def deserialize(cls, data: bytes, **_: object) -> "Image":
        payload = data[4:]
        aligned = lambda at: (at + 3) // 4 * 4
        (frame,) = struct.unpack_from("<I", payload, 8)
        at = aligned(12 + frame)
        height, _, encoding = struct.unpack_from("<III", payload, at)
        at = aligned(at + 12 + encoding + 1)
        _, length = struct.unpack_from("<II", payload, at)
        return cls(height, payload[at + 8 : at + 8 + length])


@dataclass
@annotate.final
class SwitchRequest(IdlStruct, typename="std_srvs::srv::dds_::SetBool_Request_"):
    client: types.uint64
    number: types.int64
    data: bool


@dataclass
@annotate.final
class SwitchResponse(IdlStruct, typename="std_srvs::srv::dds_::SetBool_Response_"):
    client: types.uint64
    number: types.int64
    success: bool
    message: str


@dataclass
@annotate.final
class Uuid(IdlStruct, typename="unique_identifier_msgs::msg::dds_::UUID_"):
    uuid: types.array[types.uint8, 16]


@dataclass
@annotate.final
class Time(IdlStruct, typename="builtin_interfaces::msg::dds_::Time_"):
    sec: types.int32
    nanosec: types.uint32


@dataclass
@annotate.final
class Goal(IdlStruct, typename="test_msgs::action::dds_::Fibonacci_Goal_"):
    order: types.int32


@dataclass
@annotate.final
class Numbers(IdlStruct, typename="test_msgs::action::dds_::Fibonacci_Result_"):
    sequence: types.sequence[types.int32]


@dataclass
@annotate.final
class SendGoalRequest(IdlStruct, typename="test_msgs::action::dds_::Fibonacci_SendGoal_Request_"):
    client: types.uint64
    number: types.int64
    goal_id: Uuid
    goal: Goal


@dataclass
@annotate.final
class SendGoalResponse(IdlStruct, typename="test_msgs::action::dds_::Fibonacci_SendGoal_Response_"):
    client: types.uint64
    number: types.int64
    accepted: bool
    stamp: Time


@dataclass
@annotate.final
class GetResultRequest(IdlStruct, typename="test_msgs::action::dds_::Fibonacci_GetResult_Request_"):
    client: types.uint64
    number: types.int64
    goal_id: Uuid


@dataclass
@annotate.final
class GetResultResponse(IdlStruct, typename="test_msgs::action::dds_::Fibonacci_GetResult_Response_"):
    client: types.uint64
    number: types.int64
    status: types.int8
    result: Numbers


@dataclass
@annotate.final
class GoalInfo(IdlStruct, typename="action_msgs::msg::dds_::GoalInfo_"):
    goal_id: Uuid
    stamp: Time


@dataclass
@annotate.final
class CancelRequest(IdlStruct, typename="action_msgs::srv::dds_::CancelGoal_Request_"):
    client: types.uint64
    number: types.int64
    goal_info: GoalInfo


@dataclass
@annotate.final
class CancelResponse(IdlStruct, typename="action_msgs::srv::dds_::CancelGoal_Response_"):
    client: types.uint64
    number: types.int64
    return_code: types.int8
    goals_canceling: types.sequence[GoalInfo]


@dataclass
@annotate.final
class GoalStatus(IdlStruct, typename="action_msgs::msg::dds_::GoalStatus_"):
    goal_info: GoalInfo
    status: types.int8


@dataclass
@annotate.final
class GoalStatuses(IdlStruct, typename="action_msgs::msg::dds_::GoalStatusArray_"):
    status_list: types.sequence[GoalStatus]


@dataclass
@annotate.final
class Feedback(IdlStruct, typename="test_msgs::action::dds_::Fibonacci_FeedbackMessage_"):
    goal_id: Uuid
    feedback: Numbers


def qos(depth: int = 10, reliable: bool = True, kept: bool = False) -> Qos:
    durability = Policy.Durability.TransientLocal if kept else Policy.Durability.Volatile
    reliability = Policy.Reliability.Reliable(duration(seconds=1)) if reliable else Policy.Reliability.BestEffort
    out = Qos(reliability, durability, Policy.History.KeepLast(depth))
    return out + Qos(Policy.DurabilityService(0, Policy.History.KeepLast(depth), 1000, 100, 1000)) if kept else out


def say(*words: object) -> None:
    print(*words, flush=True)


PARTICIPANT = DomainParticipant(int(os.environ["ROS_DOMAIN_ID"]))


def writer(name: str, kind: type, policies: Qos) -> DataWriter:
    return DataWriter(PARTICIPANT, Topic(PARTICIPANT, name, kind), qos=policies)


def reader(name: str, kind: type, policies: Qos) -> DataReader:
    return DataReader(PARTICIPANT, Topic(PARTICIPANT, name, kind), qos=policies)


def until(is_so: Callable[[], object], act: Callable[[], object] = lambda: None, seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            return False
        act()
        time.sleep(0.001)
    return True


class Server:
    """Answers the requests of a service."""

    def __init__(self, name: str, request: type, response: type, answer: Callable[[object], object]) -> None:
        self.requests = reader(f"rq/{name}Request", request, qos())
        self.responses = writer(f"rr/{name}Reply", response, qos())
        self.answer = answer

    def spin(self) -> None:
        for request in self.requests.take(N=50):
            if (response := self.answer(request)) is not None:
                self.responses.write(response)


class Client:
    """Calls a service, one request at a time."""

    def __init__(self, name: str, request: type, response: type) -> None:
        self.requests = writer(f"rq/{name}Request", request, qos())
        self.responses = reader(f"rr/{name}Reply", response, qos())
        self.request, self.client, self.number = request, uuid.uuid4().int >> 64, 0

    def wait(self) -> None:
        matched = lambda: self.requests.get_matched_subscriptions() and self.responses.get_matched_publications()
        assert until(matched), "no server"
        # The server may not have discovered the other endpoint yet.
        time.sleep(0.5)

    def call(self, *words: object) -> object:
        self.number += 1
        self.requests.write(self.request(self.client, self.number, *words))
        got: list[object] = []
        own = lambda: [r for r in got if (r.client, r.number) == (self.client, self.number)]
        until(own, lambda: got.extend(self.responses.take(N=10)), 30)
        return own()[0] if own() else None


def serve() -> None:
    """The service `switch` and the action `fibonacci`."""
    goals: dict[bytes, dict[str, object]] = {}
    feedback = writer("rt/fibonacci/_action/feedback", Feedback, qos())
    statuses = writer("rt/fibonacci/_action/status", GoalStatuses, qos(1, kept=True))

    def show() -> None:
        listed = [GoalStatus(GoalInfo(Uuid(list(key)), Time(1, 0)), goal["status"]) for key, goal in goals.items()]
        statuses.write(GoalStatuses(listed))

    def begin(request: SendGoalRequest) -> SendGoalResponse:
        goals[bytes(request.goal_id.uuid)] = {"order": request.goal.order, "numbers": [0, 1], "status": EXECUTING, "asked": []}
        show()
        return SendGoalResponse(request.client, request.number, True, Time(1, 0))

    def cancel(request: CancelRequest) -> CancelResponse:
        key = bytes(request.goal_info.goal_id.uuid)
        goals[key]["status"] = CANCELING
        show()
        return CancelResponse(request.client, request.number, 0, [GoalInfo(Uuid(list(key)), Time(1, 0))])

    def result(request: GetResultRequest) -> None:
        goals[bytes(request.goal_id.uuid)]["asked"].append((request.client, request.number))

    results = Server("fibonacci/_action/get_result", GetResultRequest, GetResultResponse, result)
    servers = [
        Server("switch", SwitchRequest, SwitchResponse, lambda r: SwitchResponse(r.client, r.number, not r.data, "switched")),
        Server("fibonacci/_action/send_goal", SendGoalRequest, SendGoalResponse, begin),
        Server("fibonacci/_action/cancel_goal", CancelRequest, CancelResponse, cancel),
        results,
    ]

    def go_on() -> None:
        for key, goal in goals.items():
            numbers = goal["numbers"]
            if goal["status"] == CANCELING:
                goal["status"] = CANCELED
                show()
            elif goal["status"] == EXECUTING and len(numbers) > goal["order"]:
                goal["status"] = SUCCEEDED
                show()
            elif goal["status"] == EXECUTING:
                # Beyond 46 they do not fit.
                numbers.append(numbers[-1] + numbers[-2] if len(numbers) < 46 else 0)
                feedback.write(Feedback(Uuid(list(key)), Numbers(list(numbers))))
            if goal["status"] in (SUCCEEDED, CANCELED):
                for client, number in goal["asked"]:
                    shown = list(numbers) if goal["status"] == SUCCEEDED else []
                    results.responses.write(GetResultResponse(client, number, goal["status"], Numbers(shown)))
                goal["asked"] = []

    def spin() -> None:
        nonlocal due
        for server in servers:
            server.spin()
        if time.monotonic() > due:
            due += 0.02
            go_on()

    due = time.monotonic()
    say("ready")
    until(lambda: False, spin, 600)


def call() -> None:
    """Calls the service `switch` 200 times, and the action `fibonacci`, once to its end and once until it is cancelled."""
    switch = Client("switch", SwitchRequest, SwitchResponse)
    switch.wait()
    right = 0
    for i in range(200):
        answer = switch.call(i % 2 == 1)
        right += answer is not None and answer.success == (i % 2 == 0) and answer.message == "switched"
    say("right", right)
    send = Client("fibonacci/_action/send_goal", SendGoalRequest, SendGoalResponse)
    cancel = Client("fibonacci/_action/cancel_goal", CancelRequest, CancelResponse)
    result = Client("fibonacci/_action/get_result", GetResultRequest, GetResultResponse)
    feedback = reader("rt/fibonacci/_action/feedback", Feedback, qos())
    for each in (send, cancel, result):
        each.wait()
    assert until(feedback.get_matched_publications)
    for order, is_cancelled in ((10, False), (500, True)):
        goal = Uuid(list(uuid.uuid4().bytes))
        accepted = send.call(goal, Goal(order))
        assert accepted and accepted.accepted
        seen: list[Feedback] = []
        if is_cancelled:
            until(lambda: len(seen) > 4, lambda: seen.extend(feedback.take(N=10)))
            cancel.call(GoalInfo(goal, Time(0, 0)))
        done = result.call(goal)
        until(lambda: len(seen) > 4, lambda: seen.extend(feedback.take(N=10)), 2)
        if is_cancelled:
            say("cancelled", done.status)
        else:
            say("status", done.status, list(done.result.sequence), len(seen) > 4)


def send(how: str) -> None:
    words, images = writer("rt/words", String, qos(20)), writer("rt/pictures", Image, qos(60, how == "RELIABLE"))
    until(lambda: words.get_matched_subscriptions() and images.get_matched_subscriptions())
    time.sleep(1)
    for i in range(20):
        words.write(String(f"word {i}"))
    begun = time.monotonic()
    for i in range(60):
        images.write(Image(i, bytes([i]) * 1_000_000))
        time.sleep(max(0, begun + (i + 1) / 30 - time.monotonic()))
    until(lambda: not words.get_matched_subscriptions())
    say("sent")


def take(how: str) -> None:
    words, images = reader("rt/words", String, qos(20)), reader("rt/pictures", Image, qos(60, how == "RELIABLE"))
    said: list[str] = []
    seen: list[tuple[int, int, bool]] = []

    def spin() -> None:
        said.extend(m.data for m in words.take(N=20))
        seen.extend((m.height, len(m.data), set(m.data[::1000]) == {m.height}) for m in images.take(N=5))

    until(lambda: len(said) >= 20 and len(seen) >= 60, spin, 40)
    until(lambda: False, spin, 1)
    say("words", said == [f"word {i}" for i in range(20)], len(said))
    say("pictures", sorted(seen) == [(i, 1_000_000, True) for i in range(60)], len(seen))


def latch() -> None:
    kept = writer("rt/latched", String, qos(1, kept=True))
    kept.write(String("old"))
    kept.write(String("kept"))
    say("ready")
    until(lambda: False, seconds=600)


def late() -> None:
    words = reader("rt/latched", String, qos(5, kept=True))
    say("ready")
    until(lambda: False, lambda: [say("heard", m.data) for m in words.take(N=5)], 600)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
