//! The ring between one publisher and one subscriber, generic over its memory so that loom can model it.
//!
//! The subscriber may write any word at any time, so the publisher keeps its own record of what stands where
//! (in [`Producer`]) and takes from the ring only the states of cells, of which it accepts only those that its
//! record allows. The publisher may be hostile too, so a [`Consumer`] bounds every index and every loop.
//!
//! A cell's state is one word with the push's number in it: a take that raced with a drop and a reuse of the
//! same cell therefore fails, instead of taking half of each message.

use std::collections::VecDeque;
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

#[derive(Clone, Copy, Debug)]
struct Slot<T> {
    n: u64,
    cell: u16,
    tag: T,
}

/// The publisher's end, and its private truth about the ring. `T` names a block in the publisher's own terms.
#[derive(Debug)]
pub struct Producer<T> {
    geometry: Geometry,
    next: u64,
    queue: VecDeque<Slot<T>>,
    held: Vec<Slot<T>>,
    free: Vec<u16>,
}

impl<T: Copy> Producer<T> {
    /// A publisher's end of a fresh ring.
    pub fn new(geometry: Geometry) -> Self {
        Producer {
            geometry,
            next: 1,
            queue: VecDeque::with_capacity(geometry.depth()),
            held: Vec::with_capacity(geometry.cells()),
            // Cells are far fewer than 65,536, by `Geometry::MAX`.
            free: (0..geometry.cells() as u16).rev().collect(),
        }
    }

    /// Messages queued, as of the last [`Producer::reap`].
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Messages taken and not released, as of the last [`Producer::reap`].
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Whether the queue has room.
    pub fn has_room(&self) -> bool {
        self.queue.len() < self.geometry.depth()
    }

    /// Whether a cell is left for a push: none is when the subscriber holds more than it said it would.
    pub fn has_cell(&self) -> bool {
        !self.free.is_empty()
    }

    /// Learns what the subscriber took and released; `released` gets each block that it keeps no longer.
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

    /// Takes the oldest message back out of the queue, and gives its block. `None` if nothing is queued; what
    /// the subscriber takes in the meantime becomes held.
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

    /// Queues a block. False, and nothing is done, unless the queue has room and a cell is free.
    #[inline(always)]
    pub fn push<M: Memory + ?Sized>(&mut self, ring: &M, place: Place, tag: T) -> bool {
        if !self.has_room() {
            return false;
        }
        let Some(cell) = self.free.pop() else { return false };
        let (n, g) = (self.next, self.geometry);
        self.next += 1;
        // What stood in this entry has left the queue, so whoever reads a mixture fails to take it.
        let fields = [
            (SEGMENT, place.segment),
            (OFFSET, place.offset),
            (LENGTH, place.length | if place.history { HISTORY } else { 0 }),
            (TIME, place.time),
            (LOST, place.lost),
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

    /// Reads what the next push will write or read, and changes nothing: after a long sleep its cache lines are far
    /// away, and whoever prepares a message has the time to fetch them.
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

    /// Where the record of the next push will likely be written.
    pub fn end_of_queue(&self) -> *const () {
        let (first, second) = self.queue.as_slices();
        let last = if second.is_empty() { first } else { second };
        last.as_ptr_range().end.cast()
    }

    /// Tells the subscriber the sums of what it lost.
    pub fn tell_losses<M: Memory + ?Sized>(&self, ring: &M, losses: [u64; LOSS_WORDS]) {
        for (i, n) in losses.into_iter().enumerate() {
            ring.word(LOSSES + i).store(n, Ordering::Release);
        }
    }

    /// Every block that is held, as of the last [`Producer::reap`].
    pub fn held_blocks(&self) -> impl Iterator<Item = T> + '_ {
        self.held.iter().map(|s| s.tag)
    }

    /// The most messages queued.
    pub fn depth(&self) -> usize {
        self.geometry.depth()
    }

    /// Every block that stands in the queue or is held, oldest first within each.
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

/// A message that was taken from a ring, to be given back with [`release`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Which push it was.
    pub number: u64,
    /// Where it stands in the ring.
    pub cell: u16,
    /// Where the block stands, unchecked.
    pub place: Place,
}

/// The subscriber's end.
#[derive(Debug)]
pub struct Consumer {
    geometry: Geometry,
    cursor: u64,
}

impl Consumer {
    /// A subscriber's end of a fresh ring.
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

