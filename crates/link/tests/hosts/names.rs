//! Topics of several robots on one bus, and topics that end or change.

use crate::common::*;

fn robot(name: &str, own: u16, base: u16) -> Host {
    Host::start(&format!(
        "host: {name}
radio: {{bind: '127.0.0.1:{own}', rate: 54Mbit/s}}
peers: [{{name: base, address: '127.0.0.1:{base}'}}]
topics:
  - {{name: /scan, priority: 100, direction: out, depth: 8}}
  - {{name: /cmd_vel, priority: 120, direction: in}}
"
    ))
}

fn base(own: u16, robots: [(&str, u16); 2], namespace: &str) -> Host {
    let [(a, x), (b, y)] = robots;
    Host::start(&format!(
        "host: base
radio: {{bind: '127.0.0.1:{own}', rate: 54Mbit/s}}
peers:
  - {{name: {a}, address: '127.0.0.1:{x}'{namespace}}}
  - {{name: {b}, address: '127.0.0.1:{y}'{namespace}}}
topics:
  - {{name: /scan, direction: in}}
  - {{name: /cmd_vel, priority: 120, direction: out, depth: 8}}
"
    ))
}

#[test]
fn topics_of_two_robots_do_not_merge_and_commands_reach_their_robot_alone() {
    let [x, y, z] = ports();
    let (r1, r2) = (robot("r-1", x, z), robot("r-2", y, z));
    let base = base(z, [("r-1", x), ("r-2", y)], ", namespace: '/fleet/{peer}'");
    let (from1, from2) = (
        base.subscriber("/fleet/r_1/scan"),
        base.subscriber("/fleet/r_2/scan"),
    );
    let merged = base.subscriber("/scan");
    let (scan1, scan2) = (r1.publisher("/scan"), r2.publisher("/scan"));
    let mut came = [Vec::new(), Vec::new()];
    until("both scans arrive", || {
        publish(&scan1, "one");
        publish(&scan2, "two");
        came[0].extend(texts(&from1));
        came[1].extend(texts(&from2));
        came.iter().all(|c| c.len() >= 5)
    });
    assert!(came[0].iter().all(|t| t == "one") && came[1].iter().all(|t| t == "two"));
    assert_eq!(texts(&merged), Vec::<String>::new());
    // Outbound names lose the namespace again.
    let (vel1, vel2) = (r1.subscriber("/cmd_vel"), r2.subscriber("/cmd_vel"));
    let command = base.publisher("/fleet/r_2/cmd_vel");
    let mut got = Vec::new();
    publish_until(&command, "go", || {
        got.extend(texts(&vel2));
        got.len() >= 5
    });
    assert!(got.iter().all(|t| t == "go"));
    assert_eq!(texts(&vel1), Vec::<String>::new());
    until("the status shows it", || {
        base.status().unpublished == ["/fleet/r_1/cmd_vel"]
    });
}

#[test]
fn a_topic_keeps_its_ros_across_the_air_and_is_converted_there() {
    let [x, y, z] = ports();
    let robot = robot("r1", x, z);
    let base = base(z, [("r1", x), ("r2", y)], "");
    let of = |ros, hash| bus::TopicType {
        type_hash: [hash; 16],
        flavour: bus::Flavour {
            ros,
            rihs01: [7; 32],
            common: [9; 16],
        },
        ..kind("/scan", "test_msgs/Blob")
    };
    let scan = robot.publisher_of(of(bus::Ros::Two, 2));
    let options = bus::SubscriberOptions::default().with_conversion(true);
    let converts = base
        .bus
        .subscriber(of(bus::Ros::One, 1), options)
        .expect("a subscriber");
    let exact = base.subscriber_of(of(bus::Ros::One, 1));
    let mut ros = Vec::new();
    publish_until(&scan, "blob", || {
        while let Ok(Some(message)) = converts.take() {
            ros.push(message.ros());
        }
        ros.len() >= 3
    });
    assert!(ros.iter().all(|r| *r == bus::Ros::Two));
    assert_eq!(texts(&exact), Vec::<String>::new());
    let topics = base.bus.topics(LONG).expect("a survey");
    let came = topics
        .iter()
        .find(|t| t.topic.topic == "/scan" && !t.publishers.is_empty())
        .expect("a publisher");
    assert_eq!(came.topic.flavour, of(bus::Ros::Two, 2).flavour);
}

