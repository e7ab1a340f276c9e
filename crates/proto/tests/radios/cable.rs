//! A cable without a rate: nothing is paced, and receipts alone limit the data on the way.

use crate::common::*;
use proto::*;
use stats::Time;
use std::collections::VecDeque;
use std::time::Duration;

const IN_FLIGHT: usize = 64;

struct End {
    radio: Radio<Blob>,
    peer: PeerId,
    sink: Recorder,
}

impl End {
    fn new(session: u32, joined: u32, holds: u32) -> End {
        let mut radio = Radio::new(RadioConfig {
            unrated_cable: true,
            in_flight: IN_FLIGHT as u32,
            holds,
            yields: false,
            host: u64::from(session),
            ..RadioConfig::new(session, AirtimeModel::bytes(1_000_000_000, 66).with_gain(1.0))
        })
        .expect("a valid radio");
        let peer = radio
            .add_peer(
                Time::ZERO,
                PeerConfig {
                    joined,
                    ..PeerConfig::default()
                },
            )
            .expect("a valid peer");
        End {
            radio,
            peer,
            sink: Recorder::default(),
        }
    }

    /// Datagrams that leave now, with their priorities.
    fn leaves(&mut self, now: Time) -> VecDeque<(u8, Vec<u8>)> {
        let mut all = VecDeque::new();
        let mut datagram = Vec::new();
        while let Transmit::Datagram { priority, .. } = self.radio.poll_transmit(now, &mut datagram) {
            all.push_back((priority, datagram.clone()));
        }
        all
    }

    fn takes(&mut self, now: Time, datagram: &[u8]) {
        self.sink.now = now;
        self.radio
            .handle(now, self.peer, datagram, &mut self.sink)
            .expect("is understood");
    }

    fn offer(&mut self, now: Time, topic: TopicId, seed: u64, bytes: u32) {
        let message = Message {
            body: Blob {
                seed,
                geometry: Geometry::new(0, &[bytes]).expect("a geometry"),
            },
            stamp: Time(seed),
            origin: 0,
            route: None,
            expires: None,
        };
        self.radio.offer(now, topic, message).expect("is taken");
    }
}

/// Two ends that know each other and these topics of the first.
fn met(topics: &[TopicConfig]) -> (Time, End, End, Vec<TopicId>) {
    met_over(1, 0, topics)
}

/// The same over carriers that make one datagram of `joined`, where each end holds `holds` datagrams until it reads
/// them.
fn met_over(joined: u32, holds: u32, topics: &[TopicConfig]) -> (Time, End, End, Vec<TopicId>) {
    let (mut a, mut b) = (End::new(1, joined, holds), End::new(2, joined, holds));
    let topics: Vec<_> = topics
        .iter()
        .map(|t| {
            a.radio
                .add_topic(Time::ZERO, a.peer, t.clone())
                .expect("a valid topic")
        })
        .collect();
    let mut now = Time::ZERO;
    for _ in 0..1000 {
        now += Duration::from_millis(1);
        a.radio.handle_timeout(now, &mut a.sink);
        b.radio.handle_timeout(now, &mut b.sink);
        a.leaves(now).iter().for_each(|(_, d)| b.takes(now, d));
        b.leaves(now).iter().for_each(|(_, d)| a.takes(now, d));
    }
    let ready = |t: &TopicId| a.radio.topic_stats(*t).expect("a topic").state == TopicState::Ready;
    assert!(topics.iter().all(ready));
    (now, a, b, topics)
}

