//! The envelope around frames of Ropewalk's own wire between its own ends (`docs/wire/remote-zmq.md`). Integers are
//! little-endian.

const REQUEST: u8 = 1;
const LISTEN: u8 = 2;
const RETURN: u8 = 3;
const ANSWER: u8 = 4;
const BUSY: u8 = 5;
const TELEMETRY: u8 = 6;
const MARK: u8 = 7;

/// Maximum streams that a controller can request one by one.
pub(super) const MAX_STREAMS: usize = 1024;

/// Messages to a robot's end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ToRobot<'a> {
    Request {
        id: u64,
        frame: &'a [u8],
    },
    /// Requests telemetry on this connection.
    Listen {
        epoch: u32,
        filter: Filter,
    },
    /// The newest mark that arrived on this connection.
    Return {
        mark: u64,
    },
}

/// Messages to a controller's end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ToController<'a> {
    Answer {
        id: u64,
        frame: &'a [u8],
    },
    /// The robot has the maximum of requests in progress: this one was not passed on.
    Busy {
        id: u64,
    },
    /// To be sent back.
    Mark {
        mark: u64,
    },
    /// A telemetry frame. `lost` frames were dropped for this listener since the epoch began.
    Telemetry {
        epoch: u32,
        lost: u64,
        frame: &'a [u8],
    },
}

/// The telemetry that a listener wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    All,
    Only(Vec<(String, u8)>),
}

impl Filter {
    pub(super) fn wants(&self, kind: &str, channel: u8) -> bool {
        match self {
            Filter::All => true,
            Filter::Only(streams) => streams.iter().any(|(k, c)| *c == channel && k == kind),
        }
    }
}

impl ToRobot<'_> {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            ToRobot::Request { id, frame } => tagged(REQUEST, &id.to_le_bytes(), frame),
            ToRobot::Listen { epoch, filter } => {
                let mut out = tagged(LISTEN, &epoch.to_le_bytes(), &[]);
                match filter {
                    Filter::All => out.push(1),
                    Filter::Only(streams) => {
                        out.push(0);
                        for (kind, channel) in streams {
                            out.push(*channel);
                            let len = kind.len().min(usize::from(u16::MAX));
                            out.extend_from_slice(&(len as u16).to_le_bytes());
                            out.extend_from_slice(&kind.as_bytes()[..len]);
                        }
                    }
                }
                out
            }
            ToRobot::Return { mark } => tagged(RETURN, &mark.to_le_bytes(), &[]),
        }
    }

    /// `None` if the bytes, which may come from an unauthenticated peer, are malformed.
    pub(super) fn parse(bytes: &[u8]) -> Option<ToRobot<'_>> {
        let (tag, rest) = bytes.split_first()?;
        match *tag {
            REQUEST => {
                let (id, frame) = number(rest)?;
                Some(ToRobot::Request { id, frame })
            }
            LISTEN => {
                let (epoch, rest) = rest.split_first_chunk()?;
                let (all, mut rest) = rest.split_first()?;
                let epoch = u32::from_le_bytes(*epoch);
                if *all == 1 && rest.is_empty() {
                    return Some(ToRobot::Listen {
                        epoch,
                        filter: Filter::All,
                    });
                }
                let mut streams = Vec::new();
                while let Some((channel, after)) = rest.split_first() {
                    let (len, after) = after.split_first_chunk()?;
                    let (kind, after) = after.split_at_checked(usize::from(u16::from_le_bytes(*len)))?;
                    if streams.len() == MAX_STREAMS {
                        return None;
                    }
                    streams.push((str::from_utf8(kind).ok()?.to_owned(), *channel));
                    rest = after;
                }
                (*all == 0).then_some(ToRobot::Listen {
                    epoch,
                    filter: Filter::Only(streams),
                })
            }
            RETURN => {
                let (mark, rest) = number(rest)?;
                rest.is_empty().then_some(ToRobot::Return { mark })
            }
            _ => None,
        }
    }
}

