//! Receives the announcements and fragments of one peer, all within limits.

mod announcing;
mod bulk;
mod early;
mod late;
mod parity;
mod ranges;
mod reliable;
mod staging;
#[cfg(test)]
mod tests;
mod topic;
mod waiting;
mod watching;
mod window;

use crate::body::{Incoming, Sink, Slot};
use crate::config::{MAX_DEPTH, MAX_TOPICS, PeerId, ReceiveLimits, RemoteTopic};
use crate::fountain::Shape;
use crate::route::Route;
use crate::statistics::{Account, ReceiverReport, RemoteTopicStats};
use crate::wire::{AckState, Acknowledgement, DataHead, Frame, Reader};
use announcing::Assembly;
use bulk::Collector;
use early::Early;
use parity::Decoder;
use ranges::Ranges;
use ranges::most_runs;
use reliable::Owed;
pub(crate) use reliable::SPAN;
use staging::Staging;
use stats::{DropReason, Time};
use std::collections::BTreeMap;
use topic::{Counts, Partial, ReceiveTopic, cost};
use waiting::HeldUp;
use window::{Fate, WINDOW};

/// Messages are numbered as they are sent, so no honest gap is as wide as this. Without this limit one wrong number
/// would make all later messages look old.
const MAX_JUMP: u64 = 1 << 20;
/// Factor by which partial messages of reliable topics live longer: their sender says when they end.
const PATIENCE: u32 = 30;
/// Factor by which the newest partial message of a topic lives longer at most while others arrive: more important ones may
/// have interrupted it.
const INTERRUPTED: u32 = 5;

