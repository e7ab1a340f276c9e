//! Two ends find each other, datagram by datagram.

use crate::common::*;
use proto::*;
use stats::{DropReason, Time};

/// An end that knows one peer, and announces one topic to it.
struct End {
    radio: Radio<Blob>,
    peer: PeerId,
    sink: Recorder,
}

impl End {
    fn new(session: u32) -> End {
        let mut radio =
            Radio::new(RadioConfig::new(session, AirtimeModel::unlimited())).expect("a valid configuration");
        let peer = radio
            .add_peer(Time::ZERO, PeerConfig::default())
            .expect("a valid peer");
        radio
            .add_topic(Time::ZERO, peer, topic("/scan", 100, 1))
            .expect("a valid topic");
        End {
            radio,
            peer,
            sink: Recorder::default(),
        }
    }

    /// Everything that it sends now.
    fn send(&mut self, now: Time) -> Vec<Vec<u8>> {
        self.radio.handle_timeout(now, &mut self.sink);
        let mut datagram = Vec::new();
        std::iter::from_fn(|| match self.radio.poll_transmit(now, &mut datagram) {
            Transmit::Datagram { .. } => Some(datagram.clone()),
            Transmit::Wait(_) | Transmit::Idle => None,
        })
        .collect()
    }

    fn take(&mut self, now: Time, datagrams: Vec<Vec<u8>>) {
        for d in datagrams {
            self.radio
                .handle(now, self.peer, &d, &mut self.sink)
                .expect("an honest datagram");
        }
    }
}

/// The robot has just greeted when the base's answer shows that it is known; its own answer may only follow 50 ms after
/// its greeting. Returns when that is.
fn one_knows(robot: &mut End, base: &mut End) -> Time {
    drop(base.send(Time::ZERO));
    let hello = robot.send(Time::from_millis(40));
    base.take(Time::from_millis(40), hello);
    let now = Time::from_millis(50);
    let answer = base.send(now);
    robot.take(now, answer);
    assert_eq!((robot.sink.ups.len(), base.sink.ups.len()), (1, 0));
    now
}

#[test]
fn a_host_that_comes_up_says_so_in_its_first_datagram() {
    let (mut robot, mut base) = (End::new(1), End::new(2));
    let now = one_knows(&mut robot, &mut base);
    let first = robot.send(now).into_iter().take(1).collect();
    base.take(now, first);
    assert_eq!(base.sink.ups.len(), 1);
}

#[test]
fn announcements_of_a_peer_are_ignored_until_it_is_up() {
    let (mut robot, mut base) = (End::new(1), End::new(2));
    let now = one_knows(&mut robot, &mut base);
    // Its first datagrams get lost, except the last, which announces the topic.
    let last = robot.send(now).pop().into_iter().collect();
    base.take(now, last);
    assert!(base.sink.ups.is_empty() && base.sink.names.is_empty());
    for ms in 51..2_000 {
        let now = Time::from_millis(ms);
        let reported = robot.send(now);
        base.take(now, reported);
        let answers = base.send(now);
        robot.take(now, answers);
    }
    assert_eq!((base.sink.ups.len(), base.sink.names.len()), (1, 1));
}

#[test]
fn an_announcement_that_never_fits_is_refused() {
    let mut setup = Setup::hops(1);
    setup.receive.max_announcing_bytes = 4_096;
    let mut w = setup.build();
    let large = TopicConfig {
        definition: "x".repeat(5_000),
        ..topic("/map", 1, 1)
    };
    w.source(0, large, ms(100), ms(1_000), fixed(50, 950));
    w.source(0, topic("/laser", 100, 5), ms(20), ms(1_000), fixed(50, 950));
    w.run(ms(2_000));
    let states: Vec<TopicState> = w.nodes[0].radio.topics().map(|(_, t)| t.state).collect();
    assert_eq!(states, [TopicState::Refused, TopicState::Ready]);
    let dropped = &w.nodes[1]
        .radio
        .peer_stats(w.nodes[1].peer)
        .expect("a peer")
        .drops;
    assert!(dropped.count(DropReason::TooLarge) >= 1);
}

#[test]
fn a_peer_of_another_version_is_seen_to_be_one() {
    let (mut robot, mut base) = (End::new(1), End::new(2));
    let peer = robot.peer;
    let mut old = base.send(Time::ZERO).remove(0);
    old[0] = old[0] & 0xF0 | (VERSION - 1);
    let heard = robot.radio.handle(Time::ZERO, peer, &old, &mut robot.sink);
    assert!(matches!(heard, Err(PacketError::Version { .. })), "{heard:?}");
    let seen = |end: &End| end.radio.peer_stats(peer).expect("a peer").other_version;
    assert_eq!(seen(&robot), Some(VERSION - 1));
    // Nothing of that is left once it was updated.
    let new = base.send(Time::from_millis(200));
    robot.take(Time::from_millis(200), new);
    assert_eq!(seen(&robot), None);
}
