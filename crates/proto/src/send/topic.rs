//! One outgoing topic: what waits, what is partly sent, what was counted.

use super::announcer::Announcer;
use super::bulk::{self, Bulk, Cut};
use super::latch::Latch;
use super::parity::{AROUND, Coder};
use super::quota::Quota;
use super::reliable::{Keeper, Sent};
use super::rhythm::Rhythm;
use super::timing::Timing;
use crate::announcement::{Announcement, Reliability, WITHDRAWN};
use crate::body::{Body, Message};
use crate::config::{PeerId, TopicConfig};
use crate::fountain::{Encoder, Shape};
use crate::geometry::Geometry;
use crate::outcome::{End, Outcomes};
use crate::route::Route;
use crate::statistics::{BulkStats, ReceiverReport};
use crate::wire::{Acknowledgement, DataHead, Frame, ROUTE_ROOM};
use core::time::Duration;
use stats::{DropReason, Drops, Time};
use std::collections::VecDeque;

/// Up to so many bytes a message is short: a few fragments.
const SHORT: u64 = 4096;
/// Of a message that still comes, no fewer bytes are sent than this, but the last: a frame costs as much as many bytes.
const PIECE: u32 = 600;
/// A message of which nothing more comes for so long makes way for those that came since.
const STALL: Duration = Duration::from_millis(100);
/// While messages that go as symbols wait for the last word of their receiver the next may begin, if all together have no more
/// bytes: a receiver may have no room for two large ones.
const OVERLAP: u64 = 16 << 20;

/// A message that waits or is partly sent.
pub(crate) struct Pending<B> {
    pub(crate) message: Message<B>,
    pub(crate) geometry: Geometry,
    /// Order of arrival over all topics.
    pub(crate) arrival: u64,
    pub(crate) offered_at: Time,
    /// Hops of the same radio that it has still to go; 0: as many as the peer is away.
    pub(crate) hops: u32,
    /// How it is cut, if it goes as symbols.
    pub(crate) shape: Option<Shape>,
}

impl<B> Pending<B> {
    pub(crate) fn bytes(&self) -> u64 {
        self.geometry.total_len().into()
    }

    pub(crate) fn is_short(&self) -> bool {
        self.bytes() <= SHORT
    }
}

impl<B: Body> Pending<B> {
    /// How many bytes of it are there from its start; `None` if it will never be complete.
    fn ready(&self) -> Option<u32> {
        let total = self.geometry.total_len();
        match self.message.body.arriving() {
            None => Some(total),
            Some(a) => a.ready().map(|n| n.min(total)),
        }
    }

    /// Whether enough of it is there for the fragment from `at` on.
    fn is_ready(&self, at: u32) -> bool {
        let enough = |n: u32| n >= self.geometry.total_len() || n.saturating_sub(at) >= PIECE;
        self.ready().is_some_and(enough)
    }

    /// Whether some of it is not there.
    pub(crate) fn still_comes(&self) -> bool {
        self.ready().is_none_or(|n| n < self.geometry.total_len())
    }
}

/// The message of which fragments were sent already.
pub(crate) struct Sending<B> {
    pub(crate) pending: Pending<B>,
    pub(crate) seq: u64,
    /// Flat offset of the next fragment.
    pub(crate) at: u32,
}

