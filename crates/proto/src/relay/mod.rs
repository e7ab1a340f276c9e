//! Messages that go over several hosts: topics by source, each message taken once, forwarded by priority.
//!
//! A [`Relay`] stands between a [`Radio`] and the host's sink. What a peer announces for others it announces to
//! the peers that may carry it; what comes for others it offers to the radio like any message of this host, so
//! that the same scheduler, pacer and bounds hold (no queue of its own). Messages of this host that may go over
//! relays start here too.

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

/// How long messages are not sent where they were declined.
const DECLINED_FOR: Duration = Duration::from_secs(10);
/// How long a relay tries to pass on a message of a bulk topic, if nothing is said of how long somebody waits for it.
const BULK_EXPIRY: Duration = Duration::from_secs(600);
/// The same of a reliable topic.
const EXPIRY: Duration = Duration::from_secs(10);
/// How long a flow is kept that nobody brings.
const ORPHANED_FOR: Duration = Duration::from_secs(10);
/// Flows that one neighbour may bring; and of those that it brought first, so many are kept. Each neighbour has its own.
const MAX_FLOWS: usize = 512;

/// What this host does with a message that comes; keep it until [`Relay::finish`] or [`Relay::abort`].
#[derive(Clone, Debug)]
pub struct Taken {
    key: FlowKey,
    from: (PeerId, RemoteTopic),
    /// Whether this host itself takes it.
    pub local: bool,
    /// Whether others do, so that its bytes must stay readable.
    pub forward: bool,
    /// Set if it goes on while it still comes: its body gives this as [`Body::arriving`], and reads what was written
    /// so far.
    pub arriving: Option<Arriving>,
    /// The source itself brought it.
    proven: bool,
    /// It goes on already.
    offered: bool,
    claimed: u64,
    route: Route,
    stamp: Time,
    origin: u64,
    /// When nobody waits for it any more.
    expires: Option<Time>,
}

/// Counts of a relay.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RelayStats {
    /// Messages of this host and of others offered to the radio, once for each peer that they went to.
    pub forwarded: u64,
    /// Messages that went no further, by reason: [`DropReason::NoPeer`] no way to a host that they were for,
    /// [`DropReason::Expired`] their hops were used up, or nobody waits for them any more, [`DropReason::Unannounced`] nobody there takes them.
    pub drops: Drops,
}

enum Action<B> {
    Open(FlowKey),
    Close(FlowKey),
    Forward { taken: Taken, body: B },
    Decline { from: (PeerId, RemoteTopic), to: u64 },
}

/// See the module's page.
pub struct Relay<B> {
    own: u64,
    flows: BTreeMap<FlowKey, Flow>,
    routes: BTreeMap<(PeerId, RemoteTopic), FlowKey>,
    /// Topics of neighbours whose flow ended: they do not announce them again if it begins again.
    dormant: BTreeMap<(PeerId, RemoteTopic), FlowKey>,
    actions: Vec<Action<B>>,
    /// So many bytes may go on while they still come: a peer that begins much and ends nothing displaces nobody's.
    room: u64,
    /// How often ways had changed when messages were taken back last.
    changes: u64,
    stats: RelayStats,
}

impl Taken {
    /// When nobody waits for it any more, by this host's clock; a round trip early.
    pub fn expires(&self) -> Option<Time> {
        self.expires
    }

    /// Its number among its source's messages of the topic.
    pub fn number(&self) -> u64 {
        self.route.number
    }
}

impl<B: Body + Clone> Relay<B> {
    /// A relay of the host with this id.
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

    /// Ends flows that nobody has brought for long: their sources were started anew without them.
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

    /// Counts.
    pub fn stats(&self) -> &RelayStats {
        &self.stats
    }

