"""Robots, which receive commands and send telemetry, and controllers, which send commands and receive telemetry, on one
host or, over links, on several: docs/guide/remote.md.

    robot = remote.Robot(node, "rover")

    @robot.on(command.Twist)
    def drive(twist, context):
        if twist.linear.x > 1:
            raise remote.Refused("faster than the wheels turn")
        base.drive(twist.linear.x, twist.angular.z)

    desk = remote.Controller(node, "desk", "rover")         # over ZeroMQ: docs/guide/remote-zmq.md
    desk.wait_until_found(10)
    print(desk.command(command.Twist, types.Twist(linear={"x": 0.5})))      # executed
    print(await desk.send(command.Twist, types.Twist(linear={"x": 2})))     # rejected: faster than the wheels turn

Messages are classes of Google's protobuf (`pip install 'ropewalk[remote]'`).
"""

from __future__ import annotations

import asyncio
import atexit
import os
import weakref
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, Union

from .. import Node, _native
from .._errors import Error
from .._failures import Failures, text_of

try:
    from . import types
except ImportError as e:
    raise ImportError("ropewalk.remote needs Google's protobuf: pip install 'ropewalk[remote]'") from e

from . import command, telemetry
from ._kinds import CommandKind, TelemetryKind, decode, encode

__all__ = [
    "CommandKind", "Context", "Controller", "FileInfo", "Info", "Outcome", "Refused", "Right", "Robot", "Sent",
    "TelemetryKind", "Zmq", "command", "make_key", "telemetry", "types",
]  # fmt: skip

B = TypeVar("B")
_Path = Union[str, "os.PathLike[str]"]

#: Robots and controllers to stop before the interpreter ends: their threads call into it.
_running: weakref.WeakSet[Any] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    for end in list(_running):
        end.stop()


class Refused(Error):
    """Raised by a handler that does not execute a command: the controller gets only this text. For other exceptions it
    also gets their name."""


@dataclass(frozen=True)
class Context:
    """Origin and age of a command."""

    #: The controller's name, or the robot's own name if the robot itself stops a subsystem that lost its controller.
    controller: str
    #: Number of the controller's run; 0: the robot itself.
    controller_id: int
    #: Increases with each request of its controller.
    sequence: int
    #: Upper bound of its age in seconds when it arrived; None: unknown.
    age: float | None


@dataclass(frozen=True)
class Info:
    """Metadata of a telemetry value."""

    #: 0 if there is only one.
    channel: int
    #: Number of the value within its kind and channel, assigned by the robot, starting at 1.
    sequence: int
    #: How many values of this kind and channel are missing since the first one received.
    lost: int


@dataclass(frozen=True)
class Outcome:
    """The outcome of a command."""

    #: "executed"; "rejected" by the robot; "expired": too old when it arrived, or overtaken; "unreachable": the robot's
    #: answer did not arrive in time.
    what: str
    #: Why it was not executed, for people.
    reason: str = ""
    #: Whether it may have been executed: also possible if the robot was unreachable.
    maybe_executed: bool = False

    @property
    def executed(self) -> bool:
        """Whether it was certainly executed."""
        return self.what == "executed"

    def __str__(self) -> str:
        maybe = ", maybe executed" if self.maybe_executed and not self.executed else ""
        return f"{self.what}{maybe}: {self.reason}" if self.reason else f"{self.what}{maybe}"


@dataclass(frozen=True)
class Right:
    """The holder of the right to move."""

    #: The number of a controller's run (`Controller.id`); None: nobody.
    holder: int | None
    holder_name: str
    #: Whether the asking controller holds it.
    mine: bool


@dataclass(frozen=True)
class FileInfo:
    """A file that a robot shares."""

    #: Path relative to the shared folder; empty if a single file is shared.
    path: str
    #: Size in bytes.
    size: int


@dataclass(frozen=True)
class Zmq:
    """How to reach a robot or controller over ZeroMQ: `Zmq("tcp://0.0.0.0:7010", key="rover.key",
    peers="controllers")`. If other hosts can reach the address, it needs keys, or `insecure`."""

    #: `tcp://IP:PORT` or `ipc:///PATH`; for a robot also `tcp://IP:*` for any port. With `plain_v6` it is the address
    #: for requests; a robot without an address then uses ports 7001 and 7002 of this host.
    address: str = ""
    #: The file with this end's secret key (`make_key`).
    key: _Path | None = None
    #: For a robot: the file with the controllers that may talk to it, one per line: public key, blank, name. For a
    #: controller: the file with the robot's public key.
    peers: _Path | None = None
    #: Allows other hosts without keys: anyone who can reach the address can command the robot.
    insecure: bool = False
    #: Version 6 of Robot Remote Control, for robots and controllers of other vendors: neither encrypted nor
    #: authenticated.
    plain_v6: bool = False
    #: With `plain_v6`: the address of the telemetry.
    telemetry: str = ""
    #: For a robot: bytes of telemetry that may wait for slow listeners; 0: 64 MiB.
    waiting_bytes: int = 0


