//! Compressed bytes in upstream's form: the inflated length as a big-endian `u32`, then a zlib stream (RFC 1950).

use flate2::Compression;
use flate2::bufread::ZlibDecoder;
use flate2::write::ZlibEncoder;
use std::io::{Read, Write};

/// Bytes before the zlib stream.
const HEAD: usize = 4;

/// Why bytes cannot be inflated, or cannot be compressed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZlibError {
    /// The length is incomplete.
    #[error("{0} B of compressed data are too short: expected a length of 4 B, then a zlib stream")]
    Short(usize),
    /// More bytes than the receiver accepts.
    #[error("{claimed} B of uncompressed data exceed the limit of {most} B")]
    TooLong {
        /// The length that the data claims, or the number of bytes to compress.
        claimed: u64,
        /// The maximum that is accepted.
        most: u64,
    },
    /// The data is not a zlib stream, ends too early, or has a wrong checksum.
    #[error("not a zlib stream: {0}")]
    Stream(String),
    /// The stream holds more or fewer bytes than its length claims, or is followed by something.
    #[error("the zlib stream does not match its stated length of {0} B, or has trailing data")]
    Length(u32),
}

/// Compresses the data.
///
/// # Errors
/// [`ZlibError::TooLong`]: the length field cannot hold 4 GiB or more.
pub(crate) fn pack(data: &[u8]) -> Result<Vec<u8>, ZlibError> {
    let len = u32::try_from(data.len()).map_err(|_| ZlibError::TooLong {
        claimed: data.len() as u64,
        most: u32::MAX.into(),
    })?;
    let mut out = Vec::with_capacity(HEAD + data.len() / 2);
    out.extend_from_slice(&len.to_be_bytes());
    let mut encoder = ZlibEncoder::new(out, Compression::default());
    let written = encoder.write_all(data).and_then(|()| encoder.finish());
    written.map_err(|e| ZlibError::Stream(e.to_string()))
}

/// Inflates to at most `most` bytes. Memory grows with the content of the stream, not with the length that it claims.
///
/// # Errors
/// [`ZlibError`]: it claims more than `most`, or does not have the form that [`pack`] writes.
pub(crate) fn unpack(data: &[u8], most: u64) -> Result<Vec<u8>, ZlibError> {
    let (head, stream) = data
        .split_first_chunk::<HEAD>()
        .ok_or(ZlibError::Short(data.len()))?;
    let len = u32::from_be_bytes(*head);
    if u64::from(len) > most {
        return Err(ZlibError::TooLong {
            claimed: len.into(),
            most,
        });
    }
    let mut decoder = ZlibDecoder::new(stream);
    let mut out = Vec::new();
    // One byte more than the length shows whether the stream holds more.
    let read = decoder.by_ref().take(u64::from(len) + 1).read_to_end(&mut out);
    read.map_err(|e| ZlibError::Stream(e.to_string()))?;
    if out.len() as u64 != u64::from(len) || !decoder.get_ref().is_empty() {
        return Err(ZlibError::Length(len));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Zeros shrink to a thousandth when packed.
    fn bomb(len: usize) -> Vec<u8> {
        pack(&vec![0; len]).expect("packs")
    }

    #[test]
    fn packed_data_is_unpacked_unchanged() {
        for data in [&b""[..], b"x", &[7; 100_000], &(0..=255).collect::<Vec<u8>>()] {
            let packed = pack(data).expect("packs");
            assert_eq!(packed[..4], (data.len() as u32).to_be_bytes());
            assert_eq!(unpack(&packed, data.len() as u64), Ok(data.to_vec()));
        }
        // The output of Python's zlib.compress(b"hello", 6).
        let golden = b"\0\0\0\x05\x78\x9c\xcb\x48\xcd\xc9\xc9\x07\0\x06\x2c\x02\x15";
        assert_eq!(unpack(golden, 5).as_deref(), Ok(&b"hello"[..]));
    }

    #[test]
    fn bombs_are_refused() {
        let honest = bomb(1_000_000);
        assert_eq!(
            unpack(&honest, 999_999),
            Err(ZlibError::TooLong {
                claimed: 1_000_000,
                most: 999_999
            })
        );
        // A stream that claims to be small.
        let mut lying = honest.clone();
        lying[..4].copy_from_slice(&10u32.to_be_bytes());
        assert_eq!(unpack(&lying, 1 << 20), Err(ZlibError::Length(10)));
        // A stream that claims to be large, which costs no memory.
        let mut claims = bomb(10);
        claims[..4].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(unpack(&claims, u64::MAX), Err(ZlibError::Length(u32::MAX)));
    }

    #[test]
    fn damage_is_an_error() {
        let good = pack(b"a file of some length").expect("packs");
        for n in 0..good.len() {
            assert!(unpack(&good[..n], 1 << 20).is_err(), "cut at {n}");
        }
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            if let Ok(out) = unpack(&bad, 1 << 20) {
                // Some bits of the header, and those after the last code, have no meaning.
                assert_eq!(out, b"a file of some length", "bit {bit}");
            }
        }
        let mut longer = good;
        longer.push(0);
        assert!(matches!(unpack(&longer, 1 << 20), Err(ZlibError::Length(_))));
    }
}
