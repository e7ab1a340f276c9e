//! What is dropped, refused or awaited when memory is short or a queue is full.
#![allow(missing_docs)]

mod common;

use bus::{CreateError, SubscriberOptions};
use bus::{LoanError, MemoryPolicy, Message, Publisher, PublisherOptions, QueuePolicy, Stamp, Subscriber};
use common::{LONG, bus, eventually, folder, topic};
use stats::DropReason;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
/// Five blocks of a mebibyte and a header fit, not six.
const FIVE: u64 = 6 << 20;

fn send(publisher: &Publisher) -> Result<bus::Published, LoanError> {
    let loan = publisher.loan(0, &[MIB])?;
    Ok(publisher.publish(loan, Stamp::default()).unwrap())
}

fn fill(publisher: &Publisher, messages: usize) {
    for _ in 0..messages {
        send(publisher).unwrap();
    }
}

fn options(policy: MemoryPolicy) -> PublisherOptions {
    PublisherOptions::default()
        .with_memory_limit(FIVE)
        .with_memory_policy(policy)
}

fn deep() -> SubscriberOptions {
    SubscriberOptions::default().with_depth(100).with_max_held(100)
}

fn drain(subscriber: &Subscriber) -> Vec<u64> {
    std::iter::from_fn(|| subscriber.take().unwrap())
        .map(|m| m.sequence())
        .collect()
}

#[test]
fn worst_effort_refuses_the_new_and_keeps_what_is_queued() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus
        .publisher(topic("/a"), options(MemoryPolicy::WorstEffort))
        .unwrap();
    let fast = bus.subscriber(topic("/a"), deep()).unwrap();
    let slow = bus.subscriber(topic("/a"), deep()).unwrap();
    assert!(publisher.wait_for_subscribers(2, LONG));
    assert_eq!(publisher.stats().subscribers[0].quota, FIVE, "the whole limit");
    let (mut published, mut refused) = (0, 0);
    for _ in 0..20 {
        match send(&publisher) {
            Ok(done) => {
                assert_eq!((done.queued_to, done.dropped.total()), (2, 0));
                published += 1;
            }
            Err(error @ LoanError::MemoryShort { .. }) => {
                let LoanError::MemoryShort {
                    held, queued, policy, ..
                } = error
                else {
                    unreachable!()
                };
                assert_eq!((held, policy), (0, MemoryPolicy::WorstEffort));
                assert!(queued > 5 << 20, "{queued}");
                assert!(error.to_string().contains("worst-effort"), "{error}");
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
        drain(&fast);
    }
    assert_eq!((published, refused), (5, 15));
    let stats = publisher.stats();
    assert_eq!((stats.published, stats.refused, stats.drops.total()), (5, 15, 0));
    assert_eq!(drain(&slow), [1, 2, 3, 4, 5], "nothing was taken away");
    send(&publisher).unwrap();
    assert_eq!((drain(&fast), drain(&slow)), (vec![6], vec![6]), "no gap");
}

#[test]
fn under_worst_effort_a_subscriber_at_its_own_quota_loses_the_new_alone() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus
        .publisher(topic("/a"), options(MemoryPolicy::WorstEffort))
        .unwrap();
    let modest = bus
        .subscriber(topic("/a"), deep().with_max_held_bytes(5 << 19))
        .unwrap();
    let other = bus.subscriber(topic("/a"), deep()).unwrap();
    assert!(publisher.wait_for_subscribers(2, LONG));
    fill(&publisher, 4);
    assert_eq!(drain(&other), [1, 2, 3, 4]);
    assert_eq!(drain(&modest), [1, 2]);
    assert_eq!(modest.stats().drops.count(DropReason::HoldLimit), 2);
}

#[test]
fn medium_effort_drops_at_most_the_configured_number() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus
        .publisher(topic("/a"), options(MemoryPolicy::Medium(2)))
        .unwrap();
    let subscribers: Vec<_> = (0..3)
        .map(|_| bus.subscriber(topic("/a"), deep()).unwrap())
        .collect();
    assert!(publisher.wait_for_subscribers(3, LONG));
    // The quota, half the limit, has no effect: two for each.
    fill(&publisher, 2);
    let held: Vec<_> = (0..3).map(|_| publisher.loan(0, &[MIB]).unwrap()).collect();
    // Each block is in three queues, so two drops free none.
    let error = publisher.loan(0, &[MIB]).unwrap_err();
    assert!(error.to_string().contains("medium"), "{error}");
    let stats = publisher.stats();
    assert_eq!(
        (stats.drops.count(DropReason::MemoryShort), stats.refused),
        (2, 1)
    );
    // The next loan needs one more drop.
    drop(publisher.loan(0, &[MIB]).unwrap());
    let stats = publisher.stats();
    assert_eq!(
        (stats.drops.count(DropReason::MemoryShort), stats.refused),
        (3, 1)
    );
    drop(held);
    for subscriber in &subscribers {
        let message = subscriber.take().unwrap().unwrap();
        assert_eq!(message.sequence(), 2);
        assert_eq!(subscriber.stats().drops.count(DropReason::MemoryShort), 1);
    }
}

