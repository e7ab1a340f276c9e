//! Limits on numbers and lengths: each up to the limit and beyond.

use super::attacker::{Attacker, START, drain, transmit, victim};
use super::topic;
use crate::reader::{MAX_AHEAD, MAX_GAPS, MAX_PARTIAL};
use crate::send::MAX_CONTROL;
use crate::wire::encode::{self, Route};
use crate::wire::endpoint::MAX_TEXT;
use crate::wire::ids::EntityId;
use crate::wire::inline::InlineQos;
use crate::wire::number::NumberSet;
use crate::wire::participant::{MAX_LOCATORS, MAX_NAME, MAX_USER_DATA};
use crate::wire::policies::{MAX_PARTITIONS, MAX_REPRESENTATIONS};
use crate::wire::submessage::{AckNack, Gap, Payload};
use crate::{EndpointData, Event, Participant, ParticipantData, Qos};
use std::net::SocketAddrV4;

#[test]
fn the_longest_announcements_are_taken_and_longer_ones_are_not() {
    let attacker = Attacker::new(1, 9);
    let endpoint = |change: &dyn Fn(&mut EndpointData)| {
        let mut data = attacker.of(EntityId::writer(1), "t");
        change(&mut data);
        EndpointData::read(&data.write(), true)
    };
    type Change = fn(&mut EndpointData, usize);
    let lengths: [(usize, Change); 5] = [
        (MAX_TEXT, |d, n| d.topic = "t".repeat(n)),
        (MAX_TEXT, |d, n| d.type_name = "t".repeat(n)),
        (MAX_USER_DATA, |d, n| d.user_data = vec![7; n]),
        (MAX_PARTITIONS, |d, n| d.qos.partitions = vec!["p".into(); n]),
        (MAX_REPRESENTATIONS, |d, n| d.qos.representations = vec![0; n]),
    ];
    for (most, change) in lengths {
        assert!(endpoint(&|d| change(d, most)).is_ok(), "{most}");
        assert!(endpoint(&|d| change(d, most + 1)).is_err(), "{most}");
    }
    let addresses = |n: u16| {
        (0..n)
            .map(|n| SocketAddrV4::new(*attacker.from.ip(), n + 1))
            .collect()
    };
    let kept = endpoint(&|d| d.unicast = addresses(100)).map(|d| d.unicast.len());
    assert_eq!(kept, Ok(MAX_LOCATORS));
    for (name, taken) in [(MAX_NAME, true), (MAX_NAME + 1, false)] {
        let mut data = attacker.announcement();
        data.name = "n".repeat(name);
        assert_eq!(ParticipantData::read(&data.write()).is_ok(), taken);
    }
}

#[test]
fn an_announcement_in_fragments_is_bounded() {
    let mut p = victim(|_| ());
    let mut a = Attacker::new(1, 9);
    a.join(&mut p, START);
    let before = p.held();
    let mut begin = |sequence, size| {
        let route = Route {
            reader: EntityId::PUBLICATIONS_READER,
            writer: EntityId::PUBLICATIONS_WRITER,
            sequence,
        };
        let payload = Payload::Data(&vec![7; size]);
        a.say(&mut p, START, true, |out| {
            encode::data_frag(out, route, &InlineQos::default(), 1, 1_000, payload);
        });
        p.held() - before
    };
    assert_eq!(begin(1, (64 << 10) + 1), 0);
    assert!(begin(2, 64 << 10) > 64 << 10);
}

#[test]
fn one_address_has_a_share_of_the_memory_and_others_have_the_rest() {
    let mut p = victim(|c| c.limits.address_memory = 1 << 20);
    let fill = |p: &mut Participant, host: u8| {
        for n in 0..10 {
            let mut a = Attacker::new(u32::from(host) * 100 + n, host);
            a.join(p, START);
            for n in 0..100 {
                let mut data = a.of(EntityId::writer(n), "t");
                data.user_data = vec![7; 4_000];
                a.endpoint(p, START, &data, i64::from(n) + 1);
            }
        }
        p.held()
    };
    let one = fill(&mut p, 9);
    assert!((1_000_000..=1 << 20).contains(&one), "{one}");
    let both = fill(&mut p, 10);
    assert!((2_000_000..=2 << 20).contains(&both), "{both}");
}

