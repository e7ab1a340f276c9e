"""The commands of `ros2`, typed with `ropewalk`: nodes, parameters, services, actions and topics of unchanged nodes of rclpy
(tests/ros2/run)."""

from __future__ import annotations

import json
import signal
import sys
import unittest
from pathlib import Path

import harness
import linked

PARAMETERS = """
import rclpy
from rcl_interfaces.msg import IntegerRange, ParameterDescriptor
from rclpy.node import Node
rclpy.init()
node = Node("tuned", namespace="/arm", parameter_overrides=[])
node.declare_parameter("gain", 1.5)
node.declare_parameter("name", "left: 1")
node.declare_parameter("joint.names", ["a", "b"])
node.declare_parameter("joint.limits", [1.0, 20.5])
node.declare_parameter("reach", float("inf"))
node.declare_parameter("steps", [1, 2])
node.declare_parameter("on", True)
node.declare_parameter("speed", 3, ParameterDescriptor(description="of the motor", integer_range=[IntegerRange(from_value=0, to_value=9, step=1)]))
node.declare_parameter("fixed", 7, ParameterDescriptor(read_only=True))
print("ready", flush=True)
rclpy.spin(node)
"""

READ_BY_ROS2 = """
import sys
from rclpy.parameter import parameter_dict_from_yaml_file
for name, parameter in sorted(parameter_dict_from_yaml_file(sys.argv[1], target_nodes=["/arm/tuned"]).items()):
    print(name, parameter.value.type, flush=True)
"""


class Shell(harness.Scenario):
    def done(self, *args: str, code: int = 0, host: str = "") -> list[str]:
        """Returns what a command prints, once it has ended successfully."""
        process = self.ropewalk(*args, host=host)
        self.assertEqual(process.process.wait(harness.LONG), code, (args, process.lines))
        process.join()
        return process.printed

    def until(self, wanted: str, *args: str, host: str = "") -> list[str]:
        """Returns what a command prints, once a line begins with the wanted text: a node is known a moment after it starts."""
        for _ in range(100):
            process = self.ropewalk(*args, host=host)
            process.process.wait(harness.LONG)
            process.join()
            if any(line.startswith(wanted) for line in process.printed):
                return process.printed
        self.fail(f"{args}: no {wanted!r} in {process.lines}")

    def node(self, text: str) -> harness.Process:
        process = harness.Process([sys.executable, "-c", text], harness.environment(self.host("")))
        self.processes.append(process)
        process.wait_for("ready")
        return process


