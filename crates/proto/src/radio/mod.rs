//! The engine: one host's side of one radio.

mod jobs;
mod offering;
mod receiving;
mod routing;
mod sending;
mod settings;
mod sharing;
mod watching;

use crate::body::{Body, Sink};
use crate::config::{PeerId, RadioConfig, RemoteTopic, TopicId};
use crate::outcome::Outcome;
use crate::peer::Peer;
use crate::policy::{Air, Policy, Recent};
use crate::route::Router;
use crate::send::{Scheduler, SendTopic};
use crate::statistics::{PeerStats, RadioStats, RemoteTopicStats, TopicState, TopicStats};
use crate::wire::ReportEntry;
use core::time::Duration;
use stats::Time;
use std::collections::BTreeMap;

/// Result of [`Radio::poll_transmit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// The buffer holds a datagram: hand it to `peer`'s carrier now. It is already counted as sent.
    Datagram {
        /// Destination.
        peer: PeerId,
        /// Its importance, for DSCP: the topic's priority, or 127 for control frames.
        priority: u8,
    },
    /// Something waits for the pacer: ask again at this time, or earlier if a message is offered or a datagram arrives.
    Wait(Time),
    /// Nothing to send.
    Idle,
}

/// One host's side of one radio, with all its peers and topics; see the crate's documentation.
///
/// Drive it like this: after any call, and whenever a time that it returned has come, call [`Radio::handle_timeout`] if
/// [`Radio::next_timeout`] has passed, then call [`Radio::poll_transmit`] until it returns no datagram, then sleep
/// until the earlier of both times. Nothing blocks. Time must not run backwards; an earlier time counts as the latest
/// seen.
pub struct Radio<B> {
    config: RadioConfig,
    /// Decides when the next datagram goes; chosen once.
    policy: Box<dyn Policy>,
    clock: Time,
    /// What is believed to occupy the air.
    air: Air,
    scheduler: Scheduler,
    /// Importance of recent messages.
    lately: Recent<u8>,
    peers: BTreeMap<PeerId, Peer>,
    next_peer: u32,
    /// By [`TopicId`]; numbers are never reused.
    topics: Vec<SendTopic<B>>,
    arrivals: u64,
    /// Jobs handed out so far.
    jobs: u64,
    stats: RadioStats,
    router: Option<Router>,
    /// Notices to peers of messages that are not needed: topic, hosts.
    unwanted: Vec<(PeerId, u32, u64)>,
}

impl<B: Body> Radio<B> {
    fn tick(&mut self, now: Time) -> Time {
        self.clock = self.clock.max(now);
        self.clock
    }

    fn is_up(&self, peer: PeerId) -> bool {
        self.peers.get(&peer).is_some_and(|p| p.session.is_up())
    }

    fn released(&mut self, bytes: u64) {
        self.stats.queued_bytes = self.stats.queued_bytes.saturating_sub(bytes);
    }

    /// When [`Radio::handle_timeout`] is due; `None` while nothing is.
    pub fn next_timeout(&self) -> Option<Time> {
        let peers = self.peers.values().flat_map(|p| {
            [
                p.session.next_timeout(),
                p.receiver.next_timeout(),
                p.next_report(),
            ]
            .into_iter()
            .flatten()
        });
        let up = self.topics.iter().filter(|t| self.is_up(t.peer));
        let topics = up.flat_map(|t| {
            let again = t.unacked.as_ref().and_then(|k| k.next_timeout());
            let parity = t.coder.as_ref().and_then(|c| c.next_timeout());
            let times = [
                t.announcer.next_timeout(),
                t.next_deadline(),
                again,
                parity,
                t.next_stall(),
            ];
            times.into_iter().flatten()
        });
        // Reliable messages outlast the absence of their peer, but not their expiry.
        let kept = self.topics.iter().filter(|t| t.unacked.is_some());
        let kept = kept.filter_map(|t| t.next_deadline());
        peers.chain(topics).chain(kept).chain(self.route_timeout()).min()
    }

