"""Robots, which take commands and tell their state, and controllers, which send the one and hear the other, on one host
or, over links, on several: docs/guide/remote.md.

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

#: Robots and controllers that are to be stopped before the interpreter ends: their threads call into it.
_running: weakref.WeakSet[Any] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    for end in list(_running):
        end.stop()


class Refused(Error):
    """What a handler raises that does not carry a command out: the controller gets just this text. Of other exceptions it
    gets also their name."""


@dataclass(frozen=True)
class Context:
    """Where a command comes from and how old it is."""

    #: What the controller calls itself; the robot's own name where it stops by itself what lost its controller.
    controller: str
    #: Of the controller's run; 0: the robot itself.
    controller_id: int
    #: Rises with each request of its controller.
    sequence: int
    #: It was sent at most so many seconds ago when it came; None: nobody can know.
    age: float | None


@dataclass(frozen=True)
class Info:
    """What comes with a value of telemetry."""

    #: 0 where there is only one.
    channel: int
    #: Of this kind and channel, by the robot, from 1.
    sequence: int
    #: How many of this kind and channel are missing since the first that came.
    lost: int


@dataclass(frozen=True)
class Outcome:
    """What became of a command."""

    #: "executed"; "rejected" by the robot; "expired": too old when it came, or overtaken; "unreachable": the robot's word
    #: on it did not come in time.
    what: str
    #: Why it was not executed, for people.
    reason: str = ""
    #: Whether it may have been: also where the robot was unreachable.
    maybe_executed: bool = False

    @property
    def executed(self) -> bool:
        """Whether it was for sure."""
        return self.what == "executed"

    def __str__(self) -> str:
        maybe = ", maybe executed" if self.maybe_executed and not self.executed else ""
        return f"{self.what}{maybe}: {self.reason}" if self.reason else f"{self.what}{maybe}"


@dataclass(frozen=True)
class Right:
    """Who has the right to move."""

    #: The number of a controller's run (`Controller.id`); None: nobody.
    holder: int | None
    holder_name: str
    #: Whether that is the controller that asks.
    mine: bool


@dataclass(frozen=True)
class FileInfo:
    """A file that a robot shares."""

    #: Within the shared folder; empty where a single file is shared.
    path: str
    #: Bytes.
    size: int


@dataclass(frozen=True)
class Zmq:
    """How a robot or controller is reached over ZeroMQ: `Zmq("tcp://0.0.0.0:7010", key="rover.key", peers="controllers")`.
    Where other hosts reach it, it needs keys, or `insecure`."""

    #: `tcp://IP:PORT` or `ipc:///PATH`, of a robot also `tcp://IP:*` for any port. With `plain_v6` it is where requests go; a
    #: robot that gives no address then is at ports 7001 and 7002 of this host.
    address: str = ""
    #: The file with this end's secret key (`make_key`).
    key: _Path | None = None
    #: Of a robot: the file with the controllers that may speak to it, a line each: public key, blank, name. Of a controller: the
    #: file with the robot's public key.
    peers: _Path | None = None
    #: Does without keys where other hosts reach it: whoever does commands the robot.
    insecure: bool = False
    #: Version 6 of Robot Remote Control, for robots and controllers of other makers: neither encrypted nor authenticated.
    plain_v6: bool = False
    #: With `plain_v6`: where telemetry comes from.
    telemetry: str = ""
    #: Of a robot: bytes of telemetry that may wait for slow listeners; 0: 64 MiB.
    waiting_bytes: int = 0


def make_key(path: _Path) -> str:
    """Makes a key for one robot or controller: writes it to `path`, readable by its owner alone, and the public one, which others
    get, to `path` with `.pub` appended; gives that, too. Overwrites nothing."""
    return _native.make_key(path)


class _End:
    """What robots and controllers have in common. `with` stops them."""

    _native: Any
    _failures: Failures

    @property
    def errors(self) -> int:
        """How often functions that it was given raised."""
        return self._failures.count

    def _counted(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """`f`, whose exceptions are counted."""

        def counted(*args: Any) -> Any:
            try:
                return f(*args)
            except Exception:
                self._failures.add()
                raise

        return counted

    def stop(self) -> None:
        """Ends it: no function that it was given is called after this. It cannot be used again."""
        self._native.stop()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Robot(_End):
    """A robot on this host's bus, called `name` there and by people, and reached by `zmq` besides; without a node, by that alone.
    Any thread may use it. What it is given to call runs on threads of the library, which wait for it: it returns soon. With
    `start=False` nobody is answered before `start`, so that everything is registered first. With `require_request` the right to
    move has to be requested; otherwise a free right goes to whoever moves first. A controller is lost after `lost_after` seconds
    of silence and two round trips. Without `allow_v6_motion` controllers of version 6 do not move it. A twist holds for
    `twist_hold` seconds: unless another command moves the same subsystem meanwhile, its handler then gets one without velocity from the
    robot itself; with None it holds until another command comes."""

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
        """Serves controllers from now on, of a robot that was made with `start=False`; otherwise it does nothing. If it raises, for
        an address that is in use perhaps, the robot has ended."""
        self._native.start()

    def zmq_address(self, end: int = 0, telemetry: bool = False) -> str | None:
        """Where controllers reach the end that is number `end` of `zmq`, with the port that it got, or where its `telemetry` of
        version 6 is; None before the robot is started."""
        address: str | None = self._native.zmq_address(end, telemetry)
        return address

    def share(self, identifier: str, path: _Path) -> None:
        """Shares a file, or all files below a folder, with controllers, under an identifier of its own. Links are followed only
        where they stay below the folder."""
        self._native.share(identifier, path)

    def ask_permission(self, description: str) -> Future[bool]:
        """Asks whoever controls the robot for a permission (`telemetry.PermissionRequest`, answered by `command.Permission`). Wait
        for the answer by `.result(timeout)`, or `await asyncio.wrap_future(...)`. When the robot stops, and when 64 newer questions
        are open, it is no."""
        answer: Future[bool] = Future()
        # From here on nobody can cancel it: the answer always has its place.
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
        """`handler(body, context)` carries out commands of a kind from now on; also a decorator. The controller is told that
        a command was executed, or rejected with what the handler raises. What is expired, repeated, out of order or not allowed
        does not come. `moves` is the subsystem that they move, instead of what the kind says."""
        if handler is None:
            return lambda f: self.on(kind, f, moves=moves) or f

        def carry_out(body: bytes, controller: str, id: int, sequence: int, age: float | None) -> str | None:
            try:
                handler(decode(kind, body), Context(controller, id, sequence, age))
            except Refused as e:
                return text_of(e, name=False) or "the robot's program gives no reason"
            except Exception as e:
                self._failures.note(e)
                return text_of(e)
            return None

        self._native.on_command(kind.name, moves or kind.moves, carry_out)
        return None

    def set(self, kind: TelemetryKind[B], body: B | bytes, channel: int = 0) -> None:
        """Sets the latest value of a telemetry kind and channel, and tells all who listen. Never blocks. Raises ContentError
        where the body is none of the kind, or too long."""
        self._native.set(kind.name, channel, encode(kind, body))

    def on_link_lost(self, f: Callable[[str, str], object]) -> Callable[[str, str], object]:
        """`f(subsystem, controller)` is called when the controller that moved a subsystem is lost. If it returns True, or
        raises, then also that is done which is done without it: twists of zero, joints that hold."""
        self._native.on_link_lost(self._counted(lambda subsystem, controller: bool(f(subsystem, controller))))
        return f

    def on_controller(self, f: Callable[[int, str, bool], object]) -> Callable[[int, str, bool], object]:
        """`f(id, name, found)` is called when controllers come and go."""
        self._native.on_controller(self._counted(f))
        return f

    def on_take_over(self, f: Callable[[str, str, str], object]) -> Callable[[str, str, str], object]:
        """`f(subsystem, by, holder)` decides whether one controller may take the right to move from another. Without it, and
        if it raises: no."""
        self._native.on_take_over(self._counted(lambda subsystem, by, holder: bool(f(subsystem, by, holder))))
        return f

    def holder(self, subsystem: str) -> int | None:
        """The number of the controller that may move a subsystem."""
        id: int | None = self._native.holder(subsystem)
        return id


class Sent:
    """A command that was sent: wait for what becomes of it, await it, look now and then, or drop it: it goes on all the
    same."""

    def __init__(self, native: Any) -> None:
        self._native = native

    def wait(self, timeout: float | None = None) -> Outcome | None:
        """Blocks until it is known what became of the command; None if that took more than `timeout` seconds. Not in a
        function that the library calls."""
        told = self._native.wait(timeout)
        return None if told is None else Outcome(*told)

    def poll(self) -> Outcome | None:
        """What became of the command, if it is known."""
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
    """Commands the robot that is called `robot` on this bus, or is where a `Zmq` says (which needs no node), and hears its
    telemetry. `name` is for people. Any thread may use it. What it is given to call runs on threads of the library, which wait for it: it returns soon, and does not wait for an
    answer of the same robot. The robot hears every `heartbeat` seconds that it is there."""

    def __init__(self, node: Node | None, name: str, robot: str | Zmq, *, heartbeat: float = 0.3) -> None:
        native = None if node is None else node._native
        self._native = _native.Controller(native, name, robot, heartbeat=heartbeat)
        self._failures = Failures(f"a function of the controller {name}")
        _running.add(self)

    def wait_until_found(self, timeout: float | None = None) -> bool:
        """Blocks until the robot was heard and has said what it can do; False if `timeout` seconds passed first."""
        return bool(self._native.wait_until_found(timeout))

    def on_connection(self, f: Callable[[bool], object]) -> Callable[[bool], object]:
        """`f(found)` is called when the robot is found or lost."""
        self._native.on_connection(self._counted(f))
        return f

    @property
    def round_trip(self) -> float | None:
        """Seconds from a heartbeat to its answer, smoothed; None before the first."""
        time: float | None = self._native.round_trip
        return time

    @property
    def id(self) -> int:
        """The number of its run: who it is to the robot and to other controllers."""
        return int(self._native.id)

    @property
    def robot_commands(self) -> list[str]:
        """Names of the commands that the robot takes."""
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
        """Sends a command, and blocks until it is known what became of it: at most for its expiry and the way of the
        answer."""
        outcome = self.send(kind, body, expiry).wait()
        assert outcome is not None
        return outcome

    def send(self, kind: CommandKind[B], body: B | bytes, expiry: float | None = None) -> Sent:
        """Sends a command, which stays good for `expiry` seconds: None is twice the round trip and at least 0.2 s;
        `math.inf` is not for what moves. Never blocks."""
        return Sent(self._native.send(kind.name, encode(kind, body), expiry))

    def on(self, kind: TelemetryKind[B], f: Callable[[B, Info], object] | None = None, channel: int = 0) -> Any:
        """`f(body, info)` gets each value of a telemetry kind and channel from now on; also a decorator."""
        if f is None:
            return lambda g: self.on(kind, g, channel) or g

        def told(body: bytes, channel: int, sequence: int, lost: int) -> None:
            f(decode(kind, body), Info(channel, sequence, lost))

        self._native.on_telemetry(kind.name, channel, self._counted(told))
        return None

    def latest(self, kind: TelemetryKind[B], channel: int = 0) -> B | None:
        """The latest value that came by itself; None before the first."""
        body = self._native.latest(kind.name, channel)
        return None if body is None else decode(kind, body)

    def fetch(self, kind: TelemetryKind[B], channel: int = 0, timeout: float = 30.0) -> B | None:
        """Asks the robot for its latest value, and blocks for it at most `timeout` seconds; None: none was set yet. Raises
        Rejected where the robot has no such telemetry, CallTimeout where it does not answer."""
        body = self._native.fetch(kind.name, channel, timeout)
        return None if body is None else decode(kind, body)

    def files(self, identifier: str) -> list[FileInfo]:
        """The files that the robot shares under an identifier; which there are says `telemetry.FileDefinition`. Blocks for the
        answer. Raises Rejected where it shares nothing of that name, CallTimeout where it does not answer."""
        return [FileInfo(*file) for file in self._native.files(identifier)]

    def download(
        self,
        identifier: str,
        path: str = "",
        into: _Path = ".",
        progress: Callable[[str, int, int], object] | None = None,
    ) -> Path:
        """Fetches one file into the folder `into`, under its path there (a single file, whose path is empty, under its identifier),
        and blocks until it is whole and its SHA-256 is the robot's. An interrupted download goes on where it was; before it is
        whole it is called `.NAME.part`. Nothing outside of `into` is written. `progress(path, done, size)` is called for each piece,
        by this thread; what it raises ends the download, as Ctrl-C does. Raises Rejected and CallTimeout as `files`, BadName where
        the path leads out of the folder, SystemFault where it cannot be written, ContentError where the checksum is another."""
        return Path(self._native.download(identifier, path, into, progress or _nothing)[0])

    def download_all(
        self, identifier: str, into: _Path = ".", progress: Callable[[str, int, int], object] | None = None
    ) -> list[Path]:
        """As `download`, of all files that are shared under an identifier."""
        return [Path(file) for file in self._native.download(identifier, None, into, progress or _nothing)]

    def right(self, subsystem: str = "") -> Right:
        """Who may move a subsystem, or the whole robot. Blocks for the answer, at most 30 s, as do the others here. They raise
        Rejected where the robot does not grant it, CallTimeout where it does not answer."""
        return Right(*self._native.right(subsystem, "ask"))

    def request_right(self, subsystem: str = "") -> Right:
        """Asks for the right to move; granted if nobody else has it."""
        return Right(*self._native.right(subsystem, "request"))

    def release_right(self, subsystem: str = "") -> Right:
        """Gives the right to move back."""
        return Right(*self._native.right(subsystem, "release"))

    def hand_right_over(self, to: int, subsystem: str = "") -> Right:
        """Hands the right to move over to the controller of this number."""
        return Right(*self._native.right(subsystem, "hand_over", to))

    def take_right_over(self, subsystem: str = "") -> Right:
        """Takes the right to move, also from another, if the robot permits it."""
        return Right(*self._native.right(subsystem, "take_over"))


def _nothing(*_: object) -> None:
    pass
