//! Messages kept for late joiners.

use crate::kit::{
    Domain, LONG, Peer, Robot, all_said, kept, node, reliable, said, said_in, string, text, until,
};
use bus::{PublisherOptions, SubscriberOptions};
use ros2::{Config, Direction, TopicRule};
use std::path::Path;

/// Returns what a subscriber that joins now receives: `count` messages, and any that follow.
fn subscribed(folder: &Path, topic: &str, count: usize) -> Vec<String> {
    let options = SubscriberOptions::default().with_depth(64).with_history(64);
    let subscriber = node(folder, "late").dynamic_subscriber_with(topic, &string(), options);
    let subscriber = subscriber.expect("a subscriber");
    assert!(subscriber.wait_for_publishers(1, LONG));
    let mut out: Vec<String> = (0..count)
        .map(|_| said(&subscriber.take_timeout(LONG).expect("a bus").expect("a message")))
        .collect();
    out.extend(all_said(&subscriber));
    out
}

fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

#[test]
fn messages_kept_in_the_domain_reach_early_and_late_subscribers_of_the_bus() {
    let domain = Domain::new();
    let peer = Peer::new(&domain);
    let writer = peer.publisher("rt/map", &string(), kept());
    (0..3).for_each(|n| peer.write(writer, text(&n.to_string())));
    let robot = Robot::new(
        &domain,
        Config::default().with_topic(TopicRule::new("/map", Direction::ToBus)),
    );
    let folder = robot.folder.path();
    until("the topic", || {
        robot.status().to_bus.contains_key("/map").then_some(())
    });
    assert_eq!(subscribed(folder, "/map", 3), numbers(0..3));
    assert_eq!(subscribed(folder, "/map", 3), numbers(0..3), "and one after it");
    (3..6).for_each(|n| peer.write(writer, text(&n.to_string())));
    assert_eq!(subscribed(folder, "/map", 6), numbers(0..6));
}

#[test]
fn messages_kept_by_another_publisher_reach_an_existing_subscription() {
    let domain = Domain::new();
    let robot = Robot::new(
        &domain,
        Config::default().with_topic(TopicRule::new("/tf_static", Direction::ToBus)),
    );
    let options = SubscriberOptions::default().with_depth(64).with_history(64);
    let subscriber = robot
        .node
        .dynamic_subscriber_with("/tf_static", &string(), options)
        .expect("a subscriber");
    let mut peers = Vec::new();
    for n in 0..6 {
        let peer = Peer::new(&domain);
        let writer = peer.publisher("rt/tf_static", &string(), kept());
        peer.write(writer, text(&n.to_string()));
        let message = subscriber.take_timeout(LONG).expect("a bus").expect("a message");
        assert_eq!(said(&message), n.to_string());
        peers.push(peer);
    }
}

#[test]
fn messages_kept_on_the_bus_reach_early_and_late_readers_of_the_domain() {
    let domain = Domain::new();
    let robot = Robot::new(
        &domain,
        Config::default().with_topic(TopicRule::new("/map", Direction::ToRos)),
    );
    let mut options = PublisherOptions::default();
    options.history = 3;
    let publisher = robot
        .node
        .dynamic_publisher_with("/map", &string(), options)
        .expect("a publisher");
    for n in 0..5 {
        publisher.publish_cdr(&text(&n.to_string())).expect("a message");
    }
    let joins = |expected: Vec<String>| {
        let peer = Peer::new(&domain);
        let reader = peer.subscriber("rt/map", &string(), kept());
        let got: Vec<String> = [peer.next(reader)]
            .iter()
            .chain(&peer.all(reader))
            .map(|s| said_in(&s.payload))
            .collect();
        assert_eq!(got, expected);
        (peer, reader)
    };
    let early = [joins(numbers(2..5)), joins(numbers(2..5))];
    for n in 5..7 {
        publisher.publish_cdr(&text(&n.to_string())).expect("a message");
        // Before it crossed, a late reader would get older ones.
        for (peer, reader) in &early {
            assert_eq!(said_in(&peer.next(*reader).payload), n.to_string());
        }
    }
    joins(numbers(4..7));
}

#[test]
fn a_rule_says_what_is_kept_where_the_publishers_do_not() {
    let domain = Domain::new();
    let rule = |name: &str, direction, latched| {
        let mut rule = TopicRule::new(name, direction);
        rule.latched = Some(latched);
        rule
    };
    let config = Config::default()
        .with_topic(rule("/kept", Direction::ToBus, true))
        .with_topic(rule("/volatile", Direction::ToBus, false))
        .with_topic(rule("/out", Direction::ToRos, true));
    let robot = Robot::new(&domain, config);
    let folder = robot.folder.path();
    let peer = Peer::new(&domain);
    let writer = peer.publisher("rt/kept", &string(), reliable());
    let first = robot
        .node
        .dynamic_subscriber("/kept", &string())
        .expect("a subscriber");
    peer.connected(writer, 1);
    peer.write(writer, text("kept"));
    assert_eq!(
        said(&first.take_timeout(LONG).expect("a bus").expect("a message")),
        "kept"
    );
    assert_eq!(subscribed(folder, "/kept", 1), ["kept"]);

    let writer = peer.publisher("rt/volatile", &string(), kept());
    let first = robot
        .node
        .dynamic_subscriber("/volatile", &string())
        .expect("a subscriber");
    peer.connected(writer, 1);
    peer.write(writer, text("volatile"));
    assert_eq!(
        said(&first.take_timeout(LONG).expect("a bus").expect("a message")),
        "volatile"
    );
    assert_eq!(subscribed(folder, "/volatile", 0), Vec::<String>::new());

    let publisher = robot
        .node
        .dynamic_publisher("/out", &string())
        .expect("a publisher");
    let reader = peer.subscriber("rt/out", &string(), kept());
    peer.connected(reader, 1);
    assert!(publisher.wait_for_subscribers(1, LONG));
    publisher.publish_cdr(&text("out")).expect("a message");
    assert_eq!(said_in(&peer.next(reader).payload), "out");
    let late = Peer::new(&domain);
    let reader = late.subscriber("rt/out", &string(), kept());
    assert_eq!(said_in(&late.next(reader).payload), "out");
}
