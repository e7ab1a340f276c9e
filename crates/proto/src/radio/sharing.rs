//! Sharing a radio: what hosts announce to each other, and how they act on it.

use super::Radio;
use crate::body::{Body, Sink};
use crate::config::PeerId;
use crate::peer::{Peer, put};
use crate::policy::tuning::tuning;
use crate::policy::{Others, Whose};
use crate::send::SendTopic;
use crate::share::{Exchange, OWN_RHYTHMS, Speaker, id};
use crate::wire::{Beat, Claim, DataHead, Frame, Frames, MOST_ENTRIES, Sharing};
use core::time::Duration;
use stats::{DropReason, Time};

/// Interval at which topics without a deadline send the receiver the age of a message.
const TIMING_EVERY: Duration = Duration::from_millis(100);
/// Messages of one priority that are due within this time, in microseconds, are announced as one.
const AT_ONCE_US: u64 = 250;
/// Most bytes that a frame with a message's age takes.
pub(super) const TIMING: usize = 1 + 4 + 8 + 8 + 8;

impl<B: Body> Radio<B> {
    /// What this host waits for: the highest priority with more waiting than can be sent soon.
    fn own_claim(&self) -> Option<Claim> {
        let waits = |t: &&SendTopic<B>| t.is_backlogged() && t.announcer.accepted() == Some(true);
        let mut waiting: Vec<_> = self.topics.iter().filter(waits).collect();
        waiting.sort_by_key(|t| core::cmp::Reverse(t.config.priority));
        let mut air = Duration::ZERO;
        let mut claim = None;
        for t in waiting {
            let Some(p) = self.peers.get(&t.peer).filter(|p| p.session.is_up()) else {
                continue;
            };
            let max = p.config.max_datagram;
            let frame = p.airtime.airtime(max, p.config.hops);
            let frames = t.bytes_left().div_ceil(max as u64);
            air += frame.saturating_mul(u32::try_from(frames).unwrap_or(u32::MAX));
            if claim.is_none() && !frame.is_zero() && air > frame * tuning().soon {
                claim = Some(t.config.priority);
            }
        }
        Some(Claim {
            host: self.air.others.own,
            priority: claim?,
            demand_ms: u8::try_from(air.as_millis()).unwrap_or(u8::MAX),
            age_ms: 0,
        })
    }

    /// When this host's most important periodic messages are due, by its clock.
    fn own_rhythms(&self, now: Time) -> Vec<Beat> {
        let us = |d: Duration| u32::try_from(d.as_micros()).unwrap_or(u32::MAX);
        let beat = |t: &SendTopic<B>| {
            // The source of a forwarded message has announced it, with all its hops.
            let p = self
                .peers
                .get(&t.peer)
                .filter(|p| p.session.is_up() && !self.is_forwarded(t))?;
            let f = t.rhythm.next(now).filter(|_| t.config.priority > 0)?;
            let (max, bytes) = (p.config.max_datagram, t.last_bytes);
            let air = |n: usize| p.airtime.airtime(n, p.config.hops);
            let full = u32::try_from(bytes / max).ok()?;
            let spread = f.until.since(f.from) / 2;
            Some(Beat {
                host: self.air.others.own,
                priority: t.config.priority,
                at: (f.from + spread).as_nanos() / 1000,
                period: us(f.period),
                // Where it is forwarded, others would meet it at each hop.
                air: us((air(max).saturating_mul(full) + air(bytes % max)) * t.last_hops.max(1)),
                spread: us(spread),
                age_ms: 0,
            })
        };
        let mut all: Vec<Beat> = self.topics.iter().filter_map(beat).collect();
        // A topic to several peers yields one beat per peer, at the same time.
        all.sort_by_key(|b| (core::cmp::Reverse(b.priority), b.at));
        all.dedup_by(|b, before| b.priority == before.priority && b.at - before.at < AT_ONCE_US);
        all.truncate(OWN_RHYTHMS);
        all
    }

