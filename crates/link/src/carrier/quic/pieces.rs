//! Splits datagrams longer than a packet into pieces, and joins them at the receiver.
//!
//! On a wire, packets are fast, and a host's speed depends on the scheduling and bookkeeping per datagram.
//! The scheduler therefore produces longer datagrams there, and only encryption runs per packet.

use crate::carrier::socket::MAX_PAYLOAD;
use bytes::{BufMut, Bytes, BytesMut};

/// [`MAX_PAYLOAD`] minus QUIC's header (1, connection id 4, packet number up to 4), tag (16) and the frame's
/// head (9).
pub(super) const MAX_DATAGRAM: usize = 1438;
/// Most bytes of a packet that do not belong to its datagram.
pub(super) const AROUND: usize = MAX_PAYLOAD - MAX_DATAGRAM;
/// The first byte of a piece. The link's own datagrams begin with other bytes.
pub(crate) const MARK: u8 = 0xC3;
/// The first byte of a path probe, which its receiver discards.
pub(super) const PROBE: u8 = 0xC4;
/// Length of a piece's head: the mark, then the datagram's number, its length, and the piece's offset in it,
/// each as two bytes (little-endian).
pub(crate) const HEAD: usize = 7;
/// Most pieces of a datagram.
pub(crate) const MOST_PIECES: usize = 11;
/// Most bytes of a datagram in one piece.
pub(crate) const PIECE: usize = MAX_DATAGRAM - HEAD;
/// The longest datagram that can be split.
pub(crate) const MOST: usize = PIECE * MOST_PIECES;

/// Splits datagrams.
#[derive(Debug, Default)]
pub(super) struct Cutter {
    number: u16,
    /// Buffer for pieces, reused once they are gone.
    bytes: BytesMut,
}

impl Cutter {
    /// The pieces of a datagram of at most [`MOST`] bytes, in order, each of at most `size` bytes without its
    /// head.
    pub(super) fn cut<'a>(&'a mut self, datagram: &'a [u8], size: usize) -> impl Iterator<Item = Bytes> + 'a {
        self.number = self.number.wrapping_add(1);
        let size = size.max(1);
        let pieces = datagram.len().div_ceil(size);
        self.bytes.reserve(datagram.len() + pieces * HEAD);
        datagram.chunks(size).enumerate().map(move |(i, piece)| {
            self.bytes.put_u8(MARK);
            self.bytes.put_u16_le(self.number);
            // Less than 2^16, as are all offsets.
            self.bytes.put_u16_le(datagram.len() as u16);
            self.bytes.put_u16_le((i * size) as u16);
            self.bytes.put_slice(piece);
            self.bytes.split().freeze()
        })
    }
}

/// An unusable piece: an earlier one was lost, or the piece is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stray;

/// Joins datagrams whose pieces arrive in order, one datagram at a time. A missing piece loses its datagram.
#[derive(Debug, Default)]
pub(crate) struct Joiner {
    number: u16,
    length: usize,
    bytes: Vec<u8>,
    /// The last received datagram, if it was not a piece.
    alone: Option<Bytes>,
}

impl Joiner {
    /// Takes a received datagram. Returns true if it is not a piece, or if it completes a datagram, which
    /// [`Joiner::whole`] then returns.
    ///
    /// # Errors
    /// [`Stray`]
    pub(crate) fn take(&mut self, came: Bytes) -> Result<bool, Stray> {
        if came.first() != Some(&MARK) {
            self.alone = Some(came);
            return Ok(true);
        }
        self.alone = None;
        let Some((head, piece)) = came.split_first_chunk::<HEAD>() else {
            return Err(Stray);
        };
        let [_, n0, n1, l0, l1, o0, o1] = *head;
        let (number, length) = (
            u16::from_le_bytes([n0, n1]),
            usize::from(u16::from_le_bytes([l0, l1])),
        );
        let offset = usize::from(u16::from_le_bytes([o0, o1]));
        if piece.is_empty() || length > MOST || offset + piece.len() > length {
            return Err(Stray);
        }
        if offset == 0 {
            self.bytes.clear();
            (self.number, self.length) = (number, length);
        } else if (self.number, self.length, self.bytes.len()) != (number, length, offset) {
            return Err(Stray);
        }
        self.bytes.extend_from_slice(piece);
        Ok(self.bytes.len() == self.length)
    }

    /// The completed datagram, or the last one received whole.
    pub(crate) fn whole(&self) -> &[u8] {
        self.alone.as_deref().unwrap_or(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of a joiner for `bytes`.
    fn take(joiner: &mut Joiner, bytes: &[u8]) -> Result<Option<Vec<u8>>, Stray> {
        let whole = joiner.take(Bytes::copy_from_slice(bytes))?;
        Ok(whole.then(|| joiner.whole().to_vec()))
    }

    fn datagram(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i / 7) as u8).collect()
    }

