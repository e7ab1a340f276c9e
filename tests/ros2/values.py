"""Every message type with random values, and every pair of policies, over the current rmw. The output is compared with that of
another rmw (beside.py). The argument says what it does."""

from __future__ import annotations

import hashlib
import importlib
import itertools
import random
import struct
import sys
import time

import rclpy
from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, LivelinessPolicy, QoSProfile, ReliabilityPolicy
from rosidl_parser import definition
from std_msgs.msg import String
from test_msgs.msg import BasicTypes, Strings

PACKAGES = ["builtin_interfaces", "std_msgs", "geometry_msgs", "sensor_msgs", "nav_msgs", "test_msgs", "action_msgs", "lifecycle_msgs",
            "rcl_interfaces", "unique_identifier_msgs", "rosgraph_msgs", "statistics_msgs", "service_msgs", "type_description_interfaces"]
INTEGERS = {"uint8": (0, 8), "int8": (1, 8), "uint16": (0, 16), "int16": (1, 16), "uint32": (0, 32), "int32": (1, 32), "uint64": (0, 64), "int64": (1, 64)}
KEPT = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
PATIENCE = 60.0


def types() -> list[type]:
    found = []
    for package in PACKAGES:
        try:
            module = importlib.import_module(f"{package}.msg")
        except ModuleNotFoundError:
            continue
        found += [t for _, t in sorted(vars(module).items()) if isinstance(t, type) and hasattr(t, "SLOT_TYPES")]
    return found


def text(chance: random.Random, most: int, letters: str) -> str:
    return "".join(chance.choice(letters) for _ in range(chance.randint(0, min(most, 20))))


def value(slot, chance: random.Random):
    if isinstance(slot, definition.BasicType):
        if slot.typename in INTEGERS:
            signed, bits = INTEGERS[slot.typename]
            return chance.randrange(1 << bits) - (signed << bits - 1)
        if slot.typename == "boolean":
            return chance.random() < 0.5
        if slot.typename == "octet":
            return bytes([chance.randrange(256)])
        number = chance.uniform(-1e6, 1e6)
        return struct.unpack("f", struct.pack("f", number))[0] if slot.typename == "float" else number
    if isinstance(slot, definition.AbstractString):
        # A bound counts bytes.
        bound = getattr(slot, "maximum_size", None)
        return text(chance, bound, "abc xyz") if bound else text(chance, 20, "abc xyzä€")
    if isinstance(slot, definition.AbstractWString):
        return text(chance, getattr(slot, "maximum_size", 20), "abc äß€ж")
    if isinstance(slot, definition.NamespacedType):
        return filled(getattr(importlib.import_module(".".join(slot.namespaces)), slot.name), chance)
    if isinstance(slot, definition.Array):
        return [value(slot.value_type, chance) for _ in range(slot.size)]
    most = min(getattr(slot, "maximum_size", 5), 5)
    return [value(slot.value_type, chance) for _ in range(chance.randint(0, most))]


def filled(kind: type, chance: random.Random):
    message = kind()
    for field, slot in zip(kind.get_fields_and_field_types(), kind.SLOT_TYPES):
        setattr(message, field, value(slot, chance))
    return message


def spin(node: Node, until, patience: float = PATIENCE) -> None:
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    end = time.monotonic() + patience
    while not until() and time.monotonic() < end:
        executor.spin_once(timeout_sec=0.1)


def say(node: Node) -> None:
    node.kept = []
    for i, kind in enumerate(types()):
        publisher = node.create_publisher(kind, f"type_{i}", KEPT)
        publisher.publish(filled(kind, random.Random(i)))
        node.kept.append(publisher)
    print("ready", flush=True)
    spin(node, lambda: False, 600.0)


def hear(node: Node) -> None:
    heard: dict[int, str] = {}
    kinds = types()
    for i, kind in enumerate(kinds):
        node.create_subscription(kind, f"type_{i}", lambda m, i=i: heard.setdefault(i, hashlib.sha256(repr(m).encode()).hexdigest()[:16]), KEPT)
    spin(node, lambda: len(heard) == len(kinds))
    for i, kind in enumerate(kinds):
        print("type", kind.__module__.split(".")[0], kind.__name__, heard.get(i, "nothing"))