    /// Appends what `peer` needs to know to a datagram that is sent there anyway. `receipt`: the datagram has a
    /// receipt, which needs our clock reading. The datagram may grow to `most` bytes.
    pub(super) fn put_sharing(
        &mut self,
        now: Time,
        peer: PeerId,
        receipt: bool,
        most: usize,
        out: &mut Vec<u8>,
    ) {
        let Some(p) = self.peers.get(&peer).filter(|p| p.session.is_up()) else {
            return;
        };
        let (max, cooperates) = (most.min(p.config.max_datagram / 2), self.config.yields);
        let (claims_due, rhythms_due) = (now >= p.share.claims_at, now >= p.share.rhythms_at);
        let (mut claims, mut rhythms) = (Vec::new(), Vec::new());
        if cooperates && claims_due {
            claims.extend(self.own_claim());
            claims.extend(self.air.others.table.claims_for(now, peer));
        }
        if cooperates && rhythms_due {
            rhythms = self.own_rhythms(now);
            rhythms.extend(self.air.others.table.rhythms_for(now, peer));
            rhythms.truncate(MOST_ENTRIES);
        }
        let Some(p) = self.peers.get_mut(&peer) else {
            return;
        };
        if receipt || !rhythms.is_empty() {
            let clock = p.share.clock.offset(now).map(|o| {
                let us = |d: Duration| u64::try_from(d.as_micros()).unwrap_or(u64::MAX);
                (o.ahead_ns / 1000, us(o.uncertainty) + 1, us(o.likely) + 1)
            });
            let time = now.as_nanos() / 1000;
            put(out, max, &Frame::Sharing(Sharing::Clock { time, ahead: clock }));
        }
        if !claims.is_empty() && put(out, max, &Frame::Sharing(Sharing::Claims(claims))) {
            p.share.claims_at = now + tuning().claims_every;
        }
        if !rhythms.is_empty() && put(out, max, &Frame::Sharing(Sharing::Rhythms(rhythms))) {
            p.share.rhythms_at = now + tuning().rhythms_every;
        }
    }

    /// Appends the age of topic `i`'s next message if that message ends with a datagram of at most `max` bytes and its
    /// receiver needs to know.
    pub(super) fn put_timing(&mut self, now: Time, i: usize, max: usize, out: &mut Vec<u8>) {
        let Some(t) = self.topics.get_mut(i) else { return };
        // A reliable message is never dropped for being late: its sender is notified.
        if t.unacked.is_some() {
            return;
        }
        let due = t.config.deadline.is_some() || now >= t.timing_at;
        let ends = t.head().is_some_and(|p| !p.still_comes());
        if !due || !ends || out.len() + TIMING + t.rest_with_head() > max {
            return;
        }
        let Some((seq, offered_at)) = t.next_message() else {
            return;
        };
        let us = |d: Duration| u64::try_from(d.as_micros()).unwrap_or(u64::MAX);
        let frame = Sharing::Timing {
            topic: i as u32,
            seq,
            offered: offered_at.as_nanos() / 1000,
            deadline: t.config.deadline.map_or(0, us),
        };
        Frame::Sharing(frame).encode(out);
        t.timing_at = now + TIMING_EVERY;
    }

    /// Handles a frame of this family from `peer`, in a datagram of `bytes` bytes.
    pub(super) fn shared(&mut self, now: Time, peer: PeerId, frame: Sharing, bytes: usize) {
        let Some(p) = self.peers.get_mut(&peer) else {
            return;
        };
        self.air.others.expire(now);
        let speaker = p.speaker(peer);
        match frame {
            Sharing::Claims(c) if !p.config.air => self.stats.denied_claims += c.len() as u64,
            Sharing::Rhythms(r) if !p.config.air => self.stats.denied_claims += r.len() as u64,
            Sharing::Claims(claims) => {
                for c in &claims {
                    self.stats.denied_claims += u64::from(self.air.others.table.is_denied(c.host));
                    self.air.others.table.claim(now, speaker, c);
                }
            }
            Sharing::Clock { time, ahead } => {
                if let Some(e) = p.share.exchange.take() {
                    let here = p.airtime.with_gain(1.0).airtime(bytes, p.config.hops);
                    p.share.clock.learn(Exchange {
                        theirs: Time(time.saturating_mul(1000)),
                        here,
                        ..e
                    });
                }
                if let Some((ahead, uncertainty, likely)) = ahead {
                    p.share.clock.peer_reports(now, ahead, uncertainty, likely);
                }
            }
            Sharing::Rhythms(beats) => {
                let Some(clock) = p.share.clock.offset(now) else {
                    return;
                };
                for (i, b) in beats.iter().enumerate() {
                    let alike = beats[..i]
                        .iter()
                        .filter(|o| (o.host, o.priority) == (b.host, b.priority));
                    let nth = u8::try_from(alike.count()).unwrap_or(u8::MAX);
                    self.stats.denied_claims += u64::from(self.air.others.table.is_denied(b.host));
                    let next = clock.ours(Time(b.at.saturating_mul(1000)));
                    self.air
                        .others
                        .table
                        .rhythm(now, speaker, b, nth, next, clock.likely);
                }
            }
            Sharing::Timing {
                topic,
                seq,
                offered,
                deadline,
            } => p.share.timing = Some((topic, seq, offered, deadline)),
        }
    }

    /// Until when control frames to `peer` wait for a message of a third host: otherwise an exchange between two hosts
    /// that is unimportant would collide with it. They do not wait again and again.
    pub(super) fn control_waits(&self, now: Time, peer: PeerId) -> Option<Time> {
        let p = self.peers.get(&peer).filter(|p| p.session.is_up())?;
        let third = Whose::Third(p.speaker(peer).host);
        let f = self.air.delays(now, now + p.receipt_air(), third)?;
        self.policy.control_waits(p, &f).then_some(f.until)
    }

