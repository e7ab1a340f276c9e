//! What a taken message consists of: private copies of what is parsed, and the segment of the rest.

use crate::block::{FIXED, Header, Range, table_is_inside};
use crate::loan::MAX_CONTROL;
use crate::ring::Place;
use crate::space::ALIGN;
use crate::sys::segment::PeerSegment;
use std::sync::Arc;

/// How much of a block is copied at once: the header and, of most messages, the whole control part.
pub(crate) const FRONT: usize = 256;

/// What a message consists of, checked.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) header: Header,
    pub(crate) segment: Arc<PeerSegment>,
    /// A copy of the control part and the table, if the front does not contain both.
    pub(crate) buffer: Option<Vec<u8>>,
    /// A copy of the beginning of the block.
    front: [u8; FRONT],
}

impl Content {
    /// Copies and checks what was taken. `None` if it does not stand where it says, or is malformed. `spare` gives a
    /// buffer for what the front does not contain.
    #[inline(always)]
    pub(crate) fn read(
        segment: Arc<PeerSegment>,
        place: &Place,
        spare: impl FnOnce() -> Vec<u8>,
    ) -> Option<Content> {
        if !place.offset.is_multiple_of(ALIGN) || place.length < FIXED as u64 {
            return None;
        }
        segment.at(place.offset, place.length)?;
        let mut front = [0; FRONT];
        let whole = (FRONT as u64).min(place.length);
        if whole == FRONT as u64 {
            segment.copy(place.offset, &mut front);
        } else {
            segment.copy(place.offset, &mut front[..whole as usize]);
        }
        let header = Header::parse(front.first_chunk()?, place.length)?;
        let control_len = usize::try_from(header.control.len)
            .ok()
            .filter(|len| *len <= MAX_CONTROL)?;
        let mut buffer = None;
        if FIXED + header.table_len() > FRONT || header.control.offset + header.control.len > whole {
            let mut more = spare();
            segment.append(place.offset + header.control.offset, control_len, &mut more);
            segment.append(place.offset + FIXED as u64, header.table_len(), &mut more);
            buffer = Some(more);
        }
        let content = Content {
            header,
            segment,
            buffer,
            front,
        };
        table_is_inside(content.table(), place.length).then_some(content)
    }

    /// The control part.
    pub(crate) fn control(&self) -> &[u8] {
        let Range { offset, len } = self.header.control;
        let (offset, len) = (offset as usize, len as usize);
        match &self.buffer {
            None => &self.front[offset..offset + len],
            Some(buffer) => &buffer[..len],
        }
    }

    /// The table of data parts.
    pub(crate) fn table(&self) -> &[u8] {
        match &self.buffer {
            None => &self.front[FIXED..FIXED + self.header.table_len()],
            Some(buffer) => &buffer[self.header.control.len as usize..],
        }
    }
}