#[test]
fn best_effort_drops_as_many_as_it_takes() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus
        .publisher(
            topic("/a"),
            options(MemoryPolicy::BestEffort).with_subscriber_quota(FIVE),
        )
        .unwrap();
    let subscriber = bus.subscriber(topic("/a"), deep()).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    fill(&publisher, 5);
    drop(publisher.loan(0, &[3 * MIB]).unwrap());
    assert!(publisher.stats().drops.count(DropReason::MemoryShort) >= 3);
    assert_eq!(publisher.stats().refused, 0);
    let left = drain(&subscriber);
    assert_eq!(left.last(), Some(&5), "the newest stays: {left:?}");
}

#[test]
fn block_waits_until_something_is_released() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus
        .publisher(topic("/a"), options(MemoryPolicy::Block(LONG)))
        .unwrap();
    let subscriber = bus.subscriber(topic("/a"), deep()).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    fill(&publisher, 5);
    let waiting = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let publisher = &publisher;
        let waiting = &waiting;
        scope.spawn(move || {
            send(publisher).unwrap();
            waiting.store(false, Ordering::SeqCst);
        });
        std::thread::sleep(Duration::from_millis(50));
        assert!(waiting.load(Ordering::SeqCst), "nothing is free");
        // The lock is not held in the meantime.
        assert_eq!(publisher.stats().published, 5);
        assert_eq!(subscriber.take().unwrap().unwrap().sequence(), 1);
    });
    assert_eq!(drain(&subscriber), [2, 3, 4, 5, 6]);
    assert_eq!(
        (publisher.stats().refused, publisher.stats().drops.total()),
        (0, 0)
    );
}

#[test]
fn block_waits_once_in_a_stall() {
    const TIMEOUT: Duration = Duration::from_millis(100);
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus
        .publisher(topic("/a"), options(MemoryPolicy::Block(TIMEOUT)))
        .unwrap();
    let subscriber = bus.subscriber(topic("/a"), deep()).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    fill(&publisher, 5);
    let start = Instant::now();
    let error = send(&publisher).unwrap_err();
    assert!(start.elapsed() >= TIMEOUT);
    assert!(error.to_string().contains("block policy"), "{error}");
    // If each waited, these would take 1,000 s, and the watchdog would end the test.
    (0..10_000).for_each(|_| assert!(send(&publisher).is_err()));
    assert_eq!(publisher.stats().refused, 10_001);
    // After a success it waits again.
    drop(subscriber.take().unwrap().unwrap());
    send(&publisher).unwrap();
    let start = Instant::now();
    assert!(send(&publisher).is_err());
    assert!(start.elapsed() >= TIMEOUT);
}

#[test]
fn a_loan_that_waits_ends_when_its_caller_says_so_and_the_next_waits_again() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus
        .publisher(topic("/a"), options(MemoryPolicy::Block(LONG)))
        .unwrap();
    let subscriber = bus.subscriber(topic("/a"), deep()).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    fill(&publisher, 5);
    for end_at in [1, 3] {
        let asked = AtomicU32::new(0);
        // The lock is not held while the caller is asked.
        let go_on = || publisher.stats().published == 5 && asked.fetch_add(1, Ordering::SeqCst) + 1 < end_at;
        assert!(publisher.loan_while(0, &[MIB], &go_on).is_err());
        assert_eq!(asked.load(Ordering::SeqCst), end_at);
    }
    assert_eq!(publisher.stats().refused, 2);
    drop(subscriber.take().unwrap().unwrap());
    assert!(
        publisher.loan_while(0, &[MIB], &|| false).is_ok(),
        "no loan waits"
    );
}

#[test]
fn a_full_queue_that_drops_the_newest_keeps_the_oldest() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let options = SubscriberOptions::default().with_depth(3);
    let newest = bus
        .subscriber(
            topic("/a"),
            options.clone().with_queue_policy(QueuePolicy::DropNewest),
        )
        .unwrap();
    let oldest = bus.subscriber(topic("/a"), options).unwrap();
    assert!(publisher.wait_for_subscribers(2, LONG));
    let send = |len: usize| {
        let loan = publisher.loan(0, &[len]).unwrap();
        publisher.publish(loan, Stamp::default()).unwrap()
    };
    (1..=3).for_each(|_| assert_eq!(send(64).queued_to, 2));
    let done = send(64);
    assert_eq!(
        (done.queued_to, done.dropped.count(DropReason::QueueFull)),
        (1, 2)
    );
    let first = newest.take().unwrap().unwrap();
    assert_eq!((first.sequence(), first.lost().total()), (1, 0));
    assert_eq!(drain(&newest), [2, 3]);
    assert_eq!(drain(&oldest), [2, 3, 4]);
    send(64);
    let next = newest.take().unwrap().unwrap();
    assert_eq!(
        (next.sequence(), next.lost().count(DropReason::QueueFull)),
        (5, 1),
        "the loss is reported between the two messages around it"
    );
    assert_eq!(newest.stats().drops.count(DropReason::QueueFull), 1);
    let of = |s: &Subscriber| {
        let all = publisher.stats().subscribers;
        all.into_iter().find(|p| p.id == s.id()).unwrap().drops
    };
    assert_eq!(of(&newest).count(DropReason::QueueFull), 1);
}