#[test]
fn as_much_goes_at_once_as_may_be_on_the_way_and_the_urgent_passes() {
    let (now, mut a, mut b, topics) = met(&[topic("/flow", 10, 8), topic("/joystick", 120, 1)]);
    (0..8).for_each(|i| a.offer(now, topics[0], i, 64_000));
    let mut way = a.leaves(now);
    assert!((IN_FLIGHT..IN_FLIGHT + 4).contains(&way.len()), "{}", way.len());
    assert!(way.iter().all(|(p, _)| *p == 10));
    // The limit is for the flow.
    a.offer(now, topics[1], 99, 40);
    let urgent = a.leaves(now);
    assert_eq!(urgent.iter().map(|(p, _)| *p).collect::<Vec<_>>(), [120]);
    way.extend(urgent);
    // A part of them is enough for a receipt, and the same number follows.
    for (_, datagram) in way.drain(..IN_FLIGHT / 4) {
        b.takes(now, &datagram);
    }
    let receipts = b.leaves(now);
    assert_eq!(receipts.len(), 1);
    receipts.iter().for_each(|(_, d)| a.takes(now, d));
    let more = a.leaves(now);
    let most = IN_FLIGHT / 4;
    assert!((most - 4..=most).contains(&more.len()), "{}", more.len());
}

#[test]
fn a_flow_goes_on_as_receipts_come_and_lost_ones_stop_it_for_a_moment_only() {
    let (mut now, mut a, mut b, topics) = met(&[topic("/flow", 10, 64)]);
    (0..64).for_each(|i| a.offer(now, topics[0], i, 64_000));
    let mut all = 0;
    for round in 0..4000 {
        now += Duration::from_micros(100);
        a.radio.handle_timeout(now, &mut a.sink);
        b.radio.handle_timeout(now, &mut b.sink);
        for (_, d) in a.leaves(now) {
            all += 1;
            b.takes(now, &d);
        }
        for (_, d) in b.leaves(now) {
            // The first receipts are all lost.
            if round > 3 {
                a.takes(now, &d);
            }
        }
    }
    assert_eq!(b.sink.delivered["/flow"], (0..64).collect::<Vec<u64>>());
    assert!(all < 64 * 50, "{all} datagrams");
    let p = a.radio.peer_stats(a.peer).expect("a peer");
    assert_eq!(
        (p.rate_source, p.in_flight_most),
        (RateSource::Unlimited, IN_FLIGHT as u64)
    );
}

/// Largest amount of a saturated flow on the way over a cable of this delay, in the last tenth of its 0.3 s.
pub(crate) fn most_on_the_way(delay: Duration, holds: u32, joystick: bool) -> usize {
    let (start, mut a, mut b, topics) =
        met_over(1, holds, &[topic("/flow", 10, 64), topic("/joystick", 120, 1)]);
    let mut ways: [VecDeque<(Time, Vec<u8>)>; 2] = Default::default();
    let (mut now, mut most) = (start, 0);
    for round in 0..3000 {
        now += Duration::from_micros(100);
        a.offer(now, topics[0], round, 64_000);
        if joystick && round % 1000 == 0 {
            a.offer(now, topics[1], round, 40);
        }
        a.radio.handle_timeout(now, &mut a.sink);
        b.radio.handle_timeout(now, &mut b.sink);
        let mut cross = |way: usize, from: &mut End, to: &mut End| {
            let way = &mut ways[way];
            way.extend(from.leaves(now).into_iter().map(|(_, d)| (now + delay, d)));
            let come = way.partition_point(|(at, _)| *at <= now);
            way.drain(..come).for_each(|(_, d)| to.takes(now, &d));
        };
        cross(0, &mut a, &mut b);
        cross(1, &mut b, &mut a);
        if round >= 2700 {
            most = most.max(a.radio.peer_stats(a.peer).expect("a peer").in_flight as usize);
        }
    }
    most
}

#[test]
fn more_is_in_flight_to_the_holder_while_nothing_urgent_goes() {
    let most = |delay_us, holds, joystick| most_on_the_way(Duration::from_micros(delay_us), holds, joystick);
    let wide = most(1000, 300, false);
    assert!((290..310).contains(&wide), "{wide}");
    for (delay_us, holds, joystick, why) in [
        (1000, 0, false, "it does not say what it holds"),
        (1000, 20, false, "it holds less than the bound"),
        (1000, 300, true, "a joystick goes beside"),
        (5000, 300, false, "much is delayed already"),
    ] {
        let narrow = most(delay_us, holds, joystick);
        assert!(
            (IN_FLIGHT - 4..IN_FLIGHT + 10).contains(&narrow),
            "{narrow} although {why}"
        );
    }
}