class Commands(Shell):
    def test_nodes_are_listed_with_what_they_have(self) -> None:
        for role in ("talk", "serve", "act"):
            self.peer(role)
        self.assertEqual(self.done("node", "list"), ["/act", "/serve", "/talk"])
        self.assertEqual(self.done("node", "list", "-c"), ["3"])
        lines = self.done("node", "info", "/talk")
        self.assertEqual(lines[0], "/talk")
        self.assertTrue(lines[1].startswith("  Process: python"), lines[1])
        self.assertEqual([line for line in lines if line.endswith(":")], [
            "  Subscribers:", "  Publishers:", "  Service Servers:", "  Service Clients:", "  Action Servers:", "  Action Clients:",
        ])
        publishers = lines[lines.index("  Publishers:") + 1 : lines.index("  Service Servers:") - 1]
        self.assertEqual(publishers, [
            "    /chatter: std_msgs/msg/String", "    /image: sensor_msgs/msg/Image",
            "    /parameter_events: rcl_interfaces/msg/ParameterEvent", "    /rosout: rcl_interfaces/msg/Log",
        ])
        self.assertIn("    /talk/get_parameters: rcl_interfaces/srv/GetParameters", lines)
        lines = self.done("node", "info", "act")
        actions = lines[lines.index("  Action Servers:") + 1]
        self.assertEqual(actions, "    /fibonacci: test_msgs/action/Fibonacci")
        self.assertFalse([line for line in lines if "_action" in line])
        self.assertTrue([line for line in self.done("node", "info", "act", "-a") if "/fibonacci/_action/send_goal" in line])

    def test_topics_and_services_are_found_by_type(self) -> None:
        for role in ("talk", "serve"):
            self.peer(role)
        lines = self.done("topic", "list", "-t")
        self.assertIn("/chatter [std_msgs/msg/String]", lines)
        self.assertFalse([line for line in lines if "/_" in line])
        self.assertEqual(self.done("topic", "type", "/image"), ["sensor_msgs/msg/Image"])
        self.assertEqual(self.done("topic", "find", "std_msgs/msg/String"), ["/chatter"])
        self.assertEqual(self.done("service", "type", "/switch"), ["std_srvs/srv/SetBool"])
        self.assertEqual(self.done("service", "find", "std_srvs/srv/SetBool"), ["/switch"])
        self.assertIn("/switch [std_srvs/srv/SetBool]", self.done("service", "list", "-t"))
        lines = self.done("topic", "info", "-v", "/chatter")
        for line in ("Node name: talk", "Endpoint type: PUBLISHER", "  Reliability: RELIABLE", "  History (Depth): KEEP_LAST (10)"):
            self.assertIn(line, lines)

    def test_parameters_are_read_and_changed(self) -> None:
        self.node(PARAMETERS)
        lines = self.done("param", "list", "/arm/tuned", "--param-type")
        for line in ("  gain (type: double)", "  joint.names (type: string array)", "  speed (type: integer)", "  use_sim_time (type: boolean)"):
            self.assertIn(line, lines)
        self.assertEqual(self.done("param", "get", "/arm/tuned", "gain"), ["Double value is: 1.5"])
        self.assertEqual(self.done("param", "get", "/arm/tuned", "name", "--hide-type"), ['"left: 1"'])
        self.assertIn("  joint.limits", self.done("param", "list"))
        described = self.done("param", "describe", "/arm/tuned", "speed")
        self.assertEqual(described[:3], ["Parameter name: speed", "  Type: integer", "  Description: of the motor"])
        self.assertIn("    Max value: 9", described)

        # An integer for a double, any text for a string, Python's word for true.
        self.done("param", "set", "/arm/tuned", "gain", "2", "name", "5", "on", "False")
        values = self.done("param", "get", "/arm/tuned", "gain", "name", "on", "--hide-type")
        self.assertEqual(values, ["2.0", '"5"', "false"])
        self.done("param", "set", "/arm/tuned", "speed", "10", code=1)
        self.done("param", "set", "/arm/tuned", "fixed", "8", code=1)
        self.done("param", "get", "/arm/tuned", "missing", code=2)
        self.done("param", "get", "/nobody", "gain", "--timeout", "0.3", code=2)

    def test_dumped_parameters_are_loaded_here_and_by_ros2(self) -> None:
        self.node(PARAMETERS)
        dumped = self.done("param", "dump", "/arm/tuned")
        self.assertEqual(dumped[:2], ["/arm/tuned:", "  ros__parameters:"])
        file = Path(self.folder.name) / "tuned.yaml"
        file.write_text("\n".join(dumped) + "\n")
        # rclpy reads infinity as a string, whichever program wrote the file.
        process = harness.Process([sys.executable, "-c", READ_BY_ROS2, str(file)], harness.environment(self.host("")))
        self.processes.append(process)
        read = process.ended()
        for line in ("fixed 2", "gain 3", "joint.limits 8", "joint.names 9", "name 4", "on 1", "steps 7", "use_sim_time 1"):
            self.assertIn(line, read)
        self.done("param", "set", "/arm/tuned", "gain", "9.5", "steps", "[3]", "joint.limits", "[0, -.inf]", "on", "false")
        self.assertNotEqual(self.done("param", "dump", "/arm/tuned"), dumped)
        loaded = self.done("param", "load", "/arm/tuned", str(file))
        self.assertIn("Set parameter gain successful", loaded)
        self.assertEqual(self.done("param", "dump", "/arm/tuned"), dumped)
        file.write_text("/**:\n  ros__parameters:\n    gain: 4\n    joint:\n      names: [c]\n")
        self.done("param", "load", "/arm/tuned", str(file))
        self.assertEqual(self.done("param", "get", "/arm/tuned", "gain", "joint.names", "--hide-type"), ["4.0", '["c"]'])

    def test_services_are_called_with_their_type_or_without(self) -> None:
        self.peer("serve")
        answer = ["success: true", 'message: "switched"']
        self.assertEqual(self.done("service", "call", "/switch", "std_srvs/srv/SetBool", "{data: false}"), answer)
        self.assertEqual(self.done("service", "call", "/switch"), answer)
        self.assertEqual(self.done("service", "call", "/switch", "data: true")[0], "success: false")
        self.done("service", "call", "/switch", "std_srvs/srv/Trigger", "{}", code=2)

    def test_goals_give_feedback_and_a_result_and_are_cancelled(self) -> None:
        self.peer("act")
        self.assertEqual(self.done("action", "list", "-t"), ["/fibonacci [test_msgs/action/Fibonacci]"])
        self.assertEqual(self.done("action", "info", "/fibonacci"), ["Action: /fibonacci", "Action clients: 0", "Action servers: 1", "    /act"])
        goal = ("action", "send_goal", "/fibonacci", "test_msgs/action/Fibonacci")
        lines = [json.loads(line) for line in self.done(*goal, "{order: 6}", "--feedback", "--json")]
        self.assertEqual(len([line for line in lines if "feedback" in line]), 5, lines)
        self.assertEqual((lines[-1]["status"], lines[-1]["result"]["sequence"]), ("SUCCEEDED", [0, 1, 1, 2, 3, 5, 8]))
        lines = self.done("action", "send_goal", "/fibonacci", "order: 3")
        self.assertEqual((lines[-1], lines[-2]), ("Goal finished with status: SUCCEEDED", ""))
        long = self.ropewalk(*goal, "{order: 5000}", "-f")
        long.wait_for("Feedback:", 3)
        long.end(signal.SIGINT)
        self.assertEqual((long.process.returncode, long.printed[-1]), (1, "Goal finished with status: CANCELED"), long.lines[-5:])
        shown = self.done("interface", "show", "test_msgs/action/Fibonacci")
        self.assertEqual([line.split("#")[0].strip() for line in shown if line.split("#")[0].strip()], [
            "int32 order", "---", "int32[] sequence", "---", "int32[] sequence",
        ])

    def test_quality_of_service_meets_that_of_nodes(self) -> None:
        kept = ("topic", "pub", "/latched", "std_msgs/msg/String", "data: of the shell", "-1", "--wait", "0", "--keep-alive", "60")
        self.ropewalk(*kept, "--qos-durability", "transient_local")
        late = self.peer("late")
        self.assertEqual(late.wait_for("heard"), ["heard of the shell"])
        self.peer("unreliable")
        echo = self.ropewalk("topic", "echo", "/strict", "--once", "--qos-reliability", "reliable", "--wait", "30")
        self.assertEqual(echo.ended(), ['data: "lost"', "---"])
        self.assertTrue([line for line in echo.lines if line.startswith("/unreliable offers best_effort")], echo.lines)
        rates = self.done("topic", "hz", "/strict", "--qos-profile", "sensor_data", "--duration", "2.5", "--json")
        self.assertGreater(json.loads(rates[-1])["rate_hz"], 1)

    def test_what_is_kept_for_late_subscribers_is_shown(self) -> None:
        self.peer("latch")
        lines = self.done("topic", "echo", "/latched", "--once", "--qos-durability", "transient_local")
        self.assertEqual(lines, ['data: "kept"', "---"])
        self.assertEqual(self.done("topic", "echo", "/latched", "--qos-profile", "default", "--timeout", "1"), [])


class Far(Shell):
    """Over a link."""

    rate = linked.Linked.rate
    link = linked.Linked.link

    def setUp(self) -> None:
        super().setUp()
        self.ports = {"robot": linked.port(), "base": linked.port()}

    def test_nodes_of_another_host_are_known_with_their_way_and_parameters(self) -> None:
        self.link("robot")
        self.link("base")
        self.peer("talk", host="robot")
        self.until("/talk", "node", "list", host="base")
        info = self.until("    /chatter", "node", "info", "/talk", host="base")
        self.assertIn("  Host: robot", info)
        listed = self.until("{", "node", "list", "--json", host="base")
        hosts = {node["node"]: node["hosts"] for node in json.loads("\n".join(listed))["nodes"]}
        self.assertEqual((hosts["/talk"], hosts["/link"]), (["robot"], []))
        value = self.done("param", "get", "/talk", "use_sim_time", "--timeout", "30", host="base")
        self.assertEqual(value, ["Boolean value is: false"])


if __name__ == "__main__":
    unittest.main()
