//! Limits on what unconfirmed participants, participants and their endpoints can make a participant hold, and on what
//! they can do to third ones.

use super::attacker::{Attacker, START, VICTIM, drain, transmit, victim};
use super::config;
use crate::wire::ids::{EntityId, Guid, GuidPrefix};
use crate::wire::inline::InlineQos;
use crate::wire::parameters::pid;
use crate::wire::participant::key;
use crate::wire::submessage::Payload;
use crate::{Config, Event};
use core::time::Duration;

#[test]
fn ten_thousand_unknown_participants_cost_only_their_places_and_displace_no_known_one() {
    let mut p = victim(|c| c.limits.memory = 8 << 20);
    let limits = Config::new(GuidPrefix::default(), 0).limits;
    let mut friend = Attacker::new(u32::MAX, 77);
    friend.join(&mut p, START);
    let mut now = START;
    let mut sent = 0;
    for n in 0..10_000 {
        now += Duration::from_millis(1);
        Attacker::new(n, (n % 250 + 1) as u8).announce(&mut p, now);
        assert!(p.participants() <= limits.unconfirmed + 1);
        assert!(p.held() <= 8 << 20);
        sent += transmit(&mut p, now);
    }
    assert!(sent < 10_000 * 400, "{sent} bytes: less than they sent");
    let gone = drain(&mut p)
        .iter()
        .any(|e| *e == Event::ParticipantGone(friend.announcement().guid));
    assert!(!gone);
    assert!(
        p.held() <= limits.unconfirmed * limits.unconfirmed_memory + (64 << 10),
        "{}",
        p.held()
    );
    assert!(p.counters().participants_refused > 9_000);
    // The longest lease that is accepted.
    for _ in 0..302 {
        now += Duration::from_secs(1);
        transmit(&mut p, now);
    }
    drain(&mut p);
    assert_eq!((p.participants(), p.held()), (0, 0));
}

#[test]
fn unread_events_of_unknown_participants_are_bounded() {
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
fn one_address_has_half_of_the_places_and_all_are_bounded() {
    let mut p = victim(|_| ());
    for n in 0..600 {
        Attacker::new(n, 9).join(&mut p, START);
    }
    assert_eq!(p.participants(), 256);
    Attacker::new(9999, 10).join(&mut p, START);
    assert_eq!(p.participants(), 257);
    for n in 10_000..11_000 {
        Attacker::new(n, (n % 50 + 11) as u8).join(&mut p, START);
    }
    assert_eq!(p.participants(), 512);
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
    // Different user data each time, and no events are taken.
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
fn no_participant_speaks_for_another() {
    let mut p = victim(|_| ());
    let mut friend = Attacker::new(1, 9);
    friend.join(&mut p, START);
    friend.endpoint(&mut p, START, &friend.of(EntityId::writer(1), "t"), 1);
    let mut a = Attacker::new(2, 10);
    a.join(&mut p, START);
    drain(&mut p);
    // An endpoint of the other, the departure of the other and of its endpoint, and an announcement of the other.
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
        "it belongs to this host"
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
