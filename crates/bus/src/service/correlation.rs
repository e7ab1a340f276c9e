//! The correlation header: the client and the request that a message belongs to.

use crate::block::CORRELATION;

const MAGIC: u32 = u32::from_le_bytes(*b"RWCO");
const VERSION: u16 = 1;

/// Kind of a service message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Request,
    Reply,
    /// The server's own error; the control part is its text.
    Rejection,
}

/// A correlation header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Correlation {
    pub(super) kind: Kind,
    /// The client's publisher for requests.
    pub(super) client: u64,
    /// Number of the request within its client, starting at 1.
    pub(super) number: u64,
    /// The client's deadline: nanoseconds of `CLOCK_MONOTONIC`.
    pub(super) deadline: u64,
    /// In a rejection, the number of the forwarder's reason, or 0.
    pub(super) code: u16,
}

impl Correlation {
    pub(super) fn encode(&self) -> [u8; CORRELATION] {
        let mut out = [0; CORRELATION];
        let kind: u16 = match self.kind {
            Kind::Request => 1,
            Kind::Reply => 2,
            Kind::Rejection => 3,
        };
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &MAGIC.to_ne_bytes());
        put(4, &VERSION.to_ne_bytes());
        put(6, &kind.to_ne_bytes());
        put(8, &self.client.to_ne_bytes());
        put(16, &self.number.to_ne_bytes());
        put(24, &self.deadline.to_ne_bytes());
        put(32, &self.code.to_ne_bytes());
        out
    }

    /// Returns `None` if [`Correlation::encode`] would not write these bytes.
    pub(super) fn parse(bytes: &[u8; CORRELATION]) -> Option<Correlation> {
        let u16_at = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let u64_at = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let kind = match u16_at(6) {
            1 => Kind::Request,
            2 => Kind::Reply,
            3 => Kind::Rejection,
            _ => return None,
        };
        let correlation = Correlation {
            kind,
            client: u64_at(8)?,
            number: u64_at(16)?,
            deadline: u64_at(24)?,
            code: u16_at(32),
        };
        let valid = bytes[..4] == MAGIC.to_ne_bytes()
            && u16_at(4) == VERSION
            && correlation.client != 0
            && correlation.number != 0
            && (kind == Kind::Rejection || correlation.code == 0)
            && bytes[34..].iter().all(|b| *b == 0);
        valid.then_some(correlation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: Correlation = Correlation {
        kind: Kind::Rejection,
        client: 0x0102_0304_0506_0708,
        number: 9,
        deadline: u64::MAX,
        code: 5,
    };

    #[test]
    fn written_headers_are_read_back() {
        for kind in [Kind::Request, Kind::Reply, Kind::Rejection] {
            let header = Correlation {
                kind,
                code: 0,
                ..VALID
            };
            assert_eq!(Correlation::parse(&header.encode()), Some(header));
            let coded = Correlation { kind, ..VALID };
            let is_read = Correlation::parse(&coded.encode()) == Some(coded);
            assert_eq!(is_read, kind == Kind::Rejection, "{kind:?}");
        }
        assert_eq!(Correlation::parse(&[0; CORRELATION]), None);
    }

    #[test]
    fn a_changed_bit_is_refused_or_changes_a_number() {
        let valid = VALID.encode();
        for bit in 0..CORRELATION * 8 {
            let mut bytes = valid;
            bytes[bit / 8] ^= 1 << (bit % 8);
            match Correlation::parse(&bytes) {
                // An accepted header encodes to exactly the bytes that were parsed.
                Some(read) => {
                    assert_eq!(read.encode(), bytes);
                    assert_ne!(read, VALID);
                    assert!((6..34).contains(&(bit / 8)), "bit {bit}");
                }
                None => assert!(!(8..16).contains(&(bit / 8)) && !(24..34).contains(&(bit / 8))),
            }
        }
    }
}