def profiles() -> list[tuple[str, QoSProfile]]:
    two, one = Duration(seconds=2), Duration(seconds=1)
    policies = {
        "reliable": {"reliability": ReliabilityPolicy.RELIABLE},
        "best_effort": {"reliability": ReliabilityPolicy.BEST_EFFORT},
        "transient_local": {"durability": DurabilityPolicy.TRANSIENT_LOCAL},
        "deadline_2": {"deadline": two},
        "deadline_1": {"deadline": one},
        "manual": {"liveliness": LivelinessPolicy.MANUAL_BY_TOPIC},
        "lease_2": {"liveliness_lease_duration": two},
        "lease_1": {"liveliness_lease_duration": one},
        "lifespan_1": {"lifespan": one},
        "best_effort_transient": {"reliability": ReliabilityPolicy.BEST_EFFORT, "durability": DurabilityPolicy.TRANSIENT_LOCAL},
        "manual_lease_1": {"liveliness": LivelinessPolicy.MANUAL_BY_TOPIC, "liveliness_lease_duration": one},
        "deadline_1_best_effort": {"deadline": one, "reliability": ReliabilityPolicy.BEST_EFFORT},
    }
    return [(name, QoSProfile(depth=5, **policy)) for name, policy in policies.items()]


def qos(node: Node) -> None:
    seen: dict[str, dict[str, object]] = {}
    pairs = list(itertools.product(profiles(), profiles()))
    node.kept = []
    for i, ((offered, offer), (asked, ask)) in enumerate(pairs):
        what = seen.setdefault(f"{offered} {asked}", {"publisher": 0, "subscription": 0, "offered": "-", "requested": "-"})
        publisher = PublisherEventCallbacks(
            matched=lambda e, w=what: w.update(publisher=e.current_count),
            incompatible_qos=lambda e, w=what: w.update(offered=e.last_policy_kind.name),
            use_default_callbacks=False,
        )
        subscription = SubscriptionEventCallbacks(
            matched=lambda e, w=what: w.update(subscription=e.current_count),
            incompatible_qos=lambda e, w=what: w.update(requested=e.last_policy_kind.name),
            use_default_callbacks=False,
        )
        node.kept.append(node.create_publisher(String, f"pair_{i}", offer, event_callbacks=publisher))
        node.kept.append(node.create_subscription(String, f"pair_{i}", lambda m: None, ask, event_callbacks=subscription))
    reported = lambda w: w["publisher"] and w["subscription"] or w["offered"] != "-" and w["requested"] != "-"
    spin(node, lambda: all(reported(w) for w in seen.values()))
    for pair, what in seen.items():
        print("pair", pair, *what.values())


def lease(node: Node) -> None:
    """A publisher that has to assert its liveliness does so with a message, with an assertion, and not at all."""
    changed: list[tuple[int, ...]] = []
    lost: list[tuple[int, ...]] = []
    qos = QoSProfile(depth=5, liveliness=LivelinessPolicy.MANUAL_BY_TOPIC, liveliness_lease_duration=Duration(seconds=0.5))
    reported = lambda e: (e.alive_count, e.not_alive_count, e.alive_count_change, e.not_alive_count_change)
    publisher = node.create_publisher(
        String, "asserted", qos, event_callbacks=PublisherEventCallbacks(liveliness=lambda e: lost.append((e.total_count, e.total_count_change)))
    )
    node.create_subscription(
        String, "asserted", lambda m: None, qos, event_callbacks=SubscriptionEventCallbacks(liveliness=lambda e: changed.append(reported(e)))
    )
    spin(node, lambda: publisher.get_subscription_count() == 1)

    def phase(name: str, changes: int, losses: int) -> None:
        spin(node, lambda: len(changed) >= changes and len(lost) >= losses)
        print("lease", name, changed, lost)

    # Never asserted, so no lease runs out.
    spin(node, lambda: False, 1.5)
    phase("new", 0, 0)
    publisher.publish(String(data="alive"))
    phase("published", 1, 0)
    phase("silent", 2, 1)
    publisher.assert_liveliness()
    phase("asserted", 3, 1)
    for _ in range(10):
        publisher.assert_liveliness()
        spin(node, lambda: False, 0.1)
    phase("asserted again and again", 3, 1)
    phase("silent again", 4, 2)
    # The end of a publisher that was not alive raises no event.
    node.destroy_publisher(publisher)
    spin(node, lambda: False, 1.0)
    phase("gone", 4, 2)


