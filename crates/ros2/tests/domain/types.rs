//! Types whose definition differs here, or is missing.

use crate::kit::{Domain, LONG, Peer, Robot, cdr, kept, node, reliable, said, string, text};
use ros2::{Config, Direction, TopicRule};
use schema::{Flavour, Registry, Schema};

fn own(name: &str, text: &str) -> Schema {
    let mut registry = Registry::new(Flavour::Ros2);
    registry.add_message(name, text).expect("a definition");
    registry.schema(name).expect("a schema")
}

fn all() -> Config {
    Config::default().with_topic(TopicRule::new("/*", Direction::ToBus))
}

/// Checks that messages published there arrive here: the bridge goes on.
fn goes_on(robot: &Robot, peer: &Peer, topic: &str) {
    let writer = peer.publisher(&format!("rt{topic}"), &string(), kept());
    peer.write(writer, text("on"));
    let subscriber = robot
        .node
        .dynamic_subscriber(topic, &string())
        .expect("a subscriber");
    let message = subscriber.take_timeout(LONG).expect("a bus").expect("a message");
    assert_eq!(said(&message), "on");
}

#[test]
fn a_differing_definition_is_reported_with_both_hashes_and_other_topics_cross() {
    let domain = Domain::new();
    let robot = Robot::new(&domain, all());
    let peer = Peer::new(&domain);
    let other = own("std_msgs/String", "string data\nint32 more\n");
    peer.publisher("rt/other", &other, reliable());
    robot.problem(
        "/other",
        &[
            "std_msgs/msg/String",
            &other.rihs01(),
            &string().rihs01(),
            "definitions",
        ],
    );
    goes_on(&robot, &peer, "/good");
    // A second publisher of the same topic, with the known definition.
    goes_on(&robot, &peer, "/other");
    robot.problem("/other", &["different", "ignoring"]);
}

#[test]
fn an_unknown_definition_is_reported_until_its_publisher_leaves() {
    let domain = Domain::new();
    let robot = Robot::new(&domain, all());
    let peer = Peer::new(&domain);
    let unknown = own("my_msgs/Unknown", "int32 a\n");
    let writer = peer.publisher("rt/unknown", &unknown, reliable());
    robot.problem("/unknown", &["my_msgs/msg/Unknown", "definitions"]);
    goes_on(&robot, &peer, "/good");
    peer.node.remove(writer);
    crate::kit::until("no problem any more", || {
        robot.status().problems.is_empty().then_some(())
    });
}

#[test]
fn a_definition_is_found_at_an_endpoint_of_the_bus() {
    let domain = Domain::new();
    let robot = Robot::new(&domain, all());
    let peer = Peer::new(&domain);
    let unknown = own("my_msgs/Unknown", "int32 a\n");
    let writer = peer.publisher("rt/unknown", &unknown, kept());
    peer.write(writer, cdr(&unknown, "a: 7"));
    robot.problem("/unknown", &["my_msgs/msg/Unknown"]);
    let subscriber = node(robot.folder.path(), "knows")
        .dynamic_subscriber("/unknown", &unknown)
        .expect("a subscriber");
    let message = subscriber.take_timeout(LONG).expect("a bus").expect("a message");
    assert_eq!(
        message
            .value()
            .expect("a value")
            .get("a")
            .expect("a")
            .as_integer(),
        Some(7)
    );
    assert!(
        robot.status().problems.is_empty(),
        "{:?}",
        robot.status().problems
    );
}

#[test]
fn a_type_other_than_the_rules_is_reported() {
    let domain = Domain::new();
    let mut rule = TopicRule::new("/a", Direction::Both);
    rule.kind = Some("std_msgs/Int32".into());
    let robot = Robot::new(&domain, Config::default().with_topic(rule));
    let peer = Peer::new(&domain);
    let writer = peer.publisher("rt/a", &string(), reliable());
    robot.problem("/a", &["std_msgs/msg/String", "std_msgs/Int32", "type"]);
    peer.node.remove(writer);
    crate::kit::until("no problem any more", || {
        robot.status().problems.is_empty().then_some(())
    });
    let _publisher = robot
        .node
        .dynamic_publisher("/a", &string())
        .expect("a publisher");
    robot.problem("/a", &["std_msgs/String", "std_msgs/Int32", "type"]);
}

#[test]
fn definitions_are_found_in_the_folders_of_the_configuration() {
    let domain = Domain::new();
    let folder = tempfile::tempdir().expect("a folder");
    let msg = folder.path().join("my_msgs/msg");
    std::fs::create_dir_all(&msg).expect("a folder");
    std::fs::write(msg.join("Own.msg"), "int32 a\n").expect("a file");
    let mut config = all();
    config.definitions = vec![folder.path().to_owned()];
    let robot = Robot::new(&domain, config);
    let peer = Peer::new(&domain);
    let known = own("my_msgs/Own", "int32 a\n");
    let writer = peer.publisher("rt/own", &known, kept());
    peer.write(writer, cdr(&known, "a: 7"));
    let subscriber = robot
        .node
        .dynamic_subscriber("/own", &known)
        .expect("a subscriber");
    let message = subscriber.take_timeout(LONG).expect("a bus").expect("a message");
    assert_eq!(
        message
            .value()
            .expect("a value")
            .get("a")
            .expect("a")
            .as_integer(),
        Some(7)
    );
}

#[test]
fn malformed_messages_are_dropped_alone() {
    let domain = Domain::new();
    let robot = Robot::new(&domain, all());
    let peer = Peer::new(&domain);
    let writer = peer.publisher("rt/a", &string(), kept());
    for junk in [
        &[][..],
        &[0, 1, 0],
        &[0, 1, 0, 0, 255, 255, 255, 255, 1],
        &[9; 64],
    ] {
        peer.write(writer, junk.to_vec());
    }
    peer.write(writer, text("good"));
    let subscriber = robot
        .node
        .dynamic_subscriber("/a", &string())
        .expect("a subscriber");
    let message = subscriber.take_timeout(LONG).expect("a bus").expect("a message");
    assert_eq!(said(&message), "good");
    robot.problem("/a", &["std_msgs"]);
    assert_eq!(robot.status().to_bus["/a"].failed, 4);
}
