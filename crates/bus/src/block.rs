//! How a message stands in a block: header, control part, data parts, each aligned to 64 bytes.
//!
//! Numbers are in the host's byte order, since a block never leaves the host. Offsets count from the block's
//! start. A subscriber copies the header once and checks every number of the copy.

use crate::loan::MAX_PARTS;
use crate::space::ALIGN;

/// The layout's version, compared in the handshake.
pub(crate) const LAYOUT_VERSION: u16 = 1;

const MAGIC: u32 = u32::from_le_bytes(*b"RWBK");
/// The fixed part of the header; the table of data parts follows.
const FIXED: usize = 128;
const ENTRY: usize = 16;
/// The longest header.
pub(crate) const MAX_HEADER: usize = FIXED + ENTRY * MAX_PARTS;

/// Offset and length of a range of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

impl Range {
    fn is_inside(self, block: u64) -> bool {
        self.offset.is_multiple_of(ALIGN) && self.offset.checked_add(self.len).is_some_and(|end| end <= block)
    }
}

/// A block's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) sequence: u64,
    /// Nanoseconds of `CLOCK_REALTIME`.
    pub(crate) stamp: u64,
    pub(crate) origin: u64,
    pub(crate) control: Range,
    count: usize,
    parts: [Range; MAX_PARTS],
    total: u64,
}

impl Header {
    /// The layout of a message, still without its stamp. `None` if it has too many parts or is larger than any
    /// memory.
    pub(crate) fn layout(control_len: usize, part_lens: &[usize]) -> Option<Header> {
        if part_lens.len() > MAX_PARTS {
            return None;
        }
        let mut end = ((FIXED + ENTRY * part_lens.len()) as u64).next_multiple_of(ALIGN);
        let mut place = |len: usize| {
            let range = Range {
                offset: end,
                len: len as u64,
            };
            end = end.checked_add(range.len)?.checked_next_multiple_of(ALIGN)?;
            Some(range)
        };
        let control = place(control_len)?;
        let mut parts = [Range::default(); MAX_PARTS];
        for (part, len) in parts.iter_mut().zip(part_lens) {
            *part = place(*len)?;
        }
        Some(Header {
            sequence: 0,
            stamp: 0,
            origin: 0,
            control,
            count: part_lens.len(),
            parts,
            total: end,
        })
    }

    /// The block's length.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn parts(&self) -> &[Range] {
        &self.parts[..self.count]
    }

    /// The length of [`Header::encode`]'s result.
    pub(crate) fn encoded_len(&self) -> usize {
        FIXED + ENTRY * self.count
    }

    /// Writes the header to the first bytes of `out`, which has at least [`MAX_HEADER`].
    pub(crate) fn encode(&self, out: &mut [u8; MAX_HEADER]) {
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &MAGIC.to_ne_bytes());
        put(4, &LAYOUT_VERSION.to_ne_bytes());
        put(6, &(self.count as u16).to_ne_bytes());
        put(8, &self.total.to_ne_bytes());
        put(16, &self.sequence.to_ne_bytes());
        put(24, &self.stamp.to_ne_bytes());
        put(32, &self.origin.to_ne_bytes());
        put(40, &self.control.offset.to_ne_bytes());
        put(48, &self.control.len.to_ne_bytes());
        // The rest of the fixed part is for a correlation header (requests and replies); zero means none.
        put(56, &[0; FIXED - 56]);
        for (i, part) in self.parts().iter().enumerate() {
            put(FIXED + ENTRY * i, &part.offset.to_ne_bytes());
            put(FIXED + ENTRY * i + 8, &part.len.to_ne_bytes());
        }
    }

    /// Reads the header of a block of `block` bytes from a private copy of its first bytes. `None` unless
    /// every range lies inside the block.
    pub(crate) fn parse(bytes: &[u8], block: u64) -> Option<Header> {
        let u64_at = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let u16_at = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let magic = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?);
        let count = usize::from(u16_at(6)?);
        if magic != MAGIC || u16_at(4)? != LAYOUT_VERSION || count > MAX_PARTS || u64_at(8)? != block {
            return None;
        }
        let control = Range {
            offset: u64_at(40)?,
            len: u64_at(48)?,
        };
        let mut parts = [Range::default(); MAX_PARTS];
        for (i, part) in parts[..count].iter_mut().enumerate() {
            *part = Range {
                offset: u64_at(FIXED + ENTRY * i)?,
                len: u64_at(FIXED + ENTRY * i + 8)?,
            };
        }
        let inside = control.is_inside(block) && parts[..count].iter().all(|p| p.is_inside(block));
        inside.then_some(Header {
            sequence: u64_at(16)?,
            stamp: u64_at(24)?,
            origin: u64_at(32)?,
            control,
            count,
            parts,
            total: block,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(header: &Header) -> [u8; MAX_HEADER] {
        let mut bytes = [0xFF; MAX_HEADER];
        header.encode(&mut bytes);
        bytes
    }

    #[test]
    fn parts_are_aligned_and_do_not_overlap() {
        let h = Header::layout(100, &[1, 64, 0, 65]).unwrap();
        assert_eq!(
            h.control,
            Range {
                offset: 192,
                len: 100
            }
        );
        let offsets: Vec<_> = h.parts().iter().map(|p| p.offset).collect();
        assert_eq!(offsets, [320, 384, 448, 448]);
        assert_eq!(h.total(), 576);
        assert_eq!(Header::parse(&encoded(&h), 576), Some(h));
    }

    #[test]
    fn impossible_layouts_are_none() {
        assert!(Header::layout(0, &[0; MAX_PARTS]).is_some());
        assert!(Header::layout(0, &[0; MAX_PARTS + 1]).is_none());
        assert!(Header::layout(usize::MAX, &[]).is_none());
        assert!(Header::layout(1, &[usize::MAX / 2, usize::MAX / 2, 2]).is_none());
    }

    #[test]
    fn mutated_headers_never_lead_outside() {
        let h = Header::layout(100, &[1000, 64, 0, 65]).unwrap();
        let (valid, block) = (encoded(&h), h.total());
        let mut seed = 7u64;
        let mut random = || {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) as usize
        };
        let mut parsed = 0;
        for _ in 0..if cfg!(miri) { 200 } else { 50_000 } {
            let mut bytes = valid;
            for _ in 0..random() % 4 {
                bytes[random() % 192] = random() as u8;
            }
            let cut = if random() % 4 == 0 {
                random() % MAX_HEADER
            } else {
                MAX_HEADER
            };
            if let Some(h) = Header::parse(&bytes[..cut], block) {
                parsed += 1;
                for r in h.parts().iter().chain([&h.control]) {
                    assert!(r.offset + r.len <= block && r.offset % ALIGN == 0);
                }
            }
        }
        assert!(parsed > 100);
    }
}
