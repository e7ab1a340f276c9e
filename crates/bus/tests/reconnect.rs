//! A connection that breaks while both of its ends live is established again, and no message arrives twice.
//!
//! There is only one test: it looks for its sockets among all those of this process.
#![allow(missing_docs)]

mod common;

use bus::{Publisher, PublisherOptions, Stamp, Subscriber, SubscriberOptions};
use common::{LONG, bus, eventually, folder, topic};
use rustix::net::{Shutdown, SocketType};
use std::os::fd::{BorrowedFd, RawFd};
use std::path::PathBuf;

fn send(publisher: &Publisher) -> u64 {
    let loan = publisher.loan(0, &[64]).unwrap();
    publisher.publish(loan, Stamp::default()).unwrap().sequence
}

/// The messages up to number `last`.
fn take_to(subscriber: &Subscriber, last: u64) -> Vec<u64> {
    let mut got = vec![];
    while got.last() != Some(&last) {
        let message = subscriber.take_timeout(LONG).unwrap();
        got.push(message.expect("every message comes").sequence());
    }
    got
}

/// The sockets of all connections of this process: inode and descriptor.
fn connections() -> Vec<(PathBuf, RawFd)> {
    let mut found = vec![];
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let raw = entry.file_name().to_string_lossy().parse().unwrap();
        let Ok(inode) = std::fs::read_link(entry.path()) else {
            continue;
        };
        // SAFETY: used only within this loop; a descriptor that was closed in the meantime makes the calls
        // fail.
        let fd = unsafe { BorrowedFd::borrow_raw(raw) };
        let is_packets = rustix::net::sockopt::socket_type(fd) == Ok(SocketType::SEQPACKET);
        if is_packets && rustix::net::getpeername(fd).is_ok() {
            found.push((inode, raw));
        }
    }
    found
}

/// Shuts all connections down, and waits until there are new ones. A subscriber keeps the rest of the old
/// ones until it takes.
fn cut(joined: impl Fn() -> bool, then: impl FnOnce()) {
    let old = connections();
    assert!(old.len() >= 2, "both ends are in this process");
    for (_, raw) in &old {
        // SAFETY: only the bus also opens descriptors here, and only when a connection ends.
        let fd = unsafe { BorrowedFd::borrow_raw(*raw) };
        let _ = rustix::net::shutdown(fd, Shutdown::Both);
    }
    then();
    eventually("they are connected again", || {
        let is_new = |inode| !old.iter().any(|(o, _)| o == inode);
        joined() && connections().iter().filter(|(inode, _)| is_new(inode)).count() >= 2
    });
}

#[test]
fn a_reconnecting_subscriber_gets_each_message_once() {
    let dir = folder();
    let (there, here) = (bus(&dir), bus(&dir));
    let publisher = there
        .publisher(topic("/a"), PublisherOptions::default().with_history(8))
        .unwrap();
    let subscriber = here
        .subscriber(topic("/a"), SubscriberOptions::default())
        .unwrap();
    let joined = || publisher.subscriber_count() == 1 && subscriber.publisher_count() == 1;
    eventually("they are connected", joined);
    (1..=4).for_each(|n| assert_eq!(send(&publisher), n));
    assert_eq!(take_to(&subscriber, 4), [1, 2, 3, 4]);
    // It is sent while nobody is connected, or into a queue whose connection ends.
    cut(joined, || assert_eq!(send(&publisher), 5));
    assert_eq!(take_to(&subscriber, 5), [5], "1 to 4 were taken before");
    cut(joined, || {});
    assert!(subscriber.take().unwrap().is_none(), "all was taken before");
    assert_eq!(send(&publisher), 6);
    assert_eq!(take_to(&subscriber, 6), [6]);
}
