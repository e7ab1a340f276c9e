//! One incoming topic: its partial messages, its counters, and the outcomes of its messages.

use super::bulk::Collector;
use super::parity::Decoder;
use super::ranges::Ranges;
use super::reliable::Tracker;
use super::staging::Staging;
use super::watching::Watching;
use super::window::{Fate, Window};
use crate::announcement::{Announcement, Ordering, Reliability};
use crate::body::{Incoming, Sink, Slot};
use crate::config::PeerId;
use crate::fountain;
use crate::statistics::{Account, ReceiverReport, RemoteTopicStats};
use stats::{DropReason, Drops, Time};

/// A message of which fragments are missing.
pub(crate) struct Partial {
    pub(crate) seq: u64,
    pub(crate) message: Incoming,
    /// Its memory, once enough of it has arrived.
    pub(crate) slot: Option<Slot>,
    /// The bytes that wait for that.
    pub(crate) staging: Staging,
    pub(crate) ranges: Ranges,
    /// When a fragment last added something.
    pub(crate) touched: Time,
    /// Whether it is complete, and waits for those before it.
    pub(crate) whole: bool,
    /// Its symbols, if it is received as symbols.
    pub(super) collector: Option<Collector>,
}

impl Partial {
    /// Its share of the limit on bytes.
    pub(crate) fn cost(&self) -> u64 {
        cost(self.message.geometry.total_len(), self.collector.is_some())
    }

    /// Releases its memory.
    pub(crate) fn release(self, reason: DropReason, sink: &mut impl Sink) {
        if let Some(slot) = self.slot {
            sink.abort(slot, reason);
        }
    }
}

/// The share of the limit on bytes that a message of `bytes` bytes takes.
pub(super) fn cost(bytes: u32, as_symbols: bool) -> u64 {
    u64::from(bytes) * if as_symbols { fountain::MEMORY } else { 1 }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) delivered: u64,
    pub(crate) delivered_bytes: u64,
    pub(crate) fragments: u64,
    pub(crate) duplicate_fragments: u64,
    pub(crate) repaired: u64,
    /// Bytes that waited for their message's memory and were copied into it.
    pub(crate) staged_bytes: u64,
    pub(crate) drops: Drops,
    pub(crate) seen: u64,
    /// Messages that their sender gave up, and counted.
    pub(crate) abandoned: u64,
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.delivered += other.delivered;
        self.delivered_bytes += other.delivered_bytes;
        self.fragments += other.fragments;
        self.duplicate_fragments += other.duplicate_fragments;
        self.repaired += other.repaired;
        self.staged_bytes += other.staged_bytes;
        self.drops.merge(&other.drops);
        self.seen += other.seen;
        self.abandoned += other.abandoned;
    }
}

pub(crate) struct ReceiveTopic {
    pub(crate) name: String,
    pub(crate) edition: u32,
    pub(crate) priority: u8,
    pub(crate) depth: u32,
    pub(crate) ordering: Ordering,
    /// Outcomes of its messages, on a reliable topic.
    pub(crate) tracker: Option<Tracker>,
    /// Whether large messages may arrive as symbols.
    pub(crate) bulk: bool,
    /// Computes lost fragments, on a redundant topic.
    pub(crate) decoder: Option<Decoder>,
    pub(crate) accepted: bool,
    /// Whether it is watched here, if its sender asks.
    pub(crate) watching: Option<Watching>,
    pub(crate) window: Window,
    pub(crate) partials: Vec<Partial>,
    /// Counters of this session of the sender, without what its numbering shows.
    pub(crate) counts: Counts,
    /// Counters of earlier sessions.
    earlier: Counts,
    /// The account that the sender last reported.
    pub(crate) account: Option<Account>,
    newest_delivered: Option<u64>,
    /// The longest message delivered in this session: one of up to that many bytes gets its memory at once.
    pub(crate) proven: u32,
    /// Bytes that its announcement takes.
    pub(crate) announced_bytes: usize,
}

impl ReceiveTopic {
    pub(crate) fn new(next_seq: u64, earlier: Counts) -> Self {
        ReceiveTopic {
            name: String::new(),
            edition: 0,
            priority: 0,
            depth: 1,
            tracker: None,
            bulk: false,
            decoder: None,
            ordering: Ordering::Latest,
            accepted: false,
            watching: None,
            window: Window::new(next_seq),
            partials: Vec::new(),
            counts: Counts::default(),
            earlier,
            account: None,
            newest_delivered: None,
            proven: 0,
            announced_bytes: 0,
        }
    }

    /// Takes the settings that its sender announced; `next_seq` is the number of its next message.
    pub(crate) fn announced(&mut self, a: Announcement, next_seq: u64) {
        (self.name, self.priority, self.depth) = (a.name, a.priority, a.depth);
        self.ordering = a.ordering;
        self.bulk = a.reliability == Reliability::Bulk;
        if a.reliability.keeps() {
            self.tracker.get_or_insert_with(|| Tracker::new(next_seq));
        } else {
            self.tracker = None;
        }
        if a.reliability == Reliability::Redundant {
            self.decoder.get_or_insert_default();
        } else {
            self.decoder = None;
        }
    }

    /// The known fate of a message.
    pub(crate) fn fate(&self, seq: u64) -> Fate {
        match &self.tracker {
            Some(tracker) => tracker.fate(seq),
            None => self.window.fate(seq),
        }
    }

