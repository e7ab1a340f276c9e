//! Endpoints find each other exactly once, in any order of starting and in any number.
#![allow(missing_docs)]

mod common;

use bus::{Bus, BusConfig, PublisherOptions, Stamp, SubscriberOptions, WaitSet};
use common::child::{Child, hear, role, say};
use common::{LONG, Random, bus, eventually, folder, raw, topic};
use std::sync::Barrier;
use std::time::{Duration, Instant};

#[test]
fn child_entry() {
    let Some((role, dir)) = role() else { return };
    let bus = Bus::open(BusConfig::new(dir)).unwrap();
    match &*role[0] {
        // Sends `n` numbers on a topic, at random intervals, never further ahead of the answers than the
        // queue is deep.
        "sender" => {
            let (name, n): (_, u64) = (&role[1], role[2].parse().unwrap());
            let publisher = bus.publisher(topic(name), PublisherOptions::default()).unwrap();
            assert!(publisher.wait_for_subscribers(1, LONG));
            let mut random = Random(n + role[1].len() as u64);
            for i in 1..=n {
                eventually("the receiver keeps up", || {
                    publisher.stats().subscribers.first().is_none_or(|s| s.queued < 8)
                });
                let mut loan = publisher.loan(8, &[random.next(5000) as usize]).unwrap();
                loan.control_mut().copy_from_slice(&i.to_le_bytes());
                publisher.publish(loan, Stamp::default()).unwrap();
                if random.next(4) == 0 {
                    std::thread::sleep(Duration::from_micros(random.next(300)));
                }
            }
            say("done");
            hear();
        }
        // Its housekeeping rests at a step, while it publishes one message on request.
        "host" => {
            bus::hooks::call_at_step(|| std::thread::sleep(Duration::from_secs(1)));
            let publisher = bus
                .publisher(topic(&role[1]), PublisherOptions::default())
                .unwrap();
            hear();
            let loan = publisher.loan(0, &[10]).unwrap();
            publisher.publish(loan, Stamp::default()).unwrap();
            hear();
        }
        other => panic!("unknown role {other}"),
    }
}

#[test]
fn both_at_the_same_moment_connect_exactly_once() {
    let dir = folder();
    let buses = [bus(&dir), bus(&dir)];
    for round in 0..200 {
        let name = format!("/race{round}");
        let start = Barrier::new(2);
        std::thread::scope(|scope| {
            let publisher = scope.spawn(|| {
                start.wait();
                buses[0]
                    .publisher(topic(&name), PublisherOptions::default())
                    .unwrap()
            });
            start.wait();
            let subscriber = buses[1]
                .subscriber(topic(&name), SubscriberOptions::default())
                .unwrap();
            let publisher = publisher.join().unwrap();
            assert!(publisher.wait_for_subscribers(1, LONG) && subscriber.wait_for_publishers(1, LONG));
            let loan = publisher.loan(0, &[10]).unwrap();
            assert_eq!(publisher.publish(loan, Stamp::default()).unwrap().queued_to, 1);
            assert!(subscriber.take_timeout(LONG).unwrap().is_some());
            assert_eq!(
                (publisher.stats().subscribers.len(), subscriber.publisher_count()),
                (1, 1)
            );
            assert!(subscriber.take().unwrap().is_none(), "once");
            assert!(publisher.refusals().is_empty() && subscriber.refusals().is_empty());
        });
    }
}

/// A subscriber that sees a publisher gets everything that is published from then on, however slowly the
/// publisher accepts its subscribers.
#[test]
fn messages_published_after_the_welcome_arrive() {
    let dir = folder();
    let bus = bus(&dir);
    let subscriber = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    let step = ("ROPEWALK_TEST_CALL_AT", "welcome-sent");
    let mut publisher = Child::start("host /a", dir.path(), &[step]);
    assert!(subscriber.wait_for_publishers(1, LONG));
    publisher.say("publish");
    assert!(subscriber.take_timeout(LONG).unwrap().is_some(), "it is lost");
}

#[test]
fn restarts_are_found_again() {
    let dir = folder();
    let (one, two) = (bus(&dir), bus(&dir));
    let subscriber = one.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    for round in 1..=20u64 {
        let publisher = two.publisher(topic("/a"), PublisherOptions::default()).unwrap();
        assert!(publisher.wait_for_subscribers(1, LONG));
        let loan = publisher.loan(0, &[10]).unwrap();
        publisher.publish(loan, Stamp::default()).unwrap();
        drop(publisher);
        assert!(subscriber.take_timeout(LONG).unwrap().is_some());
        assert_eq!(subscriber.stats().received, round);
    }
    eventually("they are forgotten", || {
        subscriber.take().unwrap().is_none() && subscriber.publisher_count() == 0
    });
}

