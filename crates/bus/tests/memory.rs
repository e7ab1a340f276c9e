//! Memory: limits, quotas, any mix of sizes, huge messages, and the return of memory.
#![allow(missing_docs)]

mod common;

use bus::{LoanError, PublisherOptions, Stamp, SubscriberOptions};
use common::child::{Child, role, say};
use common::raw::intrude;
use common::{LONG, Random, bus, eventually, folder, topic};
use rustix::process::{Resource, Rlimit, setrlimit};
use stats::DropReason;
use std::time::Duration;

fn send(publisher: &bus::Publisher, len: usize) -> Result<bus::Published, LoanError> {
    let mut loan = publisher.loan(0, &[len])?;
    if let Some(last) = loan.part_mut(0).last_mut() {
        *last = 1;
    }
    Ok(publisher.publish(loan, Stamp::default()).unwrap())
}

#[test]
fn child_entry() {
    let Some((role, dir)) = role() else { return };
    if role == ["short"] {
        return take_without_memory(&dir);
    }
    setrlimit(
        Resource::Fsize,
        Rlimit {
            current: Some(1 << 20),
            maximum: None,
        },
    )
    .unwrap();
    let bus = bus::Bus::open(bus::BusConfig::new(dir)).unwrap();
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    match publisher.loan(0, &[4 << 20]) {
        Err(LoanError::FileSizeLimit { limit, .. }) => say(limit),
        other => say(format!("{other:?}")),
    }
    say(send(&publisher, 500_000).is_ok());
}

/// Allows this process this much more memory, or any amount.
fn limit_memory(more: Option<u64>) {
    let used = || {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
        pages * rustix::param::page_size() as u64
    };
    let current = more.map(|more| used() + more);
    let limit = Rlimit {
        current,
        maximum: None,
    };
    setrlimit(Resource::As, limit).unwrap();
}

fn take_without_memory(dir: &std::path::Path) {
    let bus = bus::Bus::open(bus::BusConfig::new(dir)).unwrap();
    let subscriber = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    let next = || {
        let mut taken = None;
        eventually("a message", || {
            taken = subscriber.take().unwrap();
            taken.is_some()
        });
        taken.map_or(0, |m| m.part_len(0))
    };
    say(next());
    limit_memory(Some(32 << 20));
    say("short");
    say(next());
    say(subscriber.stats().drops.count(DropReason::MemoryShort));
    limit_memory(None);
    say(next());
}

#[test]
fn a_message_that_cannot_be_mapped_costs_that_message() {
    const LARGE: usize = 100 << 20;
    let dir = folder();
    let child = Child::start("short", dir.path(), &[]);
    let bus = bus(&dir);
    let options = PublisherOptions::default().with_memory_limit(1 << 30);
    let publisher = bus.publisher(topic("/a"), options).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    send(&publisher, 1000).unwrap();
    assert_eq!(child.hear(), "1000");
    assert_eq!(child.hear(), "short");
    send(&publisher, LARGE).unwrap();
    send(&publisher, 2000).unwrap();
    assert_eq!(child.hear(), "2000", "those that are mapped arrive");
    assert_eq!(child.hear(), "1", "and the lost one is counted");
    send(&publisher, LARGE).unwrap();
    assert_eq!(
        child.hear(),
        LARGE.to_string(),
        "with memory available they arrive too"
    );
}

#[test]
fn a_file_size_limit_is_an_error_and_no_signal() {
    let dir = folder();
    let child = Child::start("limited", dir.path(), &[]);
    assert_eq!(child.hear(), (1 << 20).to_string());
    assert_eq!(child.hear(), "true", "what fits works");
}

#[test]
fn held_memory_is_never_reused_and_the_error_names_the_holder() {
    let dir = folder();
    let bus = bus(&dir);
    let options = PublisherOptions::default()
        .with_memory_limit(16 << 20)
        .with_subscriber_quota(16 << 20);
    let publisher = bus.publisher(topic("/a"), options).unwrap();
    let subscriber = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    let mut held = vec![];
    let error = loop {
        match send(&publisher, 3 << 20) {
            Ok(_) => held.push(subscriber.take_timeout(LONG).unwrap().unwrap()),
            Err(e) => break e,
        }
    };
    assert_eq!(held.len(), 5);
    match &error {
        LoanError::MemoryShort {
            held,
            loaned: 0,
            limit: 16_777_216,
            ..
        } => assert!(*held > 15 << 20),
        other => panic!("{other}"),
    }
    drop(held.pop());
    send(&publisher, 3 << 20).unwrap();
    // A loan that is never published counts until it is dropped.
    assert!(subscriber.take().unwrap().is_some());
    let loan = publisher.loan(0, &[3 << 20]).unwrap();
    assert!(matches!(
        send(&publisher, 3 << 20),
        Err(LoanError::MemoryShort {
            loaned: 3_145_856,
            ..
        })
    ));
    drop(loan);
    send(&publisher, 3 << 20).unwrap();
    drop((held, subscriber));
    eventually("all is free", || publisher.stats().memory_used == 0);
}

