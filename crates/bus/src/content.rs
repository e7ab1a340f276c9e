//! The content of a taken message: private copies of the parsed parts, and the segment of the rest.

use crate::block::{FIXED, Header, Range, table_is_inside};
use crate::budget::Copies;
use crate::loan::MAX_CONTROL;
use crate::losses::Losses;
use crate::ring::Taken;
use crate::space::ALIGN;
use crate::sys::segment::{OwnPages, PeerSegment};
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

/// How many bytes of a block are copied at once: the header and, for most messages, the whole control part.
pub(crate) const FRONT: usize = 256;

/// Passed on by pointer, also into and out of the store of spare ones.
pub(crate) type ContentBox = Box<Content>;

/// Buffers for larger control parts are not kept for reuse.
const MAX_KEPT: usize = 1 << 20;

/// The checked content of a message. Its memory serves one message after another: handing a message on moves
/// only a pointer, and after a long sleep few cache lines have to be fetched.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) taken: Taken,
    /// What the publisher dropped for this subscriber since the previous message.
    pub(crate) lost: Losses,
    pub(crate) header: Header,
    segment: Option<Arc<PeerSegment>>,
    /// Whether `front` does not hold the whole control part and table.
    is_long: bool,
    /// A copy of the control part and the table in that case.
    more: Vec<u8>,
    /// The capacity that was requested, and the account in which it is counted.
    counted: u64,
    copies: Option<Arc<Copies>>,
    /// A copy of the start of the block.
    front: [u8; FRONT],
}

/// Why a taken message cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// It is not where its queue entry says, or it violates the protocol.
    Malformed,
    /// The copies of its publisher's control parts have reached their limit.
    HoldLimit,
    /// This process cannot map more memory.
    NoMemory,
}

impl Content {
    /// Creates memory for one message after another.
    #[cold]
    pub(crate) fn empty(copies: Option<Arc<Copies>>) -> ContentBox {
        Box::new(Content {
            counted: 0,
            copies,
            taken: Taken::default(),
            lost: Losses::default(),
            header: Header::default(),
            segment: None,
            is_long: false,
            more: Vec::new(),
            front: [0; FRONT],
        })
    }

    /// Copies and checks the taken message, which lies in `segment`.
    #[inline(always)]
    pub(crate) fn read(&mut self, segment: Arc<PeerSegment>) -> Result<(), Unreadable> {
        let entry = self.taken.entry;
        if !entry.offset.is_multiple_of(ALIGN) || entry.length < FIXED as u64 {
            return Err(Unreadable::Malformed);
        }
        if !segment.exists(entry.offset, entry.length) {
            return Err(Unreadable::Malformed);
        }
        let whole = (FRONT as u64).min(entry.length);
        if whole == FRONT as u64 {
            segment.copy(entry.offset, &mut self.front);
        } else {
            segment.copy(entry.offset, &mut self.front[..whole as usize]);
        }
        let header = self.front.first_chunk();
        let header = header.and_then(|front| Header::parse(front, entry.length));
        let header = header.filter(|header| header.control.len <= MAX_CONTROL as u64);
        let header = header.ok_or(Unreadable::Malformed)?;
        self.is_long =
            FIXED + header.table_len() > FRONT || header.control.offset + header.control.len > whole;
        if self.is_long {
            self.read_more(&segment, entry.offset, &header)?;
        }
        self.header = header;
        self.segment = Some(segment);
        let is_inside = table_is_inside(self.table(), entry.length);
        is_inside.then_some(()).ok_or(Unreadable::Malformed)
    }

    #[cold]
    fn read_more(&mut self, segment: &PeerSegment, start: u64, header: &Header) -> Result<(), Unreadable> {
        let control_len = header.control.len as usize;
        self.make_room(control_len + header.table_len())?;
        let more = &mut self.more;
        segment.append(start + header.control.offset, control_len, more);
        segment.append(start + FIXED as u64, header.table_len(), more);
        Ok(())
    }

    /// Grows `more`, which is empty, to `len` bytes if its publisher's copies may take that much.
    fn make_room(&mut self, len: usize) -> Result<(), Unreadable> {
        // Rounded up, so that slightly longer messages do not reallocate each time.
        let len = (len as u64).next_multiple_of(4096);
        if len <= self.counted {
            return Ok(());
        }
        if let Some(copies) = &self.copies
            && !copies.take(len - self.counted)
        {
            return Err(Unreadable::HoldLimit);
        }
        self.more.reserve_exact(len as usize);
        self.counted = len;
        Ok(())
    }

    /// Releases the message. Returns false if the memory is not worth keeping.
    pub(crate) fn clear(&mut self) -> bool {
        self.segment = None;
        self.more.clear();
        self.more.capacity() <= MAX_KEPT
    }

    /// Address of `len` bytes at `offset` in the block, mapped until the message is cleared; `None` if the
    /// segment ends before.
    pub(crate) fn at(&self, offset: u64, len: u64) -> Option<NonNull<u8>> {
        let start = self.taken.entry.offset.checked_add(offset)?;
        self.segment.as_ref()?.at(start, len)
    }

    /// Private pages of `len` bytes at `offset` in the block.
    pub(crate) fn own_pages(&self, offset: u64, len: u64) -> io::Result<OwnPages> {
        let start = self.taken.entry.offset.checked_add(offset);
        let (start, segment) = start
            .zip(self.segment.as_ref())
            .ok_or(io::ErrorKind::InvalidInput)?;
        segment.own_pages(start, len)
    }

    /// Copies from `offset` in the block. Returns false if the segment ends before.
    pub(crate) fn copy(&self, offset: u64, to: &mut [u8]) -> bool {
        let start = self.taken.entry.offset.checked_add(offset);
        let segment = self.segment.as_ref();
        start
            .zip(segment)
            .is_some_and(|(start, segment)| segment.copy(start, to))
    }

    /// The control part.
    pub(crate) fn control(&self) -> &[u8] {
        let Range { offset, len } = self.header.control;
        let (offset, len) = (offset as usize, len as usize);
        if self.is_long {
            &self.more[..len]
        } else {
            &self.front[offset..offset + len]
        }
    }

    /// The table of data parts.
    pub(crate) fn table(&self) -> &[u8] {
        if self.is_long {
            &self.more[self.header.control.len as usize..]
        } else {
            &self.front[FIXED..FIXED + self.header.table_len()]
        }
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        if let Some(copies) = &self.copies {
            copies.give(self.counted);
        }
    }
}