#[test]
fn many_endpoints_start_together() {
    let dir = folder();
    let (one, two) = (bus(&dir), bus(&dir));
    let start = Instant::now();
    let names: Vec<_> = (0..200).map(|i| format!("/t{i}")).collect();
    let mut subscribers = vec![];
    let mut publishers = vec![];
    for name in &names {
        for bus in [&one, &two] {
            for _ in 0..2 {
                subscribers.push(bus.subscriber(topic(name), SubscriberOptions::default()).unwrap());
            }
        }
        publishers.push(one.publisher(topic(name), PublisherOptions::default()).unwrap());
    }
    publishers
        .iter()
        .for_each(|p| assert!(p.wait_for_subscribers(4, LONG)));
    eprintln!("200 topics with 4 subscribers each after {:?}", start.elapsed());
    assert_eq!(one.topics(LONG).unwrap().len(), 200);
    drop((subscribers, publishers));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn another_version_is_refused_by_name_on_both_sides() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let path = &raw::publishers(dir.path())[0];
    let refused = |mutate: fn(&mut Vec<u8>)| {
        let socket = raw::connect(path);
        let mut hello = raw::hello("/a", 1);
        mutate(&mut hello);
        assert!(raw::send(&socket, &hello, &[]));
        let text = raw::refusal(&socket).unwrap();
        eventually("the publisher knows", || {
            publisher.refusals().iter().any(|r| r.reason == text)
        });
        text
    };
    let protocol = refused(|hello| hello[4] = 1);
    assert!(
        protocol.contains("version 3") && protocol.contains("version 1"),
        "{protocol}"
    );
    let layout = refused(|hello| hello[8] = 3);
    assert!(layout.contains("version 1 here and 3 there"), "{layout}");
    let domain = refused(|hello| hello[11] = 9);
    assert!(domain.contains("domain is 0 here and 9 there"), "{domain}");
    let role = refused(|hello| hello[10] = 1);
    assert!(role.contains("Publisher"), "{role}");
}

/// Sleepers in this process, senders in others: a lost wake-up would stop the test.
#[test]
fn no_wake_up_is_lost_between_processes() {
    let dir = folder();
    let bus = bus(&dir);
    let n = 3000;
    let alone = bus
        .subscriber(topic("/alone"), SubscriberOptions::default())
        .unwrap();
    let set = WaitSet::new(&bus).unwrap();
    let names = ["/s0", "/s1", "/s2"];
    let options = || SubscriberOptions::default().with_wait_set(&set);
    let members = names.map(|name| bus.subscriber(topic(name), options()).unwrap());
    let mut children: Vec<_> = ["/alone", "/s0", "/s1", "/s2"]
        .iter()
        .map(|name| Child::start(&format!("sender {name} {n}"), dir.path(), &[]))
        .collect();
    let one = std::thread::spawn(move || {
        // One message for each time that the descriptor is readable, as in a plain poll loop.
        let mut last = 0;
        while last < n {
            use rustix::event::{PollFd, PollFlags, Timespec, poll};
            let limit = Timespec {
                tv_sec: 30,
                tv_nsec: 0,
            };
            let ready = poll(&mut [PollFd::new(&alone, PollFlags::IN)], Some(&limit)).unwrap();
            assert_eq!(ready, 1, "a wake-up was lost after {last}");
            if let Some(message) = alone.take().unwrap() {
                let number = u64::from_le_bytes(message.control().try_into().unwrap());
                assert_eq!((number, message.lost().total()), (last + 1, 0));
                last = number;
            }
        }
    });
    let mut last = [0; 3];
    while last.iter().any(|l| *l < n) {
        assert!(set.wait(LONG).unwrap(), "a wake-up was lost after {last:?}");
        for (member, last) in members.iter().zip(&mut last) {
            while let Some(message) = member.take().unwrap() {
                let number = u64::from_le_bytes(message.control().try_into().unwrap());
                assert_eq!(number, *last + 1);
                *last = number;
            }
        }
    }
    one.join().unwrap();
    children.iter_mut().for_each(|c| assert_eq!(c.hear(), "done"));
}
