"""Zero-copy topics and services of one host, with numpy views: docs/guide/python.md.

    node = ropewalk.Node("camera")
    publisher = node.publisher("/image", "sensor_msgs/Image")
    image = publisher.message(width=1920, height=1080, encoding="mono8", step=1920)
    publisher.allocate(image, data=1920 * 1080)      # image.data is an array in shared memory now
    image.data[:] = 7
    publisher.publish(image)

    for image in node.subscriber("/image"):          # the type comes from whoever publishes
        print(image.data.mean())                     # in place: nothing was copied
"""

from __future__ import annotations

import asyncio
import json
import select
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar, Union

try:
    from . import _native
except ImportError as e:
    if "libzmq" in str(e):
        raise ImportError(f"ropewalk needs ZeroMQ's library (Debian: apt-get install libzmq5): {e}") from e
    raise
from ._codec import Codec, Duration, Message, Sized, Time, codec
from ._errors import (
    BadName,
    CallTimeout,
    ContentError,
    Error,
    Forked,
    HoldLimit,
    MemoryShort,
    NoPeer,
    NoRoom,
    PeerDied,
    Rejected,
    SystemFault,
    TypeUnknown,
)
from ._failures import Failures, sendable, text_of
from ._generated import Generated, is_generated, is_generated_service, name_of
from ._native import ServiceType, Type

__all__ = [
    "BadName", "CallTimeout", "Client", "ContentError", "Duration", "Error", "Forked", "HoldLimit", "MemoryShort",
    "Message", "NoPeer", "NoRoom", "Node", "PeerDied", "Pending", "Publisher", "Rejected", "Request", "Server",
    "ServiceType", "Sized", "Subscriber", "SystemFault", "Time", "Type", "TypeUnknown", "message_class", "wait",
]  # fmt: skip

#: How long a call's answer is awaited before it is looked for again, in seconds: other threads may wait with the same
#: descriptor, and take what it tells of.
_SLICE = 0.05

#: A type by its name, as it is, or the class of its messages: ours, or one that ROS 2 generated.
TypeLike = Union[str, Type, type[Message], type[Any]]
#: A service by its name, as it is, or the class that ROS 2 generated.
ServiceLike = Union[str, ServiceType, type[Any]]


def _type(kind: TypeLike) -> Type:
    if isinstance(kind, type) and issubclass(kind, Message):
        if kind._codec.type is None:
            raise TypeUnknown(f"{kind._codec.name} is known as a field only: name it by message_class or its name")
        return kind._codec.type
    if is_generated(kind):
        return Type(name_of(kind), ros2=True)
    return Type(kind) if isinstance(kind, str) else kind


def _service(kind: ServiceLike) -> ServiceType:
    if is_generated_service(kind):
        return ServiceType(name_of(kind), ros2=True)
    return ServiceType(kind) if isinstance(kind, str) else kind


def _codec(kind: Type) -> Codec:
    made = codec(json.loads(kind.describe()))
    made.type = kind
    return made


def message_class(kind: TypeLike) -> type[Message]:
    """The class of a type's messages, such as of "sensor_msgs/Image": fields as keywords and attributes."""
    return _codec(_type(kind)).Message


class _Sender:
    """What publishers, clients and servers do with messages that they send."""

    def __init__(self, native: Any, kind: Codec) -> None:
        self._native = native
        self._codec = kind
        self._generated: Generated | None = None

    def _ours(self, message: Any) -> Message:
        """The message, which may be an instance of a class that ROS 2 generated."""
        if isinstance(message, Message) or not is_generated(type(message)):
            return message
        if self._generated is None or self._generated.kind is not type(message):
            if name_of(type(message)).replace("_", "") != self._codec.name.replace("_", ""):
                raise ContentError(f"given a {name_of(type(message))}, wanted a {self._codec.name}")
            self._generated = Generated(type(message), self._codec)
        return self._generated.ours(message)

    def allocate(self, message: Message, **sizes: int) -> None:
        """Reserves a block for the message. `sizes` are numbers of elements of its own fields; of nested ones set
        `Sized(n)` before. Afterwards arrays of 256 bytes and more lie in the block, to be filled in place.

        Raises MemoryShort where the memory policy gives none."""
        for name, n in sizes.items():
            setattr(message, name, Sized(n))
        self._native.allocate(self._codec.native, message)