    /// Advances time: expires messages, gives up partial ones, detects lost peers, and makes keep-alives and reports
    /// due. Early calls do no harm.
    pub fn handle_timeout(&mut self, now: Time, sink: &mut impl Sink) {
        let now = self.tick(now);
        self.follow_arrivals(now);
        self.expire_messages(now);
        self.send_again(now);
        self.route_tick(now);
        for id in self.peers.keys().copied().collect::<Vec<_>>() {
            self.tick_peer(now, id, sink);
        }
        for t in &mut self.topics {
            if let Some(p) = self.peers.get(&t.peer).filter(|p| p.session.is_up()) {
                t.announcer
                    .expire(now, p.config.max_datagram - sending::ANNOUNCE_HEAD);
            }
        }
    }

    fn tick_peer(&mut self, now: Time, id: PeerId, sink: &mut impl Sink) {
        let sent = self.sender_entries(now, id);
        let Some(p) = self.peers.get_mut(&id) else { return };
        p.receiver.expire(now, sink);
        p.report(now, &self.config, sent);
        if p.session.tick(now) {
            p.stats.lost += 1;
            self.lose(id, sink);
        }
    }

    fn sender_entries(&self, now: Time, id: PeerId) -> Vec<ReportEntry> {
        let due = self
            .peers
            .get(&id)
            .and_then(Peer::next_report)
            .is_some_and(|t| t <= now);
        let topics = self
            .topics
            .iter()
            .enumerate()
            .filter(|(_, t)| due && t.peer == id);
        let entry = |(i, t): (usize, &SendTopic<B>)| ReportEntry::Sender {
            topic: i as u32,
            account: t.account(),
        };
        topics.map(entry).collect()
    }

    fn expire_messages(&mut self, now: Time) {
        let air_free = self.air.ends(now, Duration::ZERO);
        let mut bytes = 0;
        for t in &mut self.topics {
            let Some(p) = self.peers.get(&t.peer) else {
                continue;
            };
            let (max, hops, model) = (p.config.max_datagram, t.hops(p.config.hops), p.airtime);
            let air = |n: usize| model.airtime(n, hops);
            bytes += t.expire(now, |rest| {
                let full = u32::try_from(rest / max).unwrap_or(u32::MAX);
                air_free + air(max).saturating_mul(full) + air(rest % max)
            });
        }
        self.released(bytes);
    }

    /// Marks messages for retransmission that were not acknowledged in time, and parity that has waited long enough.
    fn send_again(&mut self, now: Time) {
        for t in &mut self.topics {
            let Some(peer) = self.peers.get(&t.peer).filter(|p| p.session.is_up()) else {
                continue;
            };
            let rested = !t.is_backlogged();
            if let Some(unacked) = &mut t.unacked {
                unacked.tick(now, peer.way.timing());
            }
            if let Some(coder) = &mut t.coder {
                coder.tick(now);
            }
            if rested && t.is_backlogged() {
                self.scheduler.wake(t);
            }
        }
    }

    /// Returns the outcome of a message of a reliable topic; call until it returns `None`. At most 1024 outcomes of
    /// each topic are kept, then the oldest are dropped; the counters are complete in any case.
    pub fn next_outcome(&mut self) -> Option<Outcome> {
        let topics = self.topics.iter_mut().enumerate();
        topics.into_iter().find_map(|(i, t)| {
            let (stamp, origin, end) = t.outcomes.pop()?;
            Some(Outcome {
                topic: TopicId(i as u32),
                stamp,
                origin,
                end,
            })
        })
    }

