//! Two nodes over real sockets of this host.

use rtps::{
    Durability, EndpointConfig, EntityId, Event, Handle, History, Node, Qos, Reliability, Sample,
    SampleIdentity, Timestamp, TransportConfig, WriteError, WriteOptions,
};
use std::time::{Duration, Instant};

/// A watchdog, not a limit to test.
const LONG: Duration = Duration::from_secs(120);

fn node(domain: u32) -> Node {
    // Concurrent tests, including those of other checkouts, use different domains.
    let transport = TransportConfig {
        domain: 60 + (domain + std::process::id()) % 40,
        ..TransportConfig::default()
    };
    let node = Node::open(transport, |config| {
        config.domain_tag = format!("test {}", std::process::id());
        // Long enough that a missing participant is reported by its departure and not by its lease.
        config.lease = Duration::from_secs(300);
    });
    node.expect("a node")
}

fn until<T>(handle: &Handle, mut is: impl FnMut(Event) -> Option<T>) -> T {
    let end = Instant::now() + LONG;
    while Instant::now() < end {
        if let Some(found) = handle.next_event(Duration::from_millis(100)).and_then(&mut is) {
            return found;
        }
    }
    panic!("no such event arrived");
}

fn matched(handle: &Handle, id: EntityId) {
    until(handle, |e| {
        matches!(e, Event::Matched { local, .. } if local == id).then_some(())
    });
}

fn next_sample(handle: &Handle) -> Sample {
    until(handle, |e| match e {
        Event::Sample(sample) => Some(sample),
        _ => None,
    })
}

fn joined(domain: u32, qos: Qos) -> (Node, EntityId, Node, EntityId) {
    let (a, b) = (node(domain), node(domain));
    let topic = || EndpointConfig::new("rt/images", "test::Type", qos.clone());
    let writer = a.add_writer(topic()).expect("a writer");
    let reader = b.add_reader(topic()).expect("a reader");
    matched(&a, writer);
    matched(&b, reader);
    (a, writer, b, reader)
}

#[test]
fn megabytes_come_whole_and_in_order() {
    let all = Qos {
        history: History::KeepAll,
        ..Qos::writer()
    };
    let (a, writer, b, reader) = joined(0, all);
    let image = |n: u8| [&[0, 1, 0, 0][..], &vec![n; 1_000_000]].concat();
    let mut n = 0;
    for expected in 0..20 {
        while n < 20 && n < expected + 4 {
            match a.write(writer, image(n), WriteOptions::default()) {
                Ok(_) => n += 1,
                Err(error) => {
                    assert_eq!(error, WriteError::Full);
                    break;
                }
            }
        }
        let sample = next_sample(&b);
        assert!(sample.reader == reader && sample.payload == image(expected));
        assert_eq!(sample.sequence, i64::from(expected) + 1);
    }
}

#[test]
fn a_request_and_its_reply_name_each_other() {
    let (a, writer, b, _) = joined(1, Qos::writer());
    let options = WriteOptions {
        related: Some(SampleIdentity {
            writer: b.guid(),
            sequence: 42,
        }),
        source_timestamp: Some(Timestamp(1_764_000_000_000_000_123)),
    };
    let written = a
        .write(writer, vec![0, 1, 0, 0, 7, 7, 7, 7], options)
        .expect("a sample");
    let sample = next_sample(&b);
    assert_eq!(
        (sample.writer, sample.sequence),
        (written.writer, written.sequence)
    );
    assert_eq!(
        (sample.related, sample.source_timestamp),
        (options.related, options.source_timestamp)
    );
}

#[test]
fn late_readers_get_kept_messages_and_leavers_are_gone_at_once() {
    let latched = Qos {
        durability: Durability::TransientLocal,
        history: History::KeepLast(5),
        reliability: Reliability::Reliable,
        ..Qos::writer()
    };
    let topic = || EndpointConfig::new("rt/map", "test::Type", latched.clone());
    let a = node(2);
    let writer = a.add_writer(topic()).expect("a writer");
    for n in 0..9u8 {
        a.write(writer, vec![n; 40_000], WriteOptions::default())
            .expect("a sample");
    }
    let b = node(2);
    b.add_reader(topic()).expect("a reader");
    for n in 4..9 {
        assert_eq!(next_sample(&b).payload, vec![n; 40_000]);
    }
    let guid = a.guid();
    drop(a);
    until(&b, |e| (e == Event::ParticipantGone(guid)).then_some(()));
    assert_eq!(b.held(), 0);
}
