//! Changes of a flowing topic also apply to messages that wait already.

use crate::common::*;
use bus::{Publisher, Subscriber};
use ropewalk::Node;
use serde_json::json;
use std::time::Duration;

/// This many bytes take a third of a second of this radio.
const LONG_MESSAGE: usize = 20_000;

/// A robot that sends `/a` before `/b` over a slow radio, and its receiver.
struct Pair {
    robot: Host,
    _base: Host,
    publishers: [Publisher; 2],
    subscribers: [Subscriber; 2],
}

impl Pair {
    fn start() -> Pair {
        let [x, y] = ports();
        let host = |name: &str, own: u16, peer: &str, other: u16, way: &str| {
            Host::start(&format!(
                "host: {name}
radio: {{bind: '127.0.0.1:{own}', rate: 500kbit/s}}
peers: [{{name: {peer}, address: '127.0.0.1:{other}'}}]
topics:
  - {{name: /a, priority: 100, direction: {way}, depth: 16}}
  - {{name: /b, priority: 10, direction: {way}, depth: 16}}
"
            ))
        };
        let (robot, base) = (
            host("robot", x, "base", y, "out"),
            host("base", y, "robot", x, "in"),
        );
        let publishers = ["/a", "/b"].map(|t| robot.publisher(t));
        let subscribers = ["/a", "/b"].map(|t| base.subscriber(t));
        for (p, s) in publishers.iter().zip(&subscribers) {
            publish_until(p, "first", || !texts(s).is_empty());
        }
        let pair = Pair {
            robot,
            _base: base,
            publishers,
            subscribers,
        };
        until("nothing waits", || {
            let sent = pair.robot.status().sent;
            sent.len() == 2 && sent.iter().all(|t| t.stats.queued == 0)
        });
        std::thread::sleep(Duration::from_millis(200));
        pair.subscribers.iter().for_each(|s| drop(texts(s)));
        pair
    }

    /// Publishes this many long messages of each topic, alternately.
    fn offer(&self, count: usize) {
        for n in 0..count {
            for p in &self.publishers {
                let text = format!("{n:0>width$}", width = LONG_MESSAGE);
                publish(p, &text);
            }
        }
    }

    /// Requests a change as `ropewalk link set` does.
    fn set(&self, topic: &str, changes: &[&str]) -> String {
        let node = Node::with_config("operator", self.robot.bus.config().clone()).expect("a node");
        let schema = node.discover_service("/link/robot/set", LONG).expect("is served");
        let client = node.dynamic_client("/link/robot/set", &schema).expect("a client");
        assert!(client.wait_for_server(LONG).expect("waits"));
        let request = json!({ "topic": topic, "peer": "", "changes": changes });
        let request = schema.request().value_from_json(&request).expect("fits");
        let answer = client.call_value(&request, LONG).expect("an answer");
        answer.to_json(schema::Show::ALL)["now"][0]
            .as_str()
            .expect("a line")
            .to_owned()
    }

    /// The topics of the received messages, in the order of arrival, until there are `counts`, or until
    /// nothing waits.
    fn order(&self, counts: [usize; 2]) -> String {
        let mut order = String::new();
        until("all have arrived", || {
            for (s, c) in self.subscribers.iter().zip(['a', 'b']) {
                order.extend(texts(s).iter().map(|_| c));
            }
            let of = |c| order.chars().filter(|o| *o == c).count();
            of('a') >= counts[0] && of('b') >= counts[1]
        });
        order
    }

    fn drops(&self, topic: &str, reason: stats::DropReason) -> u64 {
        let sent = self.robot.status().sent;
        let of_it = sent.iter().filter(|t| t.stats.name == topic);
        of_it.map(|t| t.stats.drops.count(reason)).sum()
    }
}

#[test]
fn a_higher_priority_lets_what_waits_go_first() {
    let pair = Pair::start();
    pair.offer(6);
    let before = pair.order([2, 0]);
    let now = pair.set("/b", &["priority=120"]);
    assert!(now.starts_with("to base: priority=120 "), "{now}");
    let shown = pair.robot.status().sent;
    let shown = shown.iter().find(|t| t.stats.name == "/b").expect("is sent");
    assert_eq!(shown.stats.priority, 120);
    let then = pair.order([0, 0]);
    let rest = pair.order([0, 6 - before.matches('b').count() - then.matches('b').count()]);
    // The last fragment of a message of /a may have been in the air.
    let ahead = rest.split_at(rest.rfind('b').unwrap_or(0)).0;
    assert!(ahead.matches('a').count() <= 1, "{before} {then} {rest}");
    assert!(before.matches('b').count() <= 1, "strictly by priority: {before}");
    // All of /a arrives eventually.
    let a = (before + &then + &rest).matches('a').count();
    assert_eq!(pair.order([6 - a, 0]).matches('a').count(), 6 - a);
}

