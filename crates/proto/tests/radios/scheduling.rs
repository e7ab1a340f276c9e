//! Order, limits and changes at run time.

use crate::common::*;
use proto::*;
use stats::{DropReason, Time};
use std::time::Duration;

const RUN: Duration = Duration::from_secs(10);

#[test]
fn three_flows_have_their_priorities() {
    let mut w = Setup::hops(1).build();
    w.source(0, topic("/joystick", 120, 2), ms(10), RUN, fixed(24, 40));
    w.source(0, topic("/laser", 100, 5), ms(20), RUN, fixed(50, 950));
    w.source(0, topic("/image", 10, 2), ms(150), RUN, fixed(50, 63_950));
    w.run(RUN + ms(2000));
    w.print("three flows");
    w.check_books();
    let d = [0, 1, 2].map(|i| w.metrics(i).delay_ms.mean);
    assert!(d[0] < d[1] && d[1] < d[2], "{d:?}");
    assert!((0..3).all(|i| w.metrics(i).delivery == 1.0));
}

#[test]
fn a_message_that_more_important_ones_interrupt_for_seconds_arrives() {
    let mut w = Setup::hops(1).build();
    w.later(
        0,
        topic("/file", 10, 2),
        (ms(1000), ms(1), 1),
        Geometry::new(0, &[60_000]).expect("fits"),
    );
    // More than the radio carries, for four seconds.
    let video = Geometry::new(0, &[9_000]).expect("fits");
    w.later(0, topic("/video", 100, 2), (ms(1040), ms(10), 400), video);
    w.run(ms(8000));
    w.print("an interruption");
    w.check_books();
    let file = w.metrics(0);
    assert!(file.delivery == 1.0 && file.delay_ms.mean > 3000.0, "{file:?}");
}

#[test]
fn equals_share_alike_whatever_their_sizes() {
    let mut w = Setup::hops(1).build();
    // Two topics saturate the radio with different sizes; a third needs little and gets it at once.
    let bulk = [
        w.source(0, topic("/a", 50, 2), ms(40), RUN, fixed(0, 60_000)),
        w.source(0, topic("/b", 50, 2), ms(8), RUN, fixed(0, 9_000)),
    ];
    w.source(0, topic("/c", 50, 2), ms(50), RUN, fixed(0, 900));
    w.run(RUN);
    let air = bulk.map(|t| {
        w.nodes[0]
            .radio
            .topic_stats(t)
            .expect("a topic")
            .air
            .as_secs_f64()
    });
    assert!((air[0] / air[1] - 1.0).abs() < 0.05, "{air:?}");
    let c = w.metrics(2);
    assert!(c.delivery > 0.98 && c.delay_ms.p99 < 8.0, "{c:?}");
}

#[test]
fn the_earlier_deadline_goes_first_and_what_is_late_costs_no_air() {
    let mut w = Setup::hops(1).build();
    let with = |name: &str, d| TopicConfig {
        deadline: Some(ms(d)),
        ..topic(name, 50, 50)
    };
    let slow = w.source(0, with("/slow", 60), ms(10), RUN, fixed(0, 9_000));
    w.source(0, with("/quick", 15), ms(50), RUN, fixed(0, 4_000));
    w.run(RUN + ms(1000));
    w.check_books();
    let (slow_m, quick) = (w.metrics(0), w.metrics(1));
    assert!(quick.delivery > 0.95, "{quick:?}");
    // One frame may still contend after its message's deadline was found to be in reach.
    assert!(
        slow_m.delay_ms.max < 65.0 && quick.delay_ms.max < 20.0,
        "{slow_m:?} {quick:?}"
    );
    let t = w.nodes[0].radio.topic_stats(slow).expect("a topic");
    assert!(t.drops.count(DropReason::Expired) > 200, "{}", t.drops);
    // Hardly any air went into messages that were given up half-way.
    assert!(
        t.fragments as f64 / (t.sent as f64 * 7.0) < 1.1,
        "{} fragments for {} messages",
        t.fragments,
        t.sent
    );
}

