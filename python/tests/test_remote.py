"""Robots and controllers, used rightly and wrongly."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest

import ropewalk
from conftest import LONG
from ropewalk import remote
from ropewalk.remote import command, telemetry, types

SPRAY = remote.CommandKind("acme.Spray", moves="nozzle")
TANK = remote.TelemetryKind("acme.Tank")


@pytest.fixture
def pair(node):
    """A robot and a controller that has found it."""
    # Nobody is lost because the machine is busy.
    with remote.Robot(node, "rover", lost_after=5) as robot, remote.Controller(node, "desk", "rover") as controller:
        assert controller.wait_until_found(LONG)
        yield robot, controller


def eventually(condition):
    until = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.002)


def twist(forward):
    return types.Twist(linear={"x": forward})


def test_commands_end_with_what_became_of_them(pair):
    robot, controller = pair
    seen = []

    @robot.on(command.Twist)
    def drive(body, context):
        seen.append((body.linear.x, context.controller, context.controller_id, context.age >= 0))
        if body.linear.x > 1:
            raise remote.Refused("faster than the wheels turn")
        if body.linear.x < 0:
            raise KeyError("backwards")

    assert controller.command(command.Twist, twist(0.5), LONG) == remote.Outcome("executed", "", True)
    assert seen == [(0.5, "desk", controller.id, True)]
    assert str(controller.command(command.Twist, twist(2), LONG)) == "rejected: faster than the wheels turn"
    # What a handler throws is told, and it works on.
    assert controller.command(command.Twist, twist(-1), LONG).reason == "KeyError: 'backwards'"
    assert controller.command(command.Twist, twist(0), LONG).executed
    nobody = controller.command(command.GoTo, types.GoTo(), LONG)
    assert nobody.what == "rejected" and "GoTo" in nobody.reason and not nobody.maybe_executed
    assert "robot_remote_control.Twist" in controller.robot_commands and controller.subsystems == ["base"]
    assert 0 < controller.round_trip < LONG


def test_commands_of_ones_own_are_bytes_or_messages(pair):
    robot, controller = pair
    bodies = []
    robot.on(SPRAY, lambda body, _: bodies.append(body))
    assert controller.command(SPRAY, b"\x01\x02", LONG).executed
    # A kind of one's own that carries a message: of any class with the same name.
    as_pose = remote.CommandKind(SPRAY.name, types.Pose)
    assert controller.command(as_pose, types.Pose(orientation2d=1), LONG).executed
    assert bodies == [b"\x01\x02", types.Pose(orientation2d=1).SerializeToString()]
    robot.on(as_pose, lambda body, _: bodies.append(body.orientation2d))
    assert controller.command(as_pose, types.Pose(orientation2d=2), LONG).executed and bodies[-1] == 2
    assert controller.command(SPRAY, b"\xff", LONG).reason.startswith("ContentError: this is no body of acme.Spray")


def test_commands_are_waited_for_polled_and_awaited(pair):
    robot, controller = pair
    go_on = threading.Event()
    robot.on(SPRAY, lambda *_: go_on.wait(LONG))
    sent = controller.send(SPRAY, b"", LONG)
    assert sent.wait(0.02) is None and sent.poll() is None
    go_on.set()
    assert sent.wait(LONG).executed and sent.poll().executed

    async def many():
        outcomes = [controller.send(SPRAY, b"", LONG) for _ in range(10)]
        return await asyncio.gather(*outcomes, *outcomes)

    assert all(outcome.executed for outcome in asyncio.run(many()))

    async def late():
        go_on.clear()
        sent = controller.send(SPRAY, b"", LONG)
        threading.Timer(0.1, go_on.set).start()
        return await sent

    assert asyncio.run(late()).executed


def test_a_robot_that_is_not_there_is_unreachable(node):
    with remote.Controller(node, "desk", "ghost") as controller:
        assert not controller.wait_until_found(0.05)
        outcome = controller.command(command.Twist, twist(1), expiry=0.05)
        assert outcome.what == "unreachable" and outcome.reason and not outcome.executed
        assert controller.round_trip is None
        with pytest.raises(ropewalk.CallTimeout):
            controller.fetch(telemetry.RobotName, timeout=0.1)


# A callback's exception is told on the standard error, as Python does with such.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_telemetry_is_called_back_kept_and_asked_for(pair):
    robot, controller = pair
    came = []

    @controller.on(telemetry.CurrentPose)
    def moved(pose, info):
        came.append((pose.position.x, info.sequence))
        if pose.position.x == 1:
            raise ValueError("one")

    assert controller.latest(telemetry.CurrentPose) is None
    robot.set(telemetry.CurrentPose, types.Pose(position={"x": 1}))
    eventually(lambda: came == [(1, 1)])
    # A callback that throws gets the next one all the same.
    robot.set(telemetry.CurrentPose, types.Pose(position={"x": 2}))
    eventually(lambda: came == [(1, 1), (2, 2)])
    assert controller.latest(telemetry.CurrentPose).position.x == 2
    assert controller.fetch(telemetry.CurrentPose).position.x == 2
    assert controller.fetch(telemetry.RobotName).value == "rover"
    assert controller.fetch(telemetry.CurrentPose, channel=7) is None
    with pytest.raises(ropewalk.Rejected, match="Map"):
        controller.fetch(telemetry.Map)
    robot.set(TANK, bytes(1_000_000), channel=3)
    eventually(lambda: controller.latest(TANK, channel=3) == bytes(1_000_000))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_one_controller_moves_and_its_loss_stops(pair, node):
    robot, desk = pair
    seen, asked, events = [], [], []
    robot.on(command.Twist, lambda body, context: seen.append((body.linear.x, context.controller_id)))
    robot.on_controller(lambda _, name, found: events.append((name, found)))

    @robot.on_take_over
    def take_over(*names):
        asked.append(names)
        return False

    @robot.on_link_lost
    def lost(subsystem, controller):
        asked.append((subsystem, controller))
        raise RuntimeError("what fails does not keep it moving")

    with remote.Controller(node, "rival", "rover") as rival:
        assert rival.wait_until_found(LONG)
        assert robot.holder("base") is None and not rival.right("base").mine
        assert desk.request_right("base").mine and robot.holder("base") == desk.id
        assert rival.right("base") == remote.Right(desk.id, "desk", False)
        assert "desk" in rival.command(command.Twist, twist(1), LONG).reason
        with pytest.raises(ropewalk.Rejected, match="desk"):
            rival.request_right("base")
        with pytest.raises(ropewalk.Rejected):
            rival.take_right_over("base")
        assert asked == [("base", "rival", "desk")]
        assert desk.hand_right_over(rival.id, "base").holder == rival.id
        assert rival.release_right("base").holder is None
    assert desk.command(command.Twist, twist(1), LONG).executed
    desk.stop()
    eventually(lambda: seen[-1:] == [(0.0, 0)])
    assert asked[-1] == ("base", "desk") and ("rival", True) in events


def test_the_right_has_to_be_requested_where_the_robot_says_so(node):
    with remote.Robot(node, "shy", require_request=True) as robot:
        robot.on(command.Twist, lambda *_: None)
        with remote.Controller(node, "desk", "shy") as desk:
            assert desk.wait_until_found(LONG)
            assert "requested" in desk.command(command.Twist, twist(1), LONG).reason
            desk.request_right()
            assert desk.command(command.Twist, twist(1), LONG).executed


def test_what_is_wrong_is_told_with_its_mend(pair, node):
    robot, controller = pair
    with pytest.raises(ropewalk.ContentError, match="carries robot_remote_control.Pose, not robot_remote_control.Twist"):
        robot.set(telemetry.CurrentPose, twist(1))
    with pytest.raises(ropewalk.ContentError, match="not a int"):
        controller.send(command.Twist, 7)
    with pytest.raises(ropewalk.ContentError, match="no body of"):
        robot.set(telemetry.CurrentPose, b"\xff\xff")
    with pytest.raises(ropewalk.ContentError, match="no body of"):
        controller.send(command.Twist, b"\xff\xff")
    with pytest.raises(ropewalk.ContentError, match="is the most"):
        robot.set(TANK, bytes(300 << 20))
    with pytest.raises(ropewalk.BadName, match="1 to 128"):
        robot.on(remote.CommandKind(""), print)
    with pytest.raises(ropewalk.BadName):
        controller.send(SPRAY, b"", expiry=-1)
    with pytest.raises(ropewalk.BadName, match="no name"):
        remote.Robot(node, "no name")
    with pytest.raises(AttributeError):
        types.NoSuchMessage
    robot.stop()
    with pytest.raises(ropewalk.NoPeer, match="stopped"):
        robot.set(TANK, b"")
    controller.stop()
    controller.stop()
    with pytest.raises(ropewalk.NoPeer, match="stopped"):
        controller.command(SPRAY, b"", LONG)


def test_handlers_are_freed_with_their_robot(node):
    class Handler:
        def __call__(self, *_):
            pass

    gone = threading.Event()
    handler = Handler()
    weakref.finalize(handler, gone.set)
    robot = remote.Robot(node, "brief")
    robot.on(SPRAY, handler)
    robot.stop()
    del robot, handler
    gc.collect()
    assert gone.wait(LONG)


def test_after_fork_the_childs_ends_fail(pair):
    robot, controller = pair
    child = os.fork()
    if child == 0:
        good = 0
        for use in (lambda: robot.set(TANK, b""), lambda: controller.send(SPRAY, b"")):
            try:
                use()
            except ropewalk.Forked:
                good += 1
        robot.stop()
        os._exit(0 if good == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert controller.fetch(telemetry.RobotName).value == "rover"


def test_a_program_ends_while_it_is_commanded(program, node):
    robot = program("""
        import ropewalk, sys, threading
        from ropewalk import remote
        robot = remote.Robot(ropewalk.Node("r"), "rover")
        done = threading.Event()
        @robot.on(remote.CommandKind("acme.Spray"))
        def spray(body, context):
            if body == b"end":
                done.set()
        print("ready", flush=True)
        done.wait()
    """)
    assert robot.stdout.readline() == "ready\n"
    with remote.Controller(node, "desk", "rover") as desk:
        assert desk.wait_until_found(LONG)
        for _ in range(50):
            desk.send(SPRAY, b"")
        desk.command(SPRAY, b"end", LONG)
        for _ in range(200):
            desk.send(SPRAY, b"")
    assert robot.wait(LONG) == 0


def test_stubs_are_those_of_the_kinds_and_messages():
    made = subprocess.run(
        [sys.executable, Path(__file__).parent / "make_stubs.py", "--check"], capture_output=True, text=True
    )
    assert made.returncode == 0, made.stdout + made.stderr
