//! A packed message: its shape, and each of its parts, packed or unchanged.

use proto::{Geometry, MAX_PARTS};

/// The largest message that is unpacked, in bytes; also the largest that a link carries.
pub(crate) const MAX_MESSAGE: u32 = 64 << 20;
/// Zstandard's compression level: the fastest regular one.
const LEVEL: i32 = 1;

const LZ4: u8 = 1;
const ZSTD: u8 = 2;

/// The codec that packs the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    Lz4,
    Zstd,
}

/// Why an envelope was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EnvelopeError {
    #[error("the envelope ends within {what}")]
    Short { what: &'static str },
    #[error("unknown codec {0}: 1 is LZ4, 2 is Zstandard")]
    Codec(u8),
    #[error("the message has {0} data parts, more than the limit of {MAX_PARTS}")]
    Parts(u8),
    #[error("the message has {bytes} bytes, more than the limit of {MAX_MESSAGE}")]
    TooLarge { bytes: u64 },
    #[error("a part of {len} bytes cannot be packed into {packed}")]
    PackedLength { len: u32, packed: u32 },
    #[error("{0} bytes follow the last part")]
    Trailing(usize),
    #[error("a part does not unpack to its length")]
    Content,
}

/// Packs and unpacks, and keeps the codecs' state.
#[derive(Default)]
pub(crate) struct Engine {
    compressor: Option<zstd::bulk::Compressor<'static>>,
    decompressor: Option<zstd::bulk::Decompressor<'static>>,
    scratch: Vec<u8>,
}

impl Engine {
    /// Packs a message, given as its control part and data parts. Returns `None` if that is impossible.
    pub(crate) fn pack(&mut self, codec: Codec, pieces: &[&[u8]]) -> Option<Vec<u8>> {
        let parts = u8::try_from(pieces.len().checked_sub(1)?).ok()?;
        let total: u64 = pieces.iter().map(|p| p.len() as u64).sum();
        if usize::from(parts) > MAX_PARTS || total > MAX_MESSAGE.into() {
            return None;
        }
        let mut out = Vec::with_capacity(total as usize / 2 + 64);
        out.push(match codec {
            Codec::Lz4 => LZ4,
            Codec::Zstd => ZSTD,
        });
        out.push(parts);
        let put = |out: &mut Vec<u8>, n: usize| out.extend_from_slice(&(n as u32).to_le_bytes());
        pieces.iter().for_each(|p| put(&mut out, p.len()));
        for piece in pieces.iter().filter(|p| !p.is_empty()) {
            let packed = self.shrink(codec, piece).filter(|n| *n < piece.len());
            put(&mut out, packed.unwrap_or(piece.len()));
            match packed {
                Some(n) => out.extend_from_slice(&self.scratch[..n]),
                None => out.extend_from_slice(piece),
            }
        }
        Some(out)
    }

    /// The packed length of a sample, or its own length if packing fails.
    pub(crate) fn sample(&mut self, codec: Codec, sample: &[u8]) -> usize {
        self.shrink(codec, sample).unwrap_or(sample.len())
    }

    /// Packs into the scratch memory and returns the length.
    fn shrink(&mut self, codec: Codec, piece: &[u8]) -> Option<usize> {
        let bound = match codec {
            Codec::Lz4 => lz4_flex::block::get_maximum_output_size(piece.len()),
            Codec::Zstd => zstd::zstd_safe::compress_bound(piece.len()),
        };
        if self.scratch.len() < bound {
            self.scratch.resize(bound, 0);
        }
        match codec {
            Codec::Lz4 => lz4_flex::block::compress_into(piece, &mut self.scratch).ok(),
            Codec::Zstd => {
                if self.compressor.is_none() {
                    self.compressor = zstd::bulk::Compressor::new(LEVEL).ok();
                }
                let compressor = self.compressor.as_mut()?;
                compressor.compress_to_buffer(piece, &mut self.scratch[..]).ok()
            }
        }
    }

    /// Unpacks one piece to exactly its length.
    fn unpack(&mut self, codec: Codec, packed: &[u8], to: &mut [u8]) -> Result<(), EnvelopeError> {
        if packed.len() == to.len() {
            to.copy_from_slice(packed);
            return Ok(());
        }
        let written = match codec {
            Codec::Lz4 => lz4_flex::block::decompress_into(packed, to).ok(),
            Codec::Zstd => {
                if self.decompressor.is_none() {
                    self.decompressor = zstd::bulk::Decompressor::new().ok();
                }
                let decompressor = self.decompressor.as_mut();
                decompressor.and_then(|d| d.decompress_to_buffer(packed, to).ok())
            }
        };
        match written {
            Some(n) if n == to.len() => Ok(()),
            _ => Err(EnvelopeError::Content),
        }
    }
}