#[test]
fn only_the_newest_wait_and_the_bound_spares_the_important() {
    let mut w = Setup::hops(1).build();
    let mut config = RadioConfig::new(7, AirtimeModel::wifi(6_000_000));
    config.max_queued_bytes = 40_000;
    let n = &mut w.nodes[0];
    n.radio = Radio::new(config).expect("valid");
    n.peer = n
        .radio
        .add_peer(Time::ZERO, PeerConfig::default())
        .expect("valid");
    let low = n
        .radio
        .add_topic(Time::ZERO, n.peer, topic("/low", 1, 3))
        .expect("valid");
    let high = n
        .radio
        .add_topic(Time::ZERO, n.peer, topic("/high", 9, 100))
        .expect("valid");
    w.run(ms(1000));
    let now = w.now;
    let blob = |i: u64, n: u32| {
        let geometry = Geometry::new(n, &[]).expect("valid");
        Message::new(
            Blob {
                seed: now.0 + i,
                geometry,
            },
            Time(now.0 + i),
        )
    };
    let radio = &mut w.nodes[0].radio;
    for i in 0..5 {
        radio.offer(now, low, blob(i, 9_000)).expect("it waits");
    }
    let count = |r: &Radio<Blob>, t, reason| r.topic_stats(t).expect("a topic").drops.count(reason);
    assert_eq!(count(radio, low, DropReason::Replaced), 2);
    for i in 10..14 {
        radio.offer(now, high, blob(i, 9_000)).expect("it waits");
    }
    assert_eq!(count(radio, low, DropReason::Overflow), 3, "of seven, four fit");
    assert_eq!(radio.offer(now, low, blob(20, 9_000)), Err(DropReason::Overflow));
    assert_eq!(count(radio, high, DropReason::Overflow), 0);
    assert_eq!(radio.stats().queued_bytes, 36_000);
    radio.set_depth(now, high, 1).expect("valid");
    assert_eq!(
        (
            count(radio, high, DropReason::Replaced),
            radio.stats().queued_bytes
        ),
        (3, 9_000)
    );
    assert_eq!(
        radio.offer(now, high, blob(21, 50_000)),
        Err(DropReason::TooLarge)
    );
    w.run(ms(1000));
    assert_eq!(w.nodes[1].sink.delivered["/high"], [now.0 + 13]);
    assert_eq!(w.nodes[0].radio.stats().queued_bytes, 0);
}

#[test]
fn a_rate_limit_keeps_an_even_rate_of_a_jittering_source() {
    let mut w = Setup::hops(1).build();
    let events = times(&mut medium::Rng::new(3), 100.0, RUN, ms(8));
    let geometry = Geometry::new(500, &[]).expect("valid");
    let config = TopicConfig {
        max_rate: Some(20.0),
        ..topic("/odom", 50, 5)
    };
    let odom = w.source_of(0, config, events.into_iter().map(|t| (t, geometry)).collect());
    w.run(RUN / 2 + ms(500));
    let half = w.metrics(0).received;
    assert!((98..=102).contains(&half), "{half}");
    w.nodes[0].radio.set_max_rate(odom, None).expect("valid");
    w.run(RUN);
    assert!(w.metrics(0).received > 580, "{}", w.metrics(0).received);
    let m = w.metrics(0);
    assert_eq!(m.sent - m.received, m.drops.count(DropReason::RateLimit));
}

#[test]
fn priorities_change_while_running_and_the_receiver_learns_of_it() {
    let mut w = Setup::hops(1).build();
    let laser = w.source(0, topic("/laser", 5, 5), ms(20), RUN, fixed(50, 950));
    w.source(0, topic("/image", 10, 2), ms(150), RUN, fixed(50, 63_950));
    w.run(ms(5000));
    let before = w.metrics(0).delay_ms.p99;
    w.nodes[1].sink.flows.clear();
    w.nodes[0].radio.set_priority(w.now, laser, 100).expect("valid");
    w.run(RUN);
    let after = w.metrics(0).delay_ms.p99;
    assert!(after * 5.0 < before, "{before} ms before, {after} ms after");
    assert!(
        w.nodes[1]
            .sink
            .names
            .values()
            .any(|a| a.name == "/laser" && a.priority == 100)
    );
    assert_eq!(
        w.metrics(0).drops.total() - w.metrics(0).drops.count(DropReason::Replaced),
        0
    );
}

