//! What others can make a participant hold, and what they cannot do to third ones.

use super::{Faults, Network, config, topic};
use crate::participant::MAX_ADDRESSES;
use crate::wire::encode::{self, Route};
use crate::wire::ids::{EntityId, Guid, GuidPrefix};
use crate::wire::inline::InlineQos;
use crate::wire::number::NumberSet;
use crate::wire::parameters::pid;
use crate::wire::participant::{BUILTIN_ENDPOINTS, key};
use crate::wire::submessage::{AckNack, Gap, Heartbeat, NackFrag, Payload};
use crate::{
    Config, Durability, EndpointConfig, EndpointData, Event, History, Participant, ParticipantData, Qos,
    VendorId, WriteError, WriteOptions,
};
use core::time::Duration;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};

const VICTIM: usize = 0;

/// Forges what a participant may send.
struct Attacker {
    prefix: GuidPrefix,
    from: SocketAddrV4,
    sequence: i64,
}

impl Attacker {
    fn new(number: u32, host: u8) -> Self {
        let mut prefix = GuidPrefix(*b"\x01\x0fATTACK0000");
        prefix.0[8..].copy_from_slice(&number.to_be_bytes());
        Attacker {
            prefix,
            from: SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, host), 7411),
            sequence: 0,
        }
    }

    fn announcement(&self) -> ParticipantData {
        ParticipantData {
            guid: Guid::new(self.prefix, EntityId::PARTICIPANT),
            vendor: VendorId::FAST_DDS,
            version: [2, 3],
            name: "mallory".into(),
            user_data: Vec::new(),
            lease: None,
            builtin_endpoints: BUILTIN_ENDPOINTS,
            domain: Some(0),
            domain_tag: String::new(),
            metatraffic: vec![self.from],
            unicast: vec![self.from],
        }
    }

    /// A datagram: for all, or for the victim, which shows that it was heard.
    fn say(&self, to: &mut Participant, now: Duration, known: bool, write: impl FnOnce(&mut Vec<u8>)) {
        let mut out = Vec::new();
        encode::header(&mut out, VendorId::FAST_DDS, self.prefix);
        if known {
            encode::info_dst(&mut out, to.guid().prefix);
        }
        write(&mut out);
        let _ = to.handle(now, &out, self.from);
    }

    fn data(&mut self, writer: EntityId, inline: &InlineQos, payload: Payload<'_>) -> Vec<u8> {
        self.sequence += 1;
        let route = Route {
            reader: EntityId::UNKNOWN,
            writer,
            sequence: self.sequence,
        };
        let mut out = Vec::new();
        encode::data(&mut out, route, inline, payload);
        out
    }

    fn announce(&mut self, to: &mut Participant, now: Duration) {
        let payload = self.announcement().write();
        let spdp = EntityId([0, 1, 0, 0xc2]);
        let data = self.data(spdp, &InlineQos::default(), Payload::Data(&payload));
        self.say(to, now, false, |out| out.extend_from_slice(&data));
        self.sequence = 0;
    }

    /// Announces itself and shows that it heard the victim.
    fn join(&mut self, to: &mut Participant, now: Duration) {
        self.announce(to, now);
        let ack = AckNack {
            reader: EntityId::PUBLICATIONS_READER,
            writer: EntityId::PUBLICATIONS_WRITER,
            missing: NumberSet::new(1),
            count: 1,
            last_word: true,
        };
        self.say(to, now, true, |out| encode::acknack(out, &ack));
        let heartbeat = |writer| Heartbeat {
            reader: EntityId::UNKNOWN,
            writer,
            first: 1,
            last: 0,
            count: 1,
            last_word: true,
            liveliness: false,
        };
        self.say(to, now, true, |out| {
            encode::heartbeat(out, &heartbeat(EntityId::PUBLICATIONS_WRITER));
            encode::heartbeat(out, &heartbeat(EntityId::SUBSCRIPTIONS_WRITER));
        });
    }

    fn endpoint(&mut self, to: &mut Participant, now: Duration, data: &EndpointData, sequence: i64) {
        let writer = if data.guid.entity.is_writer() {
            EntityId::PUBLICATIONS_WRITER
        } else {
            EntityId::SUBSCRIPTIONS_WRITER
        };
        self.sequence = sequence - 1;
        let payload = data.write();
        let data = self.data(writer, &InlineQos::default(), Payload::Data(&payload));
        self.say(to, now, true, |out| out.extend_from_slice(&data));
    }

    fn of(&self, id: EntityId, topic: &str) -> EndpointData {
        EndpointData {
            guid: Guid::new(self.prefix, id),
            topic: topic.into(),
            type_name: "test::Type".into(),
            qos: Qos::writer(),
            user_data: Vec::new(),
            unicast: Vec::new(),
        }
    }
}