#[test]
fn a_minimum_share_lets_the_less_important_through() {
    let pair = Pair::start();
    let now = pair.set("/b", &["min_share=50%"]);
    assert!(now.ends_with("min_share=50%"), "{now}");
    pair.offer(6);
    let order = pair.order([6, 6]);
    let last_a = order.rfind('a').expect("/a came");
    let before = order[..last_a].matches('b').count();
    assert!(before >= 3, "half of the air for /b: {order}");
    // Without it, strictly by priority again.
    pair.set("/b", &["min_share=0%"]);
    pair.offer(6);
    let order = pair.order([6, 6]);
    let last_a = order.rfind('a').expect("/a came");
    assert!(order[..last_a].matches('b').count() <= 1, "{order}");
}

#[test]
fn depth_deadline_and_rate_hold_at_once() {
    let pair = Pair::start();
    pair.offer(6);
    let now = pair.set("/b", &["depth=2"]);
    assert!(now.contains(" depth=2 "), "{now}");
    until("all but the newest are replaced", || {
        pair.drops("/b", stats::DropReason::Replaced) >= 3
    });
    let now = pair.set("/b", &["deadline=50ms"]);
    assert!(now.contains(" deadline=50ms "), "{now}");
    until("old messages are dropped", || {
        pair.drops("/b", stats::DropReason::Expired) >= 1
    });
    pair.order([6, 0]);
    let now = pair.set("/b", &["deadline=none", "depth=16", "rate_limit=1Hz"]);
    assert!(now.contains(" deadline=none rate_limit=1Hz "), "{now}");
    let before = pair.drops("/b", stats::DropReason::RateLimit);
    (0..5).for_each(|_| publish(&pair.publishers[1], "often"));
    until("messages beyond the rate are dropped", || {
        pair.drops("/b", stats::DropReason::RateLimit) >= before + 3
    });
}

#[test]
fn topics_of_a_pattern_come_by_themselves_and_are_set_together_or_alone() {
    let [x, y] = ports();
    let host = |name: &str, own: u16, peer: &str, other: u16, topics: &str| {
        Host::start(&format!(
            "host: {name}
radio: {{bind: '127.0.0.1:{own}', rate: 6Mbit/s}}
peers: [{{name: {peer}, address: '127.0.0.1:{other}'}}]
topics: [{topics}]
"
        ))
    };
    let topics = "{name: '/t/*', direction: out, publisher_priority: true}, {name: '/t/own', direction: out, priority: 9}";
    let robot = host("robot", x, "base", y, topics);
    let base = host("base", y, "robot", x, "{name: '/t/*', direction: in}");
    let asks = |topic: &str, definition: &str| {
        let mut kind = kind(topic, "test_msgs/Blob");
        kind.definition = format!("{definition}uint8[] data\n").into();
        let (p, s) = (robot.publisher_of(kind), base.subscriber(topic));
        publish_until(&p, topic, || !texts(&s).is_empty());
        (p, s)
    };
    let _all = [
        asks("/t/one", "# priority: 71\n"),
        asks("/t/two/x", "# priority: 128\n"),
        asks("/t/own", "# priority: 71\n"),
    ];
    until("each has its own", || priorities(&robot) == [71, 9, 50]);
    assert!(robot.status().unpublished.is_empty(), "a pattern is not a topic");
    let pair = Pair {
        publishers: ["/a", "/b"].map(|t| robot.publisher(t)),
        subscribers: ["/a", "/b"].map(|t| base.subscriber(t)),
        robot,
        _base: base,
    };
    pair.set("/t/two/x", &["priority=3"]);
    until("one alone", || priorities(&pair.robot) == [71, 9, 3]);
    pair.set("/t/*", &["priority=60"]);
    until("those that match the pattern", || {
        priorities(&pair.robot) == [60, 9, 3]
    });
}

/// The priorities of all topics that a host sends, in the order of their names.
fn priorities(host: &Host) -> Vec<u8> {
    let sent = host.status().sent;
    let all: std::collections::BTreeMap<_, _> = sent
        .iter()
        .map(|t| (t.stats.name.clone(), t.stats.priority))
        .collect();
    all.into_values().collect()
}