#[test]
fn several_settings_change_together_or_not_at_all() {
    let mut w = Setup::hops(1).build();
    let laser = w.source(0, topic("/laser", 5, 5), ms(20), RUN, fixed(50, 950));
    w.run(ms(2000));
    let radio = &mut w.nodes[0].radio;
    let wrong = TopicChange {
        priority: Some(100),
        max_rate: Some(Some(-1.0)),
        ..TopicChange::default()
    };
    assert_eq!(
        radio.set_topic(w.now, laser, wrong),
        Err(TopicError::Rate { hz: -1.0 })
    );
    assert_eq!(radio.topic_stats(laser).expect("a topic").priority, 5);
    let right = TopicChange {
        max_rate: Some(Some(10.0)),
        ..wrong
    };
    radio.set_topic(w.now, laser, right).expect("valid");
    let before = w.metrics(0).received;
    w.run(ms(5000));
    let received = w.metrics(0).received - before;
    assert!((49..=52).contains(&received), "{received}");
    assert!(w.nodes[1].sink.names.values().any(|a| a.priority == 100));
}

#[test]
fn small_messages_go_along_and_delay_the_important_little() {
    let alone = |with_small: bool| {
        let mut w = Setup::hops(1).build();
        w.source(0, topic("/scan", 100, 5), ms(33), RUN, fixed(31, 2_600));
        if with_small {
            w.source(0, topic("/tf", 90, 20), ms(3), RUN, fixed(10, 90));
        }
        w.run(RUN + ms(500));
        (
            w.metrics(0).delay_ms.mean,
            w.nodes[0].radio.stats().datagrams,
            w.metrics(with_small.into()).delivery,
        )
    };
    let ((without, few, _), (with, many, delivery)) = (alone(false), alone(true));
    assert_eq!(delivery, 1.0);
    assert!(many - few < 3_250, "some of 3334 went along: {}", many - few);
    assert!(with < without + 1.0, "{with} ms beside {without} ms");
}

#[test]
fn without_a_rate_nothing_waits() {
    let mut w = Setup {
        paced: false,
        ..Setup::hops(1)
    }
    .build();
    let image = w.source(0, topic("/image", 10, 2), ms(150), RUN, fixed(50, 63_950));
    w.run(RUN);
    let t = w.nodes[0].radio.topic_stats(image).expect("a topic");
    assert_eq!((t.sent, t.queued, t.drops.total()), (t.offered, 0, 0));
}

#[test]
fn settings_out_of_bounds_are_named() {
    let refused = |f: &dyn Fn(&mut RadioConfig)| {
        let mut c = RadioConfig::new(1, AirtimeModel::wifi(6_000_000));
        f(&mut c);
        Radio::<Vec<u8>>::new(c).err().expect("refused").to_string()
    };
    assert!(refused(&|c| c.session = 0).contains("session 0"));
    assert!(refused(&|c| c.airtime = c.airtime.with_gain(0.0)).contains("gain is 0"));
    assert!(refused(&|c| c.airtime = c.airtime.with_gain(f64::NAN)).contains("gain is NaN"));
    assert!(refused(&|c| c.name = "n".repeat(65)).contains("65"));
    assert!(refused(&|c| c.keep_alive = Duration::ZERO).contains("keep_alive"));

    let mut r = Radio::<Vec<u8>>::new(RadioConfig::new(1, AirtimeModel::unlimited())).expect("valid");
    let peer = |hops, max_datagram| PeerConfig {
        hops,
        max_datagram,
        ..PeerConfig::default()
    };
    assert_eq!(r.add_peer(Time::ZERO, peer(0, 1472)), Err(PeerError::Hops));
    assert_eq!(
        r.add_peer(Time::ZERO, peer(1, 255)),
        Err(PeerError::Datagram { bytes: 255 })
    );
    let p = r.add_peer(Time::ZERO, PeerConfig::default()).expect("valid");
    let base = topic("/t", 1, 1);
    let mut add = |c| r.add_topic(Time::ZERO, p, c).map(|_| ());
    assert_eq!(
        add(TopicConfig {
            priority: 128,
            ..base.clone()
        }),
        Err(TopicError::Priority { priority: 128 })
    );
    assert_eq!(
        add(TopicConfig {
            depth: 0,
            ..base.clone()
        }),
        Err(TopicError::Depth)
    );
    assert_eq!(
        add(TopicConfig {
            max_rate: Some(0.0),
            ..base.clone()
        }),
        Err(TopicError::Rate { hz: 0.0 })
    );
    assert_eq!(
        add(TopicConfig {
            name: String::new(),
            ..base.clone()
        }),
        Err(TopicError::Name { bytes: 0 })
    );
    let long = "x".repeat(256 * 1024 + 1);
    assert!(matches!(
        add(TopicConfig {
            definition: long,
            ..base.clone()
        }),
        Err(TopicError::Definition { .. })
    ));
    for _ in 0..MAX_TOPICS {
        add(base.clone()).expect("there is room");
    }
    assert_eq!(add(base), Err(TopicError::TooMany));
}

