"""Nodes that use rmw_zenoh's protocol, from two independent libraries, with `ropewalk ros2 --wire zenoh` between them and the bus (tests/zenoh/run)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "ros2"))

from harness import Process  # noqa: E402

LIBRARIES = ("pyzeros", "sdk")
STRING = "std_msgs/msg/String"
EVERYTHING = """
wire: zenoh
topics: [{name: '/*', direction: both}]
services: [%s]
"""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Bridged(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="rwz")
        self.processes: list[Process] = []
        self.port = free_port()
        self.endpoint = f"tcp/127.0.0.1:{self.port}"
        # As in rmw_zenoh: of two peers, the one with the greater number connects, since two simultaneous connections fail.
        self.session = self.file(
            "session.json5",
            f"""{{mode: "peer", connect: {{endpoints: ["{self.endpoint}"], timeout_ms: -1, exit_on_failure: false,
            retry: {{period_init_ms: 200, period_max_ms: 1000}}}}, listen: {{endpoints: ["tcp/127.0.0.1:0"]}},
            scouting: {{multicast: {{enabled: false}}, gossip: {{enabled: true, target: {{router: ["router", "peer"], peer: ["router"]}},
            autoconnect: {{router: [], peer: ["router", "peer"]}},
            autoconnect_strategy: {{peer: {{to_router: "always", to_peer: "greater-zid"}}}}}}}}, timestamping: {{enabled: true}}}}""",
        )
        self.router = self.route()

    def tearDown(self) -> None:
        for process in self.processes:
            if process.process.poll() is None:
                process.end()
            process.close()
        self.folder.cleanup()

    def file(self, name: str, text: str) -> str:
        path = Path(self.folder.name) / name
        path.write_text(text)
        return str(path)

    def start(self, command: list[str], **more: str) -> Process:
        own = {
            "ROPEWALK_RUNTIME_DIR": self.folder.name,
            "ZENOH_SESSION_CONFIG_URI": self.session,
            "ROUTER_PORT": str(self.port),
            "ROS_DOMAIN_ID": "0",
        }
        process = Process(command, {**os.environ, **own, **more})
        self.processes.append(process)
        return process

    def route(self) -> Process:
        router = self.start([sys.executable, str(HERE / "router.py"), self.endpoint])
        router.wait_for("ready")
        return router

    def peer(self, library: str, role: str, name: str, count: int = 20, **more: str) -> Process:
        peer = self.start([sys.executable, str(HERE / "peer.py"), library, role, name, str(count)], **more)
        peer.wait_for("ready")
        return peer

    def ropewalk(self, *args: str, **more: str) -> Process:
        return self.start([os.environ["ROPEWALK"], *args], **more)

    def bridge(self, services: str = "", domain: int = 0, text: str = "", **more: str) -> Process:
        text = (text or EVERYTHING % services) + f"\ndomain: {domain}\nzenoh: {{connect: ['{self.endpoint}']}}\n"
        config = self.file(f"bridge{len(self.processes)}.yaml", text)
        return self.ropewalk("ros2", config, "--json", "--every", "0.2", **more)

    def status(self, bridge: Process) -> dict:
        """Returns its next status."""
        count = len(bridge.printed)
        bridge.wait_for("{", count + 1)
        return json.loads(bridge.printed[-1])

    def echo(self, topic: str, *args: str, **more: str) -> Process:
        return self.ropewalk("topic", "echo", topic, STRING, "--field", "data", "--csv", *args, **more)

    def say(self, topic: str, count: int, *args: str, **more: str) -> Process:
        text = "".join(f"---\ndata: bus {i}\n" if i else f"data: bus {i}\n" for i in range(count))
        words = self.file(f"words{len(self.processes)}.yaml", text)
        return self.ropewalk("topic", "pub", topic, STRING, "--file", words, *args, **more)

    def heard(self, process: Process, count: int, seconds: float = 1) -> list[str]:
        """Returns everything that it received, once there are this many messages and no others arrive for a while."""
        process.wait_for("heard", count)
        time.sleep(seconds)
        return [line.removeprefix("heard ") for line in process.printed if line.startswith("heard ")]


class Topics(Bridged):
    def test_twenty_of_twenty_strings_come_onto_the_bus(self) -> None:
        self.bridge()
        for library in LIBRARIES:
            with self.subTest(library):
                echo = self.echo(f"/{library}")
                talk = self.peer(library, "talk", f"/{library}")
                talk.wait_for("sent")
                echo.wait_for(library, 20)
                time.sleep(0.5)
                self.assertEqual(echo.printed, [f"{library} {i}" for i in range(20)])

    def test_twenty_of_twenty_strings_come_from_the_bus(self) -> None:
        self.bridge()
        for library in LIBRARIES:
            with self.subTest(library):
                hear = self.peer(library, "hear", f"/{library}")
                self.say(f"/{library}", 20, "--rate", "50", "--count", "20", "--wait-matching-subscriptions", "1")
                self.assertEqual(self.heard(hear, 20), [f"bus {i}" for i in range(20)])

    def test_nodes_of_each_side_are_seen_on_the_other(self) -> None:
        self.bridge()
        self.peer("pyzeros", "hear", "/chatter")
        self.say("/chatter", 1, "--rate", "5")
        end = time.monotonic() + 30
        while True:
            nodes = self.ropewalk("node", "list").ended()
            if "/hear_pyzeros" in nodes or time.monotonic() > end:
                break
        self.assertIn("/hear_pyzeros", nodes)


class Services(Bridged):
    def test_servers_of_nodes_are_called_from_the_bus(self) -> None:
        self.bridge("{name: '/*', direction: to_bus}")
        for library in LIBRARIES:
            with self.subTest(library):
                self.peer(library, "serve", f"/{library}")
                for i in range(3):
                    call = self.ropewalk("service", "call", f"/{library}", "{data: false}", "--json", "--timeout", "30")
                    answer = json.loads(call.ended()[0])
                    self.assertEqual((answer["success"], answer["message"]), (True, "switched"))

    def test_servers_of_the_bus_are_called_by_nodes(self) -> None:
        """A service of one domain is on the bus, and from there served in another domain."""
        self.bridge("{name: '/*', direction: to_bus}")
        self.bridge("{name: '/*', direction: to_ros}", domain=1, text="wire: zenoh\nservices: [{name: '/*', direction: to_ros}]")
        for served, called in (LIBRARIES, LIBRARIES[::-1]):
            with self.subTest(called):
                self.peer(served, "serve", f"/by_{served}")
                call = self.peer(called, "call", f"/by_{served}", ROS_DOMAIN_ID="1")
                self.assertEqual(call.wait_for("right"), ["right 20"])


class Kept(Bridged):
    def test_late_subscribers_of_the_bus_get_what_a_node_kept(self) -> None:
        self.bridge()
        self.peer("plain", "keep", "/kept", 5)
        for _ in range(2):
            echo = self.echo("/kept", "--qos-durability", "transient_local")
            echo.wait_for("plain", 5)
            time.sleep(0.5)
            self.assertEqual(echo.printed, [f"plain {i}" for i in range(5)])

    def test_late_nodes_get_what_the_bus_kept(self) -> None:
        self.bridge()
        kept = ("--qos-durability", "transient_local", "--qos-depth", "5", "--keep-alive", "600", "--wait", "0")
        self.say("/kept", 5, *kept)
        for library, role in (("plain", "follow"), ("sdk", "hear_late"), ("plain", "follow")):
            with self.subTest(library):
                follow = self.peer(library, role, "/kept", 5)
                # The sdk requests the last message of each key.
                kept = [f"bus {i}" for i in range(5)][-1 if library == "sdk" else 0 :]
                self.assertEqual(self.heard(follow, len(kept)), kept)


class Router(Bridged):
    def test_a_router_that_comes_back_finds_all_as_it_was(self) -> None:
        bridge = self.bridge("{name: '/*', direction: to_bus}")
        self.peer("plain", "keep", "/kept", 5)
        kept = self.echo("/kept", "--qos-durability", "transient_local")
        echo = self.echo("/chatter")
        self.peer("pyzeros", "serve", "/switch")
        self.peer("pyzeros", "talk", "/chatter", 100_000)
        hear = self.peer("pyzeros", "hear", "/words")
        self.say("/words", 5000, "--rate", "20")
        kept.wait_for("plain", 5)
        echo.wait_for("pyzeros", 20)
        hear.wait_for("heard", 20)
        for seconds in (0.5, 8):
            self.router.end()
            time.sleep(seconds)
            self.router = self.route()
            # Longer than its peers take to try to reach it again.
            time.sleep(10)
            said, heard = len(echo.printed), len(hear.printed)
            echo.wait_for("pyzeros", said + 50)
            hear.wait_for("heard", heard + 50)
            call = self.ropewalk("service", "call", "/switch", "{data: true}", "--json", "--timeout", "30")
            self.assertEqual(json.loads(call.ended()[0])["success"], False)
        self.assertEqual(kept.printed, [f"plain {i}" for i in range(5)])
        for words in (echo.printed, self.heard(hear, 1)):
            self.assertEqual(len(words), len(set(words)))
        self.assertEqual(self.status(bridge)["problems"], {})

    def test_clients_of_a_router_that_was_killed_are_joined_again(self) -> None:
        """As robots of a fleet are: everything passes through the router."""
        client = self.file(
            "client.json5",
            f"""{{mode: "client", connect: {{endpoints: ["{self.endpoint}"], timeout_ms: -1, exit_on_failure: false,
            retry: {{period_init_ms: 200, period_max_ms: 1000}}}}, scouting: {{multicast: {{enabled: false}}}}, timestamping: {{enabled: true}}}}""",
        )
        text = EVERYTHING % "{name: '/*', direction: to_bus}" + f"\nzenoh: {{config: '{client}'}}\n"
        self.ropewalk("ros2", self.file("robot.yaml", text))
        own = {"ZENOH_SESSION_CONFIG_URI": client}
        echo = self.echo("/chatter")
        self.peer("pyzeros", "talk", "/chatter", 100_000, **own)
        hear = self.peer("pyzeros", "hear", "/words", **own)
        self.peer("plain", "keep", "/kept", 5, **own)
        self.say("/words", 5000, "--rate", "20")
        echo.wait_for("pyzeros", 20)
        hear.wait_for("heard", 20)
        for seconds in (0.5, 8):
            self.router.end()
            time.sleep(seconds)
            said, heard, begun = len(echo.printed), len(hear.printed), time.monotonic()
            self.router = self.route()
            echo.wait_for("pyzeros", said + 1)
            to_bus = time.monotonic() - begun
            hear.wait_for("heard", heard + 1)
            both = time.monotonic() - begun
            print(f"\nheard on the bus {to_bus:.2f} s, by a node {both:.2f} s after the router was started again", file=sys.stderr)
            echo.wait_for("pyzeros", said + 50)
            hear.wait_for("heard", heard + 50)
            late = self.echo("/kept", "--qos-durability", "transient_local")
            late.wait_for("plain", 5)
        for words in (echo.printed, self.heard(hear, 1)):
            self.assertEqual(len(words), len(set(words)))

    def test_a_missing_router_is_a_problem_until_it_is_there(self) -> None:
        self.router.end()
        bridge = self.bridge()
        end = time.monotonic() + 30
        while "the domain" not in (problems := self.status(bridge)["problems"]) and time.monotonic() < end:
            pass
        self.assertIn(self.endpoint, problems["the domain"])
        self.router = self.route()
        while self.status(bridge)["problems"] and time.monotonic() < end:
            pass
        self.assertEqual(self.status(bridge)["problems"], {})


class Secured(Bridged):
    """A router of a site that knows its hosts by their certificates, and lets a robot have its own names alone."""

    def route(self) -> Process:
        def openssl(*words: str) -> None:
            subprocess.run(["openssl", *words], check=True, cwd=self.folder.name, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        openssl(*new, "-x509", "-days", "2", "-subj", "/CN=site", "-keyout", "ca.key", "-out", "ca.pem")
        self.file("names", "subjectAltName=DNS:localhost,IP:127.0.0.1")
        for name in ("router", "robot1", "base"):
            openssl(*new, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
            signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names")
            openssl("x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.pem")
        self.endpoint = f"tls/localhost:{self.port}"
        messages = ["put", "delete", "declare_subscriber", "declare_queryable", "query", "reply"]
        messages += ["liveliness_token", "declare_liveliness_subscriber", "liveliness_query"]
        allow = {"permission": "allow", "flows": ["ingress", "egress"], "messages": messages}
        rules = {
            "enabled": True,
            "default_permission": "deny",
            "rules": [
                # A chunk that begins with @ is matched by no pattern: name it.
                {"id": "robot1", **allow, "key_exprs": ["0/robot1/**", "0/robot1/**/@adv/**", "@ros2_lv/0/**"]},
                {"id": "base", **allow, "key_exprs": ["**", "**/@adv/**", "@ros2_lv/**"]},
            ],
            "subjects": [{"id": name, "cert_common_names": [name]} for name in ("robot1", "base")],
            "policies": [{"rules": [name], "subjects": [name]} for name in ("robot1", "base")],
        }
        path = lambda name: str(Path(self.folder.name) / name)
        tls = {
            "root_ca_certificate": path("ca.pem"),
            "listen_certificate": path("router.pem"),
            "listen_private_key": path("router.key"),
            "enable_mtls": True,
        }
        more = [f"transport/link/tls={json.dumps(tls)}", f"access_control={json.dumps(rules)}"]
        router = self.start([sys.executable, str(HERE / "router.py"), self.endpoint, *more])
        router.wait_for("ready")
        return router

    def client(self, name: str, certificate: bool = True) -> str:
        path = lambda name: str(Path(self.folder.name) / name)
        tls = {"root_ca_certificate": path("ca.pem")}
        if certificate:
            tls |= {"enable_mtls": True, "connect_certificate": path(f"{name}.pem"), "connect_private_key": path(f"{name}.key")}
        config = {
            "mode": "client",
            "connect": {"endpoints": [self.endpoint], "timeout_ms": -1, "exit_on_failure": False},
            "scouting": {"multicast": {"enabled": False}},
            "transport": {"link": {"tls": tls}},
            "timestamping": {"enabled": True},
        }
        return self.file(f"{name}{certificate}.json5", json.dumps(config))

    def robot(self, config: str) -> Process:
        rules = "[{name: '/robot1/*', direction: both, bus: '/*'}, {name: '/robot2/*', direction: to_ros, bus: '/others/*'}]"
        text = f"wire: zenoh\ndomain: 0\nzenoh: {{config: '{config}'}}\ntopics: {rules}\n"
        return self.ropewalk("ros2", self.file(f"robot{len(self.processes)}.yaml", text), "--json", "--every", "0.2")

    def test_a_robot_has_its_own_names_and_no_others(self) -> None:
        self.robot(self.client("robot1"))
        own = {"ZENOH_SESSION_CONFIG_URI": self.client("base")}
        ears = [self.peer("pyzeros", "hear", f"/{robot}/words", **own) for robot in ("robot1", "robot2")]
        self.say("/others/words", 200, "--rate", "50", "--count", "200", "--wait", "0")
        self.say("/words", 20, "--rate", "50", "--count", "20", "--wait-matching-subscriptions", "1")
        self.assertEqual(self.heard(ears[0], 20, 3), [f"bus {i}" for i in range(20)])
        self.assertEqual([line for line in ears[1].printed if line.startswith("heard")], [])
        talk = self.peer("pyzeros", "talk", "/robot1/orders", **own)
        echo = self.echo("/orders")
        talk.wait_for("sent")
        echo.wait_for("pyzeros", 20)

    def test_a_host_without_a_certificate_is_not_let_in(self) -> None:
        robot = self.robot(self.client("robot1", certificate=False))
        end = time.monotonic() + 30
        while not (problems := self.status(robot)["problems"]) and time.monotonic() < end:
            pass
        self.assertIn(self.endpoint, problems["the domain"])


class Circles(Bridged):
    def other_host(self) -> dict[str, str]:
        """Returns the environment of a host with a bus of its own."""
        folder = tempfile.TemporaryDirectory(prefix="rwz")
        self.addCleanup(folder.cleanup)
        return {"ROPEWALK_RUNTIME_DIR": folder.name}

    def test_two_bridges_bring_nothing_back(self) -> None:
        """Two hosts, each with a bus and a bridge, and a node: no bridge brings messages of the other one onto its bus."""
        self.bridge()
        other = self.other_host()
        self.bridge(**other)
        here = self.echo("/chatter")
        there = self.echo("/chatter", **other)
        hear = self.peer("sdk", "hear", "/chatter")
        talk = self.peer("pyzeros", "talk", "/chatter")
        talk.wait_for("sent")
        self.say("/chatter", 20, "--rate", "50", "--count", "20", "--wait-matching-subscriptions", "2")
        self.heard(hear, 40)
        time.sleep(1)
        words, more = [f"pyzeros {i}" for i in range(20)], [f"bus {i}" for i in range(20)]
        self.assertEqual(sorted(here.printed), sorted(words + more))
        self.assertEqual(there.printed, words)
        self.assertEqual(sorted(self.heard(hear, 40)), sorted(words + more))

    def test_bridges_that_carry_from_bridges_connect_a_robot_and_its_operators(self) -> None:
        base = self.other_host()
        self.bridge(text="wire: zenoh\nfrom_bridges: true\ntopics: [{name: '/robot1/*', direction: both, bus: '/*'}]")
        self.bridge(text="wire: zenoh\nfrom_bridges: true\ntopics: [{name: '/*', direction: both}]", **base)
        at_base = self.echo("/robot1/words", **base)
        at_robot = self.echo("/orders")
        how = ("--rate", "50", "--count", "20", "--wait-matching-subscriptions", "1")
        self.say("/words", 20, *how)
        self.say("/robot1/orders", 20, *how, **base)
        for ear in (at_base, at_robot):
            ear.wait_for("bus", 20)
        time.sleep(1)
        for ear in (at_base, at_robot):
            self.assertEqual(ear.printed, [f"bus {i}" for i in range(20)])


if __name__ == "__main__":
    unittest.main()
