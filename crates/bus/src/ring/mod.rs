//! The ring between one publisher and one subscriber, generic over its memory so that loom can model it.
//!
//! The subscriber may write to any word at any time. So the publisher keeps its own record of the ring (in
//! [`Producer`]). It reads only the states of cells from the ring, and accepts only those that its record
//! allows. The publisher may be hostile too, so a [`Consumer`] bounds every index and every loop.
//!
//! A cell's state is one word that contains the push's number. A take that races with a drop and a reuse of
//! the same cell therefore fails instead of mixing two messages (decision 010).

mod consumer;
mod producer;
#[cfg(test)]
mod tests;

pub use consumer::{Consumer, Taken};
pub use producer::Producer;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// A 64-bit word shared with another process.
pub trait Word {
    /// Loads it.
    fn load(&self, order: Ordering) -> u64;
    /// Stores `value`.
    fn store(&self, value: u64, order: Ordering);
    /// Stores `value` and returns the previous value.
    fn swap(&self, value: u64, order: Ordering) -> u64;
    /// Stores `new` if it holds `current`; otherwise returns what it holds.
    fn compare_exchange(&self, current: u64, new: u64) -> Result<(), u64>;
}

impl Word for AtomicU64 {
    fn load(&self, order: Ordering) -> u64 {
        AtomicU64::load(self, order)
    }
    fn store(&self, value: u64, order: Ordering) {
        AtomicU64::store(self, value, order);
    }
    fn swap(&self, value: u64, order: Ordering) -> u64 {
        AtomicU64::swap(self, value, order)
    }
    fn compare_exchange(&self, current: u64, new: u64) -> Result<(), u64> {
        AtomicU64::compare_exchange(self, current, new, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
    }
}

/// The words of a ring.
pub trait Memory {
    /// The type of the words.
    type Word: Word;
    /// Returns word `index`, which is less than [`Geometry::words`].
    fn word(&self, index: usize) -> &Self::Word;
    /// A sequentially consistent fence.
    fn fence();
}

impl Memory for [AtomicU64] {
    type Word = AtomicU64;
    fn word(&self, index: usize) -> &AtomicU64 {
        &self[index]
    }
    fn fence() {
        fence(Ordering::SeqCst);
    }
}

/// Number of loss counters in the header.
pub const LOSS_WORDS: usize = 5;

// Words of the header. Words with different writers are in different cache lines.
const LINE: usize = 8;
const TAIL: usize = 0;
const LOSSES: usize = 1;
const ARMED: usize = 8;
const CLOSING: usize = 9;
const ORDER: usize = 16;
// Words of an entry of the queue, which fills one cache line. Only the publisher writes to it.
const ENTRY: usize = 0;
const SEGMENT: usize = 1;
const OFFSET: usize = 2;
const LENGTH: usize = 3;
const TIME: usize = 4;
const LOST: usize = 5;
/// Flag in a cell's length: the message was published before the subscriber joined.
const HISTORY: u64 = 1 << 63;

const FREE: u64 = 0;
const QUEUED: u64 = 1;
const TAKEN: u64 = 2;
const RELEASED: u64 = 3;

const fn state(n: u64, tag: u64) -> u64 {
    n << 2 | tag
}

const CELL_BITS: u32 = 16;
const NUMBER_MASK: u64 = u64::MAX >> CELL_BITS;

/// Size of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    depth: u32,
    cells: u32,
}

impl Geometry {
    /// Maximum number of queued messages, and of held messages.
    pub const MAX: u32 = 4096;

    /// A queue of `depth` messages plus `max_held` messages that are taken and not released; both from 1 to
    /// [`Geometry::MAX`].
    pub fn new(depth: u32, max_held: u32) -> Option<Geometry> {
        let range = 1..=Self::MAX;
        // This check keeps the sum from overflowing.
        (range.contains(&depth) && range.contains(&max_held)).then(|| Geometry {
            depth,
            cells: depth + max_held,
        })
    }

    /// Maximum number of queued messages.
    pub fn depth(self) -> usize {
        self.depth as usize
    }

    /// Maximum number of queued and held messages.
    pub fn cells(self) -> usize {
        self.cells as usize
    }

    /// Number of words of the ring.
    pub fn words(self) -> usize {
        self.first_cell() + self.cells() * LINE
    }

    fn first_cell(self) -> usize {
        ORDER + self.depth() * LINE
    }

    /// Index of a cell's state. Each cell has its own cache line.
    fn cell(self, cell: u16) -> usize {
        self.first_cell() + usize::from(cell) * LINE
    }