#[test]
fn a_used_up_quota_loses_the_newest_too_but_memory_shortage_takes_the_queued() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus
        .publisher(topic("/a"), options(MemoryPolicy::BestEffort))
        .unwrap();
    let wishes = deep().with_queue_policy(QueuePolicy::DropNewest);
    let subscriber = bus.subscriber(topic("/a"), wishes).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    // Half the limit: two messages.
    fill(&publisher, 4);
    assert_eq!(subscriber.stats().drops.count(DropReason::HoldLimit), 2);
    // No room next to the two that are queued.
    drop(publisher.loan(0, &[5 * MIB]).unwrap());
    assert!(publisher.stats().drops.count(DropReason::MemoryShort) >= 1);
    assert!(!drain(&subscriber).contains(&1), "the oldest went");
}

#[test]
fn policies_out_of_range_are_refused() {
    let dir = folder();
    let bus = bus(&dir);
    for (policy, word) in [
        (MemoryPolicy::Medium(0), "medium"),
        (MemoryPolicy::Block(Duration::from_secs(3601)), "block"),
    ] {
        let error = bus.publisher(topic("/a"), options(policy)).unwrap_err();
        assert!(matches!(error, CreateError::Option { .. }));
        assert!(error.to_string().contains(word), "{error}");
    }
    assert!(
        bus.publisher(topic("/a"), PublisherOptions::default().with_history(5000))
            .is_err()
    );
}

/// 1 MB at a high rate with a 64 MB limit, to one subscriber that takes at once and one that takes at a
/// hundredth of the rate.
fn fast_and_slow(
    policy: MemoryPolicy,
    slow_depth: u32,
    check: impl Fn(u64, &Message),
) -> (Vec<u64>, Vec<u64>, u64) {
    const MESSAGES: u64 = 1000;
    let dir = folder();
    let bus = bus(&dir);
    let options = PublisherOptions::default()
        .with_memory_limit(64 << 20)
        .with_memory_policy(policy);
    let publisher = bus.publisher(topic("/a"), options).unwrap();
    let fast = bus.subscriber(topic("/a"), deep()).unwrap();
    let slow = bus
        .subscriber(topic("/a"), SubscriberOptions::default().with_depth(slow_depth))
        .unwrap();
    assert!(publisher.wait_for_subscribers(2, LONG));
    let mut slow_got = vec![];
    let ended = AtomicBool::new(false);
    let mut last = 0;
    let fast_got = std::thread::scope(|scope| {
        let fast = scope.spawn(|| {
            let mut got = vec![];
            loop {
                match fast.take_timeout(Duration::from_millis(20)).unwrap() {
                    Some(message) => got.push(message.sequence()),
                    None if ended.load(Ordering::SeqCst) => break got,
                    None => {}
                }
            }
        });
        for n in 1..=MESSAGES {
            if let Ok(mut loan) = publisher.loan(0, &[1_000_000]) {
                loan.part_mut(0)[999_999] = 1;
                last = publisher.publish(loan, Stamp::default()).unwrap().sequence;
            }
            // Scaled: the fast one must have kept up, however slow the machine is.
            eventually("the fast one keeps up", || {
                let stats = publisher.stats();
                stats.subscribers.iter().any(|s| s.queued < 8 && s.depth == 100)
            });
            if n % 100 == 0 {
                let message = slow.take().unwrap().unwrap();
                check(last, &message);
                slow_got.push(message.sequence());
            }
        }
        ended.store(true, Ordering::SeqCst);
        fast.join().unwrap()
    });
    slow_got.extend(drain(&slow));
    let stats = publisher.stats();
    assert_eq!(stats.published + stats.refused, MESSAGES);
    assert_eq!(
        fast_got,
        (1..=stats.published).collect::<Vec<_>>(),
        "the fast one lost something"
    );
    assert!(stats.memory_reserved <= 64 << 20);
    (fast_got, slow_got, stats.refused)
}

#[test]
fn best_effort_beside_a_slow_one_costs_the_fast_one_nothing_and_gives_the_slow_one_the_newest() {
    let (_, slow, refused) = fast_and_slow(MemoryPolicy::BestEffort, 1, |newest, message| {
        assert_eq!(message.sequence(), newest);
    });
    assert_eq!(slow.len(), 10);
    assert_eq!(refused, 0);
}

#[test]
fn worst_effort_beside_a_slow_one_gives_both_contiguous_runs() {
    let (fast, slow, refused) = fast_and_slow(MemoryPolicy::WorstEffort, 100, |_, message| {
        assert_eq!(message.lost().total(), 0);
    });
    assert_eq!(fast, slow, "every published message, in order");
    assert!(refused > 500, "the slow one must have been in the way: {refused}");
}
