"""Nodes of Cyclone DDS (cyclone_peer.py), and rclpy over rmw_ropewalk on the bus, with `ropewalk ros2` between them (tests/ros2/run)."""

from __future__ import annotations

import os
import sys
import unittest

import bridged
import harness
from bridged import CALLS, SENDS, TAKES

INTERFACES = """<CycloneDDS><Domain><General><Interfaces><NetworkInterface address="127.0.0.1" multicast="true"/></Interfaces>
</General></Domain></CycloneDDS>"""


class Cyclone(bridged.Bridge):
    def cyclone(self, *words: str) -> harness.Process:
        env = {**os.environ, "ROS_DOMAIN_ID": str(self.domain), "CYCLONEDDS_URI": INTERFACES}
        process = harness.Process([sys.executable, str(harness.HERE / "cyclone_peer.py"), *words], env)
        self.processes.append(process)
        return process

    def test_topics_cross_both_ways_whole(self) -> None:
        self.bridge()
        for how in ["RELIABLE", "BEST_EFFORT"]:
            for to_domain in [False, True]:
                with self.subTest(how=how, to="domain" if to_domain else "bus"):
                    if to_domain:
                        taker, sender = self.cyclone("take", how), self.begin(SENDS.format(how=how), False)
                    else:
                        taker, sender = self.begin(TAKES.format(how=how), False), self.cyclone("send", how)
                    words, pictures = taker.ended(120)
                    self.assertEqual(words, "words True 20")
                    if how == "RELIABLE":
                        self.assertEqual(pictures, "pictures True 60")
                    else:
                        # As over Fast DDS: a socket may overflow.
                        self.assertGreater(int(pictures.split()[-1]), 40, pictures)
                    self.assertEqual(sender.ended(120), ["sent"])

    def test_its_services_and_actions_are_called_from_the_bus(self) -> None:
        self.bridge("{name: /switch, direction: to_bus}", "actions: [{name: /fibonacci, direction: to_bus}]")
        self.cyclone("serve").wait_for("ready")
        self.check_calls(self.script(CALLS))

    def test_it_calls_services_and_actions_of_the_bus(self) -> None:
        self.bridge("{name: /switch, direction: to_ros}", "actions: [{name: /fibonacci, direction: to_ros}]")
        self.peer("serve")
        self.peer("act")
        self.check_calls(self.cyclone("call").ended(120))

    def test_what_is_kept_reaches_those_who_come_late(self) -> None:
        self.bridge()
        for by_domain in [True, False]:
            with self.subTest(kept_by="domain" if by_domain else "bus"):
                latched = self.cyclone("latch") if by_domain else self.peer("latch")
                latched.wait_for("ready")
                for _ in range(2):
                    late = self.peer("late") if by_domain else self.cyclone("late")
                    self.assertEqual(late.wait_for("heard"), ["heard kept"])
                    late.end()
                latched.end()


if __name__ == "__main__":
    unittest.main()