    /// Index of a word of the queue's entry for push `n`.
    fn entry(self, n: u64, field: usize) -> usize {
        ORDER + (n % u64::from(self.depth)) as usize * LINE + field
    }
}

/// Location of a message, and when it was queued (`CLOCK_MONOTONIC`, ns).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueEntry {
    /// The publisher's number for the segment.
    pub segment: u64,
    /// Offset of the block in the segment.
    pub offset: u64,
    /// Length of the block.
    pub length: u64,
    /// When it was queued.
    pub time: u64,
    /// How many messages this subscriber had lost by then, for any reason.
    pub lost: u64,
    /// Whether it was published before this subscriber joined.
    pub history: bool,
}

/// The subscriber wrote something that no correct subscriber writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hostile {
    /// The cell.
    pub cell: u16,
    /// What it held.
    pub state: u64,
    /// The push that the publisher's record has in that cell.
    pub number: u64,
}

impl fmt::Display for Hostile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Hostile { cell, state, number } = self;
        write!(
            f,
            "it wrote an impossible state ({state:#x}) into cell {cell} of its ring, which holds message {number}"
        )
    }
}

/// Returns the cell of push `number` to the publisher.
pub fn release<M: Memory + ?Sized>(ring: &M, geometry: Geometry, cell: u16, number: u64) {
    ring.word(geometry.cell(cell))
        .store(state(number, RELEASED), Ordering::Release);
}

/// The losses that the publisher reports.
pub fn losses<M: Memory + ?Sized>(ring: &M) -> [u64; LOSS_WORDS] {
    std::array::from_fn(|i| ring.word(LOSSES + i).load(Ordering::Acquire))
}

/// Notifies the publisher that this subscriber takes no further messages.
pub fn close<M: Memory + ?Sized>(ring: &M) {
    ring.word(CLOSING).store(1, Ordering::Release);
}

/// Whether the subscriber takes no further messages.
pub fn is_closing<M: Memory + ?Sized>(ring: &M) -> bool {
    ring.word(CLOSING).load(Ordering::Relaxed) != 0
}

/// The next push rings the doorbell, and so does the next loan (decision 049).
const EARLY: u64 = 2;

/// Sets whether the next push rings the doorbell.
pub fn arm<M: Memory + ?Sized>(ring: &M, armed: bool) {
    ring.word(ARMED).store(u64::from(armed), Ordering::Relaxed);
}

/// Arms the doorbell, and asks for a ring when the publisher begins to fill a message, too.
pub fn arm_early<M: Memory + ?Sized>(ring: &M) {
    ring.word(ARMED).store(EARLY, Ordering::Relaxed);
}

/// Returns whether the doorbell must be rung because a message is about to be filled, once after each
/// [`arm_early`]. It stays armed.
pub fn wakes_early<M: Memory + ?Sized>(ring: &M) -> bool {
    let armed = ring.word(ARMED);
    armed.load(Ordering::Relaxed) == EARLY && armed.compare_exchange(EARLY, 1).is_ok()
}

/// Whether the doorbell has been rung for a message that is being filled and not pushed yet. For rings that were armed
/// with [`arm_early`].
pub fn is_filling<M: Memory + ?Sized>(ring: &M) -> bool {
    ring.word(ARMED).load(Ordering::Relaxed) == 1
}

/// Whether the next push rings the doorbell.
pub fn is_armed<M: Memory + ?Sized>(ring: &M) -> bool {
    ring.word(ARMED).load(Ordering::Acquire) != 0
}

/// Disarms the doorbell and returns whether it must be rung. The publisher calls [`Memory::fence`] between
/// its pushes and this.
pub fn disarm<M: Memory + ?Sized>(ring: &M) -> bool {
    let armed = ring.word(ARMED);
    armed.load(Ordering::Relaxed) != 0 && armed.swap(0, Ordering::AcqRel) != 0
}

/// Wakes a sleeper.
pub trait Bell {
    /// Makes it readable.
    fn ring(&self);
    /// Makes it unreadable.
    fn drain(&self);
}

/// Arms the rings before a waiter sleeps. Returns false if `ready` finds nothing; the next push to any of its
/// rings then rings the bell. Otherwise returns true, and the bell is rung or about to be.
///
/// The order matters. Draining after arming could swallow the only ring for a message; checking again before
/// the fence could miss a message that was pushed without a ring.
pub fn rearm(
    bell: &impl Bell,
    mut ready: impl FnMut() -> bool,
    mut arm: impl FnMut(bool),
    fence: impl FnOnce(),
) -> bool {
    if ready() {
        return true;
    }
    bell.drain();
    arm(true);
    fence();
    if ready() {
        arm(false);
        bell.ring();
        return true;
    }
    false
}
