//! Messages in both directions.

use crate::kit::{
    Domain, LONG, Peer, Robot, all_said, best_effort, cdr, kept, node, reliable, said, said_in, schema,
    string, text, until,
};
use bus::Stamp;
use ros2::{Config, Direction, TopicRule};
use rtps::{Timestamp, WriteOptions};
use stats::Time;
use std::collections::BTreeMap;

/// 2026-11-28, with nanoseconds.
const WRITTEN: u64 = 1_795_900_000_123_456_789;

fn topics(rules: &[(&str, Direction)]) -> Config {
    let rules = rules.iter();
    rules.fold(Config::default(), |c, (name, direction)| {
        c.with_topic(TopicRule::new(*name, *direction))
    })
}

/// An image with `n` bytes of data.
fn picture(n: usize) -> Vec<u8> {
    let empty = cdr(&schema("sensor_msgs/Image"), "{encoding: mono8, data: []}");
    // The length of the data precedes it, at the end.
    let head = &empty[..empty.len() - 4];
    [head, &(n as u32).to_le_bytes(), &vec![7; n]].concat()
}

#[test]
fn messages_come_onto_the_bus_with_their_bytes_and_stamps() {
    let domain = Domain::new();
    let robot = Robot::new(&domain, topics(&[("/image", Direction::ToBus)]));
    let peer = Peer::new(&domain);
    let image = schema("sensor_msgs/Image");
    let writer = peer.publisher("rt/image", &image, reliable());
    let subscriber = robot
        .node
        .dynamic_subscriber("/image", &image)
        .expect("a subscriber");
    peer.connected(writer, 1);
    for n in [0, 1, 1_000, 1_000_000] {
        let bytes = picture(n);
        let options = WriteOptions {
            source_timestamp: Some(Timestamp(WRITTEN as i64)),
            ..WriteOptions::default()
        };
        peer.node.write(writer, bytes.clone(), options).expect("a sample");
        let message = subscriber.take_timeout(LONG).expect("a bus").expect("a message");
        assert!(message.cdr().expect("CDR") == bytes, "{n}");
        // An RTPS timestamp has 32 bits for the fraction of a second.
        assert!(message.stamp().as_nanos().abs_diff(WRITTEN) < 2, "{n}");
    }
    let flow = &robot.status().to_bus["/image"];
    assert_eq!((flow.messages, flow.failed, flow.connected), (4, 0, 1));
}

#[test]
fn messages_come_into_the_domain_with_their_bytes_and_stamps() {
    let domain = Domain::new();
    let robot = Robot::new(&domain, topics(&[("/image", Direction::ToRos)]));
    let peer = Peer::new(&domain);
    let image = schema("sensor_msgs/Image");
    let publisher = robot
        .node
        .dynamic_publisher("/image", &image)
        .expect("a publisher");
    let reader = peer.subscriber("rt/image", &image, reliable());
    assert!(publisher.wait_for_subscribers(1, LONG));
    peer.connected(reader, 1);
    for n in [0, 1, 1_000, 1_000_000] {
        let bytes = picture(n);
        let stamp = Stamp {
            time: Some(Time(WRITTEN)),
            origin: None,
        };
        publisher.publish_cdr_stamped(&bytes, stamp).expect("a message");
        let sample = peer.next(reader);
        assert!(
            sample.payload.starts_with(&bytes) && sample.payload.len() < bytes.len() + 4,
            "{n}"
        );
        let stamp = sample.source_timestamp.expect("a stamp").0 as u64;
        assert!(stamp.abs_diff(WRITTEN) < 2, "{n}");
    }
    let flow = &robot.status().to_ros["/image"];
    assert_eq!((flow.messages, flow.failed, flow.connected), (4, 0, 1));
}

