//! The layout of a message: the lengths of its control part and its data parts.

/// Most data parts that a message may have.
pub const MAX_PARTS: usize = 32;

/// Lengths of the control part and of each data part, in bytes.
///
/// On the wire the parts follow each other without gaps; a *flat offset* counts bytes from the start of the control
/// part through all data parts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    control: u32,
    count: u8,
    parts: [u32; MAX_PARTS],
    total: u32,
    packed: bool,
}

/// Why lengths do not form a [`Geometry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GeometryError {
    /// More data parts than a message may have.
    #[error("the message has {parts} data parts, more than the limit of {MAX_PARTS}")]
    TooManyParts {
        /// Parts asked for.
        parts: usize,
    },
    /// The lengths add up to more than 2³² − 1 bytes.
    #[error("a message of more than 4294967295 bytes cannot be sent")]
    TooLarge,
}

impl Geometry {
    /// A message of `control` bytes in the control part and `parts` bytes in each data part.
    ///
    /// # Errors
    /// [`GeometryError`] if there are too many parts or bytes.
    pub fn new(control: u32, parts: &[u32]) -> Result<Self, GeometryError> {
        let mut g = Geometry {
            control,
            count: 0,
            parts: [0; MAX_PARTS],
            total: control,
            packed: false,
        };
        if parts.len() > MAX_PARTS {
            return Err(GeometryError::TooManyParts { parts: parts.len() });
        }
        for (slot, len) in g.parts.iter_mut().zip(parts) {
            *slot = *len;
            g.total = g.total.checked_add(*len).ok_or(GeometryError::TooLarge)?;
            g.count += 1;
        }
        Ok(g)
    }

    /// A message that is sent as an envelope of `len` bytes, with the real one packed inside.
    pub fn packed(len: u32) -> Self {
        Geometry {
            control: len,
            count: 0,
            parts: [0; MAX_PARTS],
            total: len,
            packed: true,
        }
    }

    /// Whether this is an envelope, which has no data parts.
    pub fn is_packed(&self) -> bool {
        self.packed
    }

    /// Length of the control part.
    pub fn control_len(&self) -> u32 {
        self.control
    }

    /// Length of each data part, in order.
    pub fn part_lens(&self) -> &[u32] {
        &self.parts[..usize::from(self.count)]
    }

    /// Length of the whole message.
    pub fn total_len(&self) -> u32 {
        self.total
    }

    /// Splits `len` bytes at flat offset `at` into pieces that lie within one part each: the part (0 is the control
    /// part, `n` the data part `n - 1`), the offset in it, and the number of bytes. Bytes beyond the message are left
    /// out.
    pub fn pieces(&self, at: u32, len: u32) -> impl Iterator<Item = (usize, u32, u32)> + '_ {
        let end = at.saturating_add(len).min(self.total);
        let mut start = 0u32;
        core::iter::once(self.control)
            .chain(self.part_lens().iter().copied())
            .enumerate()
            .filter_map(move |(i, n)| {
                let (from, to) = (at.max(start), end.min(start + n));
                let piece = (from < to).then(|| (i, from - start, to - from));
                start += n;
                piece
            })
    }
}

impl core::fmt::Debug for Geometry {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.packed {
            return write!(f, "{} packed", self.control);
        }
        write!(f, "{} + {:?}", self.control, self.part_lens())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cut_at_the_seams() {
        let g = Geometry::new(10, &[0, 20, 5]).expect("a geometry");
        assert_eq!(g.total_len(), 35);
        assert_eq!(
            g.pieces(0, 35).collect::<Vec<_>>(),
            [(0, 0, 10), (2, 0, 20), (3, 0, 5)]
        );
        assert_eq!(g.pieces(8, 4).collect::<Vec<_>>(), [(0, 8, 2), (2, 0, 2)]);
        assert_eq!(g.pieces(31, 100).collect::<Vec<_>>(), [(3, 1, 4)]);
        assert_eq!(g.pieces(35, 1).count(), 0);
        assert_eq!(g.pieces(u32::MAX, u32::MAX).count(), 0);
    }

    #[test]
    fn sums_and_counts_are_bounded() {
        assert_eq!(Geometry::new(u32::MAX, &[1]), Err(GeometryError::TooLarge));
        assert_eq!(
            Geometry::new(0, &[1; 33]),
            Err(GeometryError::TooManyParts { parts: 33 })
        );
        assert!(Geometry::new(1, &[1; 32]).is_ok());
    }
}
