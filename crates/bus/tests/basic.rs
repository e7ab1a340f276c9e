//! Publishing and taking on one host, without misbehaving peers.
#![allow(missing_docs)]

mod common;

use bus::{
    BusConfig, LoanError, MAX_PARTS, PublishError, PublisherOptions, Stamp, SubscriberOptions, TakeError,
    WaitSet,
};
use common::{LONG, bus, eventually, folder, readable, topic};
use stats::{DropReason, Time};
use std::time::Duration;

fn send(publisher: &bus::Publisher, value: u8, len: usize) -> bus::Published {
    let mut loan = publisher.loan(4, &[len]).unwrap();
    loan.control_mut().copy_from_slice(&[value; 4]);
    loan.part_mut(0).fill(value);
    publisher.publish(loan, Stamp::default()).unwrap()
}

#[test]
fn upstream_losses_show_in_the_sequence_numbers() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus
        .publisher(topic("/a"), PublisherOptions::default().with_history(4))
        .unwrap();
    let subscriber = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    assert_eq!(send(&publisher, 1, 0).sequence, 1);
    publisher.skip(5);
    publisher.skip(u64::MAX);
    assert_eq!(
        publisher.stats().published,
        1,
        "what was skipped was not published"
    );
    let sequence = send(&publisher, 2, 0).sequence;
    assert!(sequence > 6);
    let taken = || subscriber.take_timeout(LONG).unwrap().unwrap();
    assert_eq!((taken().sequence(), taken().sequence()), (1, sequence));
    assert_eq!(publisher.stats().published, 2);
}

#[test]
fn a_message_arrives_as_it_was_sent() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let subscriber = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    assert!(subscriber.wait_for_publishers(1, LONG));

    let mut loan = publisher.loan(5, &[10, 0, 100_000]).unwrap();
    {
        let (control, parts) = loan.split_mut();
        control.copy_from_slice(b"hello");
        for (i, part) in parts.enumerate() {
            assert_eq!(part.as_ptr() as usize % 64, 0);
            part.fill(i as u8 + 1);
        }
    }
    let stamp = Stamp {
        time: Some(Time(42)),
        origin: Some(7),
    };
    let done = publisher.publish(loan, stamp).unwrap();
    assert_eq!((done.sequence, done.queued_to, done.dropped.total()), (1, 1, 0));

    let message = subscriber.take_timeout(LONG).unwrap().unwrap();
    assert_eq!(message.control(), b"hello");
    assert_eq!(
        (message.stamp(), message.origin(), message.sequence()),
        (Time(42), 7, 1)
    );
    assert_eq!(message.publisher(), publisher.id());
    assert_eq!(message.part_count(), 3);
    assert_eq!(message.part(0).bytes(), [1; 10]);
    assert!(message.part(1).is_empty() && message.part(3).is_empty());
    assert!(message.part(2).bytes().iter().all(|b| *b == 3));
    let mut tail = [0; 8];
    assert_eq!(message.part(0).copy_to(7, &mut tail), 3);
    assert_eq!(tail, [1, 1, 1, 0, 0, 0, 0, 0]);
    assert_eq!(message.part(0).copy_to(usize::MAX, &mut tail), 0);
    assert!(subscriber.take().unwrap().is_none());

    send(&publisher, 1, 1);
    let message = subscriber.take_timeout(LONG).unwrap().unwrap();
    assert_eq!(
        message.origin(),
        publisher.id(),
        "its own, unless another is given"
    );
    assert!(
        message.stamp() > Time::from_millis(1_600_000_000_000),
        "of the clock, unless another is given"
    );
}

#[test]
fn a_shrunk_control_part_arrives_short() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let subscriber = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    for len in [0, 5, 600] {
        let mut loan = publisher.loan(600, &[10]).unwrap();
        loan.control_mut().fill(3);
        loan.part_mut(0).fill(4);
        assert!(loan.shrink_control(len) && !loan.shrink_control(len + 1));
        assert_eq!(
            (loan.control_len(), loan.part_len(0), loan.part_len(1)),
            (len, 10, 0)
        );
        publisher.publish(loan, Stamp::default()).unwrap();
        let message = subscriber.take_timeout(LONG).unwrap().unwrap();
        assert_eq!(
            (message.control(), message.part(0).bytes()),
            (&vec![3; len][..], &[4; 10][..])
        );
    }
}

