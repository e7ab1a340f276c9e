//! Messages that go over several hosts: topics by source, each message taken once, forwarded by priority.
//!
//! A [`Relay`] stands between a [`Radio`] and the host's sink. It announces each topic that a peer announces for others
//! to the peers that may carry it, and offers messages for others to the radio like any message of this host, so the
//! same scheduler, pacer and limits apply (it has no queue of its own). Messages of this host that may go over relays
//! start here too (decision 111).

mod flow;
mod key;
mod sealing;
mod sending;

pub use key::FlowKey;
pub use sealing::{Sealed, Sealer, Sealing};

use crate::announcement::{Announcement, Ordering, Reliability, Via};
use crate::arriving::Arriving;
use crate::body::{Body, Incoming, Message};
use crate::config::{MAX_DEPTH, PeerId, RemoteTopic, TopicConfig, TopicError, TopicId};
use crate::radio::Radio;
use crate::route::{Route, START_HOPS};
use core::time::Duration;
use flow::Flow;
use sending::{bits_of, send};
use serde::Serialize;
use stats::{DropReason, Drops, Time};
use std::collections::BTreeMap;

/// How long no messages are sent where they were declined.
const DECLINED_FOR: Duration = Duration::from_secs(10);
/// How long a relay tries to forward a message of a bulk topic whose expiry is not stated.
const BULK_EXPIRY: Duration = Duration::from_secs(600);
/// The same for a reliable topic.
const EXPIRY: Duration = Duration::from_secs(10);
/// How long a flow is kept that no neighbour brings.
const ORPHANED_FOR: Duration = Duration::from_secs(10);
/// Number of flows that one neighbour may bring, and number kept of those that it brought first. Each neighbour has its
/// own limit.
const MAX_FLOWS: usize = 512;

/// What this host does with an arriving message; keep it until [`Relay::finish`] or [`Relay::abort`].
#[derive(Clone, Debug)]
pub struct Taken {
    key: FlowKey,
    from: (PeerId, RemoteTopic),
    /// Whether this host itself takes it.
    pub local: bool,
    /// Whether others take it, so that its bytes must stay readable.
    pub forward: bool,
    /// Set if it is forwarded while it is still arriving: its body returns this from [`Body::arriving`], and reads the
    /// bytes written so far.
    pub arriving: Option<Arriving>,
    /// Whether the source itself brought it.
    proven: bool,
    /// Whether it is already being forwarded.
    offered: bool,
    claimed: u64,
    route: Route,
    stamp: Time,
    origin: u64,
    /// When it stops being of use.
    expires: Option<Time>,
}

/// Counters of a relay.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RelayStats {
    /// Messages of this host and of others offered to the radio, counted once for each peer that they went to.
    pub forwarded: u64,
    /// Messages that were not forwarded, by reason: [`DropReason::NoPeer`] there is no route to a destination,
    /// [`DropReason::Expired`] the hop limit is used up or the message has expired, [`DropReason::Unannounced`] no one
    /// there takes them.
    pub drops: Drops,
    /// Topics that the radio could not announce to a peer that has reached its limit of topics: their messages do not
    /// go there.
    pub unopened: u64,
}

enum Action<B> {
    Open(FlowKey),
    Close(FlowKey),
    Forward { taken: Taken, body: B },
    Decline { from: (PeerId, RemoteTopic), to: u64 },
}

/// See the module documentation.
pub struct Relay<B> {
    own: u64,
    flows: BTreeMap<FlowKey, Flow>,
    routes: BTreeMap<(PeerId, RemoteTopic), FlowKey>,
    /// Topics of neighbours whose flow ended: the neighbours do not announce them again if the flow resumes.
    dormant: BTreeMap<(PeerId, RemoteTopic), FlowKey>,
    actions: Vec<Action<B>>,
    /// Bytes that may be forwarded while still arriving: a peer that begins much and ends nothing does not displace
    /// others' messages.
    room: u64,
    /// Number of route changes when messages were last taken back.
    changes: u64,
    stats: RelayStats,
}

impl Taken {
    /// When it expires, by this host's clock; earlier by a round trip.
    pub fn expires(&self) -> Option<Time> {
        self.expires
    }

    /// Its number among its source's messages of the topic.
    pub fn number(&self) -> u64 {
        self.route.number
    }
}

