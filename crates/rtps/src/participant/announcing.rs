//! What a participant announces: itself (SPDP), its endpoints (SEDP), the liveliness of its writers, and its departure
//! (DDSI-RTPS 2.5, sections 8.4.13 and 8.5).

use super::Participant;
use crate::config::EndpointConfig;
use crate::context::Context;
use crate::qos::{Durability, History, Liveliness, Qos};
use crate::reader::Reader;
use crate::send::Target;
use crate::timers::Timer;
use crate::wire::encode::{self, Route};
use crate::wire::endpoint::EndpointData;
use crate::wire::ids::{EntityId, GuidPrefix};
use crate::wire::inline::InlineQos;
use crate::wire::liveliness;
use crate::wire::parameters::pid;
use crate::wire::participant::key;
use crate::wire::submessage::Payload;
use crate::writer::{New, Writer};
use core::time::Duration;
use std::collections::BTreeSet;
use std::net::SocketAddrV4;
use std::sync::Arc;

/// Number of initial announcements, which follow each other quickly.
const FIRST: u32 = 5;
const FIRST_PERIOD: Duration = Duration::from_millis(100);
/// Longest announcement of an endpoint in bytes; longer ones are refused.
const MAX_ANNOUNCEMENT: u32 = 64 << 10;

impl Participant {
    /// Adds the built-in endpoints. They are reliable and keep samples for late joiners.
    pub(super) fn add_builtin(&mut self) {
        let qos = |history| Qos {
            durability: Durability::TransientLocal,
            history,
            ..Qos::writer()
        };
        for (writer, reader, history) in [
            (
                EntityId::PUBLICATIONS_WRITER,
                EntityId::PUBLICATIONS_READER,
                History::KeepAll,
            ),
            (
                EntityId::SUBSCRIPTIONS_WRITER,
                EntityId::SUBSCRIPTIONS_READER,
                History::KeepAll,
            ),
            (
                EntityId::MESSAGE_WRITER,
                EntityId::MESSAGE_READER,
                History::KeepLast(1),
            ),
        ] {
            // They announce the program's own endpoints, and the program limits their number.
            let config = EndpointConfig {
                max_bytes: usize::MAX,
                max_samples: usize::MAX,
                ..EndpointConfig::new("", "", qos(history))
            };
            let data = |id| Arc::new(self.endpoint_data(id, &config));
            let (w, r) = (data(writer), data(reader));
            self.writers.insert(writer, Writer::new(writer, w, &config));
            self.readers
                .insert(reader, Reader::new(reader, r, MAX_ANNOUNCEMENT));
        }
    }

    /// Announces the participant everywhere, and schedules the next announcement.
    pub(super) fn announce(&mut self, now: Duration) {
        self.announcements = self.announcements.saturating_add(1);
        let period = if self.announcements < FIRST {
            FIRST_PERIOD
        } else {
            self.config.announce_period.max(FIRST_PERIOD)
        };
        self.timers.set(Timer::Announce, Some(now + period));
        self.say_everywhere(now, &self.announcement());
    }

    /// Sends to the configured addresses and to all known participants.
    fn say_everywhere(&mut self, now: Duration, bytes: &[u8]) {
        let known = self.peers.values().map(|p| p.metatraffic);
        let all: BTreeSet<_> = self.config.announce_to.iter().copied().chain(known).collect();
        for address in all {
            self.say(now, address, bytes.to_vec());
        }
    }

    pub(super) fn say(&mut self, now: Duration, address: SocketAddrV4, bytes: Vec<u8>) {
        let target = Target {
            address,
            prefix: GuidPrefix::default(),
        };
        let pace = self.config.pace(address);
        self.outbox.control(now, target, pace, bytes);
    }

    pub(super) fn announcement(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let payload = self.data.write();
        encode::data(&mut out, spdp(1), &InlineQos::default(), Payload::Data(&payload));
        out
    }

