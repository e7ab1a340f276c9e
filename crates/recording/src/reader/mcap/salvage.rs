//! Continues after damage: finds the next whole chunk (decision 311).

use std::io::{Read, Seek};

use super::record::{self, HEAD, op};
use crate::reader::source::{Bytes, Source};

/// The file is searched in steps of this many bytes.
const STEP: u64 = 1 << 20;
/// Longest head of a chunk: opcode and length, the fixed fields and the name of its compression.
const LONGEST: u64 = HEAD + 64;

/// Offset of the first record, from `from` on, that is a whole chunk according to its header.
pub(super) fn next_chunk<R: Read + Seek>(source: &Source<R>, mut from: u64) -> Option<u64> {
    while from < source.len() {
        // A chunk that starts at the end of this step is checked with bytes of the next one.
        let length = (STEP + LONGEST).min(source.remaining(from));
        let window = source.bytes(from, length, "a chunk").ok()?;
        for (at, _) in (window.iter().enumerate().take(STEP as usize)).filter(|(_, byte)| **byte == op::CHUNK)
        {
            let offset = from + at as u64;
            if is_chunk(window.get(at..).unwrap_or_default(), source.remaining(offset)) {
                return Some(offset);
            }
        }
        from += STEP;
    }
    None
}

/// Whether a whole chunk starts here; `remaining` is the number of bytes to the end of the file.
fn is_chunk(bytes: &[u8], remaining: u64) -> bool {
    let mut rest = Bytes(bytes);
    let (_op, Some(len)) = (rest.u8(), rest.u64()) else {
        return false;
    };
    let body = rest.0.len();
    let fits = len.checked_add(HEAD).is_some_and(|length| length <= remaining);
    fits && record::chunk_header(&mut rest).is_some_and(|header| {
        let length = (body - rest.0.len()) as u64;
        matches!(header.compression, b"" | b"lz4" | b"zstd")
            && length.checked_add(header.compressed) == Some(len)
    })
}
