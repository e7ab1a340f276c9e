//! Why bytes were not understood.

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
    /// Two hosts call themselves as this peer does, and are heard at the same time. It came from the one that came later.
    #[error("another host calls itself as peer {peer} does")]
    AnotherHost {
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