/// The slow subscriber loses its oldest messages, the fast one loses nothing, and memory stays within its
/// limit.
#[test]
fn a_slow_subscriber_costs_a_fast_one_nothing() {
    let dir = folder();
    let bus = bus(&dir);
    let options = PublisherOptions::default().with_memory_limit(64 << 20);
    let publisher = bus.publisher(topic("/a"), options).unwrap();
    let fast = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    let slow = bus
        .subscriber(topic("/a"), SubscriberOptions::default().with_depth(100))
        .unwrap();
    assert!(publisher.wait_for_subscribers(2, LONG));
    let mut held = None;
    for n in 1..=2000u64 {
        send(&publisher, 1 << 20).unwrap();
        assert_eq!(fast.take_timeout(LONG).unwrap().unwrap().sequence(), n);
        if n % 500 == 0 {
            let mut newest = None;
            while let Some(message) = slow.take().unwrap() {
                newest = Some(message);
            }
            assert_eq!(
                newest.as_ref().map(bus::Message::sequence),
                Some(n),
                "the newest is always there"
            );
            held = newest;
        }
        assert!(publisher.stats().memory_reserved <= 64 << 20);
    }
    drop(held);
    assert_eq!(fast.stats().drops.total(), 0);
    let slow = slow.stats();
    assert_eq!(slow.drops.total() + slow.received, 2000, "{slow:?}");
}

#[test]
fn memory_shortage_takes_from_the_largest_consumer_first() {
    let dir = folder();
    let bus = bus(&dir);
    let options = PublisherOptions::default()
        .with_memory_limit(16 << 20)
        .with_subscriber_quota(16 << 20);
    let publisher = bus.publisher(topic("/a"), options).unwrap();
    let deep = bus
        .subscriber(topic("/a"), SubscriberOptions::default().with_depth(100))
        .unwrap();
    let flat = bus
        .subscriber(topic("/a"), SubscriberOptions::default().with_depth(2))
        .unwrap();
    assert!(publisher.wait_for_subscribers(2, LONG));
    (0..100).for_each(|_| drop(send(&publisher, 1 << 20).unwrap().dropped.drops()));
    let short = |s: &bus::Subscriber| s.stats().drops.count(DropReason::MemoryShort);
    assert!(short(&deep) > 50, "{:?}", deep.stats().drops);
    assert_eq!(short(&flat), 0);
    assert_eq!(flat.stats().drops.count(DropReason::QueueFull), 98);
}

#[test]
fn any_mix_of_sizes_flows_within_the_limit() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus
        .publisher(
            topic("/a"),
            PublisherOptions::default().with_memory_limit(48 << 20),
        )
        .unwrap();
    let a = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    let b = bus
        .subscriber(topic("/a"), SubscriberOptions::default().with_depth(4))
        .unwrap();
    assert!(publisher.wait_for_subscribers(2, LONG));
    let mut random = Random(8);
    let mut held = std::collections::VecDeque::new();
    for n in 0..3000 {
        let len = [0, 1, 4 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 12 << 20][random.next(8) as usize];
        send(&publisher, len).unwrap_or_else(|e| panic!("message {n} of {len} bytes: {e}"));
        while let Some(message) = a.take().unwrap() {
            assert_eq!(message.part_len(0), len);
            // Small ones are held for long, large ones only while they are read.
            if len <= 1 << 20 {
                held.push_back(message);
            }
            if held.len() > random.next(4) as usize {
                held.pop_front();
            }
        }
        if random.next(3) == 0 {
            drop(b.take().unwrap());
        }
        assert!(publisher.stats().memory_reserved <= 48 << 20);
    }
    assert_eq!(a.stats().drops.total(), 0);
}

#[test]
fn a_huge_message_has_a_segment_of_its_own_that_returns() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus
        .publisher(
            topic("/a"),
            PublisherOptions::default().with_memory_limit(320 << 20),
        )
        .unwrap();
    let subscriber = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    for len in [300 << 20, 1000, 200 << 20, 310 << 20] {
        send(&publisher, len).unwrap();
        let message = subscriber.take_timeout(LONG).unwrap().unwrap();
        assert_eq!((message.part_len(0), message.part(0).bytes()[len - 1]), (len, 1));
        drop(message);
        eventually("the segment that made room is unmapped", || {
            publisher.stats().memory_pinned == 0
        });
        assert!(publisher.stats().memory_reserved <= 320 << 20);
    }
}

/// A subscriber that never answers cannot keep retired memory forever.
#[test]
fn a_subscriber_that_unmaps_nothing_is_let_go_when_memory_is_short() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus
        .publisher(
            topic("/a"),
            PublisherOptions::default().with_memory_limit(100 << 20),
        )
        .unwrap();
    let honest = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    let _deaf = intrude(dir.path(), "/a", 1, 1, 1);
    eventually("both are attached", || publisher.stats().subscribers.len() == 2);
    let mut sizes = [40 << 20, 60 << 20].into_iter().cycle();
    eventually("it is disconnected", || {
        let len = sizes.next().unwrap();
        if send(&publisher, len).is_ok() {
            assert_eq!(honest.take_timeout(LONG).unwrap().unwrap().part_len(0), len);
        } else {
            // Memory is short for at most a second.
            std::thread::sleep(Duration::from_millis(20));
        }
        publisher.stats().subscribers.len() == 1
    });
    send(&publisher, 70 << 20).unwrap();
    assert_eq!(honest.take_timeout(LONG).unwrap().unwrap().part_len(0), 70 << 20);
}
