//! Reliable topics: everything arrives, or its sender is notified.

use crate::common::*;
use medium::Loss;
use proto::*;
use stats::{DropReason, Time};
use std::collections::BTreeMap;
use std::time::Duration;

fn reliable(name: &str, priority: u8, depth: u32) -> TopicConfig {
    TopicConfig {
        reliability: Reliability::Reliable,
        ordering: Ordering::InOrder,
        ..topic(name, priority, depth)
    }
}

/// Outcomes of a node's messages by topic and stamp; none may appear twice.
fn outcomes(w: &mut World, node: usize) -> BTreeMap<(TopicId, u64), End> {
    let mut all = BTreeMap::new();
    while let Some(o) = w.nodes[node].radio.next_outcome() {
        assert_eq!(all.insert((o.topic, o.stamp.0), o.end), None, "reported twice");
    }
    all
}

fn delivered_in_order(w: &World, node: usize, name: &str) -> usize {
    let stamps = &w.nodes[node].sink.delivered[name];
    assert!(stamps.windows(2).all(|s| s[0] < s[1]), "{name} went backwards");
    stamps.len()
}

/// One-way delays by topic, in ms, in the order of sending.
fn delays(w: &World, node: usize, name: &str) -> Vec<f64> {
    let arrived = &w.nodes[node].sink.arrived[name];
    arrived
        .iter()
        .map(|(stamp, at)| at.since(Time(*stamp)).as_secs_f64() * 1e3)
        .collect()
}

fn quantile(values: &[f64], q: f64) -> f64 {
    let mut v = values.to_vec();
    v.sort_by(f64::total_cmp);
    v[((v.len() as f64 * q) as usize).min(v.len() - 1)]
}

/// Commands of 64 B at `hz` in one direction and their answers in the other, with a loss of one in five packets.
/// Returns the quantiles of the round trips, in ms.
fn commands(setup: Setup, hz: u64, seconds: u64) -> (f64, f64) {
    let mut w = setup.build();
    let times = (Duration::from_secs(30), ms(1000 / hz), (seconds * hz) as u32);
    let small = Geometry::new(64, &[]).expect("small");
    w.later(0, reliable("/command", 100, 256), times, small);
    w.later(1, reliable("/answer", 100, 256), times, small);
    w.run(Duration::from_secs(seconds + 75));
    w.check_books();
    w.print("commands and answers, one in five packets lost");
    let (there, back) = (delays(&w, 1, "/command"), delays(&w, 0, "/answer"));
    for (i, end) in [(0, &there), (1, &back)] {
        assert_eq!(end.len() as u64, w.sources[i].offered, "all arrive");
        let reported = outcomes(&mut w, i);
        assert_eq!(reported.len() as u64, w.sources[i].offered.min(1024));
        assert!(reported.values().all(|e| matches!(e, End::Delivered(_))));
    }
    let rtt: Vec<f64> = std::iter::zip(&there, &back).map(|(a, b)| a + b).collect();
    let t = w.nodes[0].radio.topics().next().expect("a topic").1;
    let p = w.nodes[1].radio.peer_stats(w.nodes[1].peer).expect("a peer");
    println!(
        "{hz} Hz: round trip p50 {:.1} p99 {:.1} max {:.1} ms, repeated {:.2} x, datagrams back {} of {} offered, lost {} times",
        quantile(&rtt, 0.5),
        quantile(&rtt, 0.99),
        quantile(&rtt, 1.0),
        t.repeated_bytes as f64 / t.offered_bytes as f64,
        p.datagrams_sent,
        t.offered,
        p.lost,
    );
    (quantile(&rtt, 0.5), quantile(&rtt, 0.99))
}

/// Commands of 64 B that are answered at once, from `start` after both ends were started. Returns how long each took,
/// in ms.
fn answered(setup: Setup, start: Duration, period: Duration, count: u32) -> Vec<f64> {
    let mut w = setup.build();
    let small = Geometry::new(64, &[]).expect("small");
    w.later(0, reliable("/command", 110, 64), (start, period, count), small);
    w.answer(1, reliable("/answer", 110, 64), "/command", small);
    w.run(start + period * count + Duration::from_secs(30));
    w.check_books();
    let (there, back) = (
        &w.nodes[1].sink.delivered["/command"],
        &w.nodes[0].sink.arrived["/answer"],
    );
    assert_eq!(
        (there.len(), back.len()),
        (count as usize, count as usize),
        "all are answered"
    );
    let took = std::iter::zip(there, back);
    took.map(|(sent, (_, came))| came.since(Time(*sent)).as_secs_f64() * 1e3)
        .collect()
}