#[derive(Debug, Default)]
pub(crate) struct OutCounts {
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

/// The datagram that a fragment goes into.
#[derive(Clone, Copy)]
pub(crate) struct When {
    pub(crate) now: Time,
    /// Its number.
    pub(crate) number: u64,
    /// When to send again to its peer.
    pub(crate) timing: Timing,
    /// The origin of the fragment that it has last, if it has one.
    pub(crate) origin: Option<u64>,
}

pub(crate) struct OutTopic<B> {
    pub(crate) peer: PeerId,
    pub(crate) config: TopicConfig,
    pub(crate) announcer: Announcer,
    /// Order of arrival of the announcement, as if it were a message.
    pub(crate) announced_order: u64,
    /// It was withdrawn; it may come back under its name.
    pub(crate) withdrawn: bool,
    pub(crate) waiting: VecDeque<Pending<B>>,
    pub(crate) sending: Option<Sending<B>>,
    /// Whether any message may still be coming, while it goes on.
    arriving: bool,
    /// Whether any message ever had its own time to end.
    has_timed: bool,
    /// Since when too little of the message that goes next is there.
    starved: Option<Time>,
    /// What was sent and waits for its acknowledgement, where the topic is reliable.
    pub(crate) keeper: Option<Keeper<B>>,
    /// Makes parity, where the topic is redundant.
    pub(crate) coder: Option<Coder>,
    pub(crate) outcomes: Outcomes,
    pub(crate) latch: Latch<B>,
    /// A message that was begun and given up, of which the receiver is to be told.
    pub(crate) cancelled: Option<u64>,
    pub(crate) next_seq: u64,
    /// Number of the first message in the peer's present session.
    pub(crate) first_seq: u64,
    /// Messages that got a number and were given up.
    pub(crate) abandoned: u64,
    /// Service that it has had, as start-time fair queueing counts it.
    pub(crate) served: u64,
    /// When the rate limit lets the next message pass.
    pub(crate) rate_next: Time,
    /// How many more messages decimation drops.
    pub(crate) skip: u32,
    pub(crate) rhythm: Rhythm,
    /// Its minimum share.
    pub(crate) quota: Quota,
    /// When the receiver is told next how old a message is.
    pub(crate) timing_at: Time,
    /// Length of the message that was offered last.
    pub(crate) last_bytes: usize,
    /// Hops of the radio that it had to go.
    pub(crate) last_hops: u32,
    pub(crate) counts: OutCounts,
    pub(crate) at_receiver: Option<ReceiverReport>,
}

impl<B: Body> OutTopic<B> {
    pub(crate) fn new(peer: PeerId, config: TopicConfig, announced_order: u64) -> Self {
        OutTopic {
            peer,
            announcer: Announcer::new(announcement(&config).encode(0)),
            keeper: config.reliability.keeps().then(Keeper::new),
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
            abandoned: 0,
            served: 0,
            rate_next: Time::ZERO,
            skip: 0,
            rhythm: Rhythm::default(),
            counts: OutCounts::default(),
            at_receiver: None,
        }
    }

    /// Its reliability may have changed, while nothing waited.
    pub(crate) fn keep_or_not(&mut self) {
        self.coder = (self.config.reliability == Reliability::Redundant)
            .then(|| self.coder.take().unwrap_or_default());
        if !self.config.reliability.keeps() {
            self.keeper = None;
        } else if self.keeper.is_none() {
            let mut keeper = Keeper::new();
            keeper.begin(self.next_seq);
            self.keeper = Some(keeper);
        }
    }

    /// Whether another configuration is of the same topic: the same name of the same source, for the same
    /// hosts.
    pub(crate) fn is_same_topic(&self, other: &TopicConfig) -> bool {
        let flow = |c: &TopicConfig| c.via.as_ref().map(|v| (v.source, v.first()));
        self.config.name == other.name && flow(&self.config) == flow(other)
    }

    /// Its announcement.
    pub(crate) fn encoded(&self) -> Vec<u8> {
        if self.withdrawn {
            return WITHDRAWN.to_vec();
        }
        announcement(&self.config).encode(self.floor())
    }

    /// Messages below this number are not sent any more.
    pub(crate) fn floor(&self) -> u64 {
        let kept = self.keeper.as_ref().and_then(|k| Some(k.oldest()?.seq));
        let sending = self.sending.as_ref().map(|s| s.seq);
        kept.or(sending).unwrap_or(self.next_seq)
    }