    /// A peer announced a topic with [`Announcement::via`], which it may. `proven`: the peer is the source itself, or nobody
    /// can prove anything; `local`: this host takes its messages; `forward`: it forwards them. False if it cannot be kept.
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
        // Depth and the like may differ; who knows the flow by another priority begins anew.
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
            // Its number has become another's.
            self.bring_no_more(&other, (peer, topic));
        }
        true
    }

    /// What neighbours had announced of the flow of this announcement before it ended: they bring it again, without another word.
    pub fn dormant(&self, announcement: &Announcement) -> Vec<(PeerId, RemoteTopic)> {
        let key = announcement
            .via
            .as_ref()
            .map(|via| FlowKey::new(announcement, via));
        let of_it = self.dormant.iter().filter(|(_, k)| Some(*k) == key.as_ref());
        of_it.map(|(from, _)| *from).collect()
    }

    /// A neighbour brings a flow no more. It ends if no other does.
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

    /// A peer withdrew a topic. Gives the topics of all peers that end by it: all of its flow if the peer is its source, else
    /// the peer's own.
    pub fn withdrawn(&mut self, peer: PeerId, topic: RemoteTopic) -> Vec<(PeerId, RemoteTopic)> {
        self.dormant.remove(&(peer, topic));
        let Some(key) = self.routes.get(&(peer, topic)).cloned() else {
            return Vec::new();
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

    /// Ends a flow, here and beyond.
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

    /// Ends what this host takes of a source's topic, here and beyond.
    pub fn end_local(&mut self, source: u64, topic: &str) {
        let of_it = |(k, f): &(&FlowKey, &Flow)| k.source == source && k.topic == topic && f.local;
        let ended: Vec<FlowKey> = self.flows.iter().filter(of_it).map(|(k, _)| k.clone()).collect();
        ended.iter().for_each(|key| self.end(key));
    }

    /// What a flow is announced as, and for whom.
    pub fn announcement(&self, key: &FlowKey) -> Option<(&Announcement, &Via)> {
        self.flows.get(key).map(|f| (&f.announcement, &f.via))
    }

    /// The flow that a peer's topic is of, if it is of one.
    pub fn flow_of(&self, peer: PeerId, topic: RemoteTopic) -> Option<&FlowKey> {
        self.routes.get(&(peer, topic))
    }

    /// A peer was started anew or removed: its announcements are void.
    pub fn peer_renewed(&mut self, peer: PeerId) {
        self.routes.retain(|(p, _), _| *p != peer);
        self.dormant.retain(|(p, _), _| *p != peer);
        for flow in self.flows.values_mut() {
            flow.upstream.retain(|(p, _), _| *p != peer);
            flow.brought.remove(&peer);
            flow.declined.clear();
        }
    }

    /// A peer needs no messages of a topic for the hosts of `to`. Gives the flow, and those hosts.
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

    /// A message begins to come: whether it is taken, and for whom.
    ///
    /// # Errors
    /// The reason under which it is counted as lost: another way brought it, or it is no message of a flow.
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

    /// A message that was taken will not be complete: another way may bring it.
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

    /// The first `ready` bytes of a message are there ([`Sink::grown`]). If it goes on while it comes, it does from the
    /// first of them on, as `body`.
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

    /// A message is complete. `body`: its bytes, if it goes on and does not yet. If it was for this host, it is proven to be
    /// its source's: whoever refuses it sets [`Taken::local`] back.
    pub fn finish(&mut self, taken: Taken, body: Option<B>) {
        if let Some(arriving) = &taken.arriving {
            arriving.complete();
        }
        if let Some(flow) = self.flows.get_mut(&taken.key)
            && taken.local
        {
            flow.newest = flow.newest.max(Some(taken.route.number));
            if !taken.proven {
                // No other neighbour brings it again.
                let own = bits_of(&flow.via.to, self.own);
                flow.seen.claim(taken.route.number, own);
            }
        }
        if let Some(body) = body.filter(|_| taken.forward && !taken.offered) {
            self.actions.push(Action::Forward { taken, body });
        }
    }

    /// Opens a flow of this host, for the hosts of its `via`. Its topics are announced to the peers for which
    /// `may` gives hosts that they may carry messages for.
    ///
    /// # Errors
    /// [`TopicError`] if a setting is out of bounds.
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
            via: None,
        };
        let key = FlowKey::new(&announcement, &via);
        // Numbers go on, since those who know the run remember them.
        let next = self.flows.get(&key).map_or(0, |f| f.next);
        let flow = Flow {
            next,
            ..Flow::new(announcement, via, config.clone())
        };
        self.flows.insert(key.clone(), flow);
        self.open_at(now, radio, &key, peers, &may)?;
        Ok(key)
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

    /// Offers a message of this host, for those of the flow's hosts that are bits of `to`. What others are to carry is sealed
    /// by `sealer`.
    ///
    /// # Errors
    /// Why it goes nowhere: [`DropReason::NoPeer`] there is no way to any of the hosts now, [`DropReason::Unannounced`]
    /// nobody on the way takes it, [`DropReason::Unsealed`] it cannot be sealed for any. It is counted.
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

    /// Ends a message of this host wherever it waits: as [`Radio::end_message`].
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

    /// Does what the last datagrams called for. To be called after [`Radio::handle`] and
    /// [`Radio::handle_timeout`].
    ///
    /// # Errors
    /// [`TopicError`] if the radio takes no further topic.
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
                Action::Open(key) => self.open_at(now, radio, &key, peers, &may)?,
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

    /// Offers what waits for a neighbour that fails to the one that leads on now.
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

    fn open_at(
        &mut self,
        now: Time,
        radio: &mut Radio<B>,
        key: &FlowKey,
        peers: &[PeerId],
        may: &impl Fn(PeerId, &FlowKey, &Via) -> u64,
    ) -> Result<(), TopicError> {
        let Some(flow) = self.flows.get_mut(key) else {
            return Ok(());
        };
        for peer in peers {
            let mask = may(*peer, key, &flow.via) & !bits_of(&flow.via.to, self.own);
            if mask == 0 || radio.host_of(*peer) == key.source || flow.topics.contains_key(peer) {
                continue;
            }
            let config = TopicConfig {
                via: Some(flow.via.clone()),
                // A fragment that is made up from others would not know its way.
                reliability: match flow.settings.reliability {
                    Reliability::Redundant => Reliability::BestEffort,
                    other => other,
                },
                ..flow.settings.clone()
            };
            let topic = radio.add_topic(now, *peer, config)?;
            flow.topics.insert(*peer, (topic, mask));
        }
        Ok(())
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
        // Upstream need not send what nobody takes.
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

/// The settings of a topic that is passed on.
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
