//! Kill -9 at every step, stops, and forks that keep sockets open: memory, descriptors and files return
//! exactly to their previous numbers.
#![allow(missing_docs)]

mod common;

use bus::{Bus, BusConfig, PublisherOptions, Stamp, SubscriberOptions};
use common::census::{Census, census, settled};
use common::child::{Child, hear, role, say};
use common::{LONG, Random, bus, eventually, folder, topic};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const TOPIC: &str = "/mortal";
const LEN: usize = 200_000;

/// The tests count this process's descriptors, so they run one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn returns_to(baseline: &Census, dir: &Path, bus: &Bus, what: &str) {
    common::census::returns_to(baseline, bus, what, || census(dir));
}

fn send(publisher: &bus::Publisher, value: u8) {
    let mut loan = publisher.loan(8, &[LEN]).unwrap();
    loan.part_mut(0).fill(value);
    publisher.publish(loan, Stamp::default()).unwrap();
}

#[test]
fn child_entry() {
    let Some((role, dir)) = role() else { return };
    let bus = Bus::open(BusConfig::new(dir)).unwrap();
    match &*role[0] {
        "subscriber" => {
            let subscriber = bus
                .subscriber(topic(TOPIC), SubscriberOptions::default())
                .unwrap();
            loop {
                let a = subscriber.take_timeout(LONG).unwrap();
                let _b = subscriber.take_timeout(LONG).unwrap();
                drop(a);
            }
        }
        "publisher" => {
            let publisher = bus.publisher(topic(TOPIC), PublisherOptions::default()).unwrap();
            if role.len() > 1 {
                assert!(publisher.wait_for_subscribers(1, LONG));
            }
            for value in 0.. {
                send(&publisher, value as u8);
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        // Dies, while a fork of it keeps its sockets open.
        "forker" => {
            let publisher = bus.publisher(topic(TOPIC), PublisherOptions::default()).unwrap();
            let subscriber = bus
                .subscriber(topic("/other"), SubscriberOptions::default())
                .unwrap();
            assert!(publisher.wait_for_subscribers(1, LONG));
            assert!(subscriber.wait_for_publishers(1, LONG));
            send(&publisher, 1);
            // SAFETY: the child only sleeps.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                // Longer than any test, but not forever if that fails.
                std::thread::sleep(3 * LONG);
                // SAFETY: ends the fork without running what belongs to its parent.
                unsafe { libc::_exit(0) };
            }
            say(pid);
            hear();
        }
        other => panic!("unknown role {other}"),
    }
}

#[test]
fn a_bus_leaves_nothing_behind() {
    let _alone = alone();
    let dir = folder();
    drop(bus(&dir));
    let before = settled(dir.path());
    for _ in 0..20 {
        let bus = bus(&dir);
        let publisher = bus.publisher(topic(TOPIC), PublisherOptions::default()).unwrap();
        let subscriber = bus
            .subscriber(topic(TOPIC), SubscriberOptions::default())
            .unwrap();
        assert!(publisher.wait_for_subscribers(1, LONG));
        send(&publisher, 1);
        let message = subscriber.take_timeout(LONG).unwrap().unwrap();
        drop((bus, publisher, subscriber));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert_eq!(message.part(0).bytes()[LEN - 1], 1);
        drop(message);
        assert_eq!(census(dir.path()), before);
    }
}

#[test]
fn a_subscriber_killed_at_any_step_leaves_nothing() {
    let _alone = alone();
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic(TOPIC), PublisherOptions::default()).unwrap();
    send(&publisher, 0);
    let baseline = settled(dir.path());
    let steps = [
        "bound",
        "shown",
        "connected",
        "hello-sent",
        "attach-sent",
        "welcome-received",
        "segment-mapped",
        "taken",
        "taken:2",
        "taken:30",
        "released",
        "released:20",
    ];
    for step in steps {
        let mut child = Child::start("subscriber", dir.path(), &[("ROPEWALK_TEST_KILL_AT", step)]);
        eventually(step, || {
            send(&publisher, 1);
            child.has_ended()
        });
        drop(child);
        returns_to(&baseline, dir.path(), &bus, step);
        let stats = publisher.stats();
        assert_eq!(
            (stats.memory_used, stats.memory_pinned, stats.subscribers.len()),
            (0, 0, 0),
            "{step}"
        );
    }
}