class Publisher(_Sender):
    """The sending end of a topic. Any thread may use it."""

    def message(self, **fields: Any) -> Message:
        """A message of the topic's type."""
        return self._codec.Message(**fields)

    def publish(self, message: Any) -> int:
        """Publishes a message, and gives the number of subscribers whose queue has it. Never blocks, but under the
        memory policy `block`. One that was not allocated is copied into a block.

        Afterwards arrays in the block are read-only and belong to the subscribers: do not write through slices of
        them that were made before. The message keeps its other fields, and may be allocated again. Instances of a class that
        ROS 2 generated are copied, and stay as they are."""
        return self._native.publish(self._codec.native, self._ours(message))

    def wait_for_subscribers(self, n: int = 1, timeout: float | None = None) -> bool:
        """Blocks until `n` subscribers are connected; False if `timeout` seconds passed first."""
        return bool(self._native.wait_for_subscribers(n, timeout))

    @property
    def topic(self) -> str:
        return str(self._native.topic)

    @property
    def subscriber_count(self) -> int:
        """How many subscribers are connected."""
        return int(self._native.subscriber_count)

    @property
    def memory_used(self) -> int:
        """Bytes of shared memory in blocks that are allocated, queued, held or viewed."""
        return int(self._native.memory_used)

    @property
    def refusals(self) -> list[str]:
        """Why the last subscribers did not connect."""
        return list(self._native.refusals)


class _Bell:
    """Wakes every coroutine that waits for a descriptor: a loop has one reader for each."""

    def __init__(self) -> None:
        self._waiting: weakref.WeakKeyDictionary[Any, set[asyncio.Event]] = weakref.WeakKeyDictionary()

    async def wait(self, fd: int, timeout: float | None = None) -> None:
        loop, event = asyncio.get_running_loop(), asyncio.Event()
        events = self._waiting.setdefault(loop, set())
        if not events:
            loop.add_reader(fd, lambda: [e.set() for e in events])
        events.add(event)
        try:
            await asyncio.wait_for(event.wait(), timeout)
        except asyncio.TimeoutError:
            pass
        finally:
            events.discard(event)
            if not events:
                loop.remove_reader(fd)


T = TypeVar("T")


class _Receiver(Generic[T]):
    """Waiting with a descriptor: it lets other threads run, and signals end it by what their handlers raise."""

    _native: Any
    _bell: _Bell

    def take(self, timeout: float | None = None) -> T | None:
        """Takes the oldest waiting one; blocks until there is one, at most `timeout` seconds; None if none came.

        Raises HoldLimit where as many are held as may be."""
        raise NotImplementedError

    async def receive(self) -> T:
        """Awaits the next one, in asyncio."""
        while True:
            taken = self.take(0)
            if taken is not None:
                return taken
            await self._bell.wait(self._native.fileno())

    def __iter__(self) -> Iterator[T]:
        while True:
            taken = self.take()
            if taken is not None:
                yield taken

    async def __aiter__(self) -> AsyncIterator[T]:
        while True:
            yield await self.receive()

    def fileno(self) -> int:
        """Readable while something can be taken: for select, selectors and event loops."""
        return int(self._native.fileno())


class Subscriber(_Receiver[Any]):
    """The receiving end of a topic. Any thread may use it.

    Arrays of a message lie where its publisher wrote them; as long as one is referenced, its message is held. Where the type is a
    class that ROS 2 generated, messages are instances of it, with arrays of their own."""

    def __init__(self, native: Any, kind: Codec, generated: Generated | None = None) -> None:
        self._native = native
        self._codec = kind
        self._generated = generated
        self._bell = _Bell()

    def take(self, timeout: float | None = None) -> Any:
        message = self._native.take(self._codec.native, timeout)
        return message if self._generated is None or message is None else self._generated.theirs(message)

    take.__doc__ = _Receiver.take.__doc__

    def wait_for_publishers(self, n: int = 1, timeout: float | None = None) -> bool:
        """Blocks until `n` publishers are connected; False if `timeout` seconds passed first."""
        return bool(self._native.wait_for_publishers(n, timeout))

    @property
    def topic(self) -> str:
        return str(self._native.topic)

    @property
    def held(self) -> int:
        """How many messages are held: themselves, or by arrays of them."""
        return int(self._native.stats()[1])

    @property
    def lost(self) -> int:
        """How many messages were lost, for whatever reason."""
        return int(self._native.stats()[2])

    @property
    def refusals(self) -> list[str]:
        """Why the last publishers did not connect."""
        return list(self._native.refusals)


