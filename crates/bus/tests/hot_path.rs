//! The hot path allocates nothing, and makes no system call while the subscriber is awake.
#![allow(missing_docs)]

mod common;

use bus::{PublisherOptions, Stamp, SubscriberOptions};
use common::child::{Child, hear, role, say};
use common::{LONG, bus, folder, topic};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::process::Command;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator; counting touches only a thread-local cell that
// needs no allocation itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
        // SAFETY: by this function's contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: by this function's contract.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn loan_publish_take_and_drop_allocate_nothing() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let subscribers = [(); 3].map(|()| bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap());
    assert!(publisher.wait_for_subscribers(3, LONG));
    let round = || {
        let mut loan = publisher.loan(200, &[100_000, 64]).unwrap();
        loan.control_mut().fill(1);
        publisher.publish(loan, Stamp::default()).unwrap();
        for subscriber in &subscribers {
            let message = subscriber.take().unwrap().unwrap();
            assert_eq!(message.control().len(), 200);
            drop(message);
            // Finding nothing arms the doorbell, so that the next publish rings.
            assert!(subscriber.take().unwrap().is_none());
        }
    };
    (0..50).for_each(|_| round());
    let before = ALLOCATIONS.get();
    (0..1000).for_each(|_| round());
    assert_eq!(ALLOCATIONS.get() - before, 0);
}

#[test]
fn child_entry() {
    let Some((_, dir)) = role() else { return };
    let bus = bus::Bus::open(bus::BusConfig::new(dir)).unwrap();
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let subscriber = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    let round = || {
        let loan = publisher.loan(200, &[100_000]).unwrap();
        publisher.publish(loan, Stamp::default()).unwrap();
        // Awake: it spins.
        assert!(subscriber.take_busy().unwrap().is_some());
        assert!(subscriber.take_busy().unwrap().is_none());
    };
    // A block is checked once, when it is new, and which block comes next depends on when the last is
    // released. So all blocks that may occur are used first.
    for _ in 0..4 {
        publisher
            .publish(publisher.loan(200, &[100_000]).unwrap(), Stamp::default())
            .unwrap();
    }
    let held: Vec<_> = (0..4).map(|_| subscriber.take_busy().unwrap().unwrap()).collect();
    drop(held);
    (0..50).for_each(|_| round());
    say("warm");
    hear();
    // A call that nothing else makes marks the start and the end.
    let _ = rustix::process::getppid();
    (0..1000).for_each(|_| round());
    let _ = rustix::process::getppid();
    say("done");
}

/// Counted with strace, where it is installed and permitted; elsewhere the test reports that it did nothing.
#[test]
fn publishing_to_an_awake_subscriber_makes_no_system_call() {
    let allowed = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .status()
        .is_ok_and(|s| s.success());
    if !allowed {
        eprintln!("strace is missing or not allowed: nothing was counted");
        return;
    }
    let dir = folder();
    let mut child = Child::start("awake", dir.path(), &[]);
    assert_eq!(child.hear(), "warm");
    let log = dir.path().join("strace");
    // The thread that runs the rounds reads the line.
    let mut strace = Command::new("strace")
        .args(["-f", "-o"])
        .arg(&log)
        .args(["-p", &child.pid().to_string()])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    common::eventually("strace is attached", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.pid())).unwrap();
        status
            .lines()
            .any(|l| l.starts_with("TracerPid:") && l.split_whitespace().nth(1) != Some("0"))
    });
    std::thread::sleep(std::time::Duration::from_millis(200));
    child.say("go");
    assert_eq!(child.hear(), "done");
    child.wait();
    strace.wait().unwrap();
    let text = std::fs::read_to_string(&log).unwrap();
    let marks: Vec<_> = text.lines().filter(|l| l.contains("getppid(")).collect();
    assert_eq!(marks.len(), 2, "{text}");
    let thread = marks[0].split_whitespace().next().unwrap();
    let between = text
        .lines()
        .filter(|l| l.split_whitespace().next() == Some(thread))
        .skip_while(|l| !l.contains("getppid("))
        .skip(1)
        .take_while(|l| !l.contains("getppid("));
    assert_eq!(between.collect::<Vec<_>>(), Vec::<&str>::new());
}
