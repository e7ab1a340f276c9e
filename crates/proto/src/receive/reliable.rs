//! Outcomes of the messages of a reliable topic, and when its sender is notified.

use super::ranges::Ranges;
use super::window::Fate;
use crate::wire::{Acknowledgement, varint_len};
use core::time::Duration;
use stats::{DropReason, Time};
use std::collections::VecDeque;

/// Messages that may be sent and not settled: an honest sender uses no number further beyond the first unsettled one.
pub(crate) const SPAN: u64 = 4096;
/// Refusals that are remembered until the sender shows that it knows them.
const MOST_REFUSED: usize = 16;
/// How long an acknowledgement waits for others and for a datagram to ride in. It waits for less where datagrams are
/// lost, since the sender there repeats until it arrives.
const DELAY: Duration = Duration::from_millis(25);
const SHORT_DELAY: Duration = Duration::from_millis(5);
/// Most that the fixed part of an acknowledgement takes.
const HEAD: usize = 1 + 4 + 3 * 8 + 8 + 3 * 4;

/// Whether an acknowledgement is owed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Owed {
    #[default]
    Nothing,
    /// At this time at the latest.
    At(Time),
    Now,
}

#[derive(Debug)]
pub(crate) struct Tracker {
    /// All messages below are settled.
    base: u64,
    /// Settled messages from there on.
    settled: Numbers,
    refused: VecDeque<(u64, DropReason)>,
    pub(super) owed: Owed,
}

impl Tracker {
    pub(super) fn new(next_seq: u64) -> Self {
        Tracker {
            base: next_seq,
            settled: Numbers::default(),
            refused: VecDeque::new(),
            owed: Owed::Nothing,
        }
    }

    /// The first message that is not settled.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    pub(super) fn fate(&self, seq: u64) -> Fate {
        if seq >= self.base && !(self.admits(seq) && self.settled.contains(seq)) {
            Fate::Open
        } else if self.refused.iter().any(|(s, _)| *s == seq) {
            Fate::Dropped
        } else {
            Fate::Delivered
        }
    }

    /// Whether an honest sender may use this number.
    pub(super) fn admits(&self, seq: u64) -> bool {
        seq - self.base.min(seq) < SPAN
    }

    /// The message was delivered, or its sender gave it up.
    pub(super) fn settle(&mut self, seq: u64) {
        if seq >= self.base && self.admits(seq) {
            self.settled.insert(seq);
        }
        while self.settled.remove(self.base) {
            self.base += 1;
        }
    }

    /// The message is refused for good. Returns false if too many refusals are still unreported: then it may come
    /// again.
    pub(super) fn refuse(&mut self, seq: u64, reason: DropReason) -> bool {
        if self.fate(seq) != Fate::Open || self.refused.len() >= MOST_REFUSED {
            return false;
        }
        self.refused.push_back((seq, reason));
        self.settle(seq);
        true
    }

    /// The sender will send nothing below `floor`, and knows the outcome of all those messages.
    pub(super) fn forget(&mut self, floor: u64) {
        self.refused.retain(|(seq, _)| *seq >= floor);
    }

    /// Records that an acknowledgement is owed.
    pub(super) fn owe(&mut self, now: Time, lossy: bool) {
        let at = now + if lossy { SHORT_DELAY } else { DELAY };
        self.owed = match self.owed {
            Owed::Nothing => Owed::At(at),
            Owed::At(earlier) => Owed::At(at.min(earlier)),
            Owed::Now => Owed::Now,
        };
    }

    pub(super) fn tick(&mut self, now: Time) {
        if matches!(self.owed, Owed::At(t) if t <= now) {
            self.owed = Owed::Now;
        }
    }

    /// Describes everything, as far as `room` bytes allow. `partial` are the messages of which bytes have arrived, with
    /// their length, in order.
    pub(super) fn describe<'a>(
        &self,
        room: usize,
        partial: impl Iterator<Item = (u64, u32, &'a Ranges)>,
    ) -> Option<Acknowledgement> {
        let mut a = Acknowledgement {
            base: self.base,
            refused: self.refused.iter().copied().collect(),
            ..Acknowledgement::default()
        };
        let refusals: usize = a.refused.iter().map(|(seq, _)| varint_len(*seq) + 1).sum();
        let mut left = room.checked_sub(HEAD + refusals)?;
        let mut spend = |bytes: usize| {
            let fits = bytes <= left;
            left -= if fits { bytes } else { 0 };
            fits
        };
        let mut partial = partial.peekable();
        let mut end = self.base;
        for (from, to) in self.settled.runs(self.base).chain([(u64::MAX, u64::MAX)]) {
            while let Some((seq, total, ranges)) = partial.next_if(|(seq, ..)| *seq < from) {
                let mut missing = Vec::new();
                if !spend(varint_len(seq - self.base) + 2) {
                    return Some(Acknowledgement { top: seq, ..a });
                }
                let mut at = 0;
                for (x, y) in ranges.missing(total) {
                    if !spend(varint_len(u64::from(x - at)) + varint_len(u64::from(y - x))) {
                        break;
                    }
                    missing.push((x, y));
                    at = y;
                }
                if missing.is_empty() && !ranges.covers(total) {
                    return Some(Acknowledgement { top: seq, ..a });
                }
                a.partial.push((seq, missing));
            }
            if from == u64::MAX {
                break;
            }
            if !spend(varint_len(from - end) + varint_len(to - from)) {
                return Some(Acknowledgement { top: from, ..a });
            }
            a.runs.push((from, to));
            end = to;
        }
        Some(a)
    }
}

