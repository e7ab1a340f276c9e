//! Participants and endpoints discover each other, are compatible or not, and leave.

use super::attacker::{Attacker, START, victim};
use super::{Faults, Network, config, topic};
use crate::wire::encode;
use crate::wire::ids::{EntityId, Guid};
use crate::wire::message::Message;
use crate::wire::number::NumberSet;
use crate::wire::submessage::{AckNack, Heartbeat, Submessage};
use crate::{Durability, Event, Liveliness, Participant, Policy, Qos, Reliability, VendorId, WriteOptions};
use core::time::Duration;

fn count(events: &[Event], is: impl Fn(&Event) -> bool) -> usize {
    events.iter().filter(|e| is(e)).count()
}

#[test]
fn endpoints_are_matched_within_a_second_and_vanish_at_once_when_their_participant_leaves() {
    let mut net = Network::new(1, Faults::default(), (0..2).map(config));
    let now = net.now;
    let mut chatter = topic("rt/chatter", Qos::writer());
    chatter.user_data = b"typehash=RIHS01_00;".to_vec();
    let writer = net.p(0).add_writer(now, chatter).expect("a writer");
    let reader = net
        .p(1)
        .add_reader(now, topic("rt/chatter", Qos::reader()))
        .expect("a reader");
    net.run_ms(900);
    assert!(net.hosts[1].events.iter().any(|e| matches!(e, Event::Endpoint(d)
        if d.topic == "rt/chatter" && d.user_data == b"typehash=RIHS01_00;")));
    let guid = net.p(0).guid_of(writer);
    assert_eq!(net.p(1).matched(reader), [guid]);
    let now = net.now;
    net.hosts[1].events.clear();
    net.p(0).leave(now);
    net.run_ms(10);
    let gone = &net.hosts[1].events;
    let expected = [
        Event::Unmatched {
            local: reader,
            remote: guid,
        },
        Event::EndpointGone(guid),
    ];
    assert_eq!(gone[..2], expected);
    assert!(matches!(gone[2..], [Event::ParticipantGone(_)]));
    assert_eq!((net.p(1).held(), net.p(0).held()), (0, 0), "all is released");
}

/// Number of announcements of itself that a participant sends to an address now.
fn greetings(p: &mut Participant, now: Duration, to: std::net::SocketAddrV4) -> usize {
    let is_greeting =
        |s: &Submessage<'_>| matches!(s, Submessage::Data(d) if d.writer == EntityId::SPDP_WRITER);
    let mut out = Vec::new();
    let mut found = 0;
    while let Some(address) = p.poll_transmit(now, &mut out) {
        let message = Message::new(&out)
            .expect("a message")
            .map(|item| item.expect("an item"));
        let greets = message.filter(|i| is_greeting(&i.submessage)).count();
        found += if address == to { greets } else { 0 };
    }
    found
}

#[test]
fn a_participant_that_missed_the_answer_to_its_announcement_gets_another_at_the_next() {
    let mut p = victim(|_| ());
    let mut now = START;
    // Its own initial announcements are over.
    for _ in 0..10 {
        greetings(&mut p, now, Attacker::new(1, 9).from);
        now += Duration::from_millis(100);
    }
    let mut a = Attacker::new(1, 9);
    let mut announced = |a: &mut Attacker, p: &mut Participant, after_ms| {
        now += Duration::from_millis(after_ms);
        a.announce(p, now);
        greetings(p, now, a.from)
    };
    assert_eq!(announced(&mut a, &mut p, 0), 1);
    assert_eq!(announced(&mut a, &mut p, 100), 1);
    let flood: usize = (0..100).map(|_| announced(&mut a, &mut p, 1)).sum();
    assert_eq!(flood, 2, "every 50 ms");
    let later = START + Duration::from_secs(2);
    a.join(&mut p, later);
    greetings(&mut p, later, a.from);
    assert_eq!(announced(&mut a, &mut p, 1000), 0, "it has confirmed");
}

