"""rospy with large messages on the bus: `from ropewalk import rospy` in a plain rospy node
(docs/guide/ros1-zero-copy.md).

Publishers and subscribers of types with arrays of numbers share messages in memory with those on the same host.
Everything else is rospy's, including messages to other hosts and to nodes without Ropewalk
(docs/decisions/230-ros1-nodes-on-the-bus.md)."""

from __future__ import annotations

import collections
import copy
import http.client
import os
import threading
import traceback
import xmlrpc.client
from collections.abc import Callable, Iterator
from typing import Any

import genmsg.msgs
import numpy as np
import rospy as _rospy
from rospy import *  # noqa: F403
from rospy.msg import args_kwds_to_message
from std_msgs.msg import String

import ropewalk as _ropewalk

from . import _arrays

__all__ = [*(name for name in dir(_rospy) if not name.startswith("_")), "Array"]

#: The start of a publisher's offer, as in ropewalk_ros/offer.hpp.
_OFFER = "ropewalk 1 "
#: Seconds between two searches for publishers without Ropewalk.
_ROUND = 0.5
#: Number of waiting messages, where rospy would keep all.
_DEPTH = 64
#: Number of messages that a node may keep before it gets copies.
_MAX_HELD = 64

_NUMBERS = {
    "bool", "int8", "uint8", "char", "byte", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64",
}  # fmt: skip
#: Arrays of these types are `bytes` in rospy.
_OCTETS = ("uint8", "char")
_octets = _arrays.Field(_arrays.Numbers(np.dtype("u1")), None, None)


def __getattr__(name: str) -> Any:
    return getattr(_rospy, name)


class Array(np.ndarray):
    """An array of a message where its publisher wrote it, read-only; for nodes that expect rospy's `bytes` or tuples.

    As in rospy, one element is a Python number, an empty array is false, `==` with bytes, lists and tuples returns one
    bool, and bytes' methods work, on a copy. For numpy it is an ordinary array."""

    def __bool__(self) -> bool:
        return self.size > 0 if self.ndim == 1 else bool(np.asarray(self))

    def __getitem__(self, key: Any) -> Any:
        item = super().__getitem__(key)
        return item.item() if isinstance(item, np.generic) else item

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist()) if self.ndim == 1 else iter(np.asarray(self))

    def __eq__(self, other: object) -> Any:
        if isinstance(other, (bytes, bytearray)):
            return self.tobytes() == other
        if isinstance(other, (list, tuple)):
            return self.tolist() == list(other)
        return np.asarray(self) == other

    def __ne__(self, other: object) -> Any:
        if isinstance(other, (bytes, bytearray, list, tuple)):
            return not self == other
        return np.asarray(self) != other

    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        if self.dtype == np.uint8 and not name.startswith("_") and hasattr(bytes, name):
            return getattr(self.tobytes(), name)
        raise AttributeError(f"neither numpy's arrays nor bytes have {name}")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [np.asarray(x) if isinstance(x, Array) else x for x in inputs]
        return getattr(ufunc, method)(*plain, **options)


