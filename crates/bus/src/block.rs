//! Layout of a message in a block: header, control part and data parts, each aligned to 64 bytes.
//!
//! Numbers are in the host's byte order, since a block never leaves the host. Offsets count from the start of
//! the block. A subscriber copies each of the header's two pieces once and checks every number in the copies.

use crate::loan::MAX_PARTS;
use crate::space::ALIGN;

/// Version of the layout; the handshake compares it.
pub(crate) const LAYOUT_VERSION: u16 = 1;

const MAGIC: u32 = u32::from_le_bytes(*b"RWBK");
/// Length of the fixed part of the header: one cache line. The table of data parts follows.
pub(crate) const FIXED: usize = 64;
const ENTRY: usize = 16;
/// Positions of the label, the control part's range, the correlation header's offset and the table, in 8-byte words.
pub(crate) const LABEL_WORD: usize = 2;
pub(crate) const LABEL_LEN: usize = 24;
pub(crate) const CONTROL_WORD: usize = 5;
pub(crate) const CORRELATION_WORD: usize = 7;
pub(crate) const TABLE_WORD: usize = FIXED / 8;
/// The correlation header of requests and replies, one cache line.
pub(crate) const CORRELATION: usize = 64;

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

/// Metadata of a message that is not layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) sequence: u64,
    /// Nanoseconds of `CLOCK_REALTIME`.
    pub(crate) stamp: u64,
    pub(crate) origin: u64,
}

/// Number of parts whose ranges the plan stores inline. More parts are rare, and a small plan is cheap to
/// move.
const FEW: usize = 4;

/// The layout of a block that is about to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) control: Range,
    /// Range of the correlation header; empty, at 0, if there is none.
    pub(crate) correlation: Range,
    count: usize,
    few: [Range; FEW],
    /// The ranges of all parts, if there are more than [`FEW`].
    many: Vec<Range>,
    total: u64,
}

impl Plan {
    /// Returns the layout of a message. `None` if it has too many parts or exceeds the address space.
    pub(crate) fn new(control_len: usize, part_lens: &[usize]) -> Option<Plan> {
        Plan::with(control_len, part_lens, 0)
    }

    /// Returns the layout of a request or a reply: a message with a correlation header.
    pub(crate) fn correlated(control_len: usize, part_lens: &[usize]) -> Option<Plan> {
        Plan::with(control_len, part_lens, CORRELATION)
    }

    fn with(control_len: usize, part_lens: &[usize], correlation_len: usize) -> Option<Plan> {
        if part_lens.len() > MAX_PARTS {
            return None;
        }
        let mut end = (header_len(part_lens.len()) as u64).next_multiple_of(ALIGN);
        let mut place = |len: usize| {
            let range = Range {
                offset: end,
                len: len as u64,
            };
            end = end.checked_add(range.len)?.checked_next_multiple_of(ALIGN)?;
            Some(range)
        };
        let correlation = match correlation_len {
            0 => Range::default(),
            len => place(len)?,
        };
        let control = place(control_len)?;
        let (mut few, mut many) = ([Range::default(); FEW], Vec::new());
        if part_lens.len() <= FEW {
            for (part, len) in few.iter_mut().zip(part_lens) {
                *part = place(*len)?;
            }
        } else {
            many = part_lens.iter().map(|len| place(*len)).collect::<Option<_>>()?;
        }
        Some(Plan {
            control,
            correlation,
            count: part_lens.len(),
            few,
            many,
            total: end,
        })
    }

    /// Length of the block.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn parts(&self) -> &[Range] {
        if self.count <= FEW {
            &self.few[..self.count]
        } else {
            &self.many
        }
    }

    /// Length of the header, which is less than the block's.
    pub(crate) fn header_len(&self) -> usize {
        header_len(self.count)
    }

    /// Writes the header except for its label. The header is [`Plan::header_len`] bytes long.
    ///
    /// # Panics
    /// If `out` is shorter than the header.
    pub(crate) fn encode(&self, out: &mut [u8]) {
        let (words, _) = out[..self.header_len()].as_chunks_mut::<8>();
        let mut first = [0; 8];
        first[..4].copy_from_slice(&MAGIC.to_ne_bytes());
        first[4..6].copy_from_slice(&LAYOUT_VERSION.to_ne_bytes());
        first[6..].copy_from_slice(&(self.count as u16).to_ne_bytes());
        words[0] = first;
        words[1] = self.total.to_ne_bytes();
        words[CONTROL_WORD] = self.control.offset.to_ne_bytes();
        words[CONTROL_WORD + 1] = self.control.len.to_ne_bytes();
        words[CORRELATION_WORD] = self.correlation.offset.to_ne_bytes();
        let table = self.parts().iter().flat_map(|part| [part.offset, part.len]);
        for (word, number) in words[TABLE_WORD..].iter_mut().zip(table) {
            *word = number.to_ne_bytes();
        }
    }
}

impl Label {
    /// Writes the label to its place in the header.
    ///
    /// # Panics
    /// If `out` is shorter than [`LABEL_LEN`].
    pub(crate) fn encode(&self, out: &mut [u8]) {
        let (words, _) = out[..LABEL_LEN].as_chunks_mut::<8>();
        words[0] = self.sequence.to_ne_bytes();
        words[1] = self.stamp.to_ne_bytes();
        words[2] = self.origin.to_ne_bytes();
    }
}

const fn header_len(parts: usize) -> usize {
    FIXED + ENTRY * parts
}

/// The fixed part of a header that was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) label: Label,
    pub(crate) control: Range,
    /// Offset of the correlation header; 0 if there is none.
    pub(crate) correlation: u64,
    /// Number of data parts.
    pub(crate) parts: usize,
}

