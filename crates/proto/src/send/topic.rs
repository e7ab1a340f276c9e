//! One outgoing topic: messages that wait or are partly sent, and the counters.

mod dropping;
mod fragments;
mod pending;

pub(crate) use pending::{Pending, Sending};

use super::announcer::Announcer;
use super::bulk::{self, Bulk, Cut};
use super::demand::Demand;
use super::latch::Latch;
use super::ledger::Ledger;
use super::parity::Coder;
use super::quota::Quota;
use super::reliable::RetransmitBuffer;
use super::rhythm::Rhythm;
use super::timing::Timing;
use crate::announcement::{Announcement, Reliability, WITHDRAWN};
use crate::body::Body;
use crate::config::{PeerId, TopicConfig};
use crate::fountain::{Encoder, Shape};
use crate::geometry::Geometry;
use crate::outcome::{End, Outcomes};
use crate::route::Route;
use crate::statistics::{Account, BulkStats};
use crate::wire::Acknowledgement;
use core::time::Duration;
use stats::{DropReason, Drops, Time};
use std::collections::VecDeque;

/// A message that receives nothing more for this long makes way for newer ones.
const STALL: Duration = Duration::from_millis(100);
/// While messages sent as symbols wait for their receiver's final report, the next may begin if all together are no
/// larger than this: a receiver may have no room for two large ones.
const OVERLAP: u64 = 16 << 20;

#[derive(Debug, Default)]
pub(crate) struct SendCounts {
    pub(crate) rested: u64,
    pub(crate) offered: u64,
    pub(crate) offered_bytes: u64,
    pub(crate) sent: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) fragments: u64,
    pub(crate) repeated_bytes: u64,
    pub(crate) parity_bytes: u64,
    pub(crate) air: Duration,
    pub(crate) drops: Drops,
}

/// The datagram that a fragment is put into.
#[derive(Clone, Copy)]
pub(crate) struct When {
    pub(crate) now: Time,
    /// Its number.
    pub(crate) number: u64,
    /// When to retransmit to its peer.
    pub(crate) timing: Timing,
    /// The origin of the last fragment in it, if any.
    pub(crate) origin: Option<u64>,
}

pub(crate) struct SendTopic<B> {
    pub(crate) peer: PeerId,
    pub(crate) config: TopicConfig,
    pub(crate) announcer: Announcer,
    /// Order of arrival of the announcement, as if it were a message.
    pub(crate) announced_order: u64,
    /// Whether it was withdrawn; it may come back under its name.
    pub(crate) withdrawn: bool,
    pub(crate) waiting: VecDeque<Pending<B>>,
    pub(crate) sending: Option<Sending<B>>,
    /// Whether any message may still be arriving while it is forwarded.
    arriving: bool,
    /// Whether any message ever had an expiry of its own.
    has_timed: bool,
    /// Since when too little of the next message has arrived.
    starved: Option<Time>,
    /// Messages sent that wait for their acknowledgement, on a reliable topic.
    pub(crate) unacked: Option<RetransmitBuffer<B>>,
    /// Makes parity, on a redundant topic.
    pub(crate) coder: Option<Coder>,
    pub(crate) outcomes: Outcomes,
    pub(crate) latch: Latch<B>,
    pub(crate) demand: Demand,
    /// A message that was begun and given up, of which the receiver has to be notified.
    pub(crate) cancelled: Option<u64>,
    pub(crate) next_seq: u64,
    /// Number of the first message in the peer's present session.
    pub(crate) first_seq: u64,
    /// Outcomes of numbered messages.
    pub(crate) ledger: Ledger,
    /// Service that it has received, as start-time fair queueing counts it.
    pub(crate) served: u64,
    /// When the rate limit lets the next message pass.
    pub(crate) rate_next: Time,
    /// Number of further messages that decimation drops.
    pub(crate) skip: u32,
    pub(crate) rhythm: Rhythm,
    /// Its minimum share.
    pub(crate) quota: Quota,
    /// When the receiver next receives the age of a message.
    pub(crate) timing_at: Time,
    /// Length of the message offered last.
    pub(crate) last_bytes: usize,
    /// Radio hops that it had to go.
    pub(crate) last_hops: u32,
    pub(crate) counts: SendCounts,
}

