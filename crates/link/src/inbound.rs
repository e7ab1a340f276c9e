//! From the radio to this host's bus: fragments are written directly into loaned blocks.

mod memory;
mod pace;
mod publishing;
mod sealed;
mod taking;
mod watched;

use crate::blocks::{Ids, fill};
use crate::compress::{UnpackStats, Unpacker};
use crate::config::{Config, PeerConfig};
use crate::engine::calls::Times;
use crate::flows::Flows;
use crate::names::{self, Line};
use crate::outgoing::Outgoing;
use crate::recent::{Recent, Spans};
use crate::rules::{Right, permits};
use crate::services::Services;
use crate::services::message::ServiceMessage;
use bus::{Bus, Loan, Publisher, Stamp};
use memory::Memory;
use pace::Pace;
use proto::{
    Announcement, Down, Geometry, Incoming, PeerId, PeerInfo, RemoteTopic, Sink, Slot, Taken, TopicId,
    Verdict,
};
use stats::{DropReason, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// How long a restarted peer may take to announce a topic again.
const STALE_AFTER: Duration = Duration::from_secs(4);

/// The receiving side of a daemon: a bus publisher for each topic of each peer, and the blocks being filled.
pub(crate) struct Inbound {
    bus: Bus,
    wanted: BTreeSet<String>,
    peers: Vec<PeerConfig>,
    /// Most bytes of a message, for topics of `wanted` with a limit.
    max_message: BTreeMap<String, u32>,
    memory: Memory,
    pace: Pace,
    /// Number of topics refused to each peer.
    refused: BTreeMap<PeerId, u64>,
    /// By peer and the topic's name towards it. They outlive the peer's restarts.
    publishers: BTreeMap<(PeerId, String), Arc<Publisher>>,
    /// Publishers of restarted peers that are not announced again yet, and until when to wait for that.
    stale: BTreeMap<(PeerId, String), Time>,
    restarted: BTreeSet<PeerId>,
    ids: Ids,
    routes: BTreeMap<(PeerId, RemoteTopic), Route>,
    blocks: BTreeMap<Slot, Block>,
    next_slot: u64,
    changes: Vec<String>,
    /// Statistics of each topic of each peer, by its publisher.
    spans: BTreeMap<u64, Spans>,
    /// Without it, packed messages are refused.
    unpacker: Option<Unpacker>,
    /// Other hosts' topics, by the peer that brings them. Used if there are keys.
    relayed: BTreeMap<(PeerId, RemoteTopic), sealed::Relayed>,
    /// Topics that use relays.
    pub(crate) flows: Flows,
    /// Services, if any are configured.
    pub(crate) services: Option<Box<Services>>,
    /// Publishers used since the last [`Inbound::ring`], and whether some of their messages still need a
    /// wake-up.
    heard: Vec<(Arc<Publisher>, bool)>,
}

/// The local destination of a peer's topic.
#[derive(Clone)]
struct Route {
    publisher: Arc<Publisher>,
    /// The owner of the topic; another peer may bring it.
    owner: PeerId,
    max_message: u32,
    /// Messages lost on the way, as far as reported to this bus.
    lost: Option<u64>,
}

struct Block {
    peer: PeerId,
    topic: RemoteTopic,
    content: Content,
    /// Its publisher here, if any.
    here: Option<Route>,
    geometry: Geometry,
    stamp: Stamp,
    taken: Option<Taken>,
}

/// Information about a complete message of a service.
#[derive(Clone, Copy)]
struct About {
    from: (PeerId, RemoteTopic),
    geometry: Geometry,
    stamp: Time,
    expires: Option<Time>,
    is_local: bool,
}

/// The destination of a message's bytes.
enum Content {
    Loan(Loan),
    /// An envelope, which is unpacked into a block once it is complete.
    Envelope(Vec<u8>),
    /// Stored separately, since it is forwarded to other hosts.
    Apart(Outgoing),
    /// A service's message, for its server or its caller here.
    ServiceMessage(ServiceMessage),
}

impl Inbound {
    /// Publishes on `bus` those topics of `wanted` that `peers` announce and may publish. `run` distinguishes
    /// this run of the host from others.
    pub(crate) fn new(bus: Bus, wanted: BTreeSet<String>, config: &Config, run: u32) -> Self {
        Inbound {
            bus,
            wanted,
            max_message: config.max_messages(),
            memory: Memory::new(config.peers.iter().map(PeerConfig::memory).collect()),
            pace: Pace::default(),
            peers: config.peers.clone(),
            relayed: BTreeMap::new(),
            flows: Flows::new(config, config.routes(), run),
            services: None,
            heard: Vec::new(),
            refused: BTreeMap::new(),
            publishers: BTreeMap::new(),
            stale: BTreeMap::new(),
            restarted: BTreeSet::new(),
            ids: Ids::default(),
            routes: BTreeMap::new(),
            blocks: BTreeMap::new(),
            next_slot: 0,
            changes: Vec::new(),
            spans: BTreeMap::new(),
            unpacker: None,
        }
    }

    /// Enables the unpacking of packed messages.
    pub(crate) fn unpack_by(&mut self, unpacker: Unpacker) {
        self.unpacker = Some(unpacker);
    }

    /// The unpacking counts of a publisher, if any of its messages was packed.
    pub(crate) fn unpack_stats(&self, publisher: &Publisher) -> Option<UnpackStats> {
        self.unpacker.as_ref()?.stats(publisher.id())
    }

    /// Returns whether the bus publisher `id` is one of these: its messages came from the radio and must not
    /// go back.
    pub(crate) fn owns(&self, id: u64) -> bool {
        self.publishers.values().any(|p| p.id() == id)
    }

    /// The ids of the publishers, for other threads.
    pub(crate) fn ids(&self) -> Ids {
        self.ids.clone()
    }

    /// The publisher of a peer's topic on this bus, if any.
    pub(crate) fn publisher_of(&self, peer: PeerId, topic: RemoteTopic) -> Option<&Publisher> {
        self.routes.get(&(peer, topic)).map(|r| &*r.publisher)
    }

    /// The host that owns a topic sent by a peer.
    pub(crate) fn source_of(&self, peer: PeerId, topic: RemoteTopic) -> String {
        let source = self.flows.relay.flow_of(peer, topic).map(|k| k.source);
        source.map_or_else(|| self.peer(peer).to_owned(), |s| self.flows.carrying.name(s))
    }

    /// Ends topics that a restarted peer has not announced again for long.
    pub(crate) fn sweep(&mut self, now: Time) {
        for peer in std::mem::take(&mut self.restarted) {
            let keys = self.publishers.keys().filter(|(p, _)| *p == peer);
            // Its current routes were announced after the restart.
            let fresh: BTreeSet<u64> = (self.routes.iter())
                .filter(|((p, _), _)| *p == peer)
                .map(|(_, route)| route.publisher.id())
                .collect();
            let old = keys.filter(|k| self.publishers.get(k).is_none_or(|p| !fresh.contains(&p.id())));
            self.stale.extend(old.map(|k| (k.clone(), now + STALE_AFTER)));
        }
        let over: Vec<_> = self
            .stale
            .iter()
            .filter(|(_, t)| **t <= now)
            .map(|(k, _)| k.clone())
            .collect();
        for key in over {
            self.end(&key);
        }
        self.memory.sweep(now);
        self.flows.relay.sweep(now);
    }

    fn end(&mut self, key: &(PeerId, String)) {
        self.stale.remove(key);
        self.flows
            .relay
            .end_local(self.flows.carrying.host(key.0), &key.1);
        if let Some(publisher) = self.publishers.remove(key) {
            self.forget(key.0, &publisher);
            self.routes.retain(|_, r| r.publisher.id() != publisher.id());
            let name = self.peer(key.0).to_owned();
            self.changes.push(format!("{name} no longer sends {}", key.1));
        }
    }

    /// Statistics of each topic of each peer over the last second or so, at `now`, a time of day. By
    /// publisher.
    pub(crate) fn recent(&mut self, now: Time) -> BTreeMap<u64, Recent> {
        self.count_unpacked();
        let shown = |(id, spans): (&u64, &mut Spans)| Some((*id, spans.recent(now)?));
        self.spans.iter_mut().filter_map(shown).collect()
    }

    /// Changes of peers since the last call, for people.
    pub(crate) fn changes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.changes)
    }

    fn peer(&self, peer: PeerId) -> &str {
        self.peers.get(peer.0 as usize).map_or("unknown", |p| &p.name)
    }

    /// Counts a topic refused to a peer.
    pub(crate) fn refuse(&mut self, peer: PeerId) {
        *self.refused.entry(peer).or_default() += 1;
    }

    /// Number of topics refused to a peer.
    pub(crate) fn refused(&self, peer: PeerId) -> u64 {
        self.refused.get(&peer).copied().unwrap_or_default()
    }

    /// Why a peer may not publish a topic here, if so.
    fn objection(&self, peer: PeerId, topic: &str) -> Option<&'static str> {
        let Some(line) = Line::parse(topic) else {
            return Some("which is no topic's name");
        };
        if let Some(services) = self.services.as_ref().filter(|_| !line.is_topic()) {
            return services.calls.objection(peer, line);
        }
        let rules = self.peers.get(peer.0 as usize).and_then(|p| p.allow.as_ref());
        if names::is_of_other_nodes(
            topic,
            self.peer(peer),
            &self.flows.carrying.name(self.flows.relay.own()),
        ) {
            return Some("which describes other hosts' nodes");
        }
        if !self.wanted.iter().any(|name| names::covers(name, topic)) {
            Some("which is not configured for reception")
        } else if !permits(rules, Right::Publish, line) {
            Some("which `allow` does not permit it to publish")
        } else {
            None
        }
    }

    /// A peer announces a topic of its own, or one of another host.
    fn announced(&mut self, peer: PeerId, topic: RemoteTopic, a: &Announcement) -> Verdict {
        let name = self.peer(peer).to_owned();
        let mut source = peer;
        if let Some(via) = &a.via {
            let offer = match self.flows.carrying.judge(peer, &a.name, via) {
                Ok(offer) => offer,
                Err(why) => {
                    self.changes.push(format!(
                        "{name} offers {} of {}, {why}: refused",
                        a.name, via.name
                    ));
                    self.refuse(peer);
                    return Verdict::Refuse;
                }
            };
            let of_source = self.flows.carrying.host(peer) == via.source;
            let proven = of_source || self.flows.seals.is_none();
            let from = (peer, topic);
            if !(self.flows.relay).announced(from, a, proven, offer.local, offer.forward) {
                return Verdict::Refuse;
            }
            match offer.source {
                Some(id) if offer.local => {
                    if !self.relays(from, (id, of_source), a, via) {
                        self.changes
                            .push(format!("{name} brings {}, claimed to be of {}", a.name, via.name));
                        return Verdict::Accept;
                    }
                    source = id;
                }
                _ => {
                    self.changes
                        .push(format!("{name} sends {} of {} for relaying", a.name, via.name));
                    return Verdict::Accept;
                }
            }
        } else if let Some(why) = self.objection(peer, &a.name) {
            self.changes
                .push(format!("{name} offers {}, {why}: refused", a.name));
            self.refuse(peer);
            return Verdict::Refuse;
        }
        self.takes_topic(peer, topic, source, a)
    }

    /// A message of a service is complete.
    fn came(&mut self, about: About, service_message: ServiceMessage) -> Result<(), DropReason> {
        let services = self.services.as_mut().ok_or(DropReason::Unannounced)?;
        let bytes = u64::from(about.geometry.total_len());
        let times = Times {
            at: clock::monotonic(),
            stamp: about.stamp,
            expires: about.expires,
        };
        services.came(about.from, service_message, bytes, times)
    }

    /// This host's own copy of a service's message that was complete before, if this host takes it.
    fn service_message(&self, about: About, bytes: &[u8]) -> Option<Result<ServiceMessage, DropReason>> {
        let services = self.services.as_ref()?;
        if !about.is_local || !services.calls.is_route(about.from) {
            return None;
        }
        let taker = services.taker(about.from).ok_or(DropReason::Unannounced);
        Some(taker.and_then(|taker| {
            let mut service_message = ServiceMessage::new(&taker, &about.geometry)?;
            service_message.write(0, bytes);
            Ok(service_message)
        }))
    }
}

