//! A block that is being written.

use crate::block::{self, CORRELATION, Label, Plan, Range};
use crate::pool::BlockId;
use crate::publisher::{MemoryPolicy, PubCore};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

/// Maximum number of data parts of a message.
pub const MAX_PARTS: usize = 32;
/// Maximum length of the control part, in bytes. Subscribers copy it.
pub const MAX_CONTROL: usize = 64 << 20;

/// A block that is being written: the control part and the data parts of a future message.
///
/// Dropping it without publishing returns the memory. A forked child must not write to it.
pub struct Loan {
    core: Arc<PubCore>,
    block: BlockId,
    /// Number of data parts.
    parts: u16,
    published: bool,
    /// The block, which begins with its header; the header defines the layout. Mapped as long as the block
    /// has a user: `core`'s pool gives up only idle segments.
    start: NonNull<u8>,
}

// SAFETY: the block is this loan's alone until it is published, and the mapping is not bound to a thread.
unsafe impl Send for Loan {}
// SAFETY: a shared reference gives no access to the block.
unsafe impl Sync for Loan {}

impl Loan {
    /// `start` is the address of `block`, which is as long as `plan` says and has no other user. Writes the
    /// header except for its label.
    pub(crate) fn new(core: Arc<PubCore>, block: BlockId, plan: &Plan, start: NonNull<u8>) -> Loan {
        let header = Range {
            offset: 0,
            len: plan.header_len() as u64,
        };
        // SAFETY: the header lies at the front of the block, which is mapped, initialized (by the kernel at first),
        // and has no other user.
        plan.encode(unsafe { slice_mut(start, header) });
        Loan {
            core,
            block,
            // At most `MAX_PARTS`.
            parts: plan.parts().len() as u16,
            published: false,
            start,
        }
    }

    /// The control part.
    pub fn control_mut(&mut self) -> &mut [u8] {
        self.range_mut(self.control())
    }

    /// Data part `i`.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn part_mut(&mut self, i: usize) -> &mut [u8] {
        assert!(i < self.part_count(), "part {i} of {}", self.part_count());
        self.range_mut(self.part(i))
    }

    /// Number of data parts.
    pub fn part_count(&self) -> usize {
        usize::from(self.parts)
    }

    /// The address of data part `i`, aligned to 64 bytes; `None` if there is no such part.
    pub fn part_ptr(&self, i: usize) -> Option<*const u8> {
        let part = (i < self.part_count()).then(|| self.part(i))?;
        Some(
            self.start
                .as_ptr()
                .wrapping_add(part.offset as usize)
                .cast_const(),
        )
    }

    /// Keeps the block mapped and prevents its reuse, even after it was published or returned, until the
    /// result is dropped. For views of the block that outlive the loan, as bindings of other languages create
    /// them.
    pub fn keep(&self) -> Kept {
        self.core.keep(self.block);
        Kept {
            core: self.core.clone(),
            block: self.block,
        }
    }

    /// The length of data part `i`; 0 if there is no such part.
    pub fn part_len(&self, i: usize) -> usize {
        if i < self.part_count() {
            self.part(i).len as usize
        } else {
            0
        }
    }

    /// The address of the control part, for callers outside Rust. Nothing else may use the block at the same
    /// time.
    pub fn control_ptr(&self) -> *mut u8 {
        self.start.as_ptr().wrapping_add(self.control().offset as usize)
    }

    /// The length of the control part.
    pub fn control_len(&self) -> usize {
        self.control().len as usize
    }

    /// Truncates the control part to its first `len` bytes. Returns false, and changes nothing, if it is
    /// already shorter. For messages whose strings are known only after the block was reserved.
    pub fn shrink_control(&mut self, len: usize) -> bool {
        self.shrink(block::CONTROL_WORD, len)
    }

    /// Truncates data part `i`, as [`shrink_control`](Self::shrink_control) does. Also returns false if there
    /// is no such part. For arrays whose length is known only after the block was reserved.
    pub fn shrink_part(&mut self, i: usize, len: usize) -> bool {
        i < self.part_count() && self.shrink(block::TABLE_WORD + 2 * i, len)
    }

    /// Truncates the range that a word of the header describes.
    fn shrink(&mut self, word: usize, len: usize) -> bool {
        let shorter = len as u64 <= self.range_at(word).len;
        if shorter {
            let place = Range {
                offset: (word as u64 + 1) * 8,
                len: 8,
            };
            self.range_mut(place).copy_from_slice(&(len as u64).to_ne_bytes());
        }
        shorter
    }

    /// The control part and all data parts at once.
    pub fn split_mut(&mut self) -> (&mut [u8], PartsMut<'_>) {
        // SAFETY: as in `range_mut`; the iterator gives only data parts, each once, and neither they nor the
        // control part overlap (`Plan::new` places them one after the other).
        let control = unsafe { slice_mut(self.start, self.control()) };
        (control, PartsMut { loan: self, next: 0 })
    }

    /// All data parts, in order.
    pub fn parts_mut(&mut self) -> PartsMut<'_> {
        self.split_mut().1
    }

    /// Writes the correlation header. Returns false if no space was reserved for one.
    pub(crate) fn correlate(&mut self, header: &[u8; CORRELATION]) -> bool {
        let place = Range {
            offset: self.header(block::CORRELATION_WORD),
            len: CORRELATION as u64,
        };
        let kept = place.offset != 0;
        if kept {
            self.range_mut(place).copy_from_slice(header);
        }
        kept
    }

    pub(crate) fn belongs_to(&self, core: &Arc<PubCore>) -> bool {
        Arc::ptr_eq(&self.core, core)
    }

    /// Completes the header and gives up the block without freeing it.
    #[inline]
    pub(crate) fn seal(mut self, label: Label) -> BlockId {
        let place = Range {
            offset: block::LABEL_WORD as u64 * 8,
            len: block::LABEL_LEN as u64,
        };
        label.encode(self.range_mut(place));
        self.published = true;
        self.block
    }

    fn control(&self) -> Range {
        self.range_at(block::CONTROL_WORD)
    }

    /// Data part `i`, which must be less than `part_count`.
    fn part(&self, i: usize) -> Range {
        self.range_at(block::TABLE_WORD + 2 * i)
    }

    fn range_at(&self, word: usize) -> Range {
        Range {
            offset: self.header(word),
            len: self.header(word + 1),
        }
    }

    /// A word of the header.
    fn header(&self, word: usize) -> u64 {
        debug_assert!(word < block::TABLE_WORD + 2 * self.part_count());
        // SAFETY: the header was written in `new` and is that long; blocks are aligned to 64 bytes; only this process
        // can write it, and no reference that this loan gives out overlaps it but the one in `seal`, its end.
        unsafe { self.start.cast::<u64>().add(word).read() }
    }

    fn range_mut(&mut self, range: Range) -> &mut [u8] {
        // SAFETY: the range is of the header, or one that the header has from the plan; all lie inside the block, which
        // is mapped while it has a user (this loan) and initialized (by the kernel at first); nobody else accesses it
        // before it is published; the result borrows `self` mutably, so it is the only reference.
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
    #[inline]
    fn drop(&mut self) {
        if !self.published {
            self.core.give_back(self.block);
        }
    }
}