impl<B: Body> SendTopic<B> {
    /// `states_watched`: the peer states which topics are watched there.
    pub(crate) fn new(peer: PeerId, config: TopicConfig, announced_order: u64, states_watched: bool) -> Self {
        let demand = demand(&config, states_watched);
        SendTopic {
            peer,
            announcer: Announcer::new(announcement(&config, &demand).encode(0)),
            demand,
            unacked: config.reliability.keeps().then(RetransmitBuffer::new),
            coder: (config.reliability == Reliability::Redundant).then(Coder::default),
            outcomes: Outcomes::default(),
            has_timed: false,
            latch: Latch::default(),
            quota: Quota::new(config.min_share),
            timing_at: Time::ZERO,
            last_bytes: 0,
            last_hops: 1,
            config,
            announced_order,
            withdrawn: false,
            waiting: VecDeque::new(),
            sending: None,
            arriving: false,
            starved: None,
            cancelled: None,
            next_seq: 0,
            first_seq: 0,
            ledger: Ledger::default(),
            served: 0,
            rate_next: Time::ZERO,
            skip: 0,
            rhythm: Rhythm::default(),
            counts: SendCounts::default(),
        }
    }

    /// Outcomes of its messages, at both ends.
    pub(crate) fn account(&self) -> Account {
        self.ledger.account(self.counts.offered, &self.counts.drops)
    }

    /// The receiver lost its record of the topic although our session continues.
    pub(crate) fn restart_announcement(&mut self) {
        self.ledger.ends_session(self.floor());
        self.demand = Demand::new(self.demand.asks());
        let bytes = self.encoded();
        self.announcer.restart(bytes);
    }

    /// Updates the state for a changed reliability, while nothing waits.
    pub(crate) fn keep_or_not(&mut self) {
        self.coder = (self.config.reliability == Reliability::Redundant)
            .then(|| self.coder.take().unwrap_or_default());
        if !self.config.reliability.keeps() {
            self.unacked = None;
        } else if self.unacked.is_none() {
            let mut unacked = RetransmitBuffer::new();
            unacked.begin(self.next_seq);
            self.unacked = Some(unacked);
        }
    }

    /// Whether another configuration describes the same topic: the same name of the same source, for the same hosts.
    pub(crate) fn is_same_topic(&self, other: &TopicConfig) -> bool {
        let flow = |c: &TopicConfig| c.via.as_ref().map(|v| (v.source, v.first()));
        self.config.name == other.name && flow(&self.config) == flow(other)
    }

    /// Its announcement.
    pub(crate) fn encoded(&self) -> Vec<u8> {
        if self.withdrawn {
            return WITHDRAWN.to_vec();
        }
        announcement(&self.config, &self.demand).encode(self.floor())
    }

    /// Messages below this number are no longer sent.
    pub(crate) fn floor(&self) -> u64 {
        let kept = self.unacked.as_ref().and_then(|k| Some(k.oldest()?.seq));
        let sending = self.sending.as_ref().map(|s| s.seq);
        kept.or(sending).unwrap_or(self.next_seq)
    }

    /// The receiver has stated nothing yet.
    pub(crate) fn renew_demand(&mut self, states_watched: bool) {
        self.demand = demand(&self.config, states_watched);
    }

    /// The peer has a new session and knows nothing about the topic. `states_watched` as in [`SendTopic::new`].
    pub(crate) fn announce_to_new_session(&mut self, states_watched: bool) {
        self.renew_demand(states_watched);
        self.cancelled = None;
        self.first_seq = self.next_seq;
        self.ledger.ends_session(self.next_seq);
        if let Some(unacked) = &mut self.unacked {
            unacked.begin(self.next_seq);
        }
        if let Some(coder) = &mut self.coder {
            coder.clear();
        }
        if self.withdrawn {
            self.announcer.keep_silent();
        } else {
            let bytes = self.encoded();
            self.announcer.restart(bytes);
        }
    }

    /// Whether there is something to send.
    pub(crate) fn is_backlogged(&self) -> bool {
        self.has_piece() || self.coder.as_ref().is_some_and(Coder::is_due)
    }

    /// Whether enough of the next message has arrived.
    fn has_piece(&self) -> bool {
        let at = self.sending.as_ref().map_or(0, |s| s.at);
        self.head().is_some_and(|p| p.is_ready(at))
    }

    /// Notes properties of the message offered last.
    pub(crate) fn took(&mut self) {
        self.arriving |= self.waiting.back().is_some_and(Pending::still_comes);
        self.has_timed |= self.waiting.back().is_some_and(|p| p.message.expires.is_some());
    }