#[test]
fn short_equals_are_finished_one_by_one_and_starve_no_long_one() {
    // Two scans at the same instant: interleaved, both would arrive after three and four frames.
    let mut w = Setup::hops(1).build();
    for name in ["/a", "/b"] {
        w.source(0, topic(name, 50, 2), ms(100), RUN, fixed(0, 2_600));
    }
    w.run(RUN + ms(500));
    let delays = [0, 1].map(|i| w.metrics(i).delay_ms.mean);
    let (first, second) = (delays[0].min(delays[1]), delays[0].max(delays[1]));
    assert!(first < 5.0 && second < 9.5, "{delays:?}");

    // Short messages that would fill the radio alone get only their share next to a long one.
    let mut w = Setup::hops(1).build();
    let short = w.source(0, topic("/short", 50, 2), ms(3), RUN, fixed(0, 3_000));
    let long = w.source(0, topic("/long", 50, 2), ms(100), RUN, fixed(0, 60_000));
    w.run(RUN);
    let air = [short, long].map(|t| {
        w.nodes[0]
            .radio
            .topic_stats(t)
            .expect("a topic")
            .air
            .as_secs_f64()
    });
    assert!((air[0] / air[1] - 1.0).abs() < 0.1, "{air:?}");
}

#[test]
fn decimation_passes_every_nth_message_and_counts_the_others() {
    let mut w = Setup::hops(1).build();
    let config = TopicConfig {
        every: 3,
        ..topic("/odom", 50, 5)
    };
    let geometry = Geometry::new(500, &[]).expect("valid");
    let events = (1..=60)
        .map(|i| (Time::ZERO + ms(1000) + ms(20 * i), geometry))
        .collect();
    let odom = w.source_of(0, config, events);
    w.run(ms(1000 + 20 * 30 + 10));
    assert_eq!(w.metrics(0).received, 10);
    let refused = w.nodes[0].radio.set_every(odom, 0);
    assert!(refused.is_err_and(|e| e.to_string().contains("give 1 to keep all")));
    w.nodes[0].radio.set_every(odom, 1).expect("valid");
    w.run(ms(4000));
    let m = w.metrics(0);
    assert_eq!(
        (m.sent, m.received, m.drops.count(DropReason::RateLimit)),
        (60, 40, 20)
    );
}

#[test]
fn messages_that_wait_fill_every_frame() {
    for (bytes, around, least) in [
        (1_000, 0, 4.8),
        (1_600, 0, 4.8),
        (4_096, 0, 4.8),
        (4_300, 0, 4.8),
        (16_000, 0, 4.8),
        (1_000, QUIC, 4.84),
    ] {
        let mut setup = Setup::hops(1);
        setup.around = around;
        let mut w = setup.build();
        // More than the radio carries.
        let period = Duration::from_nanos(bytes * 8 * 1_000 / 6);
        w.source(
            0,
            topic("/bulk", 50, 8),
            period,
            RUN,
            fixed(50, bytes as u32 - 50),
        );
        w.run(RUN);
        w.print(&format!("saturated, {bytes} B"));
        let m = w.metrics(0);
        assert!(m.mbit_s > least, "{bytes} B, {around} B around: {m:?}");
    }
}