    /// Ends the message of a reliable topic that was offered with this stamp, before the radio knows its outcome:
    /// nothing more of it is sent, and its body is released. Pass `Ok` if its source has learned elsewhere that it was
    /// delivered, otherwise the reason for giving it up. It is counted under that, and has no [`Outcome`]. Returns
    /// false if the radio does not hold it, or no longer does.
    pub fn end_message(
        &mut self,
        now: Time,
        topic: TopicId,
        stamp: Time,
        end: Result<(), stats::DropReason>,
    ) -> bool {
        self.tick(now);
        let topic = self.topics.get_mut(topic.0 as usize);
        let Some(bytes) = topic.and_then(|t| t.end_message(stamp, end)) else {
            return false;
        };
        self.released(bytes);
        true
    }

    /// Counters of an outgoing topic.
    pub fn topic_stats(&self, topic: TopicId) -> Option<TopicStats> {
        let t = self.topics.get(topic.0 as usize)?;
        let c = &t.counts;
        Some(TopicStats {
            peer: t.peer,
            name: t.config.name.clone(),
            via: t.config.via.clone(),
            priority: t.config.priority,
            depth: t.config.depth,
            deadline: t.config.deadline,
            max_rate: t.config.max_rate,
            every: t.config.every,
            min_share: t.config.min_share,
            state: match t.announcer.accepted() {
                _ if t.withdrawn => TopicState::Withdrawn,
                _ if !self.is_up(t.peer) => TopicState::NoPeer,
                None => TopicState::Announcing,
                Some(true) if t.demand.rests() => TopicState::Unwatched,
                Some(true) => TopicState::Ready,
                Some(false) => TopicState::Refused,
            },
            rested: t.demand.asks().then_some(c.rested),
            offered: c.offered,
            offered_bytes: c.offered_bytes,
            sent: c.sent,
            sent_bytes: c.sent_bytes,
            fragments: c.fragments,
            repeated_bytes: c.repeated_bytes,
            parity_bytes: c.parity_bytes,
            air: c.air,
            bulk: t.bulk_stats(),
            queued: t.held() as u64,
            drops: c.drops.clone(),
            begun: t.next_seq,
            begun_before: t.first_seq,
            abandoned: t.ledger.given_up(),
            account: t.account(),
            at_receiver: t.ledger.report().cloned(),
        })
    }

    /// Counters of all outgoing topics, in the order in which they were added.
    pub fn topics(&self) -> impl Iterator<Item = (TopicId, TopicStats)> + '_ {
        (0..self.topics.len() as u32)
            .map(TopicId)
            .filter_map(|id| Some((id, self.topic_stats(id)?)))
    }

    /// Counters of the topics that `peer` announced in its present session.
    pub fn remote_topics(&self, peer: PeerId) -> impl Iterator<Item = (RemoteTopic, RemoteTopicStats)> + '_ {
        self.peers.get(&peer).into_iter().flat_map(|p| {
            p.receiver.topics().map(|(id, t)| {
                let delay = p.share.delays(id.0);
                (id, RemoteTopicStats { delay, ..t })
            })
        })
    }

    /// Records that subscribers lost `lost` more of the messages of a peer's topic that were delivered here. They are
    /// counted as [`stats::DropReason::NotTaken`], which is reported to the peer.
    pub fn not_taken(&mut self, peer: PeerId, topic: RemoteTopic, lost: u64) {
        if let Some(p) = self.peers.get_mut(&peer) {
            p.receiver.not_taken(topic.0, lost);
        }
    }

    /// Counters of a peer.
    pub fn peer_stats(&self, peer: PeerId) -> Option<PeerStats> {
        self.peers
            .get(&peer)
            .map(|p| p.statistics(self.clock, &*self.policy))
    }

    /// Counters of the radio.
    pub fn stats(&self) -> RadioStats {
        RadioStats {
            claimants: self.air.others.table.claimants(self.clock) as u64,
            rhythms: self.air.others.table.rhythms() as u64,
            found_free: self.air.others.found_free(),
            yields_to: self
                .air
                .others
                .yielded(self.clock)
                .into_iter()
                .map(Into::into)
                .collect(),
            ..self.stats.clone()
        }
    }
}