impl Sink for Inbound {
    fn begin(&mut self, m: &Incoming) -> Result<Slot, DropReason> {
        let here = self.routes.get(&(m.peer, m.topic)).cloned();
        self.admits(m)?;
        let taken = match m.route {
            Some(_) => Some(self.flows.relay.begin(m)?),
            None if self.flows.relay.is_flow(m.peer, m.topic) => return Err(DropReason::Malformed),
            None => None,
        };
        let is_local = taken.as_ref().is_none_or(|t| t.local);
        let here = here.filter(|_| is_local);
        let from = (m.peer, m.topic);
        let services = (self.services.as_ref()).filter(|s| is_local && s.calls.is_route(from));
        let taken_by = services.map(|s| s.taker(from).ok_or(DropReason::Unannounced));
        let envelope = || Content::Envelope(vec![0; m.geometry.total_len() as usize]);
        let apart = |t: &Taken| Content::Apart(Outgoing::carried(m.geometry, t.arriving.clone()));
        let too_large = |r: &Route| m.geometry.total_len() > r.max_message;
        let content = match (&here, taken_by, &taken) {
            (.., Some(t)) if t.forward => Ok(apart(t)),
            _ if is_local && self.opens(m) => Ok(envelope()),
            (_, Some(taker), _) => {
                taker.and_then(|t| ServiceMessage::new(&t, &m.geometry).map(Content::ServiceMessage))
            }
            (None, ..) => Err(DropReason::Unannounced),
            (Some(route), ..) if too_large(route) => Err(DropReason::TooLarge),
            (Some(_), ..) if m.geometry.is_packed() && self.unpacker.is_none() => Err(DropReason::TooLarge),
            (Some(_), ..) if m.geometry.is_packed() => Ok(envelope()),
            (Some(r), ..) => {
                let loan = self.memory.loan(r.owner, &r.publisher, &m.geometry);
                loan.map(Content::Loan)
            }
        };
        let content = content.inspect_err(|_| {
            if let Some(t) = &taken {
                self.flows.relay.abort(t);
            }
        })?;
        let slot = Slot(self.next_slot);
        self.next_slot += 1;
        let stamp = Stamp {
            time: Some(m.stamp),
            origin: (m.origin != 0).then_some(m.origin),
        };
        self.blocks.insert(
            slot,
            Block {
                peer: m.peer,
                topic: m.topic,
                content,
                here,
                geometry: m.geometry,
                stamp,
                taken,
            },
        );
        Ok(slot)
    }

