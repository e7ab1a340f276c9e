//! Forges messages that a participant may send.

use super::config;
use crate::wire::encode::{self, Route};
use crate::wire::ids::{EntityId, Guid, GuidPrefix};
use crate::wire::inline::InlineQos;
use crate::wire::number::NumberSet;
use crate::wire::participant::BUILTIN_ENDPOINTS;
use crate::wire::submessage::{AckNack, Heartbeat, Payload};
use crate::{Config, EndpointData, Event, Participant, ParticipantData, Qos, VendorId};
use core::time::Duration;
use std::net::{Ipv4Addr, SocketAddrV4};

pub(super) const VICTIM: usize = 0;

/// Forges messages that a participant may send.
pub(super) struct Attacker {
    pub(super) prefix: GuidPrefix,
    pub(super) from: SocketAddrV4,
    pub(super) vendor: VendorId,
    pub(super) sequence: i64,
}

impl Attacker {
    pub(super) fn new(number: u32, host: u8) -> Self {
        let mut prefix = GuidPrefix(*b"\x01\x0fATTACK0000");
        prefix.0[8..].copy_from_slice(&number.to_be_bytes());
        Attacker {
            prefix,
            from: SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, host), 7411),
            vendor: VendorId::FAST_DDS,
            sequence: 0,
        }
    }

    pub(super) fn announcement(&self) -> ParticipantData {
        ParticipantData {
            guid: Guid::new(self.prefix, EntityId::PARTICIPANT),
            vendor: self.vendor,
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

    /// Builds a datagram: for all, or for the victim, which shows that the attacker received messages of the victim.
    pub(super) fn say(
        &self,
        to: &mut Participant,
        now: Duration,
        known: bool,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let mut out = Vec::new();
        encode::header(&mut out, VendorId::FAST_DDS, self.prefix);
        if known {
            encode::info_dst(&mut out, to.guid().prefix);
        }
        write(&mut out);
        let _ = to.handle(now, &out, self.from);
    }

    pub(super) fn data(&mut self, writer: EntityId, inline: &InlineQos, payload: Payload<'_>) -> Vec<u8> {
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

    pub(super) fn announce(&mut self, to: &mut Participant, now: Duration) {
        let payload = self.announcement().write();
        let spdp = EntityId([0, 1, 0, 0xc2]);
        let data = self.data(spdp, &InlineQos::default(), Payload::Data(&payload));
        self.say(to, now, false, |out| out.extend_from_slice(&data));
        self.sequence = 0;
    }

    /// Announces itself and shows that it received messages of the victim.
    pub(super) fn join(&mut self, to: &mut Participant, now: Duration) {
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

    pub(super) fn endpoint(
        &mut self,
        to: &mut Participant,
        now: Duration,
        data: &EndpointData,
        sequence: i64,
    ) {
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

    pub(super) fn of(&self, id: EntityId, topic: &str) -> EndpointData {
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

pub(super) fn victim(change: impl FnOnce(&mut Config)) -> Participant {
    let mut config = config(VICTIM);
    change(&mut config);
    Participant::new(config).expect("a participant")
}

pub(super) fn transmit(p: &mut Participant, now: Duration) -> usize {
    let mut out = Vec::new();
    let mut sent = 0;
    while p.poll_transmit(now, &mut out).is_some() {
        sent += out.len();
    }
    sent
}

pub(super) fn drain(p: &mut Participant) -> Vec<Event> {
    std::iter::from_fn(|| p.poll_event()).collect()
}

pub(super) const START: Duration = Duration::from_secs(1000);
