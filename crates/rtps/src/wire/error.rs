//! Why bytes were not understood.

/// Why a message, or an announcement in it, was not understood. What stood before the place was taken, the rest was not
/// (DDSI-RTPS 2.5, section 8.3.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The datagram does not begin with `RTPS`.
    #[error("not a message of RTPS")]
    Foreign,
    /// The sender speaks another major version of the protocol.
    #[error("the sender speaks RTPS {major}.{minor}, this end 2.3")]
    Version {
        /// Its major version.
        major: u8,
        /// Its minor version.
        minor: u8,
    },
    /// It ends in the middle of something.
    #[error("cut off: more bytes expected at {at}, it has {len}")]
    Truncated {
        /// Where the missing bytes should begin.
        at: usize,
        /// Length of what was read.
        len: usize,
    },
    /// A value makes no sense.
    #[error("{what} makes no sense at byte {at}")]
    Invalid {
        /// Which value.
        what: &'static str,
        /// Where it stands.
        at: usize,
    },
    /// A text or a list is longer than this end takes.
    #[error("{what} is longer than {most}")]
    TooLong {
        /// Which text or list.
        what: &'static str,
        /// The most that is taken, in bytes or entries.
        most: usize,
    },
    /// A parameter that must be understood is unknown here (section 9.6.2.2.1).
    #[error("parameter {pid:#06x} must be understood, and is unknown here")]
    MustUnderstand {
        /// The parameter's id.
        pid: u16,
    },
    /// An announcement lacks a parameter without which it says nothing.
    #[error("the announcement has no {what}")]
    Missing {
        /// What is missing.
        what: &'static str,
    },
}