def make_key(path: _Path) -> str:
    """Creates a key for one robot or controller: writes it to `path`, readable only by its owner, and the public key,
    which peers get, to `path` with `.pub` appended. Returns the public key. Overwrites nothing."""
    return _native.make_key(path)


class _End:
    """Common part of robots and controllers. `with` stops them."""

    _native: Any
    _failures: Failures

    @property
    def errors(self) -> int:
        """Number of exceptions of its callbacks."""
        return self._failures.count

    def _counted(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """`f`, with its exceptions counted."""

        def counted(*args: Any) -> Any:
            try:
                return f(*args)
            except Exception:
                self._failures.add()
                raise

        return counted

    def stop(self) -> None:
        """Stops it: no callback is called after this. It cannot be used again."""
        self._native.stop()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Robot(_End):
    """A robot on this host's bus, called `name` there and for people, that can also be reached over `zmq`; without a
    node, only over that. Any thread may use it. Its callbacks run on threads of the library, which wait for them, so
    they should return soon. With `start=False` it answers nobody before `start`, so that everything can be registered
    first. With `require_request` the right to move has to be requested; otherwise a free right goes to the first
    controller that moves. A controller is lost after `lost_after` seconds of silence and two round trips. Without
    `allow_v6_motion` controllers of version 6 cannot move it. A twist holds for `twist_hold` seconds: if no other
    command moves the same subsystem within this time, its handler gets one without velocity from the robot itself; with
    None it holds until another command arrives."""

    def __init__(
        self,
        node: Node | None,
        name: str,
        *,
        zmq: Zmq | Sequence[Zmq] = (),
        start: bool = True,
        require_request: bool = False,
        lost_after: float = 1.0,
        allow_v6_motion: bool = True,
        twist_hold: float | None = 0.5,
    ) -> None:
        self._native = _native.Robot(
            None if node is None else node._native,
            name,
            zmq=[zmq] if isinstance(zmq, Zmq) else list(zmq),
            start=start,
            require_request=require_request,
            lost_after=lost_after,
            allow_v6_motion=allow_v6_motion,
            twist_hold=twist_hold,
        )
        self._failures = Failures(f"a function of the robot {name}")
        _running.add(self)

    def start(self) -> None:
        """Starts to serve controllers, for a robot that was created with `start=False`; otherwise does nothing. If it
        raises, for instance because an address is in use, the robot has ended."""
        self._native.start()

    def zmq_address(self, end: int = 0, telemetry: bool = False) -> str | None:
        """Where controllers reach end number `end` of `zmq`, with its actual port, or, with `telemetry`, the address of
        version 6's telemetry; None before the robot has started."""
        address: str | None = self._native.zmq_address(end, telemetry)
        return address

    def share(self, identifier: str, path: _Path) -> None:
        """Shares a file, or all files below a folder, with controllers, under its own identifier. Links are followed
        only if they stay below the folder."""
        self._native.share(identifier, path)

    def ask_permission(self, description: str) -> Future[bool]:
        """Asks the robot's controllers for a permission (`telemetry.PermissionRequest`, answered by
        `command.Permission`). Wait for the answer with `.result(timeout)`, or `await asyncio.wrap_future(...)`. The
        answer is no when the robot stops, and when 64 newer questions are open."""
        answer: Future[bool] = Future()
        # Nobody can cancel it from here on, so the answer can always be set.
        answer.set_running_or_notify_cancel()
        self._native.ask_permission(description, answer.set_result)
        return answer

    def on(
        self,
        kind: CommandKind[B],
        handler: Callable[[B, Context], object] | None = None,
        *,
        moves: str | None = None,
    ) -> Any:
        """`handler(body, context)` executes commands of a kind from now on; also a decorator. The controller learns
        that a command was executed, or rejected with the text of the handler's exception. Commands that are expired,
        repeated, out of order or not allowed do not reach the handler. `moves` is the subsystem that they move, instead
        of the kind's own."""
        if handler is None:
            return lambda f: self.on(kind, f, moves=moves) or f

        def carry_out(body: bytes, controller: str, id: int, sequence: int, age: float | None) -> str | None:
            try:
                handler(decode(kind, body), Context(controller, id, sequence, age))
            except Refused as e:
                return text_of(e, name=False) or "the robot's program gave no reason"
            except Exception as e:
                self._failures.note(e)
                return text_of(e)
            return None

        self._native.on_command(kind.name, moves or kind.moves, carry_out)
        return None

    def set(self, kind: TelemetryKind[B], body: B | bytes, channel: int = 0) -> None:
        """Sets the latest value of a telemetry kind and channel, and sends it to all listeners. Never blocks. Raises
        ContentError if the body does not match the kind, or is too long."""
        self._native.set(kind.name, channel, encode(kind, body))

    def on_link_lost(self, f: Callable[[str, str], object]) -> Callable[[str, str], object]:
        """`f(subsystem, controller)` is called when the controller that moved a subsystem is lost. If it returns True,
        or raises, the default action also runs: zero twists, joints that hold."""
        self._native.on_link_lost(self._counted(lambda subsystem, controller: bool(f(subsystem, controller))))
        return f

    def on_controller(self, f: Callable[[int, str, bool], object]) -> Callable[[int, str, bool], object]:
        """`f(id, name, found)` is called when controllers connect or are lost."""
        self._native.on_controller(self._counted(f))
        return f

    def on_take_over(self, f: Callable[[str, str, str], object]) -> Callable[[str, str, str], object]:
        """`f(subsystem, by, holder)` decides whether a controller may take the right to move from another. Without it,
        and if it raises, the answer is no."""
        self._native.on_take_over(self._counted(lambda subsystem, by, holder: bool(f(subsystem, by, holder))))
        return f

    def holder(self, subsystem: str) -> int | None:
        """The number of the controller that may move a subsystem."""
        id: int | None = self._native.holder(subsystem)
        return id


class Sent:
    """A command that was sent. Wait for its outcome, await it, poll it, or drop it; the command stays under way."""

    def __init__(self, native: Any) -> None:
        self._native = native

    def wait(self, timeout: float | None = None) -> Outcome | None:
        """Blocks until the outcome of the command is known. Returns None after `timeout` seconds. Do not call it from a
        callback of the library."""
        reported = self._native.wait(timeout)
        return None if reported is None else Outcome(*reported)

    def poll(self) -> Outcome | None:
        """The outcome of the command, if it is known."""
        return self.wait(0)

    def __await__(self) -> Generator[Any, None, Outcome]:
        return self._outcome().__await__()

    async def _outcome(self) -> Outcome:
        loop = asyncio.get_running_loop()
        while (outcome := self.poll()) is None:
            event = asyncio.Event()

            def known(event: asyncio.Event = event) -> None:
                try:
                    loop.call_soon_threadsafe(event.set)
                except RuntimeError:
                    pass  # The loop has ended: nobody waits any more.

            self._native.listen(known)
            await event.wait()
        return outcome


class Controller(_End):
    """Commands the robot called `robot` on this bus, or the one at the address of a `Zmq` (which needs no node), and
    receives its telemetry. `name` is for people. Any thread may use it. Its callbacks run on threads of the library,
    which wait for them, so they should return soon, and must not wait for an answer of the same robot. `heartbeat` is
    the interval in seconds between signs of life to the robot."""

    def __init__(self, node: Node | None, name: str, robot: str | Zmq, *, heartbeat: float = 0.3) -> None:
        native = None if node is None else node._native
        self._native = _native.Controller(native, name, robot, heartbeat=heartbeat)
        self._failures = Failures(f"a function of the controller {name}")
        _running.add(self)

    def wait_until_found(self, timeout: float | None = None) -> bool:
        """Blocks until the robot has answered and described its capabilities. Returns False if `timeout` seconds pass
        first."""
        return bool(self._native.wait_until_found(timeout))

    def on_connection(self, f: Callable[[bool], object]) -> Callable[[bool], object]:
        """`f(found)` is called when the robot is found or lost."""
        self._native.on_connection(self._counted(f))
        return f

    @property
    def round_trip(self) -> float | None:
        """Smoothed seconds from a heartbeat to its answer; None before the first."""
        time: float | None = self._native.round_trip
        return time

    @property
    def id(self) -> int:
        """The number of its run, which identifies it to the robot and to other controllers."""
        return int(self._native.id)

    @property
    def robot_commands(self) -> list[str]:
        """Names of the commands that the robot accepts."""
        return list(self._native.robot()[0])

    @property
    def robot_telemetry(self) -> list[str]:
        """Names of the telemetry that the robot has."""
        return list(self._native.robot()[1])

    @property
    def subsystems(self) -> list[str]:
        """Names of the robot's subsystems."""
        return list(self._native.robot()[2])

    def command(self, kind: CommandKind[B], body: B | bytes, expiry: float | None = None) -> Outcome:
        """Sends a command, and blocks until its outcome is known: at most for its expiry and the time for the
        answer."""
        outcome = self.send(kind, body, expiry).wait()
        assert outcome is not None
        return outcome

    def send(self, kind: CommandKind[B], body: B | bytes, expiry: float | None = None) -> Sent:
        """Sends a command, which expires after `expiry` seconds: None means twice the round trip and at least 0.2 s;
        `math.inf` is not allowed for commands that move. Never blocks."""
        return Sent(self._native.send(kind.name, encode(kind, body), expiry))

    def on(self, kind: TelemetryKind[B], f: Callable[[B, Info], object] | None = None, channel: int = 0) -> Any:
        """`f(body, info)` receives each value of a telemetry kind and channel from now on; also a decorator."""
        if f is None:
            return lambda g: self.on(kind, g, channel) or g

        def reported(body: bytes, channel: int, sequence: int, lost: int) -> None:
            f(decode(kind, body), Info(channel, sequence, lost))

        self._native.on_telemetry(kind.name, channel, self._counted(reported))
        return None

    def latest(self, kind: TelemetryKind[B], channel: int = 0) -> B | None:
        """The latest value that the robot sent by itself; None before the first."""
        body = self._native.latest(kind.name, channel)
        return None if body is None else decode(kind, body)

    def fetch(self, kind: TelemetryKind[B], channel: int = 0, timeout: float = 30.0) -> B | None:
        """Requests the latest value from the robot, and blocks for it at most `timeout` seconds; None if none has been
        set yet. Raises Rejected if the robot has no such telemetry, CallTimeout if it does not answer."""
        body = self._native.fetch(kind.name, channel, timeout)
        return None if body is None else decode(kind, body)

    def files(self, identifier: str) -> list[FileInfo]:
        """The files that the robot shares under an identifier; `telemetry.FileDefinition` lists the identifiers. Blocks
        for the answer. Raises Rejected if it shares nothing under that name, CallTimeout if it does not answer."""
        return [FileInfo(*file) for file in self._native.files(identifier)]

    def download(
        self,
        identifier: str,
        path: str = "",
        into: _Path = ".",
        progress: Callable[[str, int, int], object] | None = None,
    ) -> Path:
        """Downloads one file into the folder `into`, under its path there (a single file, whose path is empty, under
        its identifier). Blocks until the download is complete and its SHA-256 matches the robot's. An interrupted
        download resumes where it stopped; an incomplete file is called `.NAME.part`. Nothing outside of `into` is
        written. `progress(path, done, size)` is called for each piece, on this thread; an exception of it stops the
        download, as Ctrl-C does. Raises Rejected and CallTimeout like `files`, BadName if the path leads out of the
        folder, SystemFault if the file cannot be written, ContentError if the checksum does not match."""
        return Path(self._native.download(identifier, path, into, progress or _nothing)[0])

    def download_all(
        self, identifier: str, into: _Path = ".", progress: Callable[[str, int, int], object] | None = None
    ) -> list[Path]:
        """Like `download`, for all files that are shared under an identifier."""
        return [Path(file) for file in self._native.download(identifier, None, into, progress or _nothing)]

    def right(self, subsystem: str = "") -> Right:
        """Returns who may move a subsystem, or the whole robot. Blocks for the answer, at most 30 s, like the other
        functions here. They raise Rejected if the robot refuses, CallTimeout if it does not answer."""
        return Right(*self._native.right(subsystem, "ask"))

    def request_right(self, subsystem: str = "") -> Right:
        """Requests the right to move; granted if nobody else has it."""
        return Right(*self._native.right(subsystem, "request"))

    def release_right(self, subsystem: str = "") -> Right:
        """Gives the right to move back."""
        return Right(*self._native.right(subsystem, "release"))

    def hand_right_over(self, to: int, subsystem: str = "") -> Right:
        """Hands the right to move over to the controller with this number."""
        return Right(*self._native.right(subsystem, "hand_over", to))

    def take_right_over(self, subsystem: str = "") -> Right:
        """Takes the right to move, even from another controller, if the robot permits it."""
        return Right(*self._native.right(subsystem, "take_over"))


def _nothing(*_: object) -> None:
    pass