impl<B: Body + Clone> Relay<B> {
    /// Creates the relay of the host with this id.
    pub fn new(own: u64) -> Self {
        Relay {
            own,
            flows: BTreeMap::new(),
            routes: BTreeMap::new(),
            dormant: BTreeMap::new(),
            actions: Vec::new(),
            room: 0,
            changes: 0,
            stats: RelayStats::default(),
        }
    }

    /// The host's id.
    pub fn own(&self) -> u64 {
        self.own
    }

    /// Whether [`Relay::run`] has something to do.
    pub fn is_due(&self, radio: &Radio<B>) -> bool {
        !self.actions.is_empty() || self.changes != radio.way_changes()
    }

    /// Ends flows that no neighbour has brought for long: their sources have restarted without them.
    pub fn sweep(&mut self, now: Time) {
        let own = self.own;
        for (key, flow) in self.flows.iter_mut().filter(|(k, _)| k.source != own) {
            match flow.orphan {
                _ if !flow.upstream.is_empty() => flow.orphan = None,
                None => flow.orphan = Some(now),
                Some(since) if now >= since + ORPHANED_FOR => {
                    flow.ends = true;
                    self.actions.push(Action::Close(key.clone()));
                }
                Some(_) => {}
            }
        }
    }

    /// Its counters.
    pub fn stats(&self) -> &RelayStats {
        &self.stats
    }

    /// Records that a peer announced a topic with [`Announcement::via`], and may do so. `proven`: the peer is the
    /// source itself, or proof is impossible; `local`: this host takes its messages; `forward`: it forwards them.
    /// Returns false if the topic cannot be kept.
    pub fn announced(
        &mut self,
        (peer, topic): (PeerId, RemoteTopic),
        announcement: &Announcement,
        proven: bool,
        local: bool,
        forward: bool,
    ) -> bool {
        let Some(via) = announcement.via.clone().filter(|v| v.source != self.own) else {
            return false;
        };
        let key = FlowKey::new(announcement, &via);
        self.dormant.remove(&(peer, topic));
        let of_peer = (peer, RemoteTopic(0))..=(peer, RemoteTopic(u32::MAX));
        let brings = self.routes.range(of_peer.clone()).count() + self.dormant.range(of_peer).count();
        let first = self.flows.values().filter(|f| f.first == Some(peer));
        if !self.flows.contains_key(&key) && (brings >= MAX_FLOWS || first.count() >= MAX_FLOWS) {
            return false;
        }
        // Depth and the like may differ; a flow known by another priority is opened again.
        let known = self.flows.get(&key).is_some_and(|f| {
            let (a, b) = (&f.announcement, announcement);
            a.priority == b.priority && f.local == local && !f.ends
        });
        if !known {
            let flow = Flow {
                first: Some(peer),
                local,
                ..Flow::new(announcement.clone(), via, settings(announcement))
            };
            let old = self.flows.insert(key.clone(), flow);
            if let (Some(old), Some(new)) = (old, self.flows.get_mut(&key)) {
                new.topics = old.topics;
                (new.upstream, new.first) = (old.upstream, old.first);
                (new.seen, new.newest) = (old.seen, old.newest);
                new.brought = old.brought;
                self.actions.push(Action::Close(key.clone()));
            }
            if forward {
                self.actions.push(Action::Open(key.clone()));
            }
        }
        if let Some(flow) = self.flows.get_mut(&key) {
            flow.upstream.insert((peer, topic), proven);
        }
        let before = self.routes.insert((peer, topic), key.clone());
        if let Some(other) = before.filter(|k| *k != key) {
            // Its number now belongs to another flow.
            self.bring_no_more(&other, (peer, topic));
        }
        true
    }

    /// The announcements that neighbours had made for this flow before it ended: they bring it again without another
    /// announcement.
    pub fn dormant(&self, announcement: &Announcement) -> Vec<(PeerId, RemoteTopic)> {
        let key = announcement
            .via
            .as_ref()
            .map(|via| FlowKey::new(announcement, via));
        let of_it = self.dormant.iter().filter(|(_, k)| Some(*k) == key.as_ref());
        of_it.map(|(from, _)| *from).collect()
    }

