//! What a taken message consists of: private copies of what is parsed, and the segment of the rest.

use crate::block::{FIXED, Header, Range, table_is_inside};
use crate::loan::MAX_CONTROL;
use crate::losses::Losses;
use crate::ring::Taken;
use crate::space::ALIGN;
use crate::sys::segment::PeerSegment;
use std::ptr::NonNull;
use std::sync::Arc;

/// How much of a block is copied at once: the header and, of most messages, the whole control part.
pub(crate) const FRONT: usize = 256;

/// Handed on by its pointer, also into and out of the store of spare ones.
pub(crate) type ContentBox = Box<Content>;

/// A huge control part is the exception, its memory not worth keeping.
const MAX_KEPT: usize = 1 << 20;

/// What a message consists of, checked. It stands in memory that serves one message after another: a message that is
/// handed on moves a pointer, and after a long sleep few cache lines have to come back.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) taken: Taken,
    /// What the publisher dropped for the subscriber since the message before.
    pub(crate) lost: Losses,
    pub(crate) header: Header,
    segment: Option<Arc<PeerSegment>>,
    /// Whether the front lacks the end of the control part or of the table.
    is_long: bool,
    /// A copy of the control part and the table, if so.
    more: Vec<u8>,
    /// A copy of the beginning of the block.
    front: [u8; FRONT],
}

impl Content {
    /// Memory for one message after another.
    #[cold]
    pub(crate) fn empty() -> ContentBox {
        Box::new(Content {
            taken: Taken::default(),
            lost: Losses::default(),
            header: Header::default(),
            segment: None,
            is_long: false,
            more: Vec::new(),
            front: [0; FRONT],
        })
    }

    /// Copies and checks what was taken, which stands in `segment`. `None` if it does not stand where it says, or is
    /// malformed.
    #[inline(always)]
    pub(crate) fn read(&mut self, segment: Arc<PeerSegment>) -> Option<()> {
        let place = self.taken.place;
        if !place.offset.is_multiple_of(ALIGN) || place.length < FIXED as u64 {
            return None;
        }
        if !segment.exists(place.offset, place.length) {
            return None;
        }
        let whole = (FRONT as u64).min(place.length);
        if whole == FRONT as u64 {
            segment.copy(place.offset, &mut self.front);
        } else {
            segment.copy(place.offset, &mut self.front[..whole as usize]);
        }
        let header = Header::parse(self.front.first_chunk()?, place.length)?;
        let control_len = usize::try_from(header.control.len)
            .ok()
            .filter(|len| *len <= MAX_CONTROL)?;
        self.is_long =
            FIXED + header.table_len() > FRONT || header.control.offset + header.control.len > whole;
        if self.is_long {
            self.read_more(&segment, place.offset, &header, control_len);
        }
        self.header = header;
        self.segment = Some(segment);
        table_is_inside(self.table(), place.length).then_some(())
    }

    #[cold]
    fn read_more(&mut self, segment: &PeerSegment, start: u64, header: &Header, control_len: usize) {
        let more = &mut self.more;
        segment.append(start + header.control.offset, control_len, more);
        segment.append(start + FIXED as u64, header.table_len(), more);
    }

    /// Lets go of the message; false if the memory is not worth keeping.
    pub(crate) fn clear(&mut self) -> bool {
        self.segment = None;
        self.more.clear();
        self.more.capacity() <= MAX_KEPT
    }

    /// Address of `len` bytes from `offset` of the block on, mapped as long as the message is not cleared; `None`
    /// where the segment ends before.
    pub(crate) fn at(&self, offset: u64, len: u64) -> Option<NonNull<u8>> {
        let start = self.taken.place.offset.checked_add(offset)?;
        self.segment.as_ref()?.at(start, len)
    }

    /// Copies from `offset` of the block on; false where the segment ends before.
    pub(crate) fn copy(&self, offset: u64, to: &mut [u8]) -> bool {
        let start = self.taken.place.offset.checked_add(offset);
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
