//! A subscriber's record of its publishers, and the order in which it takes from them.

use crate::connection::Connection;
use crate::content::{FRONT, Unreadable};
use crate::losses::Losses;
use crate::message::Message;
use crate::ring::{self, Consumer, Taken};
use crate::sys::segment::PeerSegment;
use stats::DropReason;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) sources: Vec<Source>,
    pub(super) received: u64,
    pub(super) departed: Losses,
    /// Publishers that broke the protocol; the last few.
    pub(super) distrusted: Vec<u64>,
    /// Publishers whose connection ended, and the last message taken from each; the last few.
    pub(super) left: VecDeque<(u64, u64)>,
    /// Whether publishers wake it before they fill a message, too.
    pub(super) early_wake: bool,
}

/// Number of ended connections to remember.
const MAX_LEFT: usize = 64;

/// A publisher's ring.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) connection: Arc<Connection>,
    pub(super) consumer: Consumer,
    /// The segment of the last message. It may be retired: only the connection keeps it mapped.
    pub(super) segment: (u64, Weak<PeerSegment>),
    /// Losses as of the last take.
    pub(super) seen: Losses,
    /// Number of the push after the one taken last.
    pub(super) next: u64,
    /// The publisher's number of the last message taken.
    pub(super) last: u64,
    pub(super) received: u64,
    pub(super) malformed: u64,
    /// Messages lost because the copies of this publisher's messages reached their limit.
    pub(super) held_too_many: u64,
    /// Messages lost because this process could not map their memory.
    pub(super) unmapped: u64,
    /// How often in a row another source was preferred although this one had a message.
    pub(super) passed_over: u32,
}

/// A publisher that claims to have the oldest messages can delay other publishers for at most this many
/// takes.
const PATIENCE: u32 = 64;

impl State {
    pub(super) fn alive(&self) -> usize {
        self.connected().count()
    }

    /// Identities of the publishers that are connected.
    pub(super) fn connected(&self) -> impl Iterator<Item = u64> {
        let alive = self.sources.iter().filter(|s| !s.connection.has_ended());
        alive.map(|s| s.connection.publisher)
    }

    /// Returns the source whose first message was queued first; the only source, if there is just one.
    pub(super) fn oldest(&mut self) -> Option<usize> {
        if let [only] = &mut self.sources[..] {
            // The take itself finds out whether it has a message.
            return (!only.connection.is_at_limit()).then_some(0);
        }
        let mut best: Option<(u32, u64, usize)> = None;
        for (i, source) in self.sources.iter_mut().enumerate() {
            let Some(time) = source.peek() else { continue };
            // First sources that waited too long, then by time.
            let rank = u32::from(source.passed_over < PATIENCE);
            source.passed_over = source.passed_over.saturating_add(1);
            if best.is_none_or(|(r, t, _)| (rank, time) < (r, t)) {
                best = Some((rank, time, i));
            }
        }
        let (.., i) = best?;
        self.sources[i].passed_over = 0;
        Some(i)
    }

    /// Returns `None` if the message was dropped in the meantime, or is malformed.
    #[inline(always)]
    pub(super) fn take_from(&mut self, i: usize) -> Option<Message> {
        let source = &mut self.sources[i];
        let (taken, segment) = source.next()?;
        let connection = &source.connection;
        crate::hooks::step("taken");
        connection.hold();
        let mut content = connection.content(taken);
        let read = segment.and_then(|s| content.read(s));
        if let Err(why) = read {
            connection.release(content);
            self.lose(i, why);
            return None;
        }
        content.lost = Losses::default();
        // The total as of the push is next to the message; a later drop shows as a gap in the push numbers.
        // Only then are the counters read, which are in a cache line of their own.
        let gap = taken.number != source.next;
        source.next = taken.number.wrapping_add(1);
        if gap || taken.entry.lost != source.seen.total() {
            content.lost = source.learn_losses();
        }
        source.last = content.header.label.sequence;
        source.received += 1;
        self.received += 1;
        Some(Message::new(source.connection.clone(), content))
    }

    /// Records a message that cannot be read.
    #[cold]
    fn lose(&mut self, i: usize, why: Unreadable) {
        match why {
            Unreadable::Malformed => {
                self.sources[i].malformed += 1;
                self.distrust(i, "a malformed block");
            }
            Unreadable::HoldLimit => self.sources[i].held_too_many += 1,
            Unreadable::NoMemory => self.sources[i].unmapped += 1,
        }
    }

    /// Disconnects a publisher for good.
    #[cold]
    pub(super) fn distrust(&mut self, i: usize, why: &'static str) {
        let connection = &self.sources[i].connection;
        tracing::warn!(
            pid = connection.peer.pid,
            publisher = connection.publisher,
            why,
            "disconnected a publisher that broke the protocol"
        );
        connection.leave();
        self.distrusted.push(connection.publisher);
        if self.distrusted.len() > 64 {
            self.distrusted.remove(0);
        }
        self.forget(i);
    }

    pub(super) fn is_ready(&mut self) -> bool {
        self.sources.iter_mut().any(|s| s.peek().is_some())
    }

    /// Whether messages are queued that cannot be taken before others are dropped.
    pub(super) fn is_stuck(&mut self) -> bool {
        let mut sources = self.sources.iter_mut();
        sources.any(|s| s.connection.is_at_limit() && s.consumer.peek(s.connection.ring()).is_some())
    }