const LOSS_20: Loss = Loss::Uniform(0.2);

#[test]
fn commands_arrive_soon_though_a_fifth_of_all_packets_is_lost() {
    for seed in 1..4 {
        let (_, p99) = commands(Setup::path(ms(10), LOSS_20).seed(seed), 10, 60);
        assert!(p99 <= 100.0, "{p99} ms at a round trip of 20 ms");
        let (_, p99) = commands(Setup::path(ms(1000), LOSS_20).seed(seed), 10, 60);
        // A lost session costs a second more.
        assert!(p99 <= 5_500.0, "{p99} ms at a round trip of 2 s");
    }
}

#[test]
fn short_messages_are_repeated_while_a_long_one_of_their_topic_is_under_way() {
    for seed in 1..4 {
        let mut w = Setup::path(ms(10), LOSS_20).seed(seed).build();
        let of = |bytes| Geometry::new(20, &[bytes]).expect("a geometry");
        let at = |i: u64| Time::from_millis(1_000 + 20 * i);
        let events = (0..200)
            .map(|i| (at(i), of(if i % 8 == 7 { 20_000 } else { 1 })))
            .collect();
        w.source_of(0, reliable("/mixed", 50, 256), events);
        // Messages that ride along with others are measured, too.
        w.later(0, reliable("/others", 60, 256), (ms(1_000), ms(7), 500), of(30));
        w.run(Duration::from_secs(120));
        w.check_books();
        assert_eq!(delivered_in_order(&w, 1, "/mixed"), 200);
        assert_eq!(delivered_in_order(&w, 1, "/others"), 500);
    }
}

#[test]
fn commands_are_answered_soon_from_the_start() {
    let mut all = Vec::new();
    for seed in 1..11 {
        let mut setup = Setup::path(ms(10), LOSS_20).seed(seed);
        setup.medium.rate_bits = 6_000_000;
        let took = answered(setup, Duration::from_secs(1), ms(50), 200);
        let (p99, max) = (quantile(&took, 0.99), quantile(&took, 1.0));
        println!("p50 {:.1} p99 {p99:.1} max {max:.1} ms", quantile(&took, 0.5));
        assert!(max <= 300.0, "{max} ms: the announcement was late");
        all.extend(took);
    }
    let p99 = quantile(&all, 0.99);
    println!("of all: p99 {p99:.1} ms");
    assert!(p99 <= 90.0, "{p99} ms");
}

#[test]
fn without_loss_nothing_is_repeated_once_that_is_known() {
    let mut w = Setup::path(ms(10), Loss::NONE).build();
    let run = Duration::from_secs(60);
    w.source(0, reliable("/command", 100, 256), ms(50), run, fixed(64, 0));
    w.run(run + Duration::from_secs(3));
    let t = w.nodes[0].radio.topics().next().expect("a topic").1;
    w.print("no loss");
    println!("repeated {} of {} B", t.repeated_bytes, t.offered_bytes);
    assert!(t.repeated_bytes * 5 < t.offered_bytes, "{t:?}");
}

#[test]
fn large_messages_are_repaired_by_ranges() {
    for (delay, loss) in [
        (ms(10), LOSS_20),
        (ms(300), LOSS_20),
        (
            ms(10),
            Loss::Gilbert {
                to_bad: 0.037,
                to_good: 0.333,
                good: 0.0,
                bad: 1.0,
            },
        ),
    ] {
        let mut w = Setup::path(delay, loss.clone()).build();
        let run = Duration::from_secs(20);
        w.source(0, reliable("/map", 50, 64), ms(500), run, fixed(100, 49_900));
        w.source(0, topic("/video", 10, 2), ms(150), run, fixed(100, 20_000));
        w.run(run + Duration::from_secs(20));
        w.check_books();
        w.print(&format!("{loss:?}, {delay:?}"));
        let t = w.nodes[0].radio.topics().next().expect("a topic").1;
        println!(
            "repeated {:.2} x",
            t.repeated_bytes as f64 / t.offered_bytes as f64
        );
        assert_eq!(delivered_in_order(&w, 1, "/map") as u64, w.sources[0].offered);
        assert!(
            t.repeated_bytes < t.offered_bytes / 2,
            "only what is missing: {t:?}"
        );
        assert!(
            outcomes(&mut w, 0)
                .values()
                .all(|e| matches!(e, End::Delivered(_)))
        );
    }
}

