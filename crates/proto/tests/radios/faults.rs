//! Faults on the way, and their consequences.

use crate::common::*;
use medium::Loss;
use proto::*;
use stats::{DropReason, Time};
use std::time::Duration;

const RUN: Duration = Duration::from_secs(10);

/// A laser and an image over one hop, where datagrams suffer `faults`.
fn disturbed(setup: Setup, faults: Faults, ordering: Ordering) -> World {
    let mut w = setup.build();
    w.faults = faults;
    w.source(
        0,
        TopicConfig {
            ordering,
            ..topic("/laser", 100, 5)
        },
        ms(20),
        RUN,
        fixed(50, 950),
    );
    w.source(
        0,
        TopicConfig {
            ordering,
            ..topic("/image", 10, 2)
        },
        ms(150),
        RUN,
        fixed(50, 31_950),
    );
    w.run(RUN + Duration::from_secs(4));
    w.check_books();
    w
}

/// Checks that everything sent is delivered, or lost for a stated reason.
fn accounted(w: &World) {
    let (near, far) = (&w.nodes[0], &w.nodes[1]);
    for (id, t) in near.radio.topics() {
        let (_, r) = far
            .radio
            .remote_topics(far.peer)
            .find(|(r, _)| r.0 == id.0)
            .expect("a known topic");
        let lost = r.drops.total() - r.drops.count(DropReason::Duplicate);
        assert_eq!(
            t.sent,
            r.delivered + lost,
            "{}: {} | {}",
            t.name,
            t.drops,
            r.drops
        );
        assert_eq!(r.partial, 0);
        // And each end knows the other's counters.
        let (reported, heard) = (
            t.at_receiver.clone().expect("a report"),
            r.account.expect("a report"),
        );
        assert_eq!(
            (reported.delivered, reported.drops),
            (r.delivered, r.drops.clone()),
            "{}",
            t.name
        );
        assert_eq!(heard, t.account, "{}", t.name);
        let a = &t.account;
        assert_eq!(
            (a.offered, a.delivered, a.in_flight),
            (t.offered, r.delivered, 0),
            "{t:?}"
        );
    }
}

#[test]
fn lost_datagrams_lose_their_messages_and_no_others() {
    let w = disturbed(
        Setup::hops(1),
        Faults {
            loss: 0.02,
            ..Faults::default()
        },
        Ordering::Latest,
    );
    w.print("2 % datagram loss");
    let (laser, image) = (w.metrics(0), w.metrics(1));
    assert!((0.95..1.0).contains(&laser.delivery) && (0.4..0.9).contains(&image.delivery));
    assert!(laser.drops.count(DropReason::Air) > 0 && image.drops.count(DropReason::Incomplete) > 0);
}

#[test]
fn counts_add_up_on_both_ends_under_any_fault() {
    for ordering in [Ordering::Latest, Ordering::Any] {
        for seed in 0..5 {
            let faults = Faults {
                duplicate: 0.1,
                reorder: 0.2,
                late: ms(30),
                ..Faults::default()
            };
            let w = disturbed(Setup::hops(1).seed(seed), faults, ordering);
            accounted(&w);
            let loss = if seed == 0 { 0.0 } else { 0.03 };
            let mut w = disturbed(Setup::hops(1).seed(seed), Faults { loss, ..faults }, ordering);
            // Loss of the last messages is detected once others arrive, and reports may be lost: end without faults.
            w.faults = Faults::default();
            for s in 0..2 {
                w.again(s, 20, ms(50));
            }
            w.run(Duration::from_secs(6));
            w.check_books();
            accounted(&w);
        }
    }
}

#[test]
fn fragments_may_come_before_the_first_of_their_message() {
    let faults = Faults {
        reorder: 0.3,
        late: ms(20),
        ..Faults::default()
    };
    let w = disturbed(Setup::hops(1), faults, Ordering::Any);
    w.print("30 % late by up to 20 ms");
    let (laser, image) = (w.metrics(0), w.metrics(1));
    assert_eq!((laser.delivery, image.delivery), (1.0, 1.0));
    accounted(&w);
}

