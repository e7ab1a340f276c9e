//! Messages that end undelivered: deadlines, making way for newer ones, and giving up.

use super::{Pending, SendTopic};
use crate::body::{Body, Message};
use crate::outcome::End;
use crate::send::reliable::RetransmitBuffer;
use core::time::Duration;
use stats::{DropReason, Time};

/// Longer messages take so long that newer ones arrive meanwhile.
const LONG: u64 = 16 << 10;

impl<B: Body> SendTopic<B> {
    /// The oldest message that may be dropped.
    pub(crate) fn oldest(&self) -> Option<&Pending<B>> {
        let kept = self.unacked.as_ref().and_then(|k| Some(&k.oldest()?.pending));
        let begun = self.unacked.as_ref().and(self.sending.as_ref());
        kept.or(begun.map(|s| &s.pending)).or(self.waiting.front())
    }

    pub(crate) fn deadline_of(&self, p: &Pending<B>) -> Time {
        let after = |d: Duration| p.offered_at + d;
        let expiry = self.unacked.as_ref().and(self.config.expiry).map(after);
        let expiry = self.own_expiry(p).or(expiry);
        let deadline = self.config.deadline.map(after);
        [deadline, expiry]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(Time::MAX)
    }

    /// The message's own expiry, if it has one.
    pub(super) fn own_expiry(&self, p: &Pending<B>) -> Option<Time> {
        self.unacked.as_ref().and(p.message.expires)
    }

    /// Whether the settings limit how long messages are worth sending.
    pub(super) fn has_limit(&self) -> bool {
        self.config.deadline.is_some() || self.unacked.as_ref().and(self.config.expiry).is_some()
    }

    /// Messages that each have their own expiry.
    pub(super) fn timed(&self) -> impl Iterator<Item = &Pending<B>> {
        // Most topics never have any, and are skipped.
        let unacked = self.unacked.iter().filter(|_| self.has_timed);
        let all = unacked.flat_map(|k| {
            let sending = self.sending.iter().map(|s| &s.pending);
            k.all().chain(sending).chain(&self.waiting)
        });
        all.filter(|p| p.message.expires.is_some())
    }

    /// Milliseconds for which the next message is still of use, on a reliable topic; at least 1.
    pub(crate) fn left_ms(&self, now: Time) -> Option<u32> {
        let until = self.deadline_of(self.unacked.as_ref().and(self.head())?);
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

    /// Drops the oldest message that may be dropped. Returns its bytes.
    pub(crate) fn drop_oldest(&mut self, reason: DropReason) -> u64 {
        if let Some(unacked) = &mut self.unacked {
            if let Some(p) = unacked.give_up_oldest() {
                self.ledger.gives_up(reason);
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

    pub(super) fn dropped(&mut self, p: &Pending<B>, reason: DropReason) -> u64 {
        self.counts.drops.add(reason, 1);
        if self.unacked.is_some() {
            let (stamp, origin) = (p.message.stamp, p.message.origin);
            self.outcomes.push(stamp, origin, End::Lost(reason));
        }
        p.bytes()
    }

    /// Drops the message that is partly sent. Returns its bytes.
    pub(crate) fn drop_sending(&mut self, reason: DropReason) -> u64 {
        let Some(s) = self.sending.take() else { return 0 };
        self.ledger.gives_up(reason);
        match &mut self.unacked {
            Some(unacked) => unacked.gave_up(s.seq),
            None => self.cancelled = Some(s.seq),
        }
        self.dropped(&s.pending, reason)
    }

    /// Returns the messages that were not begun and are only for hosts in `others`, and gives up the one that was
    /// begun, if it is. Also returns their bytes.
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

    /// Ends the message that has this stamp, if it is here and the topic is reliable. Returns its bytes.
    pub(crate) fn end_message(&mut self, stamp: Time, end: Result<(), DropReason>) -> Option<u64> {
        let unacked = self.unacked.as_mut()?;
        let is_it = |p: &Pending<B>| p.message.stamp == stamp;
        let (pending, seq) = if let Some(kept) = unacked.remove(stamp) {
            (kept.pending, Some(kept.seq))
        } else if let Some(s) = self.sending.take_if(|s| is_it(&s.pending)) {
            // Delivered or not, the rest of it is never sent.
            unacked.gave_up(s.seq);
            (s.pending, Some(s.seq))
        } else {
            let at = self.waiting.iter().position(is_it)?;
            (self.waiting.remove(at)?, None)
        };
        match (end, seq) {
            // A delivered message needs nothing further: its receiver has settled it.
            (Ok(()), Some(_)) => {
                self.counts.sent += 1;
                self.counts.sent_bytes += pending.bytes();
                self.ledger.came_elsewhere();
            }
            // It arrived over another route.
            (Ok(()), None) => self.counts.drops.add(DropReason::Duplicate, 1),
            (Err(reason), seq) => {
                self.counts.drops.add(reason, 1);
                if let Some(seq) = seq {
                    self.ledger.gives_up(reason);
                    unacked.gave_up(seq);
                }
            }
        }
        Some(pending.bytes())
    }

    /// Drops everything. Returns the bytes.
    pub(crate) fn clear(&mut self, reason: DropReason) -> u64 {
        let mut bytes = 0;
        while self.oldest().is_some() {
            bytes += self.drop_oldest(reason);
        }
        bytes + self.drop_sending(reason)
    }

    /// Drops messages that cannot be sent in full by their deadline, before they cost (more) airtime: `done` returns
    /// when this many bytes, including headers, would be through if they were sent now. A reliable message is dropped
    /// when it expires. Returns the bytes.
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
        if self.unacked.is_some() {
            while self.oldest().is_some_and(|p| self.deadline_of(p) <= now) {
                bytes += self.drop_oldest(DropReason::Expired);
            }
        }
        // Latched messages go ahead of those that arrived before they were offered again, and end later.
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
        if self.unacked.is_some() {
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

    /// Keeps only the newest messages. Returns the bytes of the others.
    pub(crate) fn keep_last(&mut self) -> u64 {
        let reason = match self.announcer.accepted() {
            Some(_) => DropReason::Replaced,
            None => DropReason::Unannounced,
        };
        let waits = |t: &Self| match t.unacked {
            Some(_) => t.held(),
            None => t.waiting.len(),
        };
        let mut bytes = 0;
        while waits(self) > self.config.depth as usize {
            bytes += self.make_way(reason);
        }
        bytes
    }

    /// Drops the message that makes way for newer ones: the oldest or, behind a long one that continues, the oldest of
    /// those that wait. Returns its bytes.
    pub(crate) fn make_way(&mut self, reason: DropReason) -> u64 {
        let newer = if self.goes_on() {
            self.waiting.pop_front()
        } else {
            None
        };
        match newer {
            Some(p) => self.dropped(&p, reason),
            None => self.drop_oldest(reason),
        }
    }

    /// Whether a long message that was begun continues while those behind it make way: with a source faster than the
    /// radio none would arrive otherwise, since each would be given up while it is sent.
    fn goes_on(&self) -> bool {
        let is_begun = |k: &RetransmitBuffer<B>| k.oldest().is_some() || self.sending.is_some();
        let is_long = self.oldest().is_some_and(|p| p.bytes() > LONG);
        self.unacked.as_ref().is_some_and(is_begun) && is_long && self.waiting.len() > 1
    }
}
