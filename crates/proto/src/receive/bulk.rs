//! Large messages that arrive as symbols.
//!
//! Symbols that are part of the message itself are written straight to its block. All symbols are also kept until there
//! are enough of them to compute what was lost; a [`crate::Job`] does that.

use super::ranges::Ranges;
use super::topic::Partial;
use super::{Fate, Receiver};
use crate::body::Sink;
use crate::fountain::{Decoding, Failed, MAX_ID, SPARE, Shape};
use crate::wire::{DataHead, SymbolHead};
use stats::{DropReason, Time};
use std::collections::BTreeSet;

/// Symbols that are kept in addition to those that a job has, in case it needs more.
const LATE: usize = 64;
/// After this many failures, the number of further symbols to wait for before each attempt no longer doubles.
const MOST_DOUBLINGS: u32 = 10;

/// The symbols of one message.
pub(super) struct Collector {
    shape: Shape,
    /// Which pieces of the message itself have arrived, and how many.
    pieces: Vec<bool>,
    count: u32,
    /// The other symbols.
    made: BTreeSet<u32>,
    /// All that no job has had yet.
    fresh: Vec<(u32, Vec<u8>)>,
    /// The symbols of a failed job.
    failed: Option<Failed>,
    failures: u32,
    /// Number of symbols worth an attempt.
    enough: u32,
    job: Option<u64>,
}

impl Collector {
    pub(super) fn new(shape: Shape) -> Self {
        Collector {
            shape,
            pieces: vec![false; shape.source() as usize],
            count: 0,
            made: BTreeSet::new(),
            fresh: Vec::new(),
            failed: None,
            failures: 0,
            enough: shape.source() + SPARE,
            job: None,
        }
    }

    /// Takes a symbol. Returns `Some(false)` if it changes nothing, `None` if there is no such symbol.
    fn add(&mut self, id: u32, bytes: &[u8]) -> Option<bool> {
        if id >= MAX_ID || bytes.len() != usize::from(self.shape.symbol()) {
            return None;
        }
        let full = match self.job {
            Some(_) => self.fresh.len() >= LATE,
            None => self.have() >= self.enough,
        };
        let new = match self.pieces.get_mut(id as usize) {
            Some(piece) => !std::mem::replace(piece, true),
            None if full => false,
            None => self.made.insert(id),
        };
        if new {
            self.count += u32::from(id < self.shape.source());
            if !full {
                self.fresh.push((id, bytes.to_vec()));
            }
        }
        Some(new)
    }

    fn have(&self) -> u32 {
        self.count + self.made.len() as u32
    }

    /// Whether one part in `share` of what is needed has arrived, or the whole message.
    pub(super) fn is_worth(&self, share: u32) -> bool {
        self.is_whole() || self.have() >= self.enough / share
    }

    /// The kept symbols that are part of the message itself, with their place in it.
    pub(super) fn pieces_kept(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.fresh.iter().filter_map(|(id, bytes)| {
            let (from, to) = self.shape.bytes(*id)?;
            Some((from, bytes.get(..(to - from) as usize)?))
        })
    }

    /// Whether the message itself is complete.
    fn is_whole(&self) -> bool {
        self.count == self.shape.source()
    }

    /// Number of symbols still needed, as far as is known.
    pub(super) fn needed(&self) -> u32 {
        match self.job {
            None if !self.is_whole() => self.enough.saturating_sub(self.have()),
            _ => 0,
        }
    }

    /// Share of the message that has arrived.
    pub(super) fn arrived(&self) -> f64 {
        1.0 - f64::from(self.needed()) / f64::from(self.enough)
    }

    /// The computation to run, if it is time.
    fn decoding(&mut self, id: u64) -> Option<Decoding> {
        if self.job.is_some() || self.is_whole() || self.have() < self.enough {
            return None;
        }
        self.job = Some(id);
        let symbols = std::mem::take(&mut self.fresh);
        Some(Decoding::new(self.shape, self.failed.take(), symbols))
    }