    /// Announces that the participant leaves, so that others need not wait for its lease to expire. Afterwards it only
    /// sends the datagrams that [`Participant::poll_transmit`] still returns.
    pub fn leave(&mut self, now: Duration) {
        if self.left {
            return;
        }
        self.left = true;
        let guid = self.guid();
        let inline = InlineQos {
            gone: true,
            key_hash: Some(guid.to_bytes()),
            ..InlineQos::default()
        };
        let mut out = Vec::new();
        let payload = key(pid::PARTICIPANT_GUID, guid);
        encode::data(&mut out, spdp(2), &inline, Payload::Key(&payload));
        self.outbox.forget_samples();
        self.say_everywhere(now, &out);
        for prefix in self.peers.keys().copied().collect::<Vec<_>>() {
            self.drop_peer(now, prefix);
        }
        self.timers.clear();
    }

    fn builtin_write(&mut self, now: Duration, writer: EntityId, new: New) -> Option<i64> {
        let cx = &mut Context {
            now,
            outbox: &mut self.outbox,
            timers: &mut self.timers,
        };
        self.writers.get_mut(&writer)?.write(cx, new).ok()
    }

    pub(super) fn announce_endpoint(&mut self, now: Duration, data: &EndpointData) {
        let new = New {
            payload: data.write().into(),
            key: false,
            inline: InlineQos::default(),
            timestamp: None,
        };
        let id = data.guid.entity;
        if let Some(sequence) = self.builtin_write(now, sedp(id), new) {
            self.announced.insert(id, sequence);
        }
    }

    pub(super) fn withdraw_endpoint(&mut self, now: Duration, id: EntityId) {
        let guid = self.guid_of(id);
        let new = New {
            payload: key(pid::ENDPOINT_GUID, guid).into(),
            key: true,
            inline: InlineQos {
                gone: true,
                key_hash: Some(guid.to_bytes()),
                ..InlineQos::default()
            },
            timestamp: None,
        };
        let cx = &mut Context {
            now,
            outbox: &mut self.outbox,
            timers: &mut self.timers,
        };
        if let Some(sequence) = self.announced.remove(&id)
            && let Some(writer) = self.writers.get_mut(&sedp(id))
        {
            writer.retract(cx, sequence);
        }
        self.builtin_write(now, sedp(id), new);
    }

    /// Shortest lease among writers whose liveliness the participant asserts.
    fn shortest_lease(&self) -> Option<Duration> {
        let writers = self.writers.values().map(|w| &w.data.qos);
        let automatic = writers.filter(|q| q.liveliness == Liveliness::Automatic);
        automatic.filter_map(|q| q.lease).min()
    }

    pub(super) fn set_liveliness(&mut self, now: Duration) {
        match self.shortest_lease() {
            Some(_) => self.timers.set_earlier(Timer::Liveliness, now),
            None => self.timers.set(Timer::Liveliness, None),
        }
    }

    /// Asserts liveliness three times per shortest lease.
    pub(super) fn assert_liveliness(&mut self, now: Duration) {
        let Some(lease) = self.shortest_lease() else {
            return;
        };
        let period = (lease / 3).max(Duration::from_millis(10));
        self.timers.set(Timer::Liveliness, Some(now + period));
        let new = New {
            payload: liveliness::automatic(self.config.prefix).into(),
            key: false,
            inline: InlineQos::default(),
            timestamp: None,
        };
        self.builtin_write(now, EntityId::MESSAGE_WRITER, new);
    }
}

fn spdp(sequence: i64) -> Route {
    Route {
        reader: EntityId::UNKNOWN,
        writer: EntityId::SPDP_WRITER,
        sequence,
    }
}

/// The built-in writer that announces an endpoint.
fn sedp(id: EntityId) -> EntityId {
    if id.is_writer() {
        EntityId::PUBLICATIONS_WRITER
    } else {
        EntityId::SUBSCRIPTIONS_WRITER
    }
}
