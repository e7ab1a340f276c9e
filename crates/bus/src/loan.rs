//! A block that is being written.

use crate::block::{CORRELATION, Label, Plan, Range};
use crate::pool::BlockId;
use crate::publisher::{MemoryPolicy, PubCore};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

/// The most data parts of a message.
pub const MAX_PARTS: usize = 32;
/// The longest control part, in bytes: subscribers copy it.
pub const MAX_CONTROL: usize = 64 << 20;

/// A block that is being written: the control part and the data parts of a message to come.
///
/// Dropping it unpublished gives the memory back. In a forked child it must not be written.
pub struct Loan {
    core: Arc<PubCore>,
    block: BlockId,
    plan: Plan,
    /// Mapped as long as the block has a user: `core`'s pool gives up only idle segments.
    start: NonNull<u8>,
    published: bool,
}

// SAFETY: the block is this loan's alone until it is published, and the mapping is not bound to a thread.
unsafe impl Send for Loan {}
// SAFETY: a shared reference gives no access to the block.
unsafe impl Sync for Loan {}

impl Loan {
    /// `start` is the address of `block`, which is as long as `plan` says and has no other user.
    pub(crate) fn new(core: Arc<PubCore>, block: BlockId, plan: Plan, start: NonNull<u8>) -> Loan {
        Loan {
            core,
            block,
            plan,
            start,
            published: false,
        }
    }

    /// The control part.
    pub fn control_mut(&mut self) -> &mut [u8] {
        let control = self.plan.control;
        self.range_mut(control)
    }

    /// Data part `i`.
    ///
    /// # Panics
    /// If there are not that many parts.
    pub fn part_mut(&mut self, i: usize) -> &mut [u8] {
        let part = self.plan.parts()[i];
        self.range_mut(part)
    }

    /// How many data parts there are.
    pub fn part_count(&self) -> usize {
        self.plan.parts().len()
    }

    /// The address of data part `i`, aligned to 64 bytes; `None` if there is no such part.
    pub fn part_ptr(&self, i: usize) -> Option<*const u8> {
        let part = self.plan.parts().get(i)?;
        Some(
            self.start
                .as_ptr()
                .wrapping_add(part.offset as usize)
                .cast_const(),
        )
    }

    /// The control part and every data part at once.
    pub fn split_mut(&mut self) -> (&mut [u8], PartsMut<'_>) {
        // SAFETY: as in `range_mut`; the iterator gives only data parts, each once, and neither they nor the
        // control part overlap (`Plan::new` places them one after the other).
        let control = unsafe { slice_mut(self.start, self.plan.control) };
        (
            control,
            PartsMut {
                start: self.start,
                parts: self.plan.parts().iter(),
            },
        )
    }

    /// Every data part, in order.
    pub fn parts_mut(&mut self) -> PartsMut<'_> {
        self.split_mut().1
    }

    /// Writes the correlation header; false if no place was kept for one.
    pub(crate) fn correlate(&mut self, header: &[u8; CORRELATION]) -> bool {
        let place = self.plan.correlation;
        let kept = place.len == CORRELATION as u64;
        if kept {
            self.range_mut(place).copy_from_slice(header);
        }
        kept
    }

    pub(crate) fn belongs_to(&self, core: &Arc<PubCore>) -> bool {
        Arc::ptr_eq(&self.core, core)
    }

    /// Writes the header, and gives the block up without freeing it.
    pub(crate) fn seal(mut self, label: Label) -> BlockId {
        let header = Range {
            offset: 0,
            len: self.plan.header_len() as u64,
        };
        // SAFETY: as in `range_mut`: the header lies at the front of the block, before the plan's ranges.
        let out = unsafe { slice_mut(self.start, header) };
        self.plan.encode(label, out);
        self.published = true;
        self.block
    }

    fn range_mut(&mut self, range: Range) -> &mut [u8] {
        // SAFETY: the range is the header or one of `self.plan`'s, which lie inside the block; the block is mapped
        // while it has a user (this loan) and initialized (by the kernel at first); nobody else accesses it before
        // it is published; the result borrows `self` mutably, so it is the only reference.
        unsafe { slice_mut(self.start, range) }
    }
}

