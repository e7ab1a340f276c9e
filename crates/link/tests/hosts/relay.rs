//! Hosts that relay for each other, as daemons over real sockets.

use crate::common::*;
use std::time::{Duration, Instant};

fn robot(own: u16, relays: &[(&str, u16)]) -> Host {
    let relays: String = relays
        .iter()
        .map(|(name, port)| {
            format!("  - {{name: {name}, address: '127.0.0.1:{port}', relay: true, allow: {{}}}}\n")
        })
        .collect();
    Host::start(&format!(
        "host: robot
radio: {{bind: '127.0.0.1:{own}', rate: 54Mbit/s}}
peers:
  - {{name: base}}
{relays}topics:
  - {{name: /scan, priority: 100, direction: out, depth: 8}}
  - {{name: /cmd_vel, priority: 120, direction: in}}
"
    ))
}

fn relay(name: &str, own: u16, robot: u16, base: u16, topics: &str) -> Host {
    Host::start(&format!(
        "host: {name}
radio: {{bind: '127.0.0.1:{own}', rate: 54Mbit/s}}
relay: true
peers:
  - {{name: robot, address: '127.0.0.1:{robot}'}}
  - {{name: base, address: '127.0.0.1:{base}'}}
topics: [{topics}]
"
    ))
}

fn base(own: u16, relays: &[(&str, u16)]) -> Host {
    let relays: String = relays
        .iter()
        .map(|(name, port)| {
            format!("  - {{name: {name}, address: '127.0.0.1:{port}', relay: true, allow: {{}}}}\n")
        })
        .collect();
    Host::start(&format!(
        "host: base
radio: {{bind: '127.0.0.1:{own}', rate: 54Mbit/s}}
peers:
  - {{name: robot, namespace: /r}}
{relays}topics:
  - {{name: /scan, direction: in}}
  - {{name: /cmd_vel, priority: 120, direction: out, depth: 8}}
"
    ))
}

#[test]
fn topics_go_over_a_relay_both_ways_without_its_bus() {
    let [x, y, z] = ports();
    let robot = robot(x, &[("relay", y)]);
    let middle = relay("relay", y, x, z, "");
    let base = base(z, &[("relay", y)]);
    let (scan, got) = (robot.publisher("/scan"), base.subscriber("/r/scan"));
    publish_until(&scan, "ranges", || texts(&got).contains(&"ranges".into()));
    let (command, vel) = (base.publisher("/r/cmd_vel"), robot.subscriber("/cmd_vel"));
    publish_until(&command, "go", || texts(&vel).contains(&"go".into()));
    assert!(middle.published("/scan").is_empty() && middle.published("/cmd_vel").is_empty());
    until("the status shows the way", || {
        let status = robot.status();
        status
            .ways
            .iter()
            .any(|w| w.host == "base" && w.over == "relay" && w.hops == 2)
    });
    until("the relay counts", || middle.status().relay.forwarded >= 2);
    // When the source's publisher ends, so does the one behind the relay.
    drop(scan);
    until("the base's publisher ends too", || {
        base.published("/r/scan").is_empty()
    });
}

#[test]
fn a_relay_may_take_a_topic_too_and_large_messages_stay_whole() {
    let [x, y, z] = ports();
    // The robot lets the relay read for itself.
    let robot = Host::start(&format!(
        "host: robot
radio: {{bind: '127.0.0.1:{x}', rate: 54Mbit/s}}
peers:
  - {{name: base}}
  - {{name: relay, address: '127.0.0.1:{y}', relay: true}}
topics:
  - {{name: /scan, priority: 100, direction: out, depth: 8}}
"
    ));
    let middle = relay("relay", y, x, z, "{name: /scan, direction: in}");
    let base = base(z, &[("relay", y)]);
    let large: String = (0..20_000).map(|i| char::from(b'a' + (i % 26) as u8)).collect();
    let (scan, here, there) = (
        robot.publisher("/scan"),
        middle.subscriber("/scan"),
        base.subscriber("/r/scan"),
    );
    let (mut a, mut b) = (Vec::new(), Vec::new());
    publish_until(&scan, &large, || {
        a.extend(texts(&here));
        b.extend(texts(&there));
        a.len() >= 3 && b.len() >= 3
    });
    assert!(a.iter().chain(&b).all(|t| *t == large));
    // One copy to the relay serves both.
    until("the counts agree", || {
        let (sent, received) = (robot.status().sent, middle.status().received);
        sent.len() == 1 && received.len() == 1 && sent[0].stats.sent == received[0].stats.delivered
    });
}

#[test]
fn another_relay_takes_over_and_the_status_shows_it() {
    let [x, y1, y2, z] = ports();
    let relays = [("relay1", y1), ("relay2", y2)];
    let robot = robot(x, &relays);
    let mut middle = [relay("relay1", y1, x, z, ""), relay("relay2", y2, x, z, "")];
    let base = base(z, &relays);
    let (scan, got) = (robot.publisher("/scan"), base.subscriber("/r/scan"));
    publish_until(&scan, "first", || texts(&got).contains(&"first".into()));
    until("both relays are ways", || {
        robot
            .status()
            .ways
            .iter()
            .filter(|w| w.host.starts_with("relay"))
            .count()
            == 2
    });
    let over = |h: &Host| {
        h.status()
            .ways
            .iter()
            .find(|w| w.host == "base")
            .map(|w| w.over.clone())
    };
    for round in 0..2 {
        until("there is a way", || over(&robot).is_some());
        let used = over(&robot).expect("a way");
        let i = usize::from(used == "relay2");
        middle[i].stop_link();
        texts(&got);
        let start = Instant::now();
        publish_until(&scan, "after", || !texts(&got).is_empty());
        println!(
            "round {round}: {used} died, flow back after {:?}",
            start.elapsed()
        );
        until("the status shows the other way", || {
            over(&robot).is_some_and(|o| o != used)
        });
        middle[i].start_link();
        std::thread::sleep(Duration::from_secs(2));
    }
}