#[test]
pub(crate) fn joined_datagrams_count_as_their_pieces_and_are_best_effort_only() {
    const JOINED: usize = 8;
    let one = PeerConfig::default().max_datagram;
    let reliable = TopicConfig {
        reliability: Reliability::Reliable,
        ..topic("/log", 10, 8)
    };
    let redundant = TopicConfig {
        reliability: Reliability::Redundant,
        ..topic("/map", 10, 8)
    };
    let (mut now, mut a, mut b, topics) =
        met_over(JOINED as u32, 0, &[topic("/flow", 10, 8), reliable, redundant]);
    let in_flight = |a: &End| {
        let stats = a.radio.peer_stats(a.peer).expect("a peer");
        stats.in_flight as usize
    };
    // Announcements, which no receipt has covered.
    let before = in_flight(&a);
    (0..8).for_each(|i| a.offer(now, topics[0], i, 64_000));
    let way = a.leaves(now);
    let pieces: usize = way.iter().map(|(_, d)| d.len().div_ceil(one)).sum();
    assert!(
        (IN_FLIGHT..IN_FLIGHT + JOINED).contains(&(before + pieces)),
        "{pieces}"
    );
    assert!(way.len() <= IN_FLIGHT / JOINED + 1, "{}", way.len());
    assert!(way.iter().all(|(_, d)| d.len() <= JOINED * one));
    assert_eq!(in_flight(&a), before + pieces);
    way.iter().for_each(|(_, d)| b.takes(now, d));
    let mut exchange = |a: &mut End, most: usize| {
        for _ in 0..1000 {
            now += Duration::from_micros(100);
            a.radio.handle_timeout(now, &mut a.sink);
            b.radio.handle_timeout(now, &mut b.sink);
            for (_, d) in a.leaves(now) {
                assert!(d.len() <= most, "{} bytes", d.len());
                b.takes(now, &d);
            }
            b.leaves(now).iter().for_each(|(_, d)| a.takes(now, d));
        }
        now
    };
    let now = exchange(&mut a, JOINED * one);
    for i in 0..8 {
        a.offer(now, topics[1], i, 20_000);
        a.offer(now, topics[2], i, 20_000);
    }
    exchange(&mut a, one);
    for name in ["/flow", "/log", "/map"] {
        assert_eq!(b.sink.delivered[name], (0..8).collect::<Vec<u64>>(), "{name}");
    }
    assert!(in_flight(&a) < IN_FLIGHT / 4, "receipts covered the rest");
}

#[test]
fn impossible_numbers_of_joined_datagrams_are_refused() {
    let mut end = End::new(1, 1, 0);
    for (joined, max_datagram) in [(0, 1472), (45, 1472), (u32::MAX, 65507)] {
        let peer = PeerConfig {
            joined,
            max_datagram,
            ..PeerConfig::default()
        };
        let error = end.radio.add_peer(Time::ZERO, peer).expect_err("is refused");
        assert!(error.to_string().contains("joined"), "{error}");
    }
}

#[test]
fn datagrams_that_are_to_be_shorter_carry_what_was_begun_when_they_were_longer() {
    let kinds = [
        ("/best", Reliability::BestEffort),
        ("/reliable", Reliability::Reliable),
        ("/redundant", Reliability::Redundant),
        ("/bulk", Reliability::Bulk),
    ];
    let mut w = Setup::hops(1).build();
    for (name, reliability) in kinds {
        let config = TopicConfig {
            reliability,
            ordering: Ordering::Any,
            ..topic(name, 50, 8)
        };
        w.later(
            0,
            config,
            (ms(1000), ms(500), 6),
            Geometry::new(12, &[30_000]).expect("good"),
        );
    }
    w.run(ms(1010));
    for (after, most) in [(700, 474), (700, 1438), (700, 100), (10_000, 100_000)] {
        let peer = w.nodes[0].peer;
        w.nodes[0].radio.set_max_datagram(peer, most);
        w.run(ms(after));
    }
    w.check_books();
    for (name, _) in kinds {
        assert_eq!(w.nodes[1].sink.delivered[name].len(), 6, "{name}");
    }
}
