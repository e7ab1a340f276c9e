//! The receiving side of a program's own link: judges announcements and reassembles messages.

use super::event::Caller;
use crate::config::{self, Config};
use crate::engine::calls::header::inner;
use crate::engine::calls::{Calls, Times};
use crate::engine::received::Received;
use crate::names::{self, Line};
use crate::rules::{Right, may};
use proto::{Announcement, Down, Incoming, PeerId, PeerInfo, RemoteTopic, Sink, Slot, Verdict};
use stats::{DropReason, Time};
use std::collections::BTreeMap;

/// A message that is not complete.
struct Filling {
    from: (PeerId, RemoteTopic),
    received: Received,
    stamp: Time,
}

/// Receives the radio's messages and news.
pub(super) struct Inbox {
    config: Config,
    pub(super) calls: Calls<Received, Caller>,
    /// Messages of topics, by the topic's name here.
    pub(super) messages: Vec<(String, Received)>,
    /// The names here of peers' topics.
    topics: BTreeMap<(PeerId, RemoteTopic), String>,
    filling: BTreeMap<Slot, Filling>,
    next_slot: u64,
}

impl Inbox {
    pub(super) fn new(config: &Config, run: u32) -> Self {
        Inbox {
            // Only relays reach the other peers.
            calls: Calls::new(&config.services, config.neighbours(), run),
            config: config.clone(),
            messages: Vec::new(),
            topics: BTreeMap::new(),
            filling: BTreeMap::new(),
            next_slot: 0,
        }
    }

    /// Accepts a topic that a peer announces, if it is wanted.
    fn takes(&mut self, peer: PeerId, topic: RemoteTopic, a: &Announcement) -> Verdict {
        let Some(from) = self.config.peers.get(peer.0 as usize).filter(|_| a.via.is_none()) else {
            return Verdict::Refuse;
        };
        let Some(line) = Line::parse(&a.name) else {
            return Verdict::Refuse;
        };
        if !line.is_topic() {
            return match self.calls.objection(peer, line) {
                Some(_) => Verdict::Refuse,
                None => self.calls.announced((peer, topic), peer, line, a),
            };
        }
        let mut topics = self.config.topics.iter();
        let is_wanted = topics.any(|t| t.direction.receives() && names::covers(&t.name, &a.name));
        if !is_wanted || !may(from.allow.as_ref(), Right::Publish, &a.name) {
            return Verdict::Refuse;
        }
        self.topics.insert((peer, topic), config::on_bus(from, &a.name));
        Verdict::Accept
    }
}

impl Sink for Inbox {
    fn begin(&mut self, m: &Incoming) -> Result<Slot, DropReason> {
        let from = (m.peer, m.topic);
        let is_of_service = self.calls.is_route(from);
        if !is_of_service && !self.topics.contains_key(&from) {
            return Err(DropReason::Unannounced);
        }
        if m.route.is_some() {
            return Err(DropReason::Malformed);
        }
        if m.geometry.is_packed() {
            // Its sender compresses (`compress`), and only daemons decompress.
            return Err(DropReason::TooLarge);
        }
        if is_of_service {
            self.calls.taker(from).ok_or(DropReason::Unannounced)?;
            inner(&m.geometry).ok_or(DropReason::Malformed)?;
        }
        let slot = Slot(self.next_slot);
        self.next_slot += 1;
        let filling = Filling {
            from,
            received: Received::new(m.geometry),
            stamp: m.stamp,
        };
        self.filling.insert(slot, filling);
        Ok(slot)
    }

    fn write(&mut self, slot: Slot, offset: u32, bytes: &[u8]) {
        if let Some(filling) = self.filling.get_mut(&slot) {
            filling.received.write(offset, bytes);
        }
    }

    fn finish(&mut self, slot: Slot) -> Result<(), DropReason> {
        let filling = self.filling.remove(&slot).ok_or(DropReason::ReceiverMemory)?;
        let received = filling.received;
        if let Some(name) = self.topics.get(&filling.from) {
            self.messages.push((name.clone(), received));
            return Ok(());
        }
        let head = *received.bytes.first_chunk().ok_or(DropReason::Malformed)?;
        let bytes = u64::from(received.geometry.total_len());
        let times = Times {
            at: clock::monotonic(),
            stamp: filling.stamp,
            expires: None,
        };
        self.calls.came(filling.from, &head, (received, bytes), times)
    }

    fn abort(&mut self, slot: Slot, _: DropReason) {
        self.filling.remove(&slot);
    }

    fn topic_announced(&mut self, peer: PeerId, topic: RemoteTopic, a: &Announcement) -> Verdict {
        let verdict = self.takes(peer, topic, a);
        if verdict == Verdict::Refuse {
            tracing::info!(
                topic = a.name,
                "a peer's offer is refused: not configured, or not permitted by `allow`"
            );
        }
        verdict
    }

    fn topic_withdrawn(&mut self, peer: PeerId, topic: RemoteTopic) {
        if !self.calls.withdrawn((peer, topic)) {
            self.topics.remove(&(peer, topic));
        }
    }

    fn peer_up(&mut self, peer: PeerId, _: &PeerInfo) {
        self.calls.peer_up(peer);
    }

    fn peer_down(&mut self, peer: PeerId, why: Down) {
        self.calls.peer_down(clock::monotonic(), peer, why);
        if why != Down::Lost {
            self.topics.retain(|(p, _), _| *p != peer);
        }
    }
}