fn reading() -> (Participant, Attacker, EntityId) {
    let mut p = victim(|_| ());
    p.add_reader(START, topic("t", Qos::writer())).expect("a reader");
    let mut a = Attacker::new(1, 9);
    a.join(&mut p, START);
    let writer = EntityId::writer(1);
    a.endpoint(&mut p, START, &a.of(writer, "t"), 1);
    drain(&mut p);
    // What is known about the writer begins with its first sample.
    send(&mut a, &mut p, writer, 1);
    assert_eq!(samples(&mut p), 1);
    (p, a, writer)
}

fn send(a: &mut Attacker, p: &mut Participant, writer: EntityId, sequence: i64) {
    a.sequence = sequence - 1;
    let data = a.data(writer, &InlineQos::default(), Payload::Data(&[0, 1, 0, 0]));
    a.say(p, START, true, |out| out.extend_from_slice(&data));
}

fn samples(p: &mut Participant) -> usize {
    drain(p).iter().filter(|e| matches!(e, Event::Sample(_))).count()
}

#[test]
fn samples_that_wait_for_an_earlier_one_are_bounded_in_number() {
    let (mut p, mut a, writer) = reading();
    for sequence in 3..3_000 {
        send(&mut a, &mut p, writer, sequence);
    }
    assert_eq!(samples(&mut p), 0);
    send(&mut a, &mut p, writer, 2);
    assert_eq!(samples(&mut p), 1 + MAX_AHEAD);
}

#[test]
fn samples_that_are_put_together_are_bounded_in_number() {
    let (mut p, a, writer) = reading();
    let before = p.held();
    for sequence in 2..1_000 {
        let route = Route {
            reader: EntityId::UNKNOWN,
            writer,
            sequence,
        };
        let payload = Payload::Data(&[7; 50_000]);
        a.say(&mut p, START, true, |out| {
            encode::data_frag(out, route, &InlineQos::default(), 1, 1_000, payload);
        });
    }
    let held = p.held() - before;
    assert!(
        (MAX_PARTIAL * 50_000..MAX_PARTIAL * 51_000).contains(&held),
        "{held}"
    );
}

#[test]
fn gaps_that_wait_for_an_earlier_sample_are_bounded_in_number() {
    let (mut p, mut a, writer) = reading();
    for n in (3..1_000).step_by(2) {
        let gap = Gap {
            reader: EntityId::UNKNOWN,
            writer,
            first: n,
            set: NumberSet::new(n + 1),
        };
        a.say(&mut p, START, true, |out| encode::gap(out, &gap));
    }
    for n in (2..1_000).step_by(2) {
        send(&mut a, &mut p, writer, n);
    }
    assert_eq!(
        samples(&mut p),
        MAX_GAPS + 1,
        "up to the first gap that was not kept"
    );
}

#[test]
fn answers_that_wait_for_an_address_are_bounded() {
    let mut p = victim(|_| ());
    let writer = p.add_writer(START, topic("t", Qos::writer())).expect("a writer");
    let mut a = Attacker::new(1, 9);
    a.join(&mut p, START);
    let reader = EntityId::reader(1);
    a.endpoint(&mut p, START, &a.of(reader, "t"), 1);
    transmit(&mut p, START);
    for count in 0..20_000 {
        let ack = AckNack {
            reader,
            writer,
            missing: NumberSet::new(1),
            count,
            last_word: false,
        };
        a.say(&mut p, START, true, |out| encode::acknack(out, &ack));
    }
    let sent = transmit(&mut p, START);
    assert!(
        (MAX_CONTROL - 100..MAX_CONTROL + MAX_CONTROL / 10).contains(&sent),
        "{sent}"
    );
}
