//! A process whose publishers and subscribers have nothing to do uses no processor time and little memory.
#![allow(missing_docs)]

mod common;

use bus::{Bus, BusConfig, PublisherOptions, Stamp, SubscriberOptions};
use common::child::{Child, hear, role, say};
use common::{LONG, eventually, folder, topic};
use std::fs::read_to_string;
use std::io::Write;
use std::time::Duration;

const TOPICS: usize = 10;
const WATCHED: Duration = Duration::from_secs(3);

#[test]
fn child_entry() {
    let Some((_, dir)) = role() else { return };
    let bus = Bus::open(BusConfig::new(dir)).unwrap();
    let mut ends = vec![];
    for i in 0..TOPICS {
        let publisher = bus
            .publisher(topic(&format!("/t{i}")), PublisherOptions::default())
            .unwrap();
        let subscriber = bus
            .subscriber(topic(&format!("/t{i}")), SubscriberOptions::default())
            .unwrap();
        assert!(publisher.wait_for_subscribers(1, LONG));
        let loan = publisher.loan(8, &[1000]).unwrap();
        publisher.publish(loan, Stamp::default()).unwrap();
        assert!(subscriber.take_timeout(LONG).unwrap().is_some());
        ends.push((publisher, subscriber));
    }
    // One that waits, as most do.
    let (_, last) = ends.pop().unwrap();
    std::thread::spawn(move || last.wait(10 * LONG));
    say("idle");
    hear();
}

/// Context switches of all threads, and ticks of processor time.
fn activity(pid: i32) -> (u64, u64) {
    let mut switches = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let status = read_to_string(task.unwrap().path().join("status")).unwrap();
        switches += status
            .lines()
            .filter_map(|l| l.split_once("ctxt_switches:"))
            .map(|(_, n)| n.trim().parse::<u64>().unwrap())
            .sum::<u64>();
    }
    let stat = read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<_> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    // Fields 14 and 15 of the whole line are utime and stime.
    (
        switches,
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap(),
    )
}

fn resident_kib(pid: i32) -> u64 {
    let status = read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn idle_endpoints_never_wake() {
    let dir = folder();
    let child = Child::start("idle", dir.path(), &[]);
    assert_eq!(child.hear(), "idle");
    // The housekeeping thread may still be reserving ahead.
    let mut before = activity(child.pid());
    eventually("it comes to rest", || {
        std::thread::sleep(Duration::from_millis(200));
        std::mem::replace(&mut before, activity(child.pid())) == activity(child.pid())
    });
    let before = activity(child.pid());
    std::thread::sleep(WATCHED);
    let after = activity(child.pid());
    let (wakeups, ticks) = (after.0 - before.0, after.1 - before.1);
    let resident = resident_kib(child.pid());
    // Bypasses the test runner, which would capture the output.
    let _ = writeln!(
        std::io::stdout(),
        "idle with {TOPICS} publishers and {TOPICS} subscribers for {WATCHED:?}: {wakeups} wake-ups, {ticks} ticks, \
         {resident} KiB resident"
    );
    assert_eq!((wakeups, ticks), (0, 0));
    assert!(resident < 8 << 10, "{resident} KiB");
}