    /// Follows messages that are still arriving: gives up those that will never be complete, and one that stalls while
    /// later ones are there. Returns their bytes, and whether the topic has something to send again.
    pub(crate) fn follow_arrivals(&mut self, now: Time) -> (u64, bool) {
        if !self.arriving {
            return (0, false);
        }
        let mut bytes = 0;
        if self.sending.as_ref().is_some_and(|s| s.pending.ready().is_none()) {
            bytes += self.drop_sending(DropReason::Incomplete);
        }
        while let Some(at) = self.waiting.iter().position(|p| p.ready().is_none())
            && let Some(p) = self.waiting.remove(at)
        {
            bytes += self.dropped(&p, DropReason::Incomplete);
        }
        if self.next_stall().is_some_and(|t| t <= now) {
            bytes += match self.sending {
                Some(_) => self.drop_sending(DropReason::Incomplete),
                None => self.drop_oldest(DropReason::Incomplete),
            };
            self.starved = None;
        }
        let starves = self.head().is_some() && !self.has_piece();
        let wakes = self.starved.is_some() && !starves;
        self.starved = starves.then(|| self.starved.unwrap_or(now));
        let mut all = self.sending.iter().map(|s| &s.pending).chain(&self.waiting);
        self.arriving = all.any(Pending::still_comes);
        (bytes, wakes)
    }

    /// When the next message makes way for later ones, if too little of it has arrived but enough of them has.
    pub(crate) fn next_stall(&self) -> Option<Time> {
        let since = self.starved.filter(|_| !self.has_piece())?;
        let later = self.waiting.iter().skip(usize::from(self.sending.is_none()));
        later.into_iter().any(|p| p.is_ready(0)).then(|| since + STALL)
    }

    /// The next message, or one that is being retransmitted.
    pub(crate) fn head(&self) -> Option<&Pending<B>> {
        let again = self.unacked.as_ref().and_then(|k| Some(&k.due()?.pending));
        let next = || {
            self.waiting.front().filter(|p| {
                self.unacked
                    .as_ref()
                    .is_none_or(|k| k.admits(self.next_seq) && may_begin(k, p))
            })
        };
        again
            .or_else(|| self.sending.as_ref().map(|s| &s.pending))
            .or_else(next)
    }

    /// How a message is cut into symbols for a peer that takes datagrams of `max_datagram` bytes, if it is sent as
    /// symbols.
    pub(crate) fn cut(&self, geometry: &Geometry, max_datagram: usize) -> Result<Option<Shape>, DropReason> {
        if self.config.reliability != Reliability::Bulk {
            return Ok(None);
        }
        match Cut::new(geometry.total_len(), max_datagram) {
            Cut::Symbols(shape) => Ok(Some(shape)),
            Cut::Fragments => Ok(None),
            Cut::TooLarge => Err(DropReason::TooLarge),
        }
    }

    /// The symbols to send next, if the next datagram is a symbol of a message already begun.
    fn bulk(&self) -> Option<&Bulk> {
        self.unacked.as_ref()?.due()?.bulk.as_ref()
    }

    /// Most that the datagram of the next symbol takes, if the next datagram is a symbol.
    pub(crate) fn symbol_room(&self) -> Option<usize> {
        let begun = self.bulk().map(Bulk::shape);
        begun.or_else(|| self.head()?.shape.as_ref()).map(bulk::room)
    }

    /// Takes the result of a job; returns false if it was not for a message of this topic.
    pub(crate) fn encoded_by(&mut self, job: u64, encoder: &Encoder, timing: Timing) -> bool {
        let mut bulks = self.unacked.iter_mut().flat_map(RetransmitBuffer::bulks_mut);
        let found = bulks.find(|(_, b)| b.awaits(job));
        found.map(|(_, b)| b.ready(encoder.clone(), timing)).is_some()
    }

    /// Progress of the oldest message that is sent as symbols.
    pub(crate) fn bulk_stats(&self) -> Option<BulkStats> {
        let (pending, bulk) = self.unacked.as_ref()?.bulks().next()?;
        let (symbols_sent, arrived) = bulk.progress();
        Some(BulkStats {
            bytes: pending.bytes(),
            symbols_sent,
            arrived,
        })
    }

    /// Number of messages held.
    pub(crate) fn held(&self) -> usize {
        let kept = self.unacked.as_ref().map_or(0, RetransmitBuffer::len);
        self.waiting.len() + usize::from(self.sending.is_some()) + kept
    }

