//! A subscriber copies the control parts of the messages that it takes, so a publisher can make it hold that
//! much memory.
#![allow(missing_docs)]

mod common;

use bus::{Message, PublisherOptions, Stamp, Subscriber, SubscriberOptions};
use common::child::{Child, hear, role, say};
use common::{LONG, bus, eventually, folder, topic};
use stats::DropReason;

const TOPIC: &str = "/long";
/// Six of them fit into the copies that one process may make of this publisher's control parts.
const CONTROL: usize = 24 << 20;
const FIT: usize = 6;

#[test]
fn child_entry() {
    let Some((_, dir)) = role() else { return };
    let bus = bus::Bus::open(bus::BusConfig::new(dir)).unwrap();
    let options = PublisherOptions::default().with_memory_limit(1 << 30);
    let publisher = bus.publisher(topic(TOPIC), options).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    say("ready");
    loop {
        let many: u32 = hear().parse().unwrap();
        for _ in 0..many {
            let loan = publisher.loan(CONTROL, &[]).unwrap();
            publisher.publish(loan, Stamp::default()).unwrap();
        }
        say("published");
    }
}

fn take_all(subscriber: &Subscriber) -> Vec<Message> {
    let mut held = Vec::new();
    for _ in 0..50 {
        while let Some(message) = subscriber.take().unwrap() {
            held.push(message);
        }
    }
    held
}

#[test]
fn copies_of_one_holders_control_parts_are_bounded_and_given_back_with_the_messages() {
    let dir = folder();
    let bus = bus(&dir);
    let options = SubscriberOptions::default().with_depth(16).with_max_held(16);
    let subscriber = bus.subscriber(topic(TOPIC), options).unwrap();
    let own = bus.publisher(topic(TOPIC), PublisherOptions::default()).unwrap();
    let mut child = Child::start("publisher", dir.path(), &[]);
    assert_eq!(child.hear(), "ready");
    assert!(subscriber.wait_for_publishers(2, LONG));
    child.say("9");
    assert_eq!(child.hear(), "published");
    let held = take_all(&subscriber);
    assert_eq!(held.len(), FIT);
    assert!(held.iter().all(|message| message.control().len() == CONTROL));
    let lost = || subscriber.stats().drops.count(DropReason::HoldLimit);
    assert_eq!(lost(), 9 - FIT as u64);
    // It costs nobody else anything.
    own.publish(own.loan(1 << 20, &[]).unwrap(), Stamp::default())
        .unwrap();
    assert_eq!(take_all(&subscriber).len(), 1);
    drop(held);
    child.say("2");
    assert_eq!(child.hear(), "published");
    let mut again = Vec::new();
    eventually("there is room again", || {
        again.extend(subscriber.take().unwrap());
        again.len() == 2
    });
    assert_eq!((lost(), subscriber.publisher_count()), (9 - FIT as u64, 2));
}
