//! Callbacks sleep while there is nothing to do, and stop at once.
#![allow(missing_docs)]

use ropewalk::{Flavour, Node, Registry, SubscriberOptions};
use std::sync::mpsc::channel;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(120);

/// How often the callback's thread of this process has gone to sleep.
fn naps() -> u64 {
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
        // The kernel keeps 15 bytes of a thread's name.
        if status.starts_with("Name:\tropewalk-callba") {
            let line = status.lines().find(|l| l.starts_with("voluntary_ctxt_switches"));
            return line.unwrap().rsplit('\t').next().unwrap().parse().unwrap();
        }
    }
    panic!("there is no callback thread");
}

#[test]
fn an_idle_callback_never_wakes_and_stops_when_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::with_config("node", ropewalk::BusConfig::new(folder.path())).unwrap();
    let string = Registry::new(Flavour::Ros1).schema("std_msgs/String").unwrap();
    let publisher = node.dynamic_publisher("/chatter", &string).unwrap();
    let options = SubscriberOptions::default().with_max_held(1);
    let subscriber = node
        .dynamic_subscriber_with("/chatter", &string, options)
        .unwrap();
    let (tx, rx) = channel();
    let callback = subscriber.callback(move |m| drop(tx.send(m))).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    publisher.publish_ros1(b"\x05\0\0\0hello").unwrap();
    let held = rx.recv_timeout(LONG).unwrap();
    // Idle with nothing to take, and then with a message that it must not take yet.
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(200));
        let before = naps();
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(naps(), before, "an idle callback woke");
        publisher.publish_ros1(b"\x05\0\0\0again").unwrap();
        assert!(rx.try_recv().is_err());
    }
    drop(held);
    assert_eq!(rx.recv_timeout(LONG).unwrap().ros1().unwrap(), b"\x05\0\0\0again");
    // The callback sleeps without a timeout, so only this wakes it; otherwise the test hangs.
    drop(callback);
}
