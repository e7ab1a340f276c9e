//! Frames that carry a part of a message: fragments, and symbols of a fountain code.

use super::bytes::{Reader, put_bytes, put_varint};
use super::error::PacketError;
use crate::geometry::{Geometry, MAX_PARTS};
use stats::Time;

const DATA: u8 = 0x40;
const DATA_ORIGIN: u8 = 0x01;
const DATA_LENGTH: u8 = 0x02;
const DATA_POLL: u8 = 0x04;
const DATA_BITS: u8 = DATA_ORIGIN | DATA_LENGTH | DATA_POLL;
/// How a message that is sent as symbols is cut; bit 0 as in data.
const OBJECT: u8 = 0x48;
const SYMBOL: u8 = 0x4A;
const SYMBOL_POLL: u8 = 0x4B;
/// Data with the origin of the data before it in the same datagram; bits 0 and 1 mean length and poll.
const DATA_ALIKE: u8 = 0x4C;
const ALIKE_LENGTH: u8 = 0x01;
const ALIKE_POLL: u8 = 0x02;
const ALIKE_BITS: u8 = ALIKE_LENGTH | ALIKE_POLL;
/// More of a message that a data frame described; bit 0: length.
const MORE: u8 = 0x50;
const MORE_LENGTH: u8 = 0x01;
/// In place of the number of data parts: the message is an envelope and has none.
const PACKED: u8 = 0x80;

/// The bytes of a fragment: up to the end of the datagram, unless their length is stated.
fn bytes_of<'a>(r: &mut Reader<'a>, with_length: bool) -> Result<&'a [u8], PacketError> {
    match with_length {
        true => r.bytes("fragment length"),
        false => Ok(r.rest()),
    }
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

    /// Whether frames of this kind are fragments with such a header.
    pub(super) fn has(kind: u8) -> bool {
        kind & !DATA_BITS == DATA || kind & !ALIKE_BITS == DATA_ALIKE
    }

    /// Reads the header of a frame of this kind, and the bytes. `at` is where the frame begins; `origin` is that of the data
    /// before it in the datagram.
    pub(super) fn decode<'a>(
        kind: u8,
        at: usize,
        r: &mut Reader<'a>,
        origin: &mut Option<u64>,
    ) -> Result<(Self, &'a [u8]), PacketError> {
        let alike = kind & !ALIKE_BITS == DATA_ALIKE;
        let before = match alike {
            true => Some(origin.ok_or(PacketError::Invalid { what: "origin", at })?),
            false => None,
        };
        let has = |plain: u8, bit: u8| kind & if alike { bit } else { plain } != 0;
        let mut head = Self::decode_fields(r, !alike && kind & DATA_ORIGIN != 0)?;
        head.poll = has(DATA_POLL, ALIKE_POLL);
        head.origin = before.unwrap_or(head.origin);
        let bytes = bytes_of(r, has(DATA_LENGTH, ALIKE_LENGTH))?;
        let end = u64::from(head.offset) + bytes.len() as u64;
        let total = head.geometry.total_len();
        if end > total.into() || (bytes.is_empty() && total != 0) {
            return Err(PacketError::Invalid {
                what: "fragment offset",
                at,
            });
        }
        *origin = Some(head.origin);
        Ok((head, bytes))
    }

    /// Whether frames of this kind describe a message that is sent as symbols.
    pub(super) fn has_object(kind: u8) -> bool {
        kind & !DATA_ORIGIN == OBJECT
    }

    /// Appends a frame for a message that is sent as symbols of this many bytes.
    pub(super) fn encode_object(&self, out: &mut Vec<u8>, symbol: u16) {
        out.push(OBJECT | u8::from(self.origin != 0));
        self.encode_fields(out, self.origin, symbol.into());
    }

    /// Reads such a frame of this kind, which begins at `at`.
    pub(super) fn decode_object(kind: u8, at: usize, r: &mut Reader<'_>) -> Result<(Self, u16), PacketError> {
        let head = Self::decode_fields(r, kind & DATA_ORIGIN != 0)?;
        let symbol = u16::try_from(head.offset).map_err(|_| PacketError::Invalid {
            what: "symbol length",
            at,
        })?;
        Ok((DataHead { offset: 0, ..head }, symbol))
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

    /// Reads what [`DataHead::encode_fields`] appends.
    fn decode_fields(r: &mut Reader<'_>, with_origin: bool) -> Result<Self, PacketError> {
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

    pub(super) fn has(kind: u8) -> bool {
        kind & !MORE_LENGTH == MORE
    }

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

    /// Reads one of this kind, and the bytes. `at` is where the frame begins.
    pub(super) fn decode<'a>(
        kind: u8,
        at: usize,
        r: &mut Reader<'a>,
    ) -> Result<(Self, &'a [u8]), PacketError> {
        let (topic, seq) = (r.varint32("topic number")?, r.varint()?);
        let offset = r.varint32("fragment offset")?;
        let bytes = bytes_of(r, kind & MORE_LENGTH != 0)?;
        let end = u64::from(offset) + bytes.len() as u64;
        if offset == 0 || bytes.is_empty() || end > u32::MAX.into() {
            return Err(PacketError::Invalid {
                what: "fragment offset",
                at,
            });
        }
        Ok((MoreHead { topic, seq, offset }, bytes))
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

    pub(super) fn has(kind: u8) -> bool {
        matches!(kind, SYMBOL | SYMBOL_POLL)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>, bytes: &[u8]) {
        out.push(if self.poll { SYMBOL_POLL } else { SYMBOL });
        put_varint(out, self.topic.into());
        put_varint(out, self.seq);
        put_varint(out, self.id.into());
        put_bytes(out, bytes);
    }

    /// Reads one of this kind, and the bytes.
    pub(super) fn decode<'a>(kind: u8, r: &mut Reader<'a>) -> Result<(Self, &'a [u8]), PacketError> {
        let (topic, seq) = (r.varint32("topic number")?, r.varint()?);
        let id = r.varint32("symbol number")?;
        let poll = kind == SYMBOL_POLL;
        let head = SymbolHead { topic, seq, id, poll };
        Ok((head, r.bytes("symbol length")?))
    }
}