#[test]
fn a_topic_crosses_once_however_many_subscribe() {
    let [x, y, z] = ports();
    let robot = robot("r1", x, z);
    let base = base(z, [("r1", x), ("r2", y)], "");
    let subscribers = [(); 3].map(|()| base.subscriber("/scan"));
    let scan = robot.publisher("/scan");
    publish_until(&scan, "first", || {
        subscribers.iter().all(|s| texts(s).contains(&"first".into()))
    });
    until("all in flight has arrived", || {
        let (sent, received) = (robot.status().sent, base.status().received);
        sent.first()
            .zip(received.first())
            .is_some_and(|(s, r)| s.stats.queued == 0 && s.stats.sent == r.stats.delivered)
    });
    // The status is up to a tenth of a second old.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let before = robot.status();
    let drained: Vec<_> = subscribers.iter().map(texts).collect();
    drop(drained);
    for i in 0..20 {
        publish(&scan, &format!("m{i}"));
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let expected: Vec<_> = (0..20).map(|i| format!("m{i}")).collect();
    for s in &subscribers {
        let mut got = Vec::new();
        until("all arrive", || {
            got.extend(texts(s));
            got.len() >= 20
        });
        assert_eq!(got, expected);
    }
    until("the status is refreshed", || {
        robot.status().sent[0].stats.sent >= before.sent[0].stats.sent + 20
    });
    let (was, now) = (&before.sent[0].stats, &robot.status().sent[0].stats);
    assert_eq!(
        (now.sent - was.sent, now.fragments - was.fragments),
        (20, 20),
        "each message crosses once, in one fragment"
    );
}

#[test]
fn a_topic_that_ends_ends_at_the_peer_and_may_change_its_type() {
    let [x, y, z] = ports();
    let robot = robot("r1", x, z);
    let base = base(z, [("r1", x), ("r2", y)], "");
    let scan = robot.publisher("/scan");
    let old = base.subscriber("/scan");
    publish_until(&scan, "old", || texts(&old).contains(&"old".into()));
    assert_eq!(base.published("/scan"), ["test_msgs/Blob"]);
    drop(scan);
    until("the base's publisher ends too", || {
        base.published("/scan").is_empty()
    });
    until("the robot reports it", || robot.status().unpublished == ["/scan"]);
    // It returns with another type, without any restart.
    let other = kind("/scan", "test_msgs/Another");
    let scan = robot.publisher_of(other.clone());
    let new = base.subscriber_of(other);
    publish_until(&scan, "new", || texts(&new).contains(&"new".into()));
    assert_eq!(base.published("/scan"), ["test_msgs/Another"]);
    // Its type changes while it is published: the second publisher counts when the first ends.
    let third = kind("/scan", "test_msgs/YetAnother");
    let (next, newest) = (robot.publisher_of(third.clone()), base.subscriber_of(third));
    drop(scan);
    publish_until(&next, "third", || texts(&newest).contains(&"third".into()));
    assert_eq!(base.published("/scan"), ["test_msgs/YetAnother"]);
    assert_eq!(texts(&old), Vec::<String>::new());
    let status = robot.status();
    assert_eq!(status.sent.len(), 1, "one topic, whatever its type");
}

#[test]
fn a_peer_that_restarts_without_a_topic_ends_it_after_a_while() {
    let [x, y, z] = ports();
    let mut robot = robot("r1", x, z);
    let base = base(z, [("r1", x), ("r2", y)], "");
    let scan = robot.publisher("/scan");
    let subscriber = base.subscriber("/scan");
    publish_until(&scan, "a", || texts(&subscriber).contains(&"a".into()));
    robot.stop_link();
    drop(scan);
    robot.start_link();
    until("the restart is noticed", || {
        base.status().peers[0].stats.restarts == 1
    });
    assert_eq!(
        base.published("/scan"),
        ["test_msgs/Blob"],
        "it may be announced again"
    );
    until("it is not", || base.published("/scan").is_empty());
}

/// More topics than a peer takes, which only costs those beyond the limit.
#[test]
fn a_topic_that_cannot_be_sent_costs_that_topic_and_is_reported() {
    let [x, y] = ports();
    let text = |name: &str, own, (peer, port): (&str, u16), way| {
        format!(
            "host: {name}
radio: {{bind: '127.0.0.1:{own}', rate: unlimited}}
peers: [{{name: {peer}, address: '127.0.0.1:{port}'}}]
topics:
  - {{name: '/many/*', direction: {way}}}
  - {{name: /scan, direction: {way}}}
"
        )
    };
    let robot = Host::start(&text("robot", x, ("base", y), "out"));
    let base = Host::start(&text("base", y, ("robot", x), "in"));
    let scan = robot.publisher("/scan");
    let s = base.subscriber("/scan");
    publish_until(&scan, "first", || !texts(&s).is_empty());
    // Names that come and go: a peer counts all of them.
    let each = 400;
    let rounds = proto::MAX_TOPICS / each + 1;
    let is_live = |t: &link::SentTopic| t.stats.state != proto::TopicState::Withdrawn;
    let live = |status: &link::Status| status.sent.iter().filter(|t| is_live(t)).count();
    let refused = rounds * each + 1 - proto::MAX_TOPICS;
    for round in 0..rounds {
        let names = (0..each).map(|i| format!("/many/of_{round}_{i}"));
        let many: Vec<_> = names.map(|name| robot.publisher(&name)).collect();
        let left_out = if round + 1 == rounds { refused } else { 0 };
        until("all are sent or left out", || {
            let status = robot.status();
            status.unsent.len() == left_out && live(&status) == 1 + each - left_out
        });
        drop(many);
        if left_out > 0 {
            let unsent = robot.status().unsent;
            assert!(
                unsent.values().all(|why| why.contains("1024 topics")),
                "{unsent:?}"
            );
        }
        until("their end is noticed", || live(&robot.status()) == 1);
    }
    assert_eq!(robot.status().unsent.len(), 0);
    publish_until(&scan, "others go on", || {
        texts(&s).contains(&"others go on".to_owned())
    });
}