impl fmt::Debug for Loan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loan")
            .field("control", &self.control().len)
            .field(
                "parts",
                &(0..self.part_count())
                    .map(|i| self.part(i).len)
                    .collect::<Vec<_>>(),
            )
            .finish_non_exhaustive()
    }
}

/// Keeps a block mapped and prevents its reuse ([`Loan::keep`]).
pub struct Kept {
    core: Arc<PubCore>,
    block: BlockId,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.core.give_back(self.block);
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

/// The data parts of a [`Loan`], in order.
#[derive(Debug)]
pub struct PartsMut<'a> {
    loan: &'a Loan,
    next: usize,
}

impl<'a> Iterator for PartsMut<'a> {
    type Item = &'a mut [u8];

    fn next(&mut self) -> Option<&'a mut [u8]> {
        let i = self.next;
        if i >= self.loan.part_count() {
            return None;
        }
        self.next += 1;
        // SAFETY: `split_mut` made this from a loan that stays mutably borrowed for 'a; each part is given once,
        // and neither parts nor the header overlap.
        Some(unsafe { slice_mut(self.loan.start, self.loan.part(i)) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.loan.part_count() - self.next;
        (left, Some(left))
    }
}

/// Why no block could be reserved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoanError {
    /// More than [`MAX_PARTS`] parts.
    #[error("the message has {count} data parts, more than the limit of {MAX_PARTS}")]
    TooManyParts {
        /// The requested number.
        count: usize,
    },
    /// The control part is longer than [`MAX_CONTROL`].
    #[error("the control part has {len} bytes, more than the limit of {MAX_CONTROL}")]
    ControlTooLong {
        /// Its length.
        len: usize,
    },
    /// The message is larger than the publisher's memory.
    #[error("the message needs {wanted} bytes, but the memory limit is {limit}: raise memory_limit")]
    TooLarge {
        /// Bytes of the block.
        wanted: u64,
        /// The publisher's limit.
        limit: u64,
    },
    /// The memory limit is reached, and the memory in use cannot be reused, or the policy forbids it.
    #[error(
        "no memory is left for {wanted} bytes: of {limit} bytes, subscribers hold {held} and have {queued} \
         queued, {history} are kept as history and {loaned} are loaned: {}",
        fix_for(*policy)
    )]
    MemoryShort {
        /// Bytes of the block.
        wanted: u64,
        /// Bytes that subscribers hold.
        held: u64,
        /// Bytes that wait in queues and that no subscriber holds.
        queued: u64,
        /// Bytes kept only as history.
        history: u64,
        /// Bytes in other loans.
        loaned: u64,
        /// The publisher's limit.
        limit: u64,
        /// What the publisher does when memory is short.
        policy: MemoryPolicy,
    },
    /// The system has no memory left (cgroup limit or free memory, with a margin).
    #[error("the system has only {available} bytes of memory left, but the message needs {wanted} ({which})")]
    SystemMemory {
        /// Bytes wanted.
        wanted: u64,
        /// Bytes left above the margin.
        available: u64,
        /// The limit that applies.
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
        /// The system error.
        source: std::io::Error,
    },
    /// The process was forked after the publisher was created.
    #[error("this publisher belongs to the parent process: create a new one after fork")]
    Forked,
}

/// Returns what helps when memory is short under a policy.
fn fix_for(policy: MemoryPolicy) -> &'static str {
    match policy {
        MemoryPolicy::BestEffort => "raise memory_limit, or hold fewer messages",
        MemoryPolicy::WorstEffort => {
            "the worst-effort policy drops no queued messages: raise memory_limit, take and drop messages \
             sooner, or choose best effort"
        }
        MemoryPolicy::Medium(_) => {
            "the medium policy allows no further drops: raise its number or memory_limit, or hold fewer \
             messages"
        }
        MemoryPolicy::Block(_) => {
            "nothing was released in time: raise memory_limit or the block policy's timeout, or take and drop \
             messages sooner"
        }
    }
}