/// The receiving half of a session.
pub(crate) struct Receiver {
    peer: PeerId,
    limits: ReceiveLimits,
    topics: BTreeMap<u32, ReceiveTopic>,
    announcing: BTreeMap<u32, Assembly>,
    /// Answers to announcements that are due: edition and state by topic.
    acks: announcing::Answers,
    /// Counters of topics of earlier sessions, by name, so that a restart of the peer loses none.
    earlier: BTreeMap<String, Counts>,
    partials: usize,
    partial_bytes: u64,
    early: Early,
    held_up: HeldUp,
    /// Bytes of fragments from which redundant topics compute lost ones.
    decoding_bytes: usize,
    /// When a fragment last added something to a partial message.
    touched: Time,
    /// Whether datagrams from this peer are known to get lost.
    pub(crate) lossy: bool,
    /// The route of the next fragment's message, and when the message stops being of use.
    pub(crate) route: Option<(Route, Option<Time>)>,
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
            acks: announcing::Answers::new(),
            earlier: BTreeMap::new(),
            partials: 0,
            partial_bytes: 0,
            early: Early::default(),
            held_up: HeldUp::default(),
            decoding_bytes: 0,
            touched: Time::ZERO,
            lossy: true,
            route: None,
        }
    }

    /// The peer began a new session: all state of the old one is void, except the counters.
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
        self.early = Early::default();
        self.decoding_bytes = 0;
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

    /// The peer is lost, and may come back with the same session: partial messages are given up, except those received
    /// as symbols, of which many may be here (age ends them), and those that only wait to be taken.
    pub(crate) fn pause(&mut self, sink: &mut impl Sink) {
        self.announcing.clear();
        self.early = Early::default();
        self.decoding_bytes = 0;
        for topic in self.topics.values_mut() {
            topic.decoder.iter_mut().for_each(Decoder::forget);
            let taken_next = topic.waiting_for_sink();
            let (stay, go) = std::mem::take(&mut topic.partials)
                .into_iter()
                .partition(|p| p.collector.is_some() || taken_next.contains(&p.seq));
            topic.partials = stay;
            let go: Vec<Partial> = go;
            for p in go {
                topic.give_up(p, DropReason::PeerLost, sink);
            }
        }
        let left = self.topics.values().flat_map(|t| &t.partials);
        self.partials = left.clone().count();
        self.partial_bytes = left.map(Partial::cost).sum();
    }

    /// The topic of a received frame, if it was announced and accepted. Its sender is notified if it is unknown.
    fn accepted(&mut self, topic: u32) -> Result<&mut ReceiveTopic, DropReason> {
        match self.topics.get_mut(&topic) {
            Some(t) if t.accepted => Ok(t),
            Some(_) => Err(DropReason::Unannounced),
            None => {
                announcing::answer(&mut self.acks, topic, 0, AckState::Unknown);
                Err(DropReason::Unannounced)
            }
        }
    }

    /// Takes a fragment.
    ///
    /// An error is a loss that belongs to no topic.
    pub(crate) fn data(
        &mut self,
        now: Time,
        head: &DataHead,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(), DropReason> {
        let lossy = self.lossy;
        let topic = self.accepted(head.topic)?;
        topic.counts.fragments += 1;
        if let Some(tracker) = topic.tracker.as_mut().filter(|_| head.poll) {
            tracker.owe(now, lossy);
        }
        let admits = topic
            .tracker
            .as_ref()
            .map_or(head.seq <= topic.window.top().saturating_add(MAX_JUMP), |t| {
                t.admits(head.seq)
            });
        let at = match topic.partials.iter().position(|p| p.seq == head.seq) {
            Some(at) => at,
            None => match topic.fate(head.seq) {
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
                Fate::Open if !admits => return Err(DropReason::Malformed),
                Fate::Open => {
                    let Some(at) = self.open(now, head, None, sink) else {
                        return Ok(());
                    };
                    self.add(now, at, head, bytes, sink)?;
                    return self.add_early(now, head.topic, head.seq, sink);
                }
            },
        };
        self.add(now, at, head, bytes, sink)
    }

    /// Begins a partial message, or counts why not. Returns its place in the topic's list. The message arrives as
    /// symbols if a shape is given.
    fn open(
        &mut self,
        now: Time,
        head: &DataHead,
        shape: Option<Shape>,
        sink: &mut impl Sink,
    ) -> Option<usize> {
        let refuse = |r: &mut Self, reason| {
            r.refuse(head.topic, head.seq, reason);
            None
        };
        let bytes = head.geometry.total_len();
        let cost = cost(bytes, shape.is_some());
        // There would never be room for it.
        let too_large = shape.is_some() && cost > self.limits.max_partial_bytes;
        if too_large || bytes > self.limits.max_message {
            return refuse(self, DropReason::TooLarge);
        }
        let topic = self.topics.get_mut(&head.topic)?;
        if topic.is_outdated(head.seq) {
            return refuse(self, DropReason::OutOfOrder);
        }
        let priority = topic.priority;
        let seqs = topic.partials.iter().map(|p| p.seq);
        if topic.tracker.is_some() {
            // An honest sender keeps at most this many. Above it, the newest is the best one to send again.
            let most = topic.depth.min(MAX_DEPTH) as usize + 1;
            if topic.partials.len() >= most.max(self.limits.max_partial_per_topic)
                && let Some(newest) = seqs.max()
            {
                if head.seq > newest {
                    return refuse(self, DropReason::ReassemblyFull);
                }
                self.remove(head.topic, newest, DropReason::ReassemblyFull, sink);
            }
        } else if topic.partials.len() >= self.limits.max_partial_per_topic.max(1)
            && let Some(oldest) = seqs.min()
        {
            if head.seq < oldest {
                return refuse(self, DropReason::Incomplete);
            }
            self.remove(head.topic, oldest, DropReason::Incomplete, sink);
        }
        while self.partials >= self.limits.max_partial.max(1)
            || self.partial_bytes.saturating_add(cost) > self.limits.max_partial_bytes
        {
            // The least important goes, and among equals the one that has waited longest for a fragment.
            let victim = self.topics.iter().flat_map(|(id, t)| {
                // Two messages of symbols would only displace each other in turn; but a later one may wait for this
                // one.
                let later = move |p: &Partial| *id == head.topic && p.seq > head.seq;
                let stays = move |p: &&Partial| {
                    shape.is_some() && p.collector.is_some() && t.priority == priority && !later(p)
                };
                t.partials
                    .iter()
                    .filter(move |p| !stays(p))
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
            route: self.route.map(|(route, _)| route),
            expires: self.route.and_then(|(_, expires)| expires),
            geometry: head.geometry,
        };
        let topic = self.topics.get_mut(&head.topic)?;
        topic.window.see(head.seq);
        topic.partials.push(Partial {
            message,
            slot: None,
            staging: Staging::default(),
            seq: head.seq,
            ranges: Ranges::default(),
            touched: now,
            whole: false,
            collector: shape.map(Collector::new),
        });
        let at = topic.partials.len() - 1;
        self.partials += 1;
        self.partial_bytes += cost;
        self.settle_in(head.topic, at, sink).then_some(at)
    }

    /// Adds a fragment to the partial message at `at`, and delivers the message if it is complete.
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
        let same = (m.geometry, m.stamp, m.origin) == (head.geometry, head.stamp, head.origin);
        if !same || p.collector.is_some() {
            return Err(DropReason::Malformed);
        }
        let total = head.geometry.total_len();
        let end = head.offset + bytes.len() as u32;
        let mut fresh = bytes.is_empty();
        let (slot, staging) = (p.slot, &mut p.staging);
        let kept = p.ranges.insert(head.offset, end, most_runs(total), |from, to| {
            fresh = true;
            let new = &bytes[(from - head.offset) as usize..(to - head.offset) as usize];
            match slot {
                Some(slot) => sink.write(slot, from, new),
                None => staging.keep(from, new),
            }
        });
        if !kept {
            return Err(DropReason::Malformed);
        }
        if !fresh {
            topic.counts.duplicate_fragments += 1;
            return Ok(());
        }
        p.touched = now;
        self.touched = now;
        let (whole, ready) = (p.ranges.covers(total), p.ranges.first_missing());
        if !self.settle_in(head.topic, at, sink) {
            return Ok(());
        }
        if whole {
            self.complete(head.topic, at, sink);
        } else if let Some(slot) = self.slot(head.topic, at) {
            sink.grown(slot, ready);
        }
        Ok(())
    }

    /// The sender of a reliable topic will send nothing below `floor` any more: it knows the outcome of all those
    /// messages, or has given them up and counted them.
    pub(crate) fn settled(
        &mut self,
        now: Time,
        topic: u32,
        floor: u64,
        sink: &mut impl Sink,
    ) -> Result<(), DropReason> {
        let lossy = self.lossy;
        let Some(t) = self.topics.get_mut(&topic) else {
            return Err(DropReason::Unannounced);
        };
        let Some(tracker) = &mut t.tracker else {
            return Err(DropReason::Malformed);
        };
        if !tracker.admits(floor) {
            return Err(DropReason::Malformed);
        }
        tracker.owe(now, lossy);
        tracker.forget(floor);
        // At most the span.
        for seq in tracker.base()..floor {
            self.give_up_for_good(topic, seq, sink);
        }
        self.finish_awaited(topic, sink);
        Ok(())
    }

    /// Takes a fragment of a redundant topic, with `bytes` as its frame, and everything that can be computed with it.
    ///
    /// An error is a loss that belongs to no topic.
    pub(crate) fn source(
        &mut self,
        now: Time,
        (topic, id): (u32, u64),
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(), DropReason> {
        self.inner(now, topic, bytes, sink)?;
        let found = self.decode(topic, |decoder| decoder.source(id, bytes))?;
        self.computed(now, topic, &found, sink)
    }

    /// Takes a parity of a redundant topic, and everything that can be computed with it.
    ///
    /// An error is a loss that belongs to no topic.
    pub(crate) fn parity(
        &mut self,
        now: Time,
        topic: u32,
        (first, count, key): (u64, u8, u8),
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(), DropReason> {
        if self.topics.get(&topic).is_none_or(|t| !t.accepted) {
            return Err(DropReason::Unannounced);
        }
        let found = self.decode(topic, |decoder| decoder.parity(first, count, key, bytes))?;
        self.computed(now, topic, &found, sink)
    }

    /// Passes a fragment or parity to a redundant topic's decoder. If the peer's decoders together then hold too much,
    /// those that hold the most are cleared.
    fn decode(
        &mut self,
        topic: u32,
        learn: impl FnOnce(&mut Decoder) -> Result<Vec<Vec<u8>>, ()>,
    ) -> Result<Vec<Vec<u8>>, DropReason> {
        let decoder = self.topics.get_mut(&topic).and_then(|t| t.decoder.as_mut());
        let decoder = decoder.ok_or(DropReason::Malformed)?;
        let before = decoder.held();
        let found = learn(decoder);
        self.decoding_bytes = self.decoding_bytes.saturating_sub(before) + decoder.held();
        while self.decoding_bytes > self.limits.max_decoding_bytes {
            let decoders = self.topics.values_mut().filter_map(|t| t.decoder.as_mut());
            let Some(largest) = decoders.max_by_key(|d| d.held()).filter(|d| d.held() > 0) else {
                break;
            };
            self.decoding_bytes = self.decoding_bytes.saturating_sub(largest.held());
            largest.forget();
        }
        found.map_err(|()| DropReason::Malformed)
    }

    fn computed(
        &mut self,
        now: Time,
        topic: u32,
        frames: &[Vec<u8>],
        sink: &mut impl Sink,
    ) -> Result<(), DropReason> {
        for frame in frames {
            self.inner(now, topic, frame, sink)?;
            if let Some(t) = self.topics.get_mut(&topic) {
                t.counts.repaired += 1;
            }
        }
        Ok(())
    }

    /// Takes the data frame in a fragment of a redundant topic.
    fn inner(&mut self, now: Time, topic: u32, frame: &[u8], sink: &mut impl Sink) -> Result<(), DropReason> {
        let mut r = Reader::new(frame);
        match Frame::decode(&mut r) {
            Ok(Frame::Data(head, bytes)) if head.topic == topic && r.is_empty() => {
                self.data(now, &head, bytes, sink)
            }
            _ => Err(DropReason::Malformed),
        }
    }

    /// Whether an acknowledgement is due.
    pub(crate) fn owes(&self) -> bool {
        self.trackers().any(|t| t.owed == Owed::Now)
    }

    /// The next acknowledgement, of at most `room` bytes; with `soon`, also one that could still wait. It stays owed
    /// until [`Receiver::acknowledged`] is called.
    pub(crate) fn next_acknowledgement(&self, room: usize, soon: bool) -> Option<Acknowledgement> {
        self.topics.iter().find_map(|(id, t)| {
            let tracker = t.tracker.as_ref()?;
            let owed = match tracker.owed {
                Owed::Nothing => false,
                Owed::At(_) => soon,
                Owed::Now => true,
            };
            let mut partial: Vec<_> = t.partials.iter().map(Partial::described).collect();
            partial.sort_unstable_by_key(|(seq, ..)| *seq);
            let a = tracker.describe(room, partial.into_iter()).filter(|_| owed)?;
            Some(Acknowledgement { topic: *id, ..a })
        })
    }

    /// The acknowledgement of `topic` was sent.
    pub(crate) fn acknowledged(&mut self, topic: u32) {
        if let Some(tracker) = self.topics.get_mut(&topic).and_then(|t| t.tracker.as_mut()) {
            tracker.owed = Owed::Nothing;
        }
    }

    fn trackers(&self) -> impl Iterator<Item = &reliable::Tracker> {
        self.topics.values().filter_map(|t| t.tracker.as_ref())
    }

    /// Makes acknowledgements due that have waited long enough, and statements that nothing confirmed.
    pub(crate) fn tick(&mut self, now: Time) {
        self.tick_watched(now);
        let trackers = self.topics.values_mut().filter_map(|t| t.tracker.as_mut());
        trackers.for_each(|t| t.tick(now));
    }

    /// The sender gave up a message that it had sent in part. The sender counted it, so it is not counted here.
    pub(crate) fn cancel(&mut self, topic: u32, seq: u64, sink: &mut impl Sink) {
        let Some(t) = self.topics.get_mut(&topic).filter(|t| t.tracker.is_none()) else {
            return;
        };
        if let Some(at) = t.partials.iter().position(|p| p.seq == seq) {
            let p = t.partials.swap_remove(at);
            self.partials -= 1;
            self.partial_bytes -= p.cost();
            p.release(DropReason::Expired, sink);
            t.abandon(seq);
        } else if t.window.fate(seq) == Fate::Open && seq < t.window.top().saturating_add(WINDOW) {
            t.abandon(seq);
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
        self.partial_bytes -= p.cost();
        t.give_up(p, reason, sink);
    }

    /// When the next partial message will be too old, or an acknowledgement is due.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let ages = self
            .topics
            .values()
            .flat_map(|t| t.partials.iter().map(move |p| self.ends(t, p)));
        let owed = self.trackers().filter_map(|t| match t.owed {
            Owed::At(t) => Some(t),
            Owed::Nothing | Owed::Now => None,
        });
        let watching = self
            .topics
            .values()
            .filter_map(|t| t.watching.as_ref()?.next_timeout());
        ages.chain(owed)
            .chain(watching)
            .chain(self.held_up.next_timeout())
            .min()
    }

    /// When a partial message is given up if it receives nothing more.
    fn ends(&self, t: &ReceiveTopic, p: &Partial) -> Time {
        let age = self.limits.partial_age;
        let times = |n: u32| p.touched + age.saturating_mul(n);
        if t.tracker.is_some() {
            return times(PATIENCE);
        }
        // The sender goes on with an interrupted message before it begins the topic's next one.
        let is_newest = p.seq + 1 == t.window.top();
        match is_newest {
            true => (self.touched + age).clamp(times(1), times(INTERRUPTED)),
            false => times(1),
        }
    }

    /// Gives up partial messages that have received nothing for too long.
    pub(crate) fn expire(&mut self, now: Time, sink: &mut impl Sink) {
        self.tick(now);
        self.retry(now, sink);
        let old = self.topics.iter().flat_map(|(id, t)| {
            let old = t.partials.iter().filter(|p| self.ends(t, p) <= now);
            old.map(move |p| (*id, p.seq))
        });
        for (id, seq) in old.collect::<Vec<_>>() {
            self.remove(id, seq, DropReason::Incomplete, sink);
        }
    }

    /// Takes the sender's account of both ends.
    pub(crate) fn sender_report(&mut self, topic: u32, account: Account) {
        if let Some(t) = self.topics.get_mut(&topic) {
            t.account = Some(account);
        }
    }

    /// The reports to the sender about its topics.
    pub(crate) fn reports(&self) -> impl Iterator<Item = (u32, ReceiverReport)> + '_ {
        self.topics.iter().map(|(id, t)| (*id, t.report()))
    }

    /// Subscribers lost `lost` more of the delivered messages.
    pub(crate) fn not_taken(&mut self, topic: u32, lost: u64) {
        if let Some(t) = self.topics.get_mut(&topic) {
            t.counts.drops.add(DropReason::NotTaken, lost);
        }
    }

    /// The priority of a topic's messages, if the topic is accepted.
    pub(crate) fn priority(&self, topic: u32) -> Option<u8> {
        self.topics.get(&topic).filter(|t| t.accepted).map(|t| t.priority)
    }

    /// The topics with their counters.
    pub(crate) fn topics(&self) -> impl Iterator<Item = (RemoteTopic, RemoteTopicStats)> + '_ {
        self.topics
            .iter()
            .map(|(id, t)| (RemoteTopic(*id), t.statistics(self.peer)))
    }
}