/// An envelope of valid shape, with nothing unpacked yet.
#[derive(Debug)]
pub(crate) struct Envelope<'a> {
    codec: Codec,
    /// The message's shape.
    pub(crate) geometry: Geometry,
    rest: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Checks an envelope's shape and the size of its message.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, EnvelopeError> {
        let mut rest = bytes;
        let [codec, parts] = *take::<2>(&mut rest, "its head")?;
        let codec = match codec {
            LZ4 => Codec::Lz4,
            ZSTD => Codec::Zstd,
            other => return Err(EnvelopeError::Codec(other)),
        };
        if usize::from(parts) > MAX_PARTS {
            return Err(EnvelopeError::Parts(parts));
        }
        let control = number(&mut rest, "a part's length")?;
        let lens = (0..parts)
            .map(|_| number(&mut rest, "a part's length"))
            .collect::<Result<Vec<_>, _>>()?;
        let bytes = lens.iter().fold(u64::from(control), |sum, n| sum + u64::from(*n));
        let geometry = Geometry::new(control, &lens).ok();
        let geometry = geometry
            .filter(|_| bytes <= MAX_MESSAGE.into())
            .ok_or(EnvelopeError::TooLarge { bytes })?;
        let envelope = Envelope {
            codec,
            geometry,
            rest,
        };
        let mut pieces = envelope.pieces();
        for piece in pieces.by_ref() {
            piece?;
        }
        match pieces.rest.len() {
            0 => Ok(envelope),
            n => Err(EnvelopeError::Trailing(n)),
        }
    }

    fn pieces(&self) -> Pieces<'a> {
        Pieces {
            geometry: self.geometry,
            next: 0,
            rest: self.rest,
        }
    }

    /// Unpacks every part into its place: part 0 is the control part, part n is data part n - 1.
    pub(crate) fn unpack<'b>(
        &self,
        engine: &mut Engine,
        places: impl Iterator<Item = &'b mut [u8]>,
    ) -> Result<(), EnvelopeError> {
        let mut pieces = self.pieces();
        for place in places.filter(|p| !p.is_empty()) {
            let packed = pieces.next().ok_or(EnvelopeError::Content)??;
            engine.unpack(self.codec, packed, place)?;
        }
        Ok(())
    }
}

/// The packed pieces that are not empty.
struct Pieces<'a> {
    geometry: Geometry,
    next: usize,
    rest: &'a [u8],
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Result<&'a [u8], EnvelopeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let len = loop {
            let len = match self.next {
                0 => self.geometry.control_len(),
                n => *self.geometry.part_lens().get(n - 1)?,
            };
            self.next += 1;
            if len > 0 {
                break len;
            }
        };
        let piece = number(&mut self.rest, "a packed length").and_then(|packed| {
            if packed == 0 || packed > len {
                return Err(EnvelopeError::PackedLength { len, packed });
            }
            let whole = self.rest.split_at_checked(packed as usize);
            let (piece, rest) = whole.ok_or(EnvelopeError::Short { what: "a part" })?;
            self.rest = rest;
            Ok(piece)
        });
        Some(piece)
    }
}

fn take<'a, const N: usize>(rest: &mut &'a [u8], what: &'static str) -> Result<&'a [u8; N], EnvelopeError> {
    let (taken, left) = rest
        .split_first_chunk::<N>()
        .ok_or(EnvelopeError::Short { what })?;
    *rest = left;
    Ok(taken)
}