#[test]
fn reordering_and_duplicates_never_deliver_twice_or_backwards() {
    let faults = Faults {
        duplicate: 0.3,
        reorder: 0.5,
        late: ms(60),
        ..Faults::default()
    };
    let w = disturbed(Setup::hops(1), faults, Ordering::Latest);
    w.print("30 % duplicates, half of all late by up to 60 ms");
    for (name, stamps) in &w.nodes[1].sink.delivered {
        assert!(stamps.windows(2).all(|s| s[0] < s[1]), "{name} went backwards");
    }
    assert!(w.metrics(0).drops.count(DropReason::OutOfOrder) > 0);
    assert!(w.metrics(0).drops.count(DropReason::Duplicate) > 0);

    let w = disturbed(Setup::hops(1), faults, Ordering::Any);
    for (name, stamps) in &w.nodes[1].sink.delivered {
        let mut sorted = stamps.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), stamps.len(), "{name} came twice");
    }
    assert_eq!(
        w.metrics(0).delivery,
        1.0,
        "in any order nothing is lost: {}",
        w.metrics(0).drops
    );
}

#[test]
fn a_restarted_receiver_is_found_within_half_a_second() {
    let setup = Setup::hops(1);
    let mut w = setup.build();
    w.source(
        0,
        topic("/laser", 100, 5),
        ms(20),
        Duration::from_secs(8),
        fixed(50, 950),
    );
    w.run_until(Time::from_millis(3_000));
    w.kill(1);
    w.run_until(Time::from_millis(3_300));
    w.start(1, &setup, 99);
    let before = w.nodes[1].sink.delivered["/laser"].len();
    w.run_until(Time::from_millis(3_800));
    let after = w.nodes[1].sink.delivered["/laser"].len();
    assert!(after > before, "nothing came within 500 ms of the restart");
    assert_eq!(
        w.nodes[0].sink.downs,
        [(w.nodes[0].sink.downs[0].0, Down::Restarted)]
    );
    assert_eq!(
        w.nodes[0]
            .radio
            .peer_stats(w.nodes[0].peer)
            .expect("a peer")
            .restarts,
        1
    );
    w.run(Duration::from_secs(6));
    w.check_books();
    accounted_since_restart(&w);
}

fn accounted_since_restart(w: &World) {
    let (_, r) = w.nodes[1]
        .radio
        .remote_topics(w.nodes[1].peer)
        .next()
        .expect("a topic");
    assert_eq!(
        r.drops.total(),
        0,
        "the new run misses nothing of its own: {}",
        r.drops
    );
}

#[test]
fn a_restarted_sender_is_believed_at_once_and_keeps_its_counts_at_the_receiver() {
    let setup = Setup::hops(1);
    let mut w = setup.build();
    w.source(
        0,
        topic("/laser", 100, 5),
        ms(20),
        Duration::from_secs(3),
        fixed(50, 950),
    );
    w.run_until(Time::from_millis(2_000));
    let first = w.nodes[1].sink.delivered["/laser"].len() as u64;
    w.kill(0);
    w.run(ms(50));
    w.start(0, &setup, 77);
    w.source(
        0,
        topic("/laser", 100, 5),
        ms(20),
        Duration::from_secs(2),
        fixed(50, 950),
    );
    w.run(Duration::from_secs(4));
    let (_, r) = w.nodes[1]
        .radio
        .remote_topics(w.nodes[1].peer)
        .next()
        .expect("a topic");
    assert_eq!(r.delivered, first + 100, "{}", r.drops);
    assert_eq!(w.nodes[1].sink.open(), 0);
}

#[test]
fn after_an_outage_the_peers_find_each_other_within_half_a_second() {
    let mut w = Setup::hops(1).build();
    w.source(
        0,
        topic("/laser", 100, 5),
        ms(20),
        Duration::from_secs(12),
        fixed(50, 950),
    );
    w.run_until(Time::from_millis(2_000));
    w.medium.set_loss(w.now, Loss::Uniform(1.0));
    w.run_until(Time::from_millis(7_000));
    for n in &w.nodes {
        assert_eq!(n.sink.downs.len(), 1, "each end noticed");
        let noticed = n.sink.downs[0].0;
        assert!(noticed <= Time::from_millis(3_300), "{noticed}");
    }
    let before = w.nodes[1].sink.delivered["/laser"].len();
    w.medium.set_loss(w.now, Loss::NONE);
    w.run_until(Time::from_millis(7_500));
    assert!(w.nodes[1].sink.delivered["/laser"].len() > before);
    assert!(w.metrics(0).drops.count(DropReason::NoPeer) > 100);
    w.run(Duration::from_secs(6));
    w.check_books();
}

