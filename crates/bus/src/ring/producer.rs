//! The publisher's end of a ring.

use super::*;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct Slot<T> {
    n: u64,
    cell: u16,
    tag: T,
}

/// The publisher's end, with its private record of the ring. `T` identifies a block for the publisher.
#[derive(Debug)]
pub struct Producer<T> {
    geometry: Geometry,
    next: u64,
    queue: VecDeque<Slot<T>>,
    held: Vec<Slot<T>>,
    free: Vec<u16>,
}

impl<T: Copy> Producer<T> {
    /// The publisher's end of a fresh ring.
    pub fn new(geometry: Geometry) -> Self {
        Producer {
            geometry,
            next: 1,
            queue: VecDeque::with_capacity(geometry.depth()),
            held: Vec::with_capacity(geometry.cells()),
            // `Geometry::MAX` keeps the number of cells far below 65,536.
            free: (0..geometry.cells() as u16).rev().collect(),
        }
    }

    /// Number of queued messages, as of the last [`Producer::reap`].
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Number of messages taken and not released, as of the last [`Producer::reap`].
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Whether the newest message has not been taken yet.
    pub fn waits<M: Memory + ?Sized>(&self, ring: &M) -> bool {
        self.queue.back().is_some_and(|slot| {
            let cell = ring.word(self.geometry.cell(slot.cell));
            cell.load(Ordering::Acquire) == state(slot.n, QUEUED)
        })
    }

    /// Whether the queue has room.
    pub fn has_room(&self) -> bool {
        self.queue.len() < self.geometry.depth()
    }

    /// Whether a cell is free for a push. None is free if the subscriber holds more than it announced.
    pub fn has_cell(&self) -> bool {
        !self.free.is_empty()
    }

    /// Reads what the subscriber took and released. `released` gets each block that the subscriber no longer
    /// has.
    pub fn reap<M: Memory + ?Sized>(&mut self, ring: &M, mut released: impl FnMut(T)) -> Result<(), Hostile> {
        while let Some(front) = self.queue.front() {
            let word = ring.word(self.geometry.cell(front.cell)).load(Ordering::Acquire);
            if word == state(front.n, QUEUED) {
                break;
            }
            let slot = *front;
            self.leave_queue(slot, word, &mut released)?;
        }
        let mut i = 0;
        while let Some(slot) = self.held.get(i).copied() {
            let word = ring.word(self.geometry.cell(slot.cell)).load(Ordering::Acquire);
            if word == state(slot.n, RELEASED) {
                self.held.swap_remove(i);
                self.free.push(slot.cell);
                released(slot.tag);
            } else if word == state(slot.n, TAKEN) {
                i += 1;
            } else {
                return Err(Hostile {
                    cell: slot.cell,
                    state: word,
                    number: slot.n,
                });
            }
        }
        Ok(())
    }

    /// Takes the oldest message back out of the queue and returns its block. `None` if nothing is queued.
    /// Messages that the subscriber takes in the meantime become held.
    pub fn drop_oldest<M: Memory + ?Sized>(
        &mut self,
        ring: &M,
        mut released: impl FnMut(T),
    ) -> Result<Option<T>, Hostile> {
        while let Some(slot) = self.queue.front().copied() {
            let word = ring.word(self.geometry.cell(slot.cell));
            match word.compare_exchange(state(slot.n, QUEUED), state(slot.n, FREE)) {
                Ok(()) => {
                    self.queue.pop_front();
                    self.free.push(slot.cell);
                    return Ok(Some(slot.tag));
                }
                Err(word) => self.leave_queue(slot, word, &mut released)?,
            }
        }
        Ok(None)
    }

    /// Queues a block. Returns false, and does nothing, unless the queue has room and a cell is free.
    #[inline(always)]
    pub fn push<M: Memory + ?Sized>(&mut self, ring: &M, entry: QueueEntry, tag: T) -> bool {
        if !self.has_room() {
            return false;
        }
        let Some(cell) = self.free.pop() else { return false };
        let (n, g) = (self.next, self.geometry);
        self.next += 1;
        // The entry's previous message has left the queue, so a subscriber that reads a mixture fails to take
        // it.
        let fields = [
            (SEGMENT, entry.segment),
            (OFFSET, entry.offset),
            (LENGTH, entry.length | if entry.history { HISTORY } else { 0 }),
            (TIME, entry.time),
            (LOST, entry.lost),
        ];
        for (field, value) in fields {
            ring.word(g.entry(n, field)).store(value, Ordering::Relaxed);
        }
        ring.word(g.cell(cell)).store(state(n, QUEUED), Ordering::Release);
        ring.word(g.entry(n, ENTRY)).store(
            (n & NUMBER_MASK) << CELL_BITS | u64::from(cell),
            Ordering::Release,
        );
        ring.word(TAIL).store(n, Ordering::Release);
        self.queue.push_back(Slot { n, cell, tag });
        true
    }

    /// Reads the cache lines that the next push will read or write, and changes nothing. After a long sleep
    /// they are out of the cache, and there is time to fetch them while a message is being prepared.
    pub fn touch<M: Memory + ?Sized>(&self, ring: &M) {
        let cell = self.free.last().copied().unwrap_or_default();
        let lines = [
            TAIL,
            ARMED,
            self.geometry.entry(self.next, ENTRY),
            self.geometry.cell(cell),
        ];
        let words = lines.map(|line| ring.word(line).load(Ordering::Relaxed));
        std::hint::black_box((words, self.queue.back().map(|slot| slot.n)));
    }

    /// Address where the record of the next push will likely be written.
    pub fn end_of_queue(&self) -> *const () {
        let (first, second) = self.queue.as_slices();
        let last = if second.is_empty() { first } else { second };
        last.as_ptr_range().end.cast()
    }

    /// Reports the subscriber's total losses to it.
    pub fn report_losses<M: Memory + ?Sized>(&self, ring: &M, losses: [u64; LOSS_WORDS]) {
        for (i, n) in losses.into_iter().enumerate() {
            ring.word(LOSSES + i).store(n, Ordering::Release);
        }
    }

    /// All held blocks, as of the last [`Producer::reap`].
    pub fn held_blocks(&self) -> impl Iterator<Item = T> + '_ {
        self.held.iter().map(|s| s.tag)
    }

    /// Maximum number of queued messages.
    pub fn depth(&self) -> usize {
        self.geometry.depth()
    }

    /// All blocks that are queued or held, each group oldest first.
    pub fn blocks(&self) -> impl Iterator<Item = T> + '_ {
        self.queue.iter().chain(&self.held).map(|s| s.tag)
    }

    fn leave_queue(&mut self, slot: Slot<T>, word: u64, released: &mut impl FnMut(T)) -> Result<(), Hostile> {
        if word == state(slot.n, TAKEN) {
            self.held.push(slot);
        } else if word == state(slot.n, RELEASED) {
            self.free.push(slot.cell);
            released(slot.tag);
        } else {
            return Err(Hostile {
                cell: slot.cell,
                state: word,
                number: slot.n,
            });
        }
        self.queue.pop_front();
        Ok(())
    }
}
