//! The header in front of the control part of a request or a reply on the air (`docs/wire/link.md`).

use proto::Geometry;
use std::time::Duration;

/// Length of a header.
pub(crate) const LEN: usize = 20;
/// Longest duration of a call.
pub(crate) const MAX_LEFT: Duration = Duration::from_secs(3600);

const REQUEST: u8 = 1;
const REPLY: u8 = 2;

/// The identity of a call, unique among the calls of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CallId {
    /// The run of the calling host's link; not 0.
    pub(crate) run: u32,
    /// The number of the call in that run, from 1.
    pub(crate) number: u64,
}

/// The outcome of a call at the server's host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The control part and the data parts are the server's reply.
    Answered,
    /// The server's own error. The control part is its text, as in all outcomes below.
    Rejected,
    /// The server died before it answered.
    Died,
    /// The service has no server there any more.
    Unserved,
    /// Too many calls are open.
    Busy,
    /// The server did not answer in time.
    TimedOut,
    /// The reply cannot be sent, or the request could not be passed to the server.
    Failed,
}

const OUTCOMES: [Outcome; 7] = [
    Outcome::Answered,
    Outcome::Rejected,
    Outcome::Died,
    Outcome::Unserved,
    Outcome::Busy,
    Outcome::TimedOut,
    Outcome::Failed,
];

/// The kind of a service's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request, whose caller waits this much longer; more than 0, at most [`MAX_LEFT`].
    Request(Duration),
    Reply(Outcome),
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) call: CallId,
    pub(crate) kind: Kind,
}

/// Why bytes are not a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeaderError {
    #[error("kind {0} is neither a request nor a reply")]
    Kind(u8),
    #[error("outcome {0} is unknown, or not possible for this kind")]
    Outcome(u8),
    #[error("the reserved bytes are {0}, not 0")]
    Reserved(u16),
    #[error("run and number of a call must be above 0, not {0} and {1}")]
    Call(u32, u64),
    #[error("{0} ms is not a valid waiting time")]
    Left(u32),
}

impl Header {
    pub(crate) fn encode(&self) -> [u8; LEN] {
        let (kind, outcome, left) = match self.kind {
            Kind::Request(left) => {
                // Rounded up, since a caller waits for more than 0.
                let ms = left.min(MAX_LEFT).as_nanos().div_ceil(1_000_000).max(1);
                (REQUEST, 0, u32::try_from(ms).unwrap_or(u32::MAX))
            }
            Kind::Reply(outcome) => {
                let at = OUTCOMES.iter().position(|o| *o == outcome);
                (REPLY, at.unwrap_or_default() as u8, 0)
            }
        };
        let mut out = [0; LEN];
        out[0] = kind;
        out[1] = outcome;
        out[4..8].copy_from_slice(&self.call.run.to_le_bytes());
        out[8..16].copy_from_slice(&self.call.number.to_le_bytes());
        out[16..].copy_from_slice(&left.to_le_bytes());
        out
    }

    /// Reads the output of [`Header::encode`], and nothing else.
    pub(crate) fn parse(bytes: &[u8; LEN]) -> Result<Header, HeaderError> {
        let [kind, outcome, a, b, r0, r1, r2, r3, number @ .., l0, l1, l2, l3] = *bytes;
        let reserved = u16::from_le_bytes([a, b]);
        let call = CallId {
            run: u32::from_le_bytes([r0, r1, r2, r3]),
            number: u64::from_le_bytes(number),
        };
        let left = u32::from_le_bytes([l0, l1, l2, l3]);
        let kind = match (kind, OUTCOMES.get(usize::from(outcome))) {
            (REQUEST, _) if outcome != 0 => return Err(HeaderError::Outcome(outcome)),
            (REQUEST, _) => Kind::Request(Duration::from_millis(left.into())),
            (REPLY, Some(outcome)) => Kind::Reply(*outcome),
            (REPLY, None) => return Err(HeaderError::Outcome(outcome)),
            _ => return Err(HeaderError::Kind(kind)),
        };
        let waits = match kind {
            Kind::Request(left) => !left.is_zero() && left <= MAX_LEFT,
            Kind::Reply(_) => left == 0,
        };
        if reserved != 0 {
            return Err(HeaderError::Reserved(reserved));
        }
        if call.run == 0 || call.number == 0 {
            return Err(HeaderError::Call(call.run, call.number));
        }
        if !waits {
            return Err(HeaderError::Left(left));
        }
        Ok(Header { call, kind })
    }
}

/// The shape of a message without its header; `None` if it is too small for one.
pub(crate) fn inner(geometry: &Geometry) -> Option<Geometry> {
    let control = geometry.control_len().checked_sub(LEN as u32)?;
    (!geometry.is_packed()).then(|| Geometry::new(control, geometry.part_lens()).ok())?
}

