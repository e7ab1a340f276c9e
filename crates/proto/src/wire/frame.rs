//! The frames of a datagram.

use super::acknowledgement::Acknowledgement;
use super::announcing::{AckState, AnnouncePiece};
use super::bytes::{Reader, put_bytes, put_varint};
use super::error::PacketError;
use super::fragment::{DataHead, MoreHead, SymbolHead};
use super::hello::Hello;
use super::receipt::Receipt;
use super::report::ReportEntry;
use super::sharing::Sharing;
use super::ways::{self, Ways};
use crate::route::Route;

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
            Frame::Hello(hello) => {
                out.push(HELLO);
                hello.encode(out);
            }
            Frame::Ping => out.push(PING),
            Frame::Announce(piece) => {
                out.push(ANNOUNCE);
                piece.encode(out);
            }
            Frame::AnnounceAck {
                topic,
                edition,
                state,
            } => {
                put(out, ANNOUNCE_ACK, [(*topic).into(), (*edition).into()]);
                state.encode(out);
            }
            Frame::Cancel { topic, seq } => put(out, CANCEL, [(*topic).into(), *seq]),
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
                put(out, WATCHED, [(*topic).into(), (*serial).into()]);
                out.push(u8::from(*watched));
            }
            Frame::WatchedSeen { topic, serial } => {
                put(out, WATCHED_SEEN, [(*topic).into(), (*serial).into()]);
            }
            Frame::Acknowledgement(a) => {
                out.push(ACKNOWLEDGEMENT);
                a.encode(out);
            }
            Frame::Settled { topic, floor } => put(out, SETTLED, [(*topic).into(), *floor]),
            Frame::Arrivals { newest, came, gaps } => put(out, ARRIVALS, [*newest, *came, *gaps]),
            Frame::Sharing(sharing) => sharing.encode(out),
            Frame::Source { topic, id, bytes } => {
                put(out, SOURCE, [(*topic).into(), *id]);
                put_bytes(out, bytes);
            }
            Frame::Parity {
                topic,
                first,
                count,
                key,
                bytes,
            } => {
                put(out, PARITY, [(*topic).into(), *first]);
                out.extend_from_slice(&[*count, *key]);
                put_bytes(out, bytes);
            }
            Frame::Ways(ways) => {
                out.push(WAYS);
                ways.encode(out);
            }
            Frame::Unwanted { topic, to } => put(out, UNWANTED, [(*topic).into(), *to]),
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
            Frame::Object(head, symbol) => head.encode_object(out, *symbol),
            Frame::Symbol(head, bytes) => head.encode(out, bytes),
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
            _ if DataHead::has(kind) => {
                let (head, bytes) = DataHead::decode(kind, at, r, origin)?;
                Frame::Data(head, bytes)
            }
            _ if MoreHead::has(kind) => {
                let (head, bytes) = MoreHead::decode(kind, at, r)?;
                Frame::More(head, bytes)
            }
            _ if DataHead::has_object(kind) => {
                let (head, symbol) = DataHead::decode_object(kind, at, r)?;
                Frame::Object(head, symbol)
            }
            _ if SymbolHead::has(kind) => {
                let (head, bytes) = SymbolHead::decode(kind, r)?;
                Frame::Symbol(head, bytes)
            }
            _ if Sharing::has(kind) => Frame::Sharing(Sharing::decode(kind, r)?),
            _ => return Self::decode_control(kind, at, r),
        })
    }

    fn decode_control(kind: u8, at: usize, r: &mut Reader<'a>) -> Result<Self, PacketError> {
        Ok(match kind {
            HELLO => Frame::Hello(Hello::decode(r, at)?),
            PING => Frame::Ping,
            ANNOUNCE => Frame::Announce(AnnouncePiece::decode(r, at)?),
            ANNOUNCE_ACK => Frame::AnnounceAck {
                topic: r.varint32("topic number")?,
                edition: r.varint32("edition")?,
                state: AckState::decode(r, at)?,
            },
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
            _ => return Err(PacketError::UnknownFrame { kind, at }),
        })
    }
}

/// Appends the kind of a frame and its first fields.
fn put<const N: usize>(out: &mut Vec<u8>, kind: u8, fields: [u64; N]) {
    out.push(kind);
    for n in fields {
        put_varint(out, n);
    }
}