#[test]
fn a_publisher_killed_at_any_step_leaves_nothing() {
    let _alone = alone();
    let dir = folder();
    let bus = bus(&dir);
    let subscriber = bus
        .subscriber(topic(TOPIC), SubscriberOptions::default())
        .unwrap();
    let baseline = settled(dir.path());
    let steps = [
        "bound",
        "shown",
        "connected",
        "hello-sent",
        "attach-received",
        "welcome-sent",
        "loaned",
        "loaned:50",
        "publish-sealed:20",
        "segment-sent",
        "publish-pushed:20",
        "publish-rung:20",
    ];
    for step in steps {
        let mut child = Child::start("publisher", dir.path(), &[("ROPEWALK_TEST_KILL_AT", step)]);
        let mut held = None;
        eventually(step, || {
            // Not always the newest, so that something is queued when it dies.
            if let Some(message) = subscriber.take_timeout(Duration::from_millis(2)).unwrap() {
                held = Some(message);
            }
            child.has_ended()
        });
        drop(child);
        if let Some(message) = held {
            let first = message.part(0).bytes()[0];
            assert!(
                message.part(0).bytes().iter().all(|b| *b == first),
                "the dead one's block stays whole"
            );
        }
        while subscriber.take().unwrap().is_some() {}
        eventually("it is forgotten", || {
            while subscriber.take().unwrap().is_some() {}
            subscriber.publisher_count() == 0
        });
        returns_to(&baseline, dir.path(), &bus, step);
    }
}

/// It queues its first message, and is killed before it rings.
#[test]
fn a_sleeper_is_woken_for_what_a_dead_publisher_queued() {
    let _alone = alone();
    let dir = folder();
    let bus = bus(&dir);
    let subscriber = bus
        .subscriber(topic(TOPIC), SubscriberOptions::default())
        .unwrap();
    let waiting = std::thread::spawn(move || subscriber.take_timeout(LONG).unwrap().is_some());
    let kill = ("ROPEWALK_TEST_KILL_AT", "publish-pushed");
    let _child = Child::start("publisher to one", dir.path(), &[kill]);
    assert!(waiting.join().unwrap(), "nobody rang");
}

/// Several hundred processes that start and are killed at random moments, while others continue.
#[test]
fn hundreds_of_lives_and_deaths() {
    let _alone = alone();
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic(TOPIC), PublisherOptions::default()).unwrap();
    let subscriber = bus
        .subscriber(topic(TOPIC), SubscriberOptions::default())
        .unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    send(&publisher, 0);
    assert!(subscriber.take_timeout(LONG).unwrap().is_some());
    let baseline = settled(dir.path());
    let mut random = Random(1);
    let mut from_others = 0;
    for cycle in 0..300 {
        let role = ["subscriber", "publisher"][random.next(2) as usize];
        let mut child = Child::start(role, dir.path(), &[]);
        let end = std::time::Instant::now() + Duration::from_micros(random.next(25_000));
        while std::time::Instant::now() < end {
            send(&publisher, 7);
            while let Some(message) = subscriber.take().unwrap() {
                from_others += u32::from(message.publisher() != publisher.id());
            }
        }
        child.kill();
        drop(child);
        if cycle % 50 == 49 {
            eventually("the others are forgotten", || {
                while subscriber.take().unwrap().is_some() {}
                subscriber.publisher_count() == 1 && publisher.stats().subscribers.len() == 1
            });
            // A publisher that died just after it accepted this end may appear only now, with its queued
            // messages.
            common::census::returns_to(&baseline, &bus, "after many deaths", || {
                while subscriber.take().unwrap().is_some() {}
                census(dir.path())
            });
            assert_eq!(publisher.stats().memory_used, 0);
        }
    }
    assert!(
        from_others > 100,
        "only {from_others} messages came from those who died"
    );
}

