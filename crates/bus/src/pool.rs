//! A publisher's memory: segments, the free space in them, and the users of each block.
//!
//! Blocks of similar size share segments, so that small blocks that are held for long do not fragment the
//! space for large ones; the largest blocks get segments of their own. A segment's pages are reserved from
//! the bottom up, only as far as needed. Memory is returned by retiring whole idle
//! segments (decision 010).

use crate::space::{ALIGN, Space};
use crate::sys::limits;
use crate::sys::segment::{OwnSegment, page};
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

/// Identifies a block that is loaned, queued or held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BlockId(u32);

/// Why there is no room.
#[derive(Debug)]
pub(crate) enum Short {
    /// The publisher's own limit.
    Limit,
    /// The system's memory.
    System { available: u64, which: &'static str },
    /// `RLIMIT_FSIZE`.
    FileSize { wanted: u64, limit: u64 },
    /// A system call failed.
    Failed { what: &'static str, source: io::Error },
}

/// Largest block of a class, and the size of its segments. Larger blocks have a segment each. Sizes are
/// address space; memory is reserved as needed.
const CLASSES: [(u64, u64); 3] = [(64 << 10, 2 << 20), (1 << 20, 32 << 20), (16 << 20, 256 << 20)];

/// Minimum bytes to reserve at once, so that small blocks do not cost a system call each.
const STEP: u64 = 64 << 10;

#[derive(Debug)]
struct Segment {
    id: u64,
    class: usize,
    memory: Arc<OwnSegment>,
    space: Space,
    /// Pages exist up to this offset.
    reserved: u64,
    /// The housekeeping thread is creating pages up to this offset; 0 if it is not.
    promised: u64,
}

impl Segment {
    fn claimed(&self) -> u64 {
        self.reserved.max(self.promised)
    }
}

#[derive(Clone, Copy, Debug)]
struct Block {
    slot: u32,
    offset: u64,
    len: u64,
    users: u32,
}

/// A segment that was given up and that some subscribers still map.
#[derive(Debug)]
struct Retired {
    id: u64,
    bytes: u64,
    mapped_by: usize,
}

/// Location of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Location {
    pub(crate) segment: u64,
    pub(crate) slot: u32,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// Pages to create ahead of need, without the publisher's lock.
#[derive(Debug)]
pub(crate) struct Plan {
    slot: u32,
    id: u64,
    memory: Arc<OwnSegment>,
    from: u64,
    to: u64,
}

/// A publisher's memory.
#[derive(Debug)]
pub(crate) struct Pool {
    limit: u64,
    next_id: u64,
    segments: Vec<Option<Segment>>,
    blocks: Vec<Block>,
    unused: Vec<u32>,
    used: u64,
    retired: Vec<Retired>,
    /// The slot that grew last and by how much, if it should grow ahead of need.
    grown: Option<(u32, u64)>,
    news: bool,
}

impl Pool {
    pub(crate) fn new(limit: u64) -> Self {
        Pool {
            limit,
            next_id: 1,
            segments: Vec::new(),
            blocks: Vec::with_capacity(64),
            unused: Vec::with_capacity(64),
            used: 0,
            retired: Vec::new(),
            grown: None,
            news: false,
        }
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Sets the maximum bytes to reserve from now on. Memory that is already reserved stays until it is idle.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Gives up every segment without a block in use; `release` as in [`Pool::grow`].
    pub(crate) fn trim(&mut self, mut release: impl FnMut(u64) -> usize) {
        for slot in 0..self.segments.len() {
            let idle = |s: &Segment| s.space.is_idle() && s.promised == 0;
            if self.segments[slot].as_ref().is_some_and(idle) {
                self.retire(slot, &mut release);
            }
        }
    }

    /// Bytes in blocks that are in use.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Bytes reserved in live segments.
    pub(crate) fn reserved(&self) -> u64 {
        self.segments.iter().flatten().map(Segment::claimed).sum()
    }

    /// Bytes in retired segments that subscribers still map.
    pub(crate) fn pinned(&self) -> u64 {
        self.retired.iter().map(|r| r.bytes).sum()
    }

    pub(crate) fn segment_count(&self) -> usize {
        self.segments.iter().flatten().count() + self.retired.len()
    }

    /// Returns a block of `len` bytes from memory that is already reserved, with one user.
    pub(crate) fn reuse(&mut self, len: u64) -> Option<BlockId> {
        let class = class_of(len);
        self.reuse_where(len, |s| s.class == class)
    }

    /// Returns a block of `len` bytes from additional memory.
    ///
    /// `release` is called with the identity of each segment that is given up to make room. It returns how
    /// many subscribers map the segment.
    pub(crate) fn grow(&mut self, len: u64, mut release: impl FnMut(u64) -> usize) -> Result<BlockId, Short> {
        if len > self.limit {
            return Err(Short::Limit);
        }
        let class = class_of(len);
        let fits = self.segments.iter().enumerate().find_map(|(slot, s)| {
            let s = s.as_ref().filter(|s| s.class == class)?;
            Some((slot, s.space.find(len, s.memory.len())?))
        });
        if let Some((slot, start)) = fits
            && self.reserve(slot, start + len, &mut release)?
        {
            return self.reuse(len).ok_or(Short::Limit);
        }
        if fits.is_none() && self.make_room(len, usize::MAX, &mut release) {
            let slot = self.add_segment(class, len)?;
            let reserved = self.reserve(slot, len, &mut release);
            if !matches!(reserved, Ok(true)) {
                self.segments[slot] = None;
            }
            reserved?;
            return self.reuse(len).ok_or(Short::Limit);
        }
        // At the limit, a place among blocks of another size is better than none.
        self.reuse_where(len, |_| true).ok_or(Short::Limit)
    }

    /// Adds a user of `block`.
    pub(crate) fn share(&mut self, block: BlockId) {
        self.blocks[block.0 as usize].users += 1;
    }

    /// Removes a user of `block`; the last one frees it.
    #[inline]
    pub(crate) fn unshare(&mut self, block: BlockId) {
        let entry = &mut self.blocks[block.0 as usize];
        debug_assert!(entry.users > 0, "a block is freed twice");
        entry.users = entry.users.saturating_sub(1);
        if entry.users == 0 {
            self.free(block);
        }
    }

    #[inline(never)]
    fn free(&mut self, block: BlockId) {
        let Block {
            slot, offset, len, ..
        } = self.blocks[block.0 as usize];
        if let Some(segment) = &mut self.segments[slot as usize] {
            segment.space.give(offset, len);
        }
        self.used -= len;
        self.unused.push(block.0);
    }

    pub(crate) fn locate(&self, block: BlockId) -> Location {
        let Block {
            slot, offset, len, ..
        } = self.blocks[block.0 as usize];
        // A segment is never retired while a block of it has users.
        let segment = self.segments[slot as usize].as_ref().map_or(0, |s| s.id);
        Location {
            segment,
            slot,
            offset,
            len,
        }
    }

    /// Number of users of a block: loans, queues, holders, the history.
    pub(crate) fn users(&self, block: BlockId) -> u32 {
        self.blocks[block.0 as usize].users
    }

    pub(crate) fn len_of(&self, block: BlockId) -> u64 {
        self.blocks[block.0 as usize].len
    }

    /// The segment that contains a block.
    pub(crate) fn memory(&self, slot: u32) -> Option<&Arc<OwnSegment>> {
        self.segments.get(slot as usize)?.as_ref().map(|s| &s.memory)
    }

    /// Whether a range of addresses lies inside a live segment.
    #[cfg(feature = "test-hooks")]
    pub(crate) fn contains(&self, start: *const u8, len: usize) -> bool {
        self.segments.iter().flatten().any(|s| {
            let from = (start as usize).checked_sub(s.memory.at(0, 0).as_ptr() as usize);
            from.and_then(|f| f.checked_add(len))
                .is_some_and(|end| end as u64 <= s.reserved)
        })
    }

    /// Returns live segment `id`.
    pub(crate) fn segment(&self, id: u64) -> Option<&Arc<OwnSegment>> {
        self.segments
            .iter()
            .flatten()
            .find(|s| s.id == id)
            .map(|s| &s.memory)
    }

    /// The address of a block. It stays mapped as long as the block has a user and the pool exists.
    pub(crate) fn address(&self, block: BlockId) -> Option<NonNull<u8>> {
        let at = self.locate(block);
        Some(self.memory(at.slot)?.at(at.offset, at.len))
    }

    /// Records that a subscriber no longer maps retired segment `id`.
    pub(crate) fn unmapped(&mut self, id: u64) {
        if let Some(i) = self.retired.iter().position(|r| r.id == id) {
            self.retired[i].mapped_by = self.retired[i].mapped_by.saturating_sub(1);
            if self.retired[i].mapped_by == 0 {
                self.retired.swap_remove(i);
            }
        }
    }

    /// Whether segment `id` was retired and a subscriber still maps it.
    #[cfg(test)]
    fn is_retired(&self, id: u64) -> bool {
        self.retired.iter().any(|r| r.id == id)
    }

    /// Whether memory grew since the last call, so that more should be reserved ahead of need.
    pub(crate) fn has_grown(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    /// Returns what to reserve ahead of need: as much as the last growth needed.
    pub(crate) fn plan(&mut self) -> Option<Plan> {
        let (slot, by) = self.grown.take()?;
        let room = self.limit.saturating_sub(self.reserved());
        let segment = self.segments.get_mut(slot as usize)?.as_mut()?;
        let from = segment.claimed();
        let to = (from + by.min(room)).min(segment.memory.len()) / page() * page();
        if to <= from || segment.promised > 0 {
            return None;
        }
        segment.promised = to;
        Some(Plan {
            slot,
            id: segment.id,
            memory: segment.memory.clone(),
            from,
            to,
        })
    }

    /// Records the result of a plan.
    pub(crate) fn finish(&mut self, plan: &Plan, done: bool) {
        if let Some(Some(s)) = self.segments.get_mut(plan.slot as usize)
            && s.id == plan.id
        {
            s.promised = 0;
            // If the publisher itself grew past the plan's start, the ranges still join.
            if done && s.reserved >= plan.from {
                s.reserved = s.reserved.max(plan.to);
            }
        }
    }

    fn reuse_where(&mut self, len: u64, accept: impl Fn(&Segment) -> bool) -> Option<BlockId> {
        for (slot, segment) in self.segments.iter_mut().enumerate() {
            let Some(segment) = segment.as_mut().filter(|s| accept(s)) else {
                continue;
            };
            let Some(offset) = segment.space.find(len, segment.reserved) else {
                continue;
            };
            segment.space.take(offset, len);
            self.used += len;
            let block = Block {
                slot: slot as u32,
                offset,
                len,
                users: 1,
            };
            return Some(BlockId(match self.unused.pop() {
                Some(i) => {
                    self.blocks[i as usize] = block;
                    i
                }
                None => {
                    self.blocks.push(block);
                    (self.blocks.len() - 1) as u32
                }
            }));
        }
        None
    }

    /// Makes sure that the pages of a segment exist up to `end`. Returns false if the limit forbids it.
    fn reserve(
        &mut self,
        slot: usize,
        end: u64,
        release: &mut impl FnMut(u64) -> usize,
    ) -> Result<bool, Short> {
        let Some(segment) = &self.segments[slot] else {
            return Ok(false);
        };
        let (from, claimed) = (segment.reserved, segment.claimed());
        let memory = segment.memory.clone();
        let exact = end.next_multiple_of(page()).min(memory.len());
        if exact > claimed && !self.make_room(exact - claimed, slot, release) {
            return Ok(false);
        }
        let room = self.limit - self.reserved().min(self.limit);
        let generous = exact.max(from + STEP).min(memory.len());
        let to = if generous <= claimed + room {
            generous
        } else {
            exact
        };
        check_system(to - from)?;
        memory.reserve(from, to).map_err(|source| Short::Failed {
            what: "fallocate",
            source,
        })?;
        if let Some(segment) = &mut self.segments[slot] {
            segment.reserved = to;
            self.grown = Some((slot as u32, to - from));
            self.news = true;
        }
        Ok(true)
    }

    /// Whether `bytes` more stay within the limit, after giving up idle segments other than `keep` if
    /// necessary.
    fn make_room(&mut self, bytes: u64, keep: usize, release: &mut impl FnMut(u64) -> usize) -> bool {
        while self.reserved() + bytes > self.limit {
            let idle = self.segments.iter().enumerate().position(|(i, s)| {
                i != keep && s.as_ref().is_some_and(|s| s.space.is_idle() && s.promised == 0)
            });
            let Some(slot) = idle else { return false };
            let Some(segment) = self.segments[slot].as_ref() else {
                return false;
            };
            // Retired segments come on top of the limit while subscribers still map them, so they are bounded
            // too.
            if self.pinned() + segment.reserved > self.limit {
                return false;
            }
            self.retire(slot, release);
        }
        true
    }

    /// Gives up a segment. It is pinned while subscribers still map it.
    fn retire(&mut self, slot: usize, release: &mut impl FnMut(u64) -> usize) {
        if let Some(segment) = self.segments[slot].take() {
            let mapped_by = release(segment.id);
            if mapped_by > 0 {
                self.retired.push(Retired {
                    id: segment.id,
                    bytes: segment.reserved,
                    mapped_by,
                });
            }
        }
    }

    fn add_segment(&mut self, class: usize, block: u64) -> Result<usize, Short> {
        let (block, limit) = (block.next_multiple_of(page()), limits::file_size());
        if block > limit {
            return Err(Short::FileSize { wanted: block, limit });
        }
        let wanted = CLASSES.get(class).map_or(block, |(_, len)| *len);
        let len = wanted
            .min(self.limit.max(block).next_multiple_of(page()))
            .min(limit / page() * page());
        let memory = OwnSegment::new(len).map_err(|source| Short::Failed {
            what: "making a segment",
            source,
        })?;
        let segment = Segment {
            id: self.next_id,
            class,
            space: Space::new(memory.len() / ALIGN * ALIGN),
            memory: Arc::new(memory),
            reserved: 0,
            promised: 0,
        };
        self.next_id += 1;
        let slot = self
            .segments
            .iter()
            .position(Option::is_none)
            .unwrap_or(self.segments.len());
        if slot == self.segments.len() {
            self.segments.push(None);
        }
        self.segments[slot] = Some(segment);
        crate::hooks::step("segment-made");
        Ok(slot)
    }
}

impl Plan {
    /// Creates the pages. May take long; no lock is held.
    pub(crate) fn carry_out(&self) -> bool {
        check_system(self.to - self.from).is_ok() && self.memory.reserve(self.from, self.to).is_ok()
    }
}

fn class_of(len: u64) -> usize {
    CLASSES
        .iter()
        .position(|(most, _)| len <= *most)
        .unwrap_or(CLASSES.len())
}

fn check_system(bytes: u64) -> Result<(), Short> {
    let (available, which) = limits::memory_left();
    if bytes > available {
        Err(Short::System { available, which })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(pool: &mut Pool, len: u64) -> Option<BlockId> {
        pool.reuse(len).or_else(|| pool.grow(len, |_| 0).ok())
    }

    #[test]
    fn freed_memory_is_reused_before_more_is_reserved() {
        let mut pool = Pool::new(64 << 20);
        let a = get(&mut pool, 4 << 20).unwrap();
        let first = pool.locate(a);
        let reserved = pool.reserved();
        pool.unshare(a);
        let b = get(&mut pool, 4 << 20).unwrap();
        assert_eq!((pool.locate(b).offset, pool.reserved()), (first.offset, reserved));
        assert_eq!(pool.used(), 4 << 20);
    }

    #[test]
    fn the_limit_holds_and_idle_segments_make_room() {
        let mut pool = Pool::new(8 << 20);
        let small: Vec<_> = (0..100).map(|_| get(&mut pool, 64 << 10).unwrap()).collect();
        assert!(pool.reserved() <= 8 << 20);
        assert!(get(&mut pool, 4 << 20).is_none(), "all is in use");
        small.into_iter().for_each(|b| pool.unshare(b));
        let large = get(&mut pool, 4 << 20).expect("idle segments are retired");
        assert!(pool.reserved() <= 8 << 20);
        pool.unshare(large);
        assert_eq!(pool.used(), 0);
        assert!(get(&mut pool, 9 << 20).is_none(), "larger than the limit");
    }

    #[test]
    fn a_segment_that_subscribers_map_is_pinned_until_they_do_not() {
        let mut pool = Pool::new(4 << 20);
        let a = get(&mut pool, 3 << 20).unwrap();
        let id = pool.locate(a).segment;
        pool.unshare(a);
        let b = pool.grow(60 << 10, |_| 2).unwrap();
        assert_eq!(pool.pinned(), 0, "there was room");
        pool.unshare(b);
        let c = (0..40).map(|_| {
            pool.reuse(64 << 10)
                .or_else(|| pool.grow(64 << 10, |_| 2).ok())
                .unwrap()
        });
        let c: Vec<_> = c.collect();
        assert!(pool.is_retired(id) && pool.pinned() >= 3 << 20);
        pool.unmapped(id);
        assert!(pool.is_retired(id));
        pool.unmapped(id);
        assert_eq!(pool.pinned(), 0);
        c.into_iter().for_each(|b| pool.unshare(b));
    }

    #[test]
    fn any_mix_of_sizes_keeps_working_within_the_limit() {
        let mut pool = Pool::new(32 << 20);
        let mut seed = 3u64;
        let mut random = |n: u64| {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        let mut live = std::collections::VecDeque::new();
        for round in 0..4000 {
            let len =
                [256, 4 << 10, 64 << 10, 300 << 10, 1 << 20, 4 << 20][random(6) as usize] + random(64) * 64;
            let block = loop {
                match get(&mut pool, len) {
                    Some(block) => break block,
                    None => pool.unshare(
                        live.pop_front()
                            .unwrap_or_else(|| panic!("starved in round {round}")),
                    ),
                }
            };
            live.push_back(block);
            if live.len() > 8 {
                pool.unshare(live.pop_front().unwrap());
            }
            assert!(pool.reserved() <= 32 << 20);
        }
    }

    #[test]
    fn growing_ahead_stays_within_the_limit() {
        let mut pool = Pool::new(10 << 20);
        let _a = get(&mut pool, 4 << 20).unwrap();
        let plan = pool.plan().unwrap();
        assert!(plan.carry_out());
        pool.finish(&plan, true);
        assert!(pool.reuse(4 << 20).is_some(), "it is there already");
        assert!(pool.plan().is_none(), "nothing grew since");
        assert!(pool.reserved() <= 10 << 20);
    }
}