impl Header {
    /// Reads the fixed part of a block of `block` bytes from a private copy. `None` unless the table, the
    /// control part and the correlation header, if any, lie inside the block.
    pub(crate) fn parse(bytes: &[u8; FIXED], block: u64) -> Option<Header> {
        let u16_at = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let u64_at = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let parts = usize::from(u16_at(6));
        let control = Range {
            offset: u64_at(40)?,
            len: u64_at(48)?,
        };
        let correlation = Range {
            offset: u64_at(56)?,
            len: CORRELATION as u64,
        };
        let valid = bytes[..4] == MAGIC.to_ne_bytes()
            && u16_at(4) == LAYOUT_VERSION
            && parts <= MAX_PARTS
            && u64_at(8)? == block
            && (FIXED + ENTRY * parts) as u64 <= block
            && control.is_inside(block)
            && (correlation.offset == 0 || correlation.is_inside(block));
        let label = Label {
            sequence: u64_at(16)?,
            stamp: u64_at(24)?,
            origin: u64_at(32)?,
        };
        valid.then_some(Header {
            label,
            control,
            correlation: correlation.offset,
            parts,
        })
    }

    /// Length of the table, which begins at [`FIXED`].
    pub(crate) fn table_len(&self) -> usize {
        ENTRY * self.parts
    }
}

/// Returns entry `i` of a table of data parts; `None` if there is no such entry.
pub(crate) fn table_entry(table: &[u8], i: usize) -> Option<Range> {
    let entry = table.get(i.checked_mul(ENTRY)?..)?.first_chunk::<ENTRY>()?;
    let number = |half: &[u8]| Some(u64::from_ne_bytes(half.try_into().ok()?));
    Some(Range {
        offset: number(&entry[..8])?,
        len: number(&entry[8..])?,
    })
}

/// Whether every entry of a table lies inside a block of `block` bytes.
pub(crate) fn table_is_inside(table: &[u8], block: u64) -> bool {
    (0..table.len() / ENTRY).all(|i| table_entry(table, i).is_some_and(|range| range.is_inside(block)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(plan: &Plan, label: Label) -> Vec<u8> {
        let mut bytes = vec![0xFF; plan.header_len()];
        plan.encode(&mut bytes);
        label.encode(&mut bytes[LABEL_WORD * 8..]);
        bytes
    }

    fn parse(bytes: &[u8], block: u64) -> Option<(Header, Vec<Range>)> {
        let header = Header::parse(bytes.first_chunk()?, block)?;
        let table = bytes.get(FIXED..FIXED + header.table_len())?;
        table_is_inside(table, block).then(|| {
            (
                header,
                (0..header.parts).filter_map(|i| table_entry(table, i)).collect(),
            )
        })
    }

    #[test]
    fn parts_are_aligned_and_do_not_overlap() {
        let plan = Plan::new(100, &[1, 64, 0, 65]).unwrap();
        assert_eq!(
            plan.control,
            Range {
                offset: 128,
                len: 100
            }
        );
        let offsets: Vec<_> = plan.parts().iter().map(|p| p.offset).collect();
        assert_eq!(offsets, [256, 320, 384, 384]);
        assert_eq!(plan.total(), 512);
        let label = Label {
            sequence: 1,
            stamp: 2,
            origin: 3,
        };
        let (header, parts) = parse(&encoded(&plan, label), 512).unwrap();
        assert_eq!(
            header,
            Header {
                label,
                control: plan.control,
                correlation: 0,
                parts: 4
            }
        );
        assert_eq!(parts, plan.parts());
    }

    #[test]
    fn a_correlation_header_has_a_line_of_its_own() {
        let plan = Plan::correlated(100, &[1]).unwrap();
        let Range { offset, len } = plan.correlation;
        assert_eq!((offset, len, plan.control.offset), (128, 64, 192));
        let (header, _) = parse(&encoded(&plan, Label::default()), plan.total()).unwrap();
        assert_eq!(header.correlation, 128);
        assert_eq!(Plan::new(100, &[1]).unwrap().total() + 64, plan.total());
    }

    #[test]
    fn impossible_layouts_are_none() {
        assert!(Plan::new(0, &[0; MAX_PARTS]).is_some());
        assert!(Plan::new(0, &[0; MAX_PARTS + 1]).is_none());
        assert!(Plan::new(usize::MAX, &[]).is_none());
        assert!(Plan::new(1, &[usize::MAX / 2, usize::MAX / 2, 2]).is_none());
    }

    #[test]
    fn mutated_headers_never_lead_outside() {
        let plan = Plan::correlated(100, &[1000, 64, 0, 65]).unwrap();
        let (valid, block) = (encoded(&plan, Label::default()), plan.total());
        let mut seed = 7u64;
        let mut random = || {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) as usize
        };
        let mut parsed = 0;
        for _ in 0..crate::fuzzing::mutants(50_000) {
            let mut bytes = valid.clone();
            for _ in 0..random() % 4 {
                let i = random() % bytes.len();
                bytes[i] = random() as u8;
            }
            if random() % 4 == 0 {
                bytes.truncate(random() % bytes.len());
            }
            if let Some((header, parts)) = parse(&bytes, block) {
                parsed += 1;
                for r in parts.iter().chain([&header.control]) {
                    assert!(r.offset + r.len <= block && r.offset % ALIGN == 0);
                }
                assert!(header.correlation == 0 || header.correlation + CORRELATION as u64 <= block);
            }
        }
        assert!(parsed > 100);
    }
}
