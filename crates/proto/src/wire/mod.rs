//! The bytes of a datagram: one header, then frames. Described with diagrams in `docs/wire/link.md`.

mod bytes;
mod reasons;

pub(crate) use bytes::{Reader, put_bytes, put_varint};
pub(crate) use reasons::code as reason_code;

use crate::config::MAX_HOST_NAME;
use crate::geometry::{Geometry, MAX_PARTS};
use stats::{Drops, Time};

/// Version of the wire format, in the low half of a datagram's first byte.
pub(crate) const VERSION: u8 = 1;
const MAGIC: u8 = 0xB0;
const HELLO_MAGIC: [u8; 4] = *b"RPWK";

const HELLO: u8 = 0x01;
const PING: u8 = 0x02;
const ANNOUNCE: u8 = 0x03;
const ANNOUNCE_ACK: u8 = 0x04;
const CANCEL: u8 = 0x05;
const REPORT: u8 = 0x06;
const DATA: u8 = 0x40;
const DATA_ORIGIN: u8 = 0x01;
const DATA_LENGTH: u8 = 0x02;

/// Why a datagram was not understood. It was counted, and had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// It came from a peer that was never added.
    #[error("a datagram for peer {peer}, which was not added")]
    NoSuchPeer {
        /// The peer's number.
        peer: u32,
    },
    /// It is none of this protocol.
    #[error("first byte {first:#04x}: not a datagram of this protocol")]
    Foreign {
        /// Its first byte.
        first: u8,
    },
    /// The other end speaks another version.
    #[error(
        "the peer speaks version {theirs} of the link protocol, this end version {ours}: update the older one"
    )]
    Version {
        /// The peer's version.
        theirs: u8,
        /// This end's version.
        ours: u8,
    },
    /// It ends in the middle of something.
    #[error("cut off: more bytes expected at {at}, it has {len}")]
    Truncated {
        /// Where the missing bytes should begin.
        at: usize,
        /// Length of what was read.
        len: usize,
    },
    /// A frame of a kind that this version does not have.
    #[error("unknown frame {kind:#04x} at byte {at}")]
    UnknownFrame {
        /// The frame's first byte.
        kind: u8,
        /// Where it stands.
        at: usize,
    },
    /// A value makes no sense.
    #[error("{what} makes no sense at byte {at}")]
    Invalid {
        /// Which value.
        what: &'static str,
        /// Where it stands.
        at: usize,
    },
}

/// What every datagram begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The sender's session.
    pub(crate) session: u32,
    /// Number of the datagram, from 0, counted per peer and session.
    pub(crate) number: u64,
}

impl Header {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(MAGIC | VERSION);
        out.extend_from_slice(&self.session.to_le_bytes());
        put_varint(out, self.number);
    }
}

/// A greeting; it opens a session and answers one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello<'a> {
    pub(crate) host: u64,
    /// The receiver's session as the sender knows it; 0 if it knows none.
    pub(crate) seen: u32,
    pub(crate) max_message: u32,
    pub(crate) name: &'a str,
}

/// Some bytes of an encoded announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnnouncePiece<'a> {
    pub(crate) topic: u32,
    /// Which edition of the announcement; a change makes a new one.
    pub(crate) edition: u32,
    pub(crate) total: u32,
    pub(crate) offset: u32,
    /// The sender wants an answer.
    pub(crate) poll: bool,
    pub(crate) bytes: &'a [u8],
}

/// What became of an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckState {
    /// Bytes from here on are missing.
    Missing(u32),
    Accepted,
    Refused,
}

/// The head of a fragment; the bytes follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataHead {
    pub(crate) topic: u32,
    pub(crate) seq: u64,
    pub(crate) stamp: Time,
    pub(crate) origin: u64,
    pub(crate) offset: u32,
    pub(crate) geometry: Geometry,
}

impl DataHead {
    /// Most that the head of a fragment of such a message takes.
    pub(crate) fn room(geometry: &Geometry) -> usize {
        let varint = |v: u32| {
            if v < 1 << 14 {
                2
            } else if v < 1 << 30 {
                4
            } else {
                8
            }
        };
        let lens: usize = geometry.part_lens().iter().map(|n| varint(*n)).sum();
        // Kind, topic, number, stamp, origin, offset and length (neither beyond the total), control length.
        let total = varint(geometry.total_len());
        1 + 4 + 8 + 8 + 8 + 2 * total + varint(geometry.control_len()) + 1 + lens
    }