#[test]
fn a_writer_of_which_nothing_is_known_is_asked_for_a_heartbeat_in_the_way_that_its_vendor_answers_at_once() {
    for (vendor, base) in [(VendorId::FAST_DDS, 0), (VendorId::CYCLONE, 1)] {
        let mut p = victim(|_| ());
        p.add_reader(START, topic("t", Qos::writer())).expect("a reader");
        let mut a = Attacker::new(1, 9);
        a.vendor = vendor;
        a.join(&mut p, START);
        let writer = EntityId::writer(1);
        // Its first heartbeat and first sample arrive before its announcement, and are lost.
        a.endpoint(&mut p, START, &a.of(writer, "t"), 1);
        let mut asked = Vec::new();
        let mut out = Vec::new();
        while p.poll_transmit(START, &mut out).is_some() {
            for item in Message::new(&out).expect("a message") {
                if let Submessage::AckNack(ack) = item.expect("an item").submessage
                    && ack.writer == writer
                {
                    asked.push((ack.missing.base, ack.missing.is_empty(), ack.last_word));
                }
            }
        }
        assert_eq!(asked, [(base, true, false)], "{vendor}");
    }
}

#[test]
fn a_match_is_mutual_once_the_other_end_shows_that_it_knows_of_it() {
    let mut p = victim(|_| ());
    let best_effort = Qos {
        reliability: Reliability::BestEffort,
        ..Qos::writer()
    };
    let reader = p.add_reader(START, topic("r", Qos::writer())).expect("a reader");
    let writer = p.add_writer(START, topic("w", Qos::writer())).expect("a writer");
    let silent = p.add_reader(START, topic("r", best_effort)).expect("a reader");
    let mut a = Attacker::new(1, 9);
    a.join(&mut p, START);
    let (writes, reads) = (EntityId::writer(1), EntityId::reader(1));
    a.endpoint(&mut p, START, &a.of(writes, "r"), 1);
    a.endpoint(&mut p, START, &a.of(reads, "w"), 1);
    let of = |entity| vec![Guid::new(a.prefix, entity)];
    assert_eq!((p.matched(reader), p.matched(writer)), (of(writes), of(reads)));
    assert_eq!((p.mutual(reader), p.mutual(writer)), (vec![], vec![]));
    assert_eq!(p.mutual(silent), of(writes));
    let heartbeat = Heartbeat {
        reader,
        writer: writes,
        first: 1,
        last: 0,
        count: 1,
        last_word: true,
        liveliness: false,
    };
    a.say(&mut p, START, true, |out| encode::heartbeat(out, &heartbeat));
    assert_eq!((p.mutual(reader), p.mutual(writer)), (of(writes), vec![]));
    let ack = AckNack {
        reader: reads,
        writer,
        missing: NumberSet::new(0),
        count: 1,
        last_word: false,
    };
    a.say(&mut p, START, true, |out| encode::acknack(out, &ack));
    assert_eq!(p.mutual(writer), of(reads));
}

#[test]
fn a_participant_that_falls_silent_is_gone_when_its_lease_ends_and_comes_back() {
    let mut net = Network::new(2, Faults::default(), (0..2).map(config));
    let now = net.now;
    let writer = net
        .p(0)
        .add_writer(now, topic("a", Qos::writer()))
        .expect("a writer");
    net.p(1)
        .add_reader(now, topic("a", Qos::writer()))
        .expect("a reader");
    net.run_ms(1000);
    net.hosts[1].up = false;
    net.run(Duration::from_secs(10));
    assert_eq!(net.p(0).participants(), 1);
    let now = net.now;
    let kept = net
        .p(0)
        .write(now, writer, vec![7; 1000], WriteOptions::default());
    assert!(kept.is_ok());
    net.run(Duration::from_secs(11));
    assert_eq!((net.p(0).participants(), net.p(0).held()), (0, 0));
    net.hosts[1].up = true;
    net.run(Duration::from_secs(4));
    assert_eq!(net.p(0).matched(writer).len(), 1);
}

#[test]
fn discovery_gets_through_a_bad_network() {
    let faults = Faults {
        lost: 30,
        doubled: 10,
        late: 30,
    };
    for seed in 0..10 {
        let mut net = Network::new(seed, faults, (0..3).map(config));
        let now = net.now;
        let mut ids = Vec::new();
        for n in 0..3 {
            for t in 0..40 {
                let name = format!("rt/topic{t}");
                ids.push((
                    n,
                    net.p(n)
                        .add_writer(now, topic(&name, Qos::writer()))
                        .expect("a writer"),
                ));
                ids.push((
                    n,
                    net.p(n)
                        .add_reader(now, topic(&name, Qos::reader()))
                        .expect("a reader"),
                ));
            }
        }
        net.run(Duration::from_secs(12));
        for (n, id) in ids {
            assert_eq!(net.p(n).matched(id).len(), 2, "seed {seed}, host {n}, {id}");
        }
    }
}