class _Shape:
    """A rospy type, the conversion of its fields, and whether it is worth a block."""

    _known: dict[Any, "_Shape"] = {}

    @classmethod
    def of(cls, kind: Any) -> "_Shape":
        if kind not in cls._known:
            cls._known[kind] = cls(kind)
        return cls._known[kind]

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        #: Name, rospy's type of one element, whether it is an array, the shape of nested messages.
        self.fields: list[tuple[str, str, bool, "_Shape | None"]] = []
        #: Has neither strings nor arrays of variable length.
        self.fixed = True
        #: Has an array of numbers that its type does not bound.
        self.bulk = False
        #: Has arrays that are lists of objects in rospy, and structured arrays in Ropewalk.
        self.foreign = False
        for name, text in zip(kind.__slots__, kind._slot_types):
            base, is_array, length = genmsg.msgs.parse_type(text)
            nested = None if base in _NUMBERS or base in ("string", "time", "duration") else _Shape.of(_message(text, base))
            self.fields.append((name, base, is_array, nested))
            self.fixed = self.fixed and base != "string" and not (is_array and length is None) and (nested is None or nested.fixed)
            if nested is None:
                self.bulk = self.bulk or (is_array and length is None and base in _NUMBERS)
                self.foreign = self.foreign or (is_array and base in ("time", "duration"))
            else:
                self.foreign = self.foreign or nested.foreign or (is_array and nested.fixed)
                self.bulk = self.bulk or (nested.bulk and not is_array)
        self._class: Any = None

    @property
    def shared(self) -> Any:
        """The same type on the bus."""
        if self._class is None:
            self._class = _ropewalk.message_class(_type(self.kind))
        return self._class

    def out(self, message: Any) -> Any:
        """Creates a message for the bus, which accepts arrays as they are or refuses them."""
        fields = {}
        for name, base, is_array, nested in self.fields:
            value = getattr(message, name)
            if nested is not None:
                value = [nested.out(v) for v in value] if is_array else nested.out(value)
            elif base in ("time", "duration"):
                pair = _ropewalk.Time if base == "time" else _ropewalk.Duration
                value = pair(value.secs, value.nsecs)
            fields[name] = value
        return self.shared(**fields)

    def into(self, taken: Any, copied: bool) -> Any:
        """Creates a rospy message, whose arrays are views of the taken message, or copies."""
        message = self.kind()
        for name, base, is_array, nested in self.fields:
            value = getattr(taken, name)
            if nested is not None:
                value = [nested.into(v, copied) for v in value] if is_array else nested.into(value, copied)
            elif is_array and base in _NUMBERS:
                value = np.asarray(value)
                if not copied:
                    value = value.view(Array)
                    value.flags.writeable = False
                else:
                    value = value.tobytes() if base in _OCTETS else tuple(value.tolist())
            elif base == "time":
                value = _rospy.Time(value.sec, value.nsec)
            elif base == "duration":
                value = _rospy.Duration(value.sec, value.nsec)
            setattr(message, name, value)
        return message

    def plain(self, message: Any) -> Any:
        """Returns a message that rospy can serialize, with bytes where it expects them; the same message if that is
        possible."""
        changed = {}
        for name, base, is_array, nested in self.fields:
            value = getattr(message, name)
            if nested is not None:
                new = [nested.plain(v) for v in value] if is_array else nested.plain(value)
                if new is not value and not (is_array and all(a is b for a, b in zip(new, value))):
                    changed[name] = new
            elif is_array and base in _OCTETS and isinstance(value, np.ndarray):
                changed[name] = _octets(value).tobytes()
        if not changed:
            return message
        message = copy.copy(message)
        for name, value in changed.items():
            setattr(message, name, value)
        return message


def _message(text: str, base: str) -> Any:
    import genpy.message

    name = "std_msgs/Header" if base == "Header" else base
    kind = genpy.message.get_message_class(name)
    if kind is None:
        raise _rospy.ROSException(f"the Python package of {text} is missing: install that of {name.split('/')[0]}")
    return kind


_types: dict[Any, Any] = {}


def _type(kind: Any) -> Any:
    if kind not in _types:
        _types[kind] = _ropewalk.Type(kind._type, kind._full_text)
    return _types[kind]


def _goes_over_the_bus(kind: Any) -> bool:
    if not (isinstance(kind, type) and hasattr(kind, "_slot_types") and hasattr(kind, "_full_text")):
        return False
    shape = _Shape.of(kind)
    return shape.bulk and not shape.foreign


class _Bus:
    """This process's membership of the bus that the environment names; none if that cannot be used."""

    _lock = threading.Lock()
    _one: "_Bus | None" = None

    @classmethod
    def join(cls) -> "_Bus":
        with cls._lock:
            if cls._one is None:
                cls._one = _Bus()
            return cls._one

    def __init__(self) -> None:
        self.node: Any = None
        self.identity = "none"
        letters = "".join(c if c.isascii() and c.isalnum() else "_" for c in _rospy.get_name().lstrip("/"))
        try:
            node = _ropewalk.Node((letters if letters[:1].isalpha() else "_" + letters)[:64])
            self.identity = _identity()
            self.node = node
        except (_ropewalk.Error, OSError, ValueError) as e:
            _rospy.logerr(f"ropewalk: {e}. Until then messages go through ROS, copied")


def _identity() -> str:
    """Computed as in ropewalk_ros/bus.hpp: equal for two processes exactly if they share a bus."""
    set_ = os.environ.get
    folder = set_("ROPEWALK_RUNTIME_DIR") or (
        f"{set_('XDG_RUNTIME_DIR')}/ropewalk" if set_("XDG_RUNTIME_DIR") else f"/tmp/ropewalk-{os.getuid()}"
    )
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot = file.read().strip()
    there = os.stat(folder)
    text = f"{boot}:{there.st_dev}:{there.st_ino}:{int(set_('ROPEWALK_DOMAIN') or 0)}"
    # FNV-1a.
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


class _End:
    """Common part of both ends, as in rospy."""

    def __init__(self, name: str, data_class: Any) -> None:
        self.resolved_name = self.name = _rospy.resolve_name(name)
        self.data_class = data_class
        self.type = data_class._type
        self.md5sum = data_class._md5sum
        self._bus = _Bus.join()
        self._shape = _Shape.of(data_class)

    @property
    def on_bus(self) -> bool:
        """Whether there is a bus; otherwise everything goes through ROS."""
        return self._bus.node is not None


