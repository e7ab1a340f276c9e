//! Topics that are sent only while someone at the receiver watches them.

use crate::common::*;
use proto::*;
use stats::DropReason;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn setup() -> Setup {
    Setup {
        states_watched: true,
        ..Setup::hops(1)
    }
}

fn when_watched(config: TopicConfig) -> TopicConfig {
    TopicConfig {
        when_watched: true,
        ..config
    }
}

/// A link's receiving end states what it knows of every topic that asks for it.
fn state(w: &mut World, watched: bool) {
    let n = &mut w.nodes[1];
    let asks: Vec<_> = n.radio.remote_topics(n.peer).map(|(id, _)| id).collect();
    for id in asks {
        if n.radio.asks_watched(n.peer, id) {
            n.radio.state_watched(n.peer, id, watched);
        }
    }
}

fn stats(w: &World, id: TopicId) -> TopicStats {
    w.nodes[0].radio.topic_stats(id).expect("a topic")
}

fn came(w: &World, name: &str) -> usize {
    w.nodes[1].sink.delivered.get(name).map_or(0, Vec::len)
}

#[test]
fn nothing_is_sent_before_someone_watches_and_after_the_last_has_left() {
    for reliability in [Reliability::BestEffort, Reliability::Reliable] {
        let mut w = setup().build();
        // Statements and their confirmations get lost, arrive twice, and late.
        w.faults = Faults {
            loss: 0.2,
            duplicate: 0.2,
            reorder: 0.2,
            late: ms(30),
        };
        let config = TopicConfig {
            reliability,
            ..when_watched(topic("/image", 10, 2))
        };
        let id = w.source(0, config, ms(50), 20 * SECOND, fixed(50, 9_000));
        w.run(2 * SECOND);
        assert_eq!(stats(&w, id).state, TopicState::Unwatched, "until it is known");
        state(&mut w, false);
        w.run(2 * SECOND);
        assert_eq!(stats(&w, id).state, TopicState::Unwatched);
        assert_eq!((stats(&w, id).fragments, stats(&w, id).offered), (0, 0));
        assert!(stats(&w, id).rested > Some(30));

        state(&mut w, true);
        w.run(3 * SECOND);
        assert_eq!(stats(&w, id).state, TopicState::Ready);
        assert!(came(&w, "/image") > 3, "{}", came(&w, "/image"));

        state(&mut w, false);
        w.run(3 * SECOND);
        let (fragments, queued) = (stats(&w, id).fragments, stats(&w, id).queued);
        w.run(3 * SECOND);
        assert_eq!(stats(&w, id).fragments, fragments);
        assert_eq!(queued, 0);
        w.check_books();

        let before = came(&w, "/image");
        state(&mut w, true);
        w.run(3 * SECOND);
        assert!(came(&w, "/image") > before + 3);
        w.check_books();
    }
}

#[test]
fn messages_waiting_when_the_last_watcher_leaves_are_dropped_for_that_reason() {
    let mut w = setup().build();
    // More than the radio carries.
    let id = w.source(
        0,
        when_watched(topic("/image", 10, 8)),
        ms(50),
        20 * SECOND,
        fixed(50, 200_000),
    );
    w.run(SECOND);
    state(&mut w, true);
    w.run(3 * SECOND);
    assert!(stats(&w, id).queued > 4);
    state(&mut w, false);
    w.run(SECOND / 4);
    assert_eq!(stats(&w, id).queued, 0);
    assert!(stats(&w, id).drops.count(DropReason::Unwatched) > 4);
    assert_eq!(w.nodes[1].sink.open(), 0, "nothing half-received is kept");
    w.check_books();
}

#[test]
fn late_watchers_of_a_latched_topic_get_its_newest_messages_once() {
    let mut w = setup().build();
    let config = TopicConfig {
        latched: true,
        reliability: Reliability::Reliable,
        expiry: Some(10 * SECOND),
        ..when_watched(topic("/map", 10, 2))
    };
    let g = Geometry::new(50, &[5_000]).expect("a geometry");
    let id = w.later(0, config, (SECOND, ms(100), 5), g);
    w.run(2 * SECOND);
    state(&mut w, false);
    w.run(SECOND);
    assert_eq!((came(&w, "/map"), stats(&w, id).fragments), (0, 0));
    state(&mut w, true);
    w.run(SECOND);
    assert_eq!(came(&w, "/map"), 2, "the newest, as many as the depth");
    // Nothing changes while nobody watches: the receiver has it already.
    state(&mut w, false);
    w.run(SECOND);
    state(&mut w, true);
    w.run(SECOND);
    assert_eq!(came(&w, "/map"), 2);
    state(&mut w, false);
    w.run(SECOND);
    w.again(0, 1, ms(100));
    w.run(SECOND);
    assert_eq!(came(&w, "/map"), 2);
    state(&mut w, true);
    w.run(SECOND);
    assert_eq!(came(&w, "/map"), 3, "the message of meanwhile");
    w.check_books();
}

