//! Frames that go seldom, or along with others: receipts, and what hosts want of the medium.

use super::bytes::{Reader, put_varint};
use super::error::PacketError;
use crate::config::MAX_PRIORITY;

/// How far a receiver has come. Everything up to `newest` has left the air, arrived or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Receipt {
    /// Highest number of a datagram that came.
    pub(crate) newest: u64,
    /// Microseconds between that datagram and the one numbered just before it; 0 if they did not come in
    /// that order.
    pub(crate) gap: u64,
    /// Microseconds for which the receiver has had it.
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

/// What one host wants of the medium, as the sender of the frame knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    pub(crate) host: u64,
    /// Highest priority that it has been sending.
    pub(crate) priority: u8,
    /// How much of the air that takes, in thousandths.
    pub(crate) air: u64,
    /// Milliseconds since the host itself said so.
    pub(crate) age: u64,
    /// Microseconds between messages, if that flow is periodic; 0 if not.
    pub(crate) period: u64,
    /// Microseconds from the sending of this frame until its next message.
    pub(crate) next: u64,
}

impl Demand {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.host.to_le_bytes());
        out.push(self.priority);
        for v in [self.air, self.age, self.period, self.next] {
            put_varint(out, v);
        }
    }

    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, PacketError> {
        let at = r.at();
        let (host, priority) = (r.u64()?, r.u8()?);
        if priority > MAX_PRIORITY {
            let what = "priority";
            return Err(PacketError::Invalid { what, at });
        }
        Ok(Demand {
            host,
            priority,
            air: r.varint()?,
            age: r.varint()?,
            period: r.varint()?,
            next: r.varint()?,
        })
    }
}