#[test]
fn undeliverable_messages_are_reported_and_do_not_stop_the_rest() {
    let mut w = Setup::path(ms(10), Loss::NONE).build();
    let run = Duration::from_secs(10);
    let config = TopicConfig {
        expiry: Some(ms(700)),
        ..reliable("/command", 100, 64)
    };
    let topic = w.source(0, config, ms(100), run, fixed(64, 0));
    w.run_until(Time::from_millis(3_000));
    // Short enough for the session to survive it, then long enough to be detected.
    for (from, to) in [(3_000, 3_900), (6_000, 8_000)] {
        w.run_until(Time::from_millis(from));
        w.medium.set_loss(w.now, Loss::Uniform(1.0));
        w.run_until(Time::from_millis(to));
        w.medium.set_loss(w.now, Loss::NONE);
    }
    w.run(run);
    w.check_books();
    w.print("outages");
    let reported = outcomes(&mut w, 0);
    let arrived: Vec<u64> = w.nodes[1].sink.delivered["/command"].clone();
    delivered_in_order(&w, 1, "/command");
    assert_eq!(reported.len() as u64, w.sources[0].offered, "each has an outcome");
    for ((_, stamp), end) in &reported {
        match end {
            End::Delivered(after) => {
                assert!(arrived.contains(stamp) && *after < ms(2_000), "{after:?}")
            }
            End::Lost(reason) => assert_eq!(*reason, DropReason::Expired),
        }
    }
    let lost = reported.values().filter(|e| matches!(e, End::Lost(_))).count();
    assert!((5..40).contains(&lost), "{lost}");
    // After the last outage everything flows again.
    let t = w.nodes[0].radio.topic_stats(topic).expect("a topic");
    assert_eq!(t.queued, 0);
    assert!(*arrived.last().expect("some") > Time::from_millis(9_000).0);
}

#[test]
fn a_full_reliable_topic_drops_its_oldest_and_blocks_no_other() {
    let start = Duration::from_secs(15);
    let scan = |flood: bool| {
        let mut w = Setup::path(ms(1000), LOSS_20).build();
        let geometry = |n| Geometry::new(64, &[n]).expect("small");
        w.later(0, topic("/scan", 10, 2), (start / 3, ms(50), 800), geometry(900));
        if flood {
            // More than its window carries at this round trip, once the path is known.
            w.later(0, reliable("/flood", 100, 8), (start, ms(20), 1_000), geometry(0));
        }
        w.run(start + Duration::from_secs(40));
        w.check_books();
        w.print("a full window");
        w
    };
    let (alone, mut w) = (scan(false), scan(true));
    let reported = outcomes(&mut w, 0);
    let flood = w.nodes[0].radio.topics().nth(1).expect("a topic").1;
    assert!(
        flood.drops.count(DropReason::Replaced) > 100 && flood.queued == 0,
        "{flood:?}"
    );
    assert!(reported.values().any(|e| *e == End::Lost(DropReason::Replaced)));
    delivered_in_order(&w, 1, "/flood");
    let (with, without) = (w.metrics(0).delivery, alone.metrics(0).delivery);
    assert!(with > without - 0.1, "{with} beside it, {without} alone");
}

#[test]
fn latched_messages_reach_late_and_returning_peers() {
    for reliability in [Reliability::BestEffort, Reliability::Reliable] {
        let setup = Setup::hops(1);
        let mut w = setup.build();
        w.kill(1);
        let latched = TopicConfig {
            latched: true,
            reliability,
            ..topic("/map", 50, 2)
        };
        let geometry = Geometry::new(64, &[3_000]).expect("small");
        w.later(0, latched, (ms(100), ms(100), 5), geometry);
        w.run(Duration::from_secs(2));
        w.start(1, &setup, 50);
        w.run(Duration::from_secs(2));
        let stamps = |w: &World| w.nodes[1].sink.delivered.get("/map").cloned().unwrap_or_default();
        assert_eq!(stamps(&w).len(), 2, "the newest two");
        // A message during an outage that both ends detect.
        w.medium.set_loss(w.now, Loss::Uniform(1.0));
        w.run(Duration::from_secs(2));
        w.again(0, 1, ms(100));
        w.run(Duration::from_secs(1));
        w.medium.set_loss(w.now, Loss::NONE);
        w.run(Duration::from_secs(2));
        assert_eq!(stamps(&w).len(), 3, "the one that it missed");
        // A restarted receiver gets the newest again.
        w.kill(1);
        w.nodes[1].sink.arrived.clear();
        w.run(ms(300));
        w.start(1, &setup, 99);
        w.run(Duration::from_secs(3));
        assert_eq!(stamps(&w).len(), 5, "the newest two again");
        w.check_books();
        let t = w.nodes[0].radio.topics().next().expect("a topic").1;
        assert_eq!(t.queued, 0);
    }
}

