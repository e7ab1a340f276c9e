//! Filters: which messages of a topic cross.

use crate::kit::{
    Domain, LONG, Peer, Robot, all_said, cdr, kept, reliable, said_in, schema, string, text, until,
};
use ros2::{Config, Direction, TfRule, TopicRule};
use std::time::Duration;

/// The frames of transforms in CDR.
fn frames(bytes: &[u8]) -> Vec<String> {
    let value = schema("tf2_msgs/TFMessage")
        .decode_cdr(bytes)
        .expect("transforms");
    let schema::Value::List(list) = value.get("transforms").expect("transforms") else {
        panic!("no list");
    };
    let name = |t: &schema::Value| {
        let frame = t.get("child_frame_id").expect("its frame");
        frame.as_str().expect("a text").to_owned()
    };
    list.iter().map(name).collect()
}

#[test]
fn only_the_frames_of_a_rule_cross_both_ways() {
    let domain = Domain::new();
    let rule = |name: &str, direction| {
        let mut rule = TopicRule::new(name, direction);
        rule.tf = Some(TfRule {
            frames: Some(vec!["odom".into(), "arm_*".into()]),
            ..TfRule::default()
        });
        rule
    };
    let config = Config::default()
        .with_topic(rule("/tf", Direction::ToBus))
        .with_topic(rule("/tf_static", Direction::ToBus))
        .with_topic(rule("/far/tf", Direction::ToRos));
    let robot = Robot::new(&domain, config);
    let peer = Peer::new(&domain);
    let tf = schema("tf2_msgs/TFMessage");
    let all = cdr(
        &tf,
        "transforms: [{child_frame_id: odom}, {child_frame_id: laser}, {child_frame_id: arm_1}]",
    );
    let none = cdr(&tf, "transforms: [{child_frame_id: laser}]");
    for (name, qos) in [("/tf", reliable()), ("/tf_static", kept())] {
        let writer = peer.publisher(&format!("rt{name}"), &tf, qos);
        let subscriber = robot.node.dynamic_subscriber(name, &tf).expect("a subscriber");
        peer.connected(writer, 1);
        until("the bridge's publisher is connected", || {
            (!subscriber.stats().publishers.is_empty()).then_some(())
        });
        peer.write(writer, none.clone());
        peer.write(writer, all.clone());
        let message = subscriber.take_timeout(LONG).expect("a bus").expect("a message");
        assert_eq!(frames(&message.cdr().expect("CDR")), ["odom", "arm_1"]);
        assert_eq!(robot.status().to_bus[name].filtered, 1);
    }
    let publisher = robot.node.dynamic_publisher("/far/tf", &tf).expect("a publisher");
    let reader = peer.subscriber("rt/far/tf", &tf, reliable());
    peer.connected(reader, 1);
    assert!(publisher.wait_for_subscribers(1, LONG));
    publisher.publish_cdr(&none).expect("a message");
    publisher.publish_cdr(&all).expect("a message");
    assert_eq!(frames(&peer.next(reader).payload), ["odom", "arm_1"]);
}

#[test]
fn the_log_crosses_from_its_level_on() {
    let domain = Domain::new();
    let mut rule = TopicRule::new("/rosout", Direction::ToBus);
    // A warning.
    rule.level = Some(4);
    let robot = Robot::new(&domain, Config::default().with_topic(rule));
    let peer = Peer::new(&domain);
    let log = schema("rcl_interfaces/Log");
    let writer = peer.publisher("rt/rosout", &log, kept());
    let subscriber = robot
        .node
        .dynamic_subscriber("/rosout", &log)
        .expect("a subscriber");
    peer.connected(writer, 1);
    for level in [10, 20, 30, 40, 50] {
        peer.write(
            writer,
            cdr(&log, &format!("{{level: {level}, name: talker, msg: x}}")),
        );
    }
    for level in [30, 40, 50] {
        let message = subscriber.take_timeout(LONG).expect("a bus").expect("a message");
        let value = message.value().expect("a value");
        assert_eq!(value.get("level").expect("a level").as_integer(), Some(level));
    }
    assert_eq!(robot.status().to_bus["/rosout"].filtered, 2);
}

