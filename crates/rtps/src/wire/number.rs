//! Sets of sequence and fragment numbers (DDSI-RTPS 2.5, sections 9.4.2.6 and 9.4.2.8): a base and up to 256 bits.

use super::bytes::{Reader, put_u32};
use super::error::WireError;
use super::ids::{put_sequence, read_sequence};

/// Largest sequence number accepted from others: beyond it, sums could overflow.
pub(crate) const MAX_SEQUENCE: i64 = 1 << 62;

/// Maximum span of a set.
pub(crate) const SPAN: i64 = 256;

/// A set of numbers within a span of 256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NumberSet {
    pub(crate) base: i64,
    len: u32,
    words: [u32; 8],
}

impl NumberSet {
    pub(crate) fn new(base: i64) -> Self {
        NumberSet {
            base,
            len: 0,
            words: [0; 8],
        }
    }

    /// Creates a set of those numbers that lie within the span.
    pub(crate) fn of(base: i64, numbers: impl IntoIterator<Item = i64>) -> Self {
        let mut set = NumberSet::new(base);
        for n in numbers {
            set.insert(n);
        }
        set
    }

    /// Adds a number. Returns `false` if it lies before the base or beyond the span.
    pub(crate) fn insert(&mut self, n: i64) -> bool {
        let bit = n.wrapping_sub(self.base);
        if !(0..SPAN).contains(&bit) {
            return false;
        }
        if let Some(word) = self.words.get_mut(bit as usize / 32) {
            *word |= 1 << (31 - bit as u32 % 32);
        }
        self.len = self.len.max(bit as u32 + 1);
        true
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        (0..self.len).filter_map(|bit| {
            let word = self.words.get(bit as usize / 32)?;
            (word & 1 << (31 - bit % 32) != 0).then(|| self.base + i64::from(bit))
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words == [0; 8]
    }

    /// Reads a set of sequence numbers.
    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let at = r.at();
        let base = read_sequence(r)?;
        // Fast DDS requests a first heartbeat with an empty set with base 0.
        if !(0..=MAX_SEQUENCE).contains(&base) {
            return Err(WireError::Invalid {
                what: "base of a set of sequence numbers",
                at,
            });
        }
        Self::read_bits(r, base)
    }

    /// Reads a set of fragment numbers.
    pub(crate) fn read_fragments(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let base = r.u32()?;
        Self::read_bits(r, i64::from(base))
    }

    fn read_bits(r: &mut Reader<'_>, base: i64) -> Result<Self, WireError> {
        let at = r.at();
        let len = r.u32()?;
        if i64::from(len) > SPAN {
            return Err(WireError::Invalid {
                what: "length of a set of numbers",
                at,
            });
        }
        let mut words = [0; 8];
        for word in words.iter_mut().take(len.div_ceil(32) as usize) {
            *word = r.u32()?;
        }
        // Bits beyond the length have no meaning.
        if let Some(word) = words.get_mut(len as usize / 32) {
            *word &= !(u32::MAX >> (len % 32));
        }
        Ok(NumberSet { base, len, words })
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_sequence(out, self.base);
        self.put_bits(out);
    }

    pub(crate) fn put_fragments(&self, out: &mut Vec<u8>) {
        put_u32(out, self.base as u32);
        self.put_bits(out);
    }

    fn put_bits(&self, out: &mut Vec<u8>) {
        put_u32(out, self.len);
        for word in self.words.iter().take(self.len.div_ceil(32) as usize) {
            put_u32(out, *word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_make_the_round_trip() {
        let mut set = NumberSet::new(1234);
        assert!(set.is_empty());
        for n in [1234, 1236, 1265, 1266, 1489] {
            assert!(set.insert(n));
        }
        assert!(!set.insert(1233) && !set.insert(1490));
        let mut out = Vec::new();
        set.put(&mut out);
        let read = NumberSet::read(&mut Reader::new(&out, true)).expect("a set");
        assert_eq!(read, set);
        assert_eq!(read.iter().collect::<Vec<_>>(), [1234, 1236, 1265, 1266, 1489]);
        let mut out = Vec::new();
        set.put_fragments(&mut out);
        assert_eq!(NumberSet::read_fragments(&mut Reader::new(&out, true)), Ok(set));
        for n in 0..out.len() {
            assert!(NumberSet::read_fragments(&mut Reader::new(&out[..n], true)).is_err());
        }
    }

    #[test]
    fn the_example_of_the_specification_is_read() {
        // 1234:/12[00110]: bit 0 is the most significant bit of the first word.
        let bytes = [0, 0, 0, 0, 0xd2, 4, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0b0011_0000];
        let set = NumberSet::read(&mut Reader::new(&bytes, true)).expect("a set");
        assert_eq!(set.iter().collect::<Vec<_>>(), [1236, 1237]);
    }

    #[test]
    fn absurd_sets_are_refused() {
        let read = |base: i64, len: u32| {
            let mut out = Vec::new();
            put_sequence(&mut out, base);
            put_u32(&mut out, len);
            out.extend_from_slice(&[0xff; 32]);
            NumberSet::read(&mut Reader::new(&out, true))
        };
        assert!(read(-1, 0).is_err() && read(i64::MAX, 0).is_err() && read(1, 257).is_err());
        assert!(read(0, 0).is_ok_and(|s| s.is_empty()));
        assert_eq!(read(1, 256).map(|s| s.iter().count()), Ok(256));
        assert_eq!(read(MAX_SEQUENCE, 33).map(|s| s.iter().count()), Ok(33));
    }
}
