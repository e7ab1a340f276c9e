//! Written once: another process reads a 4 MB message where its publisher wrote it.
#![allow(missing_docs)]

mod common;

use bus::{Bus, BusConfig, PublisherOptions, Stamp, SubscriberOptions};
use common::child::{Child, hear, role, say};
use common::{LONG, bus, folder, topic};
use std::path::Path;

const LEN: usize = 4 << 20;

/// The file that an address belongs to, and the position in it: `device:inode+offset`.
fn place(address: usize) -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    for line in maps.lines() {
        let fields: Vec<_> = line.split_whitespace().collect();
        let (from, to) = fields[0].split_once('-').unwrap();
        let hex = |t: &str| usize::from_str_radix(t, 16).unwrap();
        if (hex(from)..hex(to)).contains(&address) {
            assert!(
                line.contains(common::shared_memory("ropewalk-payload").as_str()),
                "{line}"
            );
            return format!(
                "{}:{}+{:#x}",
                fields[3],
                fields[4],
                hex(fields[2]) + address - hex(from)
            );
        }
    }
    panic!("{address:#x} is not mapped");
}

#[test]
fn child_entry() {
    if let Some((_, dir)) = role() {
        publish_and_poison(&dir);
    }
}

fn publish_and_poison(dir: &Path) {
    let bus = Bus::open(BusConfig::new(dir)).unwrap();
    let publisher = bus
        .publisher(topic("/image"), PublisherOptions::default())
        .unwrap();
    assert!(publisher.wait_for_subscribers(2, LONG));
    let mut loan = publisher.loan(16, &[LEN]).unwrap();
    loan.part_mut(0).fill(0x11);
    let address = loan.part_ptr(0).unwrap();
    publisher.publish(loan, Stamp::default()).unwrap();
    say(place(address as usize));
    assert_eq!(hear(), "poison");
    publisher.poison(address, LEN, 0xEE);
    say("poisoned");
    hear();
}

#[test]
fn four_megabytes_are_read_where_they_were_written() {
    let dir = folder();
    let bus = bus(&dir);
    let subscribers = [(); 2].map(|()| {
        bus.subscriber(topic("/image"), SubscriberOptions::default())
            .unwrap()
    });
    let mut child = Child::start("publisher", dir.path(), &[]);
    let theirs = child.hear();
    let messages = subscribers
        .each_ref()
        .map(|s| s.take_timeout(LONG).unwrap().unwrap());
    for message in &messages {
        // By address: the same byte of the same file at both ends.
        assert_eq!(place(message.part(0).as_ptr() as usize), theirs);
        assert_eq!(
            place(message.part(0).as_ptr() as usize + LEN - 1)
                .split('+')
                .next(),
            theirs.split('+').next()
        );
        assert!(message.part(0).bytes().iter().all(|b| *b == 0x11));
    }
    // By poisoning the original: what the publisher writes now shows in the view, so there is no copy.
    child.say("poison");
    assert_eq!(child.hear(), "poisoned");
    for message in &messages {
        let mut seen = vec![0; LEN];
        assert_eq!(message.part(0).copy_to(0, &mut seen), LEN);
        assert!(seen.iter().all(|b| *b == 0xEE));
    }
}

#[test]
fn writes_of_a_reader_stay_in_its_own_copy() {
    const PART: usize = 300_000;
    let dir = folder();
    let (there, here) = (bus(&dir), bus(&dir));
    let publisher = there
        .publisher(topic("/image"), PublisherOptions::default())
        .unwrap();
    let subscriber = here
        .subscriber(topic("/image"), SubscriberOptions::default())
        .unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    for round in 0..40u8 {
        let mut loan = publisher.loan(16, &[PART, 0, 64]).unwrap();
        loan.part_mut(0).fill(round);
        loan.part_mut(2).fill(!round);
        publisher.publish(loan, Stamp::default()).unwrap();
        let message = subscriber.take().unwrap().expect("a message");
        let (long, short) = (message.own_part(0).unwrap(), message.own_part(2).unwrap());
        assert_eq!((long.len(), short.len()), (PART, 64));
        assert!(message.own_part(1).is_err(), "it is empty");
        assert!(message.own_part(3).is_err(), "there is none");
        // SAFETY: memory of that length that nobody else uses as long as `long` lives.
        let bytes = unsafe { std::slice::from_raw_parts_mut(long.as_ptr(), PART) };
        assert!(bytes.iter().all(|b| *b == round), "of the message before");
        bytes[..5000].fill(0xEE);
        assert_eq!(
            message.part(0).bytes()[0],
            round,
            "others read what was published"
        );
        // SAFETY: likewise.
        let short = unsafe { std::slice::from_raw_parts(short.as_ptr(), 64) };
        assert!(short.iter().all(|b| *b == !round));
        drop(message);
        assert_eq!(bytes[0], 0xEE);
    }
}