    /// A neighbour no longer brings a flow. The flow ends if no other does.
    fn bring_no_more(&mut self, key: &FlowKey, from: (PeerId, RemoteTopic)) {
        let Some(flow) = self.flows.get_mut(key) else {
            return;
        };
        flow.upstream.remove(&from);
        flow.brought.remove(&from.0);
        if flow.upstream.is_empty() {
            flow.ends = true;
            self.actions.push(Action::Close(key.clone()));
        }
    }

    /// Handles the withdrawal of a topic by a peer. Returns the topics of all peers that end with it: all of its flow
    /// if the peer is the source, otherwise only the peer's own, as for a topic of no flow.
    pub fn withdrawn(&mut self, peer: PeerId, topic: RemoteTopic) -> Vec<(PeerId, RemoteTopic)> {
        self.dormant.remove(&(peer, topic));
        let Some(key) = self.routes.get(&(peer, topic)).cloned() else {
            return vec![(peer, topic)];
        };
        let flow = self.flows.get(&key);
        if flow.is_some_and(|f| f.upstream.get(&(peer, topic)) == Some(&false)) {
            self.routes.remove(&(peer, topic));
            self.bring_no_more(&key, (peer, topic));
            return vec![(peer, topic)];
        }
        let of_it = self.routes.iter().filter(|(_, k)| **k == key);
        let ended = of_it.map(|(route, _)| *route).collect();
        self.end(&key);
        self.dormant.remove(&(peer, topic));
        ended
    }

    /// Ends a flow, here and downstream.
    fn end(&mut self, key: &FlowKey) {
        let dormant = &mut self.dormant;
        self.routes.retain(|from, k| {
            let ends = k == key;
            if ends {
                dormant.insert(*from, k.clone());
            }
            !ends
        });
        if let Some(flow) = self.flows.get_mut(key) {
            flow.ends = true;
            self.actions.push(Action::Close(key.clone()));
        }
    }

    /// Ends the delivery of a source's topic, to this host and downstream.
    pub fn end_local(&mut self, source: u64, topic: &str) {
        let of_it = |(k, f): &(&FlowKey, &Flow)| k.source == source && k.topic == topic && f.local;
        let ended: Vec<FlowKey> = self.flows.iter().filter(of_it).map(|(k, _)| k.clone()).collect();
        ended.iter().for_each(|key| self.end(key));
    }

    /// The announcement of a flow, and its destinations.
    pub fn announcement(&self, key: &FlowKey) -> Option<(&Announcement, &Via)> {
        self.flows.get(key).map(|f| (&f.announcement, &f.via))
    }

    /// The flow that a peer's topic belongs to, if any.
    pub fn flow_of(&self, peer: PeerId, topic: RemoteTopic) -> Option<&FlowKey> {
        self.routes.get(&(peer, topic))
    }

    /// A peer has restarted or was removed: its announcements are void.
    pub fn peer_renewed(&mut self, peer: PeerId) {
        self.routes.retain(|(p, _), _| *p != peer);
        self.dormant.retain(|(p, _), _| *p != peer);
        for flow in self.flows.values_mut() {
            flow.upstream.retain(|(p, _), _| *p != peer);
            flow.brought.remove(&peer);
            flow.declined.clear();
        }
    }

    /// A peer needs no messages of a topic for the hosts in `to`. Returns the flow and those hosts.
    pub fn declined(
        &mut self,
        now: Time,
        peer: PeerId,
        topic: TopicId,
        to: u64,
    ) -> Option<(FlowKey, Vec<u64>)> {
        let of_it = |(_, f): &(&FlowKey, &mut Flow)| f.topics.get(&peer).is_some_and(|(t, _)| *t == topic);
        let (key, flow) = self.flows.iter_mut().find(of_it)?;
        let (mask, until) = flow.declined.entry(peer).or_insert((0, now));
        if *until <= now {
            *mask = 0;
        }
        (*mask, *until) = (*mask | to, now + DECLINED_FOR);
        let hosts = flow.via.to.iter().enumerate();
        let hosts = hosts.filter(|(i, _)| to >> i & 1 == 1);
        Some((key.clone(), hosts.map(|(_, host)| *host).collect()))
    }

    /// Whether messages of a peer's topic need a [`Route`].
    pub fn is_flow(&self, peer: PeerId, topic: RemoteTopic) -> bool {
        self.routes.contains_key(&(peer, topic))
    }