    /// The oldest message, to be [claimed](Consumer::claim). Until then it may be dropped at any time.
    ///
    /// Reading ahead what it points to costs nothing where the claim would have to wait for the cell anyway.
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
            place: Place {
                segment: field(SEGMENT),
                offset: field(OFFSET),
                length: length & !HISTORY,
                time: field(TIME),
                lost: field(LOST),
                history: length & HISTORY != 0,
            },
        })
    }

    /// Takes what [`Consumer::next`] gave; false if the publisher dropped it. Either way the next is another.
    ///
    /// An entry is overwritten only after its message left the queue. So if the claim succeeds, what was read of
    /// the entry, and of the block, before it was whole.
    pub fn claim<M: Memory + ?Sized>(&mut self, ring: &M, next: &Taken) -> bool {
        self.cursor = next.number.saturating_add(1);
        ring.word(self.geometry.cell(next.cell))
            .compare_exchange(state(next.number, QUEUED), state(next.number, TAKEN))
            .is_ok()
    }

    /// When the oldest message was queued, if there is one. It may be gone by the time it is taken.
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

    /// How many messages were pushed and neither taken nor passed over; some of them may have been dropped.
    pub fn backlog<M: Memory + ?Sized>(&self, ring: &M) -> u64 {
        let tail = ring.word(TAIL).load(Ordering::Acquire);
        (tail.saturating_add(1))
            .saturating_sub(self.cursor)
            .min(self.geometry.depth() as u64)
    }

    /// Moves the cursor to the oldest push that may still be queued, and gives its cell.
    ///
    /// The tail is looked at only when the entry does not settle it. So a subscriber that keeps up shares two
    /// cache lines with its publisher for each message, entry and cell, and one that polls only reads the first.
    fn front<M: Memory + ?Sized>(&mut self, ring: &M) -> Option<u16> {
        let g = self.geometry;
        for _ in 0..self.patience() {
            let entry = ring.word(g.entry(self.cursor, ENTRY)).load(Ordering::Acquire);
            let number = entry >> CELL_BITS;
            if number != self.cursor & NUMBER_MASK {
                // What stood there a lap ago: the push has not come.
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
            // The queue is never longer than `depth`, so what lies further back was dropped.
            self.cursor = tail - depth + 1;
        }
        Some(())
    }

    /// How often to try again. A correct publisher never uses it up; a hostile one must not keep us for ever.
    fn patience(&self) -> usize {
        4 * self.geometry.depth() + 16
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(g: Geometry) -> Vec<AtomicU64> {
        (0..g.words()).map(|_| AtomicU64::new(0)).collect()
    }

    fn push(p: &mut Producer<u32>, ring: &[AtomicU64], tag: u32) -> bool {
        p.push(
            ring,
            Place {
                offset: u64::from(tag),
                ..Place::default()
            },
            tag,
        )
    }

    #[test]
    fn messages_come_in_order_and_return_when_released() {
        let g = Geometry::new(3, 2).unwrap();
        let ring = memory(g);
        let (mut p, mut c) = (Producer::new(g), Consumer::new(g));
        for tag in 0..3 {
            assert!(push(&mut p, &ring, tag));
        }
        assert!(!push(&mut p, &ring, 3), "the queue is full");
        let a = c.take(&ring[..]).unwrap();
        let b = c.take(&ring[..]).unwrap();
        assert_eq!((a.place.offset, b.place.offset), (0, 1));
        p.reap(&ring[..], |_| panic!("nothing was released")).unwrap();
        assert_eq!((p.queued(), p.held()), (1, 2));
        release(&ring[..], g, a.cell, a.number);
        let mut freed = vec![];
        p.reap(&ring[..], |t| freed.push(t)).unwrap();
        assert_eq!(freed, [0]);
        assert_eq!((p.queued(), p.held()), (1, 1));
    }

    #[test]
    fn dropping_the_oldest_leaves_the_newest() {
        let g = Geometry::new(2, 1).unwrap();
        let ring = memory(g);
        let (mut p, mut c) = (Producer::new(g), Consumer::new(g));
        for tag in 0..7 {
            if !p.has_room() {
                assert_eq!(p.drop_oldest(&ring[..], |_| ()).unwrap(), Some(tag - 2));
            }
            assert!(push(&mut p, &ring, tag));
        }
        assert_eq!(c.take(&ring[..]).unwrap().place.offset, 5);
        assert_eq!(c.take(&ring[..]).unwrap().place.offset, 6);
        assert_eq!(c.take(&ring[..]), None);
        assert_eq!(p.drop_oldest(&ring[..], |_| ()).unwrap(), None, "both are held");
    }

    #[test]
    fn a_state_that_the_record_forbids_is_hostile() {
        let g = Geometry::new(2, 2).unwrap();
        let ring = memory(g);
        let mut p = Producer::new(g);
        assert!(push(&mut p, &ring, 9));
        ring[g.cell(0)].store(state(7, RELEASED), Ordering::Relaxed);
        assert_eq!(
            p.reap(&ring[..], |_| panic!("must not free")),
            Err(Hostile {
                cell: 0,
                state: state(7, RELEASED),
                number: 1
            })
        );
        // Queued again after it was seen taken is forbidden too.
        let mut p = Producer::new(g);
        assert!(push(&mut p, &ring, 9));
        ring[g.cell(0)].store(state(1, TAKEN), Ordering::Relaxed);
        p.reap(&ring[..], |_| ()).unwrap();
        ring[g.cell(0)].store(state(1, QUEUED), Ordering::Relaxed);
        assert!(p.reap(&ring[..], |_| ()).is_err());
    }

    #[test]
    fn a_hostile_publisher_neither_traps_nor_misleads_the_consumer() {
        let g = Geometry::new(4, 4).unwrap();
        let ring = memory(g);
        let mut c = Consumer::new(g);
        for tail in [u64::MAX, 0, 5, u64::MAX - 1, 1 << 48, 3] {
            ring[TAIL].store(tail, Ordering::Relaxed);
            for i in 0..4 {
                ring[ORDER + i].store(u64::MAX, Ordering::Relaxed);
            }
            assert_eq!(c.take(&ring[..]), None);
        }
    }

    #[test]
    fn random_words_from_the_subscriber_never_free_a_block_twice() {
        let g = Geometry::new(3, 2).unwrap();
        let mut seed = 1u64;
        let mut random = || {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            seed >> 33
        };
        let mut hostile = 0;
        for _ in 0..if cfg!(miri) { 50 } else { 20_000 } {
            let ring = memory(g);
            let (mut p, mut c) = (Producer::new(g), Consumer::new(g));
            let mut out = std::collections::BTreeSet::new();
            for tag in 0..20u32 {
                let cell = (random() % g.cells() as u64) as u16;
                match random() % 4 {
                    0 => ring[g.cell(cell)].store(random() % 64, Ordering::Relaxed),
                    1 => drop(c.take(&ring[..])),
                    2 => release(&ring[..], g, cell, random() % 16),
                    _ => {}
                }
                let mut free = |t: u32| assert!(out.insert(t), "freed twice");
                if p.reap(&ring[..], &mut free).is_err() {
                    hostile += 1;
                    break;
                }
                if !p.has_room() || !p.has_cell() {
                    match p.drop_oldest(&ring[..], &mut free) {
                        Ok(Some(t)) => free(t),
                        Ok(None) => {}
                        Err(_) => break,
                    }
                }
                push(&mut p, &ring, tag);
            }
        }
        assert!(hostile > 10, "the attack was seen {hostile} times");
    }
}