#[test]
fn incompatible_endpoints_are_reported_once_and_disjoint_partitions_are_not() {
    let mut net = Network::new(3, Faults::default(), (0..2).map(config));
    let now = net.now;
    let best_effort = Qos {
        reliability: Reliability::BestEffort,
        ..Qos::writer()
    };
    net.p(0)
        .add_writer(now, topic("a", best_effort.clone()))
        .expect("a writer");
    let a = net
        .p(1)
        .add_reader(now, topic("a", Qos::writer()))
        .expect("a reader");
    let elsewhere = Qos {
        partitions: vec!["elsewhere".into()],
        ..Qos::writer()
    };
    net.p(0).add_writer(now, topic("b", elsewhere)).expect("a writer");
    net.p(1)
        .add_reader(now, topic("b", Qos::reader()))
        .expect("a reader");
    let mut other = topic("c", Qos::writer());
    other.type_name = "test::Other".into();
    net.p(0).add_writer(now, other).expect("a writer");
    let c = net
        .p(1)
        .add_reader(now, topic("c", Qos::reader()))
        .expect("a reader");
    net.run(Duration::from_secs(2));
    let mut reported: Vec<_> = net.hosts[1]
        .events
        .iter()
        .filter_map(|e| match e {
            Event::Incompatible { local, policy, .. } => Some((*local, *policy)),
            _ => None,
        })
        .collect();
    reported.sort();
    assert_eq!(reported, [(a, Policy::Reliability), (c, Policy::TypeName)]);
    assert_eq!(
        count(&net.hosts[1].events, |e| matches!(e, Event::Matched { .. })),
        0
    );
}

#[test]
fn endpoints_come_and_go() {
    let faults = Faults {
        lost: 10,
        ..Faults::default()
    };
    let mut net = Network::new(4, faults, (0..2).map(config));
    let now = net.now;
    let reader = net
        .p(1)
        .add_reader(now, topic("a", Qos::reader()))
        .expect("a reader");
    for _ in 0..20 {
        let now = net.now;
        let writer = net
            .p(0)
            .add_writer(now, topic("a", Qos::writer()))
            .expect("a writer");
        net.run(Duration::from_secs(3));
        let guid = net.p(0).guid_of(writer);
        assert_eq!(net.p(1).matched(reader), [guid]);
        let now = net.now;
        net.p(0).remove(now, writer);
        net.run(Duration::from_secs(3));
        assert_eq!(net.p(1).matched(reader), []);
    }
    let events = &net.hosts[1].events;
    assert_eq!(count(events, |e| matches!(e, Event::Endpoint(_))), 20);
    assert_eq!(count(events, |e| matches!(e, Event::EndpointGone(_))), 20);
}

#[test]
fn writers_with_a_lease_are_said_to_live() {
    let mut net = Network::new(5, Faults::default(), (0..2).map(config));
    let now = net.now;
    let lively = Qos {
        liveliness: Liveliness::Automatic,
        lease: Some(Duration::from_secs(1)),
        durability: Durability::TransientLocal,
        ..Qos::writer()
    };
    let writer = net.p(0).add_writer(now, topic("a", lively)).expect("a writer");
    net.run(Duration::from_secs(5));
    let mut said = || {
        let before = net.carried.values().sum::<usize>();
        net.run(Duration::from_secs(9));
        net.carried.values().sum::<usize>() - before
    };
    let lively = said();
    let now = net.now;
    net.p(0).remove(now, writer);
    net.run(Duration::from_secs(1));
    let before = net.carried.values().sum::<usize>();
    net.run(Duration::from_secs(9));
    let silent = net.carried.values().sum::<usize>() - before;
    assert!(
        lively > silent + 27 * 60,
        "{lively} and {silent} bytes in nine leases"
    );
}
