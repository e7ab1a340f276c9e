//! Containers that share a runtime folder, each with its own PIDs, mounts and `/dev/shm`. Needs root to
//! create them; without it the tests report that they did nothing, and fail in CI.
#![allow(missing_docs)]

mod common;

use bus::{Bus, BusConfig, PublisherOptions, Stamp, SubscriberOptions};
use common::child::{Child, hear, role, say};
use common::{LONG, bus, eventually, folder, permitted, topic};
use std::path::Path;
use std::process::Command;

const TOPIC: &str = "/between/containers";
const LEN: usize = 1 << 20;

fn containers_work() -> bool {
    let works = Child::container()
        .args(["mount", "-t", "tmpfs", "none", "/dev/shm"])
        .status()
        .is_ok_and(|s| s.success());
    permitted("making containers (unshare --pid --mount)", works)
}

#[test]
fn child_entry() {
    let Some((role, dir)) = role() else { return };
    let bus = Bus::open(BusConfig::new(&dir)).unwrap();
    match &*role[0] {
        "publisher" => publisher(&bus),
        "subscriber" => subscriber(&bus, &dir),
        "filler" => filler(&bus),
        other => panic!("unknown role {other}"),
    }
}

fn publisher(bus: &Bus) {
    let publisher = bus.publisher(topic(TOPIC), PublisherOptions::default()).unwrap();
    // Nobody looks for this one, so nobody finds its socket dead by connecting.
    let _unrelated = bus
        .publisher(topic("/unrelated"), PublisherOptions::default())
        .unwrap();
    say(std::process::id());
    for value in 1.. {
        match &*hear() {
            "peer" => {
                assert!(publisher.wait_for_subscribers(1, LONG));
                let peer = publisher.stats().subscribers[0].clone();
                say(format!("pid {} uid {}", peer.pid, peer.uid));
            }
            "send" => {
                let mut loan = publisher.loan(0, &[LEN]).unwrap();
                loan.part_mut(0).fill(value);
                say(publisher.publish(loan, Stamp::default()).unwrap().queued_to);
            }
            "alone" => {
                eventually("the subscriber's death is noticed", || {
                    let stats = publisher.stats();
                    stats.subscribers.is_empty() && stats.memory_used == 0
                });
                say("alone");
            }
            other => panic!("unknown command {other}"),
        }
    }
}

fn subscriber(bus: &Bus, dir: &Path) {
    let subscriber = bus
        .subscriber(topic(TOPIC), SubscriberOptions::default())
        .unwrap();
    say(std::process::id());
    let mut held = None;
    loop {
        let command = hear();
        match &*command {
            "ready" => say(subscriber.wait_for_publishers(1, LONG)),
            "take" => {
                let message = subscriber.take_timeout(LONG).unwrap().unwrap();
                let first = message.part(0).bytes()[0];
                say(message.part_len(0) == LEN && message.part(0).bytes().iter().all(|b| *b == first));
                held = Some(message);
            }
            "alone" => {
                eventually("the publisher's death is noticed", || {
                    subscriber.publisher_count() == 0
                });
                // A held message outlives its publisher.
                say(held.as_ref().is_some_and(|m| m.part(0).bytes()[LEN - 1] != 0));
            }
            // A process here has the pid that the peer has there. It dies, and a new bus sweeps the folder.
            decoy if decoy.starts_with("decoy ") => {
                let wanted: u32 = decoy[6..].parse().unwrap();
                loop {
                    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
                    let pid = child.id();
                    child.kill().unwrap();
                    child.wait().unwrap();
                    assert!(pid <= wanted, "pid {wanted} was taken before: use more");
                    if pid == wanted {
                        break;
                    }
                }
                drop(Bus::open(BusConfig::new(dir)).unwrap());
                say(subscriber.publisher_count());
            }
            other => panic!("unknown command {other}"),
        }
    }
}

/// More than `/dev/shm` has.
fn filler(bus: &Bus) {
    let options = PublisherOptions::default().with_memory_limit(512 << 20);
    let publisher = bus.publisher(topic(TOPIC), options).unwrap();
    say(match publisher.loan(0, &[100 << 20]) {
        Ok(_) => "fits".to_owned(),
        Err(e) => e.to_string(),
    });
    let mut loan = publisher.loan(0, &[20 << 20]).unwrap();
    loan.part_mut(0).fill(1);
    say(publisher.publish(loan, Stamp::default()).is_ok());
    hear();
}

