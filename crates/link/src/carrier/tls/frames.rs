//! Datagrams in a stream, each after its length.

/// Length of the length field before each datagram: two bytes, little-endian.
pub(crate) const HEAD: usize = 2;
/// The longest datagram, which with its length fills a TLS record.
pub(crate) const MOST: usize = RECORD - HEAD;
/// Most bytes in one TLS record (RFC 8446, section 5.1).
pub(crate) const RECORD: usize = 1 << 14;

/// A datagram length that no host with this protocol sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a datagram in the stream has {0} bytes, but 1 to {MOST} are possible")]
pub(crate) struct Malformed(usize);

/// Splits a stream into datagrams again.
#[derive(Debug, Default)]
pub(crate) struct Cutter {
    bytes: Vec<u8>,
    /// Bytes already returned.
    taken: usize,
}

impl Cutter {
    /// Appends received bytes. Call [`Cutter::next`] until it returns `None` before.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        if self.taken > 0 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next datagram, if it is complete.
    ///
    /// # Errors
    /// [`Malformed`], and again at each call: the rest of the stream is meaningless.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, Malformed> {
        let datagram = first(&self.bytes[self.taken..])?;
        self.taken += datagram.map_or(0, |d| HEAD + d.len());
        Ok(datagram)
    }

    /// The last `len` bytes that [`Cutter::next`] returned.
    pub(crate) fn last(&self, len: usize) -> &[u8] {
        self.bytes
            .get(self.taken.saturating_sub(len)..self.taken)
            .unwrap_or_default()
    }

    /// Number of bytes kept.
    pub(crate) fn kept(&self) -> usize {
        self.bytes.len() - self.taken
    }
}

/// The datagram at the start of `stream`, if it is complete.
///
/// # Errors
/// [`Malformed`]
pub(crate) fn first(stream: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    let Some((head, rest)) = stream.split_first_chunk::<HEAD>() else {
        return Ok(None);
    };
    let len = usize::from(u16::from_le_bytes(*head));
    if !(1..=MOST).contains(&len) {
        return Err(Malformed(len));
    }
    Ok(rest.get(..len))
}

/// The length field of a datagram of 1 to [`MOST`] bytes.
pub(crate) fn head(datagram: &[u8]) -> [u8; HEAD] {
    (datagram.len() as u16).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_cut_wherever_it_is_torn() {
        let datagrams: Vec<Vec<u8>> = [1, 2, 255, 256, 300, MOST]
            .iter()
            .map(|len| (0..*len).map(|i| (i / 5) as u8).collect())
            .collect();
        let stream: Vec<u8> = datagrams
            .iter()
            .flat_map(|d| [&head(d)[..], d].concat())
            .collect();
        for piece in [1, 2, 3, 7, 257, 4096, stream.len()] {
            let (mut cutter, mut came) = (Cutter::default(), Vec::new());
            for bytes in stream.chunks(piece) {
                cutter.put(bytes);
                while let Some(d) = cutter.next().expect("well formed") {
                    came.push(d.to_vec());
                }
                assert!(cutter.kept() < HEAD + MOST, "it grows");
            }
            assert_eq!(came, datagrams, "in pieces of {piece}");
            assert_eq!(cutter.kept(), 0);
        }
    }

    #[test]
    fn a_frame_is_as_the_wire_format_says() {
        assert_eq!(head(&[7; 0x0123]), [0x23, 0x01]);
        let mut cutter = Cutter::default();
        cutter.put(&[3, 0, 1, 2]);
        assert_eq!(cutter.next(), Ok(None));
        cutter.put(&[3, 1, 0, 9, 5]);
        assert_eq!(cutter.next(), Ok(Some(&[1, 2, 3][..])));
        assert_eq!(cutter.next(), Ok(Some(&[9][..])));
        assert_eq!(cutter.next(), Ok(None));
    }

    #[test]
    fn impossible_lengths_are_refused() {
        for len in [0, MOST + 1, usize::from(u16::MAX)] {
            let mut cutter = Cutter::default();
            cutter.put(&(len as u16).to_le_bytes());
            assert_eq!(cutter.next(), Err(Malformed(len)));
            assert_eq!(cutter.next(), Err(Malformed(len)), "still");
        }
    }
}