#[test]
fn a_shrunk_data_part_arrives_short() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let subscriber = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    for len in [0, 5, 600] {
        let mut loan = publisher.loan(3, &[10, 600]).unwrap();
        loan.control_mut().fill(3);
        loan.part_mut(0).fill(4);
        loan.part_mut(1).fill(5);
        assert!(loan.shrink_part(1, len) && !loan.shrink_part(1, len + 1) && !loan.shrink_part(2, 0));
        publisher.publish(loan, Stamp::default()).unwrap();
        let message = subscriber.take_timeout(LONG).unwrap().unwrap();
        let parts = (message.part(0).bytes(), message.part(1).bytes());
        assert_eq!(parts, (&[4; 10][..], &vec![5; len][..]));
    }
}

#[test]
fn a_kept_block_is_not_used_again_until_it_is_let_go() {
    let dir = folder();
    let bus = bus(&dir);
    let options = PublisherOptions::default().with_memory_limit(1 << 20);
    let publisher = bus.publisher(topic("/a"), options).unwrap();
    let mut loan = publisher.loan(0, &[600_000]).unwrap();
    loan.part_mut(0).fill(7);
    let (place, kept, again) = (loan.part_ptr(0).unwrap(), loan.keep(), loan.keep());
    publisher.publish(loan, Stamp::default()).unwrap();
    drop(again);
    let short = publisher.loan(0, &[600_000]).unwrap_err();
    assert!(matches!(short, LoanError::MemoryShort { .. }), "{short}");
    drop(kept);
    assert_eq!(publisher.loan(0, &[600_000]).unwrap().part_ptr(0).unwrap(), place);

    // It also outlives its publisher.
    let kept = publisher.loan(0, &[10]).unwrap().keep();
    drop((publisher, bus));
    drop(kept);
}

#[test]
fn views_outlive_subscriber_bus_and_publisher() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let subscriber = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    send(&publisher, 9, 5_000_000);
    let message = subscriber.take_timeout(LONG).unwrap().unwrap();
    drop(subscriber);
    for _ in 0..100 {
        send(&publisher, 8, 5_000_000);
    }
    assert_eq!(
        publisher.stats().subscribers[0].held,
        1,
        "the view holds its block"
    );
    drop((publisher, bus));
    assert!(message.part(0).bytes().iter().all(|b| *b == 9));
    std::thread::spawn(move || assert_eq!(message.part(0).bytes()[4_999_999], 9))
        .join()
        .unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn queued_messages_can_be_taken_after_the_publisher_left() {
    let dir = folder();
    let bus = bus(&dir);
    let subscriber = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    (1..=3).for_each(|i| {
        send(&publisher, i, 300_000);
    });
    drop(publisher);
    for i in 1..=3 {
        let message = subscriber.take_timeout(LONG).unwrap().unwrap();
        assert_eq!(message.part(0).bytes()[299_999], i);
    }
    eventually("the dead publisher is forgotten", || {
        subscriber.publisher_count() == 0
    });
    assert!(subscriber.take().unwrap().is_none());
}

#[test]
fn a_full_queue_drops_its_oldest_and_says_so_on_both_ends() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let options = SubscriberOptions::default().with_depth(3);
    let subscriber = bus.subscriber(topic("/a"), options).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    let dropped: u64 = (0..10)
        .map(|i| send(&publisher, i, 100).dropped.count(DropReason::QueueFull))
        .sum();
    assert_eq!(dropped, 7);
    assert_eq!(publisher.stats().subscribers[0].queued, 3);
    let first = subscriber.take_timeout(LONG).unwrap().unwrap();
    assert_eq!(
        (first.control()[0], first.lost().count(DropReason::QueueFull)),
        (7, 7)
    );
    let second = subscriber.take().unwrap().unwrap();
    assert_eq!((second.control()[0], second.lost().total()), (8, 0));
    assert_eq!(subscriber.take().unwrap().unwrap().control()[0], 9);
    assert_eq!(subscriber.stats().drops.count(DropReason::QueueFull), 7);
    assert_eq!(publisher.stats().drops.count(DropReason::QueueFull), 7);
}

#[test]
fn holding_too_many_is_an_error_and_ends_with_a_drop() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let subscriber = bus
        .subscriber(topic("/a"), SubscriberOptions::default().with_max_held(2))
        .unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    (0..5).for_each(|i| {
        send(&publisher, i, 100);
    });
    let a = subscriber.take_timeout(LONG).unwrap().unwrap();
    let _b = subscriber.take().unwrap().unwrap();
    assert!(matches!(subscriber.take(), Err(TakeError::HoldLimit { held: 2 })));
    assert!(
        !readable(&subscriber),
        "a poll loop must not spin on what it cannot take"
    );
    drop(a);
    assert!(readable(&subscriber));
    assert_eq!(subscriber.take().unwrap().unwrap().control()[0], 2);
}

