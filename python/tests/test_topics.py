"""Topics: in place, kept, awaited, and misused."""

import asyncio
import gc
import os
import random
import signal
import subprocess
import threading
import time

import numpy as np
import pytest

import ropewalk
from conftest import LONG

IMAGE = "sensor_msgs/Image"


def picture(publisher, value, size=100_000):
    image = publisher.message(encoding="mono8")
    publisher.allocate(image, data=size)
    image.data[:] = value
    return publisher.publish(image)


def eventually(condition):
    while not condition():
        gc.collect()
        time.sleep(0.005)


def test_a_message_is_written_and_read_in_place(ends):
    publisher, subscriber = ends(IMAGE)
    assert subscriber.take(0) is None
    image = publisher.message(width=2, encoding="mono8")
    publisher.allocate(image, data=100_000)
    array = image.data
    assert array.ctypes.data % 64 == 0 and array.flags.writeable
    image.header.frame_id = "a name that is set after its block was allocated"
    array[:] = np.arange(100_000)
    assert publisher.publish(image) == 1
    assert image.data == ropewalk.Sized(100_000) and not array.flags.writeable

    seen = subscriber.take(LONG)
    assert (seen.width, seen.encoding, seen.sequence) == (2, "mono8", 1)
    assert seen.header.frame_id.startswith("a name") and seen.stamp_ns > 0
    assert np.array_equal(seen.data, np.arange(100_000, dtype=np.uint32).astype(np.uint8))
    with pytest.raises(ValueError, match="read-only"):
        seen.data[0] = 1
    with pytest.raises(ValueError):
        seen.data.flags.writeable = True
    # The publisher's own view is unchanged, although it has published since.
    for i in range(30):
        picture(publisher, i)
    assert array[255] == 255


def test_small_and_structured_arrays(ends):
    publisher, subscriber = ends("visualization_msgs/MarkerArray")
    Marker = ropewalk.message_class("visualization_msgs/Marker")
    markers = [Marker(ns=str(n), points=np.zeros(n, Marker().points.dtype)) for n in (0, 3, 1000)]
    for marker in markers:
        marker.points["y"] = np.arange(len(marker.points))
    publisher.publish(publisher.message(markers=markers))
    seen = subscriber.take(LONG)
    assert [len(m.points) for m in seen.markers] == [0, 3, 1000]
    assert seen.markers[2].points["y"][999] == 999 and seen.markers[1].points[2]["y"] == 2
    nested = publisher.message(markers=[Marker(points=ropewalk.Sized(500))])
    publisher.allocate(nested)
    nested.markers[0].points["x"] = 7
    publisher.publish(nested)
    assert subscriber.take(LONG).markers[0].points["x"].sum() == 3500


def test_a_thousand_views_dropped_in_any_order(ends):
    publisher, subscriber = ends(IMAGE, max_held=1000, depth=1000)
    size, rng = 5000, random.Random(7)
    views = []
    for i in range(1000):
        picture(publisher, i % 251, size)
        # For half of them only a slice of the array is kept.
        data = subscriber.take(LONG).data
        views.append((i % 251, data[100:200] if i % 2 else data))
        del data
    gc.collect()
    assert subscriber.held == 1000
    with pytest.raises(ropewalk.HoldLimit, match="max_held"):
        picture(publisher, 0, size)
        subscriber.take(LONG)
    # No view changes, whatever is published in the meantime.
    while views:
        for _ in range(rng.randrange(1, 50)):
            if views:
                views.pop(rng.randrange(len(views)))
        for _ in range(3):
            picture(publisher, 255, size)
        for value, view in rng.sample(views, min(20, len(views))):
            assert (view == value).all()
    del value, view
    while subscriber.take(0) is not None:
        pass
    gc.collect()
    assert subscriber.held == 0
    eventually(lambda: publisher.memory_used == 0)


def test_views_outlive_everything(ends):
    publisher, subscriber = ends(IMAGE)
    image = publisher.message()
    publisher.allocate(image, data=1000)
    mine = image.data
    mine[:] = 9
    publisher.publish(image)
    theirs = subscriber.take(LONG).data[10:]
    del publisher, subscriber, image
    gc.collect()
    assert (mine == 9).all() and (theirs == 9).all()


def test_a_fork_leaves_views_and_refuses_handles(ends):
    publisher, subscriber = ends(IMAGE)
    picture(publisher, 3)
    image = subscriber.take(LONG)
    child = os.fork()
    if child == 0:
        good = (image.data == 3).all()
        for act in (lambda: subscriber.take(0), lambda: picture(publisher, 1)):
            try:
                act()
                good = False
            except ropewalk.Forked:
                pass
        del image
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert subscriber.held == 1 and (image.data == 3).all()
    picture(publisher, 4)
    assert (subscriber.take(LONG).data == 4).all()