fn stop(child: &Child) {
    child.signal(rustix::process::Signal::STOP);
    eventually("it is stopped", || child.is_stopped());
}

#[test]
fn a_stopped_process_is_not_dead() {
    let _alone = alone();
    let dir = folder();
    let bus = bus(&dir);
    let subscriber = bus
        .subscriber(topic(TOPIC), SubscriberOptions::default())
        .unwrap();
    let child = Child::start("publisher", dir.path(), &[]);
    let id = subscriber.take_timeout(LONG).unwrap().unwrap().publisher();
    stop(&child);
    while subscriber.take().unwrap().is_some() {}
    assert!(!subscriber.wait(Duration::from_millis(100)).unwrap());
    assert_eq!(subscriber.publisher_count(), 1);
    child.signal(rustix::process::Signal::CONT);
    assert_eq!(subscriber.take_timeout(LONG).unwrap().unwrap().publisher(), id);
}

#[test]
fn a_process_that_is_stopped_for_a_while_keeps_its_topic() {
    let _alone = alone();
    let dir = folder();
    let bus = bus(&dir);
    let subscriber = bus
        .subscriber(topic(TOPIC), SubscriberOptions::default())
        .unwrap();
    let mut child = Child::start("publisher", dir.path(), &[]);
    let id = subscriber.take_timeout(LONG).unwrap().unwrap().publisher();
    let publishers = |bus: &Bus, patience: Duration| {
        let survey = bus.survey(patience).unwrap();
        let topics = survey.topics.iter().filter(|t| t.topic.topic == TOPIC);
        let all: Vec<u64> = topics.flat_map(|t| &t.publishers).map(|p| p.id).collect();
        (all, survey.silent.len())
    };
    // Only the child has to answer from now on.
    drop(subscriber);
    assert_eq!(publishers(&bus, LONG), (vec![id], 0));
    stop(&child);
    // More than the connections that may wait for it.
    let short = Duration::from_millis(2);
    for _ in 0..200 {
        assert_eq!(publishers(&bus, short), (vec![id], 1));
    }
    // A bus that asks for the first time learns only that it is silent.
    let other = common::bus(&dir);
    assert_eq!(publishers(&other, short), (vec![], 1));
    child.signal(rustix::process::Signal::CONT);
    eventually("it answers again", || publishers(&bus, LONG) == (vec![id], 0));
    stop(&child);
    assert_eq!(publishers(&bus, short), (vec![id], 1));
    child.kill();
    assert_eq!(publishers(&bus, LONG), (vec![], 0));
}

#[test]
fn a_fork_that_keeps_the_sockets_does_not_hide_a_death() {
    let _alone = alone();
    let dir = folder();
    let bus = bus(&dir);
    let subscriber = bus
        .subscriber(topic(TOPIC), SubscriberOptions::default())
        .unwrap();
    let publisher = bus
        .publisher(topic("/other"), PublisherOptions::default())
        .unwrap();
    let baseline = settled(dir.path());
    let mut child = Child::start("forker", dir.path(), &[]);
    let fork: i32 = child.hear().parse().unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    child.kill();
    eventually("the publisher notices", || {
        publisher.stats().subscribers.is_empty()
    });
    eventually("the subscriber notices", || subscriber.publisher_count() == 0);
    assert_eq!(
        subscriber.take().unwrap().unwrap().part(0).bytes()[0],
        1,
        "what it queued is still there"
    );
    assert!(subscriber.take().unwrap().is_none());
    let alive = std::path::Path::new(&format!("/proc/{fork}")).exists();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(fork).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    assert!(alive, "the fork lived all the time");
    returns_to(&baseline, dir.path(), &bus, "after the fork's end");
}
