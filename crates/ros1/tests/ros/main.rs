//! The bridge between real ROS nodes (Debian's roscore, rospy and roscpp) and the bus.

mod support;

use ropewalk::{Flavour, PublisherOptions, Registry, Schema, Value};
use sha2::{Digest, Sha256};
use std::time::{Duration, Instant};
use support::{LONG, Peer, Robot, Roscore, has_ros, until};

fn schema(name: &str) -> Schema {
    Registry::new(Flavour::Ros1)
        .schema(name)
        .expect("a standard type")
}

fn text(message: &ropewalk::Message) -> String {
    let value = message.value().expect("a string");
    value
        .get("data")
        .expect("data")
        .as_str()
        .expect("text")
        .to_owned()
}

/// The message as the nodes print it: without the sequence number.
fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(&bytes[4..]);
    hash.iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn talkers_and_listeners_of_rospy_and_roscpp_cross_both_ways() {
    if !has_ros() {
        return;
    }
    let core = Roscore::start();
    let rules =
        "topics: [{name: '/in/*', direction: to_bus}, {name: '/out/*', direction: to_ros, bus: '/far/*'}]";
    let robot = Robot::start(&core, rules);
    let _talkers = [core.py(&["publish", "/in/py"]), core.cpp(&["publish", "/in/cpp"])];
    let string = schema("std_msgs/String");
    for topic in ["/in/py", "/in/cpp"] {
        let subscriber = robot.node.dynamic_subscriber(topic, &string).unwrap();
        let first = subscriber.take_timeout(LONG).unwrap().expect(topic);
        let second = subscriber.take_timeout(LONG).unwrap().expect(topic);
        let number = |m| text(m).strip_prefix("hello ").unwrap().parse::<u32>().unwrap();
        assert_eq!(number(&first) + 1, number(&second), "{topic}");
    }
    let publisher = robot.node.dynamic_publisher("/far/chatter", &string).unwrap();
    let ears = [
        core.py(&["listen", "/out/chatter"]),
        core.cpp(&["listen", "/out/chatter"]),
    ];
    until("both listen", || {
        robot
            .handle
            .status()
            .to_ros
            .get("/out/chatter")
            .is_some_and(|f| f.connected == 2)
    });
    publisher
        .publish_value(&string.value_from_yaml("data: across").unwrap())
        .unwrap();
    for ear in &ears {
        assert_eq!(ear.line(), "heard across");
    }
    // ROS's own tools see the bridge as they should.
    core.tool(
        &["rostopic", "info", "/out/chatter"],
        &["std_msgs/String", "/ropewalk"],
    );
    core.tool(
        &["rosnode", "info", "/ropewalk"],
        &[
            "/out/chatter [std_msgs/String]",
            "/in/py [std_msgs/String]",
            "transport: TCPROS",
        ],
    );
    core.tool(&["rosnode", "ping", "-c", "1", "/ropewalk"], &["xmlrpc reply"]);
}

#[test]
fn images_are_the_same_byte_for_byte_both_ways() {
    if !has_ros() {
        return;
    }
    let core = Roscore::start();
    let rules = "topics: [{name: /camera, direction: to_bus}, {name: /picture, direction: to_ros}]";
    let robot = Robot::start(&core, rules);
    let image = schema("sensor_msgs/Image");
    let subscriber = robot.node.dynamic_subscriber("/camera", &image).unwrap();
    let camera = core.py(&["publish_images", "/camera"]);
    for _ in 0..3 {
        let message = subscriber.take_timeout(LONG).unwrap().expect("an image");
        assert_eq!(
            (message.part_count(), message.part(0).len()),
            (1, 640 * 480 * 3),
            "in place"
        );
        let came = format!("sent {}", digest(&message.ros1().unwrap()));
        // It may have sent some before the subscriber connected.
        while camera.line() != came {}
    }
    let publisher = robot.node.dynamic_publisher("/picture", &image).unwrap();
    let ears = [
        core.py(&["listen_raw", "/picture"]),
        core.cpp(&["listen_images", "/picture"]),
    ];
    until("both listen", || {
        robot
            .handle
            .status()
            .to_ros
            .get("/picture")
            .is_some_and(|f| f.connected == 2)
    });
    let message = subscriber.take_timeout(LONG).unwrap().expect("an image");
    let bytes = message.ros1().unwrap();
    publisher.publish_ros1(&bytes).unwrap();
    assert_eq!(ears[0].line(), format!("heard {}", digest(&bytes)));
    let data = message.part(0).bytes();
    let sum = data
        .iter()
        .fold(0u64, |s, b| s.wrapping_mul(31).wrapping_add((*b).into()));
    assert_eq!(ears[1].line(), format!("heard 640 {} {sum}", data.len()));
}