/// Numbers within one span, with a bit for each, so that gaps in a peer's numbering cost no extra memory.
#[derive(Debug)]
struct Numbers(Box<[u64; WORDS]>);

const WORDS: usize = (SPAN / 64) as usize;

impl Default for Numbers {
    fn default() -> Self {
        Numbers(Box::new([0; WORDS]))
    }
}

impl Numbers {
    fn place(number: u64) -> (usize, u64) {
        ((number / 64) as usize % WORDS, 1 << (number % 64))
    }

    /// `number` must be within the span from the lowest unsettled one.
    fn insert(&mut self, number: u64) {
        let (word, bit) = Self::place(number);
        self.0[word] |= bit;
    }

    /// Returns whether it was there.
    fn remove(&mut self, number: u64) -> bool {
        let (word, bit) = Self::place(number);
        let had = self.0[word] & bit != 0;
        self.0[word] &= !bit;
        had
    }

    fn contains(&self, number: u64) -> bool {
        let (word, bit) = Self::place(number);
        self.0[word] & bit != 0
    }

    /// The runs of consecutive numbers from `base` on.
    fn runs(&self, base: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut at = base;
        core::iter::from_fn(move || {
            let end = base + SPAN;
            let from = (at..end).find(|n| self.contains(*n))?;
            let to = (from..end).find(|n| !self.contains(*n)).unwrap_or(end);
            at = to;
            Some((from, to))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settled_messages_are_reported_until_the_sender_knows() {
        let mut t = Tracker::new(10);
        for seq in [10, 12, 13, 15] {
            t.settle(seq);
        }
        assert!(t.refuse(17, DropReason::TooLarge) && !t.refuse(17, DropReason::TooLarge));
        assert_eq!(
            [9, 10, 11, 13, 17].map(|s| t.fate(s)),
            [
                Fate::Delivered,
                Fate::Delivered,
                Fate::Open,
                Fate::Delivered,
                Fate::Dropped
            ]
        );
        let mut ranges = Ranges::default();
        ranges.insert(100, 200, 16, |_, _| ());
        let partial = || [(14, 300, &ranges)].into_iter();
        let a = t.describe(200, partial()).expect("room");
        assert_eq!(
            (a.base, a.top, a.refused.clone()),
            (11, 0, vec![(17, DropReason::TooLarge)])
        );
        assert_eq!(a.runs, [(12, 14), (15, 16), (17, 18)]);
        assert_eq!(a.partial, [(14, vec![(0, 100), (200, 300)])]);
        // Room for one run, but not for all that is missing.
        let a = t
            .describe(HEAD + 2 + 2 + 3 + 2, partial())
            .expect("room for a little");
        assert_eq!((a.top, a.runs, a.partial), (14, vec![(12, 14)], vec![]));
        assert_eq!(t.describe(HEAD, partial()), None);
        t.forget(18);
        t.settle(11);
        assert_eq!(t.base(), 14);
        assert!(t.admits(14 + SPAN - 1) && !t.admits(14 + SPAN) && t.admits(0));
    }

    #[test]
    fn refusals_wait_until_the_sender_knows_and_are_bounded() {
        let mut t = Tracker::new(0);
        let refused = (1..100)
            .filter(|seq| t.refuse(*seq, DropReason::TooLarge))
            .count();
        assert_eq!((refused, t.refused.len()), (MOST_REFUSED, MOST_REFUSED));
        t.forget(3);
        assert!(t.refuse(50, DropReason::TooLarge) && t.refuse(51, DropReason::TooLarge));
        assert!(!t.refuse(52, DropReason::TooLarge));
    }
}
