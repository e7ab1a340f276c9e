//! Spinning before sleeping, and ending a wait from outside.
#![allow(missing_docs)]

mod common;

use bus::{Publisher, PublisherOptions, Stamp, SubscriberOptions, WaitSet};
use common::{LONG, bus, folder, readable, topic};
use std::time::{Duration, Instant};

fn send(publisher: &Publisher) {
    let loan = publisher.loan(0, &[64]).unwrap();
    publisher.publish(loan, Stamp::default()).unwrap();
}

#[test]
fn only_sleeping_subscribers_are_rung() {
    let dir = folder();
    let bus = bus(&dir);
    for (spin, rung) in [(LONG, false), (Duration::ZERO, true)] {
        let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
        let options = SubscriberOptions::default().with_spin(spin);
        let subscriber = bus.subscriber(topic("/a"), options).unwrap();
        assert!(publisher.wait_for_subscribers(1, LONG));
        let is_rung = || {
            assert!(subscriber.take().unwrap().is_none(), "arms the doorbell");
            assert!(!readable(&subscriber));
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| subscriber.take_timeout(LONG).unwrap().is_some());
                std::thread::sleep(Duration::from_millis(20));
                send(&publisher);
                assert!(waiting.join().unwrap());
            });
            readable(&subscriber)
        };
        if rung {
            (0..10).for_each(|_| assert!(is_rung()));
        } else {
            // On a busy machine the message may arrive before the thread begins to spin.
            common::eventually("a message comes without a ring", || !is_rung());
        }
        assert!(subscriber.take().unwrap().is_none());
        send(&publisher);
        assert!(readable(&subscriber), "finding nothing arms again");
    }
}

#[test]
fn after_spinning_in_vain_it_sleeps_and_is_woken() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let options = SubscriberOptions::default().with_spin(Duration::from_millis(5));
    let subscriber = bus.subscriber(topic("/a"), options).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    let start = Instant::now();
    let timeout = Duration::from_millis(50);
    assert!(subscriber.take_timeout(timeout).unwrap().is_none());
    assert!(start.elapsed() >= timeout);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| subscriber.take_timeout(LONG).unwrap().is_some());
        std::thread::sleep(Duration::from_millis(100));
        send(&publisher);
        assert!(waiting.join().unwrap());
    });
}

/// One sleeps and one spins: the spinner must not keep the sleeper from waking.
#[test]
fn a_spinner_leaves_a_sleeper_its_doorbell() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let options = SubscriberOptions::default().with_spin(Duration::from_millis(1));
    let subscriber = bus.subscriber(topic("/a"), options).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    std::thread::scope(|scope| {
        let takers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut got = 0;
                    while got < 200 {
                        got += usize::from(subscriber.take_timeout(LONG).unwrap().is_some());
                    }
                })
            })
            .collect();
        for n in 0..400 {
            common::eventually("a taker comes", || publisher.stats().subscribers[0].queued < 8);
            send(&publisher);
            if n % 20 == 0 {
                std::thread::sleep(Duration::from_millis(3));
            }
        }
        for taker in takers {
            taker.join().unwrap();
        }
    });
}

/// A sleeper on a wait set is woken for a member's message although another thread spins for that member.
#[test]
fn a_spinner_leaves_the_doorbell_to_earlier_sleepers() {
    let dir = folder();
    let bus = bus(&dir);
    let set = WaitSet::new(&bus).unwrap();
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let options = SubscriberOptions::default()
        .with_spin(10 * LONG)
        .with_wait_set(&set);
    let subscriber = bus.subscriber(topic("/a"), options).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    for _ in 0..5 {
        std::thread::scope(|scope| {
            // On a busy machine these may begin in another order, in which there is nothing to guard against.
            let sleeping = scope.spawn(|| set.wait(LONG).unwrap());
            std::thread::sleep(Duration::from_millis(20));
            // It checks without taking, so that the sleeper finds the message when it wakes.
            let spinning = scope.spawn(|| subscriber.wait(10 * LONG).unwrap());
            std::thread::sleep(Duration::from_millis(20));
            send(&publisher);
            assert!(spinning.join().unwrap());
            assert!(sleeping.join().unwrap(), "it slept through a message");
        });
        assert!(subscriber.take().unwrap().is_some());
    }
}

#[test]
fn an_interrupt_ends_one_wait() {
    let dir = folder();
    let bus = bus(&dir);
    for spin in [Duration::ZERO, LONG] {
        let options = SubscriberOptions::default().with_spin(spin);
        let subscriber = bus.subscriber(topic("/a"), options).unwrap();
        let interrupt = subscriber.interrupt();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| subscriber.take_timeout(Duration::MAX).unwrap());
            std::thread::sleep(Duration::from_millis(50));
            interrupt.wake();
            assert!(waiting.join().unwrap().is_none());
        });
        // Before a wait it ends the next one, and only that.
        interrupt.clone().wake();
        interrupt.wake();
        assert!(!subscriber.wait(Duration::MAX).unwrap());
        let start = Instant::now();
        assert!(!subscriber.wait(Duration::from_millis(20)).unwrap());
        assert!(start.elapsed() >= Duration::from_millis(20));
    }
    let set = WaitSet::new(&bus).unwrap();
    set.interrupt().wake();
    assert!(!set.wait(Duration::MAX).unwrap());
}

