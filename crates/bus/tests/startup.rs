//! 200 topics with 4 subscribers each start at once: all connect, and the test prints how long that takes.
#![allow(missing_docs)]

mod common;

use bus::{Bus, BusConfig, Publisher, PublisherOptions, Subscriber, SubscriberOptions};
use common::child::{Child, hear, role, say};
use common::{LONG, folder, topic};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

const TOPICS: usize = 200;
const SUBSCRIBERS: usize = 4;

fn open(dir: &Path) -> Bus {
    Bus::open(BusConfig::new(dir)).unwrap()
}

fn subscribers(bus: &Bus) -> Vec<Subscriber> {
    let one = |i| bus.subscriber(topic(&format!("/t{i}")), SubscriberOptions::default());
    (0..TOPICS).map(|i| one(i).unwrap()).collect()
}

fn publishers(bus: &Bus) -> Vec<Publisher> {
    let one = |i| bus.publisher(topic(&format!("/t{i}")), PublisherOptions::default());
    (0..TOPICS).map(|i| one(i).unwrap()).collect()
}

fn wait_for_all(publishers: &[Publisher]) {
    let connected = |p: &&Publisher| p.wait_for_subscribers(SUBSCRIBERS, LONG);
    assert_eq!(publishers.iter().filter(connected).count(), TOPICS);
}

/// Bypasses the test runner, which would capture the output.
fn print(what: &str, start: Instant) {
    let text = format!(
        "{TOPICS} topics with {SUBSCRIBERS} subscribers each, {what}: connected after {:.2} s",
        start.elapsed().as_secs_f64()
    );
    let _ = writeln!(std::io::stdout(), "{text}");
}

#[test]
fn child_entry() {
    let Some((role, dir)) = role() else { return };
    say("up");
    hear();
    let bus = open(&dir);
    match &*role[0] {
        "subscribers" => {
            let subscribers = subscribers(&bus);
            hear();
            assert!(subscribers.iter().all(|s| s.publisher_count() == 1));
            say("connected");
            hear();
        }
        "publishers" => {
            let publishers = publishers(&bus);
            wait_for_all(&publishers);
            say("connected");
            hear();
        }
        other => panic!("unknown role {other}"),
    }
}

#[test]
fn in_five_processes() {
    let dir = folder();
    let mut children: Vec<_> = [
        "publishers",
        "subscribers",
        "subscribers",
        "subscribers",
        "subscribers",
    ]
    .iter()
    .map(|role| Child::start(role, dir.path(), &[]))
    .collect();
    children.iter().for_each(|c| assert_eq!(c.hear(), "up"));
    let start = Instant::now();
    children.iter_mut().for_each(|c| c.say("go"));
    assert_eq!(children[0].hear(), "connected");
    print("in five processes", start);
    for child in &mut children[1..] {
        child.say("check");
        assert_eq!(child.hear(), "connected");
    }
}

#[test]
fn in_one_process() {
    let dir = folder();
    let start = Instant::now();
    let bus = open(dir.path());
    let publishers = publishers(&bus);
    let subscribers: Vec<_> = (0..SUBSCRIBERS).map(|_| subscribers(&bus)).collect();
    wait_for_all(&publishers);
    print("in one process", start);
    assert!(subscribers.iter().flatten().all(|s| s.publisher_count() == 1));
    drop((publishers, subscribers));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