    #[test]
    fn cut_datagrams_are_joined_again() {
        let (mut cutter, mut joiner) = (Cutter::default(), Joiner::default());
        for len in [1, PIECE, PIECE + 1, 2 * PIECE, MOST - 1, MOST] {
            let sent = datagram(len);
            let pieces: Vec<Bytes> = cutter.cut(&sent, PIECE).collect();
            assert_eq!(pieces.len(), len.div_ceil(PIECE));
            let (last, before) = pieces.split_last().expect("a piece");
            for piece in before {
                assert_eq!(piece.len(), MAX_DATAGRAM);
                assert_eq!(take(&mut joiner, piece), Ok(None));
                assert_eq!(
                    take(&mut joiner, &[0xB3, 1]),
                    Ok(Some(vec![0xB3, 1])),
                    "other datagrams pass in between"
                );
            }
            assert_eq!(take(&mut joiner, last), Ok(Some(sent.clone())));
        }
    }

    #[test]
    fn a_piece_is_as_the_wire_format_says() {
        let mut cutter = Cutter {
            number: 0x1233,
            ..Cutter::default()
        };
        let sent = datagram(PIECE + 2);
        let pieces: Vec<Bytes> = cutter.cut(&sent, PIECE).collect();
        assert_eq!(pieces[0][..8], [0xC3, 0x34, 0x12, 0x99, 0x05, 0, 0, 0]);
        assert_eq!(
            pieces[1][..],
            [0xC3, 0x34, 0x12, 0x99, 0x05, 0x97, 0x05, 204, 204]
        );
    }

    #[test]
    fn where_a_piece_is_missing_the_datagram_is_lost_alone() {
        let (mut cutter, mut joiner) = (Cutter::default(), Joiner::default());
        let sent = datagram(3 * PIECE);
        for missing in 0..3 {
            let pieces: Vec<Bytes> = cutter.cut(&sent, PIECE).collect();
            for (i, piece) in pieces.iter().enumerate().filter(|(i, _)| *i != missing) {
                let expected = if i < missing { Ok(None) } else { Err(Stray) };
                assert_eq!(take(&mut joiner, piece), expected);
            }
            let again: Vec<Bytes> = cutter.cut(&sent, PIECE).collect();
            assert_eq!(take(&mut joiner, &again[0]), Ok(None));
            assert_eq!(take(&mut joiner, &again[0]), Ok(None), "it starts again");
            assert_eq!(take(&mut joiner, &again[1]), Ok(None));
            assert_eq!(take(&mut joiner, &again[1]), Err(Stray), "a second time");
            assert_eq!(take(&mut joiner, &again[2]), Ok(Some(sent.clone())));
            assert_eq!(take(&mut joiner, &again[2]), Err(Stray), "beyond the end");
        }
    }

    #[test]
    fn invalid_pieces_are_refused() {
        let mut joiner = Joiner::default();
        let piece = |length: u16, offset: u16, bytes: usize| {
            let mut all = vec![MARK, 1, 0];
            all.extend(length.to_le_bytes());
            all.extend(offset.to_le_bytes());
            all.resize(HEAD + bytes, 9);
            all
        };
        let whole = piece(2, 0, 2);
        for len in 1..HEAD {
            assert_eq!(take(&mut joiner, &whole[..len]), Err(Stray), "{len} bytes");
        }
        assert_eq!(take(&mut joiner, &piece(0, 0, 0)), Err(Stray), "of nothing");
        assert_eq!(take(&mut joiner, &piece(2, 0, 0)), Err(Stray), "an empty piece");
        assert_eq!(
            take(&mut joiner, &piece(2, 0, 3)),
            Err(Stray),
            "longer than the whole"
        );
        assert_eq!(
            take(&mut joiner, &piece(MOST as u16 + 1, 0, 5)),
            Err(Stray),
            "too long"
        );
        assert_eq!(take(&mut joiner, &piece(u16::MAX, u16::MAX, 1)), Err(Stray));
        assert_eq!(take(&mut joiner, &piece(5, 2, 1)), Err(Stray), "no beginning");
        assert_eq!(take(&mut joiner, &piece(5, 0, 2)), Ok(None));
        assert_eq!(
            take(&mut joiner, &piece(6, 2, 2)),
            Err(Stray),
            "of another length"
        );
        assert_eq!(take(&mut joiner, &piece(5, 2, 3)), Ok(Some(vec![9; 5])));
        assert_eq!(take(&mut joiner, &[]), Ok(Some(vec![])));
    }
}
