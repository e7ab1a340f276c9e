//! After a fork: the child's handles fail, its views stay readable, and dropping them does not disturb the
//! parent.
#![allow(missing_docs)]

mod common;

use bus::{
    Bus, BusConfig, LoanError, PublishError, PublisherOptions, Stamp, SubscriberOptions, TakeError, WaitSet,
};
use common::child::{Child, role, say};
use common::{LONG, folder, topic};
use std::path::Path;
use std::time::Duration;

#[test]
fn child_entry() {
    if let Some((_, dir)) = role() {
        forking_process(&dir);
    }
}

fn forking_process(dir: &Path) {
    let bus = Bus::open(BusConfig::new(dir)).unwrap();
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let subscriber = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    let set = WaitSet::new(&bus).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    let send = |value: u8| {
        let mut loan = publisher.loan(1, &[100_000]).unwrap();
        loan.part_mut(0).fill(value);
        publisher.publish(loan, Stamp::default())
    };
    send(1).unwrap();
    let message = subscriber.take_timeout(LONG).unwrap().unwrap();
    let loan = publisher.loan(1, &[10]).unwrap();
    let files = std::fs::read_dir(dir).unwrap().count();

    // SAFETY: the child uses this crate, which is the point, and ends with _exit. The C library makes its
    // allocator usable after fork; nothing else that another thread could have locked is used.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let mut failed = 0;
        let mut check = |n: i32, ok: bool| {
            if !ok && failed == 0 {
                failed = n;
            }
        };
        check(1, matches!(publisher.loan(1, &[10]), Err(LoanError::Forked)));
        check(
            2,
            matches!(
                publisher.publish(loan, Stamp::default()),
                Err(PublishError::Forked)
            ),
        );
        check(3, matches!(subscriber.take(), Err(TakeError::Forked)));
        check(4, matches!(subscriber.take_timeout(LONG), Err(TakeError::Forked)));
        check(5, matches!(subscriber.wait(LONG), Err(TakeError::Forked)));
        check(
            6,
            matches!(set.wait(LONG), Err(TakeError::Forked)) && set.rearm().is_err(),
        );
        check(
            7,
            bus.publisher(topic("/b"), PublisherOptions::default()).is_err(),
        );
        check(
            8,
            bus.subscriber(topic("/b"), SubscriberOptions::default()).is_err(),
        );
        check(9, bus.topics(LONG).is_err() && WaitSet::new(&bus).is_err());
        check(10, message.part(0).bytes().iter().all(|b| *b == 1));
        check(
            11,
            publisher.stats().published == 0 && subscriber.stats().received == 0,
        );
        check(
            12,
            !publisher.wait_for_subscribers(1, LONG) && !subscriber.wait_for_publishers(1, LONG),
        );
        check(
            13,
            publisher.refusals().is_empty() && subscriber.refusals().is_empty(),
        );
        drop((message, publisher, subscriber, set, bus));
        // The child can use a new bus of its own.
        let bus = Bus::open(BusConfig::new(dir)).unwrap();
        let publisher = bus.publisher(topic("/c"), PublisherOptions::default()).unwrap();
        let subscriber = bus.subscriber(topic("/c"), SubscriberOptions::default()).unwrap();
        check(14, publisher.wait_for_subscribers(1, LONG));
        let loan = publisher.loan(0, &[5]).unwrap();
        check(15, publisher.publish(loan, Stamp::default()).is_ok());
        check(16, subscriber.take_timeout(LONG).unwrap().is_some());
        drop((publisher, subscriber, bus));
        // SAFETY: ends the child without running what belongs to the parent.
        unsafe { libc::_exit(failed) };
    }
    let mut status = 0;
    // SAFETY: waits for the child just made; the pointer is to a local.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status), "the child was killed: {status}");
    assert_eq!(
        libc::WEXITSTATUS(status),
        0,
        "the check of that number failed in the child"
    );

    // The parent notices nothing.
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), files);
    assert_eq!(publisher.subscriber_count(), 1);
    assert_eq!(
        publisher.stats().subscribers[0].held,
        1,
        "the child's drop released nothing"
    );
    assert!(message.part(0).bytes().iter().all(|b| *b == 1));
    drop(loan);
    for value in 0..50 {
        assert_eq!(send(value).unwrap().queued_to, 1);
        let got = subscriber.take_timeout(LONG).unwrap().unwrap();
        assert_eq!(got.part(0).bytes()[99_999], value);
    }
    drop(message);
    assert!(!subscriber.wait(Duration::ZERO).unwrap());
    assert_eq!(publisher.stats().memory_used, 0);
    say("done");
}

#[test]
fn a_fork_disturbs_nobody() {
    let dir = folder();
    for _ in 0..10 {
        let mut child = Child::start("fork", dir.path(), &[]);
        assert_eq!(child.try_hear().as_deref(), Some("done"));
        child.wait();
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