    /// Something waits until `until`, perhaps for others: returns how long it has to wait, given that they get
    /// at most their share.
    pub(super) fn holds(&mut self, now: Time, until: Time) -> Time {
        // The least important topic defers to everything that any topic of this host defers to.
        let waiting = self
            .topics
            .iter()
            .filter(|t| t.is_backlogged() && self.is_up(t.peer));
        let least = waiting.min_by_key(|t| t.config.priority);
        let least = least.and_then(|t| Some((t.config.priority, self.peers.get(&t.peer)?.full_air())));
        let Some((priority, full)) = least else {
            self.air.others.waits_no_more(now);
            return until;
        };
        let due = self.air.others.holds(now, priority, full);
        due.map_or(until, |t| t.min(until))
    }

    /// Air left free after a datagram of this priority, for more important messages of others. `own`: the datagram's
    /// contents are this host's, not forwarded.
    pub(super) fn deference_gap(&self, now: Time, p: &Peer, priority: u8, own: bool) -> Duration {
        let others = match self.air.others.defers(now, priority) {
            true => Others::Foreseen,
            false if own && self.air.others.expects(now, priority) => Others::AtAnyTime,
            false => return Duration::ZERO,
        };
        self.policy.gap(p, others)
    }

    /// Records the air that `peer`'s host took for messages, if the datagram carries any. Receipts do not count: where
    /// the air is full, they ride along.
    pub(super) fn record_use(&mut self, now: Time, peer: PeerId, bytes: usize, mut frames: Frames<'_>) {
        let of_message = |f| {
            matches!(
                f,
                Frame::Data(..)
                    | Frame::More(..)
                    | Frame::Source { .. }
                    | Frame::Parity { .. }
                    | Frame::Symbol(..)
            )
        };
        if self.config.yields
            && let Some(p) = self.peers.get(&peer)
            && let Some(info) = &p.info
            && frames.any(of_message)
        {
            let air = p.airtime.airtime(bytes, p.config.hops);
            self.air.others.took(now, info.host, air);
        }
    }

    /// Records that a received datagram took air that this host had counted on for itself, except for a receipt that it
    /// asked for. Where others may send something important at any time, no receipt shows in time what that made wait
    /// in the device queue.
    pub(super) fn air_taken(&mut self, now: Time, peer: PeerId, bytes: usize, mut frames: Frames<'_>) {
        let Some(p) = self.peers.get(&peer).filter(|_| self.expects(now)) else {
            return;
        };
        let reckoned = match frames.any(|f| matches!(f, Frame::Receipt(_))) {
            true => p.receipt_air(),
            false => Duration::ZERO,
        };
        let air = p.airtime.airtime(bytes, p.config.hops);
        self.air.device.taken(now, air.saturating_sub(reckoned));
    }

    /// Whether any waiting message is less important than messages that others may send at any time.
    fn expects(&self, now: Time) -> bool {
        let expects = |t: &SendTopic<B>| t.is_backlogged() && self.expects_beside(now, t);
        self.topics.iter().any(expects)
    }

    /// Whether others may send something more important than this topic's messages at any time. For forwarded messages
    /// the source has left that air.
    fn expects_beside(&self, now: Time, t: &SendTopic<B>) -> bool {
        !self.is_forwarded(t) && self.air.others.expects(now, t.config.priority)
    }

    /// Longest fragment of this topic where `max` is allowed. Symbols all have one length.
    pub(super) fn deferring_length(&self, now: Time, t: &SendTopic<B>, max: usize) -> usize {
        match t.symbol_room() {
            None if self.expects_beside(now, t) => self.policy.longest(max),
            _ => max,
        }
    }

    /// Whether any waiting message is less important than messages that others have announced.
    pub(super) fn defers(&self, now: Time) -> bool {
        let defers = |t: &SendTopic<B>| t.is_backlogged() && self.air.others.defers(now, t.config.priority);
        self.topics.iter().any(defers)
    }
}

impl Peer {
    /// Its identity for tables: the configured host id, which the carrier proves, takes precedence over its own claim.
    fn speaker(&self, peer: PeerId) -> Speaker {
        let claimed = self.info.as_ref().map_or(0, |i| i.host);
        let host = if self.config.host == 0 {
            claimed
        } else {
            self.config.host
        };
        Speaker {
            peer,
            host: id(host, self.session.remote().unwrap_or(0)),
        }
    }

    /// Takes a fragment, unless its datagram shows that its message is certainly past its deadline.
    pub(crate) fn timed_data(
        &mut self,
        now: Time,
        head: &DataHead,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(), DropReason> {
        let age = self.share.age(now, head.topic, head.seq);
        if age.is_some_and(|a| a.is_late()) {
            self.receiver.late(head, sink);
            return Ok(());
        }
        let done = self.receiver.data(now, head, bytes, sink);
        if let (Ok(()), Some(age)) = (done, age) {
            self.share.delivered(head.topic, age);
        }
        done
    }
}
