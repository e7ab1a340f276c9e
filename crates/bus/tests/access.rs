//! Access to a bus: the same user, or, if configured, a group. Needs root to become another user; without it
//! the tests report that they did nothing.
#![allow(missing_docs)]

mod common;

use bus::{Bus, BusConfig, OpenError, PublisherOptions, Stamp, SubscriberOptions};
use common::child::{Child, hear, role, say};
use common::{LONG, eventually, folder, raw, topic};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

const NOBODY: u32 = 65534;

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn is_root() -> bool {
    common::permitted("becoming another user", rustix::process::geteuid().is_root())
}

fn become_nobody() {
    // SAFETY: plain system calls; the C library applies them to all threads.
    unsafe {
        assert_eq!(libc::setgroups(0, std::ptr::null()), 0);
        assert_eq!(libc::setgid(NOBODY), 0);
        assert_eq!(libc::setuid(NOBODY), 0);
    }
}

#[test]
fn child_entry() {
    let Some((role, dir)) = role() else { return };
    let socket = raw::publishers(&dir).pop();
    become_nobody();
    match &*role[0] {
        "unknown" => {
            let socket = raw::connect(&socket.unwrap());
            say(raw::refusal(&socket).unwrap());
        }
        // Waits in the folder like a subscriber of the first publisher's topic.
        "waiter" => {
            let name = socket.unwrap().file_name().unwrap().to_str().unwrap().to_owned();
            let hash = name.split('.').next().unwrap();
            let listener = raw::listen(&dir.join(format!("{hash}.s.1.0000000000000007")));
            say("waiting");
            let socket = raw::accept(&listener);
            say(raw::refusal(&socket).unwrap());
        }
        "outsider" => {
            let config = BusConfig::new(&dir).with_group(NOBODY);
            say(Bus::open(config).unwrap_err());
        }
        "opener" => say(Bus::open(BusConfig::new(&dir)).unwrap_err()),
        "member" => {
            let bus = Bus::open(BusConfig::new(&dir).with_group(NOBODY)).unwrap();
            let subscriber = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
            let publisher = bus.publisher(topic("/b"), PublisherOptions::default()).unwrap();
            assert!(subscriber.wait_for_publishers(1, LONG));
            assert!(publisher.wait_for_subscribers(1, LONG));
            say("ready");
            let message = subscriber.take_timeout(LONG).unwrap().unwrap();
            assert!(message.part(0).bytes().iter().all(|b| *b == 5));
            let mut loan = publisher.loan(0, &[100_000]).unwrap();
            loan.part_mut(0).fill(6);
            publisher.publish(loan, Stamp::default()).unwrap();
            hear();
        }
        "sweeper" => {
            let bus = Bus::open(BusConfig::new(&dir).with_group(NOBODY)).unwrap();
            let survey = bus.survey(LONG).unwrap();
            say(format!("removed {}, left {}", survey.removed, survey.left));
        }
        other => panic!("unknown role {other}"),
    }
}

#[test]
fn another_user_is_refused_and_both_sides_know_why() {
    if !is_root() {
        return;
    }
    let dir = folder();
    let bus = common::bus(&dir);
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    // Even if the modes would permit it.
    set_mode(dir.path(), 0o755);
    set_mode(&raw::publishers(dir.path())[0], 0o666);
    let child = Child::start("unknown", dir.path(), &[]);
    let text = child.hear();
    assert!(text.contains("user 65534") && text.contains("user 0"), "{text}");
    eventually("the publisher knows", || {
        publisher
            .refusals()
            .iter()
            .any(|r| r.uid == NOBODY && r.reason == text)
    });
    let child = Child::start("opener", dir.path(), &[]);
    assert!(
        child
            .hear()
            .contains("belongs to user 0 and group 0, not to user 65534")
    );
}

