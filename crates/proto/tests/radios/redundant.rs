//! Redundant topics: lost fragments are computed from parity.

use crate::common::*;
use medium::Loss;
use proto::*;
use std::time::Duration;

/// One in ten packets is lost, in bursts of three.
const BURSTS: Loss = Loss::Gilbert {
    to_bad: 0.1 / 2.7,
    to_good: 1.0 / 3.0,
    good: 0.0,
    bad: 1.0,
};

fn redundant(name: &str, redundancy: Option<f64>) -> TopicConfig {
    TopicConfig {
        reliability: Reliability::Redundant,
        ordering: Ordering::Any,
        redundancy,
        ..topic(name, 50, 5)
    }
}

/// Messages of `bytes` every `period` ms for a minute. Returns delivery and overhead.
fn carry(setup: Setup, config: TopicConfig, period: u64, bytes: u32) -> (f64, f64) {
    let mut w = setup.build();
    let geometry = Geometry::new(50, &[bytes - 50]).expect("small");
    let count = (60_000 / period) as u32;
    w.later(0, config, (Duration::from_secs(15), ms(period), count), geometry);
    w.run(Duration::from_secs(80));
    w.check_books();
    w.print(&format!("{bytes} B every {period} ms"));
    let t = w.nodes[0].radio.topics().next().expect("a topic").1;
    let r = w.nodes[1]
        .radio
        .remote_topics(w.nodes[1].peer)
        .next()
        .expect("a topic")
        .1;
    let m = w.metrics(0);
    let overhead = t.parity_bytes as f64 / t.sent_bytes as f64;
    println!(
        "delivery {:.4}, overhead {overhead:.3}, repaired {}",
        m.delivery, r.repaired_fragments
    );
    (m.delivery, overhead)
}

#[test]
fn bursts_of_loss_are_repaired_with_less_than_as_much_again() {
    for period in [20, 100] {
        let (mut deliveries, seeds) = (0.0, 4);
        for seed in 1..=seeds {
            let setup = Setup::path(ms(10), BURSTS).seed(seed);
            let (delivery, overhead) = carry(setup, redundant("/odometry", None), period, 1_000);
            assert!(overhead <= 1.0, "{overhead}");
            deliveries += delivery / seeds as f64;
        }
        println!("every {period} ms: {deliveries:.4} delivered");
        assert!(deliveries >= 0.995, "{deliveries}");
    }
}

#[test]
fn a_set_share_is_kept_and_large_messages_are_repaired_too() {
    let setup = Setup::path(ms(10), BURSTS);
    let (delivery, overhead) = carry(setup.clone(), redundant("/odometry", Some(0.5)), 20, 1_000);
    assert!(
        delivery > 0.98 && (0.4..0.52).contains(&overhead),
        "{delivery} {overhead}"
    );
    let (delivery, overhead) = carry(setup.clone(), redundant("/camera", Some(0.8)), 150, 30_000);
    assert!(delivery > 0.9 && overhead <= 0.85, "{delivery} {overhead}");
    let best_effort = TopicConfig {
        ordering: Ordering::Any,
        ..topic("/camera", 50, 5)
    };
    let (without, none) = carry(setup, best_effort, 150, 30_000);
    assert!(without < 0.6 && none == 0.0, "{without}");
}

#[test]
fn without_loss_there_is_hardly_any_parity() {
    let (delivery, overhead) = carry(
        Setup::path(ms(10), Loss::NONE),
        redundant("/odometry", None),
        20,
        1_000,
    );
    assert!(delivery == 1.0 && overhead < 0.05, "{delivery} {overhead}");
}

#[test]
fn duplicates_and_late_datagrams_deliver_each_message_once() {
    let mut w = Setup::hops(1).build();
    w.faults = Faults {
        loss: 0.1,
        duplicate: 0.2,
        reorder: 0.3,
        late: ms(60),
    };
    let geometry = Geometry::new(50, &[3_000]).expect("small");
    let config = TopicConfig {
        redundancy: Some(1.0),
        ..redundant("/odometry", None)
    };
    w.later(0, config, (Duration::from_secs(3), ms(30), 500), geometry);
    w.run(Duration::from_secs(25));
    w.check_books();
    w.print("faults");
    let m = w.metrics(0);
    let sent = m.sent - m.drops.count(stats::DropReason::Replaced);
    assert!(m.received as f64 >= 0.97 * sent as f64, "{m:?}");
    assert_eq!(w.nodes[1].sink.open(), 0);
}
