//! What one peer sends us: its announcements and its messages in pieces, all within bounds.

mod announcing;
mod ranges;
mod topic;
mod window;

use crate::body::{Incoming, Sink};
use crate::config::{MAX_TOPICS, PeerId, ReceiveLimits, RemoteTopic};
use crate::statistics::{RemoteTopicStats, SenderReport};
use crate::wire::{AckState, DataHead};
use announcing::Assembly;
use ranges::Ranges;
use stats::{DropReason, Time};
use std::collections::BTreeMap;
use topic::{Counts, InTopic, Partial};
use window::{Fate, WINDOW};

/// Numbers are given to messages as they are sent, so no honest gap is as wide as this. Without the bound
/// one wrong number would make all later messages look old.
const MAX_JUMP: u64 = 1 << 20;

/// The receiving half of a session.
pub(crate) struct Receiver {
    peer: PeerId,
    limits: ReceiveLimits,
    topics: BTreeMap<u32, InTopic>,
    announcing: BTreeMap<u32, Assembly>,
    /// Answers to announcements that wait to be sent: edition and state by topic.
    acks: BTreeMap<u32, (u32, AckState)>,
    /// Counts of topics of earlier sessions, by name, so that a restart of the peer loses none.
    earlier: BTreeMap<String, Counts>,
    partials: usize,
    partial_bytes: u64,
}

impl Receiver {
    pub(crate) fn new(peer: PeerId, limits: ReceiveLimits) -> Self {
        Receiver {
            peer,
            limits: ReceiveLimits {
                max_topics: limits.max_topics.min(MAX_TOPICS),
                ..limits
            },
            topics: BTreeMap::new(),
            announcing: BTreeMap::new(),
            acks: BTreeMap::new(),
            earlier: BTreeMap::new(),
            partials: 0,
            partial_bytes: 0,
        }
    }

    /// The peer began a new session: nothing of the old one counts any more, except the counts.
    pub(crate) fn reset(&mut self, sink: &mut impl Sink) {
        self.abort_all(sink, DropReason::PeerLost);
        for (_, topic) in std::mem::take(&mut self.topics) {
            let counts = topic.counts_now();
            if self.earlier.len() < self.limits.max_topics || self.earlier.contains_key(&topic.name) {
                self.earlier.insert(topic.name, counts);
            }
        }
        self.announcing.clear();
        self.acks.clear();
    }

    /// Gives up every partial message.
    pub(crate) fn abort_all(&mut self, sink: &mut impl Sink, reason: DropReason) {
        for topic in self.topics.values_mut() {
            for p in std::mem::take(&mut topic.partials) {
                topic.give_up(p, reason, sink);
            }
        }
        (self.partials, self.partial_bytes) = (0, 0);
    }