#[test]
fn the_descriptor_is_readable_until_a_take_finds_nothing() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let subscriber = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    assert!(!readable(&subscriber));
    (0..3).for_each(|i| {
        send(&publisher, i, 100);
    });
    for _ in 0..3 {
        assert!(readable(&subscriber));
        assert!(subscriber.take().unwrap().is_some());
    }
    assert!(readable(&subscriber), "nobody looked yet");
    assert!(subscriber.take().unwrap().is_none());
    assert!(!readable(&subscriber));
    send(&publisher, 1, 100);
    assert!(readable(&subscriber));
}

#[test]
fn several_publishers_are_taken_in_order_of_queueing() {
    let dir = folder();
    let bus = bus(&dir);
    let subscriber = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    let publishers: Vec<_> = (0..3)
        .map(|_| bus.publisher(topic("/a"), PublisherOptions::default()).unwrap())
        .collect();
    assert!(subscriber.wait_for_publishers(3, LONG));
    publishers
        .iter()
        .for_each(|p| assert!(p.wait_for_subscribers(1, LONG)));
    let order = [0, 1, 1, 2, 0, 2, 1, 0, 2];
    for (n, p) in order.into_iter().enumerate() {
        send(&publishers[p], n as u8, 64);
    }
    for n in 0..order.len() {
        let message = subscriber.take_timeout(LONG).unwrap().unwrap();
        assert_eq!(usize::from(message.control()[0]), n);
        assert_eq!(message.publisher(), publishers[order[n]].id());
    }
}

#[test]
fn one_wait_set_wakes_for_many_subscribers() {
    let dir = folder();
    let bus = bus(&dir);
    let set = WaitSet::new(&bus).unwrap();
    let names: Vec<_> = (0..20).map(|i| format!("/t{i}")).collect();
    let options = || SubscriberOptions::default().with_wait_set(&set);
    let subscribers: Vec<_> = names
        .iter()
        .map(|n| bus.subscriber(topic(n), options()).unwrap())
        .collect();
    let publishers: Vec<_> = names
        .iter()
        .map(|n| bus.publisher(topic(n), PublisherOptions::default()).unwrap())
        .collect();
    publishers
        .iter()
        .for_each(|p| assert!(p.wait_for_subscribers(1, LONG)));
    assert!(!set.wait(Duration::ZERO).unwrap());
    for i in [7usize, 0, 19] {
        send(&publishers[i], 1, 64);
        assert!(set.wait(LONG).unwrap());
        assert!(readable(&set));
        let got: Vec<_> = (0..20)
            .filter(|s| subscribers[*s].take().unwrap().is_some())
            .collect();
        assert_eq!(got, [i]);
        assert!(!set.rearm().unwrap());
        assert!(!readable(&set));
    }
    // A subscriber of the set that waits on its own is not disturbed by the others' messages.
    send(&publishers[3], 1, 64);
    assert!(
        subscribers[4]
            .take_timeout(Duration::from_millis(20))
            .unwrap()
            .is_none()
    );
    assert!(set.rearm().unwrap() && readable(&set));
}

#[test]
fn a_sleeper_is_woken() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let subscriber = bus.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    let sleeper = std::thread::spawn(move || {
        (0..2000)
            .map(|_| subscriber.take_timeout(LONG).unwrap().unwrap().sequence())
            .collect::<Vec<_>>()
    });
    for i in 0..2000u64 {
        // Never further ahead than the queue's depth.
        eventually("the sleeper keeps up", || {
            publisher.stats().subscribers[0].queued < 8
        });
        assert_eq!(send(&publisher, 0, 64).sequence, i + 1);
    }
    assert_eq!(sleeper.join().unwrap(), (1..=2000).collect::<Vec<_>>());
}

