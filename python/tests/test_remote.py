"""Correct and incorrect use of robots and controllers."""

import asyncio
import gc
import os
import random
import signal
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
    # A busy machine must not count as a lost peer.
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
    # A handler's exception is reported, and the handler keeps working.
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
    # A user-defined kind with messages: of any class with the same name.
    as_pose = remote.CommandKind(SPRAY.name, types.Pose)
    assert controller.command(as_pose, types.Pose(orientation2d=1), LONG).executed
    assert bodies == [b"\x01\x02", types.Pose(orientation2d=1).SerializeToString()]
    robot.on(as_pose, lambda body, _: bodies.append(body.orientation2d))
    assert controller.command(as_pose, types.Pose(orientation2d=2), LONG).executed and bodies[-1] == 2
    assert controller.command(SPRAY, b"\xff", LONG).reason.startswith("ContentError: not a valid acme.Spray")


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


# A callback's exception is reported on standard error, as Python does with such exceptions.
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
    # A callback that raised also gets the next value.
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
    # The twist's own hold stops it before the link is found to be lost.
    eventually(lambda: asked[-1] == ("base", "desk"))
    assert ("rival", True) in events


def test_the_right_has_to_be_requested_where_the_robot_says_so(node):
    with remote.Robot(node, "shy", require_request=True) as robot:
        robot.on(command.Twist, lambda *_: None)
        with remote.Controller(node, "desk", "shy") as desk:
            assert desk.wait_until_found(LONG)
            assert "request it first" in desk.command(command.Twist, twist(1), LONG).reason
            desk.request_right()
            assert desk.command(command.Twist, twist(1), LONG).executed


def test_errors_state_the_fix(pair, node):
    robot, controller = pair
    with pytest.raises(ropewalk.ContentError, match="carries robot_remote_control.Pose, not robot_remote_control.Twist"):
        robot.set(telemetry.CurrentPose, twist(1))
    with pytest.raises(ropewalk.ContentError, match="not a int"):
        controller.send(command.Twist, 7)
    with pytest.raises(ropewalk.ContentError, match="not a valid"):
        robot.set(telemetry.CurrentPose, b"\xff\xff")
    with pytest.raises(ropewalk.ContentError, match="not a valid"):
        controller.send(command.Twist, b"\xff\xff")
    with pytest.raises(ropewalk.ContentError, match="exceeds the limit"):
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


def test_all_is_registered_before_anyone_is_served(node):
    robot = remote.Robot(node, "later", start=False)
    with robot, remote.Controller(node, "desk", "later") as desk:
        outcomes = []

        def early():
            while not outcomes or not outcomes[-1].executed:
                outcomes.append(desk.command(SPRAY, b"", 1))
                time.sleep(0.002)

        thread = threading.Thread(target=early)
        thread.start()
        assert not desk.wait_until_found(0.1)
        robot.on(SPRAY, lambda *_: None)
        robot.set(TANK, b"full")
        assert not any(outcome.executed for outcome in outcomes)
        robot.start()
        robot.start()
        thread.join()
        # However early it asked, it never learned that the command does not exist.
        assert not any(outcome.what == "rejected" for outcome in outcomes)
        assert desk.fetch(TANK) == b"full"
    with pytest.raises(ropewalk.NoPeer):
        robot.start()


def share(robot, folder):
    """Files for `fetch`, shared by a robot."""
    mesh = random.Random(7).randbytes(1_500_000)
    (folder / "model/meshes").mkdir(parents=True)
    (folder / "model/meshes/arm.stl").write_bytes(mesh)
    (folder / "model/robot.urdf").write_text("<robot/>")
    (folder / "run.log").write_text("all well")
    (folder / "secret").write_text("outside")
    robot.share("model", folder / "model")
    robot.share("log", folder / "run.log")
    return mesh


