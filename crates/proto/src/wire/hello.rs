//! The start of every datagram, and the greeting that opens a session.

use super::bytes::{Reader, put_bytes, put_varint};
use super::error::PacketError;
use super::{MAGIC, VERSION};
use crate::config::MAX_HOST_NAME;

const HELLO_MAGIC: [u8; 4] = *b"RPWK";

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

impl<'a> Hello<'a> {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&HELLO_MAGIC);
        out.extend_from_slice(&self.host.to_le_bytes());
        out.extend_from_slice(&self.seen.to_le_bytes());
        out.push(u8::from(self.asks) | u8::from(self.states_watched) << 1);
        put_varint(out, self.max_message.into());
        put_varint(out, self.holds.into());
        put_bytes(out, self.name.as_bytes());
    }

    /// `at` is where the frame begins.
    pub(super) fn decode(r: &mut Reader<'a>, at: usize) -> Result<Self, PacketError> {
        if r.array()? != HELLO_MAGIC {
            return Err(PacketError::Invalid { what: "greeting", at });
        }
        let (host, seen, flags) = (r.u64()?, r.u32()?, r.u8()?);
        Ok(Hello {
            host,
            seen,
            asks: flags & 1 != 0,
            states_watched: flags & 2 != 0,
            max_message: r.varint32("largest message")?,
            holds: r.varint32("datagrams held")?,
            name: r.name(MAX_HOST_NAME, "host name")?,
        })
    }
}
