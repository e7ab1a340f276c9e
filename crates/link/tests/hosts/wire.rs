//! Links over a wire: datagrams leave in batches, and all messages arrive whole and in order.

use crate::common::*;
use bus::Stamp;
use link::keys::{HOSTS_FOLDER, Team};
use std::path::PathBuf;
use std::time::Duration;

const LARGE: usize = 64_000;
const SMALL: u64 = 100;

fn host(way: &Way, name: &str, own: u16, (peer, port): (&str, u16), direction: &str) -> Host {
    let keys = way
        .hosts
        .as_ref()
        .map(|h| format!("keys: '{}'\n", h.join(name).display()));
    Host::start(&format!(
        "host: {name}
{}radio: {{bind: '127.0.0.1:{own}', {}}}
peers: [{{name: {peer}, address: '127.0.0.1:{port}'}}]
topics:
  - {{name: /flow, priority: 10, direction: {direction}, depth: 4}}
  - {{name: /joy, priority: 120, direction: {direction}, reliability: reliable}}
",
        keys.unwrap_or_default(),
        way.radio
    ))
}

/// How the hosts are joined, and the folder of their keys.
struct Way {
    radio: &'static str,
    hosts: Option<PathBuf>,
}

#[test]
fn over_udp() {
    a_saturated_flow_and_what_is_urgent_arrive_whole_and_in_order(&Way {
        radio: "rate: unlimited",
        hosts: None,
    });
}

#[test]
fn encrypted() {
    let folder = tempfile::tempdir().expect("a folder");
    let team = Team::create(&folder.path().join("team"), "rovers").expect("makes");
    for name in ["robot", "base"] {
        team.add_host(name, Duration::from_secs(86_400)).expect("makes");
    }
    for radio in [
        "rate: unlimited",
        "rate: unlimited, carrier: tls",
        "rate: 200Mbit/s, medium: wire",
        "rate: 200Mbit/s, medium: wire, carrier: tls",
    ] {
        println!("{radio}");
        a_saturated_flow_and_what_is_urgent_arrive_whole_and_in_order(&Way {
            radio,
            hosts: Some(folder.path().join("team").join(HOSTS_FOLDER)),
        });
    }
}

fn a_saturated_flow_and_what_is_urgent_arrive_whole_and_in_order(way: &Way) {
    let [x, y] = ports();
    let robot = host(way, "robot", x, ("base", y), "out");
    let base = host(way, "base", y, ("robot", x), "in");
    let (flow, joy) = (robot.publisher("/flow"), robot.publisher("/joy"));
    let (large, small) = (base.subscriber("/flow"), base.subscriber("/joy"));
    publish_until(&joy, "first", || !texts(&small).is_empty());
    let (mut number, mut last, mut came, mut joys) = (0u64, None, 0, Vec::new());
    let mut asked = 0;
    until("all urgent messages arrive", || {
        for _ in 0..20 {
            let mut loan = flow.loan(8, &[LARGE]).expect("a loan");
            loan.control_mut().copy_from_slice(&number.to_le_bytes());
            loan.part_mut(0).fill(number as u8);
            flow.publish(loan, Stamp::default()).expect("publishes");
            number += 1;
        }
        if asked < SMALL {
            publish(&joy, &asked.to_string());
            asked += 1;
        }
        std::thread::sleep(Duration::from_micros(500));
        while let Ok(Some(m)) = large.take() {
            let bytes = <[u8; 8]>::try_from(m.control()).expect("a number");
            let this = u64::from_le_bytes(bytes);
            assert!(last.is_none_or(|l| l < this), "{this} after {last:?}");
            let mut data = vec![0; m.part_len(0)];
            m.part(0).copy_to(0, &mut data);
            assert!(data == vec![this as u8; LARGE], "message {this} is not whole");
            (last, came) = (Some(this), came + 1);
        }
        joys.extend(texts(&small).into_iter().filter(|t| t != "first"));
        joys.len() as u64 >= SMALL && came > 50
    });
    let expected: Vec<String> = (0..SMALL).map(|i| i.to_string()).collect();
    assert_eq!(joys, expected);
    // Messages that were not sent were replaced here; nothing was lost on the way.
    let status = base.status();
    let received = status
        .received
        .iter()
        .find(|t| t.stats.name == "/flow")
        .expect("a topic");
    assert_eq!(received.stats.drops.total(), 0, "{}", received.stats.drops);
}

/// Nothing in the configuration makes the topic latched: its publisher does.
#[test]
fn messages_a_publisher_keeps_reach_late_subscribers_on_the_far_host() {
    let [x, y] = ports();
    let text = |name: &str, own: u16, peer: &str, port: u16, direction: &str| {
        format!(
            "host: {name}
radio: {{bind: '127.0.0.1:{own}', rate: unlimited}}
peers: [{{name: {peer}, address: '127.0.0.1:{port}'}}]
topics:
  - {{name: /map, direction: {direction}}}
  - {{name: /plain, direction: {direction}, reliability: reliable}}
"
        )
    };
    let robot = Host::start(&text("robot", x, "base", y, "out"));
    let options = bus::PublisherOptions::default()
        .with_history(1)
        .with_reliability(bus::Reliability::Reliable);
    let map = (robot.bus.publisher(kind("/map", "test_msgs/Blob"), options)).expect("a publisher");
    let plain = robot.publisher("/plain");
    publish(&map, "old");
    publish(&map, "new");
    // The base starts after both, and its subscriber later still.
    let base = Host::start(&text("base", y, "robot", x, "in"));
    let quick = base.subscriber("/plain");
    publish_until(&plain, "x", || !texts(&quick).is_empty());
    let mut offers = Vec::new();
    until("the base has the map for late joiners", || {
        let late = base.subscriber("/map");
        assert!(late.wait_for_publishers(1, Duration::from_secs(60)));
        let taken = late.take_timeout(Duration::from_millis(200)).expect("takes");
        offers = taken
            .iter()
            .map(|m| (m.control().to_vec(), m.is_history(), m.offer().reliability))
            .collect();
        offers.len() == 1 && offers[0].1
    });
    assert_eq!(offers[0].0, b"new");
    // As its publisher offers, though the link is only best effort.
    assert_eq!(offers[0].2, Some(bus::Reliability::Reliable));
}
