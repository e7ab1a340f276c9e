//! Several bridges.

use crate::kit::{
    A_WHILE, Domain, LONG, Peer, Robot, all_said, kept, node, reliable, said, said_in, service, string, text,
    until, value,
};
use bus::SubscriberOptions;
use ros2::{Config, Direction, ServiceRule, TopicRule};

fn both() -> Config {
    Config::default().with_topic(TopicRule::new("/both", Direction::Both))
}

#[test]
fn of_two_bridges_of_one_bus_and_domain_one_stands_by_and_takes_over() {
    let domain = Domain::new();
    let mut first = Robot::new(&domain, both());
    let peer = Peer::new(&domain);
    let writer = peer.publisher("rt/both", &string(), kept());
    let reader = peer.subscriber("rt/both", &string(), reliable());
    let subscriber = first
        .node
        .dynamic_subscriber("/both", &string())
        .expect("a subscriber");
    let publisher = node(first.folder.path(), "mouth")
        .dynamic_publisher("/both", &string())
        .expect("a publisher");
    peer.connected(writer, 1);
    peer.connected(reader, 1);
    let second = Robot::on(&domain, both(), first.folder.clone());
    let holder = until("the second stands by", || second.status().stands_by);
    assert_eq!(holder, format!("process {}", std::process::id()));
    assert!(publisher.wait_for_subscribers(2, LONG));
    peer.write(writer, text("to the first"));
    publisher.publish_cdr(&text("from the first")).expect("a message");
    let mut got = all_said(&subscriber);
    got.sort();
    assert_eq!(got, ["from the first", "to the first"]);
    let got: Vec<_> = peer.all(reader).iter().map(|s| said_in(&s.payload)).collect();
    assert_eq!(got, ["from the first"]);

    first.stop();
    until("the second takes over", || {
        second.status().stands_by.is_none().then_some(())
    });
    until("it has both", || {
        let status = second.status();
        let out = status.to_ros.get("/both").is_some_and(|f| f.connected == 1);
        (out && status.to_bus.get("/both").is_some_and(|f| f.connected == 1)).then_some(())
    });
    peer.connected(writer, 1);
    peer.connected(reader, 1);
    until("it hears the bus", || {
        publisher.wait_for_subscribers(2, LONG).then_some(())
    });
    all_said(&subscriber);
    peer.write(writer, text("to the second"));
    publisher
        .publish_cdr(&text("from the second"))
        .expect("a message");
    let mut got = all_said(&subscriber);
    got.sort();
    assert_eq!(got, ["from the second", "to the second"]);
    assert!(
        peer.all(reader)
            .iter()
            .any(|s| said_in(&s.payload) == "from the second")
    );
}

#[test]
fn bridges_of_two_buses_in_one_domain_return_nothing() {
    let domain = Domain::new();
    let (a, b) = (Robot::new(&domain, both()), Robot::new(&domain, both()));
    let peer = Peer::new(&domain);
    let writer = peer.publisher("rt/both", &string(), reliable());
    let reader = peer.subscriber("rt/both", &string(), reliable());
    let robots = [&a, &b];
    let publishers = robots.map(|r| r.node.dynamic_publisher("/both", &string()).expect("a publisher"));
    let subscribers = robots.map(|r| {
        node(r.folder.path(), "ear")
            .dynamic_subscriber("/both", &string())
            .expect("a subscriber")
    });
    until("both bridges are there", || {
        robots.iter().all(|r| r.status().participants == 2).then_some(())
    });
    peer.connected(writer, 2);
    peer.connected(reader, 2);
    for publisher in &publishers {
        assert!(publisher.wait_for_subscribers(2, LONG));
    }
    for n in 0..3 {
        peer.write(writer, text(&format!("domain {n}")));
        for (i, publisher) in publishers.iter().enumerate() {
            publisher
                .publish_cdr(&text(&format!("bus {i} {n}")))
                .expect("a message");
        }
    }
    let mut got: Vec<_> = peer.all(reader).iter().map(|s| said_in(&s.payload)).collect();
    got.sort();
    let all = |i: usize| (0..3).map(move |n| format!("bus {i} {n}"));
    assert_eq!(got, all(0).chain(all(1)).collect::<Vec<_>>());
    for (i, subscriber) in subscribers.iter().enumerate() {
        let mut got = all_said(subscriber);
        got.sort();
        // Messages from one bus do not reach the other through the domain: bridges ignore each other's messages.
        let mut expected: Vec<_> = all(i).chain((0..3).map(|n| format!("domain {n}"))).collect();
        expected.sort();
        assert_eq!(got, expected, "bus {i}");
    }
    for robot in robots {
        assert_eq!(robot.status().to_bus["/both"].messages, 3);
    }
}