    /// Whether a newer message was delivered, and the topic's ordering forbids older ones.
    pub(crate) fn is_outdated(&self, seq: u64) -> bool {
        let any =
            self.ordering == Ordering::Any || self.ordering == Ordering::InOrder && self.tracker.is_some();
        !any && self.newest_delivered.is_some_and(|n| seq < n)
    }

    /// Whether a complete message has to wait for those before it.
    pub(crate) fn must_wait(&self, seq: u64) -> bool {
        let waits = |t: &Tracker| self.ordering == Ordering::InOrder && seq != t.base();
        self.tracker.as_ref().is_some_and(waits)
    }

    /// The first complete message that waits, but not for those before it.
    pub(crate) fn awaited(&self) -> Option<u64> {
        let whole = self.partials.iter().filter(|p| p.whole).map(|p| p.seq);
        whole.min().filter(|seq| !self.must_wait(*seq))
    }

    /// The complete messages that wait for the sink, and for no other message.
    pub(crate) fn waiting_for_sink(&self) -> Vec<u64> {
        let mut whole: Vec<u64> = self.partials.iter().filter(|p| p.whole).map(|p| p.seq).collect();
        if self.ordering == Ordering::InOrder {
            let base = self.tracker.as_ref().map_or(0, Tracker::base);
            whole.sort_unstable();
            let in_turn = whole.iter().zip(base..).take_while(|(seq, turn)| *seq == turn);
            whole.truncate(in_turn.count());
        }
        whole
    }

    /// Counts a message as lost. A reliable message may come again, unless the sender is notified of the loss.
    pub(crate) fn lost(&mut self, seq: u64, reason: DropReason) {
        if self.tracker.as_mut().is_none_or(|t| t.refuse(seq, reason)) {
            self.window.decide(seq, false);
            self.counts.drops.add(reason, 1);
        }
    }

    /// Counts a partial message as lost and releases its memory. A reliable message is sent again.
    pub(crate) fn give_up(&mut self, p: Partial, reason: DropReason, sink: &mut impl Sink) {
        if self.tracker.is_none() || reason == DropReason::OutOfOrder {
            self.lost(p.seq, reason);
        }
        p.release(reason, sink);
    }

    /// Counts a complete message, and returns the partial ones that it outruns.
    pub(crate) fn deliver(&mut self, seq: u64, bytes: u32, outcome: Result<(), DropReason>) -> Vec<u64> {
        if let Err(reason) = outcome {
            self.lost(seq, reason);
            return Vec::new();
        }
        self.window.decide(seq, true);
        if let Some(tracker) = &mut self.tracker {
            tracker.settle(seq);
        }
        self.counts.delivered += 1;
        self.counts.delivered_bytes += u64::from(bytes);
        self.proven = self.proven.max(bytes);
        self.newest_delivered = self.newest_delivered.max(Some(seq));
        self.partials
            .iter()
            .map(|p| p.seq)
            .filter(|s| self.is_outdated(*s))
            .collect()
    }

    /// The sender gave up a message, and counted it.
    pub(crate) fn abandon(&mut self, seq: u64) {
        self.window.decide(seq, false);
        if let Some(tracker) = &mut self.tracker {
            tracker.settle(seq);
        }
        self.counts.abandoned += 1;
    }

    /// Number of messages of this session of which nothing arrived, by the gaps in the numbering: they are lost on the
    /// air.
    fn gaps(&self) -> u64 {
        let known = self.window.decided() + self.partials.len() as u64;
        self.window.span().saturating_sub(known)
    }

    /// The counters of all sessions.
    pub(crate) fn counts_now(&self) -> Counts {
        let mut counts = self.earlier.clone();
        counts.add(&self.counts);
        counts.drops.add(DropReason::Air, self.gaps());
        counts.seen += self.window.span();
        counts
    }

    /// The report to the sender: only about its own session, since it knows no other.
    pub(crate) fn report(&self) -> ReceiverReport {
        let mut drops = self.counts.drops.clone();
        drops.add(DropReason::Air, self.gaps());
        ReceiverReport {
            delivered: self.counts.delivered,
            abandoned: self.counts.abandoned,
            drops,
        }
    }

    /// The share that has arrived of the oldest message received as symbols.
    fn arrived(&self) -> Option<f64> {
        let bulks = self
            .partials
            .iter()
            .filter_map(|p| Some((p.seq, p.collector.as_ref()?)));
        let (_, oldest) = bulks.min_by_key(|(seq, _)| *seq)?;
        Some(oldest.arrived())
    }

    pub(crate) fn statistics(&self, peer: PeerId) -> RemoteTopicStats {
        let c = self.counts_now();
        RemoteTopicStats {
            peer,
            name: self.name.clone(),
            priority: self.priority,
            accepted: self.accepted,
            watched: self.watching.as_ref().map(Watching::watched),
            delivered: c.delivered,
            delivered_bytes: c.delivered_bytes,
            fragments: c.fragments,
            duplicate_fragments: c.duplicate_fragments,
            repaired_fragments: c.repaired,
            staged_bytes: c.staged_bytes,
            partial: self.partials.len() as u64,
            arrived: self.arrived(),
            drops: c.drops,
            seen: c.seen,
            abandoned: c.abandoned,
            delay: None,
            account: self.account.clone(),
        }
    }
}