    /// Returns the pieces of the computed message that were missing, with their place.
    fn decoded<'a>(&mut self, bytes: &'a [u8]) -> Vec<(u32, &'a [u8])> {
        let (shape, mut missing) = (self.shape, Vec::new());
        for (id, piece) in self.pieces.iter_mut().enumerate().filter(|(_, p)| !**p) {
            if let Some((from, to)) = shape.bytes(id as u32)
                && let Some(bytes) = bytes.get(from as usize..to as usize)
            {
                *piece = true;
                self.count += 1;
                missing.push((from, bytes));
            }
        }
        missing
    }

    fn decode_failed(&mut self, failed: Failed) {
        (self.job, self.failed) = (None, Some(failed));
        self.enough = self.have().saturating_add(1 << self.failures);
        self.failures = (self.failures + 1).min(MOST_DOUBLINGS);
    }
}

/// Stands for the bytes of a message that is received only as symbols.
static NO_BYTES: Ranges = Ranges::NONE;

impl Partial {
    /// Its entry in an acknowledgement: its number of bytes, or of symbols needed, and the bytes that have arrived.
    pub(super) fn described(&self) -> (u64, u32, &Ranges) {
        match &self.collector {
            Some(c) => (self.seq, c.needed(), &NO_BYTES),
            None => (self.seq, self.message.geometry.total_len(), &self.ranges),
        }
    }
}