    /// A message begins to arrive: decides whether it is taken, and for whom.
    ///
    /// # Errors
    /// The reason under which it is counted as lost: it arrived over another route, or it does not belong to a flow.
    pub fn begin(&mut self, m: &Incoming) -> Result<Taken, DropReason> {
        let (key, route) = self
            .routes
            .get(&(m.peer, m.topic))
            .zip(m.route)
            .ok_or(DropReason::Unannounced)?;
        let flow = self.flows.get_mut(key).ok_or(DropReason::Unannounced)?;
        let proven = flow.upstream.get(&(m.peer, m.topic)) != Some(&false);
        let known = flow.seen.taken(route.number);
        let seen = match proven {
            true => &mut flow.seen,
            false => flow.brought.entry(m.peer).or_default(),
        };
        if seen.is_absurd(route.number) {
            return Err(DropReason::Malformed);
        }
        let valid = match flow.via.to.len() {
            n @ 0..64 => (1u64 << n) - 1,
            _ => u64::MAX,
        };
        let claimed = seen.claim(route.number, route.to & valid & !known);
        if claimed == 0 {
            return Err(DropReason::OtherWay);
        }
        let own = bits_of(&flow.via.to, self.own);
        let local = claimed & own != 0 && flow.local;
        if claimed & own != 0 && !flow.local {
            self.actions.push(Action::Decline {
                from: (m.peer, m.topic),
                to: own,
            });
        }
        let late =
            flow.announcement.ordering == Ordering::Latest && flow.newest.is_some_and(|n| route.number < n);
        if local && late && claimed & !own == 0 {
            return Err(DropReason::OutOfOrder);
        }
        let (forward, bytes) = (claimed & !own != 0, u64::from(m.geometry.total_len()));
        let early = forward && flow.cuts_through() && bytes <= self.room;
        self.room -= if early { bytes } else { 0 };
        Ok(Taken {
            key: key.clone(),
            from: (m.peer, m.topic),
            local: local && !late,
            forward,
            arriving: early.then(Arriving::default),
            proven,
            offered: false,
            claimed,
            route,
            stamp: m.stamp,
            origin: m.origin,
            expires: m.expires,
        })
    }

    /// A message that was taken will not be complete: another route may bring it.
    pub fn abort(&mut self, taken: &Taken) {
        if let Some(arriving) = &taken.arriving {
            arriving.fail();
        }
        if let Some(flow) = self.flows.get_mut(&taken.key) {
            let seen = match taken.proven {
                true => Some(&mut flow.seen),
                false => flow.brought.get_mut(&taken.from.0),
            };
            if let Some(seen) = seen {
                seen.release(taken.route.number, taken.claimed);
            }
        }
    }

    /// The first `ready` bytes of a message have arrived ([`Sink::grown`]). If it is forwarded while it is still
    /// arriving, forwarding starts with the first of them, from `body`.
    ///
    /// [`Sink::grown`]: crate::Sink::grown
    pub fn grown(&mut self, taken: &mut Taken, ready: u32, body: impl FnOnce() -> B) {
        let Some(arriving) = taken.arriving.as_ref().filter(|_| ready > 0) else {
            return;
        };
        arriving.grow(ready);
        if !taken.offered {
            taken.offered = true;
            self.actions.push(Action::Forward {
                taken: taken.clone(),
                body: body(),
            });
        }
    }

    /// A message is complete. `body`: its bytes, if it is to be forwarded and is not yet. If it was for this host, it
    /// is proven to be its source's: a caller that refuses it clears [`Taken::local`].
    pub fn finish(&mut self, taken: Taken, body: Option<B>) {
        if let Some(arriving) = &taken.arriving {
            arriving.complete();
        }
        if let Some(flow) = self.flows.get_mut(&taken.key)
            && taken.local
        {
            flow.newest = flow.newest.max(Some(taken.route.number));
            if !taken.proven {
                // Later copies from other neighbours are ignored.
                let own = bits_of(&flow.via.to, self.own);
                flow.seen.claim(taken.route.number, own);
            }
        }
        if let Some(body) = body.filter(|_| taken.forward && !taken.offered) {
            self.actions.push(Action::Forward { taken, body });
        }
    }