def fetch(desk, mesh, into):
    files = desk.files("model")
    assert files == [remote.FileInfo("meshes/arm.stl", len(mesh)), remote.FileInfo("robot.urdf", 8)]
    assert desk.files("log") == [remote.FileInfo("", 8)]
    definition = desk.fetch(telemetry.FileDefinition)
    assert [file.identifier for file in definition.file] == ["log", "model"]
    assert list(definition.isFolder) == [False, True]

    # An exception of progress stops the download; the next one resumes it.
    def enough(path, done, size):
        raise KeyError(path)

    with pytest.raises(KeyError, match="meshes/arm.stl"):
        desk.download("model", "meshes/arm.stl", into, enough)
    part = into / "meshes/.arm.stl.part"
    seen = []

    def again():
        # The stopped download may still hold the file.
        try:
            return desk.download("model", "meshes/arm.stl", into, lambda *reported: seen.append(reported))
        except ropewalk.SystemFault as e:
            assert "another download of this file is in progress" in str(e)
            return None

    fetched = []
    eventually(lambda: fetched.append(again()) or fetched[-1])
    assert fetched[-1] == into / "meshes/arm.stl" and fetched[-1].read_bytes() == mesh and not part.exists()
    assert seen[-1] == ("meshes/arm.stl", len(mesh), len(mesh)) and seen[0][1] > 256 << 10
    # The checksum detects different old content, and the file is fetched again.
    (into / ".log.part").write_text("all ill.")
    assert desk.download("log", into=into).read_text() == "all well"
    everything = desk.download_all("model", into / "all")
    assert [file.name for file in everything] == ["arm.stl", "robot.urdf"] and everything[0].read_bytes() == mesh
    # No path leads out of the folder.
    for path in ("../../secret", "/etc/passwd", "meshes/../../secret"):
        with pytest.raises(ropewalk.BadName, match="the path"):
            desk.download("model", path, into)
    for identifier, path in (("model", "none"), ("nothing", "")):
        with pytest.raises(ropewalk.Rejected, match="No such file|shares no file or folder called"):
            desk.download(identifier, path, into)
    with pytest.raises(ropewalk.Rejected):
        desk.files("nothing")
    with pytest.raises(ropewalk.SystemFault, match="arm.stl"):
        desk.download("log", "", everything[0])


def test_files_are_fetched_with_their_checksum(pair, tmp_path):
    robot, desk = pair
    with pytest.raises(ropewalk.SystemFault, match="none cannot be shared"):
        robot.share("none", tmp_path / "none")
    fetch(desk, share(robot, tmp_path), tmp_path / "into")


def test_a_download_is_interrupted_by_ctrl_c(program, pair, tmp_path):
    robot, _ = pair
    with (tmp_path / "film").open("wb") as film:
        film.truncate(2 << 30)
    robot.share("film", tmp_path / "film")
    child = program(f"""
        import ropewalk
        from ropewalk import remote
        desk = remote.Controller(ropewalk.Node("d"), "child", "rover")
        assert desk.wait_until_found({LONG})
        try:
            desk.download("film", into={str(tmp_path / "into")!r}, progress=lambda *_: print("part", flush=True))
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        desk.stop()
    """)
    assert child.stdout.readline() == "part\n"
    child.send_signal(signal.SIGINT)
    assert child.stdout.read().endswith("interrupted\n")
    assert child.wait(LONG) == 0 and (tmp_path / "into/.film.part").stat().st_size < 2 << 30


def test_permissions_are_asked_for_and_given(node):
    robot = remote.Robot(node, "polite", lost_after=5)
    with robot, remote.Controller(node, "desk", "polite") as desk:
        assert desk.wait_until_found(LONG)
        may = robot.ask_permission("May I cross the road?")
        # Asked before the controller listens, so the question is kept for queries.
        question = desk.fetch(telemetry.PermissionRequest)
        assert question.description == "May I cross the road?" and not may.done() and not may.cancel()
        answer = types.Permission(requestuid=question.requestuid, granted=True)
        assert desk.command(command.Permission, answer, LONG).executed
        assert may.result(LONG) is True
        assert "no question with this number is open" in desk.command(command.Permission, answer, LONG).reason

        @desk.on(telemetry.PermissionRequest)
        def asked(question, _):
            if question.description == "And back?":
                desk.send(command.Permission, types.Permission(requestuid=question.requestuid), LONG)

        async def back():
            while True:
                try:
                    return await asyncio.wait_for(asyncio.wrap_future(robot.ask_permission("And back?")), 1)
                except asyncio.TimeoutError:
                    pass  # Asked before anyone listened.

        assert asyncio.run(back()) is False
        nobody = robot.ask_permission("Anybody?")
    assert nobody.result(LONG) is False


