"""Loaned messages through rcl's C API, as rclcpp calls it, in nodes created with rclpy (tests/ros2/run)."""

from __future__ import annotations

import unittest

import harness

# Code that the nodes below share: an image in C, and the functions of rcl.
START = """
import ctypes, os, time, rclpy
from ctypes import POINTER, byref, c_bool, c_char_p, c_size_t, c_uint8, c_uint32, c_void_p
from rclpy.node import Node
from sensor_msgs.msg import Image
class Text(ctypes.Structure):
    _fields_ = [("data", c_char_p), ("size", c_size_t), ("capacity", c_size_t)]
class Bytes(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t), ("capacity", c_size_t)]
class CImage(ctypes.Structure):
    _fields_ = [("sec", c_uint32), ("nanosec", c_uint32), ("frame_id", Text), ("height", c_uint32), ("width", c_uint32), ("encoding", Text),
                ("is_bigendian", c_uint8), ("step", c_uint32), ("pixels", Bytes)]
rcl = ctypes.CDLL("librcl.so")
runtime = ctypes.CDLL("librosidl_runtime_c.so")
generated = ctypes.CDLL("libsensor_msgs__rosidl_generator_c.so")
generated.sensor_msgs__msg__Image__create.restype = POINTER(CImage)
# The preloaded library, and libc.
here = ctypes.CDLL(None)
ctypes.pythonapi.PyCapsule_GetPointer.restype = c_void_p
def is_shared(at):
    for line in open("/proc/self/maps"):
        span, mode = line.split()[:2]
        low, high = (int(x, 16) for x in span.split("-"))
        if low <= at < high:
            return mode[3] == "s"
    return False
def handle(of, entity):
    get = getattr(rcl, f"rcl_{of}_get_rmw_handle")
    get.restype = c_void_p
    with entity.handle:
        return c_void_p(get(c_void_p(entity.handle.pointer)))
rclpy.init()
node = Node("borrower")
"""

TAKE = START + """
taker = handle("subscription", node.create_subscription(Image, "image", lambda m: None, 10))
out = []
def take():
    message, taken = c_void_p(), c_bool()
    end = time.monotonic() + 30
    while not taken.value and time.monotonic() < end:
        code = here.rmw_take_loaned_message(taker, byref(message), byref(taken), None)
        assert code == 0, code
        time.sleep(0.005)
    return message
for i in range(40):
    message = take()
    image = ctypes.cast(message, POINTER(CImage)).contents
    pixels = ctypes.string_at(image.pixels.data, image.pixels.size)
    assert len(pixels) == 1_000_000 and set(pixels) == {image.height}, (len(pixels), image.height)
    out.append((message, is_shared(image.pixels.data)))
    if len(out) == 20:
        print("shared", sum(s for _, s in out), "copied", sum(not s for _, s in out))
        for message, _ in out:
            assert here.rmw_return_loaned_message_from_subscription(taker, message) == 0
        out.clear()
again = here.rmw_return_loaned_message_from_subscription(taker, message)
null = here.rmw_take_loaned_message(taker, None, byref(c_bool()), None)
full = here.rmw_take_loaned_message(taker, byref(c_void_p(1)), byref(c_bool()), None)
print("wrong", again, null, full, here.rmw_return_loaned_message_from_subscription(taker, None))
# A loan that is not returned ends with its subscription.
take()
node.destroy_node()
rclpy.shutdown()
"""

GIVE = START + """
publisher = node.create_publisher(Image, "image", 10)
while publisher.get_subscription_count() < 1:
    time.sleep(0.01)
with publisher.handle:
    own = c_void_p(publisher.handle.pointer)
support = c_void_p(ctypes.pythonapi.PyCapsule_GetPointer(ctypes.py_object(Image._TYPE_SUPPORT), None))
assert rcl.rcl_publisher_can_loan_messages(own)
kinds = []
def borrow():
    message = c_void_p()
    assert rcl.rcl_borrow_loaned_message(own, support, byref(message)) == 0
    return message, ctypes.cast(message, POINTER(CImage)).contents
def empty(pixels):
    runtime.rosidl_runtime_c__uint8__Sequence__fini(byref(pixels))
def give(length, shade, how):
    message, image = borrow()
    assert image.pixels.size == 0 and image.height == 0
    moved = Bytes(None, 0, 0)
    if how == "free":
        empty(image.pixels)
    if how == "move":
        moved, image.pixels = Bytes(image.pixels.data, 0, image.pixels.capacity), moved
    if image.pixels.capacity < length:
        # Like std::vector: allocate other memory, and pass the old one to `free`.
        empty(image.pixels)
        assert runtime.rosidl_runtime_c__uint8__Sequence__init(byref(image.pixels), c_size_t(length))
    image.pixels.size = length
    ctypes.memset(image.pixels.data, shade, length)
    image.height = shade
    kinds.append("shared" if is_shared(image.pixels.data) else "heap")
    assert rcl.rcl_publish_loaned_message(own, message, None) == 0
    # The node owns the memory that was moved out.
    ctypes.memset(moved.data, 1, moved.capacity)
    empty(moved)
MB = 1_000_000
for shade, (length, how) in enumerate([(MB, ""), (MB, ""), (900_000, ""), (MB, ""), (MB, "free"), (MB, "move"), (MB, ""), (MB, "")], 1):
    give(length, shade, how)
    time.sleep(0.05)
print("kinds", *kinds)
message, image = borrow()
assert rcl.rcl_return_loaned_message_from_publisher(own, message) == 0
print("wrong", rcl.rcl_return_loaned_message_from_publisher(own, message), rcl.rcl_publish_loaned_message(own, message, None),
      rcl.rcl_borrow_loaned_message(own, None, byref(c_void_p())))
# A loan that is not returned ends with its publisher.
borrow()
time.sleep(1)
node.destroy_node()
rclpy.shutdown()
"""