def test_every_wait_in_a_forked_child_says_so(node, ends):
    publisher, subscriber = ends("std_msgs/String")
    server, client = node.server("/switch", "std_srvs/SetBool"), node.client("/switch", "std_srvs/SetBool")
    assert client.wait_for_server(LONG)
    pending = client.send(client.request(data=True), LONG)
    waits = [
        lambda: ropewalk.wait([subscriber], 0.1), lambda: ropewalk.wait([subscriber, server]), lambda: next(iter(subscriber)),
        lambda: subscriber.fileno(), lambda: publisher.wait_for_subscribers(5), lambda: subscriber.wait_for_publishers(5),
        lambda: client.wait_for_server(), lambda: server.take(), lambda: pending.wait(), lambda: client.call(data=True),
        lambda: node.discover("/nobody"), lambda: node.subscriber("/ends", "std_msgs/String"), lambda: node.client("/nobody"),
        lambda: asyncio.run(subscriber.receive()), lambda: asyncio.run(pending.answer()),
    ]  # fmt: skip
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        for i, wait in enumerate(waits):
            try:
                wait()
            except ropewalk.Forked:
                continue
            except BaseException as e:
                print(i, repr(e))
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert server.take(LONG).message.data is True


def test_a_killed_consumer_leaks_nothing(node, program):
    publisher = node.publisher("/ends", IMAGE)
    child = program(
        """
        import ropewalk
        subscriber = ropewalk.Node("holder").subscriber("/ends", "sensor_msgs/Image", max_held=1000, depth=1000)
        held = [subscriber.take().data[5:] for _ in range(100)]
        print("held", flush=True)
        subscriber.take()
        """
    )
    assert publisher.wait_for_subscribers(1, LONG)
    for i in range(100):
        picture(publisher, 1)
        time.sleep(0.001)
    assert child.stdout.readline() == "held\n"
    assert publisher.memory_used >= 100 * 100_000
    child.send_signal(signal.SIGKILL)
    eventually(lambda: publisher.memory_used == 0)


def test_a_killed_publisher_leaves_what_is_held(node, program):
    subscriber = node.subscriber("/ends", IMAGE)
    child = program(
        """
        import ropewalk
        publisher = ropewalk.Node("dies").publisher("/ends", "sensor_msgs/Image")
        publisher.wait_for_subscribers()
        image = publisher.message()
        publisher.allocate(image, data=50000)
        image.data[:] = 5
        publisher.publish(image)
        import time; time.sleep(1000)
        """
    )
    image = subscriber.take(LONG)
    child.kill()
    child.wait()
    assert (image.data == 5).all()
    # A successor is found.
    publisher = node.publisher("/ends", IMAGE)
    assert publisher.wait_for_subscribers(1, LONG)
    picture(publisher, 6)
    assert (subscriber.take(LONG).data == 6).all()


@pytest.mark.parametrize("wait", ["subscriber.take()", "node.discover('/nobody')", "client.wait_for_server()",
                                  "publisher.wait_for_subscribers(5)", "next(iter(subscriber))",
                                  "fill(full.publish)", "fill(full.allocate)"])  # fmt: skip
def test_keyboard_interrupt_ends_waits(program, wait):
    child = program(
        f"""
        import ropewalk, signal
        # The process that started the tests may have made their children ignore the signal.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        node = ropewalk.Node("waits")
        subscriber = node.subscriber("/ends", "std_msgs/String")
        publisher = node.publisher("/other", "std_msgs/String")
        client = node.client("/nowhere", "std_srvs/SetBool")
        # Its subscriber keeps everything, so its memory runs out.
        full = node.publisher("/full", "sensor_msgs/Image", memory_limit=1 << 20, memory_policy="block", block_timeout=1000)
        owner = node.subscriber("/full", "sensor_msgs/Image", depth=1000, max_held=1000)
        full.wait_for_subscribers()
        def fill(act):
            kept = []
            while True:
                image = full.message(data=bytes(100_000))
                act(image)
                kept.append((image, owner.take(0)))
        print("waits", flush=True)
        try:
            {wait}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """
    )
    assert child.stdout.readline() == "waits\n"
    time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == "interrupted\n"
    assert child.wait() == 0


def test_waiting_lets_other_threads_run(ends):
    publisher, subscriber = ends("std_msgs/String")
    heard = []
    thread = threading.Thread(target=lambda: heard.append(subscriber.take(LONG).data))
    thread.start()
    publisher.publish(publisher.message(data="hello"))
    thread.join()
    assert heard == ["hello"]


