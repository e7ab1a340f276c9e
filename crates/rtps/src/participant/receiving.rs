//! Receives datagrams and passes each submessage to its recipients.

use super::Participant;
use crate::context::Context;
use crate::event::{Event, Sample};
use crate::reader::{Brought, Stamp};
use crate::wire::error::WireError;
use crate::wire::ids::{EntityId, Guid, GuidPrefix};
use crate::wire::message::{Item, Message};
use crate::wire::submessage::Submessage;
use core::time::Duration;
use std::net::SocketAddrV4;

impl Participant {
    /// Handles a datagram that arrived from `from`.
    ///
    /// # Errors
    ///
    /// If the datagram cannot be read to its end. Submessages before the fault take effect.
    pub fn handle(&mut self, now: Duration, datagram: &[u8], from: SocketAddrV4) -> Result<(), WireError> {
        let taken = self.take_message(now, datagram, from);
        self.counters.malformed += u64::from(taken.is_err());
        taken
    }

    fn take_message(&mut self, now: Duration, datagram: &[u8], from: SocketAddrV4) -> Result<(), WireError> {
        for item in Message::new(datagram)? {
            let item = item?;
            let for_all = item.destination == GuidPrefix::default();
            let for_us = item.destination == self.config.prefix;
            if self.left || item.source == self.config.prefix || !for_all && !for_us {
                continue;
            }
            // A participant of this host cannot send from another host.
            if let Some(peer) = self.peers.get(&item.source)
                && self.config.reach.is_own(peer.from)
                && !self.config.reach.is_own(*from.ip())
            {
                continue;
            }
            if let Submessage::Data(data) = &item.submessage
                && data.writer == EntityId::SPDP_WRITER
            {
                self.on_spdp(now, item.source, data, from);
                continue;
            }
            let Some(peer) = self.peers.get_mut(&item.source) else {
                continue;
            };
            peer.heard = now;
            if for_us && !peer.acquainted {
                peer.acquaint(self.config.limits.participant_memory);
            }
            self.on_submessage(now, item);
        }
        Ok(())
    }

    fn on_submessage(&mut self, now: Duration, item: Item<'_>) {
        let stamp = Stamp {
            now,
            timestamp: item.timestamp,
        };
        let source = item.source;
        match item.submessage {
            Submessage::Data(data) => {
                let from = Guid::new(source, data.writer);
                for id in self.readers_of(data.reader, from) {
                    self.read(now, id, from, |reader, cx| reader.on_data(cx, from, stamp, &data));
                }
            }
            Submessage::DataFrag(frag) => {
                let from = Guid::new(source, frag.writer);
                for id in self.readers_of(frag.reader, from) {
                    self.read(now, id, from, |reader, cx| {
                        reader.on_data_frag(cx, from, stamp, &frag)
                    });
                }
            }
            Submessage::Heartbeat(h) => {
                let from = Guid::new(source, h.writer);
                for id in self.readers_of(h.reader, from) {
                    self.read(now, id, from, |reader, cx| reader.on_heartbeat(cx, from, &h));
                }
            }
            Submessage::HeartbeatFrag(h) => {
                let from = Guid::new(source, h.writer);
                for id in self.readers_of(h.reader, from) {
                    self.read(now, id, from, |reader, cx| reader.on_heartbeat_frag(cx, from, &h));
                }
            }
            Submessage::Gap(gap) => {
                let from = Guid::new(source, gap.writer);
                for id in self.readers_of(gap.reader, from) {
                    self.read(now, id, from, |reader, cx| reader.on_gap(cx, from, &gap));
                }
            }
            Submessage::AckNack(ack) => {
                let cx = &mut Context {
                    now,
                    outbox: &mut self.outbox,
                    timers: &mut self.timers,
                };
                if let Some(writer) = self.writers.get_mut(&ack.writer)
                    && writer.on_acknack(cx, Guid::new(source, ack.reader), &ack)
                {
                    self.events.writable(ack.writer);
                }
            }
            Submessage::NackFrag(nack) => {
                let cx = &mut Context {
                    now,
                    outbox: &mut self.outbox,
                    timers: &mut self.timers,
                };
                if let Some(writer) = self.writers.get_mut(&nack.writer) {
                    writer.on_nack_frag(cx, Guid::new(source, nack.reader), &nack);
                }
            }
            Submessage::InfoTs(_) | Submessage::InfoDst(_) | Submessage::InfoSrc(_) | Submessage::Skipped => {
            }
        }
    }

    /// Returns the local readers that a submessage is for: the one that it names, or all that are matched with the
    /// writer.
    fn readers_of(&self, named: EntityId, from: Guid) -> Vec<EntityId> {
        if named != EntityId::UNKNOWN {
            return vec![named];
        }
        let builtin = match from.entity {
            EntityId::PUBLICATIONS_WRITER => EntityId::PUBLICATIONS_READER,
            EntityId::SUBSCRIPTIONS_WRITER => EntityId::SUBSCRIPTIONS_READER,
            EntityId::MESSAGE_WRITER => EntityId::MESSAGE_READER,
            _ => {
                let peer = self.peers.get(&from.prefix);
                let remote = peer.and_then(|p| p.endpoints.get(&from.entity));
                return remote
                    .map(|r| r.matched.iter().copied().collect())
                    .unwrap_or_default();
            }
        };
        vec![builtin]
    }

    fn read(
        &mut self,
        now: Duration,
        id: EntityId,
        from: Guid,
        take: impl FnOnce(&mut crate::reader::Reader, &mut Context<'_>) -> Brought,
    ) {
        let cx = &mut Context {
            now,
            outbox: &mut self.outbox,
            timers: &mut self.timers,
        };
        let Some(reader) = self.readers.get_mut(&id) else {
            return;
        };
        let brought = take(reader, cx);
        if !id.is_builtin() {
            self.events.lost(id, brought.lost);
        }
        for arrived in brought.samples {
            match id {
                EntityId::PUBLICATIONS_READER => self.on_sedp(now, from.prefix, &arrived, true),
                EntityId::SUBSCRIPTIONS_READER => self.on_sedp(now, from.prefix, &arrived, false),
                // The arrival itself renews the lease; the content does not matter.
                EntityId::MESSAGE_READER => {}
                // Topics without keys have no instances to dispose of.
                _ if arrived.key => {}
                _ => {
                    let sample = Sample {
                        reader: id,
                        payload: arrived.payload,
                        writer: from,
                        sequence: arrived.sequence,
                        related: arrived.inline.related,
                        source_timestamp: arrived.timestamp,
                    };
                    self.events.push(Event::Sample(sample), Some(arrived.charge));
                }
            }
        }
    }
}