impl Receiver {
    /// Takes the description of a message that arrives as symbols of `symbol` bytes.
    ///
    /// An error is a loss that belongs to no topic.
    pub(crate) fn object(
        &mut self,
        now: Time,
        head: &DataHead,
        symbol: u16,
        sink: &mut impl Sink,
    ) -> Result<(), DropReason> {
        let lossy = self.lossy;
        let topic = self.accepted(head.topic)?;
        let shape = Shape::new(head.geometry.total_len(), symbol).ok_or(DropReason::Malformed)?;
        let fate = topic.fate(head.seq);
        let tracker = topic.tracker.as_mut().filter(|_| topic.bulk);
        let tracker = tracker.ok_or(DropReason::Malformed)?;
        // Lets its sender know that the description arrived.
        tracker.owe(now, lossy);
        if let Some(p) = topic.partials.iter().find(|p| p.seq == head.seq) {
            let m = &p.message;
            let same = (m.geometry, m.stamp, m.origin) == (head.geometry, head.stamp, head.origin)
                && p.collector.as_ref().is_some_and(|c| c.shape == shape);
            return same.then_some(()).ok_or(DropReason::Malformed);
        }
        match fate {
            Fate::Open if !tracker.admits(head.seq) => Err(DropReason::Malformed),
            Fate::Open => {
                self.open(now, head, Some(shape), sink);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Takes a symbol.
    ///
    /// An error is a loss that belongs to no topic.
    pub(crate) fn symbol(
        &mut self,
        now: Time,
        head: &SymbolHead,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(), DropReason> {
        let lossy = self.lossy;
        let topic = self.accepted(head.topic)?;
        let tracker = topic.tracker.as_mut().ok_or(DropReason::Malformed)?;
        if head.poll {
            tracker.owe(now, lossy);
        }
        topic.counts.fragments += 1;
        let Some(at) = topic.partials.iter().position(|p| p.seq == head.seq) else {
            // Its message is not described yet, or is done with.
            let done = topic.fate(head.seq) != Fate::Open;
            topic.counts.duplicate_fragments += u64::from(done);
            return Ok(());
        };
        let p = &mut topic.partials[at];
        let collector = p.collector.as_mut().ok_or(DropReason::Malformed)?;
        if !collector.add(head.id, bytes).ok_or(DropReason::Malformed)? {
            topic.counts.duplicate_fragments += 1;
            return Ok(());
        }
        p.touched = now;
        let (whole, place) = (collector.is_whole(), collector.shape.bytes(head.id));
        if whole {
            tracker.owe(now, lossy);
        }
        // Without memory for the message, the symbol is only kept.
        if let (Some(slot), Some((from, to))) = (p.slot, place) {
            sink.write(slot, from, &bytes[..(to - from) as usize]);
        }
        self.touched = now;
        if self.settle_in(head.topic, at, sink) && whole {
            self.complete(head.topic, at, sink);
        }
        Ok(())
    }

    /// The next computation to run, under this id.
    pub(crate) fn decoding(&mut self, job: u64) -> Option<Decoding> {
        let partials = self.topics.values_mut().flat_map(|t| &mut t.partials);
        let mut collectors = partials.filter_map(|p| p.collector.as_mut());
        collectors.find_map(|c| c.decoding(job))
    }

    /// The message that this job belongs to.
    fn of_job(&self, job: u64) -> Option<(u32, usize)> {
        self.topics.iter().find_map(|(id, t)| {
            let of_it = |p: &Partial| p.collector.as_ref().is_some_and(|c| c.job == Some(job));
            Some((*id, t.partials.iter().position(of_it)?))
        })
    }

    pub(crate) fn awaits(&self, job: u64) -> bool {
        self.of_job(job).is_some()
    }

    /// A message was computed.
    pub(crate) fn decoded(&mut self, now: Time, job: u64, bytes: &[u8], sink: &mut impl Sink) {
        let (lossy, of_job) = (self.lossy, self.of_job(job));
        let Some((id, at)) = of_job else { return };
        let Some(topic) = self.topics.get_mut(&id) else {
            return;
        };
        let p = &mut topic.partials[at];
        // A message with enough symbols for a job already has memory.
        let Some(slot) = p.slot else { return };
        let missing = p.collector.iter_mut().flat_map(|c| c.decoded(bytes));
        for (from, bytes) in missing {
            sink.write(slot, from, bytes);
            topic.counts.repaired += 1;
        }
        p.touched = now;
        if let Some(tracker) = &mut topic.tracker {
            tracker.owe(now, lossy);
        }
        self.complete(id, at, sink);
    }

    /// The computation failed: more symbols are needed.
    pub(crate) fn decode_failed(&mut self, now: Time, job: u64, failed: Failed) {
        let (lossy, of_job) = (self.lossy, self.of_job(job));
        let Some((id, at)) = of_job else { return };
        let Some(topic) = self.topics.get_mut(&id) else {
            return;
        };
        if let Some(collector) = &mut topic.partials[at].collector {
            collector.decode_failed(failed);
        }
        if let Some(tracker) = &mut topic.tracker {
            tracker.owe(now, lossy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_counted_once_and_a_bounded_number_is_kept() {
        let shape = Shape::new(1_000, 100).expect("fits");
        let mut c = Collector::new(shape);
        let bytes = [7; 100];
        assert_eq!(c.add(0, &bytes[..99]), None);
        assert_eq!(c.add(MAX_ID, &bytes), None);
        assert_eq!((c.add(3, &bytes), c.add(3, &bytes)), (Some(true), Some(false)));
        assert_eq!((c.add(50, &bytes), c.add(50, &bytes)), (Some(true), Some(false)));
        assert_eq!(c.needed(), 10);
        assert!(c.decoding(1).is_none());
        for id in 100..1_000 {
            c.add(id, &bytes);
        }
        assert_eq!((c.needed(), c.fresh.len()), (0, 12), "only what is needed");
        assert!(c.decoding(1).is_some() && c.decoding(2).is_none());
        for id in 1_000..2_000 {
            c.add(id, &bytes);
        }
        assert_eq!((c.needed(), c.fresh.len()), (0, LATE));
        assert!(!c.is_whole());
        for id in 0..10 {
            c.add(id, &bytes);
        }
        assert!(c.is_whole() && c.decoded(&[0; 1_000]).is_empty());
    }
}