#[test]
fn of_publishers_with_different_qualities_each_message_comes_once() {
    let domain = Domain::new();
    let robot = Robot::new(&domain, topics(&[("/mixed", Direction::ToBus)]));
    let peers: Vec<_> = [reliable(), best_effort(), kept(), reliable()]
        .into_iter()
        .map(|qos| {
            let peer = Peer::new(&domain);
            let writer = peer.publisher("rt/mixed", &string(), qos);
            (peer, writer)
        })
        .collect();
    let options = bus::SubscriberOptions::default()
        .with_depth(1024)
        .with_history(16);
    let subscriber = robot
        .node
        .dynamic_subscriber_with("/mixed", &string(), options)
        .expect("a subscriber");
    until("all publishers on the bus", || {
        let known = subscriber.bus().stats().publishers.len();
        (known == peers.len()).then_some(())
    });
    for (peer, writer) in &peers {
        until("its subscription", || {
            (!peer.node.matched(*writer).is_empty()).then_some(())
        });
    }
    for n in 0..20 {
        for (i, (peer, writer)) in peers.iter().enumerate() {
            peer.write(*writer, text(&format!("{i}: {n}")));
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for said in all_said(&subscriber) {
        *count.entry(said).or_default() += 1;
    }
    assert!(count.values().all(|n| *n == 1), "{count:?}");
    assert_eq!(count.len(), 80);
}

#[test]
fn readers_of_different_qualities_each_get_each_message_once() {
    let domain = Domain::new();
    let robot = Robot::new(&domain, topics(&[("/mixed", Direction::ToRos)]));
    let peer = Peer::new(&domain);
    let publishers: Vec<_> = [bus::Reliability::Reliable, bus::Reliability::BestEffort]
        .map(|reliability| {
            let mut options = bus::PublisherOptions::default();
            options.reliability = Some(reliability);
            options.depth = 100;
            robot
                .node
                .dynamic_publisher_with("/mixed", &string(), options)
                .expect("a publisher")
        })
        .into();
    let all = peer.subscriber("rt/mixed", &string(), best_effort());
    let sure = peer.subscriber("rt/mixed", &string(), reliable());
    peer.connected(all, 2);
    peer.connected(sure, 1);
    for publisher in &publishers {
        assert!(publisher.wait_for_subscribers(1, LONG));
    }
    for n in 0..20 {
        for (i, publisher) in publishers.iter().enumerate() {
            publisher
                .publish_cdr(&text(&format!("{i}: {n}")))
                .expect("a message");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let mut got: Vec<String> = peer.all(all).iter().map(|s| said_in(&s.payload)).collect();
    got.sort();
    let mut sent: Vec<String> = (0..40).map(|n| format!("{}: {}", n % 2, n / 2)).collect();
    sent.sort();
    assert_eq!(got, sent);
    let got: Vec<String> = peer.all(sure).iter().map(|s| said_in(&s.payload)).collect();
    let sent: Vec<String> = (0..20).map(|n| format!("0: {n}")).collect();
    assert_eq!(
        got, sent,
        "a best-effort publisher does not match a reliable subscriber"
    );
}

#[test]
fn a_topic_of_both_directions_returns_nothing() {
    let domain = Domain::new();
    let robot = Robot::new(&domain, topics(&[("/both", Direction::Both)]));
    let peer = Peer::new(&domain);
    let writer = peer.publisher("rt/both", &string(), reliable());
    let reader = peer.subscriber("rt/both", &string(), reliable());
    let publisher = robot
        .node
        .dynamic_publisher("/both", &string())
        .expect("a publisher");
    let subscriber = node(robot.folder.path(), "ear")
        .dynamic_subscriber("/both", &string())
        .expect("a subscriber");
    peer.connected(writer, 1);
    peer.connected(reader, 1);
    assert!(publisher.wait_for_subscribers(2, LONG));
    for n in 0..5 {
        peer.write(writer, text(&format!("domain {n}")));
        publisher
            .publish_cdr(&text(&format!("bus {n}")))
            .expect("a message");
    }
    let got: Vec<String> = peer.all(reader).iter().map(|s| said_in(&s.payload)).collect();
    let from_bus: Vec<String> = (0..5).map(|n| format!("bus {n}")).collect();
    assert_eq!(got, from_bus);
    let mut got = all_said(&subscriber);
    got.sort();
    let from_domain = (0..5).map(|n| format!("domain {n}"));
    assert_eq!(got, from_bus.into_iter().chain(from_domain).collect::<Vec<_>>());
}

#[test]
fn names_are_renamed_one_by_one_and_by_pattern() {
    let domain = Domain::new();
    let rule = |name: &str, bus: &str, direction| {
        let mut rule = TopicRule::new(name, direction);
        rule.bus = Some(bus.into());
        rule
    };
    let config = Config::default()
        .with_topic(rule("/camera/*", "/front/*", Direction::ToBus))
        .with_topic(rule("/camera/left/info", "/left_info", Direction::ToBus))
        .with_topic(rule("/far/*", "/near/*", Direction::ToRos));
    let robot = Robot::new(&domain, config);
    let peer = Peer::new(&domain);
    for (there, here) in [
        ("/camera/left/image", "/front/left/image"),
        ("/camera/left/info", "/left_info"),
    ] {
        let writer = peer.publisher(&format!("rt{there}"), &string(), kept());
        peer.write(writer, text(there));
        let subscriber = robot
            .node
            .dynamic_subscriber(here, &string())
            .expect("a subscriber");
        let message = subscriber.take_timeout(LONG).expect("a bus").expect("a message");
        assert_eq!(said(&message), there);
        assert_eq!(robot.status().to_bus[there].bus, here);
    }
    let publisher = robot
        .node
        .dynamic_publisher("/near/a/b", &string())
        .expect("a publisher");
    let reader = peer.subscriber("rt/far/a/b", &string(), reliable());
    assert!(publisher.wait_for_subscribers(1, LONG));
    peer.connected(reader, 1);
    publisher.publish_cdr(&text("near")).expect("a message");
    assert_eq!(said_in(&peer.next(reader).payload), "near");
    let others = ["rt/near/a/b", "rt/front/left/image"].map(|t| peer.endpoints(t).len());
    assert_eq!(others, [0, 0]);
}

#[test]
fn topics_without_a_rule_do_not_cross() {
    let domain = Domain::new();
    let robot = Robot::new(
        &domain,
        topics(&[("/in", Direction::ToBus), ("/out", Direction::ToRos)]),
    );
    let peer = Peer::new(&domain);
    for name in ["rt/out", "rt/other", "rt/in"] {
        peer.publisher(name, &string(), kept());
    }
    let _own: Vec<_> = ["/in", "/other", "/out"]
        .map(|name| {
            robot
                .node
                .dynamic_publisher(name, &string())
                .expect("a publisher")
        })
        .into();
    let _ears: Vec<_> = ["/in", "/other", "/out"]
        .map(|name| {
            robot
                .node
                .dynamic_subscriber(name, &string())
                .expect("a subscriber")
        })
        .into();
    until("both cross", || {
        let status = robot.status();
        (status.to_bus.len() == 1 && status.to_ros.len() == 1).then_some(())
    });
    until("the subscription", || {
        (peer.endpoints("rt/in").len() == 1).then_some(())
    });
    std::thread::sleep(crate::kit::A_WHILE);
    let counts = ["rt/in", "rt/out", "rt/other"].map(|t| peer.endpoints(t).len());
    assert_eq!(counts, [1, 1, 0]);
    assert_eq!(robot.status().problems, BTreeMap::new());
}

/// Nice values of this process's threads of that name (proc_pid_stat(5)).
fn nices(name: &str) -> Vec<i64> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads");
    let stats = tasks.filter_map(|t| std::fs::read_to_string(t.ok()?.path().join("stat")).ok());
    let of_name = stats.filter_map(|stat| {
        let (head, tail) = stat.rsplit_once(") ")?;
        let is_named = head.ends_with(&format!("({name}"));
        is_named.then(|| tail.split(' ').nth(16)?.parse().ok()).flatten()
    });
    of_name.collect()
}

#[test]
fn threads_that_forward_messages_get_a_processor_before_others() {
    let domain = Domain::new();
    let robot = Robot::new(&domain, topics(&[("/words", Direction::ToRos)]));
    let peer = Peer::new(&domain);
    let publisher = robot
        .node
        .dynamic_publisher("/words", &string())
        .expect("a publisher");
    peer.subscriber("rt/words", &string(), reliable());
    assert!(publisher.wait_for_subscribers(1, LONG));
    let granted = std::thread::spawn(|| clock::nice_thread(clock::FORWARDING_NICE)).join();
    let expected = match granted.expect("a thread") {
        clock::Scheduling::Nice(nice) => i64::from(nice),
        _ => 0,
    };
    for name in ["rtps", "ros2-events", "ros2-outgoing"] {
        until("threads with that value", || {
            let all = nices(name);
            (!all.is_empty() && all.iter().all(|nice| *nice <= expected)).then_some(())
        });
    }
}
