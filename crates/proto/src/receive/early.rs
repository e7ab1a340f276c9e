//! Fragments that arrive before the one that describes their message.

use super::{Fate, MAX_JUMP, Partial, Receiver};
use crate::body::Sink;
use crate::wire::{DataHead, MoreHead};
use stats::{DropReason, Time};
use std::collections::VecDeque;

/// Bytes of them that are kept for each peer: 60 ms at 16 Mbit/s, or half of the fragments of a camera's image.
const KEPT: usize = 128 << 10;
/// Bytes that each counts in addition to its own.
const EACH: usize = 256;

/// The latest such fragments, oldest first.
#[derive(Default)]
pub(super) struct Early {
    all: VecDeque<(MoreHead, Vec<u8>)>,
    held: usize,
}

impl Early {
    fn keep(&mut self, head: MoreHead, bytes: &[u8]) {
        self.held += bytes.len() + EACH;
        self.all.push_back((head, bytes.to_vec()));
        while self.held > KEPT
            && let Some((_, gone)) = self.all.pop_front()
        {
            self.held -= gone.len() + EACH;
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Those of one message.
    fn take(&mut self, topic: u32, seq: u64) -> Vec<(MoreHead, Vec<u8>)> {
        let is_it = |(h, _): &(MoreHead, Vec<u8>)| (h.topic, h.seq) == (topic, seq);
        if !self.all.iter().any(is_it) {
            return Vec::new();
        }
        let (its, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.all).into_iter().partition(is_it);
        self.all = others.into();
        self.held -= its.iter().map(|(_, b)| b.len() + EACH).sum::<usize>();
        its
    }
}

impl Partial {
    /// The full header of a fragment that relies on the first one for the rest.
    fn more(&self, head: &MoreHead, bytes: &[u8]) -> Result<DataHead, DropReason> {
        let m = &self.message;
        if u64::from(head.offset) + bytes.len() as u64 > m.geometry.total_len().into() {
            return Err(DropReason::Malformed);
        }
        Ok(DataHead {
            topic: head.topic,
            seq: head.seq,
            stamp: m.stamp,
            origin: m.origin,
            offset: head.offset,
            geometry: m.geometry,
            poll: false,
        })
    }
}

impl Receiver {
    /// The full header of a fragment, as described by its message's first one. `None`: the first one has not arrived
    /// and this one is kept for it, or the message is done with.
    ///
    /// An error is a loss that belongs to no topic.
    pub(crate) fn described(
        &mut self,
        head: &MoreHead,
        bytes: &[u8],
    ) -> Result<Option<DataHead>, DropReason> {
        let topic = self.accepted(head.topic)?;
        if let Some(p) = topic.partials.iter().find(|p| p.seq == head.seq) {
            return p.more(head, bytes).map(Some);
        }
        // On a redundant or reliable topic, each fragment describes its message itself.
        let plain = topic.tracker.is_none() && topic.decoder.is_none();
        if !plain || head.seq > topic.window.top().saturating_add(MAX_JUMP) {
            return Err(DropReason::Malformed);
        }
        topic.counts.fragments += 1;
        match topic.window.fate(head.seq) {
            Fate::Open => {
                topic.window.see(head.seq);
                self.early.keep(*head, bytes);
            }
            Fate::Delivered => topic.counts.duplicate_fragments += 1,
            Fate::Dropped | Fate::Ancient => {}
        }
        Ok(None)
    }

    /// A message was begun: adds its fragments that arrived earlier.
    pub(super) fn add_early(
        &mut self,
        now: Time,
        topic: u32,
        seq: u64,
        sink: &mut impl Sink,
    ) -> Result<(), DropReason> {
        for (head, bytes) in self.early.take(topic, seq) {
            let partials = self.topics.get(&topic).map_or(&[][..], |t| &t.partials);
            let Some(at) = partials.iter().position(|p| p.seq == seq) else {
                break;
            };
            let head = partials[at].more(&head, &bytes)?;
            self.add(now, at, &head, &bytes, sink)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_each_is_taken_once() {
        let head = |topic, seq, offset| MoreHead { topic, seq, offset };
        let mut early = Early::default();
        for i in 0..1_000 {
            early.keep(head(u32::from(i % 2 == 0), 5, 1 + i), &[i as u8; 1_400]);
            assert!(early.held <= KEPT && !early.all.is_empty());
        }
        assert!(early.take(0, 4).is_empty() && early.take(2, 5).is_empty());
        let odd = early.take(0, 5);
        assert_eq!(odd.last(), Some(&(head(0, 5, 1_000), vec![231; 1_400])));
        assert!(odd.len() > 30 && early.take(0, 5).is_empty());
        assert!(early.take(1, 5).len() >= odd.len() - 1);
        assert_eq!((early.held, early.all.len()), (0, 0));
        early.keep(head(0, 5, 1), &[0; KEPT]);
        assert!(early.all.is_empty() && early.held == 0, "one that is too long");
    }
}