#[test]
fn a_filter_of_another_type_is_a_problem_of_its_topic() {
    let domain = Domain::new();
    let mut rule = TopicRule::new("/a", Direction::ToBus);
    rule.level = Some(4);
    let robot = Robot::new(&domain, Config::default().with_topic(rule));
    let peer = Peer::new(&domain);
    peer.publisher("rt/a", &string(), reliable());
    robot.problem("/a", &["`level`", "std_msgs/String", "leave `level` out"]);
}

#[test]
fn messages_beyond_a_rate_do_not_cross() {
    let domain = Domain::new();
    let rule = |name: &str, direction| {
        let mut rule = TopicRule::new(name, direction);
        rule.rate_limit = Some(5.0);
        rule
    };
    let config = Config::default()
        .with_topic(rule("/in", Direction::ToBus))
        .with_topic(rule("/out", Direction::ToRos));
    let robot = Robot::new(&domain, config);
    let peer = Peer::new(&domain);
    let writer = peer.publisher("rt/in", &string(), reliable());
    let options = bus::SubscriberOptions::default().with_depth(128);
    let subscriber = robot
        .node
        .dynamic_subscriber_with("/in", &string(), options)
        .expect("a subscriber");
    peer.connected(writer, 1);
    let publisher = robot
        .node
        .dynamic_publisher("/out", &string())
        .expect("a publisher");
    let reader = peer.subscriber("rt/out", &string(), reliable());
    peer.connected(reader, 1);
    assert!(publisher.wait_for_subscribers(1, LONG));
    let begun = std::time::Instant::now();
    for n in 0..100 {
        peer.write(writer, text(&n.to_string()));
        publisher.publish_cdr(&text(&n.to_string())).expect("a message");
        std::thread::sleep(Duration::from_millis(10));
    }
    // A message half a period early is not too soon.
    let most = begun.elapsed().as_secs_f64() * 5.0 + 2.0;
    let got = [all_said(&subscriber).len(), peer.all(reader).len()];
    for n in got {
        assert!((4..=most as usize).contains(&n), "{got:?} of at most {most}");
    }
    let status = robot.status();
    for (flow, got) in [(&status.to_bus["/in"], got[0]), (&status.to_ros["/out"], got[1])] {
        assert_eq!((flow.messages, flow.messages + flow.filtered), (got as u64, 100));
    }
}

#[test]
fn links_read_a_priority_in_the_definition() {
    let domain = Domain::new();
    let mut rule = TopicRule::new("/odom", Direction::ToBus);
    rule.priority = Some(100);
    let robot = Robot::new(&domain, Config::default().with_topic(rule));
    let peer = Peer::new(&domain);
    peer.publisher("rt/odom", &schema("nav_msgs/Odometry"), reliable());
    let definition = until("the topic on the bus", || {
        let topics = robot.node.topics().expect("a bus");
        let topic = topics.into_iter().find(|t| t.topic.topic == "/odom")?;
        Some(topic.topic.definition)
    });
    assert_eq!(definition.lines().next(), Some("# priority: 100"));
    let subscriber = robot
        .node
        .dynamic_subscriber("/odom", &schema("nav_msgs/Odometry"));
    let subscriber = subscriber.expect("the type is the same");
    assert!(subscriber.wait_for_publishers(1, LONG));
}

#[test]
fn messages_longer_than_their_rule_says_do_not_cross() {
    let domain = Domain::new();
    let mut rule = TopicRule::new("/a", Direction::ToBus);
    rule.max_message = Some(2_000);
    let robot = Robot::new(&domain, Config::default().with_topic(rule));
    let peer = Peer::new(&domain);
    let writer = peer.publisher("rt/a", &string(), reliable());
    let subscriber = robot
        .node
        .dynamic_subscriber("/a", &string())
        .expect("a subscriber");
    peer.connected(writer, 1);
    peer.write(writer, text(&"x".repeat(3_000)));
    peer.write(writer, text("short"));
    let message = subscriber.take_timeout(LONG).expect("a bus").expect("a message");
    assert_eq!(said_in(&message.cdr().expect("CDR")), "short");
    robot.problem("/a", &["bytes", "2000", "max_message"]);
    assert_eq!(robot.status().to_bus["/a"].failed, 1);
}