/// Copies from a control part with a header in front.
pub(crate) fn copy_control(head: &[u8; LEN], control: &[u8], at: usize, to: &mut [u8]) {
    let n = LEN.saturating_sub(at).min(to.len());
    let (front, back) = to.split_at_mut(n);
    if n > 0 {
        front.copy_from_slice(&head[at..at + n]);
    }
    let from = (at + n).saturating_sub(LEN);
    back.copy_from_slice(&control[from..from + back.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: CallId = CallId {
        run: 0x0102_0304,
        number: 0x1112_1314_1516_1718,
    };

    fn all() -> Vec<Header> {
        let replies = OUTCOMES.iter().map(|o| Kind::Reply(*o));
        let requests = [1, 5_000, 3_600_000].map(|ms| Kind::Request(Duration::from_millis(ms)));
        replies
            .chain(requests)
            .map(|kind| Header { call: CALL, kind })
            .collect()
    }

    #[test]
    fn written_headers_are_read_back() {
        for header in all() {
            assert_eq!(Header::parse(&header.encode()), Ok(header));
        }
        let short = Header {
            call: CALL,
            kind: Kind::Request(Duration::from_nanos(1)),
        };
        let long = Header {
            kind: Kind::Request(Duration::MAX),
            ..short
        };
        let left = |h: Header| Header::parse(&h.encode()).map(|h| h.kind);
        assert_eq!(left(short), Ok(Kind::Request(Duration::from_millis(1))));
        assert_eq!(left(long), Ok(Kind::Request(MAX_LEFT)));
    }

    #[test]
    fn a_header_stands_in_front_at_every_cut() {
        let head: [u8; LEN] = std::array::from_fn(|i| i as u8);
        let control: Vec<u8> = (LEN as u8..50).collect();
        let whole: Vec<u8> = (0..50).collect();
        for from in 0..=50 {
            for to in from..=50 {
                let mut out = vec![0xEE; to - from];
                copy_control(&head, &control, from, &mut out);
                assert_eq!(out, whole[from..to], "{from}..{to}");
            }
        }
    }

    #[test]
    fn messages_without_room_for_a_header_are_refused() {
        let whole = Geometry::new(30, &[5, 0]).expect("a geometry");
        assert_eq!(inner(&whole), Geometry::new(10, &[5, 0]).ok());
        assert_eq!(inner(&Geometry::new(19, &[100]).expect("a geometry")), None);
        assert_eq!(inner(&Geometry::packed(100)), None);
    }

    #[test]
    fn malformed_headers_are_refused_by_what_is_wrong() {
        let good = Header {
            call: CALL,
            kind: Kind::Request(Duration::from_secs(1)),
        };
        let with = |at: usize, bytes: &[u8]| {
            let mut all = good.encode();
            all[at..at + bytes.len()].copy_from_slice(bytes);
            Header::parse(&all).expect_err("refused")
        };
        assert_eq!(with(0, &[0]), HeaderError::Kind(0));
        assert_eq!(with(0, &[3]), HeaderError::Kind(3));
        assert_eq!(with(1, &[1]), HeaderError::Outcome(1));
        assert_eq!(with(0, &[2, 7]), HeaderError::Outcome(7));
        assert_eq!(with(0, &[2, 0]), HeaderError::Left(1000));
        assert_eq!(with(3, &[1]), HeaderError::Reserved(256));
        assert_eq!(with(4, &[0; 4]), HeaderError::Call(0, CALL.number));
        assert_eq!(with(8, &[0; 8]), HeaderError::Call(CALL.run, 0));
        assert_eq!(with(16, &[0; 4]), HeaderError::Left(0));
        assert_eq!(
            with(16, &3_600_001u32.to_le_bytes()),
            HeaderError::Left(3_600_001)
        );
    }

    #[test]
    fn a_changed_bit_is_refused_or_says_something_else() {
        for header in all() {
            let good = header.encode();
            for bit in 0..LEN * 8 {
                let mut bytes = good;
                bytes[bit / 8] ^= 1 << (bit % 8);
                if let Ok(read) = Header::parse(&bytes) {
                    assert_ne!(read, header);
                    assert_eq!(read.encode(), bytes);
                }
            }
        }
    }

    /// Other implementations must read these, too.
    #[test]
    fn golden_headers_are_read() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/link/calls.txt");
        let mut lines = String::new();
        for header in all() {
            let hex: String = header.encode().iter().map(|b| format!("{b:02x}")).collect();
            lines += &format!("{hex} {header:?}\n");
        }
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, &lines).expect("a writable file");
        }
        assert_eq!(std::fs::read_to_string(path).expect("reads"), lines);
    }
}