    /// Appends the head of a fragment. Without a length the fragment is the last frame of its datagram.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, length: Option<u32>) {
        let flag = |on: bool, bit: u8| if on { bit } else { 0 };
        out.push(DATA | flag(self.origin != 0, DATA_ORIGIN) | flag(length.is_some(), DATA_LENGTH));
        put_varint(out, self.topic.into());
        put_varint(out, self.seq);
        out.extend_from_slice(&self.stamp.as_nanos().to_le_bytes());
        if self.origin != 0 {
            out.extend_from_slice(&self.origin.to_le_bytes());
        }
        put_varint(out, self.offset.into());
        put_varint(out, self.geometry.control_len().into());
        out.push(self.geometry.part_lens().len() as u8);
        for n in self.geometry.part_lens() {
            put_varint(out, (*n).into());
        }
        if let Some(n) = length {
            put_varint(out, n.into());
        }
    }
}

/// Counts of one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReportEntry {
    /// By the topic's sender: offered, sent.
    Sender {
        topic: u32,
        offered: u64,
        sent: u64,
        drops: Drops,
    },
    /// By the topic's receiver: delivered.
    Receiver {
        topic: u32,
        delivered: u64,
        drops: Drops,
    },
}

impl ReportEntry {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let (kind, topic, counts, drops): (u64, _, &[u64], _) = match self {
            ReportEntry::Sender {
                topic,
                offered,
                sent,
                drops,
            } => (0, topic, &[*offered, *sent], drops),
            ReportEntry::Receiver {
                topic,
                delivered,
                drops,
            } => (1, topic, &[*delivered], drops),
        };
        put_varint(out, u64::from(*topic) << 1 | kind);
        counts.iter().for_each(|n| put_varint(out, *n));
        put_varint(out, drops.iter().count() as u64);
        for (reason, n) in drops.iter() {
            out.push(reason_code(reason));
            put_varint(out, n);
        }
    }

    fn decode(r: &mut Reader<'_>) -> Result<Self, PacketError> {
        let at = r.at();
        let key = r.varint()?;
        let topic = u32::try_from(key >> 1).map_err(|_| PacketError::Invalid {
            what: "topic number",
            at,
        })?;
        let (first, second) = (r.varint()?, if key & 1 == 0 { r.varint()? } else { 0 });
        let mut drops = Drops::default();
        // Each turn reads two bytes at least, and reasons merge: bounded by the datagram.
        for _ in 0..r.varint()? {
            let reason = reasons::reason(r.u8()?);
            drops.add(reason, r.varint()?);
        }
        Ok(match key & 1 {
            0 => ReportEntry::Sender {
                topic,
                offered: first,
                sent: second,
                drops,
            },
            _ => ReportEntry::Receiver {
                topic,
                delivered: first,
                drops,
            },
        })
    }
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    Hello(Hello<'a>),
    Ping,
    Announce(AnnouncePiece<'a>),
    AnnounceAck {
        topic: u32,
        edition: u32,
        state: AckState,
    },
    Cancel {
        topic: u32,
        seq: u64,
    },
    Report(ReportEntry),
    Data(DataHead, &'a [u8]),
}

impl<'a> Frame<'a> {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Frame::Hello(h) => {
                out.push(HELLO);
                out.extend_from_slice(&HELLO_MAGIC);
                out.extend_from_slice(&h.host.to_le_bytes());
                out.extend_from_slice(&h.seen.to_le_bytes());
                put_varint(out, h.max_message.into());
                put_bytes(out, h.name.as_bytes());
            }
            Frame::Ping => out.push(PING),
            Frame::Announce(a) => {
                out.push(ANNOUNCE);
                put_varint(out, a.topic.into());
                put_varint(out, a.edition.into());
                put_varint(out, a.total.into());
                put_varint(out, a.offset.into());
                out.push(u8::from(a.poll));
                put_bytes(out, a.bytes);
            }
            Frame::AnnounceAck {
                topic,
                edition,
                state,
            } => {
                out.push(ANNOUNCE_ACK);
                put_varint(out, (*topic).into());
                put_varint(out, (*edition).into());
                let (code, missing) = match state {
                    AckState::Missing(at) => (0, *at),
                    AckState::Accepted => (1, 0),
                    AckState::Refused => (2, 0),
                };
                out.push(code);
                put_varint(out, missing.into());
            }
            Frame::Cancel { topic, seq } => {
                out.push(CANCEL);
                put_varint(out, (*topic).into());
                put_varint(out, *seq);
            }
            Frame::Report(entry) => {
                out.push(REPORT);
                entry.encode(out);
            }
            Frame::Data(head, bytes) => {
                head.encode(out, Some(bytes.len() as u32));
                out.extend_from_slice(bytes);
            }
        }
    }

    fn decode(r: &mut Reader<'a>) -> Result<Self, PacketError> {
        let at = r.at();
        let kind = r.u8()?;
        Ok(match kind {
            HELLO => {
                if r.array()? != HELLO_MAGIC {
                    return Err(PacketError::Invalid { what: "greeting", at });
                }
                Frame::Hello(Hello {
                    host: r.u64()?,
                    seen: r.u32()?,
                    max_message: r.varint32("largest message")?,
                    name: r.text(MAX_HOST_NAME, "host name")?,
                })
            }
            PING => Frame::Ping,
            ANNOUNCE => {
                let (topic, edition) = (r.varint32("topic number")?, r.varint32("edition")?);
                let (total, offset) = (
                    r.varint32("announcement length")?,
                    r.varint32("announcement offset")?,
                );
                let poll = r.u8()? & 1 != 0;
                let n = r.varint32("piece length")?;
                let bytes = r.take(n as usize)?;
                if offset.checked_add(n).is_none_or(|end| end > total) {
                    return Err(PacketError::Invalid {
                        what: "announcement offset",
                        at,
                    });
                }
                Frame::Announce(AnnouncePiece {
                    topic,
                    edition,
                    total,
                    offset,
                    poll,
                    bytes,
                })
            }
            ANNOUNCE_ACK => {
                let (topic, edition) = (r.varint32("topic number")?, r.varint32("edition")?);
                let (code, missing) = (r.u8()?, r.varint32("announcement offset")?);
                let state = match code {
                    0 => AckState::Missing(missing),
                    1 => AckState::Accepted,
                    2 => AckState::Refused,
                    _ => return Err(PacketError::Invalid { what: "verdict", at }),
                };
                Frame::AnnounceAck {
                    topic,
                    edition,
                    state,
                }
            }
            CANCEL => Frame::Cancel {
                topic: r.varint32("topic number")?,
                seq: r.varint()?,
            },
            REPORT => Frame::Report(ReportEntry::decode(r)?),
            _ if kind & !(DATA_ORIGIN | DATA_LENGTH) == DATA => {
                let head = decode_head(r, kind)?;
                let bytes = match kind & DATA_LENGTH {
                    0 => r.rest(),
                    _ => {
                        let n = r.varint32("fragment length")?;
                        r.take(n as usize)?
                    }
                };
                let end = u64::from(head.offset) + bytes.len() as u64;
                let total = head.geometry.total_len();
                if end > total.into() || (bytes.is_empty() && total != 0) {
                    return Err(PacketError::Invalid {
                        what: "fragment offset",
                        at,
                    });
                }
                Frame::Data(head, bytes)
            }
            _ => return Err(PacketError::UnknownFrame { kind, at }),
        })
    }
}