    /// Whether decimation and the rate limit let a message pass at `now`; counts the message.
    pub(crate) fn passes_rate(&mut self, now: Time) -> bool {
        if let Some(rest) = self.skip.checked_sub(1) {
            self.skip = rest;
            return false;
        }
        let passes = self.would_pass(now);
        self.skip = self.config.every.saturating_sub(1);
        if let Some(period) = self.period().filter(|_| passes) {
            self.rate_next = self.rate_next.max(now) + period;
        }
        passes
    }

    /// Whether a message that arrives at `now` would pass. A source that jitters by up to half a period keeps its rate.
    pub(crate) fn would_pass(&self, now: Time) -> bool {
        self.skip == 0 && self.period().is_none_or(|p| now + p / 2 >= self.rate_next)
    }

    fn period(&self) -> Option<Duration> {
        let hz = self.config.max_rate?;
        Some(Duration::from_secs_f64((1.0 / hz).min(1e6)))
    }

    /// Takes an acknowledgement. Returns the bytes that need not be kept any longer.
    pub(crate) fn acknowledged(&mut self, now: Time, a: &Acknowledgement, timing: Timing) -> u64 {
        let floor = self.sending.as_ref().map_or(self.next_seq, |s| s.seq);
        let Some(unacked) = &mut self.unacked else {
            return 0;
        };
        let mut bytes = 0;
        for s in unacked.acknowledged(now, a, floor, timing) {
            let (message, length) = (&s.pending.message, s.pending.bytes());
            bytes += length;
            self.counts.sent += 1;
            self.counts.sent_bytes += length;
            let end = match s.refused {
                Some(reason) => End::Lost(reason),
                None => End::Delivered(now.since(s.pending.offered_at)),
            };
            self.outcomes.push(message.stamp, message.origin, end);
        }
        bytes
    }

    /// The peer was lost, and may come back with the same session. Returns the bytes that are not kept for it.
    pub(crate) fn pause(&mut self) -> u64 {
        let Some(unacked) = &mut self.unacked else {
            return self.clear(DropReason::PeerLost);
        };
        unacked.start_over(self.sending.take().map(|s| (s.pending, s.seq)));
        0
    }

    /// Bytes that wait or are partly sent, without those already sent or still to arrive.
    pub(crate) fn bytes_left(&self) -> u64 {
        let there = |p: &Pending<B>, at: u32| u64::from(p.ready().unwrap_or(0).saturating_sub(at));
        let sending = self.sending.as_ref().map_or(0, |s| there(&s.pending, s.at));
        let bulks = self.unacked.iter().flat_map(RetransmitBuffer::bulks);
        let due = bulks.filter(|(_, b)| b.is_due()).map(|(_, b)| b.bytes_needed());
        sending + self.waiting.iter().map(|p| there(p, 0)).sum::<u64>() + due.sum::<u64>()
    }

    /// Number of the next message, and when it was offered.
    pub(crate) fn next_message(&self) -> Option<(u64, Time)> {
        let seq = self.sending.as_ref().map_or(self.next_seq, |s| s.seq);
        Some((seq, self.head()?.offered_at))
    }

    /// Route of the next message.
    pub(crate) fn route(&self) -> Option<Route> {
        if self.bulk().is_some_and(|b| !b.describes()) {
            return None;
        }
        self.head()?.message.route
    }

    /// Number of radio hops that it goes, where its peer is `hops` away.
    pub(crate) fn hops(&self, hops: u32) -> u32 {
        self.head().map_or(hops, |p| p.hops.max(hops))
    }
}

/// Whether a message may begin in addition to those that are kept.
fn may_begin<B: Body>(unacked: &RetransmitBuffer<B>, next: &Pending<B>) -> bool {
    let begun: u64 = unacked.bulks().map(|(p, _)| p.bytes()).sum();
    next.shape.is_none() || begun == 0 || begun + next.bytes() <= OVERLAP
}

/// The assumption about a topic's subscribers before its receiver has stated anything.
fn demand(c: &TopicConfig, states_watched: bool) -> Demand {
    Demand::new(c.when_watched && c.via.is_none() && states_watched)
}

fn announcement(c: &TopicConfig, demand: &Demand) -> Announcement {
    Announcement {
        name: c.name.clone(),
        type_name: c.type_name.clone(),
        type_hash: c.type_hash,
        flavour: c.flavour,
        definition: c.definition.clone(),
        priority: c.priority,
        depth: c.depth,
        reliability: c.reliability,
        offers_reliable: c.offers_reliable,
        ordering: c.ordering,
        latched: c.latched,
        // An older receiver would refuse the whole announcement.
        when_watched: demand.asks(),
        via: c.via.clone(),
    }
}