#[test]
fn a_receiver_that_refuses_says_so_and_one_without_memory_gets_it_later() {
    let mut w = Setup::hops(1).build();
    w.nodes[1].sink.memory = Some(1_000);
    w.source(
        0,
        reliable("/map", 50, 8),
        ms(300),
        Duration::from_secs(2),
        fixed(100, 5_000),
    );
    w.run(Duration::from_secs(3));
    assert_eq!(w.nodes[1].sink.delivered.get("/map"), None);
    w.nodes[1].sink.memory = None;
    w.run(Duration::from_secs(5));
    assert_eq!(delivered_in_order(&w, 1, "/map") as u64, w.sources[0].offered);
    w.check_books();
}

#[test]
fn a_restarted_receiver_does_not_get_what_the_old_one_missed() {
    let setup = Setup::hops(1);
    let mut w = setup.build();
    w.source(
        0,
        reliable("/command", 100, 64),
        ms(20),
        Duration::from_secs(6),
        fixed(64, 0),
    );
    w.run_until(Time::from_millis(3_000));
    w.kill(1);
    w.run_until(Time::from_millis(3_300));
    w.start(1, &setup, 99);
    w.run(Duration::from_secs(8));
    w.check_books();
    let reported = outcomes(&mut w, 0);
    let lost = reported.values().filter(|e| matches!(e, End::Lost(_))).count();
    assert!((5..30).contains(&lost), "{lost}");
    assert!(
        reported
            .values()
            .all(|e| matches!(e, End::Delivered(_) | End::Lost(DropReason::PeerLost))),
        "{reported:?}"
    );
    delivered_in_order(&w, 1, "/command");
}

#[test]
fn any_order_and_faults_deliver_each_once() {
    for seed in 0..4 {
        let mut w = Setup::hops(1).seed(seed).build();
        w.faults = Faults {
            loss: 0.1,
            duplicate: 0.2,
            reorder: 0.3,
            late: ms(40),
        };
        let run = Duration::from_secs(10);
        let any = TopicConfig {
            ordering: Ordering::Any,
            ..reliable("/any", 60, 200)
        };
        w.source(0, any, ms(20), run, fixed(64, 3_000));
        w.source(0, reliable("/ordered", 50, 200), ms(50), run, fixed(64, 7_000));
        w.run(run + Duration::from_secs(10));
        w.check_books();
        assert_eq!(
            w.nodes[1].sink.delivered["/any"].len() as u64,
            w.sources[0].offered
        );
        assert_eq!(delivered_in_order(&w, 1, "/ordered") as u64, w.sources[1].offered);
        assert_eq!(w.nodes[1].sink.open(), 0);
    }
}