#[test]
fn waiting_for_room_ends_when_a_held_message_is_dropped() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let options = SubscriberOptions::default().with_max_held(1);
    let subscriber = bus.subscriber(topic("/a"), options).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    send(&publisher);
    send(&publisher);
    let held = subscriber.take_timeout(LONG).unwrap().unwrap();
    assert!(
        subscriber.wait(Duration::ZERO).unwrap(),
        "it gets the error that it holds too many"
    );
    assert!(!subscriber.wait_takeable(Duration::from_millis(20)).unwrap());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| subscriber.wait_takeable(LONG).unwrap());
        std::thread::sleep(Duration::from_millis(50));
        drop(held);
        assert!(waiting.join().unwrap());
    });
    assert_eq!(subscriber.take().unwrap().unwrap().sequence(), 2);
}

#[test]
fn quietly_published_messages_wake_nobody_before_the_ring() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let quiet = || {
        let loan = publisher.loan(0, &[64]).unwrap();
        publisher.publish_quietly(loan, Stamp::default()).unwrap()
    };
    let subscriber = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    let other = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    assert!(publisher.wait_for_subscribers(2, LONG));
    for s in [&subscriber, &other] {
        assert!(s.take().unwrap().is_none(), "arms the doorbell");
    }
    publisher.ring();
    assert!(!readable(&subscriber), "there is nothing to report");
    assert_eq!((quiet().queued_to, quiet().queued_to), (2, 2));
    assert!(!readable(&subscriber) && !readable(&other));
    assert!(other.take().unwrap().is_some(), "a take finds it");
    publisher.ring();
    assert!(readable(&subscriber));
    for _ in 0..2 {
        assert!(subscriber.take().unwrap().is_some());
    }
    assert!(subscriber.take().unwrap().is_none(), "one ring for both");
    publisher.ring();
    assert!(!readable(&subscriber), "it was notified once");
    quiet();
    assert!(subscriber.take().unwrap().is_some());
    assert!(subscriber.take().unwrap().is_none());
    publisher.ring();
    assert!(!readable(&subscriber), "a taken message is not reported");
    // A sleeper is woken by a normal publish, and has all messages that came before.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| subscriber.take_timeout(LONG).unwrap().map(|m| m.sequence()));
        std::thread::sleep(Duration::from_millis(20));
        quiet();
        send(&publisher);
        assert_eq!(waiting.join().unwrap(), Some(4));
    });
}

/// A loan wakes those that asked for it, once, and leaves them armed for the message.
#[test]
fn early_waking_subscribers_wake_at_the_loan_and_miss_no_message() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let options = SubscriberOptions::default().with_early_wake(true);
    let early = bus.subscriber(topic("/a"), options).unwrap();
    let plain = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    assert!(publisher.wait_for_subscribers(2, LONG));
    for subscriber in [&early, &plain] {
        assert!(subscriber.take().unwrap().is_none(), "arms the doorbell");
    }
    // A publisher that published just now does not wake early.
    std::thread::sleep(Duration::from_millis(5));
    let loan = publisher.loan(0, &[64]).unwrap();
    assert!(readable(&early) && !readable(&plain));
    assert!(early.is_expecting() && !plain.is_expecting());
    assert!(
        !early.rearm().unwrap() && !readable(&early),
        "there is nothing yet"
    );
    publisher.publish(loan, Stamp::default()).unwrap();
    for subscriber in [&early, &plain] {
        assert!(readable(subscriber) && !subscriber.is_expecting());
        assert!(subscriber.take().unwrap().is_some());
        assert!(subscriber.take().unwrap().is_none());
    }

    // A thread that sleeps gets each message, although it wakes twice.
    std::thread::scope(|scope| {
        let (heard, hears) = std::sync::mpsc::channel();
        scope.spawn(move || {
            for _ in 0..200 {
                heard.send(early.take_timeout(LONG).unwrap().is_some()).unwrap();
            }
        });
        for i in 0..200u64 {
            std::thread::sleep(Duration::from_micros(1000 + i * 7));
            let loan = publisher.loan(0, &[64]).unwrap();
            std::thread::sleep(Duration::from_micros(i % 40 * 5));
            publisher.publish(loan, Stamp::default()).unwrap();
            assert!(hears.recv_timeout(LONG).unwrap(), "message {i}");
        }
    });
}
