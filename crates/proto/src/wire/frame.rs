//! The frames, each with its bytes.

use super::acknowledgement::Acknowledgement;
use super::bytes::{Reader, put_bytes, put_varint};
use super::error::PacketError;
use super::receipt::Receipt;
use super::report::ReportEntry;
use super::sharing::Sharing;
use super::ways::{self, Ways};
use super::{MAGIC, VERSION};
use crate::config::MAX_HOST_NAME;
use crate::geometry::{Geometry, MAX_PARTS};
use crate::route::Route;
use stats::Time;

const HELLO_MAGIC: [u8; 4] = *b"RPWK";

const HELLO: u8 = 0x01;
const PING: u8 = 0x02;
const ANNOUNCE: u8 = 0x03;
const ANNOUNCE_ACK: u8 = 0x04;
const CANCEL: u8 = 0x05;
const REPORT: u8 = 0x06;
const ASK: u8 = 0x07;
const RECEIPT: u8 = 0x08;
const WATCHED: u8 = 0x09;
const WATCHED_SEEN: u8 = 0x0A;
const ACKNOWLEDGEMENT: u8 = 0x10;
const SETTLED: u8 = 0x11;
const ARRIVALS: u8 = 0x12;
const SOURCE: u8 = 0x13;
const PARITY: u8 = 0x14;
const WAYS: u8 = 0x38;
const UNWANTED: u8 = 0x39;
const ROUTE: u8 = 0x3A;
/// The same with the time left.
const ROUTE_LEFT: u8 = 0x3B;
const DATA: u8 = 0x40;
const DATA_ORIGIN: u8 = 0x01;
const DATA_LENGTH: u8 = 0x02;
const DATA_POLL: u8 = 0x04;
/// How a message that is sent as symbols is cut; bit 0 as in data.
const OBJECT: u8 = 0x48;
const SYMBOL: u8 = 0x4A;
const SYMBOL_POLL: u8 = 0x4B;
/// Data with the origin of the data before it in the same datagram; bits 0 and 1 mean length and poll.
const DATA_ALIKE: u8 = 0x4C;
const ALIKE_LENGTH: u8 = 0x01;
const ALIKE_POLL: u8 = 0x02;
/// More of a message that a data frame described; bit 0: length.
const MORE: u8 = 0x50;
const MORE_LENGTH: u8 = 0x01;
/// In place of the number of data parts: the message is an envelope and has none.
const PACKED: u8 = 0x80;

/// Start of every datagram.
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
    /// The receiver's session as the sender knows it; 0 if unknown.
    pub(crate) seen: u32,
    /// The sender does not know yet whether it is heard: answer.
    pub(crate) asks: bool,
    pub(crate) max_message: u32,
    /// The sender states which topics are watched there.
    pub(crate) states_watched: bool,
    /// Datagrams that the sender holds until it reads them; 0 if unstated.
    pub(crate) holds: u32,
    pub(crate) name: &'a str,
}

/// Some bytes of an encoded announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnnouncePiece<'a> {
    pub(crate) topic: u32,
    /// The edition of the announcement; a change makes a new one.
    pub(crate) edition: u32,
    pub(crate) total: u32,
    pub(crate) offset: u32,
    /// Whether the sender needs an answer.
    pub(crate) poll: bool,
    pub(crate) bytes: &'a [u8],
}

/// Result of an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckState {
    /// Bytes from here on are missing.
    Missing(u32),
    Accepted,
    Refused,
    /// Data arrived of a topic that is unknown here: announce it again.
    Unknown,
}

/// The header of a fragment; the bytes follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataHead {
    pub(crate) topic: u32,
    pub(crate) seq: u64,
    pub(crate) stamp: Time,
    pub(crate) origin: u64,
    pub(crate) offset: u32,
    pub(crate) geometry: Geometry,
    /// Whether the sender of a reliable topic needs an acknowledgement.
    pub(crate) poll: bool,
}

impl DataHead {
    /// Maximum length of the header of a fragment of such a message.
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

    /// Makes the fragment encoded in `out` ask for an acknowledgement.
    pub(crate) fn ask(out: &mut [u8]) {
        if let Some(kind) = out.first_mut() {
            *kind |= if *kind < DATA_ALIKE { DATA_POLL } else { ALIKE_POLL };
        }
    }