/// # Safety
/// `range` lies inside the mapped block at `start`, and nothing else accesses it while the result lives.
unsafe fn slice_mut<'a>(start: NonNull<u8>, range: Range) -> &'a mut [u8] {
    // SAFETY: by this function's contract; the length fits, being that of mapped memory.
    unsafe { std::slice::from_raw_parts_mut(start.as_ptr().add(range.offset as usize), range.len as usize) }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if !self.published {
            self.core.give_back(self.block);
        }
    }
}

impl fmt::Debug for Loan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loan")
            .field("control", &self.plan.control.len)
            .field(
                "parts",
                &self.plan.parts().iter().map(|p| p.len).collect::<Vec<_>>(),
            )
            .finish_non_exhaustive()
    }
}

/// The data parts of a [`Loan`], in order.
#[derive(Debug)]
pub struct PartsMut<'a> {
    start: NonNull<u8>,
    parts: std::slice::Iter<'a, Range>,
}

impl<'a> Iterator for PartsMut<'a> {
    type Item = &'a mut [u8];

    fn next(&mut self) -> Option<&'a mut [u8]> {
        let part = *self.parts.next()?;
        // SAFETY: `split_mut` made this from a loan that stays mutably borrowed for 'a; each part is given once,
        // and parts do not overlap.
        Some(unsafe { slice_mut(self.start, part) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.parts.size_hint()
    }
}

/// Why no block could be reserved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoanError {
    /// More than [`MAX_PARTS`] parts.
    #[error("{count} data parts: at most {MAX_PARTS}")]
    TooManyParts {
        /// How many were asked for.
        count: usize,
    },
    /// The control part is longer than [`MAX_CONTROL`].
    #[error("a control part of {len} bytes: at most {MAX_CONTROL}")]
    ControlTooLong {
        /// Its length.
        len: usize,
    },
    /// The message is larger than the publisher's memory.
    #[error("the message needs {wanted} bytes, the memory limit is {limit}: raise memory_limit")]
    TooLarge {
        /// Bytes of the block.
        wanted: u64,
        /// The publisher's limit.
        limit: u64,
    },
    /// The memory limit is reached, and what is in use cannot be reused, or by the policy must not be.
    #[error(
        "no memory for {wanted} bytes: subscribers hold {held} bytes and have {queued} queued, {history} are kept \
         as history, {loaned} loaned, of {limit}: {}",
        mend(*policy)
    )]
    MemoryShort {
        /// Bytes of the block.
        wanted: u64,
        /// Bytes that subscribers hold.
        held: u64,
        /// Bytes that wait in queues and that nobody holds.
        queued: u64,
        /// Bytes kept as history alone.
        history: u64,
        /// Bytes in other loans.
        loaned: u64,
        /// The publisher's limit.
        limit: u64,
        /// What the publisher does when memory is short.
        policy: MemoryPolicy,
    },
    /// The system has no memory to give (cgroup limit, free memory, with a margin).
    #[error("the system has {available} bytes of memory left for {wanted} ({which})")]
    SystemMemory {
        /// Bytes wanted.
        wanted: u64,
        /// Bytes left above the margin.
        available: u64,
        /// The limit that binds.
        which: &'static str,
    },
    /// `RLIMIT_FSIZE` forbids a segment of this size.
    #[error("a segment of {wanted} bytes exceeds the file size limit {limit}: raise ulimit -f")]
    FileSizeLimit {
        /// Bytes of the segment.
        wanted: u64,
        /// The limit.
        limit: u64,
    },
    /// A system call failed.
    #[error("cannot reserve memory ({what}): {source}")]
    System {
        /// What failed.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// The process was forked after the publisher was made.
    #[error("this publisher belongs to the parent process: make a new one after fork")]
    Forked,
}

/// What helps when memory is short under a policy.
fn mend(policy: MemoryPolicy) -> &'static str {
    match policy {
        MemoryPolicy::BestEffort => "raise memory_limit, or hold fewer messages",
        MemoryPolicy::WorstEffort => {
            "the worst-effort policy takes nothing away: raise memory_limit, take and drop messages sooner, or \
             choose best effort"
        }
        MemoryPolicy::Medium(_) => {
            "as many were dropped as the medium policy allows: raise its number or memory_limit, or hold fewer \
             messages"
        }
        MemoryPolicy::Block(_) => {
            "nothing was released in time: raise memory_limit or the block policy's timeout, or take and drop \
             messages sooner"
        }
    }
}
