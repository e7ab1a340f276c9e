//! Processes that start and are killed at random moments, `CYCLES` of them (300 by default): the survivor
//! loses none of its own messages and keeps no descriptor, file, mapping or page of the dead.
//!
//! Runs without the test runner, so that a life takes milliseconds. `make soak` runs 10,000.
#![allow(missing_docs)]

mod common;

use bus::{Bus, BusConfig, Publisher, PublisherOptions, Stamp, Subscriber, SubscriberOptions};
use common::census::{census, returns_to, settled};
use common::{LONG, Random, eventually, topic};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const TOPIC: &str = "/soak";

fn main() {
    if let Some(role) = std::env::var_os("RW_ROLE") {
        return live(
            &role.to_string_lossy(),
            std::env::var_os("RW_DIR").unwrap().as_ref(),
        );
    }
    // A filter that names another test, or a listing.
    let args: Vec<_> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    if std::env::args().any(|a| a == "--list") || args.iter().any(|a| !"soak".contains(&**a)) {
        return;
    }
    let cycles = std::env::var("CYCLES").map_or(300, |n| n.parse().expect("CYCLES is a number"));
    soak(cycles);
}

fn ends(bus: &Bus) -> (Publisher, Subscriber) {
    (publisher(bus), subscriber(bus))
}

fn publisher(bus: &Bus) -> Publisher {
    bus.publisher(topic(TOPIC), PublisherOptions::default()).unwrap()
}

fn subscriber(bus: &Bus) -> Subscriber {
    // Deep enough for the messages between two checks.
    let options = SubscriberOptions::default().with_depth(256);
    bus.subscriber(topic(TOPIC), options).unwrap()
}

fn send(publisher: &Publisher, random: &mut Random) {
    let len = [100, 5_000, 100_000, 1_500_000][random.next(4) as usize];
    let loan = publisher.loan(8, &[len]).expect("there is memory");
    publisher.publish(loan, Stamp::default()).unwrap();
}

/// A short life, ended from outside.
fn live(role: &str, dir: &Path) {
    let bus = Bus::open(BusConfig::new(dir)).unwrap();
    let mut random = Random(u64::from(std::process::id()));
    if role == "publisher" {
        let publisher = publisher(&bus);
        loop {
            send(&publisher, &mut random);
            std::thread::sleep(Duration::from_micros(300));
        }
    }
    let subscriber = subscriber(&bus);
    let mut held = None;
    while let Ok(message) = subscriber.take_timeout(LONG) {
        // A random one is held while others arrive.
        if random.next(3) == 0 {
            held = message;
        }
    }
    drop(held);
}

/// KiB, from a file of `/proc`.
fn kib(file: &str, field: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap();
    let line = text.lines().find_map(|l| l.strip_prefix(field)).unwrap();
    line.trim_matches([':', ' ', '\t'])
        .trim_end_matches(" kB")
        .parse()
        .unwrap()
}

static DONE: AtomicU64 = AtomicU64::new(0);

/// Ends the process if no life ends for a long time.
fn watchdog() {
    std::thread::spawn(|| {
        loop {
            let before = DONE.load(Ordering::Relaxed);
            std::thread::sleep(4 * LONG);
            if DONE.load(Ordering::Relaxed) == before {
                eprintln!("the watchdog ends a soak that hangs after {before} lives");
                std::process::abort();
            }
        }
    });
}

fn soak(cycles: u64) {
    let dir = tempfile::Builder::new().prefix("rw").tempdir().unwrap();
    watchdog();
    let bus = Bus::open(BusConfig::new(dir.path())).unwrap();
    let nothing = settled(dir.path());
    let (publisher, subscriber) = ends(&bus);
    assert!(publisher.wait_for_subscribers(1, LONG));
    let before = settled(dir.path()).without_memory();
    let shmem = kib("/proc/meminfo", "Shmem");
    let mut random = Random(1);
    let start = Instant::now();
    let (mut own, mut others, mut reported, mut connected, mut early) = (0u64, 0u64, 0, 0u64, 0u64);
    let program = std::env::current_exe().unwrap();
    for cycle in 0..cycles {
        let role = ["subscriber", "publisher"][random.next(2) as usize];
        let mut child = Command::new(&program)
            .env("RW_ROLE", role)
            .env("RW_DIR", dir.path())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        // Half of them end wherever they are; the others a while after they are seen.
        let soon = random.next(2) == 0;
        let mut end = Instant::now()
            + if soon {
                Duration::from_micros(random.next(8_000))
            } else {
                LONG
            };
        let mut came = false;
        while Instant::now() < end {
            send(&publisher, &mut random);
            while let Some(message) = subscriber.take().unwrap() {
                let mine = message.publisher() == publisher.id();
                own += u64::from(mine);
                others += u64::from(!mine);
                if mine {
                    reported += message.lost().total();
                }
                came |= !mine;
            }
            came = came || publisher.stats().subscribers.len() > 1;
            if came && !soon && end > Instant::now() + Duration::from_millis(4) {
                end = Instant::now() + Duration::from_micros(random.next(4_000));
            }
        }
        connected += u64::from(came);
        early += u64::from(!came);
        child.kill().unwrap();
        child.wait().unwrap();
        DONE.fetch_add(1, Ordering::Relaxed);
        if cycle % 1000 == 999 || cycle + 1 == cycles {
            eventually("the dead are forgotten", || {
                while let Some(message) = subscriber.take().unwrap() {
                    own += u64::from(message.publisher() == publisher.id());
                }
                let stats = publisher.stats();
                subscriber.publisher_count() == 1
                    && (stats.subscribers.len(), stats.memory_used, stats.memory_pinned) == (1, 0, 0)
            });
            // A publisher that died just after it accepted this end may appear only now, with its queued
            // messages.
            returns_to(&before, &bus, "after many lives", || {
                while subscriber.take().unwrap().is_some() {}
                census(dir.path()).without_memory()
            });
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(own, publisher.stats().published, "its own messages");
    assert_eq!(reported, 0, "losses of its own");
    println!(
        "{cycles} lives in {seconds:.1} s: {early} ended before, {connected} after connecting; {own} messages of its own \
         and {others} of theirs\nShmem of the host before {shmem} KiB, after {} KiB; resident {} KiB, of it shared {} KiB",
        kib("/proc/meminfo", "Shmem"),
        kib("/proc/self/status", "VmRSS"),
        kib("/proc/self/status", "RssShmem"),
    );
    assert!(others > 0 && connected > cycles / 20, "they lived too short");
    drop((publisher, subscriber));
    returns_to(&nothing, &bus, "at the end", || census(dir.path()));
    assert_eq!(kib("/proc/self/status", "RssShmem"), 0, "pages of the dead");
}