fn number(rest: &mut &[u8], what: &'static str) -> Result<u32, EnvelopeError> {
    take::<4>(rest, what).map(|b| u32::from_le_bytes(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(bytes: &[u8]) -> Result<Vec<Vec<u8>>, EnvelopeError> {
        let envelope = Envelope::open(bytes)?;
        let lens = std::iter::once(&envelope.geometry.control_len())
            .chain(envelope.geometry.part_lens())
            .copied()
            .collect::<Vec<u32>>();
        let mut places: Vec<Vec<u8>> = lens.iter().map(|n| vec![0xAA; *n as usize]).collect();
        envelope.unpack(&mut Engine::default(), places.iter_mut().map(Vec::as_mut_slice))?;
        Ok(places)
    }

    fn noise(n: usize) -> Vec<u8> {
        let mut x = 7u64;
        let step = |x: &mut u64| {
            *x = x.wrapping_mul(6364136223846793005).wrapping_add(1);
            (*x >> 33) as u8
        };
        (0..n).map(|_| step(&mut x)).collect()
    }

    #[test]
    fn packed_messages_are_unpacked_unchanged() {
        let (flat, noisy) = (vec![7u8; 100_000], noise(5_000));
        for codec in [Codec::Lz4, Codec::Zstd] {
            let mut engine = Engine::default();
            for pieces in [
                &[&b"control"[..], &flat, &[], &noisy][..],
                &[&flat[..]],
                &[&[][..], &[], &flat],
                &[&[][..]],
                &[&[5u8][..], &flat],
            ] {
                let packed = engine.pack(codec, pieces).expect("packs");
                assert_eq!(opened(&packed).expect("unpacks"), pieces, "{codec:?}");
            }
            let packed = engine.pack(codec, &[&b"c"[..], &flat]).expect("packs");
            assert!(packed.len() < 1000, "{}", packed.len());
            // An incompressible part costs only its lengths.
            let packed = engine.pack(codec, &[&noisy[..]]).expect("packs");
            assert_eq!(packed.len(), noisy.len() + 10);
        }
    }

    #[test]
    fn bombs_and_broken_envelopes_are_refused_before_memory_is_asked_for() {
        let head = |codec: u8, parts: u8, lens: &[u32]| {
            let mut out = vec![codec, parts];
            lens.iter().for_each(|n| out.extend_from_slice(&n.to_le_bytes()));
            out
        };
        let refused = |bytes: &[u8]| Envelope::open(bytes).map(|_| ()).expect_err("refused");
        assert_eq!(refused(&[]), EnvelopeError::Short { what: "its head" });
        assert_eq!(refused(&head(3, 0, &[1])), EnvelopeError::Codec(3));
        assert_eq!(refused(&head(1, 33, &[1; 34])), EnvelopeError::Parts(33));
        let large = refused(&head(1, 1, &[MAX_MESSAGE, 1]));
        assert_eq!(
            large,
            EnvelopeError::TooLarge {
                bytes: u64::from(MAX_MESSAGE) + 1
            }
        );
        let sum = refused(&head(2, 32, &[u32::MAX; 33]));
        assert!(matches!(sum, EnvelopeError::TooLarge { bytes } if bytes > u64::from(u32::MAX)));
        let longer = [head(1, 0, &[4]), 5u32.to_le_bytes().to_vec(), vec![0; 5]].concat();
        assert_eq!(
            refused(&longer),
            EnvelopeError::PackedLength { len: 4, packed: 5 }
        );
        let trailing = [head(1, 0, &[0]), vec![9]].concat();
        assert_eq!(refused(&trailing), EnvelopeError::Trailing(1));
        // The shape is valid, but the content unpacks to more, or to less, than the stated length.
        let mut engine = Engine::default();
        for codec in [Codec::Lz4, Codec::Zstd] {
            let mut packed = engine.pack(codec, &[&[3u8; 4000][..]]).expect("packs");
            assert!(opened(&packed).is_ok());
            for len in [3999u32, 4001, 200] {
                packed[2..6].copy_from_slice(&len.to_le_bytes());
                assert_eq!(opened(&packed), Err(EnvelopeError::Content), "{codec:?} {len}");
            }
        }
    }

    #[test]
    fn every_cut_is_noticed() {
        let mut engine = Engine::default();
        let whole = engine
            .pack(Codec::Zstd, &[&[1u8; 50][..], &noise(30), &[2; 900]])
            .expect("packs");
        for n in 0..whole.len() {
            assert!(Envelope::open(&whole[..n]).is_err(), "cut at {n}");
        }
    }

    /// Other implementations must read these, too.
    #[test]
    fn golden_envelopes_are_read() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/vectors/link/envelopes.txt"
        );
        let text: Vec<u8> = b"ropewalk ".iter().copied().cycle().take(90).collect();
        let mut engine = Engine::default();
        let mut lines = String::new();
        for codec in [Codec::Lz4, Codec::Zstd] {
            let packed = engine.pack(codec, &[b"head", &text, &[], b"x"]).expect("packs");
            let hex: String = packed.iter().map(|b| format!("{b:02x}")).collect();
            lines += &format!("{hex} {codec:?} [\"head\", 10 x \"ropewalk \", \"\", \"x\"]\n");
        }
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, &lines).expect("a writable file");
        }
        let golden = std::fs::read_to_string(path).expect("reads");
        assert_eq!(golden.lines().count(), 2);
        for line in golden.lines() {
            let hex = line.split(' ').next().expect("digits");
            let byte = |i: usize| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("a digit");
            let bytes: Vec<u8> = (0..hex.len() / 2).map(byte).collect();
            let expected = [b"head".to_vec(), text.clone(), Vec::new(), b"x".to_vec()];
            assert_eq!(opened(&bytes).expect("unpacks"), expected);
        }
    }
}