    fn write(&mut self, slot: Slot, offset: u32, bytes: &[u8]) {
        let Some(block) = self.blocks.get_mut(&slot) else {
            return;
        };
        match &mut block.content {
            Content::Loan(loan) => fill(loan, &block.geometry, offset, bytes),
            Content::ServiceMessage(service_message) => service_message.write(offset, bytes),
            Content::Envelope(all) => all[offset as usize..][..bytes.len()].copy_from_slice(bytes),
            Content::Apart(message) => {
                if let Some(mut all) = message.carried_bytes() {
                    all[offset as usize..][..bytes.len()].copy_from_slice(bytes);
                }
            }
        }
    }

    /// Accepts packed messages one at a time, since the unpacker publishes them.
    fn takes(&mut self, slot: Slot) -> bool {
        let Some(block) = self.blocks.get(&slot) else {
            return true;
        };
        let Some(Route { publisher, .. }) = &block.here else {
            return true;
        };
        let busy = self.unpacker.as_ref().is_some_and(|u| u.has(publisher.id()));
        let bytes = u64::from(block.geometry.total_len());
        !busy && self.pace.takes(clock::monotonic(), publisher, bytes)
    }

    fn grown(&mut self, slot: Slot, ready: u32) {
        if let Some(block) = self.blocks.get_mut(&slot)
            && let (Content::Apart(message), Some(taken)) = (&block.content, &mut block.taken)
        {
            self.flows.relay.grown(taken, ready, || message.clone());
        }
    }