/// Two robots, one relay, and a base that distinguishes the robots by their namespaces.
struct Fleet {
    robots: [Host; 2],
    relay: Host,
    base: Host,
}

fn fleet() -> Fleet {
    let [x1, x2, y, z] = ports();
    let relay_peer = format!("  - {{name: relay, address: '127.0.0.1:{y}', relay: true, allow: {{}}}}");
    let robot = |name: &str, own: u16| {
        Host::start(&format!(
            "host: {name}
radio: {{bind: '127.0.0.1:{own}', rate: 54Mbit/s}}
peers:
  - {{name: base}}
{relay_peer}
topics:
  - {{name: /scan, priority: 100, direction: out, depth: 8}}
  - {{name: /cmd_vel, priority: 120, direction: in}}
"
        ))
    };
    let relay = Host::start(&format!(
        "host: relay
radio: {{bind: '127.0.0.1:{y}', rate: 54Mbit/s}}
relay: true
peers:
  - {{name: r-1, address: '127.0.0.1:{x1}'}}
  - {{name: r-2, address: '127.0.0.1:{x2}'}}
  - {{name: base, address: '127.0.0.1:{z}'}}
topics: []
"
    ));
    let base = Host::start(&format!(
        "host: base
radio: {{bind: '127.0.0.1:{z}', rate: 54Mbit/s}}
peers:
  - {{name: r-1, namespace: '/{{peer}}'}}
  - {{name: r-2, namespace: '/{{peer}}'}}
{relay_peer}
topics:
  - {{name: /scan, direction: in}}
  - {{name: /cmd_vel, priority: 120, direction: out, depth: 1}}
"
    ));
    Fleet {
        robots: [robot("r-1", x1), robot("r-2", x2)],
        relay,
        base,
    }
}

#[test]
fn robots_behind_one_relay_are_heard_and_commanded_apart() {
    let Fleet {
        robots: [r1, r2],
        base,
        relay: _relay,
    } = fleet();
    let (vel1, vel2) = (r1.subscriber("/cmd_vel"), r2.subscriber("/cmd_vel"));
    let (scans1, scans2) = (base.subscriber("/r_1/scan"), base.subscriber("/r_2/scan"));
    let (command1, command2) = (base.publisher("/r_1/cmd_vel"), base.publisher("/r_2/cmd_vel"));
    let (scan1, scan2) = (r1.publisher("/scan"), r2.publisher("/scan"));
    let mut came = [(); 4].map(|()| Vec::new());
    until("all four arrive", || {
        publish(&command1, "go one");
        publish(&command2, "go two");
        publish(&scan1, "of one");
        publish(&scan2, "of two");
        std::thread::sleep(Duration::from_millis(20));
        for (came, from) in came.iter_mut().zip([&vel1, &vel2, &scans1, &scans2]) {
            came.extend(texts(from));
        }
        came.iter().all(|c| c.len() >= 5)
    });
    for (came, expected) in came.iter().zip(["go one", "go two", "of one", "of two"]) {
        assert!(came.iter().all(|t| t == expected), "{expected}: {came:?}");
    }
    // Operators can distinguish the two.
    until("the status shows it", || {
        let s = base.status();
        let to = |robot: &str| s.sent.iter().any(|t| t.to == [robot] && t.stats.sent > 0);
        let of = |robot: &str, here: &str| {
            let mut rows = s.received.iter();
            rows.any(|t| t.source == robot && t.here.as_deref() == Some(here) && t.recent.is_some())
        };
        publish(&scan1, "of one");
        publish(&scan2, "of two");
        to("r-1") && to("r-2") && of("r-1", "/r_1/scan") && of("r-2", "/r_2/scan")
    });
    // The end for one does not affect the other.
    drop(command1);
    until("the first robot's ends", || r1.published("/cmd_vel").is_empty());
    texts(&vel2);
    publish_until(&command2, "still", || texts(&vel2).contains(&"still".into()));
    assert_eq!(r2.published("/cmd_vel"), ["test_msgs/Blob"]);
    // It returns with another type, which does not affect the second.
    let other = kind("/cmd_vel", "test_msgs/Another");
    let vel1 = r1.subscriber_of(other.clone());
    let command1 = base.publisher_of(bus::TopicType {
        topic: "/r_1/cmd_vel".into(),
        ..other
    });
    publish_until(&command1, "anew", || texts(&vel1).contains(&"anew".into()));
    publish_until(&command2, "on", || texts(&vel2).contains(&"on".into()));
    assert!(texts(&vel2).iter().all(|t| t == "on" || t == "still"));
}
