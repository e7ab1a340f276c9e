//! Reads and writes the scalars of the wire: little-endian integers, and variable-length integers as in RFC 9000
//! section 16 (two bits of length, then 6, 14, 30 or 62 bits, big-endian).

use super::PacketError;

/// Largest value that a variable-length integer carries.
pub(crate) const VARINT_MAX: u64 = (1 << 62) - 1;

/// Appends `v` in its shortest form; values larger than [`VARINT_MAX`] are written as that.
pub(crate) fn put_varint(out: &mut Vec<u8>, v: u64) {
    match v {
        0..=0x3F => out.push(v as u8),
        0x40..=0x3FFF => out.extend_from_slice(&(v as u16 | 0x4000).to_be_bytes()),
        0x4000..=0x3FFF_FFFF => out.extend_from_slice(&(v as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(v.min(VARINT_MAX) | 0xC000_0000_0000_0000).to_be_bytes()),
    }
}

/// Number of bytes that [`put_varint`] appends.
pub(crate) fn varint_len(v: u64) -> usize {
    match v {
        0..=0x3F => 1,
        0x40..=0x3FFF => 2,
        0x4000..=0x3FFF_FFFF => 4,
        _ => 8,
    }
}

/// Appends a length and the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A cursor over foreign bytes. Every method fails rather than read past the end.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(all: &'a [u8]) -> Self {
        Reader { all, at: 0 }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at >= self.all.len()
    }

    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8], PacketError> {
        let end = self.at.checked_add(n).filter(|e| *e <= self.all.len());
        let end = end.ok_or(PacketError::Truncated {
            at: self.at,
            len: self.all.len(),
        })?;
        let out = &self.all[self.at..end];
        self.at = end;
        Ok(out)
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        let out = &self.all[self.at..];
        self.at = self.all.len();
        out
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], PacketError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, PacketError> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32, PacketError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, PacketError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn varint(&mut self) -> Result<u64, PacketError> {
        let first = self.u8()?;
        let mut v = u64::from(first & 0x3F);
        for b in self.take((1usize << (first >> 6)) - 1)? {
            v = v << 8 | u64::from(*b);
        }
        Ok(v)
    }

    /// A variable-length integer that must fit in 32 bits.
    pub(crate) fn varint32(&mut self, what: &'static str) -> Result<u32, PacketError> {
        let at = self.at;
        u32::try_from(self.varint()?).map_err(|_| PacketError::Invalid { what, at })
    }

    /// A length and that many bytes.
    pub(crate) fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], PacketError> {
        let n = self.varint32(what)?;
        self.take(n as usize)
    }

    /// A length of at most `max`, and that many bytes of UTF-8.
    pub(crate) fn text(&mut self, max: usize, what: &'static str) -> Result<&'a str, PacketError> {
        let at = self.at;
        let n = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
        if n > max {
            return Err(PacketError::Invalid { what, at });
        }
        core::str::from_utf8(self.take(n)?).map_err(|_| PacketError::Invalid { what, at })
    }

    /// The same for a name that can be printed as it is.
    pub(crate) fn name(&mut self, max: usize, what: &'static str) -> Result<&'a str, PacketError> {
        let at = self.at;
        let name = self.text(max, what)?;
        stats::text::is_plain(name)
            .then_some(name)
            .ok_or(PacketError::Invalid { what, at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_those_of_rfc_9000() {
        // The examples of its appendix A.1.
        for (v, bytes) in [
            (
                151_288_809_941_952_652u64,
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..],
            ),
            (494_878_333, &[0x9d, 0x7f, 0x3e, 0x7d]),
            (15_293, &[0x7b, 0xbd]),
            (37, &[0x25]),
        ] {
            let mut out = Vec::new();
            put_varint(&mut out, v);
            assert_eq!(out, bytes);
            assert_eq!(varint_len(v), bytes.len());
            assert_eq!(Reader::new(bytes).varint(), Ok(v));
            assert!(Reader::new(&bytes[..bytes.len() - 1]).varint().is_err());
        }
        assert_eq!(
            Reader::new(&[0x40, 0x25]).varint(),
            Ok(37),
            "a longer form is read too"
        );
    }
}
