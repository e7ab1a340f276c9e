//! What an observer learns about endpoints that it is not connected to.
#![allow(missing_docs)]

mod common;

use bus::{EndpointDetail, MemoryPolicy, PublisherOptions, QueuePolicy, Stamp, SubscriberOptions};
use common::{LONG, bus, eventually, folder, topic};
use stats::DropReason;

#[test]
fn topics_report_queues_memory_policies_and_losses() {
    let dir = folder();
    let (one, two) = (bus(&dir), bus(&dir));
    let options = PublisherOptions::default()
        .with_memory_limit(6 << 20)
        .with_memory_policy(MemoryPolicy::Medium(3))
        .with_history(2);
    let publisher = one.publisher(topic("/a"), options).unwrap();
    let options = SubscriberOptions::default()
        .with_depth(2)
        .with_max_held(7)
        .with_queue_policy(QueuePolicy::DropNewest)
        .with_history(1);
    let subscriber = two.subscriber(topic("/a"), options).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    for _ in 0..3 {
        let loan = publisher.loan(0, &[1000]).unwrap();
        publisher.publish(loan, Stamp::default()).unwrap();
    }
    let held = subscriber.take_timeout(LONG).unwrap().unwrap();
    let mut other = topic("/a");
    other.type_hash = [1; 16];
    let _other = two.subscriber(other, SubscriberOptions::default()).unwrap();
    eventually("it is refused", || !publisher.refusals().is_empty());
    let loan = publisher.loan(0, &[5 << 20]).unwrap();
    assert!(publisher.loan(0, &[5 << 20]).is_err());
    drop(loan);

    let topics = bus(&dir).topics(LONG).unwrap();
    assert_eq!(topics.len(), 2, "the other subscriber's type differs");
    let here = topics.iter().find(|t| !t.publishers.is_empty()).unwrap();
    let endpoint = &here.publishers[0];
    assert!(endpoint.refusals[0].contains("MD5"), "{:?}", endpoint.refusals);
    let EndpointDetail::Publisher(p) = &endpoint.detail else {
        panic!("not a publisher's")
    };
    assert_eq!(
        (p.memory_limit, p.memory_policy, p.offer.history),
        (6 << 20, MemoryPolicy::Medium(3), 2)
    );
    // The same as the publisher itself reports.
    assert_eq!(p.stats, publisher.stats());
    assert_eq!((p.stats.published, p.stats.refused), (3, 1));
    assert_eq!(p.stats.drops.count(DropReason::QueueFull), 1);
    let peer = &p.stats.subscribers[0];
    assert_eq!((peer.id, peer.pid), (subscriber.id(), std::process::id() as i32));
    assert_eq!((peer.held, peer.depth, peer.quota), (1, 2, 3 << 20));
    assert!(peer.ready && !peer.closing);

    let EndpointDetail::Subscriber(s) = &here.subscribers[0].detail else {
        panic!("not a subscriber's")
    };
    assert_eq!((s.depth, s.max_held, s.history, s.held), (2, 7, 1, 1));
    assert_eq!(s.queue_policy, QueuePolicy::DropNewest);
    assert_eq!(s.drops.count(DropReason::QueueFull), 1);
    assert_eq!(
        (here.subscribers[0].connected, here.subscribers[0].messages),
        (1, 1)
    );
    drop(held);
}
