//! The subscriber's end of a ring.

use super::*;

/// A message that was taken from a ring, to be returned with [`release`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Number of the push.
    pub number: u64,
    /// Index of its cell in the ring.
    pub cell: u16,
    /// Location of the block, unchecked.
    pub entry: QueueEntry,
}

/// The subscriber's end.
#[derive(Debug)]
pub struct Consumer {
    geometry: Geometry,
    cursor: u64,
}

impl Consumer {
    /// The subscriber's end of a fresh ring.
    pub fn new(geometry: Geometry) -> Self {
        Consumer { geometry, cursor: 1 }
    }

    /// Takes the oldest message.
    pub fn take<M: Memory + ?Sized>(&mut self, ring: &M) -> Option<Taken> {
        // Each failure means that the publisher dropped the message in the meantime.
        for _ in 0..self.patience() {
            let next = self.next(ring)?;
            if self.claim(ring, &next) {
                return Some(next);
            }
        }
        None
    }

    /// Returns the oldest message, to be [claimed](Consumer::claim). Until then the publisher may drop it at
    /// any time.
    ///
    /// Reading the block ahead of the claim costs nothing, because the claim would have to wait for the cell anyway.
    pub fn next<M: Memory + ?Sized>(&mut self, ring: &M) -> Option<Taken> {
        let cell = self.front(ring)?;
        let field = |i| {
            ring.word(self.geometry.entry(self.cursor, i))
                .load(Ordering::Relaxed)
        };
        let length = field(LENGTH);
        Some(Taken {
            number: self.cursor,
            cell,
            entry: QueueEntry {
                segment: field(SEGMENT),
                offset: field(OFFSET),
                length: length & !HISTORY,
                time: field(TIME),
                lost: field(LOST),
                history: length & HISTORY != 0,
            },
        })
    }

    /// Takes the message that [`Consumer::next`] returned. Returns false if the publisher dropped it. In both
    /// cases the cursor moves on.
    ///
    /// An entry is overwritten only after its message left the queue. So if the claim succeeds, everything
    /// that was read before from the entry and from the block is consistent.
    pub fn claim<M: Memory + ?Sized>(&mut self, ring: &M, next: &Taken) -> bool {
        self.cursor = next.number.saturating_add(1);
        ring.word(self.geometry.cell(next.cell))
            .compare_exchange(state(next.number, QUEUED), state(next.number, TAKEN))
            .is_ok()
    }

    /// Returns when the oldest message was queued, if there is one. The message may be gone by the time it is
    /// taken.
    pub fn peek<M: Memory + ?Sized>(&mut self, ring: &M) -> Option<u64> {
        for _ in 0..self.patience() {
            let cell = self.front(ring)?;
            let time = ring
                .word(self.geometry.entry(self.cursor, TIME))
                .load(Ordering::Relaxed);
            let word = ring.word(self.geometry.cell(cell)).load(Ordering::Acquire);
            if word == state(self.cursor, QUEUED) {
                return Some(time);
            }
            self.cursor = self.cursor.saturating_add(1);
        }
        None
    }

    /// Number of messages that were pushed and neither taken nor skipped. Some of them may have been dropped.
    pub fn backlog<M: Memory + ?Sized>(&self, ring: &M) -> u64 {
        let tail = ring.word(TAIL).load(Ordering::Acquire);
        (tail.saturating_add(1))
            .saturating_sub(self.cursor)
            .min(self.geometry.depth() as u64)
    }

    /// Moves the cursor to the oldest push that may still be queued, and returns its cell.
    ///
    /// It reads the tail only if the entry does not settle the matter. So a subscriber that keeps up shares
    /// two cache lines with its publisher for each message, entry and cell, and one that only polls reads
    /// only the first.
    fn front<M: Memory + ?Sized>(&mut self, ring: &M) -> Option<u16> {
        let g = self.geometry;
        for _ in 0..self.patience() {
            let entry = ring.word(g.entry(self.cursor, ENTRY)).load(Ordering::Acquire);
            let number = entry >> CELL_BITS;
            if number != self.cursor & NUMBER_MASK {
                // The entry is from one lap ago: the push has not arrived.
                if number == self.cursor.saturating_sub(u64::from(g.depth)) & NUMBER_MASK {
                    return None;
                }
                self.catch_up(ring)?;
                continue;
            }
            let cell = (entry & ((1 << CELL_BITS) - 1)) as u16;
            if usize::from(cell) < g.cells() {
                return Some(cell);
            }
            self.cursor = self.cursor.saturating_add(1);
        }
        None
    }

    /// The entry at the cursor was overwritten by a later push.
    #[cold]
    fn catch_up<M: Memory + ?Sized>(&mut self, ring: &M) -> Option<()> {
        let depth = u64::from(self.geometry.depth);
        let tail = ring.word(TAIL).load(Ordering::Acquire);
        let ahead = tail.checked_sub(self.cursor)?;
        if ahead >= depth {
            // The queue is never longer than `depth`, so older messages were dropped.
            self.cursor = tail - depth + 1;
        }
        Some(())
    }

    /// Number of retries. A correct publisher never uses them up; a hostile one must not keep the subscriber
    /// here forever.
    fn patience(&self) -> usize {
        4 * self.geometry.depth() + 16
    }
}
