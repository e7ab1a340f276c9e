//! The two variants of shared memory, Linux's and POSIX's: they do not mix, and the second leaves no names
//! behind.
#![allow(missing_docs)]

mod common;

use bus::{PublisherOptions, SubscriberOptions};
use common::{bus, eventually, folder, raw, topic};

/// A hello of the variant that is not built in.
fn foreign_hello(role: u8) -> Vec<u8> {
    let mut hello = raw::hello("/a", 7);
    hello[9] ^= 0x80;
    hello[10] = role;
    hello
}

#[test]
fn a_peer_of_the_other_variant_is_refused_and_both_sides_know_why() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let socket = raw::connect(&raw::publishers(dir.path())[0]);
    assert!(raw::send(&socket, &foreign_hello(2), &[]));
    let reported = raw::refusal(&socket).expect("it is refused");
    for word in ["memfd", "shm_open", "feature `posix`"] {
        assert!(reported.contains(word), "{reported}");
    }
    eventually("the publisher knows", || {
        publisher.refusals().iter().any(|r| r.reason == reported)
    });
    drop(publisher);

    let subscriber = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    let path = std::fs::read_dir(dir.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let socket = raw::connect(&path);
    assert!(raw::send(&socket, &foreign_hello(1), &[]));
    assert_eq!(raw::refusal(&socket), Some(reported.clone()));
    eventually("the subscriber knows", || {
        subscriber.refusals().iter().any(|r| r.reason == reported)
    });
}

#[test]
fn child_entry() {
    let Some((_, dir)) = common::child::role() else {
        return;
    };
    let bus = bus::Bus::open(bus::BusConfig::new(dir)).unwrap();
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let _ = publisher.loan(0, &[10]);
    unreachable!("the kill comes first");
}

#[cfg(feature = "posix")]
mod posix {
    use super::*;
    use common::child::Child;
    use std::collections::BTreeSet;
    use std::time::{Duration, SystemTime};

    /// Empty objects of this user's bus. Those of live processes come and go within microseconds.
    fn leftovers() -> BTreeSet<String> {
        let list = || {
            std::fs::read_dir("/dev/shm")
                .unwrap()
                .flatten()
                .filter(|e| e.metadata().is_ok_and(|m| m.len() == 0))
                .filter_map(|e| e.file_name().into_string().ok())
                .filter(|n| n.starts_with("ropewalk-"))
                .collect::<BTreeSet<_>>()
        };
        let first = list();
        std::thread::sleep(Duration::from_millis(50));
        &first & &list()
    }

    #[test]
    fn a_name_that_the_killed_left_is_empty_and_is_removed() {
        for step in ["shm-named", "shm-opened"] {
            let before = leftovers();
            let dir = folder();
            let mut child = Child::start("maker", dir.path(), &[("ROPEWALK_TEST_KILL_AT", step)]);
            child.wait();
            let left: Vec<_> = leftovers().difference(&before).cloned().collect();
            assert!(!left.is_empty(), "{step}: killed while the name exists");
            drop(bus(&dir));
            let exists = |name: &String| std::fs::exists(format!("/dev/shm/{name}")).unwrap();
            assert!(
                left.iter().any(exists),
                "{step}: young ones may belong to the living"
            );
            for name in &left {
                if let Ok(file) = std::fs::File::open(format!("/dev/shm/{name}")) {
                    let _ = file.set_modified(SystemTime::now() - Duration::from_secs(60));
                }
            }
            let bus = bus(&dir);
            eventually("old ones are removed", || !left.iter().any(exists));
            drop(bus);
        }
    }
}