OWN = START + """
here.realloc.restype = c_void_p
subscriptions = [node.create_subscription(Image, "image", lambda m: None, 10) for _ in range(2)]
handles = [handle("subscription", each) for each in subscriptions]
def blocks():
    # Pages of blocks that belong to this process alone.
    return sum("ropewalk-payload" in line and line.split()[1] == "rw-p" for line in open("/proc/self/maps"))
def take(taker):
    image, taken = generated.sensor_msgs__msg__Image__create(), c_bool()
    end = time.monotonic() + 30
    while not taken.value and time.monotonic() < end:
        assert here.rmw_take(taker, image, byref(taken), None) == 0
        time.sleep(0.002)
    return image
def check(image):
    pixels = ctypes.string_at(image.contents.pixels.data, image.contents.pixels.size)
    assert len(pixels) == 1_000_000 and set(pixels) == {image.contents.height}, (len(pixels), image.contents.height)
destroy = generated.sensor_msgs__msg__Image__destroy
held = [take(handles[0]) for _ in range(20)]
print("held", blocks())
for image in held:
    check(image)
for image in held[:15]:
    destroy(image)
print("left", blocks())
for image in held[15:]:
    destroy(image)
# Another subscription that took the same message does not see what a node writes.
first, second = take(handles[0]), take(handles[1])
while first.contents.height != second.contents.height:
    late = 0 if first.contents.height < second.contents.height else 1
    destroy((first, second)[late])
    first, second = (take(handles[0]), second) if late == 0 else (first, take(handles[1]))
ctypes.memset(first.contents.pixels.data, 255, 500_000)
check(second)
assert ctypes.string_at(first.contents.pixels.data, 500_001)[499_999:] == bytes([255, first.contents.height])
destroy(first)
# A sequence that grows moves to the heap.
pixels, height = second.contents.pixels, second.contents.height
pixels.data = here.realloc(c_void_p(pixels.data), c_size_t(2_000_000))
assert set(ctypes.string_at(pixels.data, 1_000_000)) == {height}
print("grown", blocks())
destroy(second)
# A child reads and ends what its parent took; the parent still has it, even after the subscription ends.
image = take(handles[0])
child = os.fork()
if child == 0:
    check(image)
    destroy(image)
    os._exit(blocks())
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
for each in subscriptions:
    node.destroy_subscription(each)
check(image)
print("after", blocks())
node.destroy_node()
rclpy.shutdown()
check(image)
destroy(image)
print("end", blocks())
"""

SHORT = START + """
import resource
def outcome(code):
    said = bool(rcutils.rcutils_error_is_set())
    rcutils.rcutils_reset_error()
    return code, said
rcutils = ctypes.CDLL("librcutils.so")
rcutils.rcutils_error_is_set.restype = c_bool
out, back = node.create_publisher(Image, "large", 10), node.create_subscription(Image, "large", lambda m: None, 10)
while out.get_subscription_count() < 1:
    time.sleep(0.01)
image = generated.sensor_msgs__msg__Image__create()
assert runtime.rosidl_runtime_c__uint8__Sequence__init(byref(image.contents.pixels), c_size_t(200_000_000))
taken = generated.sensor_msgs__msg__Image__create()
def publish():
    return outcome(here.rmw_publish(handle("publisher", out), image, None))
def take():
    got = c_bool()
    return *outcome(here.rmw_take(handle("subscription", back), taken, byref(got), None)), got.value, taken.contents.pixels.size
def address_space(more):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + more if more else resource.RLIM_INFINITY, resource.RLIM_INFINITY))
address_space(50_000_000)
print("publish", *publish())
address_space(0)
print("publish", *publish())
print("take", *take())
print("publish", *publish())
address_space(50_000_000)
full, taken = taken, generated.sensor_msgs__msg__Image__create()
print("take", *take())
address_space(0)
print("publish", *publish())
print("take", *take())
# Without descriptors nothing can be created, and existing entities go on.
files = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")), files[1]))
made = 0
for make in (lambda: node.create_publisher(Image, "more", 10), lambda: node.create_subscription(Image, "more", print, 10),
             lambda: rclpy.create_node("more"), lambda: node.create_guard_condition(print)):
    try:
        make()
        made += 1
    except Exception as error:
        assert str(error), error
print("few made", made < 2)
resource.setrlimit(resource.RLIMIT_NOFILE, files)
print("publish", *publish())
print("take", *take())
node.create_publisher(Image, "more", 10)
node.destroy_node()
rclpy.shutdown()
"""

