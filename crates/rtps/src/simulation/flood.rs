//! How much samples, and requests for them, can make a participant hold.

use super::attacker::{Attacker, START, drain, transmit, victim};
use super::{Faults, Network, config, topic};
use crate::participant::MAX_ADDRESSES;
use crate::wire::encode::{self, Route};
use crate::wire::ids::{EntityId, GuidPrefix};
use crate::wire::inline::InlineQos;
use crate::wire::number::NumberSet;
use crate::wire::submessage::{AckNack, Gap, Heartbeat, NackFrag, Payload};
use crate::{Config, Durability, EndpointConfig, History, Participant, Qos, WriteError, WriteOptions};
use core::time::Duration;
use std::collections::BTreeSet;
use std::net::SocketAddrV4;

#[test]
fn absurd_numbers_cost_nothing_and_stop_nothing() {
    let mut p = victim(|_| ());
    let writer = p.add_writer(START, topic("w", Qos::writer())).expect("a writer");
    let reader = p.add_reader(START, topic("r", Qos::writer())).expect("a reader");
    let mut a = Attacker::new(1, 9);
    a.join(&mut p, START);
    let (theirs, wants) = (EntityId::writer(1), EntityId::reader(1));
    a.endpoint(&mut p, START, &a.of(theirs, "r"), 1);
    a.endpoint(&mut p, START, &a.of(wants, "w"), 1);
    assert_eq!((p.matched(writer).len(), p.matched(reader).len()), (1, 1));
    p.write(START, writer, vec![7; 100], WriteOptions::default())
        .expect("a sample");
    let before = p.held();
    let most = (1i64 << 62) - 300;
    let mut count = 10;
    for (first, last) in [
        (1, most),
        (most, most),
        (0, 0),
        (-5, -9),
        (7, 3),
        (i64::MAX, i64::MIN),
        (1, i64::MAX),
    ] {
        count += 1;
        let heartbeat = Heartbeat {
            reader: EntityId::UNKNOWN,
            writer: theirs,
            first,
            last,
            count,
            last_word: false,
            liveliness: false,
        };
        a.say(&mut p, START, true, |out| encode::heartbeat(out, &heartbeat));
        transmit(&mut p, START);
    }
    for base in [0, 1, 2, most, 1 << 62] {
        count += 1;
        let missing = NumberSet::of(base, base..base + 256);
        let ack = AckNack {
            reader: wants,
            writer,
            missing,
            count,
            last_word: false,
        };
        let nack = NackFrag {
            reader: wants,
            writer,
            sequence: base.max(1),
            missing,
            count,
        };
        let gap = Gap {
            reader: EntityId::UNKNOWN,
            writer: theirs,
            first: base.max(1),
            set: missing,
        };
        a.say(&mut p, START, true, |out| {
            encode::acknack(out, &ack);
            encode::nack_frag(out, &nack);
            encode::gap(out, &gap);
        });
        transmit(&mut p, START);
    }
    // Fragments of 4 GB, and more of them than there are bytes.
    for (size, number, sample) in [
        (1u16, 1u32 << 31, u32::MAX),
        (65_000, 1, u32::MAX),
        (1, 1, u32::MAX),
        (1, 70_000, 100_000),
    ] {
        let mut body = vec![0, 0, 28, 0, 0, 0, 0, 0];
        body.extend_from_slice(&theirs.0);
        body.extend_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0]);
        body.extend_from_slice(&number.to_le_bytes());
        body.extend_from_slice(&1u16.to_le_bytes());
        body.extend_from_slice(&size.to_le_bytes());
        body.extend_from_slice(&sample.to_le_bytes());
        body.resize(body.len() + usize::from(size), 7);
        a.say(&mut p, START, true, |out| {
            out.extend_from_slice(&[0x16, 1]);
            out.extend_from_slice(&(body.len() as u16).to_le_bytes());
            out.extend_from_slice(&body);
        });
    }
    assert!(p.held() < before + 16_000, "{} after {before}", p.held());
    transmit(&mut p, START + Duration::from_secs(1));
}

#[test]
fn samples_that_never_end_are_charged_as_a_whole_and_given_back_when_nothing_comes() {
    let mut p = victim(|_| ());
    let mut a = Attacker::new(1, 9);
    a.join(&mut p, START);
    for n in 0..100 {
        p.add_reader(START, topic(&format!("t{n}"), Qos::writer()))
            .expect("a reader");
        let data = a.of(EntityId::writer(n), &format!("t{n}"));
        a.endpoint(&mut p, START, &data, i64::from(n) + 1);
    }
    transmit(&mut p, START);
    let before = p.held();
    let whole = vec![7; 64 << 20];
    for n in 0..100 {
        let route = Route {
            reader: EntityId::UNKNOWN,
            writer: EntityId::writer(n),
            sequence: 1,
        };
        let payload = Payload::Data(&whole);
        a.say(&mut p, START, true, |out| {
            encode::data_frag(out, route, &InlineQos::default(), 1, 1000, payload);
        });
    }
    let limit = Config::new(GuidPrefix::default(), 0).limits.participant_memory;
    assert!(p.held() <= limit && p.held() > 2 * (64 << 20), "{}", p.held());
    let mut now = START;
    while now < START + Duration::from_secs(3) {
        now += Duration::from_millis(10);
        transmit(&mut p, now);
    }
    assert_eq!(p.held(), before);
}

