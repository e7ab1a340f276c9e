"""rmw_ropewalk delivers the same as Fast DDS: values of every type, and matches and events of every pair of policies
(tests/ros2/run)."""

from __future__ import annotations

import importlib.util
import os
import sys
import unittest

import harness


class Beside(harness.Scenario):
    def of(self, role: str, rmw: str) -> harness.Process:
        env = harness.environment(self.host(""))
        if rmw == "fastdds":
            # A domain of its own: other programs on this machine may use DDS.
            own = {"RMW_IMPLEMENTATION": "rmw_fastrtps_cpp", "ROS_DOMAIN_ID": str(os.getpid() % 100), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
            env = {k: v for k, v in env.items() if k != "LD_PRELOAD"} | own
        process = harness.Process([sys.executable, str(harness.HERE / "values.py"), role], env)
        self.processes.append(process)
        return process

    def lines(self, role: str, rmw: str, what: str) -> list[str]:
        return [line for line in self.of(role, rmw).ended(180) if line.startswith(what)]

    def test_values_of_every_type_are_those_of_fast_dds(self) -> None:
        heard = {}
        for rmw in ("ropewalk", "fastdds"):
            speaker = self.of("say", rmw)
            speaker.wait_for("ready")
            heard[rmw] = self.lines("hear", rmw, "type")
            speaker.end()
        self.assertGreater(len(heard["ropewalk"]), 80)
        self.assertFalse([line for line in heard["ropewalk"] if line.endswith("nothing")])
        self.assertEqual(heard["ropewalk"], heard["fastdds"])

    def test_pairs_of_policies_match_or_not_as_with_fast_dds(self) -> None:
        pairs = {rmw: self.lines("qos", rmw, "pair") for rmw in ("ropewalk", "fastdds")}
        self.assertEqual(len(pairs["ropewalk"]), 144)
        self.assertEqual(pairs["ropewalk"], pairs["fastdds"])

    def test_leases_run_out_as_with_fast_dds(self) -> None:
        leases = {rmw: self.lines("lease", rmw, "lease") for rmw in ("ropewalk", "fastdds")}
        self.assertEqual(len(leases["ropewalk"]), 7)
        self.assertEqual(leases["ropewalk"], leases["fastdds"])

    def test_content_filters_let_through_what_those_of_fast_dds_do(self) -> None:
        if importlib.util.find_spec("rclpy.subscription_content_filter_options") is None:
            self.skipTest("rclpy has no content filters before Kilted")
        chosen = {rmw: self.lines("choose", rmw, "filter") for rmw in ("ropewalk", "fastdds")}
        self.assertGreater(len(chosen["ropewalk"]), 20)
        self.assertEqual(chosen["ropewalk"], chosen["fastdds"])


if __name__ == "__main__":
    unittest.main()