def test_many_are_waited_for(node):
    a, b = (node.subscriber(t, "std_msgs/String") for t in ("/a", "/b"))
    publisher = node.publisher("/b", "std_msgs/String")
    assert publisher.wait_for_subscribers(1, LONG)
    assert a.take(0) is None and b.take(0) is None
    assert ropewalk.wait([a, b], 0) == []
    publisher.publish(publisher.message(data="x"))
    assert ropewalk.wait([a, b], LONG) == [b]
    assert b.take(0).data == "x"


def test_asyncio(ends):
    publisher, subscriber = ends("std_msgs/String")

    async def main():
        async def talk():
            for word in ("one", "two", "three"):
                await asyncio.sleep(0.01)
                publisher.publish(publisher.message(data=word))

        talking = asyncio.create_task(talk())
        heard = []
        async for message in subscriber:
            heard.append(message.data)
            if len(heard) == 3:
                break
        await talking
        return heard

    assert asyncio.run(main()) == ["one", "two", "three"]


def test_several_coroutines_share_a_subscriber(ends):
    publisher, subscriber = ends("std_msgs/String")

    async def main():
        tasks = [asyncio.create_task(subscriber.receive()) for _ in range(3)]
        await asyncio.sleep(0.01)
        for word in ("a", "b", "c"):
            publisher.publish(publisher.message(data=word))
        return sorted(m.data for m in await asyncio.gather(*tasks))

    assert asyncio.run(main()) == ["a", "b", "c"]


def test_generated_modules_name_types(node, tmp_path, monkeypatch):
    command = os.environ.get("ROPEWALK")
    if command is None:
        pytest.skip("ROPEWALK names no command; `make python` does")
    subprocess.run([command, "gen", "python", "--output", tmp_path, IMAGE, "std_srvs/SetBool"], check=True)
    monkeypatch.syspath_prepend(str(tmp_path))
    from ropewalk_msgs.sensor_msgs import Image
    from ropewalk_msgs.std_msgs import Header
    from ropewalk_msgs.std_srvs import SetBool

    publisher, subscriber = node.publisher("/ends", Image), node.subscriber("/ends", IMAGE)
    assert publisher.wait_for_subscribers(1, LONG)
    publisher.publish(Image(width=3, header=Header(frame_id="x")))
    seen = subscriber.take(LONG)
    assert isinstance(seen, Image) and seen.width == 3 and seen.header == Header(frame_id="x")
    assert node.server("/switch", SetBool).response(success=True).success


def test_bad_use_raises_an_exception_with_the_fix(node, ends):
    publisher, subscriber = ends(IMAGE, publisher={"memory_limit": 1 << 20})
    with pytest.raises(ropewalk.TypeUnknown, match="a/B"):
        node.publisher("/x", "a/B")
    with pytest.raises(ropewalk.BadName):
        node.publisher("no topic", IMAGE)
    with pytest.raises(ValueError, match="memory policy"):
        node.publisher("/x", IMAGE, memory_policy="none")
    with pytest.raises(ropewalk.NoPeer, match="topic list"):
        node.discover("/nobody", 0.01)
    image = publisher.message()
    with pytest.raises(MemoryError, match="memory_limit"):
        publisher.allocate(image, data=1 << 30)
    with pytest.raises(ropewalk.ContentError, match="sized but not allocated"):
        publisher.publish(image)
    publisher.allocate(image, data=1000)
    image.data = np.zeros(1000, np.uint8)
    with pytest.raises(ropewalk.ContentError, match="replaced"):
        publisher.publish(image)
    publisher.allocate(image, data=1000)
    image.header.frame_id = "x" * 5000
    with pytest.raises(ropewalk.ContentError, match="grown"):
        publisher.publish(image)
    publisher.allocate(image)
    other = node.publisher("/other", IMAGE)
    with pytest.raises(ropewalk.ContentError, match="another publisher"):
        other.publish(image)
    with pytest.raises(ropewalk.ContentError, match="expected a sensor_msgs/Image"):
        publisher.publish(ropewalk.message_class("std_msgs/String")())

    unknown = node.subscriber("/ends", ropewalk.Type(IMAGE, "uint8[] data"))
    eventually(lambda: unknown.refusals and publisher.refusals)
    assert "MD5" in unknown.refusals[0] and "060021388200f6f0f447d0fcd9c64743" in unknown.refusals[0]
    with pytest.raises(ropewalk.TypeUnknown, match="060021388200f6f0f447d0fcd9c64743"):
        ropewalk.Type(IMAGE, md5="0" * 32)