fn victim(change: impl FnOnce(&mut Config)) -> Participant {
    let mut config = config(VICTIM);
    change(&mut config);
    Participant::new(config).expect("a participant")
}

fn transmit(p: &mut Participant, now: Duration) -> usize {
    let mut out = Vec::new();
    let mut sent = 0;
    while p.poll_transmit(now, &mut out).is_some() {
        sent += out.len();
    }
    sent
}

fn drain(p: &mut Participant) -> Vec<Event> {
    std::iter::from_fn(|| p.poll_event()).collect()
}

const START: Duration = Duration::from_secs(1000);

#[test]
fn ten_thousand_strangers_cost_no_more_than_their_places_and_displace_no_acquaintance() {
    let mut p = victim(|c| c.limits.memory = 8 << 20);
    let limits = Config::new(GuidPrefix::default(), 0).limits;
    let mut friend = Attacker::new(u32::MAX, 77);
    friend.join(&mut p, START);
    let mut now = START;
    let mut sent = 0;
    for n in 0..10_000 {
        now += Duration::from_millis(1);
        Attacker::new(n, (n % 250 + 1) as u8).announce(&mut p, now);
        assert!(p.participants() <= limits.strangers + 1);
        assert!(p.held() <= 8 << 20);
        sent += transmit(&mut p, now);
    }
    assert!(sent < 10_000 * 400, "{sent} bytes: less than they sent");
    let gone = drain(&mut p)
        .iter()
        .any(|e| *e == Event::ParticipantGone(friend.announcement().guid));
    assert!(!gone);
    assert!(
        p.held() <= limits.strangers * limits.stranger_memory + (64 << 10),
        "{}",
        p.held()
    );
    assert!(p.counters().participants_refused > 9_000);
    // The longest lease that is believed.
    for _ in 0..302 {
        now += Duration::from_secs(1);
        transmit(&mut p, now);
    }
    drain(&mut p);
    assert_eq!((p.participants(), p.held()), (0, 0));
}

#[test]
fn events_of_strangers_that_nobody_reads_are_bounded() {
    let mut p = victim(|c| c.limits.memory = 256 << 10);
    let mut now = START;
    for n in 0..20_000 {
        now += Duration::from_millis(20);
        Attacker::new(n, (n % 250 + 1) as u8).announce(&mut p, now);
        assert!(p.held() <= 256 << 10);
    }
    assert!(drain(&mut p).len() < 3_000);
}

