//! Pieces of announcements, and the answers to them.

use super::bytes::{Reader, put_bytes, put_varint};
use super::error::PacketError;

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

impl<'a> AnnouncePiece<'a> {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for n in [self.topic, self.edition, self.total, self.offset] {
            put_varint(out, n.into());
        }
        out.push(u8::from(self.poll));
        put_bytes(out, self.bytes);
    }

    /// `at` is where the frame begins.
    pub(super) fn decode(r: &mut Reader<'a>, at: usize) -> Result<Self, PacketError> {
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
        Ok(AnnouncePiece {
            topic,
            edition,
            total,
            offset,
            poll,
            bytes,
        })
    }
}

impl AckState {
    pub(super) fn encode(self, out: &mut Vec<u8>) {
        let (code, missing) = match self {
            AckState::Missing(at) => (0, at),
            AckState::Accepted => (1, 0),
            AckState::Refused => (2, 0),
            AckState::Unknown => (3, 0),
        };
        out.push(code);
        put_varint(out, missing.into());
    }

    /// `at` is where the frame begins.
    pub(super) fn decode(r: &mut Reader<'_>, at: usize) -> Result<Self, PacketError> {
        let (code, missing) = (r.u8()?, r.varint32("announcement offset")?);
        match code {
            0 => Ok(AckState::Missing(missing)),
            1 => Ok(AckState::Accepted),
            2 => Ok(AckState::Refused),
            3 => Ok(AckState::Unknown),
            _ => Err(PacketError::Invalid { what: "verdict", at }),
        }
    }
}