fn ask(child: &mut Child, question: &str) -> String {
    child.say(question);
    child.hear()
}

fn files(dir: &Path) -> usize {
    std::fs::read_dir(dir).unwrap().count()
}

#[test]
fn containers_see_each_other_and_notice_each_others_death() {
    if !containers_work() {
        return;
    }
    let dir = folder();
    let start = |role: &str| {
        let child = Child::start_contained(role, dir.path(), 0);
        assert_eq!(child.hear(), "1", "it is number 1 of its container");
        child
    };
    let mut publisher = start("publisher");
    let mut subscriber = start("subscriber");
    assert_eq!(ask(&mut subscriber, "ready"), "true");
    let uid = rustix::process::geteuid().as_raw();
    assert_eq!(
        ask(&mut publisher, "peer"),
        format!("pid 0 uid {uid}"),
        "whose pid is unknown"
    );
    assert_eq!(ask(&mut publisher, "send"), "1");
    assert_eq!(ask(&mut subscriber, "take"), "true");
    // The host sees into both.
    let host = bus(&dir);
    let topics = host.topics(LONG).unwrap();
    let both = topics.iter().find(|t| t.topic.topic == TOPIC).unwrap();
    assert!(
        both.publishers[0].pid > 1 && both.subscribers[0].pid > 1,
        "{both:?}"
    );

    subscriber.kill();
    assert_eq!(ask(&mut publisher, "alone"), "alone");
    let mut subscriber = start("subscriber");
    assert_eq!(ask(&mut subscriber, "ready"), "true");
    assert_eq!(ask(&mut publisher, "peer"), format!("pid 0 uid {uid}"));
    assert_eq!(ask(&mut publisher, "send"), "1");
    assert_eq!(ask(&mut subscriber, "take"), "true");
    publisher.kill();
    assert_eq!(ask(&mut subscriber, "alone"), "true");

    // The dead processes had three sockets; the last subscriber's and the new publisher's two stay.
    let mut publisher = start("publisher");
    assert_eq!(ask(&mut subscriber, "ready"), "true");
    assert_eq!(ask(&mut publisher, "peer"), format!("pid 0 uid {uid}"));
    assert_eq!(ask(&mut publisher, "send"), "1");
    assert_eq!(ask(&mut subscriber, "take"), "true");
    eventually("what the dead left is removed", || files(dir.path()) == 3);
}

#[test]
fn a_pid_of_another_container_says_nothing() {
    if !containers_work() {
        return;
    }
    let dir = folder();
    let mut publisher = Child::start_contained("publisher", dir.path(), 60);
    let pid = publisher.hear();
    assert!(pid.parse::<u32>().unwrap() > 60);
    let mut subscriber = Child::start_contained("subscriber", dir.path(), 0);
    assert_eq!(subscriber.hear(), "1");
    assert_eq!(ask(&mut subscriber, "ready"), "true");
    assert_eq!(ask(&mut publisher, "peer").split(' ').nth(1), Some("0"));
    let sockets = files(dir.path());
    assert_eq!(ask(&mut subscriber, &format!("decoy {pid}")), "1");
    assert_eq!(files(dir.path()), sockets, "no living one's socket was swept");
    assert_eq!(ask(&mut publisher, "send"), "1");
    assert_eq!(ask(&mut subscriber, "take"), "true");
}

/// A container's `/dev/shm` is small (64 MiB by Docker's default). Memfds do not count there; `shm_open`
/// does.
#[test]
fn a_full_dev_shm_is_an_error_of_the_loan() {
    if !containers_work() {
        return;
    }
    let dir = folder();
    let child = Child::start_contained("filler", dir.path(), 0);
    let text = child.hear();
    if cfg!(feature = "posix") {
        assert!(text.contains("No space left"), "{text}");
    } else {
        assert_eq!(text, "fits");
    }
    assert_eq!(child.hear(), "true", "what fits works");
}