NUMBERS = [
    ("int32_value > 4", []), ("int32_value <> %0 AND int32_value <= %1", ["3", "7"]), ("float64_value BETWEEN 1.0 AND %0", ["2.5"]),
    ("float64_value NOT BETWEEN 1.0 AND 2.5", []), ("NOT int32_value < 5", []), ("bool_value = TRUE", []),
    ("(int32_value = 1 OR int32_value = 8) AND uint8_value > 1", []),
    # Without parentheses, AND binds tighter, as in SQL; Fast DDS evaluates from left to right.
    ("int64_value < -3", []), ("uint64_value >= 18446744073709551610", []), ("int32_value = uint8_value", []), ("float32_value = 0.5", []),
]
TEXTS = [("string_value = 'b'", []), ("string_value LIKE 'a%'", []), ("string_value > %0", ["'ab'"]), ("string_value <> 'b' AND string_value <> ''", [])]


def choose(node: Node) -> None:
    """Prints what content filters let through."""
    from rclpy.subscription_content_filter_options import ContentFilterOptions

    chosen: dict[str, list[str]] = {}
    publishers, kept = [], []
    for kind, topic, field, filters in [(BasicTypes, "numbers", "int32_value", NUMBERS), (Strings, "texts", "string_value", TEXTS)]:
        publishers.append(node.create_publisher(kind, topic, 20))
        for expression, parameters in [*filters, ("", [])]:
            options = ContentFilterOptions(expression, parameters) if expression else None
            got = chosen.setdefault(expression or topic, [])
            one = lambda m, got=got, field=field: got.append(repr(getattr(m, field)))
            kept.append(node.create_subscription(kind, topic, one, 20, content_filter_options=options))
    later = kept[0]
    spin(node, lambda: publishers[0].get_subscription_count() == len(NUMBERS) + 1 and publishers[1].get_subscription_count() == len(TEXTS) + 1)

    def publish(count: int) -> None:
        for i in range(10):
            large = (1 << 64) - 1 - i
            publishers[0].publish(BasicTypes(int32_value=i, float64_value=i / 2, float32_value=i / 2, bool_value=i % 2 == 0, uint8_value=i, int64_value=-i,
                                             uint64_value=large))
        for each in ["", "a", "ab", "abc", "b", "ba", "äb"]:
            publishers[1].publish(Strings(string_value=each))
        spin(node, lambda: len(chosen["numbers"]) == 10 * count and len(chosen["texts"]) == 7 * count)
        # Only the expected messages arrive.
        spin(node, lambda: False, 0.5)

    publish(1)
    for expression, got in chosen.items():
        print("filter", expression, *got)
    later.set_content_filter("int32_value = %0", ["2"])
    print("filter is", *later.get_content_filter(), later.is_cft_enabled)
    chosen["int32_value > 4"].clear()
    publish(2)
    print("filter later", *chosen["int32_value > 4"])
    for bad in ["int32_value >", "no_such_field = 1", "int32_value = 'text'"]:
        try:
            node.create_subscription(BasicTypes, "numbers", print, 20, content_filter_options=ContentFilterOptions(bad, []))
            print("filter accepted", bad)
        except Exception as error:
            print("filter refused", bad, type(error).__name__)


if __name__ == "__main__":
    rclpy.init()
    node = Node(f"values_{sys.argv[1]}")
    {"say": say, "hear": hear, "qos": qos, "choose": choose, "lease": lease}[sys.argv[1]](node)
    sys.stdout.flush()
