//! The receipt: which of the sender's datagrams have left the air.

use super::bytes::{Reader, put_varint};
use super::error::PacketError;

/// Progress of a receiver. Everything up to `newest` has left the air: it arrived or is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Receipt {
    /// Highest number of a datagram received.
    pub(crate) newest: u64,
    /// Microseconds between that datagram and the one numbered just before it; 0 if they did not arrive in that order.
    pub(crate) gap: u64,
    /// Microseconds for which the receiver has held it.
    pub(crate) held: u64,
}

impl Receipt {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for v in [self.newest, self.gap, self.held] {
            put_varint(out, v);
        }
    }

    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, PacketError> {
        Ok(Receipt {
            newest: r.varint()?,
            gap: r.varint()?,
            held: r.varint()?,
        })
    }
}