class Publisher(_End):
    """Like `rospy.Publisher`. Messages of large types are copied once, into memory that all subscribers of this host
    share."""

    def __new__(cls, name: str, data_class: Any, *args: Any, **options: Any) -> Any:
        if not _goes_over_the_bus(data_class):
            return _rospy.Publisher(name, data_class, *args, **options)
        return super().__new__(cls)

    def __init__(
        self,
        name: str,
        data_class: Any,
        subscriber_listener: Any = None,
        tcp_nodelay: bool = False,
        latch: bool = False,
        headers: Any = None,
        queue_size: int | None = None,
        memory_limit: int = 256 << 20,
    ) -> None:
        super().__init__(name, data_class)
        self._latch = latch
        self._lock = threading.Lock()
        self._sequence = 0
        self._publisher: Any = None
        if self.on_bus:
            try:
                options = {"history": 1} if latch else {}
                self._publisher = self._bus.node.publisher(self.resolved_name, _type(data_class), memory_limit=memory_limit, **options)
            except _ropewalk.Error as e:
                _rospy.logerr(f"ropewalk: {self.resolved_name}: {e}. Until then it goes through ROS, copied")
        identity = self._bus.identity if self._publisher else "none"
        base = self.resolved_name + "/ropewalk"
        # Before the plain topic: a subscriber that looks for plain publishers then recognizes this one.
        self._offer = _rospy.Publisher(base, String, latch=True, queue_size=1)
        self._offer.publish(_OFFER + identity)
        self._through = [
            _rospy.Publisher(topic, data_class, subscriber_listener, tcp_nodelay, latch, headers, queue_size)
            for topic in (f"{base}/ros_{identity}", self.resolved_name)
        ]

    def publish(self, *args: Any, **fields: Any) -> None:
        """Publishes a message, or its fields. Never blocks."""
        message = args_kwds_to_message(self.data_class, args, fields)
        if not self._through:
            raise _rospy.ROSException(f"publish() to a closed topic: {self.resolved_name}")
        wanted = [p for p in self._through if self._latch or p.get_num_connections()]
        if wanted:
            try:
                plain = self._shape.plain(message)
            except ValueError as e:
                raise _rospy.ROSSerializationException(str(e)) from e
            for publisher in wanted:
                publisher.publish(plain)
        if self._publisher is None or not (self._latch or self._publisher.subscriber_count):
            return
        with self._lock:
            self._sequence += 1
            if getattr(self.data_class, "_has_header", False):
                message.header.seq = self._sequence
                message.header.frame_id = "0" if message.header.frame_id is None else message.header.frame_id
            try:
                self._publisher.publish(self._shape.out(message))
            except _ropewalk.MemoryShort as e:
                _rospy.logerr_throttle(1, f"ropewalk: {self.resolved_name}: a message is not published: {e}")
            except (_ropewalk.ContentError, TypeError, ValueError, OverflowError) as e:
                raise _rospy.ROSSerializationException(str(e)) from e

    def get_num_connections(self) -> int:
        """Number of subscribers on this bus, on others, and without Ropewalk."""
        return (self._publisher.subscriber_count if self._publisher else 0) + sum(p.get_num_connections() for p in self._through)

    def unregister(self) -> None:
        """Ends the publisher."""
        through, self._through = self._through, []
        for publisher in (*through, self._offer):
            publisher.unregister()
        self._publisher = None


