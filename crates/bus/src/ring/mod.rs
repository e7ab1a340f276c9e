//! The ring between one publisher and one subscriber, generic over its memory so that loom can model it.
//!
//! The subscriber may write any word at any time, so the publisher keeps its own record of what stands where
//! (in [`Producer`]) and takes from the ring only the states of cells, of which it accepts only those that its
//! record allows. The publisher may be hostile too, so a [`Consumer`] bounds every index and every loop.
//!
//! A cell's state is one word with the push's number in it: a take that raced with a drop and a reuse of the
//! same cell therefore fails, instead of taking half of each message.

mod consumer;
mod producer;
#[cfg(test)]
mod tests;

pub use consumer::{Consumer, Taken};
pub use producer::Producer;

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// A 64-bit word shared with another process.
pub trait Word {
    /// Loads it.
    fn load(&self, order: Ordering) -> u64;
    /// Stores `value`.
    fn store(&self, value: u64, order: Ordering);
    /// Stores `value` and gives what was there.
    fn swap(&self, value: u64, order: Ordering) -> u64;
    /// Stores `new` if it holds `current`; otherwise gives what it holds.
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
    /// Their type.
    type Word: Word;
    /// Word `index`, which is less than [`Geometry::words`].
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

/// The number of loss counters in the header.
pub const LOSS_WORDS: usize = 5;

// Words of the header. Each group has a cache line of its own, by who writes it.
const LINE: usize = 8;
const TAIL: usize = 0;
const LOSSES: usize = 1;
const ARMED: usize = 8;
const CLOSING: usize = 9;
const ORDER: usize = 16;
// Words of an entry of the queue, which fills one cache line. Only the publisher writes it.
const ENTRY: usize = 0;
const SEGMENT: usize = 1;
const OFFSET: usize = 2;
const LENGTH: usize = 3;
const TIME: usize = 4;
const LOST: usize = 5;
/// In a cell's length: the message was published before the subscriber joined.
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

/// How large a ring is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    depth: u32,
    cells: u32,
}

impl Geometry {
    /// Most messages queued, and most held.
    pub const MAX: u32 = 4096;

    /// A queue of `depth` messages, beside `max_held` that are taken and not released; both from 1 to
    /// [`Geometry::MAX`].
    pub fn new(depth: u32, max_held: u32) -> Option<Geometry> {
        let range = 1..=Self::MAX;
        // Only then does the sum not overflow.
        (range.contains(&depth) && range.contains(&max_held)).then(|| Geometry {
            depth,
            cells: depth + max_held,
        })
    }

    /// Most messages queued.
    pub fn depth(self) -> usize {
        self.depth as usize
    }

    /// Most messages queued and held.
    pub fn cells(self) -> usize {
        self.cells as usize
    }

    /// How many words the ring has.
    pub fn words(self) -> usize {
        self.first_cell() + self.cells() * LINE
    }

    fn first_cell(self) -> usize {
        ORDER + self.depth() * LINE
    }

    /// The state of a cell, which has a cache line of its own.
    fn cell(self, cell: u16) -> usize {
        self.first_cell() + usize::from(cell) * LINE
    }

    /// A word of the queue's entry for push `n`.
    fn entry(self, n: u64, field: usize) -> usize {
        ORDER + (n % u64::from(self.depth)) as usize * LINE + field
    }
}

/// Where a message stands, and when it was queued (`CLOCK_MONOTONIC`, ns).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The publisher's number of the segment.
    pub segment: u64,
    /// The block's first byte in it.
    pub offset: u64,
    /// The block's length.
    pub length: u64,
    /// When it was queued.
    pub time: u64,
    /// How many messages this subscriber had lost by then, for whatever reason.
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
    /// The push that the publisher's record has there.
    pub number: u64,
}

/// Gives the cell of push `number` back to the publisher.
pub fn release<M: Memory + ?Sized>(ring: &M, geometry: Geometry, cell: u16, number: u64) {
    ring.word(geometry.cell(cell))
        .store(state(number, RELEASED), Ordering::Release);
}

/// What the publisher says was lost.
pub fn losses<M: Memory + ?Sized>(ring: &M) -> [u64; LOSS_WORDS] {
    std::array::from_fn(|i| ring.word(LOSSES + i).load(Ordering::Acquire))
}

/// Tells the publisher that nothing more will be taken.
pub fn close<M: Memory + ?Sized>(ring: &M) {
    ring.word(CLOSING).store(1, Ordering::Release);
}

/// Whether the subscriber will take no more.
pub fn is_closing<M: Memory + ?Sized>(ring: &M) -> bool {
    ring.word(CLOSING).load(Ordering::Relaxed) != 0
}

/// Asks for the doorbell to be rung at the next push, or not.
pub fn arm<M: Memory + ?Sized>(ring: &M, armed: bool) {
    ring.word(ARMED).store(u64::from(armed), Ordering::Relaxed);
}

/// Whether the next push rings the doorbell.
pub fn is_armed<M: Memory + ?Sized>(ring: &M) -> bool {
    ring.word(ARMED).load(Ordering::Acquire) != 0
}

/// Whether the doorbell must be rung; it then is not armed any more. The publisher calls [`Memory::fence`]
/// between its pushes and this.
pub fn disarm<M: Memory + ?Sized>(ring: &M) -> bool {
    let armed = ring.word(ARMED);
    armed.load(Ordering::Relaxed) != 0 && armed.swap(0, Ordering::AcqRel) != 0
}

/// What wakes a sleeper.
pub trait Bell {
    /// Makes it readable.
    fn ring(&self);
    /// Makes it unreadable.
    fn drain(&self);
}

/// Puts a waiter to rest if `ready` finds nothing: gives false, and the next push to any of its rings rings the
/// bell. Otherwise the bell is rung or about to be, and it gives true.
///
/// The order is the whole point. Draining after arming could swallow the only ring for a message; looking again
/// before the fence could miss one that was pushed without a ring.
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