    /// Appends the header of a fragment. Without a length the fragment is the last frame of its datagram. `before` is
    /// the origin of the data before it in the datagram, if any.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, length: Option<u32>, before: Option<u64>) {
        let flag = |on: bool, bit: u8| if on { bit } else { 0 };
        let alike = self.origin != 0 && before == Some(self.origin);
        out.push(match alike {
            true => DATA_ALIKE | flag(length.is_some(), ALIKE_LENGTH) | flag(self.poll, ALIKE_POLL),
            false => {
                DATA | flag(self.origin != 0, DATA_ORIGIN)
                    | flag(length.is_some(), DATA_LENGTH)
                    | flag(self.poll, DATA_POLL)
            }
        });
        let said = if alike { 0 } else { self.origin };
        self.encode_fields(out, said, self.offset);
        if let Some(n) = length {
            put_varint(out, n.into());
        }
    }

    /// Appends all but the kind and the length. `origin` is written only if it is not 0; `at` is the offset, or what
    /// takes its place.
    fn encode_fields(&self, out: &mut Vec<u8>, origin: u64, at: u32) {
        put_varint(out, self.topic.into());
        put_varint(out, self.seq);
        out.extend_from_slice(&self.stamp.as_nanos().to_le_bytes());
        if origin != 0 {
            out.extend_from_slice(&origin.to_le_bytes());
        }
        put_varint(out, at.into());
        put_varint(out, self.geometry.control_len().into());
        out.push(match self.geometry.is_packed() {
            true => PACKED,
            false => self.geometry.part_lens().len() as u8,
        });
        for n in self.geometry.part_lens() {
            put_varint(out, (*n).into());
        }
    }
}

/// The header of a fragment of a message that its first fragment describes; the bytes follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MoreHead {
    pub(crate) topic: u32,
    pub(crate) seq: u64,
    /// Not 0.
    pub(crate) offset: u32,
}

impl MoreHead {
    /// Most that it takes, including the length of the bytes.
    pub(crate) const ROOM: usize = 1 + 4 + 8 + 4 + 4;

    /// Appends it. Without a length the fragment is the last frame of its datagram.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, length: Option<u32>) {
        out.push(MORE | if length.is_some() { MORE_LENGTH } else { 0 });
        put_varint(out, self.topic.into());
        put_varint(out, self.seq);
        put_varint(out, self.offset.into());
        if let Some(n) = length {
            put_varint(out, n.into());
        }
    }
}

/// The header of a symbol; the bytes follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SymbolHead {
    pub(crate) topic: u32,
    pub(crate) seq: u64,
    pub(crate) id: u32,
    /// Whether the sender needs an acknowledgement.
    pub(crate) poll: bool,
}

