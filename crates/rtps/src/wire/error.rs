//! Errors of reading messages.

/// Why a message, or an announcement in it, cannot be read. Submessages before the fault take effect, the rest do not
/// (DDSI-RTPS 2.5, section 8.3.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The datagram does not begin with `RTPS`.
    #[error("not an RTPS message")]
    Foreign,
    /// The sender uses another major version of the protocol.
    #[error("the sender uses RTPS {major}.{minor}, this participant 2.3")]
    Version {
        /// Its major version.
        major: u8,
        /// Its minor version.
        minor: u8,
    },
    /// The message ends inside an element.
    #[error("truncated: more bytes expected at {at}, but there are {len}")]
    Truncated {
        /// Position at which the missing bytes should begin.
        at: usize,
        /// Length of the bytes read.
        len: usize,
    },
    /// A value is not valid.
    #[error("invalid {what} at byte {at}")]
    Invalid {
        /// Name of the value.
        what: &'static str,
        /// Its position.
        at: usize,
    },
    /// A text or a list is too long.
    #[error("{what} is longer than {most}")]
    TooLong {
        /// Name of the text or list.
        what: &'static str,
        /// Maximum length, in bytes or entries.
        most: usize,
    },
    /// The list has an unknown parameter that must be understood (section 9.6.2.2.1).
    #[error("parameter {pid:#06x} must be understood but is unknown")]
    MustUnderstand {
        /// The parameter's id.
        pid: u16,
    },
    /// An announcement lacks a required parameter.
    #[error("the announcement has no {what}")]
    Missing {
        /// What is missing.
        what: &'static str,
    },
}