#[test]
fn latched_messages_reach_late_joiners_both_ways() {
    if !has_ros() {
        return;
    }
    let core = Roscore::start();
    let rules = "topics: [{name: /in, direction: to_bus}, {name: /out, direction: to_ros}]";
    // rospy sends the message twice to a subscriber that connects while it publishes.
    let owner = core.py(&["latch", "/in"]);
    assert_eq!(owner.line(), "published");
    let robot = Robot::start(&core, rules);
    until("it arrives", || {
        robot
            .handle
            .status()
            .to_bus
            .get("/in")
            .is_some_and(|f| f.messages == 1)
    });
    let string = schema("std_msgs/String");
    for _ in 0..2 {
        let late = robot.node.dynamic_subscriber("/in", &string).unwrap();
        let message = late.take_timeout(LONG).unwrap().expect("the earlier message");
        assert!(message.is_history());
        assert_eq!(text(&message), "kept");
    }
    let publisher = robot
        .node
        .dynamic_publisher_with("/out", &string, PublisherOptions::default().with_history(1))
        .unwrap();
    publisher
        .publish_value(&string.value_from_yaml("data: map").unwrap())
        .unwrap();
    until("it is in ROS", || {
        robot
            .handle
            .status()
            .to_ros
            .get("/out")
            .is_some_and(|f| f.messages == 1)
    });
    for _ in 0..2 {
        assert_eq!(core.py(&["listen", "/out"]).line(), "heard map");
    }
}

#[test]
fn services_cross_both_ways() {
    if !has_ros() {
        return;
    }
    let core = Roscore::start();
    let rules =
        "services: [{name: '/ros/*', direction: to_bus}, {name: /bus, direction: to_ros, timeout: 20s}]";
    let robot = Robot::start(&core, rules);
    let kind = Registry::new(Flavour::Ros1).service("std_srvs/SetBool").unwrap();
    let _servers = [core.py(&["serve", "/ros/py"]), core.cpp(&["serve", "/ros/cpp"])];
    let request = |data: bool| kind.request().value_from_yaml(&format!("data: {data}")).unwrap();
    for (name, answer) in [("/ros/py", "done"), ("/ros/cpp", "roscpp")] {
        let client = robot.node.dynamic_client(name, &kind).unwrap();
        assert!(client.wait_for_server(LONG).unwrap(), "{name}");
        let reply = client.call_value(&request(true), LONG).unwrap();
        assert_eq!(reply.get("message").unwrap(), Value::String(answer.into()));
        assert!(client.call_value(&request(false), LONG).is_err());
    }
    let answer = kind
        .response()
        .value_from_yaml("{success: true, message: bus}")
        .unwrap();
    let _server = robot.node.dynamic_service("/bus", &kind, move |request| {
        let data = request
            .value()
            .map_err(|e| e.to_string())?
            .get("data")
            .map_err(|e| e.to_string())?;
        if data == Value::Bool(true) {
            Ok(answer.clone())
        } else {
            Err("not so".into())
        }
    });
    let caller = core.py(&["call", "/bus"]);
    assert_eq!(caller.line(), "answer True bus");
    let error = caller.line();
    assert!(error.starts_with("error") && error.contains("not so"), "{error}");
    let caller = core.cpp(&["call", "/bus"]);
    assert_eq!(
        (caller.line(), caller.line()),
        ("answer bus".into(), "error".into())
    );
    core.tool(
        &["rosservice", "info", "/bus"],
        &["Node: /ropewalk", "Type: std_srvs/SetBool"],
    );
    core.tool(&["rosservice", "call", "/bus", "true"], &["message: \"bus\""]);
}

#[test]
fn a_restarted_roscore_is_picked_up() {
    if !has_ros() {
        return;
    }
    let mut core = Roscore::start();
    let rules = "topics: [{name: /in, direction: to_bus}, {name: /out, direction: to_ros}]";
    let robot = Robot::start(&core, rules);
    let string = schema("std_msgs/String");
    let subscriber = robot.node.dynamic_subscriber("/in", &string).unwrap();
    let publisher = robot.node.dynamic_publisher("/out", &string).unwrap();
    let talker = core.py(&["publish", "/in"]);
    assert!(subscriber.take_timeout(LONG).unwrap().is_some());
    core.end();
    until("it is reported", || !robot.handle.status().master_reached);
    while subscriber.take().unwrap().is_some() {}
    assert!(
        subscriber.take_timeout(LONG).unwrap().is_some(),
        "what is connected goes on"
    );
    drop(talker);
    core.again();
    let ear = core.py(&["listen", "/out"]);
    until("a new listener is served", || {
        publisher
            .publish_value(&string.value_from_yaml("data: again").unwrap())
            .unwrap();
        ear.soon(Duration::from_millis(100))
            .is_some_and(|line| line == "heard again")
    });
    while subscriber.take().unwrap().is_some() {}
    let _talker = core.py(&["publish", "/in"]);
    assert!(
        subscriber.take_timeout(LONG).unwrap().is_some(),
        "a new talker's message arrives"
    );
    assert!(
        robot.handle.status().problems.is_empty(),
        "{:?}",
        robot.handle.status().problems
    );
}