    fn finish(&mut self, slot: Slot) -> Result<(), DropReason> {
        let Some(block) = self.blocks.remove(&slot) else {
            return Err(DropReason::ReceiverMemory);
        };
        let mut body = None;
        let about = About {
            from: (block.peer, block.topic),
            geometry: block.geometry,
            stamp: block.stamp.time.unwrap_or_default(),
            expires: block.taken.as_ref().and_then(Taken::expires),
            is_local: block.taken.as_ref().is_none_or(|t| t.local),
        };
        let opens = about.is_local && self.relayed.contains_key(&about.from);
        let number = block.taken.as_ref().map(Taken::number);
        let outcome = match (block.content, &block.here) {
            (Content::Envelope(bytes), _) if opens => self.opened(about, block.stamp, number, bytes),
            (Content::Apart(message), _) if opens => {
                let bytes = message.carried_bytes().map(|b| b.to_vec());
                body = Some(message);
                let bytes = bytes.ok_or(DropReason::ReceiverMemory);
                bytes.and_then(|bytes| self.opened(about, block.stamp, number, bytes))
            }
            (Content::ServiceMessage(service_message), _) => {
                self.came(about, service_message).map(|()| false)
            }
            (Content::Apart(message), here) => {
                // A message that is both forwarded and published here is copied once more.
                let here = here.as_ref().map(|route| {
                    let bytes = message.carried_bytes().ok_or(DropReason::ReceiverMemory)?;
                    if block.geometry.total_len() > route.max_message {
                        return Err(DropReason::TooLarge);
                    }
                    if block.geometry.is_packed() {
                        return Ok((route, Content::Envelope(bytes.to_vec())));
                    }
                    let loan = self.memory.loan(route.owner, &route.publisher, &block.geometry);
                    let mut loan = loan?;
                    fill(&mut loan, &block.geometry, 0, &bytes);
                    Ok((route, Content::Loan(loan)))
                });
                let service_message = message
                    .carried_bytes()
                    .and_then(|bytes| self.service_message(about, &bytes));
                body = Some(message.clone());
                match (here, service_message) {
                    (None, None) => Ok(false),
                    (None, Some(service_message)) => {
                        service_message.and_then(|l| self.came(about, l)).map(|()| false)
                    }
                    (Some(Ok((route, content))), _) => self.publish(route, content, block.stamp),
                    (Some(Err(reason)), _) => Err(reason),
                }
            }
            (content, Some(route)) => self.publish(route, content, block.stamp),
            (_, None) => Err(DropReason::ReceiverMemory),
        };
        if let Some(mut taken) = block.taken {
            // A forged message must not block the genuine one.
            taken.local &= !opens || outcome.is_ok();
            match taken.local || taken.forward {
                true => self.flows.relay.finish(taken, body),
                false => self.flows.relay.abort(&taken),
            }
        }
        if !outcome? {
            return Ok(());
        }
        let route = self.routes.get(&about.from).or(block.here.as_ref());
        if let (Some(Route { publisher, .. }), Some(stamp)) = (route, block.stamp.time) {
            let bytes = u64::from(block.geometry.total_len());
            let spans = self.spans.entry(publisher.id()).or_default();
            spans.received(stamp, clock::realtime(), bytes);
        }
        Ok(())
    }

