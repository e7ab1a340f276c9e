//! Bytes that are spread over several places.

use crate::structure::fault::Fault;
use std::borrow::Cow;

/// The ROS 1 bytes of a message in pieces, data parts in place, read from the front. Every piece ends at the
/// end of a field or an array.
pub(in crate::structure) struct Pieces<'p> {
    now: &'p [u8],
    later: std::slice::Iter<'p, Cow<'p, [u8]>>,
}

impl<'p> Pieces<'p> {
    pub(in crate::structure) fn new(pieces: &'p [Cow<'p, [u8]>]) -> Self {
        Pieces {
            now: &[],
            later: pieces.iter(),
        }
    }

    #[inline]
    pub(in crate::structure) fn take(&mut self, len: usize) -> Result<&'p [u8], Fault> {
        loop {
            if let Some((taken, rest)) = self.now.split_at_checked(len) {
                self.now = rest;
                return Ok(taken);
            }
            match self.later.next() {
                Some(next) if self.now.is_empty() => self.now = next,
                _ => return Err(Fault::refused("the message ends within the field")),
            }
        }
    }

    #[inline]
    pub(in crate::structure) fn word<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        // `take` returns exactly `N` bytes.
        Ok(self.take(N)?.first_chunk().copied().unwrap_or([0; N]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_arrays_come_from_their_pieces_and_nothing_from_behind_the_last() {
        let pieces = [b"abcd".as_slice(), b"", b"efghij"].map(Cow::Borrowed);
        let mut pieces = Pieces::new(&pieces);
        assert_eq!(pieces.take(0).ok(), Some(&[][..]));
        assert_eq!(pieces.word().ok(), Some(*b"abcd"));
        assert_eq!(pieces.take(5).ok(), Some(&b"efghi"[..]));
        assert!(pieces.take(2).is_err());
        assert_eq!(pieces.take(1).ok(), Some(&b"j"[..]));
        assert!(pieces.word::<1>().is_err());
        assert_eq!(pieces.take(0).ok(), Some(&[][..]));
    }
}