def wait(receivers: Iterable[_Receiver[Any]], timeout: float | None = None) -> list[Any]:
    """Blocks until something can be taken from one of the subscribers and servers, at most `timeout` seconds; gives
    those. Take from each until `take(0)` gives None."""
    receivers = list(receivers)
    poll = select.poll()
    for receiver in receivers:
        poll.register(receiver.fileno(), select.POLLIN)
    ready = {fd for fd, _ in poll.poll(None if timeout is None else max(0, timeout * 1000))}
    return [r for r in receivers if r.fileno() in ready]


class Pending:
    """A request that was sent. Dropping it cancels the wait; the server may still carry it out."""

    def __init__(self, native: Any, client: "Client") -> None:
        self._native, self._client = native, client

    def poll(self) -> Any:
        """The answer if it is there; raises why there is none. Gives an answer once."""
        answer = self._native.poll(self._client._response.native)
        theirs = self._client._answers
        return answer if theirs is None or answer is None else theirs.theirs(answer)

    def wait(self) -> Any:
        """Blocks until the answer is there; raises CallTimeout, PeerDied, Rejected or NoRoom."""
        poll = select.poll()
        poll.register(self._client._native.fileno(), select.POLLIN)
        while (answer := self.poll()) is None:
            poll.poll(_SLICE * 1000)
        return answer

    async def answer(self) -> Any:
        """As `wait`, in asyncio."""
        while (answer := self.poll()) is None:
            await self._client._bell.wait(self._client._native.fileno(), _SLICE)
        return answer


class Client(_Sender):
    """The calling end of a service. Any thread may use it."""

    def __init__(self, native: Any, kind: ServiceType, generated: Any = None) -> None:
        super().__init__(native, _codec(kind.request))
        self._response = _codec(kind.response)
        #: Where the service is a class that ROS 2 generated: what makes its responses.
        self._answers = Generated(generated.Response, self._response) if generated is not None else None
        self._bell = _Bell()

    def request(self, **fields: Any) -> Message:
        """A request of the service's type."""
        return self._codec.Message(**fields)

    def send(self, request: Any, timeout: float | None = None) -> Pending:
        """Sends a request, whose answer is awaited at most `timeout` seconds from now. Never blocks."""
        return Pending(self._native.send(self._codec.native, self._ours(request), timeout), self)

    def call(self, request: Any = None, timeout: float | None = None, **fields: Any) -> Any:
        """Calls, and blocks until the answer is there, at most `timeout` seconds. The request is given, or made of its
        fields."""
        return self.send(self.request(**fields) if request is None else request, timeout).wait()

    def wait_for_server(self, timeout: float | None = None) -> bool:
        """Blocks until a server is connected; False if `timeout` seconds passed first."""
        return bool(self._native.wait_for_server(timeout))


class Request:
    """A request that was taken: its fields are attributes of `message`. Dropping it tells the client that there is no
    answer."""

    def __init__(self, native: Any, kind: Codec, generated: Generated | None = None) -> None:
        self._native = native
        message = native.message(kind.native)
        self.message: Any = message if generated is None else generated.theirs(message)