#[test]
fn each_end_may_restart_and_the_air_may_fail() {
    let setup = setup();
    let mut w = setup.build();
    let config = || when_watched(topic("/image", 10, 2));
    let id = w.source(0, config(), ms(50), 60 * SECOND, fixed(50, 9_000));
    w.run(SECOND);
    state(&mut w, true);
    w.run(2 * SECOND);
    assert_eq!(stats(&w, id).state, TopicState::Ready);

    // The receiver forgets what it stated, and so does the sender.
    w.nodes[1].on = false;
    w.run(3 * SECOND);
    w.start(1, &setup, 5);
    w.run(2 * SECOND);
    assert_eq!(stats(&w, id).state, TopicState::Unwatched);
    let before = came(&w, "/image");
    state(&mut w, true);
    w.run(2 * SECOND);
    assert!(came(&w, "/image") > before + 10);

    // A silence: the statement that changes meanwhile arrives once the air is back.
    w.faults.loss = 1.0;
    w.run(3 * SECOND);
    assert_eq!(stats(&w, id).state, TopicState::NoPeer);
    state(&mut w, false);
    w.run(SECOND);
    w.faults.loss = 0.0;
    w.run(3 * SECOND);
    assert_eq!(stats(&w, id).state, TopicState::Unwatched);
    w.check_books();

    // The sender restarts, and its topic keeps its number by chance.
    state(&mut w, true);
    w.run(SECOND);
    w.kill(0);
    w.run(3 * SECOND);
    w.start(0, &setup, 9);
    let id = w.source(0, config(), ms(50), 60 * SECOND, fixed(50, 9_000));
    w.run(2 * SECOND);
    assert_eq!(
        (stats(&w, id).state, stats(&w, id).sent),
        (TopicState::Unwatched, 0)
    );
    state(&mut w, true);
    w.run(2 * SECOND);
    assert!(stats(&w, id).sent > 10);
    w.check_books();
}

#[test]
fn a_topic_that_is_withdrawn_and_comes_back_asks_again() {
    let mut w = setup().build();
    let config = || when_watched(topic("/image", 10, 2));
    let id = w.source(0, config(), ms(50), 60 * SECOND, fixed(50, 900));
    w.run(SECOND);
    state(&mut w, true);
    w.run(SECOND);
    assert_eq!(stats(&w, id).state, TopicState::Ready);
    // At once: the receiver may never see the withdrawal.
    let now = w.now;
    let n = &mut w.nodes[0];
    n.radio.withdraw_topic(now, id).expect("a topic");
    assert_eq!(n.radio.add_topic(now, n.peer, config()), Ok(id));
    w.run(SECOND);
    state(&mut w, true);
    w.run(SECOND);
    let sent = stats(&w, id).sent;
    w.run(SECOND);
    assert_eq!(stats(&w, id).state, TopicState::Ready);
    assert!(stats(&w, id).sent > sent);
    // A change of its settings is an announcement, too, but nothing has to be stated again.
    let now = w.now;
    w.nodes[0].radio.set_priority(now, id, 30).expect("a topic");
    w.run(SECOND);
    assert_eq!(stats(&w, id).state, TopicState::Ready);
    w.check_books();
}

#[test]
fn a_peer_that_states_nothing_gets_everything() {
    let mut w = setup().build();
    w.start(1, &Setup::hops(1), 2);
    let id = w.source(
        0,
        when_watched(topic("/image", 10, 2)),
        ms(50),
        3 * SECOND,
        fixed(50, 900),
    );
    w.run(SECOND);
    let announced = &w.nodes[1].sink.names[&RemoteTopic(id.0)];
    assert!(!announced.when_watched, "it would refuse the announcement");
    w.run(3 * SECOND);
    assert_eq!(stats(&w, id).rested, None);
    assert!(came(&w, "/image") > 50);
    w.check_books();
}

#[test]
fn topics_that_are_always_sent_cost_nothing_more() {
    let run = |setup: Setup| {
        let mut w = setup.build();
        w.source(0, topic("/laser", 100, 5), ms(20), 3 * SECOND, fixed(50, 950));
        w.run(4 * SECOND);
        state(&mut w, true);
        w.run(SECOND);
        let all = w.nodes.iter().map(|n| n.radio.stats());
        all.map(|s| (s.datagrams, s.bytes)).collect::<Vec<_>>()
    };
    assert_eq!(run(setup()), run(Setup::hops(1)));
}
