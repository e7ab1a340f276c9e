//! What late joiners get: the last messages, once, in order, before anything newer.
#![allow(missing_docs)]

mod common;

use bus::{
    EndpointDetail, LoanError, MemoryPolicy, Offer, Publisher, PublisherOptions, Reliability, Stamp,
    Subscriber, SubscriberOptions,
};
use common::raw::{Wishes, entry_word, intrude_with};
use common::{LONG, bus, folder, topic};
use stats::DropReason;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn send(publisher: &Publisher, len: usize) -> Result<u64, LoanError> {
    let loan = publisher.loan(0, &[len])?;
    Ok(publisher.publish(loan, Stamp::default()).unwrap().sequence)
}

fn keeping(history: u32) -> PublisherOptions {
    PublisherOptions::default().with_history(history)
}

/// Sequence, and whether it is history, of all waiting messages.
fn drain(subscriber: &Subscriber) -> Vec<(u64, bool)> {
    std::iter::from_fn(|| subscriber.take().unwrap())
        .map(|m| (m.sequence(), m.is_history()))
        .collect()
}

#[test]
fn a_late_joiner_gets_the_last_messages_and_then_the_new_ones() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic("/a"), keeping(3)).unwrap();
    let early = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    for len in [100, 5_000_000, 0, 70_000, 1_000_000] {
        send(&publisher, len).unwrap();
    }
    assert_eq!(
        drain(&early),
        [(1, false), (2, false), (3, false), (4, false), (5, false)]
    );
    let join = |options| {
        let n = publisher.subscriber_count();
        let subscriber = bus.subscriber(topic("/a"), options).unwrap();
        assert!(publisher.wait_for_subscribers(n + 1, LONG));
        subscriber
    };
    let all = join(SubscriberOptions::default());
    let one = join(SubscriberOptions::default().with_history(1));
    let none = join(SubscriberOptions::default().with_history(0));
    let flat = join(SubscriberOptions::default().with_depth(2));
    // Two messages of 70 kB and 1 MB are too much.
    let modest = join(SubscriberOptions::default().with_max_held_bytes(1_010_000));
    send(&publisher, 64).unwrap();
    assert_eq!(drain(&all), [(3, true), (4, true), (5, true), (6, false)]);
    assert_eq!(drain(&one), [(5, true), (6, false)]);
    assert_eq!(drain(&none), [(6, false)]);
    assert_eq!(
        drain(&flat),
        [(5, true), (6, false)],
        "the queue of two has dropped one"
    );
    assert_eq!(drain(&modest), [(5, true), (6, false)]);
    for (subscriber, lost) in [(&all, 0), (&one, 0), (&none, 0), (&flat, 1), (&modest, 0)] {
        assert_eq!(subscriber.stats().drops.total(), lost);
    }
    assert_eq!(
        drain(&early),
        [(6, false)],
        "those who were there get nothing twice"
    );
}

#[test]
fn a_joiner_that_waits_is_woken_by_history() {
    let dir = folder();
    let bus = bus(&dir);
    let subscriber = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    let publisher = bus.publisher(topic("/a"), keeping(1)).unwrap();
    // Before any subscriber is accepted, or after: both are right.
    send(&publisher, 64).unwrap();
    let message = subscriber.take_timeout(LONG).unwrap().unwrap();
    assert_eq!(message.sequence(), 1);
    // The second joins when nothing more is published.
    let late = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    let message = late.take_timeout(LONG).unwrap().unwrap();
    assert!(message.is_history());
}

/// Subscribers that join at random moments of a stream see a run without gap and without repetition.
#[test]
fn history_and_live_join_without_gap_or_repetition() {
    const JOINERS: usize = 40;
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic("/a"), keeping(4)).unwrap();
    let ended = AtomicBool::new(false);
    let mut with_both = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::SeqCst) {
                send(&publisher, 256).unwrap();
                std::thread::sleep(Duration::from_micros(20));
            }
        });
        for _ in 0..JOINERS {
            let options = SubscriberOptions::default().with_depth(4096);
            let subscriber = bus.subscriber(topic("/a"), options).unwrap();
            let got: Vec<_> = (0..60)
                .map(|_| {
                    let m = subscriber.take_timeout(LONG).unwrap().unwrap();
                    (m.sequence(), m.is_history(), m.lost().total())
                })
                .collect();
            for pair in got.windows(2) {
                assert_eq!(pair[0].0 + 1, pair[1].0, "{got:?}");
                assert!(pair[0].1 || !pair[1].1, "history comes first: {got:?}");
                assert_eq!(pair[1].2, 0);
            }
            with_both += usize::from(got.iter().filter(|g| g.1).count() == 4);
        }
        ended.store(true, Ordering::SeqCst);
    });
    assert!(
        with_both > JOINERS / 2,
        "joins without history prove nothing: {with_both}"
    );
}