class Server(_Receiver[Request], _Sender):
    """The answering end of a service. Any thread may use it."""

    def __init__(self, native: Any, kind: ServiceType, generated: Any = None) -> None:
        _Sender.__init__(self, native, _codec(kind.response))
        self._bell = _Bell()
        self._request = _codec(kind.request)
        #: Where the service is a class that ROS 2 generated: what makes its requests.
        self._requests = Generated(generated.Request, self._request) if generated is not None else None
        self._failures = Failures(f"the function that serves {kind.name}")

    def take(self, timeout: float | None = None) -> Request | None:
        """Takes the oldest waiting request; blocks until there is one, at most `timeout` seconds; None if none came.

        Raises HoldLimit where as many are held as may be, and ContentError where one cannot be read, whose client gets
        that error, too."""
        native = self._native.take(timeout)
        if native is None:
            return None
        try:
            return Request(native, self._request, self._requests)
        except ContentError as e:
            self._give_up(native, f"the server cannot read the request: {text_of(e, name=False)}")
            raise

    def _give_up(self, native: Any, text: str) -> None:
        try:
            self._native.reject(native, sendable(text))
        except Error:
            # The client is gone, or it has an answer.
            pass

    def response(self, **fields: Any) -> Message:
        """An answer of the service's type."""
        return self._codec.Message(**fields)

    def respond(self, request: Request, response: Any = None, **fields: Any) -> None:
        """Answers a request with a message, which is given or made of its fields."""
        answer = self.response(**fields) if response is None else response
        self._native.respond(request._native, self._codec.native, self._ours(answer))

    def reject(self, request: Request, text: str) -> None:
        """Answers a request with an error, whose text the client gets."""
        self._native.reject(request._native, sendable(text))

    def serve(self, f: Callable[[Any], Any], *, end_on_error: bool = False) -> None:
        """Answers each request with what `f` gives, a message or a mapping of fields. What it raises goes to the client, is
        logged (logger "ropewalk", at most every 10 s) and counted (`errors`), and the next request comes; with
        `end_on_error` it is raised here. Otherwise `serve` ends only by what is no `Exception`, such as
        KeyboardInterrupt."""
        while True:
            try:
                request = self.take()
            except ContentError as e:
                self._failures.note(e)
                continue
            if request is None:
                continue
            try:
                answer = f(request.message)
                is_message = isinstance(answer, Message) or is_generated(type(answer))
                answer = self._ours(answer) if is_message else self.response(**answer)
            except Exception as e:
                self._failures.note(e)
                self._give_up(request._native, text_of(e))
                if end_on_error:
                    raise
                continue
            except BaseException as e:
                self._give_up(request._native, f"the server ends: {type(e).__name__}")
                raise
            try:
                self.respond(request, answer)
            except (PeerDied, CallTimeout):
                # Nobody waits for it any more.
                continue
            except Exception as e:
                self._failures.note(e)
                self._give_up(request._native, text_of(e))
                if end_on_error:
                    raise

    @property
    def errors(self) -> int:
        """How often the function given to `serve` raised, or gave what is no answer."""
        return self._failures.count


class Node:
    """A named member of this host's bus, which `ROPEWALK_RUNTIME_DIR` and `ROPEWALK_DOMAIN` name unless it is given."""

    def __init__(self, name: str, runtime_dir: str | None = None, domain: int = 0) -> None:
        self._native = _native.Node(name, runtime_dir, domain)

    @property
    def name(self) -> str:
        return str(self._native.name)

    def publisher(self, topic: str, kind: TypeLike, **options: Any) -> Publisher:
        """Offers messages of a type, such as "sensor_msgs/Image", on a topic. Options: `memory_limit` in bytes (256 MiB),
        `subscriber_quota`, the most of them that one subscriber may keep, `max_subscribers` (256), `history` (0), `memory_policy` ("best_effort", "worst_effort", "medium", "block") with `medium_drops` and
        `block_timeout` in seconds."""
        own = _type(kind)
        return Publisher(self._native.publisher(topic, own, **options), _codec(own))

    def subscriber(
        self, topic: str, kind: TypeLike | None = None, *, timeout: float | None = None, **options: Any
    ) -> Subscriber:
        """Subscribes to a topic. Without a type that of whoever publishes it is taken, waiting for one at most `timeout`
        seconds. Options: `depth` (16), `max_held` (16, at most 4096), `max_held_bytes` (what the publisher allows), `queue_policy` ("drop_oldest", "drop_newest"),
        `history` (all)."""
        own = self.discover(topic, timeout) if kind is None else _type(kind)
        made = _codec(own)
        generated = Generated(kind, made) if isinstance(kind, type) and is_generated(kind) else None
        return Subscriber(self._native.subscriber(topic, own, **options), made, generated)

    def client(
        self, service: str, kind: ServiceLike | None = None, *, timeout: float | None = None, **options: Any
    ) -> Client:
        """Calls a service. Without a type that of whoever serves it is taken. Options: `max_outstanding` calls at a time (64,
        at most 2048), `max_held` answers (16, at most 2048), `memory_limit` in bytes (64 MiB). More calls raise NoRoom."""
        if kind is None:
            kind = self._native.discover_service(service, timeout)
        own = _service(kind)
        return Client(self._native.client(service, own, **options), own, kind if is_generated_service(kind) else None)

    def server(self, service: str, kind: ServiceLike, **options: Any) -> Server:
        """Serves a service. Options: `depth`, the requests that each client may have waiting (16, at most 4096; more are
        refused), `max_held` that are taken and not answered (16, at most 4096), `max_clients` (256), `memory_limit` in bytes
        (256 MiB), `client_quota` in bytes (an eighth of it)."""
        own = _service(kind)
        return Server(self._native.server(service, own, **options), own, kind if is_generated_service(kind) else None)

    def discover(self, topic: str, timeout: float | None = None) -> Type:
        """The type of a topic, from whoever publishes it; raises NoPeer after `timeout` seconds."""
        return self._native.discover(topic, timeout)
