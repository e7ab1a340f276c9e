//! Losses on the bus by reason, in a form that the hot path can copy without allocating.

use stats::{DropReason, Drops};

/// The reasons for which the bus itself loses messages. The index is the one in the ring's header.
pub(crate) const REASONS: [DropReason; 5] = [
    DropReason::QueueFull,
    DropReason::HoldLimit,
    DropReason::MemoryShort,
    DropReason::PeerStalled,
    DropReason::Malformed,
];

/// Losses by reason. `Copy` and of fixed size; [`Losses::drops`] converts it to the common form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses([u64; REASONS.len()]);

impl Losses {
    /// Number of messages lost for `reason`.
    pub fn count(&self, reason: DropReason) -> u64 {
        REASONS.iter().position(|r| *r == reason).map_or(0, |i| self.0[i])
    }

    /// Total number of messages lost.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |a, b| a.saturating_add(*b))
    }

    /// Whether nothing was lost.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// The same counts in the form that every other crate uses.
    pub fn drops(&self) -> Drops {
        let mut drops = Drops::default();
        for (reason, n) in REASONS.iter().zip(self.0) {
            drops.add(*reason, n);
        }
        drops
    }

    pub(crate) fn add(&mut self, reason: DropReason, n: u64) {
        if let Some(i) = REASONS.iter().position(|r| *r == reason) {
            self.0[i] = self.0[i].saturating_add(n);
        }
    }

    pub(crate) fn merge(&mut self, other: &Losses) {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a = a.saturating_add(b);
        }
    }

    pub(crate) fn since(&self, earlier: &Losses) -> Losses {
        Losses(std::array::from_fn(|i| self.0[i].saturating_sub(earlier.0[i])))
    }

    pub(crate) fn get(&self, index: usize) -> u64 {
        self.0[index]
    }

    pub(crate) fn from_counts(counts: [u64; REASONS.len()]) -> Losses {
        Losses(counts)
    }
}
