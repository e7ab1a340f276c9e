//! Reads scalars of either byte order, and writes little endian.

use super::error::WireError;

/// A cursor over untrusted bytes. Every method fails rather than read beyond the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    all: &'a [u8],
    at: usize,
    little: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(all: &'a [u8], little: bool) -> Self {
        Reader { all, at: 0, little }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn little(&self) -> bool {
        self.little
    }

    pub(crate) fn set_little(&mut self, little: bool) {
        self.little = little;
    }

    pub(crate) fn remaining(&self) -> usize {
        self.all.len().saturating_sub(self.at)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8], WireError> {
        let cut = WireError::Truncated {
            at: self.at,
            len: self.all.len(),
        };
        let end = self.at.checked_add(n).ok_or(cut)?;
        let out = self.all.get(self.at..end).ok_or(cut)?;
        self.at = end;
        Ok(out)
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        let out = self.all.get(self.at..).unwrap_or_default();
        self.at = self.all.len();
        out
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, WireError> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, WireError> {
        let bytes = self.array()?;
        Ok(if self.little {
            u16::from_le_bytes(bytes)
        } else {
            u16::from_be_bytes(bytes)
        })
    }

    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        let bytes = self.array()?;
        Ok(if self.little {
            u32::from_le_bytes(bytes)
        } else {
            u32::from_be_bytes(bytes)
        })
    }

    pub(crate) fn i32(&mut self) -> Result<i32, WireError> {
        Ok(self.u32()? as i32)
    }

    /// Reads a CDR string: its length including the NUL, the bytes, the NUL. Fails if it is not UTF-8.
    pub(crate) fn string(&mut self, most: usize, what: &'static str) -> Result<String, WireError> {
        let at = self.at;
        let n = self.u32()? as usize;
        if n > most.saturating_add(1) {
            return Err(WireError::TooLong { what, most });
        }
        let bytes = self.take(n)?;
        let text = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        core::str::from_utf8(text)
            .map(str::to_owned)
            .map_err(|_| WireError::Invalid { what, at })
    }

    /// Reads a CDR sequence of octets: its length and the bytes.
    pub(crate) fn octets(&mut self, most: usize, what: &'static str) -> Result<&'a [u8], WireError> {
        let n = self.u32()? as usize;
        if n > most {
            return Err(WireError::TooLong { what, most });
        }
        self.take(n)
    }

    /// Advances to the next multiple of 4, counted from the start, or to the end if that is beyond it.
    pub(crate) fn align4(&mut self) {
        self.at = self.at.next_multiple_of(4).min(self.all.len());
    }
}

pub(crate) fn put_u16(out: &mut Vec<u8>, v: u16) {
    out.extend_from_slice(&v.to_le_bytes());
}

pub(crate) fn put_u32(out: &mut Vec<u8>, v: u32) {
    out.extend_from_slice(&v.to_le_bytes());
}

/// Writes a CDR string, padded to a multiple of 4 counted from its start.
pub(crate) fn put_string(out: &mut Vec<u8>, text: &str) {
    put_u32(out, text.len() as u32 + 1);
    out.extend_from_slice(text.as_bytes());
    out.push(0);
    pad4(out, text.len() + 1);
}

/// Writes a CDR sequence of octets, padded likewise.
pub(crate) fn put_octets(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u32(out, bytes.len() as u32);
    out.extend_from_slice(bytes);
    pad4(out, bytes.len());
}

fn pad4(out: &mut Vec<u8>, n: usize) {
    out.resize(out.len() + n.next_multiple_of(4) - n, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_byte_orders_are_read() {
        let bytes = [1, 2, 3, 4, 5, 6];
        let mut little = Reader::new(&bytes, true);
        assert_eq!(little.u16(), Ok(0x0201));
        assert_eq!(little.u32(), Ok(0x0605_0403));
        assert!(little.u8().is_err());
        let mut big = Reader::new(&bytes, false);
        assert_eq!(big.u16(), Ok(0x0102));
        assert_eq!(big.u32(), Ok(0x0304_0506));
    }

    #[test]
    fn strings_make_the_round_trip_and_are_bounded() {
        let mut out = Vec::new();
        put_string(&mut out, "rt/chatter");
        assert_eq!(out.len() % 4, 0);
        assert_eq!(
            Reader::new(&out, true).string(10, "name").as_deref(),
            Ok("rt/chatter")
        );
        assert_eq!(
            Reader::new(&out, true).string(9, "name"),
            Err(WireError::TooLong {
                what: "name",
                most: 9
            })
        );
        for n in 0..4 + 11 {
            assert!(Reader::new(&out[..n], true).string(99, "name").is_err());
        }
        assert!(Reader::new(&[0xff; 8], true).string(99, "name").is_err());
        assert!(Reader::new(&[1, 0, 0, 0, 0xff], true).string(99, "name").is_err());
    }
}