EARLY = """
import os, threading
os.environ["ROS_DISABLE_LOANED_MESSAGES"] = "0"
""" + START + """
from rclpy.impl.implementation_singleton import rclpy_implementation
out, back = node.create_publisher(Image, "image", 10), node.create_subscription(Image, "image", lambda m: None, 10)
while out.get_subscription_count() < 1:
    time.sleep(0.01)
with out.handle:
    own = c_void_p(out.handle.pointer)
support = c_void_p(ctypes.pythonapi.PyCapsule_GetPointer(ctypes.py_object(Image._TYPE_SUPPORT), None))
taker, seen, COUNT = handle("subscription", back), [], 6
def wait_and_take():
    waits = rclpy_implementation.WaitSet(1, 0, 0, 0, 0, 0, node.context.handle)
    while COUNT not in seen:
        waits.clear_entities()
        waits.add_subscription(back.handle)
        waits.wait(30_000_000_000)
        assert waits.get_ready_entities("subscription")
        message, taken = c_void_p(), c_bool()
        assert here.rmw_take_loaned_message(taker, byref(message), byref(taken), None) == 0
        if taken.value:
            image = ctypes.cast(message, POINTER(CImage)).contents
            assert image.pixels.size == 100_000 and image.frame_id.data == b"" and image.encoding.data == b"mono8", image.height
            seen.append(image.height)
            assert here.rmw_return_loaned_message_from_subscription(taker, message) == 0
        else:
            seen.append("early")
waiter = threading.Thread(target=wait_and_take)
waiter.start()
for i in range(1, COUNT + 1):
    time.sleep(0.1)
    message = c_void_p()
    assert rcl.rcl_borrow_loaned_message(own, support, byref(message)) == 0
    time.sleep(0.1)
    image = ctypes.cast(message, POINTER(CImage)).contents
    if image.pixels.capacity < 100_000:
        assert runtime.rosidl_runtime_c__uint8__Sequence__init(byref(image.pixels), c_size_t(100_000))
    image.pixels.size, image.height = 100_000, i
    assert runtime.rosidl_runtime_c__String__assign(byref(image.encoding), b"mono8")
    assert rcl.rcl_publish_loaned_message(own, message, None) == 0
waiter.join()
# The first message has no room in a block before it is published.
print(*seen[seen.index(1):])
node.destroy_node()
rclpy.shutdown()
"""


class Loans(harness.Scenario):
    def test_a_wait_ends_when_a_message_begins(self) -> None:
        lines = self.script(EARLY, heap=True)
        self.assertEqual(lines, ["1 early 2 early 3 early 4 early 5 early 6"])

    def test_exhausted_memory_costs_its_message(self) -> None:
        lines = self.script(SHORT)
        # RMW_RET_BAD_ALLOC is 10.
        sent, short, came = "publish 0 False", "take 10 True False 0", "take 0 False True 200000000"
        self.assertEqual(lines, ["publish 10 True", sent, came, sent, short, sent, came, "few made True", sent, came])

    def test_large_arrays_of_a_node_lie_in_the_block(self) -> None:
        for preloaded in (False, True):
            with self.subTest(preloaded=preloaded):
                self.peer("talk", f"talk{preloaded}", host=str(preloaded))
                lines = self.script(OWN, host=str(preloaded), heap=preloaded)
                held, one = (12, 1) if preloaded else (0, 0)
                self.assertEqual(lines, [f"held {held}", "left 0", "grown 0", "child 0", f"after {one}", "end 0"])

    def test_images_are_taken_where_they_were_written(self) -> None:
        self.peer("talk")
        lines = self.script(TAKE)
        # The bus lets a subscriber hold 16 messages: some remain for taking without a loan.
        self.assertEqual(lines, ["shared 12 copied 8", "shared 12 copied 8", "wrong 1 11 11 11"])

    def test_messages_of_publishers_are_filled_and_published(self) -> None:
        lengths = [1_000_000, 1_000_000, 900_000, 1_000_000, 1_000_000, 1_000_000, 1_000_000, 1_000_000]
        on_heap = "kinds" + 8 * " heap"
        in_place = "kinds heap shared shared heap heap heap shared shared"
        for preloaded, kinds in [(False, on_heap), (True, in_place)]:
            with self.subTest(preloaded=preloaded):
                ear = self.peer("listen", f"ear{preloaded}", host=str(preloaded))
                lines = self.script(GIVE, host=str(preloaded), heap=preloaded)
                self.assertEqual(lines[0], kinds)
                self.assertEqual(lines[1], "wrong 1 1 11")
                images = ear.wait_for("image", len(lengths))
                self.assertEqual(images, [f"image {i} {length} True" for i, length in enumerate(lengths, 1)])


if __name__ == "__main__":
    unittest.main()