fn decode_head(r: &mut Reader<'_>, kind: u8) -> Result<DataHead, PacketError> {
    let (topic, seq) = (r.varint32("topic number")?, r.varint()?);
    let stamp = Time(r.u64()?);
    let origin = if kind & DATA_ORIGIN != 0 { r.u64()? } else { 0 };
    let offset = r.varint32("fragment offset")?;
    let at = r.at();
    let control = r.varint32("control length")?;
    let count = usize::from(r.u8()?);
    let mut parts = [0u32; MAX_PARTS];
    let parts = parts.get_mut(..count).ok_or(PacketError::Invalid {
        what: "number of parts",
        at,
    })?;
    for p in parts.iter_mut() {
        *p = r.varint32("part length")?;
    }
    let geometry =
        Geometry::new(control, parts).map_err(|_| PacketError::Invalid { what: "geometry", at })?;
    Ok(DataHead {
        topic,
        seq,
        stamp,
        origin,
        offset,
        geometry,
    })
}

/// The frames of a datagram that was checked to parse to its end.
#[derive(Clone, Copy)]
pub(crate) struct Frames<'a>(Reader<'a>);

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        if self.0.is_empty() {
            None
        } else {
            Frame::decode(&mut self.0).ok()
        }
    }
}

/// Parses a whole datagram, so that one that is wrong anywhere has no effect at all.
pub(crate) fn decode(datagram: &[u8]) -> Result<(Header, Frames<'_>), PacketError> {
    let mut r = Reader::new(datagram);
    let first = r.u8()?;
    if first & 0xF0 != MAGIC {
        return Err(PacketError::Foreign { first });
    }
    if first & 0x0F != VERSION {
        return Err(PacketError::Version {
            theirs: first & 0x0F,
            ours: VERSION,
        });
    }
    let at = r.at();
    let header = Header {
        session: r.u32()?,
        number: r.varint()?,
    };
    if header.session == 0 {
        return Err(PacketError::Invalid { what: "session", at });
    }
    let frames = Frames(r);
    while !r.is_empty() {
        Frame::decode(&mut r)?;
    }
    Ok((header, frames))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::DropReason;

    fn samples() -> Vec<Frame<'static>> {
        let mut drops = Drops::default();
        drops.add(DropReason::Replaced, 70_000);
        drops.add(DropReason::Air, 3);
        let head = DataHead {
            topic: 3,
            seq: 20_000,
            stamp: Time(1_700_000_000_123_456_789),
            origin: 0,
            offset: 1408,
            geometry: Geometry::new(70, &[64_000, 12]).expect("a geometry"),
        };
        vec![
            Frame::Hello(Hello {
                host: 0x1122_3344_5566_7788,
                seen: 9,
                max_message: 64 << 20,
                name: "robot-1",
            }),
            Frame::Ping,
            Frame::Announce(AnnouncePiece {
                topic: 300,
                edition: 2,
                total: 5000,
                offset: 1400,
                poll: true,
                bytes: b"abc",
            }),
            Frame::AnnounceAck {
                topic: 3,
                edition: 1,
                state: AckState::Missing(1403),
            },
            Frame::AnnounceAck {
                topic: 3,
                edition: 1,
                state: AckState::Accepted,
            },
            Frame::AnnounceAck {
                topic: 4,
                edition: 1,
                state: AckState::Refused,
            },
            Frame::Cancel { topic: 3, seq: 77 },
            Frame::Report(ReportEntry::Sender {
                topic: 3,
                offered: 1000,
                sent: 900,
                drops: drops.clone(),
            }),
            Frame::Report(ReportEntry::Receiver {
                topic: 0,
                delivered: 5,
                drops,
            }),
            Frame::Data(head, b"fragment"),
            Frame::Data(DataHead { origin: 5, ..head }, b"f"),
            Frame::Data(
                DataHead {
                    offset: 0,
                    geometry: Geometry::new(0, &[]).expect("empty"),
                    ..head
                },
                b"",
            ),
        ]
    }

    #[test]
    fn every_frame_makes_the_round_trip_and_every_cut_is_noticed() {
        let mut all = Vec::new();
        Header {
            session: 7,
            number: 500,
        }
        .encode(&mut all);
        let mut seams = vec![all.len()];
        for f in samples() {
            f.encode(&mut all);
            seams.push(all.len());
        }
        let (header, frames) = decode(&all).expect("valid");
        assert_eq!(
            header,
            Header {
                session: 7,
                number: 500
            }
        );
        assert_eq!(frames.collect::<Vec<_>>(), samples());
        for n in 0..all.len() {
            assert_eq!(decode(&all[..n]).is_ok(), seams.contains(&n), "cut at {n}");
        }
    }

    #[test]
    fn a_fragment_costs_little() {
        let mut out = Vec::new();
        Header {
            session: 7,
            number: 5_000,
        }
        .encode(&mut out);
        let geometry = Geometry::new(70, &[76_800]).expect("a geometry");
        let head = DataHead {
            topic: 3,
            seq: 900,
            stamp: Time(u64::MAX),
            origin: 0,
            offset: 30_000,
            geometry,
        };
        head.encode(&mut out, None);
        assert!(out.len() <= 32, "{} B of header", out.len());
    }

    #[test]
    fn wrong_versions_and_foreign_bytes_are_told_apart() {
        let err = |d: &[u8]| decode(d).map(|_| ()).expect_err("refused");
        assert_eq!(err(b"GET / HTTP/1.1"), PacketError::Foreign { first: b'G' });
        assert_eq!(
            err(&[0xB2, 1, 0, 0, 0, 0]),
            PacketError::Version { theirs: 2, ours: 1 }
        );
        assert_eq!(
            err(&[0xB1, 0, 0, 0, 0, 0]),
            PacketError::Invalid {
                what: "session",
                at: 1
            }
        );
        assert_eq!(
            err(&[0xB1, 1, 0, 0, 0, 0, 0x3F]),
            PacketError::UnknownFrame { kind: 0x3F, at: 6 }
        );
        assert_eq!(err(&[]), PacketError::Truncated { at: 0, len: 0 });
    }

    /// Each frame in a datagram of its own, as other implementations must write and read it.
    #[test]
    fn golden_datagrams_stay_as_they_are() {
        let mut lines = String::new();
        for (i, f) in samples().into_iter().enumerate() {
            let mut out = Vec::new();
            Header {
                session: 0x0403_0201,
                number: 500 + i as u64,
            }
            .encode(&mut out);
            f.encode(&mut out);
            let hex: String = out.iter().map(|b| format!("{b:02x}")).collect();
            lines += &format!("{hex} {f:?}\n");
        }
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/vectors/proto/datagrams.txt"
        );
        let golden = std::fs::read_to_string(path).unwrap_or_default();
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, &lines).expect("a writable file");
        }
        assert_eq!(
            lines, golden,
            "the wire format changed: raise VERSION, or mend it"
        );
    }
}