#[test]
fn samples_that_come_too_early_leave_room_for_the_one_that_is_next() {
    let memory = 1 << 20;
    let mut p = victim(|c| c.limits.participant_memory = memory);
    p.add_reader(START, topic("t", Qos::writer())).expect("a reader");
    let mut a = Attacker::new(1, 9);
    a.join(&mut p, START);
    let writer = EntityId::writer(1);
    a.endpoint(&mut p, START, &a.of(writer, "t"), 1);
    drain(&mut p);
    let before = p.held();
    let heartbeat = Heartbeat {
        reader: EntityId::UNKNOWN,
        writer,
        first: 1,
        last: 100,
        count: 1,
        last_word: true,
        liveliness: false,
    };
    a.say(&mut p, START, true, |out| encode::heartbeat(out, &heartbeat));
    let send = |a: &mut Attacker, p: &mut Participant, sequence: i64, len: usize| {
        a.sequence = sequence - 1;
        let payload = vec![sequence as u8; len];
        let data = a.data(writer, &InlineQos::default(), Payload::Data(&payload));
        a.say(p, START, true, |out| out.extend_from_slice(&data));
    };
    for sequence in 2..=100 {
        send(&mut a, &mut p, sequence, 50_000);
    }
    assert!(
        (before + 400_000..before + memory / 2).contains(&p.held()),
        "{}",
        p.held()
    );
    assert!(drain(&mut p).is_empty());
    send(&mut a, &mut p, 1, 60_000);
    let got = drain(&mut p);
    assert!(got.len() > 8, "{}", got.len());
    assert_eq!(p.held(), before);
}

#[test]
fn readers_without_number_cost_a_bounded_number_of_addresses_and_samples() {
    let mut p = victim(|_| ());
    let limits = Config::new(GuidPrefix::default(), 0).limits;
    let latched = Qos {
        durability: Durability::TransientLocal,
        history: History::KeepLast(200),
        ..Qos::writer()
    };
    let writer = p.add_writer(START, topic("t", latched)).expect("a writer");
    for _ in 0..200 {
        p.write(START, writer, vec![7; 10_000], WriteOptions::default())
            .expect("a sample");
    }
    let mut a = Attacker::new(1, 9);
    a.join(&mut p, START);
    for n in 0..4_096u32 {
        let mut data = a.of(EntityId::reader(n), "t");
        data.qos = Qos {
            durability: Durability::TransientLocal,
            ..data.qos
        };
        data.unicast = vec![SocketAddrV4::new(*a.from.ip(), 10_000 + n as u16)];
        a.endpoint(&mut p, START, &data, i64::from(n) + 1);
        let missing = NumberSet::of(1, 1..=200);
        let ack = AckNack {
            reader: EntityId::reader(n),
            writer,
            missing,
            count: 1,
            last_word: true,
        };
        a.say(&mut p, START, true, |out| encode::acknack(out, &ack));
        assert!(p.held() <= limits.participant_memory);
    }
    assert_eq!(p.matched(writer).len(), 4_096);
    // Of 819,200 requested samples, only the maximum number is queued.
    assert!(p.held() < 16 << 20, "{}", p.held());
    let mut out = Vec::new();
    let mut addresses = BTreeSet::new();
    while let Some(to) = p.poll_transmit(START, &mut out) {
        addresses.insert(to);
    }
    // The participant's own address, and the group of the domain.
    assert!(addresses.len() <= MAX_ADDRESSES + 2, "{}", addresses.len());
}

#[test]
fn a_reader_that_reads_nothing_stops_its_writer_until_it_reads() {
    let mut slow = config(1);
    slow.limits.participant_memory = 1 << 20;
    let mut net = Network::new(1, Faults::default(), [config(0), slow]);
    let now = net.now;
    let all = Qos {
        history: History::KeepAll,
        ..Qos::writer()
    };
    let few = EndpointConfig {
        max_samples: 20,
        ..topic("t", all.clone())
    };
    let writer = net.p(0).add_writer(now, few).expect("a writer");
    net.p(1).add_reader(now, topic("t", all)).expect("a reader");
    net.run_ms(1000);
    net.hosts[1].reads = false;
    let mut written = 0;
    for _ in 0..200 {
        let now = net.now;
        match net
            .p(0)
            .write(now, writer, vec![7; 60_000], WriteOptions::default())
        {
            Ok(_) => written += 1,
            Err(error) => assert_eq!(error, WriteError::Full),
        }
        net.run_ms(50);
        assert!(net.p(1).held() <= 1 << 20);
    }
    assert!(
        (25..45).contains(&written),
        "{written}: what the one keeps, and the other"
    );
    net.hosts[1].reads = true;
    net.run(Duration::from_secs(5));
    assert_eq!(net.samples(1).len(), written);
}