    /// Takes one fragment.
    ///
    /// An error is a loss that belongs to no topic.
    pub(crate) fn data(
        &mut self,
        now: Time,
        head: &DataHead,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(), DropReason> {
        let Some(topic) = self.topics.get_mut(&head.topic) else {
            self.answer(head.topic, 0, AckState::Unknown);
            return Err(DropReason::Unannounced);
        };
        if !topic.accepted {
            return Err(DropReason::Unannounced);
        }
        topic.counts.fragments += 1;
        let at = match topic.partials.iter().position(|p| p.seq == head.seq) {
            Some(at) => at,
            None => match topic.window.fate(head.seq) {
                Fate::Delivered => {
                    topic.counts.duplicate_fragments += 1;
                    // Each copy of a message has one fragment at 0.
                    topic
                        .counts
                        .drops
                        .add(DropReason::Duplicate, u64::from(head.offset == 0));
                    return Ok(());
                }
                Fate::Dropped | Fate::Ancient => return Ok(()),
                Fate::Open if head.seq > topic.window.top().saturating_add(MAX_JUMP) => {
                    return Err(DropReason::Malformed);
                }
                Fate::Open => match self.open(now, head, sink) {
                    Some(at) => at,
                    None => return Ok(()),
                },
            },
        };
        self.add(now, at, head, bytes, sink)
    }

    /// Begins a partial message, or counts why not. Gives its place in the topic's list.
    fn open(&mut self, now: Time, head: &DataHead, sink: &mut impl Sink) -> Option<usize> {
        let refuse = |r: &mut Self, reason| {
            if let Some(t) = r.topics.get_mut(&head.topic) {
                t.lost(head.seq, reason);
            }
            None
        };
        let bytes = head.geometry.total_len();
        if bytes > self.limits.max_message {
            return refuse(self, DropReason::TooLarge);
        }
        let topic = self.topics.get_mut(&head.topic)?;
        if topic.is_outdated(head.seq) {
            return refuse(self, DropReason::OutOfOrder);
        }
        let priority = topic.priority;
        if topic.partials.len() >= self.limits.max_partial_per_topic.max(1)
            && let Some(oldest) = topic.partials.iter().map(|p| p.seq).min()
        {
            if head.seq < oldest {
                return refuse(self, DropReason::Incomplete);
            }
            self.remove(head.topic, oldest, DropReason::Incomplete, sink);
        }
        while self.partials >= self.limits.max_partial.max(1)
            || self.partial_bytes.saturating_add(bytes.into()) > self.limits.max_partial_bytes
        {
            // The least important goes, among equals the one that waited longest for a fragment.
            let victim = self.topics.iter().flat_map(|(id, t)| {
                t.partials
                    .iter()
                    .map(move |p| (t.priority, p.touched, *id, p.seq))
            });
            match victim.min() {
                Some((p, _, id, seq)) if p <= priority => {
                    self.remove(id, seq, DropReason::ReassemblyFull, sink)
                }
                _ => return refuse(self, DropReason::ReassemblyFull),
            }
        }
        let message = Incoming {
            peer: self.peer,
            topic: RemoteTopic(head.topic),
            seq: head.seq,
            stamp: head.stamp,
            origin: head.origin,
            geometry: head.geometry,
        };
        let slot = match sink.begin(&message) {
            Ok(slot) => slot,
            Err(reason) => return refuse(self, reason),
        };
        let topic = self.topics.get_mut(&head.topic)?;
        topic.window.see(head.seq);
        topic.partials.push(Partial {
            message,
            slot,
            seq: head.seq,
            ranges: Ranges::default(),
            touched: now,
        });
        self.partials += 1;
        self.partial_bytes += u64::from(bytes);
        Some(topic.partials.len() - 1)
    }

    /// Adds a fragment to the partial message at `at`, and delivers it if that was the last.
    fn add(
        &mut self,
        now: Time,
        at: usize,
        head: &DataHead,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(), DropReason> {
        let Some(topic) = self.topics.get_mut(&head.topic) else {
            return Ok(());
        };
        let Some(p) = topic.partials.get_mut(at) else {
            return Ok(());
        };
        let m = &p.message;
        if (m.geometry, m.stamp, m.origin) != (head.geometry, head.stamp, head.origin) {
            return Err(DropReason::Malformed);
        }
        let slot = p.slot;
        let mut fresh = bytes.is_empty();
        let kept = p
            .ranges
            .insert(head.offset, head.offset + bytes.len() as u32, |from, to| {
                fresh = true;
                let (a, b) = ((from - head.offset) as usize, (to - head.offset) as usize);
                sink.write(slot, from, &bytes[a..b]);
            });
        if !kept {
            return Err(DropReason::Malformed);
        }
        if !fresh {
            topic.counts.duplicate_fragments += 1;
            return Ok(());
        }
        p.touched = now;
        if !p.ranges.covers(head.geometry.total_len()) {
            return Ok(());
        }
        topic.partials.swap_remove(at);
        let outrun = topic.deliver(head.seq, head.geometry.total_len(), sink.finish(slot));
        self.partials -= 1;
        self.partial_bytes -= u64::from(head.geometry.total_len());
        for seq in outrun {
            self.remove(head.topic, seq, DropReason::Incomplete, sink);
        }
        Ok(())
    }

    /// The sender gave up a message of which it had sent a part. It counted it, so it is not counted here.
    pub(crate) fn cancel(&mut self, topic: u32, seq: u64, sink: &mut impl Sink) {
        let Some(t) = self.topics.get_mut(&topic) else {
            return;
        };
        if let Some(at) = t.partials.iter().position(|p| p.seq == seq) {
            let p = t.partials.swap_remove(at);
            self.partials -= 1;
            self.partial_bytes -= u64::from(p.message.geometry.total_len());
            sink.abort(p.slot, DropReason::Expired);
            t.window.decide(seq, false);
        } else if t.window.fate(seq) == Fate::Open && seq < t.window.top() + WINDOW {
            t.window.decide(seq, false);
        }
    }

    fn remove(&mut self, topic: u32, seq: u64, reason: DropReason, sink: &mut impl Sink) {
        let Some(t) = self.topics.get_mut(&topic) else {
            return;
        };
        let Some(at) = t.partials.iter().position(|p| p.seq == seq) else {
            return;
        };
        let p = t.partials.swap_remove(at);
        self.partials -= 1;
        self.partial_bytes -= u64::from(p.message.geometry.total_len());
        t.give_up(p, reason, sink);
    }

    /// When the next partial message will be too old.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let touched = self
            .topics
            .values()
            .flat_map(|t| t.partials.iter().map(|p| p.touched))
            .min();
        touched.map(|t| t + self.limits.partial_age)
    }

    /// Gives up the partial messages to which nothing was added for too long.
    pub(crate) fn expire(&mut self, now: Time, sink: &mut impl Sink) {
        let age = self.limits.partial_age;
        let old = self.topics.iter().flat_map(|(id, t)| {
            t.partials
                .iter()
                .filter(|p| p.touched + age <= now)
                .map(move |p| (*id, p.seq))
        });
        for (id, seq) in old.collect::<Vec<_>>() {
            self.remove(id, seq, DropReason::Incomplete, sink);
        }
    }

    /// What the sender counted.
    pub(crate) fn sender_report(&mut self, topic: u32, report: SenderReport) {
        if let Some(t) = self.topics.get_mut(&topic) {
            t.at_sender = Some(report);
        }
    }

    /// The topics with their counts.
    pub(crate) fn topics(&self) -> impl Iterator<Item = (RemoteTopic, RemoteTopicStats)> + '_ {
        self.topics
            .iter()
            .map(|(id, t)| (RemoteTopic(*id), t.statistics(self.peer)))
    }
}