/// Returns when each node receives its first message, counted from `since`.
fn first_words(nodes: &[&Peer], since: Instant) -> Vec<Duration> {
    let mut words = vec![None; nodes.len()];
    until("all of them hear something", || {
        for (node, word) in nodes.iter().zip(&mut words) {
            if word.is_none() && node.soon(Duration::from_millis(1)).is_some() {
                *word = Some(since.elapsed());
            }
        }
        words.iter().all(Option::is_some)
    });
    words.into_iter().flatten().collect()
}

fn print_times(side: &str, times: &[Vec<Duration>]) {
    let median = |i: usize| {
        let mut all: Vec<_> = times.iter().map(|t| t[i]).collect();
        all.sort();
        all[all.len() / 2].as_millis()
    };
    let worst = times.iter().map(|t| t[0]).max().unwrap_or_default().as_millis();
    let (across, within) = (median(0), median(1));
    let n = times.len();
    println!(
        "the {side} roscore, killed {n} times: messages of nodes started when it answers again cross after {across} ms \
         (median; at most {worst} ms), and after {within} ms (median) between two such nodes without a bridge"
    );
}

// A robot and an operator's computer, each with a roscore and a bridge; one bus is between the bridges. `--
// --nocapture` shows the times.
#[test]
fn how_soon_a_restarted_roscore_is_picked_up() {
    if !has_ros() {
        return;
    }
    const RESTARTS: usize = 5;
    let (mut source, mut sink) = (Roscore::start(), Roscore::start());
    let robot = Robot::start(&source, "topics: [{name: '/in/*', direction: to_bus}]");
    let _desk = robot.beside(&sink, "topics: [{name: '/in/*', direction: to_ros}]");
    // Nodes that stay do not register again, but existing connections go on.
    let _stays = source.cpp(&["publish", "/in/stays"]);
    let listens_on = sink.cpp(&["listen", "/in/stays"]);
    let goes_on = || {
        while listens_on.soon(Duration::ZERO).is_some() {}
        listens_on.line()
    };
    goes_on();

    let mut times = Vec::new();
    for _ in 0..RESTARTS {
        let ear = sink.cpp(&["listen", "/in/new"]);
        let talker = source.cpp(&["publish", "/in/new"]);
        ear.line();
        drop(talker);
        source.kill();
        goes_on();
        source.again();
        let back = Instant::now();
        while ear.soon(Duration::ZERO).is_some() {}
        let _talker = source.cpp(&["publish", "/in/new"]);
        let without = source.cpp(&["listen", "/in/new"]);
        times.push(first_words(&[&ear, &without], back));
        goes_on();
    }
    print_times("source's", &times);

    let mut times = Vec::new();
    let _talker = source.cpp(&["publish", "/in/new"]);
    for _ in 0..RESTARTS {
        sink.cpp(&["listen", "/in/new"]).line();
        sink.kill();
        goes_on();
        sink.again();
        let back = Instant::now();
        let ear = sink.cpp(&["listen", "/in/new"]);
        let (_beside, without) = (
            sink.cpp(&["publish", "/beside"]),
            sink.cpp(&["listen", "/beside"]),
        );
        times.push(first_words(&[&ear, &without], back));
        goes_on();
    }
    print_times("sink's", &times);
}

#[test]
fn a_node_of_another_definition_is_refused_by_name() {
    if !has_ros() {
        return;
    }
    let core = Roscore::start();
    let robot = Robot::start(&core, "topics: [{name: /out, direction: to_ros}]");
    let string = schema("std_msgs/String");
    let publisher = robot.node.dynamic_publisher("/out", &string).unwrap();
    let (wrong, right) = (core.cpp(&["listen_wrong", "/out"]), core.cpp(&["listen", "/out"]));
    until("it is reported", || {
        let problems = robot.handle.status().problems;
        problems.values().any(|p| {
            p.contains("/cpp_listen_wrong") && p.contains("0123456789abcdef") && p.contains("String.msg")
        })
    });
    until("the right one is served", || {
        publisher
            .publish_value(&string.value_from_yaml("data: x").unwrap())
            .unwrap();
        right.soon(Duration::from_millis(100)).is_some()
    });
    assert_eq!(wrong.soon(Duration::ZERO), None);
}