    fn abort(&mut self, slot: Slot, _: DropReason) {
        if let Some(taken) = self.blocks.remove(&slot).and_then(|b| b.taken) {
            self.flows.relay.abort(&taken);
        }
    }

    fn topic_announced(&mut self, peer: PeerId, topic: RemoteTopic, a: &Announcement) -> Verdict {
        let verdict = self.announced(peer, topic, a);
        if verdict == Verdict::Accept {
            for (other, topic) in self.flows.relay.dormant(a) {
                self.announced(other, topic, a);
            }
        }
        verdict
    }

    fn topic_unwanted(&mut self, peer: PeerId, topic: TopicId, to: u64) {
        // A peer that sends many of these only makes this host check them once.
        if self.flows.declined.len() < 1024 {
            self.flows.declined.push((peer, topic, to));
        }
    }

    fn topic_withdrawn(&mut self, peer: PeerId, topic: RemoteTopic) {
        for route in self.flows.relay.withdrawn(peer, topic) {
            self.relayed.remove(&route);
            if let Some(services) = &mut self.services
                && services.calls.withdrawn(route)
            {
                continue;
            }
            let Some(Route { publisher, .. }) = self.routes.remove(&route) else {
                continue;
            };
            // A source that restarted, for other hosts than before, may already have announced it again.
            if (self.routes.values()).any(|r| r.publisher.id() == publisher.id()) {
                continue;
            }
            let of_it = self.publishers.iter().find(|(_, p)| p.id() == publisher.id());
            if let Some((key, _)) = of_it {
                let key = key.clone();
                self.end(&key);
            }
        }
    }

    fn peer_up(&mut self, peer: PeerId, info: &PeerInfo) {
        let configured = self.peer(peer).to_owned();
        let also = if info.name == configured {
            String::new()
        } else {
            format!(" (it calls itself {})", info.name)
        };
        self.changes.push(format!("{configured} is connected{also}"));
        self.memory.peer_is_away(peer, false);
        if let Some(services) = &mut self.services {
            services.calls.peer_up(peer);
        }
    }

    fn peer_down(&mut self, peer: PeerId, why: Down) {
        if let Some(services) = &mut self.services {
            services.calls.peer_down(clock::monotonic(), peer, why);
        }
        self.routes.retain(|(p, _), _| why == Down::Lost || *p != peer);
        self.memory.peer_is_away(peer, why != Down::Restarted);
        if why == Down::Restarted {
            self.restarted.insert(peer);
        }
        if why != Down::Lost {
            self.relayed.retain(|(p, _), _| *p != peer);
            self.flows.relay.peer_renewed(peer);
        }
        let why = match why {
            Down::Lost => "has been silent for a while",
            Down::Restarted => "has restarted",
            _ => "was removed",
        };
        self.changes.push(format!("{} {why}", self.peer(peer)));
    }
}