#[test]
fn one_address_has_half_of_the_places() {
    let mut p = victim(|_| ());
    for n in 0..600 {
        Attacker::new(n, 9).join(&mut p, START);
    }
    assert_eq!(p.participants(), 256);
    Attacker::new(9999, 10).join(&mut p, START);
    assert_eq!(p.participants(), 257);
}

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
fn endpoints_are_bounded_in_number_and_memory_and_their_changes_too() {
    let mut p = victim(|_| ());
    let limits = Config::new(GuidPrefix::default(), 0).limits;
    let mut a = Attacker::new(1, 9);
    a.join(&mut p, START);
    for n in 0..5_000 {
        let mut data = a.of(EntityId::writer(n), "t");
        data.user_data = vec![7; 4_000];
        a.endpoint(&mut p, START, &data, i64::from(n) + 1);
    }
    assert_eq!(p.counters().endpoints_refused, 5_000 - limits.endpoints as u64);
    assert!(p.held() <= limits.participant_memory);
    let known = drain(&mut p)
        .iter()
        .filter(|e| matches!(e, Event::Endpoint(_)))
        .count();
    assert_eq!(known, limits.endpoints);
    // Ever other user data, and nobody reads of it.
    for n in 0..100_000u32 {
        let mut data = a.of(EntityId::writer(n % 50), "t");
        data.user_data = n.to_le_bytes().repeat(1000);
        a.endpoint(&mut p, START, &data, i64::from(n) + 5_001);
        assert!(p.held() <= limits.participant_memory);
    }
    let inline = InlineQos {
        gone: true,
        ..InlineQos::default()
    };
    let bye = key(pid::PARTICIPANT_GUID, a.announcement().guid);
    let data = a.data(EntityId([0, 1, 0, 0xc2]), &inline, Payload::Key(&bye));
    a.say(&mut p, START, false, |out| out.extend_from_slice(&data));
    assert_eq!(p.participants(), 0);
    let gone = drain(&mut p)
        .iter()
        .filter(|e| matches!(e, Event::EndpointGone(_)))
        .count();
    assert_eq!((gone, p.held()), (limits.endpoints, 0));
}

#[test]
fn nobody_speaks_for_another() {
    let mut p = victim(|_| ());
    let mut friend = Attacker::new(1, 9);
    friend.join(&mut p, START);
    friend.endpoint(&mut p, START, &friend.of(EntityId::writer(1), "t"), 1);
    let mut a = Attacker::new(2, 10);
    a.join(&mut p, START);
    drain(&mut p);
    // An endpoint of the other, a farewell of the other and of its endpoint, an announcement of the other.
    a.endpoint(&mut p, START, &friend.of(EntityId::writer(2), "t"), 1);
    let inline = InlineQos {
        gone: true,
        ..InlineQos::default()
    };
    let spdp = EntityId([0, 1, 0, 0xc2]);
    let guid = friend.announcement().guid;
    for (writer, id, guid) in [
        (spdp, pid::PARTICIPANT_GUID, guid),
        (
            EntityId::PUBLICATIONS_WRITER,
            pid::ENDPOINT_GUID,
            Guid::new(friend.prefix, EntityId::writer(1)),
        ),
    ] {
        let payload = key(id, guid);
        let data = a.data(writer, &inline, Payload::Key(&payload));
        a.say(&mut p, START, true, |out| out.extend_from_slice(&data));
    }
    let payload = friend.announcement().write();
    let data = a.data(spdp, &InlineQos::default(), Payload::Data(&payload));
    a.say(&mut p, START, false, |out| out.extend_from_slice(&data));
    assert_eq!(drain(&mut p), []);
    assert_eq!((p.participants(), p.counters().announcements_refused), (2, 2));
}

#[test]
fn a_participant_of_this_host_is_not_heard_from_another() {
    let mut p = victim(|_| ());
    let mut local = Attacker::new(1, 1);
    assert!(
        Config::pace(&config(VICTIM), local.from) == config(VICTIM).loopback,
        "it is this host's"
    );
    local.join(&mut p, START);
    let mut spoofer = Attacker::new(1, 66);
    spoofer.sequence = 1;
    let inline = InlineQos {
        gone: true,
        ..InlineQos::default()
    };
    let payload = key(pid::PARTICIPANT_GUID, local.announcement().guid);
    let data = spoofer.data(EntityId([0, 1, 0, 0xc2]), &inline, Payload::Key(&payload));
    spoofer.say(&mut p, START, false, |out| out.extend_from_slice(&data));
    assert_eq!(p.participants(), 1);
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
    let mut out = Vec::new();
    let mut addresses = BTreeSet::new();
    while let Some(to) = p.poll_transmit(START, &mut out) {
        addresses.insert(to);
    }
    // Its own, and the group of the domain.
    assert!(addresses.len() <= MAX_ADDRESSES + 2, "{}", addresses.len());
}

#[test]
fn who_reads_nothing_stops_its_writer_and_goes_on_when_it_reads() {
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