    pub(super) fn arm(&self, armed: bool) {
        for source in &self.sources {
            let ring = source.connection.ring();
            match armed && self.early_wake {
                true => ring::arm_early(ring),
                false => ring::arm(ring, armed),
            }
        }
    }

    pub(super) fn is_expecting(&self) -> bool {
        self.early_wake && self.sources.iter().any(|s| ring::is_filling(s.connection.ring()))
    }

    /// Removes publishers that are gone and whose queues are empty.
    pub(super) fn forget_dead(&mut self) {
        let mut i = 0;
        while i < self.sources.len() {
            let s = &mut self.sources[i];
            if s.connection.has_ended() && s.consumer.peek(s.connection.ring()).is_none() {
                self.forget(i);
            } else {
                i += 1;
            }
        }
    }

    pub(super) fn forget(&mut self, i: usize) {
        let source = self.sources.remove(i);
        if source.last > 0 {
            if self.left.len() >= MAX_LEFT {
                self.left.pop_front();
            }
            self.left.push_back((source.connection.publisher, source.last));
        }
        let mut losses = source.losses();
        // Losses arise here only if very many publishers died with unread messages.
        losses.add(
            DropReason::QueueFull,
            source.consumer.backlog(source.connection.ring()),
        );
        self.departed.merge(&losses);
    }
}

impl Source {
    /// Losses of its publisher's messages, at the publisher and in this process.
    pub(super) fn losses(&self) -> Losses {
        let mut losses = self.connection.losses();
        losses.add(DropReason::Malformed, self.malformed);
        losses.add(DropReason::HoldLimit, self.held_too_many);
        losses.add(DropReason::MemoryShort, self.unmapped);
        losses
    }

    /// Takes the oldest message, and finds its segment.
    #[inline(always)]
    fn next(&mut self) -> Option<(Taken, Result<Arc<PeerSegment>, Unreadable>)> {
        // Each failure means that the publisher dropped the message in the meantime. The bound stops a hostile
        // publisher.
        for _ in 0..=self.connection.geometry.depth() {
            let next = self.consumer.next(self.connection.ring())?;
            let segment = self.segment(next.entry.segment);
            if let Ok(segment) = &segment
                && segment.exists(next.entry.offset, next.entry.length)
            {
                // The claim has to wait for the cell; this memory is fetched at the same time.
                segment.touch(next.entry.offset, FRONT.min(next.entry.length as usize));
            }
            if self.consumer.claim(self.connection.ring(), &next) {
                return Some((next, segment));
            }
        }
        None
    }

    /// Returns the losses since the last call.
    #[cold]
    fn learn_losses(&mut self) -> Losses {
        let losses = self.connection.losses();
        let lost = losses.since(&self.seen);
        self.seen = losses;
        lost
    }

    /// Returns segment `id`; usually the same as before.
    fn segment(&mut self, id: u64) -> Result<Arc<PeerSegment>, Unreadable> {
        if self.segment.0 == id
            && let Some(segment) = self.segment.1.upgrade()
        {
            return Ok(segment);
        }
        self.find_segment(id)
    }

    #[cold]
    fn find_segment(&mut self, id: u64) -> Result<Arc<PeerSegment>, Unreadable> {
        let segment = self.connection.segment(id)?;
        self.segment = (id, Arc::downgrade(&segment));
        Ok(segment)
    }

    /// Returns when the oldest message that may be taken was queued.
    fn peek(&mut self) -> Option<u64> {
        if self.connection.is_at_limit() {
            None
        } else {
            self.consumer.peek(self.connection.ring())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::inner::MAX_DEAD;
    use super::*;
    use crate::{Bus, BusConfig, PublisherOptions, Stamp, Subscriber, SubscriberOptions, TopicType};
    use std::time::Duration;

    fn topic() -> TopicType {
        TopicType {
            topic: "/t".into(),
            type_name: "t/T".into(),
            type_hash: [1; 16],
            flavour: Default::default(),
            definition: "".into(),
        }
    }

    /// Publishes one message and disconnects.
    fn live_and_die(bus: &Bus, subscriber: &Subscriber) {
        let publisher = bus.publisher(topic(), PublisherOptions::default()).unwrap();
        assert!(subscriber.wait_for_publishers(1, Duration::from_secs(30)));
        publisher
            .publish(publisher.loan(8, &[]).unwrap(), Stamp::default())
            .unwrap();
        drop(publisher);
        while subscriber.publisher_count() > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn queues_of_the_dead_and_their_names_are_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let bus = Bus::open(BusConfig::new(dir.path().join("bus"))).unwrap();
        let subscriber = bus.subscriber(topic(), SubscriberOptions::default()).unwrap();
        for _ in 0..MAX_DEAD + 4 {
            live_and_die(&bus, &subscriber);
        }
        let queued = subscriber.core.lock().sources.len();
        assert_eq!(queued, MAX_DEAD + 1, "the last died after it was let in");
        let taken = std::iter::from_fn(|| subscriber.take().unwrap()).count();
        assert_eq!(taken, queued);
        assert_eq!(subscriber.stats().drops.count(DropReason::QueueFull), 3);
        for _ in 0..MAX_LEFT {
            live_and_die(&bus, &subscriber);
            assert!(subscriber.take().unwrap().is_some());
            assert!(subscriber.take().unwrap().is_none());
        }
        assert_eq!(subscriber.core.lock().left.len(), MAX_LEFT);
    }
}