#[test]
fn a_type_mismatch_is_named_on_both_sides() {
    let dir = folder();
    let bus = bus(&dir);
    let publisher = bus.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let mut other = topic("/a");
    other.type_hash = [0xA5; 16];
    other.definition = "# Not as there.\nuint16[] data\n".into();
    let subscriber = bus.subscriber(other, SubscriberOptions::default()).unwrap();
    eventually("both sides know", || {
        !publisher.refusals().is_empty() && !subscriber.refusals().is_empty()
    });
    for refusal in [publisher.refusals().remove(0), subscriber.refusals().remove(0)] {
        let reason = refusal.reason;
        assert!(
            reason.contains(&"5a".repeat(16)) && reason.contains(&"a5".repeat(16)),
            "{reason}"
        );
        assert!(reason.contains("/a"), "{reason}");
        assert_eq!(refusal.pid, std::process::id() as i32);
        let field = [
            "\"uint8[] data\" here and \"uint16[] data\" there",
            "\"uint16[] data\" here and \"uint8[] data\" there",
        ];
        assert!(field.iter().any(|f| reason.contains(f)), "{reason}");
    }
    assert_eq!(publisher.subscriber_count(), 0);

    let mut other = topic("/a");
    other.type_name = "test_msgs/Other".into();
    let subscriber = bus.subscriber(other, SubscriberOptions::default()).unwrap();
    eventually("the subscriber knows", || !subscriber.refusals().is_empty());
    let reason = subscriber.refusals().remove(0).reason;
    assert!(
        reason.contains("test_msgs/Other") && reason.contains("test_msgs/Blob"),
        "{reason}"
    );
}

#[test]
fn domains_do_not_meet() {
    let dir = folder();
    let a = bus(&dir);
    let b = bus::Bus::open(BusConfig::new(dir.path()).with_domain(1)).unwrap();
    let publisher = a.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let _other = b.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    let same = a.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    assert!(same.wait_for_publishers(1, LONG));
    assert!(!publisher.wait_for_subscribers(2, Duration::from_millis(200)));
    assert_eq!(b.topics(LONG).unwrap().len(), 1);
    assert_eq!(b.topics(LONG).unwrap()[0].publishers.len(), 0);
}

#[test]
fn topics_lists_the_present_endpoints() {
    let dir = folder();
    let one = bus(&dir);
    let two = bus(&dir);
    let publisher = one.publisher(topic("/a"), PublisherOptions::default()).unwrap();
    let subscriber = two.subscriber(topic("/a"), SubscriberOptions::default()).unwrap();
    let _other = two.subscriber(topic("/b"), SubscriberOptions::default()).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    send(&publisher, 1, 100);
    let topics = one.topics(LONG).unwrap();
    assert_eq!(topics.len(), 2);
    assert_eq!(topics[0].topic, topic("/a"));
    let p = &topics[0].publishers[0];
    assert_eq!((p.id, p.connected, p.messages), (publisher.id(), 1, 1));
    assert_eq!(p.pid, std::process::id() as i32);
    assert!(p.memory > 0 && p.program.is_some());
    assert_eq!(topics[0].subscribers[0].id, subscriber.id());
    drop((publisher, subscriber));
    assert_eq!(one.topics(LONG).unwrap().len(), 1);
}

#[test]
fn bad_requests_are_errors_with_facts() {
    let dir = folder();
    let bus = bus(&dir);
    let options = PublisherOptions::default().with_memory_limit(1 << 20);
    let publisher = bus.publisher(topic("/a"), options).unwrap();
    let other = bus.publisher(topic("/b"), PublisherOptions::default()).unwrap();
    assert!(matches!(
        publisher.loan(0, &[0; MAX_PARTS + 1]),
        Err(LoanError::TooManyParts { count: 33 })
    ));
    assert!(matches!(
        publisher.loan(0, &[1 << 20]),
        Err(LoanError::TooLarge { limit: 1048576, .. })
    ));
    assert!(matches!(
        publisher.loan(0, &[usize::MAX, 9]),
        Err(LoanError::TooLarge { .. })
    ));
    assert!(matches!(
        publisher.loan(usize::MAX, &[]),
        Err(LoanError::ControlTooLong { .. })
    ));
    let loan = publisher.loan(0, &[10]).unwrap();
    assert!(matches!(
        other.publish(loan, Stamp::default()),
        Err(PublishError::ForeignLoan)
    ));
    assert_eq!(
        publisher.stats().memory_used,
        0,
        "the loan went back to its owner"
    );
    assert!(bus.publisher(topic(""), PublisherOptions::default()).is_err());
    assert!(
        bus.publisher(topic(&"x".repeat(256)), PublisherOptions::default())
            .is_err()
    );
    assert!(
        bus.subscriber(topic("/a"), SubscriberOptions::default().with_depth(0))
            .is_err()
    );
    assert!(
        bus.subscriber(topic("/a"), SubscriberOptions::default().with_max_held(5000))
            .is_err()
    );
    // There is no subscriber, so nothing stays queued.
    assert_eq!(send(&other, 1, 100).queued_to, 0);
    assert_eq!(other.stats().memory_used, 0);
}