@pytest.fixture
def keys(tmp_path):
    """Key files: of a robot, of the operator that it admits, and of an unknown controller."""
    folder = tmp_path / "keys"
    folder.mkdir()
    for name in ("rover", "desk", "unknown"):
        public = remote.make_key(folder / f"{name}.key")
        assert (folder / f"{name}.key.pub").read_text() == public + "\n"
    (folder / "controllers").write_text((folder / "desk.key.pub").read_text().strip() + " desk\n")
    return folder


def unlisted_peers(address, keys):
    """Controllers with wrong keys, and with none."""
    return [
        remote.Zmq(address, key=keys / "unknown.key", peers=keys / "rover.key.pub"),
        remote.Zmq(address, key=keys / "desk.key", peers=keys / "unknown.key.pub"),
        remote.Zmq(address),
    ]


def test_a_robot_in_rust_is_commanded_over_zeromq_with_keys(keys, tmp_path):
    binary = os.environ.get("ROPEWALK")
    if binary is None:
        pytest.skip("ROPEWALK names no command; `make python` does")
    rover = subprocess.Popen(
        [binary, "robot", "sim", "--zmq", "tcp://127.0.0.1:*", "--key", keys / "rover.key", "--allow", keys / "controllers"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        ready = rover.stdout.readline()
        assert "CURVE" in ready
        address = ready.split()[-1]
        way = remote.Zmq(address, key=keys / "desk.key", peers=keys / "rover.key.pub")
        with remote.Controller(None, "desk", way) as desk:
            assert desk.wait_until_found(LONG)
            assert desk.command(command.Twist, twist(0.1), LONG).executed
            urdf = desk.download("model", "rover.urdf", tmp_path)
            assert urdf.stat().st_size == desk.files("model")[0].size > 0
            with pytest.raises(ropewalk.BadName, match="the path"):
                desk.download("model", "../../etc/passwd", tmp_path)

            # The rover asks before it sounds its horn.
            @desk.on(telemetry.PermissionRequest)
            def asked(question, _):
                desk.send(command.Permission, types.Permission(requestuid=question.requestuid, granted=True), LONG)

            log = []
            desk.on(telemetry.LogMessage, lambda message, _: log.append(message.message))
            horn = types.SimpleAction(name="horn", state=1)
            assert desk.command(command.SimpleAction, horn, LONG).executed

            def sounds():
                open_question = desk.fetch(telemetry.PermissionRequest)
                answer = types.Permission(requestuid=open_question.requestuid, granted=True)
                desk.command(command.Permission, answer, LONG)
                return "sounds the horn" in log

            eventually(sounds)
        for wrong in unlisted_peers(address, keys):
            with remote.Controller(None, "unknown", wrong) as unknown:
                assert unknown.command(command.Twist, twist(1), 0.5).what == "unreachable"
    finally:
        rover.terminate()
        rover.wait()
        rover.stdout.close()


def test_robots_and_controllers_meet_over_zeromq(node, keys, tmp_path):
    own = remote.Zmq("tcp://127.0.0.1:*", key=keys / "rover.key", peers=str(keys / "controllers"))
    v6 = remote.Zmq("tcp://127.0.0.1:*", plain_v6=True, telemetry="tcp://127.0.0.1:*")
    robot = remote.Robot(node, "rover", zmq=[own, v6], start=False, lost_after=5)
    moved = []
    robot.on(command.Twist, lambda body, context: moved.append((body.linear.x, context.controller)))
    assert robot.zmq_address() is None
    with robot:
        robot.start()
        address = robot.zmq_address()
        assert address.startswith("tcp://127.0.0.1:") and robot.zmq_address(0, telemetry=True) is None
        way = remote.Zmq(address, key=keys / "desk.key", peers=keys / "rover.key.pub")
        with remote.Controller(None, "desk", way) as desk:
            assert desk.wait_until_found(LONG)
            assert desk.command(command.Twist, twist(0.5), LONG).executed
            fetch(desk, share(robot, tmp_path), tmp_path / "into")
        for wrong in unlisted_peers(address, keys):
            with remote.Controller(None, "unknown", wrong) as unknown:
                assert unknown.command(command.Twist, twist(1), 0.5).what == "unreachable"
        # A controller whose key is not listed reads that reason.
        with remote.Controller(None, "unknown", unlisted_peers(address, keys)[0]) as unknown:
            eventually(lambda: "allowed keys" in unknown.command(command.Twist, twist(1), 0.5).reason)
        # The same robot, on the bus and with version 6.
        with remote.Controller(node, "here", "rover") as here:
            assert here.wait_until_found(LONG)
            assert here.command(SPRAY, b"", LONG).what == "rejected"
        plain = remote.Zmq(robot.zmq_address(1), plain_v6=True, telemetry=robot.zmq_address(1, telemetry=True))
        with remote.Controller(None, "other", plain) as other:
            assert other.wait_until_found(LONG)
            eventually(lambda: other.command(command.Twist, twist(0.25), LONG).executed)
            assert other.fetch(telemetry.RobotName).value == "rover"
        assert moved[0] == (0.5, "desk") and moved[-1] == (0.25, "")
        with pytest.raises(ropewalk.BadName, match="choose another port"):
            remote.Robot(None, "rival", zmq=remote.Zmq(address))
    with remote.Robot(None, "careful", zmq=v6, allow_v6_motion=False) as careful:
        careful.on(command.Twist, lambda *_: None)
        plain = remote.Zmq(careful.zmq_address(), plain_v6=True, telemetry=careful.zmq_address(telemetry=True))
        with remote.Controller(None, "mover", plain) as mover:
            assert mover.wait_until_found(LONG)
            assert mover.command(command.Twist, twist(1), LONG).what == "rejected"


def test_zeromq_is_in_the_open_only_by_word(keys):
    def refused(match, **options):
        for make in (
            lambda zmq: remote.Robot(None, "rover", zmq=zmq),
            lambda zmq: remote.Controller(None, "desk", zmq),
        ):
            with pytest.raises(ropewalk.BadName, match=match):
                make(remote.Zmq(**options))

    refused("set keys", address="tcp://192.0.2.1:7010")
    refused("not an address", address="rover")
    refused("other side", address="tcp://127.0.0.1:7010", key=keys / "rover.key")
    refused("its secret key", address="tcp://127.0.0.1:7010", peers=keys / "controllers")
    refused("plain_v6", address="tcp://127.0.0.1:7010", telemetry="tcp://127.0.0.1:7011")
    with pytest.raises(ropewalk.BadName, match="set keys"):
        remote.Robot(None, "r", zmq=remote.Zmq("tcp://0.0.0.0:*", plain_v6=True, telemetry="tcp://0.0.0.0:*"))
    with pytest.raises(ropewalk.BadName, match="needs a node"):
        remote.Robot(None, "rover")
    with pytest.raises(ropewalk.BadName, match="needs a node"):
        remote.Controller(None, "desk", "rover")
    with pytest.raises(ropewalk.BadName, match="rover.key"):
        remote.make_key(keys / "rover.key")
    (keys / "rover.key").chmod(0o644)
    refused("chmod 600", address="tcp://127.0.0.1:7010", key=keys / "rover.key", peers=keys / "controllers")


def test_stubs_are_those_of_the_kinds_and_messages():
    made = subprocess.run(
        [sys.executable, Path(__file__).parent / "make_stubs.py", "--check"], capture_output=True, text=True
    )
    assert made.returncode == 0, made.stdout + made.stderr
