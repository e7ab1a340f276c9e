//! Why bytes could not be decoded.

/// Why a datagram could not be decoded. It was counted, and had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// It came from a peer that was never added.
    #[error("the datagram is from peer {peer}, which was not added")]
    NoSuchPeer {
        /// The peer's number.
        peer: u32,
    },
    /// Two hosts have the name of this peer, and are heard at the same time. The datagram is from the one that came
    /// later.
    #[error("another host has the same name as peer {peer}")]
    AnotherHost {
        /// The peer's number.
        peer: u32,
    },
    /// It does not belong to this protocol.
    #[error("the first byte is {first:#04x}: this is not a datagram of the link protocol")]
    Foreign {
        /// Its first byte.
        first: u8,
    },
    /// The other end uses another version.
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
    #[error("truncated: more bytes expected at {at}, but there are {len}")]
    Truncated {
        /// Where the missing bytes should start.
        at: usize,
        /// Length of what was read.
        len: usize,
    },
    /// A frame of a kind that this version does not have.
    #[error("unknown frame {kind:#04x} at byte {at}")]
    UnknownFrame {
        /// The frame's first byte.
        kind: u8,
        /// Its position.
        at: usize,
    },
    /// A value is invalid.
    #[error("invalid {what} at byte {at}")]
    Invalid {
        /// Which value.
        what: &'static str,
        /// Its position.
        at: usize,
    },
}
