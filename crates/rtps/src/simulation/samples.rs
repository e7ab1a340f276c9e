//! Samples over a bad network: reliable ones arrive once and in order, fragmented ones too.

use super::{Faults, Network, address, config, topic};
use crate::{Durability, EntityId, Event, History, Pace, Qos, Reliability, WriteError, WriteOptions};
use core::time::Duration;

const BAD: Faults = Faults {
    lost: 20,
    doubled: 10,
    late: 20,
};

fn joined(seed: u64, faults: Faults, qos: Qos) -> (Network, EntityId, EntityId) {
    let mut net = Network::new(seed, Faults::default(), (0..2).map(config));
    let now = net.now;
    let writer = net
        .p(0)
        .add_writer(now, topic("a", qos.clone()))
        .expect("a writer");
    let reader = net.p(1).add_reader(now, topic("a", qos)).expect("a reader");
    net.run_ms(1000);
    assert_eq!(net.p(0).matched(writer).len(), 1);
    assert_eq!(net.p(1).matched(reader).len(), 1);
    net.faults = faults;
    (net, writer, reader)
}

fn keep_all() -> Qos {
    Qos {
        history: History::KeepAll,
        ..Qos::writer()
    }
}

/// Bytes that distinguish one sample from another.
fn sample(n: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i / 251 + i + n * 7) as u8).collect()
}

fn write(net: &mut Network, writer: EntityId, payload: Vec<u8>) -> Result<(), WriteError> {
    let now = net.now;
    let written = net.p(0).write(now, writer, payload, WriteOptions::default());
    written.map(drop)
}

#[test]
fn every_reliable_sample_comes_once_and_in_order() {
    for seed in 0..20 {
        let (mut net, writer, _) = joined(seed, BAD, keep_all());
        let lengths = [4, 100, 15_999, 16_000, 16_001, 50_000, 200_000];
        let mut got = Vec::new();
        for n in 0..60 {
            while write(&mut net, writer, sample(n, lengths[n % lengths.len()])) == Err(WriteError::Full) {
                net.run_ms(10);
            }
            net.run_ms(3);
            got.extend(net.samples(1));
        }
        net.run(Duration::from_secs(20));
        got.extend(net.samples(1));
        let numbers: Vec<_> = got.iter().map(|s| s.sequence).collect();
        assert_eq!(numbers, (1..=60).collect::<Vec<_>>(), "seed {seed}");
        for (n, s) in got.iter().enumerate() {
            // An unfragmented sample is padded.
            let expected = sample(n, lengths[n % lengths.len()]);
            let padding = s.payload.strip_prefix(&expected[..]);
            assert!(padding.is_some_and(|p| p.len() < 4), "seed {seed}, sample {n}");
        }
        let lost = net.hosts[1]
            .events
            .iter()
            .any(|e| matches!(e, Event::Lost { .. }));
        assert!(!lost, "seed {seed}");
        let now = net.now;
        net.p(0).leave(now);
        net.p(1).leave(now);
        net.run_ms(100);
        assert_eq!((net.p(0).held(), net.p(1).held()), (0, 0));
    }
}

#[test]
fn many_short_samples_come_in_order_at_a_high_rate() {
    let (mut net, writer, _) = joined(7, BAD, keep_all());
    let mut got = 0;
    for n in 0..3000 {
        while write(&mut net, writer, sample(n, 40)) == Err(WriteError::Full) {
            net.run_ms(5);
        }
        if n % 10 == 9 {
            net.run_ms(1);
        }
    }
    net.run(Duration::from_secs(20));
    for s in net.samples(1) {
        got += 1;
        assert_eq!(s.sequence, got);
    }
    assert_eq!(got, 3000);
}

#[test]
fn a_writer_that_keeps_the_newest_drops_the_oldest_and_its_reader_knows() {
    let newest = Qos {
        history: History::KeepLast(5),
        ..Qos::writer()
    };
    let (mut net, writer, reader) = joined(8, Faults { lost: 100, ..BAD }, newest);
    for n in 0..50 {
        write(&mut net, writer, sample(n, 1000)).expect("never full");
        net.run_ms(5);
    }
    net.faults = Faults::default();
    net.run(Duration::from_secs(5));
    let numbers: Vec<_> = net.samples(1).iter().map(|s| s.sequence).collect();
    assert_eq!(numbers, [46, 47, 48, 49, 50]);
    let lost: u64 = net.hosts[1]
        .events
        .iter()
        .map(|e| match e {
            Event::Lost { reader: r, count } if *r == reader => *count,
            _ => 0,
        })
        .sum();
    assert_eq!(lost, 45);
}

#[test]
fn a_writer_that_keeps_all_is_full_until_its_reader_acknowledges() {
    let (mut net, writer, _) = joined(9, Faults { lost: 100, ..BAD }, keep_all());
    let mut written = 0;
    while write(&mut net, writer, sample(written, 100_000)) == Ok(()) {
        written += 1;
        net.run_ms(1);
    }
    assert_eq!(written, (64 << 20) / 100_000);
    assert!(net.p(0).ready(writer), "a short one has room");
    net.faults = Faults::default();
    net.run(Duration::from_secs(10));
    let reported = net.hosts[0]
        .events
        .iter()
        .filter(|e| matches!(e, Event::Writable { writer: w } if *w == writer));
    assert_eq!(reported.count(), 1);
    assert_eq!(net.samples(1).len(), written);
    assert_eq!(
        write(&mut net, writer, sample(0, (64 << 20) + 1)),
        Err(WriteError::TooLong {
            len: (64 << 20) + 1,
            most: 64 << 20
        })
    );
}