    /// Opens a flow of this host, for the hosts in its `via`. Its topics are announced to the peers for which `may`
    /// returns hosts that they may carry messages for.
    ///
    /// # Errors
    /// [`TopicError`] if a setting is out of range, or if no peer takes a further topic.
    pub fn open(
        &mut self,
        now: Time,
        radio: &mut Radio<B>,
        config: &TopicConfig,
        peers: &[PeerId],
        may: impl Fn(PeerId, &FlowKey, &Via) -> u64,
    ) -> Result<FlowKey, TopicError> {
        let via = config.via.clone().ok_or(TopicError::Via)?;
        let announcement = Announcement {
            name: config.name.clone(),
            type_name: config.type_name.clone(),
            type_hash: config.type_hash,
            flavour: config.flavour,
            definition: config.definition.clone(),
            priority: config.priority,
            depth: config.depth,
            reliability: config.reliability,
            offers_reliable: config.offers_reliable,
            ordering: config.ordering,
            latched: config.latched,
            when_watched: false,
            via: None,
        };
        let key = FlowKey::new(&announcement, &via);
        // Numbering continues, because hosts that know the run remember the numbers.
        let next = self.flows.get(&key).map_or(0, |f| f.next);
        let flow = Flow {
            next,
            ..Flow::new(announcement, via, config.clone())
        };
        self.flows.insert(key.clone(), flow);
        match self.open_at(now, radio, &key, peers, &may) {
            Some(error) if self.flows.get(&key).is_none_or(|f| f.topics.is_empty()) => Err(error),
            _ => Ok(key),
        }
    }

    /// Withdraws a flow of this host everywhere.
    ///
    /// # Errors
    /// [`TopicError`] if the radio does not know its topics.
    pub fn close(&mut self, now: Time, radio: &mut Radio<B>, key: &FlowKey) -> Result<(), TopicError> {
        let topics = self.flows.get_mut(key).map(|f| std::mem::take(&mut f.topics));
        for (topic, _) in topics.unwrap_or_default().into_values() {
            radio.withdraw_topic(now, topic)?;
        }
        Ok(())
    }

    /// Offers a message of this host, for those of the flow's hosts that are bits of `to`. `sealer` seals what others
    /// carry.
    ///
    /// # Errors
    /// Why it goes nowhere: [`DropReason::NoPeer`] there is currently no route to any of the hosts,
    /// [`DropReason::Unannounced`] no one on the route takes it, [`DropReason::Unsealed`] it cannot be sealed for any
    /// of them. It is counted.
    pub fn offer(
        &mut self,
        now: Time,
        radio: &mut Radio<B>,
        (key, to): (&FlowKey, u64),
        message: Message<B>,
        sealer: &mut dyn Sealer<B>,
    ) -> Result<(), DropReason> {
        let flow = self.flows.get_mut(key).ok_or(DropReason::Unannounced)?;
        let route = Route {
            number: flow.next,
            hops: START_HOPS,
            to: to & ((1u128 << flow.via.to.len()) - 1) as u64,
        };
        flow.next += 1;
        let (sent, lost) = send(now, radio, (key, flow), message, route, Err(sealer));
        self.stats.count(sent, lost);
        lost.map_or(Ok(()), Err)
    }

    /// Ends a message of this host wherever it waits, as [`Radio::end_message`] does.
    pub fn end_message(
        &self,
        now: Time,
        radio: &mut Radio<B>,
        key: &FlowKey,
        stamp: Time,
        end: Result<(), DropReason>,
    ) {
        for (topic, _) in self.flows.get(key).into_iter().flat_map(|f| f.topics.values()) {
            radio.end_message(now, *topic, stamp, end);
        }
    }

    /// Performs the actions that the last datagrams require. Call it after [`Radio::handle`] and
    /// [`Radio::handle_timeout`].
    ///
    /// # Errors
    /// [`TopicError`] if the radio does not know a topic that it withdraws.
    pub fn run(
        &mut self,
        now: Time,
        radio: &mut Radio<B>,
        peers: &[PeerId],
        may: impl Fn(PeerId, &FlowKey, &Via) -> u64,
        sealer: &mut dyn Sealer<B>,
    ) -> Result<(), TopicError> {
        for action in std::mem::take(&mut self.actions) {
            match action {
                Action::Open(key) => {
                    self.open_at(now, radio, &key, peers, &may);
                }
                Action::Close(key) => {
                    self.close(now, radio, &key)?;
                    if self.routes.values().all(|k| *k != key) {
                        self.flows.remove(&key);
                    }
                }
                Action::Forward { taken, body } => self.forward(now, radio, taken, body),
                Action::Decline { from, to } => radio.decline(from.0, from.1, to),
            }
        }
        let changes = radio.way_changes();
        if self.changes != changes {
            self.changes = changes;
            self.go_on(now, radio, sealer);
        }
        self.room = radio.room() / 2;
        Ok(())
    }