#[test]
fn a_message_that_its_source_ends_is_sent_no_more_and_the_others_are() {
    let mut w = Setup::path(ms(10), Loss::NONE).build();
    let config = TopicConfig {
        ordering: Ordering::Any,
        ..reliable("/call", 100, 64)
    };
    let (peer, now) = (w.nodes[0].peer, w.now);
    let id = w.nodes[0].radio.add_topic(now, peer, config).expect("a topic");
    let other = topic("/other", 1, 1);
    let best = w.nodes[0].radio.add_topic(now, peer, other).expect("a topic");
    w.run(Duration::from_secs(1));
    // Nothing gets through: the first is kept for its acknowledgement, one is partly sent, the last waits.
    w.medium.set_loss(w.now, Loss::Uniform(1.0));
    let offer = |w: &mut World, stamp: u64, len: u32| {
        let geometry = Geometry::new(len, &[]).expect("a geometry");
        let message = Message::new(
            Blob {
                seed: stamp,
                geometry,
            },
            Time(stamp),
        );
        let now = w.now;
        w.nodes[0].radio.offer(now, id, message).expect("is taken");
    };
    offer(&mut w, 1, 100);
    offer(&mut w, 2, 100);
    w.run(ms(5));
    offer(&mut w, 3, 60_000);
    w.run(ms(5));
    offer(&mut w, 4, 100);
    offer(&mut w, 5, 100);
    let stats = |w: &World| w.nodes[0].radio.topic_stats(id).expect("a topic");
    assert_eq!((stats(&w).queued, stats(&w).sent), (5, 0));
    let queued = w.nodes[0].radio.stats().queued_bytes;
    let end = |w: &mut World, topic, stamp, why| {
        let now = w.now;
        w.nodes[0].radio.end_message(now, topic, Time(stamp), why)
    };
    assert!(end(&mut w, id, 1, Ok(())), "kept");
    assert!(end(&mut w, id, 3, Err(DropReason::Expired)), "begun");
    assert!(end(&mut w, id, 4, Err(DropReason::Expired)), "waits");
    assert!(
        !end(&mut w, id, 4, Err(DropReason::Expired)),
        "is not here any more"
    );
    assert!(!end(&mut w, best, 2, Ok(())), "of another topic");
    assert!(!end(&mut w, TopicId(99), 2, Ok(())), "of none");
    w.check_books();
    assert_eq!((stats(&w).queued, stats(&w).sent), (2, 1));
    assert_eq!(w.nodes[0].radio.stats().queued_bytes, queued - 60_200);
    w.medium.set_loss(w.now, Loss::NONE);
    w.run(Duration::from_secs(3));
    w.check_books();
    // The first may have been sent before the air was lost.
    let arrived = |w: &World| {
        let all = w.nodes[1].sink.delivered["/call"].iter().copied();
        all.filter(|stamp| *stamp != 1).collect::<Vec<_>>()
    };
    assert_eq!(arrived(&w), [2, 5]);
    assert_eq!(w.nodes[1].sink.open(), 0, "nothing half-received is kept");
    let reported: Vec<u64> = outcomes(&mut w, 0).keys().map(|(_, stamp)| *stamp).collect();
    assert_eq!(reported, [2, 5], "ended messages have no outcome");
    // The topic continues.
    offer(&mut w, 6, 100);
    w.run(Duration::from_secs(1));
    assert_eq!(arrived(&w), [2, 5, 6]);
}

/// The latched messages that a new session gets go ahead of those that wait, and end later than they do.
#[test]
fn messages_behind_latched_ones_expire_in_their_own_time() {
    let setup = Setup::hops(1);
    let mut w = setup.build();
    let config = TopicConfig {
        latched: true,
        expiry: Some(ms(1_000)),
        ..reliable("/log", 50, 64)
    };
    let topic = w.source(0, config, ms(20), Duration::from_secs(9), fixed(50, 100));
    w.run(ms(3_000));
    w.kill(1);
    w.run(ms(200));
    w.start(1, &setup, 9);
    let state = |w: &World| w.nodes[0].radio.topic_stats(topic).expect("a topic").state;
    while state(&w) != TopicState::Announcing {
        w.run(ms(1));
    }
    // Some wait until the announcement is answered.
    while state(&w) != TopicState::Ready {
        w.run(ms(1));
    }
    w.medium.set_loss(w.now, Loss::Uniform(1.0));
    // The run panics at a timeout that does not move.
    w.run(ms(3_000));
    w.medium.set_loss(w.now, Loss::NONE);
    w.run(Duration::from_secs(8));
    w.check_books();
    let t = w.nodes[0].radio.topic_stats(topic).expect("a topic");
    assert!(t.drops.count(DropReason::Expired) > 0 && t.queued == 0, "{t:?}");
}

#[test]
fn a_source_that_is_faster_than_the_radio_gets_long_messages_through() {
    // Limited by its depth, and by the limit on all waiting messages (64 MiB).
    for depth in [5, 200] {
        let mut w = Setup::path(ms(10), LOSS_20).build();
        let image = Geometry::new(64, &[1_000_000]).expect("fits");
        // The radio takes half a second and more for each, during which ten arrive: each waiting message would be given
        // up before it is sent.
        w.later(
            0,
            reliable("/image", 10, depth),
            (ms(1_000), ms(50), 1_200),
            image,
        );
        w.run(Duration::from_secs(80));
        w.check_books();
        w.print("long messages faster than the radio");
        let arrived = delivered_in_order(&w, 1, "/image");
        assert!(arrived >= 20, "{depth}: {arrived}");
        let stats = w.nodes[0].radio.topics().next().expect("a topic").1;
        let reason = if depth == 5 {
            DropReason::Replaced
        } else {
            DropReason::Overflow
        };
        assert!(stats.drops.count(reason) > 0, "{:?}", stats.drops);
    }
}