#[test]
fn under_pressure_older_history_goes_first_and_the_newest_never() {
    let dir = folder();
    let bus = bus(&dir);
    let options = keeping(4)
        .with_memory_limit(6 << 20)
        .with_subscriber_quota(6 << 20);
    let publisher = bus.publisher(topic("/a"), options).unwrap();
    let early = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    for n in 1..=4 {
        send(&publisher, 1 << 20).unwrap();
        // 1 and 2 are only history; 3 and 4 also wait.
        if n <= 2 {
            drop(early.take().unwrap().unwrap());
        }
    }
    let loans: Vec<_> = (0..3).map(|_| publisher.loan(0, &[1 << 20]).unwrap()).collect();
    assert_eq!(
        publisher.stats().drops.total(),
        0,
        "history goes before what is queued"
    );
    assert_eq!(publisher.stats().refused, 0);
    // Now 3 goes, from the queue and from the history; then only the newest is left.
    drop(publisher.loan(0, &[1 << 20]).unwrap());
    assert_eq!(publisher.stats().drops.count(DropReason::MemoryShort), 1);
    let one_more = publisher.loan(0, &[1 << 20]).unwrap();
    let error = publisher.loan(0, &[1 << 20]).unwrap_err();
    assert!(
        matches!(&error, LoanError::MemoryShort { history, .. } if *history > 1 << 20),
        "{error}"
    );
    let late = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    assert!(publisher.wait_for_subscribers(2, LONG));
    assert_eq!(drain(&late), [(4, true)], "the latched message stays");
    drop((loans, one_more));
}

#[test]
fn worst_effort_gives_up_older_history_before_it_refuses() {
    let dir = folder();
    let bus = bus(&dir);
    let options = keeping(8)
        .with_memory_limit(6 << 20)
        .with_memory_policy(MemoryPolicy::WorstEffort);
    let publisher = bus.publisher(topic("/a"), options).unwrap();
    for _ in 0..20 {
        send(&publisher, 1 << 20).unwrap();
    }
    assert_eq!(publisher.stats().refused, 0);
    let late = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    let got = drain(&late);
    assert_eq!(got.last(), Some(&(20, true)));
    assert!(got.windows(2).all(|p| p[0].0 + 1 == p[1].0), "no gap: {got:?}");
}

/// A subscriber that reconnects states the last message that it has.
#[test]
fn a_reconnecting_subscriber_gets_only_messages_it_has_not_had() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic("/a"), keeping(5)).unwrap();
    (0..5).for_each(|_| assert!(send(&publisher, 64).is_ok()));
    for (id, history, after, count) in [
        (1, 9, 0, 5),
        (2, 9, 3, 2),
        (3, 9, 5, 0),
        (4, 1, 3, 1),
        (5, 0, 0, 0),
    ] {
        let wishes = Wishes {
            depth: 8,
            max_held: 1,
            history,
            after,
            ..Wishes::default()
        };
        let intruder = intrude_with(dir.path(), "/a", id, &wishes);
        common::eventually("it is attached", || {
            publisher.stats().subscribers.iter().any(|s| s.id == id)
        });
        assert_eq!(intruder.ring[0].load(Ordering::SeqCst), count, "pushes");
        if count > 0 {
            let length = intruder.ring[entry_word(8, 1) + 3].load(Ordering::SeqCst);
            assert_eq!(length >> 63, 1, "history is marked");
        }
    }
}

#[test]
fn a_subscriber_learns_what_its_publisher_offers() {
    let dir = folder();
    let bus = bus(&dir);
    let said = keeping(2)
        .with_node("/map_server")
        .with_reliability(Reliability::BestEffort)
        .with_depth(7);
    let publisher = bus.publisher(topic("/a"), said).unwrap();
    let silent = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    send(&publisher, 64).unwrap();
    let late = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    assert!(silent.wait_for_subscribers(1, LONG) && publisher.wait_for_subscribers(1, LONG));
    send(&silent, 64).unwrap();
    let messages: Vec<_> = std::iter::from_fn(|| late.take().unwrap()).collect();
    let [kept, plain] = &messages[..] else {
        panic!("{messages:?}")
    };
    let offer = kept.offer();
    assert_eq!(
        (offer.node.as_str(), offer.history, offer.depth),
        ("/map_server", 2, 7)
    );
    assert_eq!(offer.reliability, Some(Reliability::BestEffort));
    assert!(kept.is_history() && *plain.offer() == Offer::default());
    // An observer gets the same answer.
    let topics = bus.topics(LONG).unwrap();
    let mut offers = topics[0].publishers.iter().map(|p| match &p.detail {
        EndpointDetail::Publisher(p) => p.offer.clone(),
        other => panic!("{other:?}"),
    });
    assert!(offers.any(|o| o == *offer));
}

#[test]
fn a_node_with_a_name_that_cannot_be_shown_is_refused() {
    let dir = folder();
    let bus = bus(&dir);
    for bad in ["/a\u{1b}[2J".to_owned(), "x".repeat(bus::MAX_NAME + 1)] {
        let made = bus.publisher(topic("/a"), PublisherOptions::default().with_node(bad));
        let error = made.expect_err("a bad name").to_string();
        assert!(error.contains("node"), "{error}");
    }
}
