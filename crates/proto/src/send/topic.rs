//! One outgoing topic: what waits, what is partly sent, what was counted.

use super::announcer::Announcer;
use super::rhythm::Rhythm;
use crate::announcement::{Announcement, WITHDRAWN};
use crate::body::{Body, Message};
use crate::config::{PeerId, TopicConfig};
use crate::geometry::Geometry;
use crate::statistics::ReceiverReport;
use crate::wire::DataHead;
use core::time::Duration;
use stats::{DropReason, Drops, Time};
use std::collections::VecDeque;

/// A message that waits or is partly sent.
pub(crate) struct Pending<B> {
    pub(crate) message: Message<B>,
    pub(crate) geometry: Geometry,
    /// Order of arrival over all topics.
    pub(crate) arrival: u64,
    pub(crate) offered_at: Time,
}

impl<B> Pending<B> {
    pub(crate) fn bytes(&self) -> u64 {
        self.geometry.total_len().into()
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
    pub(crate) air: Duration,
    pub(crate) drops: Drops,
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
    /// A message that was begun and given up, of which the receiver is to be told.
    pub(crate) cancelled: Option<u64>,
    pub(crate) next_seq: u64,
    /// Service that it has had, as start-time fair queueing counts it.
    pub(crate) served: u64,
    /// When the rate limit lets the next message pass.
    pub(crate) rate_next: Time,
    /// How many more messages decimation drops.
    pub(crate) skip: u32,
    pub(crate) rhythm: Rhythm,
    pub(crate) counts: OutCounts,
    pub(crate) at_receiver: Option<ReceiverReport>,
}

impl<B: Body> OutTopic<B> {
    pub(crate) fn new(peer: PeerId, config: TopicConfig, announced_order: u64) -> Self {
        OutTopic {
            peer,
            announcer: Announcer::new(announcement(&config).encode(0)),
            config,
            announced_order,
            withdrawn: false,
            waiting: VecDeque::new(),
            sending: None,
            cancelled: None,
            next_seq: 0,
            served: 0,
            rate_next: Time::ZERO,
            skip: 0,
            rhythm: Rhythm::default(),
            counts: OutCounts::default(),
            at_receiver: None,
        }
    }

    /// Its announcement.
    pub(crate) fn encoded(&self) -> Vec<u8> {
        if self.withdrawn {
            return WITHDRAWN.to_vec();
        }
        let next = self.sending.as_ref().map_or(self.next_seq, |s| s.seq);
        announcement(&self.config).encode(next)
    }

    /// The peer has a new session, and knows nothing of the topic.
    pub(crate) fn announce_to_new_session(&mut self) {
        self.cancelled = None;
        if self.withdrawn {
            self.announcer.keep_silent();
        } else {
            let bytes = self.encoded();
            self.announcer.restart(bytes);
        }
    }

    pub(crate) fn is_backlogged(&self) -> bool {
        self.sending.is_some() || !self.waiting.is_empty()
    }

    /// The message that goes next.
    pub(crate) fn head(&self) -> Option<&Pending<B>> {
        self.sending.as_ref().map(|s| &s.pending).or(self.waiting.front())
    }

    pub(crate) fn deadline_of(&self, p: &Pending<B>) -> Time {
        self.config.deadline.map_or(Time::MAX, |d| p.offered_at + d)
    }

    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.config.deadline?;
        let sending = self.sending.iter().map(|s| &s.pending);
        sending.chain(&self.waiting).map(|p| self.deadline_of(p)).min()
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
    /// was its last, gives the message's length.
    pub(crate) fn put_fragment(&mut self, id: u32, max: usize, out: &mut Vec<u8>) -> Option<u64> {
        if self.sending.is_none() {
            let pending = self.waiting.pop_front()?;
            self.sending = Some(Sending {
                pending,
                seq: self.next_seq,
                at: 0,
            });
            self.next_seq += 1;
        }
        let s = self.sending.as_mut()?;
        let (message, geometry) = (&s.pending.message, s.pending.geometry);
        let (stamp, origin) = (message.stamp, message.origin);
        let head = DataHead {
            topic: id,
            seq: s.seq,
            stamp,
            origin,
            offset: s.at,
            geometry,
        };
        let left = geometry.total_len() - s.at;
        let room = max.saturating_sub(out.len());
        // Another frame may follow only one that tells its length.
        let ends = DataHead::room(&geometry).saturating_add(left as usize) <= room;
        head.encode(out, ends.then_some(left));
        // Fragments go by byte offset, so a prediction of the next urgent message may cut this one short.
        let n = left.min(u32::try_from(max.saturating_sub(out.len())).unwrap_or(u32::MAX));
        let start = out.len();
        out.resize(start + n as usize, 0);
        message.body.copy_at(s.at, &mut out[start..]);
        s.at += n;
        self.counts.fragments += 1;
        if n < left {
            return None;
        }
        let bytes = self.sending.take()?.pending.bytes();
        self.counts.sent += 1;
        self.counts.sent_bytes += bytes;
        Some(bytes)
    }

    /// Most that the head of the next fragment takes.
    pub(crate) fn head_room(&self) -> usize {
        self.head().map_or(0, |p| DataHead::room(&p.geometry))
    }

    /// Bytes that the rest of the next message takes at most in a datagram, with its head.
    pub(crate) fn rest_with_head(&self) -> usize {
        let at = self.sending.as_ref().map_or(0, |s| s.at);
        let rest = |p: &Pending<B>| DataHead::room(&p.geometry) + (p.geometry.total_len() - at) as usize;
        self.head().map_or(0, rest)
    }

    /// Drops the oldest message that waits. Gives its bytes.
    pub(crate) fn drop_oldest(&mut self, reason: DropReason) -> u64 {
        let Some(p) = self.waiting.pop_front() else {
            return 0;
        };
        self.counts.drops.add(reason, 1);
        p.bytes()
    }

    /// Drops the message that is partly sent. Gives its bytes.
    pub(crate) fn drop_sending(&mut self, reason: DropReason) -> u64 {
        let Some(s) = self.sending.take() else { return 0 };
        self.counts.drops.add(reason, 1);
        self.cancelled = Some(s.seq);
        s.pending.bytes()
    }

    /// Drops everything. Gives the bytes.
    pub(crate) fn clear(&mut self, reason: DropReason) -> u64 {
        let mut bytes = self.drop_sending(reason);
        while !self.waiting.is_empty() {
            bytes += self.drop_oldest(reason);
        }
        bytes
    }

    /// Drops what cannot be wholly sent by its deadline, before it costs (more) airtime: `done` tells when
    /// so many bytes, with their heads, would be through if they went now. Gives the bytes.
    pub(crate) fn expire(&mut self, done: impl Fn(usize) -> Time) -> u64 {
        let Some(limit) = self.config.deadline else {
            return 0;
        };
        let mut bytes = 0;
        let late = |t: &Self| {
            t.head()
                .is_some_and(|p| p.offered_at + limit < done(t.rest_with_head()))
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
        let mut bytes = 0;
        while self.waiting.len() > self.config.depth as usize {
            bytes += self.drop_oldest(reason);
        }
        bytes
    }
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
    }
}