    /// Offers messages that wait for a failing neighbour to the one that leads on instead.
    fn go_on(&mut self, now: Time, radio: &mut Radio<B>, sealer: &mut dyn Sealer<B>) {
        for (topic, message) in radio.take_back() {
            let of_it = |(_, f): &(&FlowKey, &Flow)| f.topics.values().any(|(t, _)| *t == topic);
            let flow = self.flows.iter().find(of_it);
            if let Some((flow, route)) = flow.zip(message.route) {
                let (sent, lost) = send(now, radio, flow, message, route, Err(&mut *sealer));
                self.stats.count(sent, lost);
            }
        }
    }

    /// Announces a flow to all peers that may carry it, and returns the last reason why one cannot get it.
    fn open_at(
        &mut self,
        now: Time,
        radio: &mut Radio<B>,
        key: &FlowKey,
        peers: &[PeerId],
        may: &impl Fn(PeerId, &FlowKey, &Via) -> u64,
    ) -> Option<TopicError> {
        let flow = self.flows.get_mut(key)?;
        let mut refused = None;
        for peer in peers {
            let mask = may(*peer, key, &flow.via) & !bits_of(&flow.via.to, self.own);
            if mask == 0 || radio.host_of(*peer) == key.source || flow.topics.contains_key(peer) {
                continue;
            }
            let config = TopicConfig {
                via: Some(flow.via.clone()),
                // A fragment computed from others would not know its route.
                reliability: match flow.settings.reliability {
                    Reliability::Redundant => Reliability::BestEffort,
                    other => other,
                },
                ..flow.settings.clone()
            };
            match radio.add_topic(now, *peer, config) {
                Ok(topic) => drop(flow.topics.insert(*peer, (topic, mask))),
                Err(error) => {
                    self.stats.unopened += 1;
                    refused = Some(error);
                }
            }
        }
        refused
    }

    fn forward(&mut self, now: Time, radio: &mut Radio<B>, taken: Taken, body: B) {
        let Some(flow) = self.flows.get(&taken.key) else {
            return;
        };
        let own = bits_of(&flow.via.to, self.own);
        if taken.route.hops == 0 || taken.expires.is_some_and(|t| t <= now) {
            return self.stats.drops.add(DropReason::Expired, 1);
        }
        let route = Route {
            hops: taken.route.hops - 1,
            to: taken.claimed & !own,
            ..taken.route
        };
        let message = Message {
            body,
            stamp: taken.stamp,
            origin: taken.origin,
            route: None,
            expires: taken.expires,
        };
        let wanted = route.to;
        let (sent, lost) = send(now, radio, (&taken.key, flow), message, route, Ok(taken.from.0));
        self.stats.count(sent, lost);
        // Upstream need not send messages that no one takes.
        let served: u64 = flow.serves(now, radio, taken.from.0);
        if wanted & !served != 0 {
            radio.decline(taken.from.0, taken.from.1, wanted & !served);
        }
    }
}

impl RelayStats {
    fn count(&mut self, sent: u64, lost: Option<DropReason>) {
        self.forwarded += sent;
        if let Some(reason) = lost {
            self.drops.add(reason, 1);
        }
    }
}

/// The settings of a forwarded topic.
fn settings(a: &Announcement) -> TopicConfig {
    TopicConfig {
        type_hash: a.type_hash,
        flavour: a.flavour,
        definition: a.definition.clone(),
        priority: a.priority,
        depth: a.depth.clamp(1, MAX_DEPTH),
        expiry: match a.reliability {
            Reliability::Reliable => Some(EXPIRY),
            Reliability::Bulk => Some(BULK_EXPIRY),
            _ => None,
        },
        reliability: a.reliability,
        offers_reliable: a.offers_reliable,
        ordering: a.ordering,
        latched: a.latched,
        ..TopicConfig::new(a.name.clone(), a.type_name.clone())
    }
}

#[cfg(test)]
mod tests;