class Subscriber(_End):
    """Like `rospy.Subscriber`. Arrays of numbers that arrived over the bus are `Array`s: read-only, where the publisher
    wrote them."""

    def __new__(cls, name: str, data_class: Any, *args: Any, **options: Any) -> Any:
        if not _goes_over_the_bus(data_class):
            return _rospy.Subscriber(name, data_class, *args, **options)
        return super().__new__(cls)

    def __init__(
        self,
        name: str,
        data_class: Any,
        callback: Callable[..., Any] | None = None,
        callback_args: Any = None,
        queue_size: int | None = None,
        buff_size: int = 65536,
        tcp_nodelay: bool = False,
        max_held: int = _MAX_HELD,
    ) -> None:
        super().__init__(name, data_class)
        self.callback, self.callback_args = callback, callback_args
        self._options = {"queue_size": queue_size, "buff_size": buff_size, "tcp_nodelay": tcp_nodelay}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._through: dict[str, Any] = {}
        #: Publishers that are known to be without Ropewalk.
        self._plain: set[str] = set()
        self._subscriber: Any = None
        depth = min(queue_size or _DEPTH, 4096)
        self._max_held = min(max(max_held, depth + 2), 4096)
        if self.on_bus:
            try:
                self._subscriber = self._bus.node.subscriber(
                    self.resolved_name, _type(data_class), depth=depth, max_held=self._max_held
                )
            except _ropewalk.Error as e:
                _rospy.logerr(f"ropewalk: {self.resolved_name}: {e}. Until then it comes through ROS, copied")
        self._offers = _rospy.Subscriber(self.resolved_name + "/ropewalk", String, self._hear)
        if self._subscriber is not None:
            threading.Thread(target=self._take, name="ropewalk-take", daemon=True).start()
        threading.Thread(target=self._watch, name="ropewalk-watch", daemon=True).start()

    def get_num_connections(self) -> int:
        """Number of publishers on this bus, on others, and without Ropewalk."""
        on_bus = 0
        while self._subscriber is not None and self._subscriber.wait_for_publishers(on_bus + 1, 0):
            on_bus += 1
        with self._lock:
            return on_bus + sum(s.get_num_connections() for s in self._through.values())

    def unregister(self) -> None:
        """Ends the subscriber. A running callback continues."""
        self._stopped.set()
        self._offers.unregister()
        with self._lock:
            through, self._through = self._through, {}
        for subscriber in through.values():
            subscriber.unregister()

    def _over(self) -> bool:
        return self._stopped.is_set() or _rospy.is_shutdown()

    def _hear(self, offer: Any) -> None:
        """Handles a publisher's announcement of its bus."""
        identity = offer.data[len(_OFFER) :]
        if not (offer.data.startswith(_OFFER) and 0 < len(identity) <= 32 and identity.isascii() and identity.isalnum()):
            _rospy.logerr_throttle(10, f"ropewalk: {self.resolved_name}: cannot read a publisher's offer: "
                                   "install the same version of ropewalk everywhere")  # fmt: skip
            return
        if self._subscriber is None or identity != self._bus.identity:
            self._listen(f"{self.resolved_name}/ropewalk/ros_{identity}", self._give)

    def _listen(self, topic: str, give: Callable[[Any], None]) -> None:
        with self._lock:
            if not self._over() and topic not in self._through:
                self._through[topic] = _rospy.Subscriber(topic, self.data_class, give, **self._options)

    def _watch(self) -> None:
        """Looks for publishers without Ropewalk, whose messages arrive through ROS. A publisher counts as one only if
        it is found so twice, since image_transport creates its plain topic first."""
        import rosgraph

        before: set[str] = set()
        master = rosgraph.Master(_rospy.get_name())
        while not self._stopped.wait(_ROUND) and not _rospy.is_shutdown():
            try:
                publishers = collections.defaultdict(set, {topic: set(nodes) for topic, nodes in master.getSystemState()[0]})
            except (OSError, rosgraph.MasterException, xmlrpc.client.Error, http.client.HTTPException):
                continue
            plain = publishers[self.resolved_name] - publishers[self.resolved_name + "/ropewalk"]
            self._plain = plain & before
            if self._plain:
                self._listen(self.resolved_name, self._give_plain)
            elif not plain:
                with self._lock:
                    ended = self._through.pop(self.resolved_name, None)
                if ended is not None:
                    ended.unregister()
            before = plain

    def _give_plain(self, message: Any) -> None:
        # Publishers with Ropewalk also publish there if somebody listens; their messages have already arrived. A
        # publisher that was not examined yet may be one of them.
        if message._connection_header.get("callerid") in self._plain:
            self._give(message)

    def _take(self) -> None:
        while not self._over():
            try:
                taken = self._subscriber.take(timeout=0.5)
                if taken is None:
                    continue
                # A node that keeps many messages gets copies, before all memory of the publisher is held.
                message = self._shape.into(taken, self._subscriber.held >= self._max_held - 1)
            except _ropewalk.Error as e:
                _rospy.logerr_throttle(1, f"ropewalk: {self.resolved_name}: a message cannot be read: {e}")
                self._stopped.wait(0.05)
                continue
            del taken
            message._connection_header = {
                "callerid": "", "md5sum": self.md5sum, "message_definition": self.data_class._full_text,
                "topic": self.resolved_name, "type": self.type,
            }  # fmt: skip
            self._give(message)
            del message

    def _give(self, message: Any) -> None:
        if self.callback is None or self._over():
            return
        try:
            if self.callback_args is None:
                self.callback(message)
            else:
                self.callback(message, self.callback_args)
        except Exception:
            if not _rospy.is_shutdown():
                _rospy.logerr(f"bad callback: {self.callback}\n{traceback.format_exc()}")