#[test]
fn a_receiver_short_of_memory_loses_the_large_and_keeps_the_small() {
    let mut w = Setup::hops(1).build();
    w.nodes[1].sink.memory = Some(10_000);
    w.source(0, topic("/laser", 100, 5), ms(20), RUN, fixed(50, 950));
    w.source(0, topic("/image", 10, 2), ms(150), RUN, fixed(50, 31_950));
    w.run(RUN + Duration::from_secs(2));
    w.check_books();
    let (laser, image) = (w.metrics(0), w.metrics(1));
    assert_eq!((laser.delivery, image.delivery), (1.0, 0.0));
    assert_eq!(image.drops.count(DropReason::ReceiverMemory), image.sent);
}

#[test]
fn partial_messages_are_bounded_and_the_important_ones_stay() {
    let limits = ReceiveLimits {
        max_partial: 2,
        max_partial_bytes: 70_000,
        ..ReceiveLimits::default()
    };
    let mut w = Setup {
        receive: limits,
        ..Setup::hops(1)
    }
    .build();
    w.source(0, topic("/a", 10, 2), ms(200), RUN, fixed(50, 31_950));
    w.source(0, topic("/b", 20, 2), ms(190), RUN, fixed(50, 15_950));
    w.source(0, topic("/c", 30, 2), ms(50), RUN, fixed(50, 3_950));
    w.run(RUN + Duration::from_secs(2));
    w.check_books();
    let sink = &w.nodes[1].sink;
    assert!(
        sink.open_max <= 2 && sink.open_bytes_max <= 70_000,
        "{} {}",
        sink.open_max,
        sink.open_bytes_max
    );
    assert_eq!(w.metrics(2).delivery, 1.0, "{}", w.metrics(2).drops);
    assert!(w.metrics(0).drops.count(DropReason::ReassemblyFull) > 0);
}

#[test]
fn a_definition_of_256_kb_arrives_over_a_lossy_radio_while_others_flow() {
    let mut w = Setup::hops(1).build();
    w.faults = Faults {
        loss: 0.1,
        ..Faults::default()
    };
    let big = TopicConfig {
        definition: "x".repeat(256 * 1024),
        ..topic("/map", 1, 1)
    };
    w.source(0, topic("/laser", 100, 5), ms(20), RUN, fixed(50, 950));
    w.run(ms(3_000));
    w.nodes[1].sink.flows.clear();
    w.source(0, big.clone(), ms(1000), RUN, fixed(50, 950));
    w.run(RUN);
    let map = w.nodes[1]
        .sink
        .names
        .values()
        .find(|a| a.name == "/map")
        .expect("announced");
    assert_eq!(map.definition, big.definition);
    assert!(w.metrics(1).received > 0);
    assert!(w.metrics(0).delay_ms.p99 < 8.0, "{:?}", w.metrics(0).delay_ms);
    assert_eq!(w.nodes[1].sink.downs, []);
}

#[test]
fn a_peer_that_restarts_after_it_was_lost_is_reported_as_both() {
    let setup = Setup::hops(1);
    let mut w = setup.build();
    w.source(
        0,
        topic("/laser", 100, 2),
        ms(20),
        Duration::from_secs(9),
        fixed(50, 950),
    );
    w.run(Duration::from_secs(2));
    w.kill(0);
    w.run(Duration::from_secs(3));
    w.start(0, &setup, 77);
    w.run(Duration::from_secs(2));
    let downs: Vec<Down> = w.nodes[1].sink.downs.iter().map(|(_, why)| *why).collect();
    assert_eq!(downs, [Down::Lost, Down::Restarted]);
}

#[test]
fn an_unwanted_topic_costs_its_announcement_only() {
    let mut w = Setup::hops(1).build();
    w.nodes[1].sink.unwanted.insert("/image".into());
    w.source(0, topic("/image", 10, 2), ms(150), RUN, fixed(50, 31_950));
    w.run(RUN + ms(1000));
    let (_, t) = w.nodes[0].radio.topics().next().expect("a topic");
    assert_eq!((t.state, t.sent, t.fragments), (TopicState::Refused, 0, 0));
    assert_eq!(t.drops.count(DropReason::Unannounced), t.offered);
}