#[test]
fn bridges_that_carry_from_bridges_connect_their_buses() {
    let domain = Domain::new();
    let config = |from_bridges| {
        let calls = ServiceRule::new(
            "/switch",
            if from_bridges {
                Direction::ToBus
            } else {
                Direction::ToRos
            },
        );
        Config {
            from_bridges,
            ..both().with_service(calls)
        }
    };
    // The second carries only what nodes send.
    let robots = [true, false, true].map(|from_bridges| Robot::new(&domain, config(from_bridges)));
    let publishers = robots
        .each_ref()
        .map(|r| r.node.dynamic_publisher("/both", &string()).expect("a publisher"));
    let subscribers = robots.each_ref().map(|r| {
        let options = SubscriberOptions::default().with_depth(32);
        let node = node(r.folder.path(), "ear");
        node.dynamic_subscriber_with("/both", &string(), options)
            .expect("a subscriber")
    });
    let switch = service("std_srvs/SetBool");
    let response = switch.response().clone();
    let answer = move |_: &ropewalk::Request| {
        let value = response.value_from_yaml("{success: true, message: switched}");
        value.map_err(|e| e.to_string())
    };
    let _serves = robots[1]
        .node
        .dynamic_service("/switch", &switch, answer)
        .expect("a server");
    for publisher in &publishers {
        assert!(publisher.wait_for_subscribers(2, LONG));
    }
    // Once the three know each other, everything arrives; what was sent before, or arrives twice, has another number.
    for robot in [&robots[0], &robots[2]] {
        until("it has the publishers of the other two", || {
            robot
                .status()
                .to_bus
                .get("/both")
                .filter(|f| f.connected == 2)
                .map(drop)
        });
        until("its publisher is connected", || {
            robot
                .status()
                .to_ros
                .get("/both")
                .filter(|f| f.connected >= 1)
                .map(drop)
        });
    }
    for n in 0..3 {
        for (i, publisher) in publishers.iter().enumerate() {
            publisher
                .publish_cdr(&text(&format!("{i} {n}")))
                .expect("a message");
        }
    }
    for (i, subscriber) in subscribers.iter().enumerate() {
        let mut got = all_said(subscriber);
        got.sort();
        let of = if i == 1 { 1..2 } else { 0..3 };
        let expected: Vec<_> = of
            .flat_map(|from| (0..3).map(move |n| format!("{from} {n}")))
            .collect();
        assert_eq!(got, expected, "bus {i}");
    }
    assert!(!robots[1].status().to_bus.contains_key("/both"));

    for robot in [&robots[0], &robots[2]] {
        let client = robot.node.dynamic_client("/switch", &switch).expect("a client");
        assert!(client.wait_for_server(LONG).expect("a bus"));
        let request = value(switch.request(), "{data: true}");
        let reply = client.call_value(&request, LONG).expect("a response");
        assert_eq!(
            reply,
            value(switch.response(), "{success: true, message: switched}")
        );
    }
}

#[test]
fn a_bridge_leaves_the_domain_at_once_when_it_stops() {
    let domain = Domain::new();
    let peer = Peer::new(&domain);
    let mut robot = Robot::new(&domain, both());
    let _publisher = robot
        .node
        .dynamic_publisher("/both", &string())
        .expect("a publisher");
    until("it is there", || {
        (!peer.participants().is_empty() && !peer.endpoints("rt/both").is_empty()).then_some(())
    });
    robot.stop();
    // Its lease is 20 s.
    let begun = std::time::Instant::now();
    until("it has left", || peer.participants().is_empty().then_some(()));
    assert!(peer.endpoints("rt/both").is_empty());
    assert!(begun.elapsed() < LONG / 6);
    let late = robot
        .node
        .dynamic_subscriber("/both", &string())
        .expect("a subscriber");
    assert!(
        late.take_timeout(A_WHILE)
            .expect("a bus")
            .map(|m| said(&m))
            .is_none()
    );
}