/// The reverse direction: the end that is connected to also learns the reason.
#[test]
fn a_waiting_process_of_another_user_learns_why_it_is_refused() {
    if !is_root() {
        return;
    }
    let dir = folder();
    let bus = common::bus(&dir);
    let first = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    set_mode(dir.path(), 0o777);
    let child = Child::start("waiter", dir.path(), &[]);
    assert_eq!(child.hear(), "waiting");
    assert!(
        bus.publisher(topic("/a"), PublisherOptions::default()).is_err(),
        "nothing is put into a folder that everybody may write"
    );
    assert!(first.refusals().is_empty(), "it connected to nobody");
    // With the right mode it may connect, and the waiting end accepts only one connection.
    drop(first);
    set_mode(dir.path(), 0o755);
    let second = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let text = child.hear();
    assert!(text.contains("user 65534") && text.contains("user 0"), "{text}");
    eventually("the publisher knows", || {
        second
            .refusals()
            .iter()
            .any(|r| r.uid == NOBODY && r.reason == text)
    });
}

/// A group that only one side has set, or that is not the folder's.
#[test]
fn a_group_on_one_side_only_is_refused_with_the_fix() {
    if !is_root() {
        return;
    }
    let dir = folder();
    let _bus = common::bus(&dir);
    let child = Child::start("outsider", dir.path(), &[]);
    let text = child.hear();
    assert!(
        text.contains("user 0 and group 0, not to user 65534") && text.contains("through its group"),
        "{text}"
    );
}

#[test]
fn a_group_may_share_a_bus() {
    if !is_root() {
        return;
    }
    let dir = folder();
    chown(dir.path(), None, Some(NOBODY)).unwrap();
    set_mode(dir.path(), 0o770);
    assert!(matches!(
        Bus::open(BusConfig::new(dir.path())),
        Err(OpenError::Mode { mode: 0o770, .. })
    ));
    // The mode recommended by earlier versions still works, without protecting members from each other.
    for mode in [0o770, 0o3770] {
        set_mode(dir.path(), mode);
        members_find_each_other(dir.path());
    }
}

fn members_find_each_other(dir: &Path) {
    let bus = Bus::open(BusConfig::new(dir).with_group(NOBODY)).unwrap();
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let subscriber = bus.subscriber(topic("/b"), SubscriberOptions::default()).unwrap();
    let child = Child::start("member", dir, &[]);
    assert_eq!(child.hear(), "ready");
    assert!(publisher.wait_for_subscribers(1, LONG));
    let mut loan = publisher.loan(0, &[100_000]).unwrap();
    loan.part_mut(0).fill(5);
    publisher.publish(loan, Stamp::default()).unwrap();
    let message = subscriber.take_timeout(LONG).unwrap().unwrap();
    assert!(message.part(0).bytes().iter().all(|b| *b == 6));
    let stats = publisher.stats();
    assert_eq!(
        (stats.subscribers[0].pid, stats.subscribers[0].uid),
        (child.pid(), NOBODY)
    );
    let topics = bus.topics(LONG).unwrap();
    assert_eq!(topics[0].subscribers[0].uid, NOBODY);
}

/// A dead member's socket stays if only its user may remove it, and is reported separately.
#[test]
fn a_dead_members_socket_is_left_to_its_user() {
    if !is_root() {
        return;
    }
    let root = folder();
    set_mode(root.path(), 0o711);
    let dir = root.path().join("shared");
    let open = || Bus::open(BusConfig::new(&dir).with_group(NOBODY)).unwrap();
    // It creates the folder, and would remove dead sockets in it.
    drop(open());
    // Of a pid that no process has.
    let dead = dir.join("00000000000000aa.s.4000000.0000000000000007");
    drop(raw::listen(&dead));
    set_mode(&dead, 0o660);
    let child = Child::start("sweeper", &dir, &[]);
    assert_eq!(child.hear(), "removed 0, left 1");
    let _bus = open();
    eventually("its user removes it", || !dead.exists());
}