#[test]
fn a_late_reader_gets_what_is_kept_and_one_that_does_not_want_it_does_not() {
    for seed in 0..10 {
        let latched = Qos {
            durability: Durability::TransientLocal,
            history: History::KeepLast(3),
            ..Qos::writer()
        };
        let mut net = Network::new(seed, BAD, (0..2).map(config));
        let now = net.now;
        let writer = net
            .p(0)
            .add_writer(now, topic("a", latched.clone()))
            .expect("a writer");
        for n in 0..7 {
            write(&mut net, writer, sample(n, 30_000)).expect("a sample");
        }
        net.run(Duration::from_secs(3));
        let now = net.now;
        let late = net.p(1).add_reader(now, topic("a", latched)).expect("a reader");
        let indifferent = net
            .p(1)
            .add_reader(now, topic("a", Qos::writer()))
            .expect("a reader");
        net.run(Duration::from_secs(5));
        write(&mut net, writer, sample(7, 30_000)).expect("a sample");
        net.run(Duration::from_secs(5));
        let samples = net.samples(1);
        let of = |id| {
            samples
                .iter()
                .filter(|s| s.reader == id)
                .map(|s| s.sequence)
                .collect::<Vec<_>>()
        };
        assert_eq!(of(late), [5, 6, 7, 8], "seed {seed}");
        assert_eq!(of(indifferent), [8], "seed {seed}");
    }
}

#[test]
fn best_effort_comes_at_most_once_never_late_and_what_is_missing_is_counted() {
    let best_effort = Qos {
        history: History::KeepLast(5),
        ..Qos::reader()
    };
    for seed in 0..10 {
        let faults = Faults { lost: 2, ..BAD };
        let (mut net, writer, _) = joined(seed, faults, best_effort.clone());
        for n in 0..200 {
            write(
                &mut net,
                writer,
                sample(n, if n % 3 == 0 { 100_000 } else { 500 }),
            )
            .expect("a sample");
            net.run_ms(30);
        }
        net.run(Duration::from_secs(1));
        let samples = net.samples(1);
        assert!(samples.windows(2).all(|w| w[0].sequence < w[1].sequence));
        assert!(samples.len() > 100, "seed {seed}: {}", samples.len());
        let lost: u64 = net.hosts[1]
            .events
            .iter()
            .map(|e| {
                if let Event::Lost { count, .. } = e {
                    *count
                } else {
                    0
                }
            })
            .sum();
        let last = samples.last().expect("a sample").sequence as u64;
        // From the first sample that arrived.
        let first = samples[0].sequence as u64;
        let known = last - (samples.len() as u64 + lost) + 1;
        assert!((1..=first).contains(&known), "seed {seed}: from {known}, {first}");
    }
}

#[test]
fn a_sample_goes_to_a_participant_once_however_many_readers_it_has() {
    let mut net = Network::new(11, Faults::default(), (0..2).map(config));
    let now = net.now;
    let writer = net
        .p(0)
        .add_writer(now, topic("a", Qos::writer()))
        .expect("a writer");
    let qos = [Qos::writer(), Qos::reader(), Qos::writer()];
    let readers: Vec<_> = qos
        .into_iter()
        .map(|q| net.p(1).add_reader(now, topic("a", q)).expect("a reader"))
        .collect();
    net.run_ms(1000);
    let before = net.carried[&address(1)];
    write(&mut net, writer, sample(1, 100_000)).expect("a sample");
    net.run_ms(500);
    let carried = net.carried[&address(1)] - before;
    assert!((100_000..105_000).contains(&carried), "{carried} bytes");
    let mut got: Vec<_> = net.samples(1).iter().map(|s| s.reader).collect();
    got.sort();
    assert_eq!(got, readers);
}

#[test]
fn long_samples_are_paced_and_short_ones_of_other_writers_do_not_wait_for_them() {
    let mut slow = config(0);
    slow.network = Pace {
        rate: 10_000_000,
        ..Pace::default()
    };
    let mut net = Network::new(12, Faults::default(), [slow, config(1)]);
    let now = net.now;
    let best_effort = Qos {
        reliability: Reliability::BestEffort,
        ..Qos::writer()
    };
    let long = net
        .p(0)
        .add_writer(now, topic("long", best_effort.clone()))
        .expect("a writer");
    let short = net
        .p(0)
        .add_writer(now, topic("short", best_effort))
        .expect("a writer");
    for name in ["long", "short"] {
        net.p(1)
            .add_reader(now, topic(name, Qos::reader()))
            .expect("a reader");
    }
    net.run_ms(1000);
    write(&mut net, long, sample(0, 1_000_000)).expect("a sample");
    net.run_ms(10);
    write(&mut net, short, sample(1, 100)).expect("a sample");
    net.run_ms(5);
    assert_eq!(net.samples(1).len(), 1, "the short one");
    net.run_ms(75);
    assert_eq!(net.samples(1).len(), 0, "0.1 s at 10 MB/s");
    net.run_ms(20);
    assert_eq!(net.samples(1).len(), 1, "the long one");
}