impl ToController<'_> {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            ToController::Answer { id, frame } => tagged(ANSWER, &id.to_le_bytes(), frame),
            ToController::Busy { id } => tagged(BUSY, &id.to_le_bytes(), &[]),
            ToController::Mark { mark } => tagged(MARK, &mark.to_le_bytes(), &[]),
            ToController::Telemetry { epoch, lost, frame } => {
                let mut head = [0; 12];
                head[..4].copy_from_slice(&epoch.to_le_bytes());
                head[4..].copy_from_slice(&lost.to_le_bytes());
                tagged(TELEMETRY, &head, frame)
            }
        }
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<ToController<'_>> {
        let (tag, rest) = bytes.split_first()?;
        match *tag {
            ANSWER => {
                let (id, frame) = number(rest)?;
                Some(ToController::Answer { id, frame })
            }
            BUSY => {
                let (id, rest) = number(rest)?;
                rest.is_empty().then_some(ToController::Busy { id })
            }
            MARK => {
                let (mark, rest) = number(rest)?;
                rest.is_empty().then_some(ToController::Mark { mark })
            }
            TELEMETRY => {
                let (epoch, rest) = rest.split_first_chunk()?;
                let (lost, frame) = number(rest)?;
                Some(ToController::Telemetry {
                    epoch: u32::from_le_bytes(*epoch),
                    lost,
                    frame,
                })
            }
            _ => None,
        }
    }
}

fn tagged(tag: u8, head: &[u8], frame: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 + head.len() + frame.len());
    out.push(tag);
    out.extend_from_slice(head);
    out.extend_from_slice(frame);
    out
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn written_envelopes_are_read_back() {
        for message in [
            ToRobot::Request {
                id: 7,
                frame: b"frame",
            },
            ToRobot::Request {
                id: u64::MAX,
                frame: b"",
            },
            ToRobot::Listen {
                epoch: 3,
                filter: Filter::All,
            },
            ToRobot::Listen {
                epoch: 3,
                filter: Filter::Only(vec![]),
            },
            ToRobot::Listen {
                epoch: 4,
                filter: Filter::Only(vec![("a.B".into(), 0), ("c".into(), 255)]),
            },
            ToRobot::Return { mark: 9 },
        ] {
            assert_eq!(ToRobot::parse(&message.encode()), Some(message));
        }
        for message in [
            ToController::Answer {
                id: 7,
                frame: b"frame",
            },
            ToController::Busy { id: 8 },
            ToController::Mark { mark: u64::MAX },
            ToController::Telemetry {
                epoch: 1,
                lost: 2,
                frame: b"x",
            },
        ] {
            assert_eq!(ToController::parse(&message.encode()), Some(message));
        }
    }

    #[test]
    fn nonsense_is_nothing() {
        let many = Filter::Only(vec![(String::new(), 0); MAX_STREAMS + 1]);
        for bytes in [
            &b""[..],
            b"\x00",
            b"\xff12345678",
            b"\x01short",
            b"\x02\0\0\0\0",
            b"\x02\0\0\0\0\x02",
            b"\x02\0\0\0\0\x00\x01\xff\xffab",
            b"\x02\0\0\0\0\x00\x01\x01\x00\xff",
            b"\x03",
            b"\x03123456789",
            &ToRobot::Listen {
                epoch: 1,
                filter: many,
            }
            .encode(),
        ] {
            assert_eq!(ToRobot::parse(bytes), None);
        }
        assert_eq!(ToController::parse(b"\x05123456789"), None);
        assert_eq!(ToController::parse(b"\x06123456789"), None);
        assert_eq!(ToController::parse(b"\x07123456789"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged(bytes in proptest::collection::vec(any::<u8>(), 0..80), tag in 0u8..8) {
            let mut tagged = vec![tag];
            tagged.extend_from_slice(&bytes);
            if let Some(message) = ToRobot::parse(&tagged) {
                prop_assert_eq!(message.encode(), &tagged[..]);
            }
            if let Some(message) = ToController::parse(&tagged) {
                prop_assert_eq!(message.encode(), &tagged[..]);
            }
        }
    }
}