#[test]
fn the_log_of_all_nodes_is_one_topic_from_its_level_on() {
    if !has_ros() {
        return;
    }
    let core = Roscore::start();
    let robot = Robot::start(
        &core,
        "topics: [{name: /rosout, direction: to_bus, level: warn, priority: 3}]",
    );
    let _nodes = [core.py(&["log", "/x"]), core.py(&["log", "/x"])];
    // Queried before subscribers that know the type without the priority connect.
    until("the log is on the bus", || {
        let topics = robot.node.topics().unwrap();
        let log = topics.iter().find(|t| t.topic.topic == "/rosout");
        log.is_some_and(|t| t.topic.definition.starts_with("# priority: 3\n"))
    });
    let subscriber = robot
        .node
        .dynamic_subscriber("/rosout", &schema("rosgraph_msgs/Log"))
        .unwrap();
    let mut names = std::collections::BTreeSet::new();
    while names.len() < 2 {
        let message = subscriber.take_timeout(LONG).unwrap().expect("a warning");
        let value = message.value().unwrap();
        assert_eq!(value.get("msg").unwrap().as_str(), Some("a warning"));
        names.insert(value.get("name").unwrap().as_str().unwrap().to_owned());
    }
    assert_eq!(subscriber.bus().publisher_count(), 1);
    // The bridge may have appeared between a node's minor message and its warning.
    until("minor messages are filtered out", || {
        robot.handle.status().to_bus["/rosout"].filtered > 0
    });
}

/// Starts both bridges of an import on one bus: a link carries the names that they share from one host's bus to the
/// other's.
fn imported(made: &ros1::import::Imported, names: [&str; 2], cores: [&Roscore; 2]) -> (Robot, Robot) {
    let [one, two] = names.map(|name| {
        let found = made.hosts.iter().find(|h| h.name == name);
        found.unwrap_or_else(|| panic!("no {name}")).bridge.as_str()
    });
    let first = Robot::start(cores[0], one);
    let second = first.beside(cores[1], two);
    (first, second)
}

#[test]
fn nodes_hear_after_an_import_what_pound_and_nimbro_brought_them() {
    if !has_ros() {
        return;
    }
    let (one, two) = (Roscore::start(), Roscore::start());
    let header = "TOPIC(std_msgs::String, \"chatter\", 0, \"1\", 50, 0, 1000)\n\
                  TOPIC(std_msgs::String, \"/abs/word\", 1, \"0\", 50, 0, 1000)\n\
                  SERVICE(std_srvs::SetBool, \"/lights\", 0, 100, 1000)\n\
                  SERVICE(std_srvs::SetBool, \"dock\", 1, 100, 1000)\n";
    let made = ros1::import::pound(("config.h", header), None).expect("reads");
    {
        let _bridges = imported(&made, ["node-0", "node-1"], [&one, &two]);
        let _nodes = [
            one.py(&["publish", "/R0/chatter"]),
            two.cpp(&["publish", "/abs/word"]),
            one.py(&["serve", "/lights"]),
            two.py(&["serve", "/R1/dock"]),
        ];
        for (core, name) in [(&two, "/R1/rx/R0/chatter"), (&one, "/R0/rx/R1/abs/word")] {
            let heard = core.py(&["listen", name]).line();
            assert!(heard.starts_with("heard hello "), "{name}: {heard}");
        }
        for (core, name) in [(&two, "/R1/REM/R0/lights"), (&one, "/R0/REM/R1/dock")] {
            assert_eq!(core.py(&["call", name]).line(), "answer True done", "{name}");
        }
    }
    let case = |name: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/import/cases/");
        std::fs::read_to_string(format!("{folder}{name}")).expect(name)
    };
    let files = ros1::import::Nimbro {
        there: ("two_way_1.launch", &case("two_way_1.launch")),
        back: Some(("two_way_2.launch", &case("two_way_2.launch"))),
    };
    let made = ros1::import::nimbro(files, &mut |_, _| Err("none".into())).expect("reads");
    let _bridges = imported(&made, ["robot", "base"], [&one, &two]);
    // Each side has its own name for the topic, and both publish and subscribe.
    let _talkers = [one.py(&["publish", "/chat"]), two.py(&["latch", "/recv/chat"])];
    let heard = two.py(&["listen", "/recv/chat"]);
    let back = one.py(&["listen", "/chat"]);
    until("the base hears the robot", || {
        heard.line().starts_with("heard hello ")
    });
    until("the robot hears the base", || back.line() == "heard kept");
}
