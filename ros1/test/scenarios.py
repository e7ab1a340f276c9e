"""Nodes of roscpp that use this package, among themselves, with plain nodes and with Debian's tools."""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
import unittest

from support import WATCHDOG, Roscore


class Scenario(Roscore):
    def node(self, *args, **env):
        return self.start([ARGS.peer, *args], **env)

    # image_transport without a change of code

    def test_transport_is_found_by_pluginlib(self):
        # As ROS_PACKAGE_PATH finds it; Debian's own tool loads it.
        text = self.tool("/usr/lib/image_transport/list_transports")
        self.assertIn("image_transport/ropewalk", text)
        self.assertNotIn("No longer supported", text)
        self.assertNotIn("Plugins are built, but could not be loaded", text)

    def test_images_of_unchanged_nodes_come_over_the_bus(self):
        source = self.node("transport_publish", "/camera/image")
        copy = self.node("transport_listen", "/camera/image", "_image_transport:=ropewalk")
        raw = self.node("transport_listen", "/camera/image", "_image_transport:=raw")
        copy.expect("^transport ropewalk$")
        copy.expect(r"^heard seq \d+ stamp \d+\.5 camera 640x480 mono8 step 640 307200 bytes sum \d+$", 3)
        # The same image as by ROS, byte for byte.
        both = lambda p: {m[1]: m[2] for m in (re.match(r"heard seq \d+ stamp (\d+)\.5 (.*)", line) for line in list(p.lines)) if m}
        deadline = time.monotonic() + WATCHDOG
        while not (shared := both(copy).keys() & both(raw).keys()) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertTrue(shared)
        for stamp in shared:
            self.assertEqual(both(copy)[stamp], both(raw)[stamp])
        # Sequence numbers are consecutive, as the ones of ROS.
        numbers = [int(m[1]) for m in (re.match(r"heard seq (\d+)", line) for line in copy.lines) if m]
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))
        # The publisher learned of both, and learns that one leaves.
        source.expect("^joined", 2)
        copy.end()
        source.expect("^left")
        # Nothing went through ROS for the one on the bus.
        topics = self.tool("rostopic", "list", "-v")
        self.assertRegex(topics, r"(?s)Published topics:.*/camera/image/ropewalk/ros_[0-9a-f]{16} \[sensor_msgs/Image\] 1 publisher")
        subscribed = topics.split("Subscribed topics:")[1]
        self.assertNotIn("/ros_", subscribed)

    def test_what_is_on_the_bus_is_everybodys(self):
        self.node("transport_publish", "/camera/image")
        done = self.tool(f"{ARGS.prefix}/bin/ropewalk", "topic", "echo", "/camera/image", "--count", "1", "--field", "width")
        self.assertIn("640", done)

    def test_other_hosts_get_ros_messages(self):
        # Another host has another bus; its nodes meet those of this one at the master alone.
        source = self.node("transport_publish", "/camera/image")
        near = self.node("transport_listen", "/camera/image", "_image_transport:=ropewalk")
        far = self.node("transport_listen", "/camera/image", "_image_transport:=ropewalk", ROPEWALK_RUNTIME_DIR=self.bus("far"))
        near.expect("^heard", 2)
        far.expect("^heard .* 307200 bytes", 2)
        source.expect("^joined", 2)
        subscribed = self.tool("rostopic", "list", "-v").split("Subscribed topics:")[1]
        self.assertRegex(subscribed, r"/camera/image/ropewalk/ros_[0-9a-f]{16} \[sensor_msgs/Image\] 1 subscriber")
        # Publishers on both sides: each image once.
        self.node("transport_publish", "/camera/image", ROPEWALK_RUNTIME_DIR=self.bus("far"))
        deadline = time.monotonic() + WATCHDOG
        while time.monotonic() < deadline:
            subscribed = self.tool("rostopic", "list", "-v").split("Subscribed topics:")[1]
            if len(re.findall(r"/ros_[0-9a-f]{16} \[sensor_msgs/Image\] 1 subscriber", subscribed)) == 2:
                break
        else:
            self.fail("the two sides do not listen to each other:\n" + subscribed)
        before = near.count("^heard"), far.count("^heard")
        near.expect("^heard", before[0] + 20)
        far.expect("^heard", before[1] + 20)
        for listener in near, far:
            self.assertEqual(len(set(listener.lines)), len(listener.lines), listener.lines)

    def test_domains_are_apart(self):
        self.node("transport_publish", "/camera/image")
        far = self.node("transport_listen", "/camera/image", "_image_transport:=ropewalk", ROPEWALK_DOMAIN="7")
        far.expect("^heard", 2)
        self.assertIn("/ros_", self.tool("rostopic", "list", "-v").split("Subscribed topics:")[1])

    def test_latched_images_wait_for_later_listeners(self):
        self.node("transport_publish", "/map", "latch")
        for where in "bus", "far", "bus":
            late = self.node("transport_listen", "/map", "_image_transport:=ropewalk", ROPEWALK_RUNTIME_DIR=self.bus(where))
            late.expect("^heard .* stamp 1001.5")

    def test_debians_republish_takes_and_gives_it(self):
        self.node("transport_publish", "/camera/image")
        # in: what is published by the plugin; out: raw.
        self.start(["/usr/lib/image_transport/republish", "ropewalk", "raw", "in:=/camera/image", "out:=/copy"])
        self.node("plain", "/copy").expect("^heard .* 307200 bytes")
        # and the reverse
        self.start(["/usr/lib/image_transport/republish", "raw", "ropewalk", "in:=/camera/image", "out:=/again"])
        # `republish` advertises the transport's own topics at the name of `out`.
        self.node("transport_listen", "/again", "_image_transport:=ropewalk").expect("^heard .* 307200 bytes", 2)

    # publishers and subscribers of this package

    def test_views_show_what_was_written_in_place(self):
        source = self.node("publish", "/camera")
        source.expect("^on the bus$")
        view = self.node("listen", "/camera")
        plain = self.node("plain", "/camera")
        far = self.node("listen", "/camera", ROPEWALK_RUNTIME_DIR=self.bus("far"))
        transport = self.node("transport_listen", "/camera", "_image_transport:=ropewalk")
        source.expect("^joined the bus$", 2)
        source.expect("^joined through ROS$", 2)
        # Sequence numbers are each way's own.
        heard = lambda p: {m[1]: m[2] for m in (re.match(r"heard seq \d+ stamp (\d+)\.5 (.*)", line) for line in list(p.lines)) if m}
        deadline = time.monotonic() + WATCHDOG
        listeners = view, plain, far, transport
        while time.monotonic() < deadline:
            shared = set.intersection(*(set(heard(p)) for p in listeners))
            if shared:
                break
            time.sleep(0.1)
        else:
            self.fail("no image came to all of them: " + str([p.lines[-2:] for p in listeners]))
        for stamp in shared:
            self.assertEqual(len({heard(p)[stamp] for p in listeners}), 1)
        view.end()
        source.expect("^left the bus$")
        plain.end()
        source.expect("^left ROS$")

    def test_kept_views_do_not_change(self):
        self.node("publish", "/camera")
        owner = self.node("keep", "/camera")
        owner.expect("^all as they were$")

    def test_callbacks_end_with_the_subscriber(self):
        self.node("publish", "/camera")
        listener = self.node("listen_async", "/camera")
        listener.expect("^ended$")
        self.assertEqual(listener.count("^heard"), 3)
        self.assertEqual(listener.count("after the end"), 0)

    def test_both_ends_in_one_process(self):
        self.node("pair", "/camera").expect("^heard .* 307200 bytes", 3)

    def test_point_clouds(self):
        self.node("publish_clouds", "/points")
        listener = self.node("listen_clouds", "/points")
        copied = listener.expect(r"^copied cloud 1000 x@0:7x1 intensity@12:7x1 dense 1 sum (\d+)$")
        listener.expect(r"^viewed cloud 1000 x@0:7x1 intensity@12:7x1 dense 1 sum " + copied[1] + "$")

    def test_other_types_by_their_serialization(self):
        self.node("publish_scans", "/scan")
        self.node("listen_scans", "/scan").expect("^copied laser 720 far$", 2)
        self.node("listen_scans", "/scan", ROPEWALK_RUNTIME_DIR=self.bus("far")).expect("^copied laser 720 far$", 2)

    def test_publishers_come_and_go(self):
        listener = self.node("listen", "/camera")
        for _ in range(2):
            source = self.node("publish", "/camera")
            before = listener.count("^heard")
            listener.expect("^heard", before + 2)
            source.end(signal.SIGKILL)

    def test_plain_nodes_with_the_shim(self):
        plain, shimmed = (os.path.join(os.path.dirname(ARGS.peer), name) for name in ("plain", "shimmed"))
        # Talker and filter share memory; nodes compiled without the shim receive everything through ROS.
        self.start([shimmed, "talk"])
        self.start([shimmed, "filter"])
        for program in shimmed, plain:
            listener = self.start([program, "listen"])
            listener.expect("^heard 500 points, 8000 bytes, from lidar$", 2)
            listener.expect("^heard hello$")
        topics = self.tool("rostopic", "list", "-v")
        self.assertIn("/points/ropewalk [std_msgs/String]", topics)
        self.assertNotRegex(topics.split("Subscribed topics:")[1], r"\* /points \[")
        self.assertNotIn("/chatter/ropewalk", topics)

    # errors, with the fix

    def test_a_missing_bus_is_reported_and_ros_goes_on(self):
        file = self.folder.name + "/file"
        open(file, "w").close()
        source = self.node("publish", "/camera", ROPEWALK_RUNTIME_DIR=file)
        source.expect(r"ERROR.*ropewalk: .*set ROPEWALK_RUNTIME_DIR.*messages go through ROS")
        source.expect("^through ROS$")
        self.node("listen", "/camera").expect("^heard .* 307200 bytes", 2)
        self.node("listen", "/camera", ROPEWALK_RUNTIME_DIR="relative").expect(r"ERROR.*set ROPEWALK_RUNTIME_DIR to an absolute path")

    def test_another_type_of_the_same_topic_is_reported(self):
        self.node("publish", "/camera").expect("^on the bus$")
        other = self.node("listen_scans", "/camera")
        other.expect(r"ERROR.*ropewalk: a publisher of /camera on the bus is refused: .*sensor_msgs/(Image|LaserScan)")

    def test_invalid_offers_are_reported(self):
        listener = self.node("listen", "/camera")
        self.start(["/usr/bin/python3", "/usr/bin/rostopic", "pub", "/camera/ropewalk", "std_msgs/String", "data: ropewalk 2 x"])
        listener.expect("ERROR.*install the same version of ropewalk_ros everywhere")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", required=True)
    parser.add_argument("--prefix", required=True)
    ARGS, rest = parser.parse_known_args()
    Roscore.prefix = ARGS.prefix
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