impl SymbolHead {
    /// Most that it takes, including the length of the bytes.
    pub(crate) const ROOM: usize = 1 + 4 + 8 + 4 + 4;
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
    /// Requests a receipt.
    Ask,
    Receipt(Receipt),
    /// Whether the receiver's topic has a subscriber here. Later statements have higher serials, from 1.
    Watched {
        topic: u32,
        serial: u32,
        watched: bool,
    },
    /// The newest statement received about a topic of the sender.
    WatchedSeen {
        topic: u32,
        serial: u32,
    },
    Acknowledgement(Acknowledgement),
    /// Messages below this number are no longer sent.
    Settled {
        topic: u32,
        floor: u64,
    },
    /// Number of datagrams that arrived up to number `newest`, and number of places where some were missing.
    Arrivals {
        newest: u64,
        came: u64,
        gaps: u64,
    },
    Sharing(Sharing),
    /// A data frame of a redundant topic, with its number.
    Source {
        topic: u32,
        id: u64,
        bytes: &'a [u8],
    },
    /// A sum of such frames, `count` of them from `first` on.
    Parity {
        topic: u32,
        first: u64,
        count: u8,
        key: u8,
        bytes: &'a [u8],
    },
    Ways(Ways),
    /// The receiver need not send messages of its topic here for the hosts in this mask.
    Unwanted {
        topic: u32,
        to: u64,
    },
    /// The route of the message in the data frame that follows, and the time left.
    Route(Route, Option<u32>),
    Data(DataHead, &'a [u8]),
    /// A fragment of a message that another fragment, at 0, describes.
    More(MoreHead, &'a [u8]),
    /// A message that is sent only as symbols, of this many bytes each.
    Object(DataHead, u16),
    /// One of its symbols.
    Symbol(SymbolHead, &'a [u8]),
}

impl<'a> Frame<'a> {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Frame::Hello(h) => {
                out.push(HELLO);
                out.extend_from_slice(&HELLO_MAGIC);
                out.extend_from_slice(&h.host.to_le_bytes());
                out.extend_from_slice(&h.seen.to_le_bytes());
                out.push(u8::from(h.asks) | u8::from(h.states_watched) << 1);
                put_varint(out, h.max_message.into());
                put_varint(out, h.holds.into());
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
                    AckState::Unknown => (3, 0),
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
            Frame::Ask => out.push(ASK),
            Frame::Receipt(receipt) => {
                out.push(RECEIPT);
                receipt.encode(out);
            }
            Frame::Watched {
                topic,
                serial,
                watched,
            } => {
                out.push(WATCHED);
                put_varint(out, (*topic).into());
                put_varint(out, (*serial).into());
                out.push(u8::from(*watched));
            }
            Frame::WatchedSeen { topic, serial } => {
                out.push(WATCHED_SEEN);
                put_varint(out, (*topic).into());
                put_varint(out, (*serial).into());
            }
            Frame::Acknowledgement(a) => {
                out.push(ACKNOWLEDGEMENT);
                a.encode(out);
            }
            Frame::Settled { topic, floor } => {
                out.push(SETTLED);
                put_varint(out, (*topic).into());
                put_varint(out, *floor);
            }
            Frame::Arrivals { newest, came, gaps } => {
                out.push(ARRIVALS);
                for v in [newest, came, gaps] {
                    put_varint(out, *v);
                }
            }
            Frame::Sharing(sharing) => sharing.encode(out),
            Frame::Source { topic, id, bytes } => {
                out.push(SOURCE);
                put_varint(out, (*topic).into());
                put_varint(out, *id);
                put_bytes(out, bytes);
            }
            Frame::Parity {
                topic,
                first,
                count,
                key,
                bytes,
            } => {
                out.push(PARITY);
                put_varint(out, (*topic).into());
                put_varint(out, *first);
                out.extend_from_slice(&[*count, *key]);
                put_bytes(out, bytes);
            }
            Frame::Ways(ways) => {
                out.push(WAYS);
                ways.encode(out);
            }
            Frame::Unwanted { topic, to } => {
                out.push(UNWANTED);
                put_varint(out, (*topic).into());
                put_varint(out, *to);
            }
            Frame::Route(route, left) => {
                out.push(if left.is_some() { ROUTE_LEFT } else { ROUTE });
                ways::put_route(route, *left, out);
            }
            Frame::Data(head, bytes) => {
                head.encode(out, Some(bytes.len() as u32), None);
                out.extend_from_slice(bytes);
            }
            Frame::More(head, bytes) => {
                head.encode(out, Some(bytes.len() as u32));
                out.extend_from_slice(bytes);
            }
            Frame::Object(head, symbol) => {
                out.push(OBJECT | u8::from(head.origin != 0));
                head.encode_fields(out, head.origin, (*symbol).into());
            }
            Frame::Symbol(head, bytes) => {
                out.push(if head.poll { SYMBOL_POLL } else { SYMBOL });
                put_varint(out, head.topic.into());
                put_varint(out, head.seq);
                put_varint(out, head.id.into());
                put_bytes(out, bytes);
            }
        }
    }

    /// Reads a frame that does not depend on any before it.
    pub(crate) fn decode(r: &mut Reader<'a>) -> Result<Self, PacketError> {
        Self::decode_after(r, &mut None)
    }

    /// Reads the next frame of a datagram; `origin` is that of the data before it.
    pub(crate) fn decode_after(r: &mut Reader<'a>, origin: &mut Option<u64>) -> Result<Self, PacketError> {
        let at = r.at();
        let kind = r.u8()?;
        Ok(match kind {
            HELLO => {
                if r.array()? != HELLO_MAGIC {
                    return Err(PacketError::Invalid { what: "greeting", at });
                }
                let (host, seen, flags) = (r.u64()?, r.u32()?, r.u8()?);
                Frame::Hello(Hello {
                    host,
                    seen,
                    asks: flags & 1 != 0,
                    states_watched: flags & 2 != 0,
                    max_message: r.varint32("largest message")?,
                    holds: r.varint32("datagrams held")?,
                    name: r.name(MAX_HOST_NAME, "host name")?,
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
                    3 => AckState::Unknown,
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
            ASK => Frame::Ask,
            RECEIPT => Frame::Receipt(Receipt::decode(r)?),
            WATCHED => Frame::Watched {
                topic: r.varint32("topic number")?,
                serial: r.varint32("serial")?,
                watched: match r.u8()? {
                    0 => false,
                    1 => true,
                    _ => return Err(PacketError::Invalid { what: "watched", at }),
                },
            },
            WATCHED_SEEN => Frame::WatchedSeen {
                topic: r.varint32("topic number")?,
                serial: r.varint32("serial")?,
            },
            _ if Sharing::has(kind) => Frame::Sharing(Sharing::decode(kind, r)?),
            ACKNOWLEDGEMENT => Frame::Acknowledgement(Acknowledgement::decode(r)?),
            SETTLED => Frame::Settled {
                topic: r.varint32("topic number")?,
                floor: r.varint()?,
            },
            ARRIVALS => Frame::Arrivals {
                newest: r.varint()?,
                came: r.varint()?,
                gaps: r.varint()?,
            },
            SOURCE => Frame::Source {
                topic: r.varint32("topic number")?,
                id: r.varint()?,
                bytes: r.bytes("fragment length")?,
            },
            PARITY => Frame::Parity {
                topic: r.varint32("topic number")?,
                first: r.varint()?,
                count: r.u8()?,
                key: r.u8()?,
                bytes: r.bytes("parity length")?,
            },
            WAYS => Frame::Ways(Ways::decode(r)?),
            UNWANTED => Frame::Unwanted {
                topic: r.varint32("topic number")?,
                to: r.varint()?,
            },
            ROUTE => Frame::Route(ways::route(r)?, None),
            ROUTE_LEFT => Frame::Route(ways::route(r)?, Some(ways::left(r)?)),
            _ if kind & !(DATA_ORIGIN | DATA_LENGTH | DATA_POLL) == DATA || kind & !3 == DATA_ALIKE => {
                let alike = kind & !3 == DATA_ALIKE;
                let before = match alike {
                    true => Some(origin.ok_or(PacketError::Invalid { what: "origin", at })?),
                    false => None,
                };
                let has = |plain: u8, bit: u8| kind & if alike { bit } else { plain } != 0;
                let mut head = decode_head(r, !alike && kind & DATA_ORIGIN != 0)?;
                head.poll = has(DATA_POLL, ALIKE_POLL);
                head.origin = before.unwrap_or(head.origin);
                let bytes = match has(DATA_LENGTH, ALIKE_LENGTH) {
                    false => r.rest(),
                    true => r.bytes("fragment length")?,
                };
                let end = u64::from(head.offset) + bytes.len() as u64;
                let total = head.geometry.total_len();
                if end > total.into() || (bytes.is_empty() && total != 0) {
                    return Err(PacketError::Invalid {
                        what: "fragment offset",
                        at,
                    });
                }
                *origin = Some(head.origin);
                Frame::Data(head, bytes)
            }
            _ if kind & !MORE_LENGTH == MORE => {
                let (topic, seq) = (r.varint32("topic number")?, r.varint()?);
                let offset = r.varint32("fragment offset")?;
                let bytes = match kind & MORE_LENGTH {
                    0 => r.rest(),
                    _ => r.bytes("fragment length")?,
                };
                let end = u64::from(offset) + bytes.len() as u64;
                if offset == 0 || bytes.is_empty() || end > u32::MAX.into() {
                    return Err(PacketError::Invalid {
                        what: "fragment offset",
                        at,
                    });
                }
                Frame::More(MoreHead { topic, seq, offset }, bytes)
            }
            _ if kind & !DATA_ORIGIN == OBJECT => {
                let head = decode_head(r, kind & DATA_ORIGIN != 0)?;
                let symbol = u16::try_from(head.offset).map_err(|_| PacketError::Invalid {
                    what: "symbol length",
                    at,
                })?;
                Frame::Object(DataHead { offset: 0, ..head }, symbol)
            }
            SYMBOL | SYMBOL_POLL => {
                let (topic, seq) = (r.varint32("topic number")?, r.varint()?);
                let id = r.varint32("symbol number")?;
                let poll = kind == SYMBOL_POLL;
                let head = SymbolHead { topic, seq, id, poll };
                Frame::Symbol(head, r.bytes("symbol length")?)
            }
            _ => return Err(PacketError::UnknownFrame { kind, at }),
        })
    }
}

fn decode_head(r: &mut Reader<'_>, with_origin: bool) -> Result<DataHead, PacketError> {
    let (topic, seq) = (r.varint32("topic number")?, r.varint()?);
    let stamp = Time(r.u64()?);
    let origin = if with_origin { r.u64()? } else { 0 };
    let offset = r.varint32("fragment offset")?;
    let at = r.at();
    let control = r.varint32("control length")?;
    let geometry = match r.u8()? {
        PACKED => Geometry::packed(control),
        count => {
            let mut parts = [0u32; MAX_PARTS];
            let parts = parts.get_mut(..usize::from(count)).ok_or(PacketError::Invalid {
                what: "number of parts",
                at,
            })?;
            for p in parts.iter_mut() {
                *p = r.varint32("part length")?;
            }
            Geometry::new(control, parts).map_err(|_| PacketError::Invalid { what: "geometry", at })?
        }
    };
    Ok(DataHead {
        topic,
        seq,
        stamp,
        origin,
        offset,
        geometry,
        poll: false,
    })
}
