//! Continues after damage: finds the next whole chunk.

use std::io::{Read, Seek};

use super::record::{Fields, op};
use crate::reader::source::{Bytes, Source};

/// The file is searched in steps of this many bytes.
const STEP: u64 = 1 << 20;
/// Part of every chunk header: the field `op` with its length.
const MARK: &[u8] = b"\x04\0\0\0op=\x05";
/// Longest header of a chunk, including the lengths around it: it has three short fields.
const LONGEST: u64 = 128;

/// Offset of the first record, from `from` on, that is a whole chunk according to its header.
pub(super) fn next_chunk<R: Read + Seek>(source: &Source<R>, mut from: u64) -> Option<u64> {
    while from < source.len() {
        // A chunk that starts at the end of this step is checked with bytes of the next one.
        let length = (STEP + LONGEST).min(source.remaining(from));
        let window = source.bytes(from, length, "a chunk").ok()?;
        let marks = window.windows(MARK.len()).enumerate().filter(|(_, w)| *w == MARK);
        for (mark, _) in marks {
            // The field may be the first of its header or the last.
            let first = mark.saturating_sub(LONGEST as usize);
            let found = (first..mark).find(|&start| {
                let bytes = window.get(start..).unwrap_or_default();
                is_chunk(bytes, mark - start, source.remaining(from + start as u64))
            });
            if let Some(start) = found {
                return Some(from + start as u64);
            }
        }
        from += STEP;
    }
    None
}

/// Whether a whole chunk starts here, whose header contains the mark; `remaining` is the number of bytes to the end of
/// the file.
fn is_chunk(bytes: &[u8], mark: usize, remaining: u64) -> bool {
    let mut rest = Bytes(bytes);
    let Some(header) = rest
        .sized()
        .filter(|h| (mark..LONGEST as usize).contains(&h.len()))
    else {
        return false;
    };
    let (fields, head) = (Fields(header), 8 + header.len() as u64);
    let fits = |data: u32| head + u64::from(data) <= remaining;
    rest.u32().is_some_and(fits)
        && fields.are_whole()
        && fields.op() == Some(op::CHUNK)
        && fields.u32("size").is_some()
        && fields.bytes("compression").is_some()
}