    /// The peer has a new session, and knows nothing of the topic.
    pub(crate) fn announce_to_new_session(&mut self) {
        self.cancelled = None;
        self.first_seq = self.next_seq;
        if let Some(keeper) = &mut self.keeper {
            keeper.begin(self.next_seq);
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

    /// Whether enough of the message that goes next is there.
    fn has_piece(&self) -> bool {
        let at = self.sending.as_ref().map_or(0, |s| s.at);
        self.head().is_some_and(|p| p.is_ready(at))
    }

    /// A message was offered last.
    pub(crate) fn took(&mut self) {
        self.arriving |= self.waiting.back().is_some_and(Pending::still_comes);
        self.has_timed |= self.waiting.back().is_some_and(|p| p.message.expires.is_some());
    }

    /// Follows messages that still come: gives up those that will never be complete, and one of which nothing comes while
    /// later ones are there. Gives their bytes, and whether the topic has something to send again.
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

    /// When the message that goes next makes way for later ones, if it has too little and they do not.
    pub(crate) fn next_stall(&self) -> Option<Time> {
        let since = self.starved.filter(|_| !self.has_piece())?;
        let later = self.waiting.iter().skip(usize::from(self.sending.is_none()));
        later.into_iter().any(|p| p.is_ready(0)).then(|| since + STALL)
    }

    /// The message that goes next, or of which something goes again.
    pub(crate) fn head(&self) -> Option<&Pending<B>> {
        let again = self.keeper.as_ref().and_then(|k| Some(&k.due()?.pending));
        let next = || {
            self.waiting.front().filter(|p| {
                self.keeper
                    .as_ref()
                    .is_none_or(|k| k.admits(self.next_seq) && may_begin(k, p))
            })
        };
        again
            .or_else(|| self.sending.as_ref().map(|s| &s.pending))
            .or_else(next)
    }

    /// How a message goes to a peer that takes datagrams of `max_datagram` bytes, if it goes as symbols.
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

    /// What goes next, if that is a symbol of a message that was begun.
    fn bulk(&self) -> Option<&Bulk> {
        self.keeper.as_ref()?.due()?.bulk.as_ref()
    }

    /// Most that the datagram of the next symbol takes, if that is what goes next.
    pub(crate) fn symbol_room(&self) -> Option<usize> {
        let begun = self.bulk().map(Bulk::shape);
        begun.or_else(|| self.head()?.shape.as_ref()).map(bulk::room)
    }

    /// Takes what a job computed; false if it was not for a message of this topic.
    pub(crate) fn encoded_by(&mut self, job: u64, encoder: &Encoder, timing: Timing) -> bool {
        let mut bulks = self.keeper.iter_mut().flat_map(Keeper::bulks_mut);
        let found = bulks.find(|(_, b)| b.awaits(job));
        found.map(|(_, b)| b.ready(encoder.clone(), timing)).is_some()
    }

    /// How far the oldest message is that goes as symbols.
    pub(crate) fn bulk_stats(&self) -> Option<BulkStats> {
        let (pending, bulk) = self.keeper.as_ref()?.bulks().next()?;
        let (symbols_sent, arrived) = bulk.progress();
        Some(BulkStats {
            bytes: pending.bytes(),
            symbols_sent,
            arrived,
        })
    }

    /// How many messages are here.
    pub(crate) fn held(&self) -> usize {
        let kept = self.keeper.as_ref().map_or(0, Keeper::len);
        self.waiting.len() + usize::from(self.sending.is_some()) + kept
    }

    /// The oldest message that may be dropped.
    pub(crate) fn oldest(&self) -> Option<&Pending<B>> {
        let kept = self.keeper.as_ref().and_then(|k| Some(&k.oldest()?.pending));
        let begun = self.keeper.as_ref().and(self.sending.as_ref());
        kept.or(begun.map(|s| &s.pending)).or(self.waiting.front())
    }

    pub(crate) fn deadline_of(&self, p: &Pending<B>) -> Time {
        let after = |d: Duration| p.offered_at + d;
        let expiry = self.keeper.as_ref().and(self.config.expiry).map(after);
        let expiry = self.own_expiry(p).or(expiry);
        let deadline = self.config.deadline.map(after);
        [deadline, expiry]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(Time::MAX)
    }

    /// When nobody waits for a message any more, if that was said of it.
    fn own_expiry(&self, p: &Pending<B>) -> Option<Time> {
        self.keeper.as_ref().and(p.message.expires)
    }

    /// Whether messages are worth sending for some time only, as far as the settings say.
    fn has_limit(&self) -> bool {
        self.config.deadline.is_some() || self.keeper.as_ref().and(self.config.expiry).is_some()
    }

    /// Messages that each have their own time to end.
    fn timed(&self) -> impl Iterator<Item = &Pending<B>> {
        // Most topics never have any, and are not looked through.
        let keeper = self.keeper.iter().filter(|_| self.has_timed);
        let all = keeper.flat_map(|k| {
            let sending = self.sending.iter().map(|s| &s.pending);
            k.all().chain(sending).chain(&self.waiting)
        });
        all.filter(|p| p.message.expires.is_some())
    }

    /// For how many ms more somebody waits for the message that goes next, where the topic is reliable; at least 1.
    pub(crate) fn left_ms(&self, now: Time) -> Option<u32> {
        let until = self.deadline_of(self.keeper.as_ref().and(self.head())?);
        let left = u32::try_from(until.since(now).as_millis()).unwrap_or(u32::MAX);
        (until < Time::MAX).then_some(left.max(1))
    }

    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let own = self.timed().map(|p| self.deadline_of(p)).min();
        if !self.has_limit() {
            return own;
        }
        let sending = self.sending.iter().map(|s| &s.pending);
        let kept = self.oldest().into_iter();
        let all = sending.chain(&self.waiting).chain(kept);
        all.map(|p| self.deadline_of(p)).chain(own).min()
    }

    /// Whether decimation and the rate limit let a message pass at `now`, which is counted.
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

    /// Whether a message that comes at `now` would pass. A source that jitters by up to half a period keeps
    /// its rate.
    pub(crate) fn would_pass(&self, now: Time) -> bool {
        self.skip == 0 && self.period().is_none_or(|p| now + p / 2 >= self.rate_next)
    }

    fn period(&self) -> Option<Duration> {
        let hz = self.config.max_rate?;
        Some(Duration::from_secs_f64((1.0 / hz).min(1e6)))
    }

    /// Appends a fragment of the message that goes next to a datagram that may grow to `max` bytes. If that
    /// was its last, gives the bytes that wait no more.
    pub(crate) fn put_fragment(
        &mut self,
        id: u32,
        max: usize,
        out: &mut Vec<u8>,
        when: &mut When,
    ) -> Option<u64> {
        if self.keeper.as_ref().is_some_and(|k| k.due().is_some()) {
            return self.put_again(id, max, out, when);
        }
        if let Some(coder) = &mut self.coder
            && (coder.presses() || self.sending.is_none() && self.waiting.is_empty())
        {
            self.counts.parity_bytes += coder.put(when.now, id, max, out) as u64;
            return None;
        }
        if self.sending.is_none() {
            let pending = self.waiting.pop_front()?;
            if let (Some(shape), Some(keeper)) = (pending.shape, &mut self.keeper) {
                keeper.begin_bulk(pending, self.next_seq, Bulk::new(shape));
                self.next_seq += 1;
                return self.put_again(id, max, out, when);
            }
            self.sending = Some(Sending {
                pending,
                seq: self.next_seq,
                at: 0,
            });
            self.next_seq += 1;
        }
        let s = self.sending.as_mut()?;
        let total = s.pending.geometry.total_len();
        let (from, ready) = (s.at, s.pending.ready()?);
        let (name, asks) = ((id, s.seq), self.keeper.is_some());
        s.at += match &mut self.coder {
            None => put_piece(&s.pending, name, (from, ready), asks, max, out, &mut when.origin),
            Some(coder) => {
                let mut frame = Vec::new();
                let room = max.saturating_sub(out.len() + AROUND);
                let n = put_piece(&s.pending, name, (from, total), asks, room, &mut frame, &mut None);
                let source = Frame::Source {
                    topic: id,
                    id: coder.next_id(),
                    bytes: &frame,
                };
                source.encode(out);
                let share = self.config.redundancy.unwrap_or(when.timing.redundancy);
                coder.sent(when.now, &frame, share);
                n
            }
        };
        self.counts.fragments += 1;
        if s.at < total {
            return None;
        }
        let s = self.sending.take()?;
        if let Some(keeper) = &mut self.keeper {
            let sent = Sent {
                number: when.number,
                from,
                to: total,
            };
            keeper.keep(when.now, when.timing, s.pending, s.seq, sent);
            return Some(0);
        }
        self.counts.sent += 1;
        self.counts.sent_bytes += s.pending.bytes();
        Some(s.pending.bytes())
    }

    /// Whether nothing of it is sent again or computed from others, so that it may be cut as it comes.
    pub(crate) fn is_best_effort(&self) -> bool {
        self.keeper.is_none() && self.coder.is_none()
    }

    /// Whether what goes next is the first fragment of a message.
    pub(crate) fn begins_anew(&self) -> bool {
        let repeats = self.keeper.as_ref().is_some_and(|k| k.due().is_some());
        self.coder.is_none() && !repeats && self.sending.is_none() && !self.waiting.is_empty()
    }

    /// Appends a fragment that was sent before.
    fn put_again(&mut self, id: u32, max: usize, out: &mut Vec<u8>, when: &mut When) -> Option<u64> {
        let kept = self.keeper.as_mut()?.due_mut()?;
        if let Some(bulk) = &mut kept.bulk {
            let mark = out.len();
            self.counts.parity_bytes += bulk.put(&kept.pending, (id, kept.seq), max, out, *when);
            self.counts.fragments += u64::from(out.len() > mark);
            if !bulk.is_due() {
                kept.sent(
                    when.now,
                    when.timing,
                    Sent {
                        number: when.number,
                        from: 0,
                        to: 0,
                    },
                );
            }
            return None;
        }
        let (from, to) = *kept.due.front()?;
        let last = kept.due.len() == 1;
        let n = put_piece(
            &kept.pending,
            (id, kept.seq),
            (from, to),
            last,
            max,
            out,
            &mut when.origin,
        );
        self.counts.fragments += 1;
        self.counts.repeated_bytes += u64::from(n);
        if n < to - from {
            kept.due.front_mut()?.0 += n;
            kept.sent_some(when.number);
            return None;
        }
        kept.due.pop_front();
        if last {
            let sent = Sent {
                number: when.number,
                from,
                to,
            };
            kept.sent(when.now, when.timing, sent);
        } else {
            kept.sent_some(when.number);
        }
        Some(0)
    }

    /// Takes an acknowledgement. Gives the bytes that need not be kept any more.
    pub(crate) fn acknowledged(&mut self, now: Time, a: &Acknowledgement, timing: Timing) -> u64 {
        let floor = self.sending.as_ref().map_or(self.next_seq, |s| s.seq);
        let Some(keeper) = &mut self.keeper else { return 0 };
        let mut bytes = 0;
        for s in keeper.acknowledged(now, a, floor, timing) {
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

    /// The peer was lost, and may come back as the same session. Gives the bytes that are not kept for it.
    pub(crate) fn pause(&mut self) -> u64 {
        let Some(keeper) = &mut self.keeper else {
            return self.clear(DropReason::PeerLost);
        };
        keeper.start_over(self.sending.take().map(|s| (s.pending, s.seq)));
        0
    }

    /// Bytes that wait or are partly sent, without what was sent of them, or has not come.
    pub(crate) fn bytes_left(&self) -> u64 {
        let there = |p: &Pending<B>, at: u32| u64::from(p.ready().unwrap_or(0).saturating_sub(at));
        let sending = self.sending.as_ref().map_or(0, |s| there(&s.pending, s.at));
        let bulks = self.keeper.iter().flat_map(Keeper::bulks);
        let due = bulks.filter(|(_, b)| b.is_due()).map(|(_, b)| b.bytes_needed());
        sending + self.waiting.iter().map(|p| there(p, 0)).sum::<u64>() + due.sum::<u64>()
    }

    /// Number of the message that goes next, and when it was offered.
    pub(crate) fn next_message(&self) -> Option<(u64, Time)> {
        let seq = self.sending.as_ref().map_or(self.next_seq, |s| s.seq);
        Some((seq, self.head()?.offered_at))
    }

    /// Most that the head of the next fragment takes.
    pub(crate) fn head_room(&self) -> usize {
        // A symbol cannot be cut.
        if let Some(room) = self.symbol_room() {
            return room;
        }
        match &self.coder {
            None => self
                .head()
                .map_or(0, |p| DataHead::room(&p.geometry) + Self::route_room(p)),
            Some(coder) => {
                let fresh = self
                    .head()
                    .map_or(0, |p| DataHead::room(&p.geometry) + Self::route_room(p) + AROUND);
                fresh.max(if self.puts_parity() {
                    coder.frame_length()
                } else {
                    0
                })
            }
        }
    }

    fn route_room(p: &Pending<B>) -> usize {
        if p.message.route.is_some() { ROUTE_ROOM } else { 0 }
    }

    /// How the message that goes next goes on.
    pub(crate) fn route(&self) -> Option<Route> {
        if self.bulk().is_some_and(|b| !b.describes()) {
            return None;
        }
        self.head()?.message.route
    }

    /// Over how many hops of the radio it goes, where its peer is `hops` away.
    pub(crate) fn hops(&self, hops: u32) -> u32 {
        self.head().map_or(hops, |p| p.hops.max(hops))
    }

    /// Bytes that the rest of the next message takes at most in a datagram, with its head.
    pub(crate) fn rest_with_head(&self) -> usize {
        if let Some(room) = self.symbol_room() {
            return room;
        }
        if let Some(coder) = self.coder.as_ref().filter(|_| self.puts_parity()) {
            return coder.frame_length();
        }
        let around = if self.coder.is_some() { AROUND } else { 0 };
        let again = self.keeper.as_ref().and_then(|k| k.due()?.due.front());
        let at = self.sending.as_ref().map_or(0, |s| s.at);
        self.head().map_or(0, |p| {
            let rest = again.map_or(p.geometry.total_len() - at, |(from, to)| to - from);
            DataHead::room(&p.geometry) + Self::route_room(p) + rest as usize + around
        })
    }

    /// Whether parity goes next.
    fn puts_parity(&self) -> bool {
        let parity = |c: &Coder| c.presses() || c.is_due() && self.head().is_none();
        self.coder.as_ref().is_some_and(parity)
    }

    /// Drops the oldest message that may be dropped. Gives its bytes.
    pub(crate) fn drop_oldest(&mut self, reason: DropReason) -> u64 {
        if let Some(keeper) = &mut self.keeper {
            if let Some(p) = keeper.give_up_oldest() {
                self.abandoned += 1;
                return self.dropped(&p, reason);
            } else if self.sending.is_some() {
                return self.drop_sending(reason);
            }
        }
        match self.waiting.pop_front() {
            Some(p) => self.dropped(&p, reason),
            None => 0,
        }
    }

    fn dropped(&mut self, p: &Pending<B>, reason: DropReason) -> u64 {
        self.counts.drops.add(reason, 1);
        if self.keeper.is_some() {
            let (stamp, origin) = (p.message.stamp, p.message.origin);
            self.outcomes.push(stamp, origin, End::Lost(reason));
        }
        p.bytes()
    }

    /// Drops the message that is partly sent. Gives its bytes.
    pub(crate) fn drop_sending(&mut self, reason: DropReason) -> u64 {
        let Some(s) = self.sending.take() else { return 0 };
        self.abandoned += 1;
        match &mut self.keeper {
            Some(keeper) => keeper.gave_up(s.seq),
            None => self.cancelled = Some(s.seq),
        }
        self.dropped(&s.pending, reason)
    }

    /// Gives back the messages that were not begun and are for hosts in `others` alone, and gives up one that was. Gives
    /// their bytes, too.
    pub(crate) fn take_back(&mut self, others: u64) -> (u64, Vec<Message<B>>) {
        let leaves = |p: &Pending<B>| p.message.route.is_some_and(|r| r.to & !others == 0);
        let (mut bytes, mut taken) = (0, Vec::new());
        if self.sending.as_ref().is_some_and(|s| leaves(&s.pending)) {
            bytes += self.drop_sending(DropReason::OtherWay);
        }
        while let Some(at) = self.waiting.iter().position(leaves)
            && let Some(p) = self.waiting.remove(at)
        {
            bytes += self.dropped(&p, DropReason::OtherWay);
            taken.push(p.message);
        }
        (bytes, taken)
    }

    /// Ends the message that has this stamp, if it is here and the topic is reliable. Gives the bytes.
    pub(crate) fn end_message(&mut self, stamp: Time, end: Result<(), DropReason>) -> Option<u64> {
        let keeper = self.keeper.as_mut()?;
        let is_it = |p: &Pending<B>| p.message.stamp == stamp;
        let (pending, seq) = if let Some(kept) = keeper.remove(stamp) {
            (kept.pending, Some(kept.seq))
        } else if let Some(s) = self.sending.take_if(|s| is_it(&s.pending)) {
            // Delivered or not, the rest of it never comes.
            keeper.gave_up(s.seq);
            (s.pending, Some(s.seq))
        } else {
            let at = self.waiting.iter().position(is_it)?;
            (self.waiting.remove(at)?, None)
        };
        match (end, seq) {
            // What was delivered needs no word more: its receiver has settled it.
            (Ok(()), Some(_)) => {
                self.counts.sent += 1;
                self.counts.sent_bytes += pending.bytes();
            }
            // It came by another way.
            (Ok(()), None) => self.counts.drops.add(DropReason::Duplicate, 1),
            (Err(reason), seq) => {
                self.counts.drops.add(reason, 1);
                if let Some(seq) = seq {
                    self.abandoned += 1;
                    keeper.gave_up(seq);
                }
            }
        }
        Some(pending.bytes())
    }

    /// Drops everything. Gives the bytes.
    pub(crate) fn clear(&mut self, reason: DropReason) -> u64 {
        let mut bytes = 0;
        while self.oldest().is_some() {
            bytes += self.drop_oldest(reason);
        }
        bytes + self.drop_sending(reason)
    }

    /// Drops what cannot be wholly sent by its deadline, before it costs (more) airtime: `done` tells when
    /// so many bytes, with their heads, would be through if they went now. What is reliable is dropped when
    /// it expires. Gives the bytes.
    pub(crate) fn expire(&mut self, now: Time, done: impl Fn(usize) -> Time) -> u64 {
        let mut bytes = 0;
        let over: Vec<(Time, u64)> = (self.timed())
            .filter(|p| self.deadline_of(p) <= now)
            .map(|p| (p.message.stamp, p.message.origin))
            .collect();
        for (stamp, origin) in over {
            let reason = DropReason::Expired;
            if let Some(freed) = self.end_message(stamp, Err(reason)) {
                self.outcomes.push(stamp, origin, End::Lost(reason));
                bytes += freed;
            }
        }
        if !self.has_limit() {
            return bytes;
        }
        if self.keeper.is_some() {
            while self.oldest().is_some_and(|p| self.deadline_of(p) <= now) {
                bytes += self.drop_oldest(DropReason::Expired);
            }
        }
        // What is latched goes ahead of what came before it was offered again, and ends later.
        if self.config.latched {
            if (self.sending.as_ref()).is_some_and(|s| self.deadline_of(&s.pending) <= now) {
                bytes += self.drop_sending(DropReason::Expired);
            }
            while let Some(at) = self.waiting.iter().position(|p| self.deadline_of(p) <= now)
                && let Some(p) = self.waiting.remove(at)
            {
                bytes += self.dropped(&p, DropReason::Expired);
            }
        }
        if self.keeper.is_some() {
            return bytes;
        }
        let late = |t: &Self| {
            t.head()
                .is_some_and(|p| t.deadline_of(p) < done(t.rest_with_head()))
        };
        while late(self) {
            bytes += match self.sending {
                Some(_) => self.drop_sending(DropReason::Expired),
                None => self.drop_oldest(DropReason::Expired),
            };
        }
        bytes
    }

    /// Keeps the newest messages only. Gives the bytes of the others.
    pub(crate) fn keep_last(&mut self) -> u64 {
        let reason = match self.announcer.accepted() {
            Some(_) => DropReason::Replaced,
            None => DropReason::Unannounced,
        };
        let waits = |t: &Self| match t.keeper {
            Some(_) => t.held(),
            None => t.waiting.len(),
        };
        let mut bytes = 0;
        while waits(self) > self.config.depth as usize {
            bytes += self.drop_oldest(reason);
        }
        bytes
    }
}

/// Whether a message may begin beside those that are kept.
fn may_begin<B: Body>(keeper: &Keeper<B>, next: &Pending<B>) -> bool {
    let begun: u64 = keeper.bulks().map(|(p, _)| p.bytes()).sum();
    next.shape.is_none() || begun == 0 || begun + next.bytes() <= OVERLAP
}

/// Appends bytes of a message, no further than `to`, to a datagram that may grow to `max` bytes, and gives
/// how many. If they are the last, the fragment `asks` for an acknowledgement. `before` is the origin of the fragment before it there.
fn put_piece<B: Body>(
    pending: &Pending<B>,
    (topic, seq): (u32, u64),
    (from, to): (u32, u32),
    asks: bool,
    max: usize,
    out: &mut Vec<u8>,
    before: &mut Option<u64>,
) -> u32 {
    let (message, geometry) = (&pending.message, pending.geometry);
    let (stamp, origin) = (message.stamp, message.origin);
    let head = DataHead {
        topic,
        seq,
        stamp,
        origin,
        offset: from,
        geometry,
        poll: false,
    };
    let left = to - from;
    let room = max.saturating_sub(out.len());
    // Another frame may follow only one that tells its length.
    let ends = DataHead::room(&geometry).saturating_add(left as usize) <= room;
    let mark = out.len();
    head.encode(out, ends.then_some(left), before.replace(origin));
    // Fragments go by byte offset, so a prediction of the next urgent message may cut this one short.
    let n = left.min(u32::try_from(max.saturating_sub(out.len())).unwrap_or(u32::MAX));
    debug_assert!(n > 0 || left == 0, "a fragment of nothing");
    let start = out.len();
    out.resize(start + n as usize, 0);
    message.body.copy_at(from, &mut out[start..]);
    if asks && n == left {
        DataHead::ask(&mut out[mark..]);
    }
    n
}

fn announcement(c: &TopicConfig) -> Announcement {
    Announcement {
        name: c.name.clone(),
        type_name: c.type_name.clone(),
        type_hash: c.type_hash,
        definition: c.definition.clone(),
        priority: c.priority,
        depth: c.depth,
        reliability: c.reliability,
        ordering: c.ordering,
        latched: c.latched,
        via: c.via.clone(),
    }
}
