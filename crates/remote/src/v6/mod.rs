//! Robot Remote Control's wire, version 6, in both directions: decodes and encodes frames of
//! [`Wire::V6`](crate::transport::Wire::V6).
//!
//! This module does no I/O, knows no handlers, keeps nothing between frames, and does not panic on any frame. All of
//! version 6 is in this module, so that another version can be added next to it. The facts are those of upstream's
//! 6.0.0, captured from the wire:
//!
//! | frame | bytes |
//! |---|---|
//! | request | `[u8 number][body]`; a command's body is protobuf |
//! | acknowledgement | the request's number, one byte; `00` where it was not taken |
//! | latest value | the bare protobuf; an empty frame where nothing was set |
//! | telemetry | `[u8 number][u8 channel][protobuf]` |
//!
//! ```
//! use remote::v6::{Ack, Request};
//! use remote::{CommandKind, command, types};
//!
//! // The controller's side.
//! let twist = types::Twist { linear: Some(types::Vector3 { x: 0.5, ..Default::default() }), ..Default::default() };
//! let frame = remote::v6::command::<command::Twist>(&twist).expect("has a number in version 6");
//!
//! // The robot's.
//! let Ok(Request::Command { number, body }) = Request::parse(&frame) else { panic!() };
//! assert_eq!(Some(number), command::Twist::V6);
//! assert_eq!(remote::v6::body::<types::Twist>(body), Ok(twist));
//! let reply = remote::v6::ack(number);
//!
//! // And the controller's again.
//! assert_eq!(Ack::parse(number, &reply), Ok(Ack::Taken));
//! ```

mod files;
mod later;
mod reply;
mod request;
mod telemetry;

pub use files::{
    Files, FilesError, MAX_ENTRIES, MAX_INFLATED, below_root, confined, files, no_files, parse_files,
};
pub use later::{is_version_7_frame, is_version_7_reply};
pub use reply::{Ack, ack, latest, nak, version};
pub use request::{MAX_PERIOD, Request, command};
pub use telemetry::{Telemetry, telemetry};

use prost::Message;

/// The reply to [`Request::ProtocolVersion`]: the SHA-256 of upstream's definitions in its release 6.0.0. Upstream's
/// controllers warn if it differs.
pub const PROTOCOL_VERSION: &str = "2653d03e794d9ea753b5ebb0712368f4e6df90b3db2684f1f982369b49358760";
/// The reply to [`Request::LibraryVersion`]: the release of upstream with this wire.
pub const LIBRARY_VERSION: &str = "6.0.0";

/// Why a frame is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// It is empty.
    #[error("the frame is empty")]
    Empty,
    /// It ends too early, or continues where it should end.
    #[error("{what} cannot be {len} B long")]
    Length {
        /// What kind of frame it is.
        what: &'static str,
        /// Its bytes.
        len: usize,
    },
    /// The number 0 has no meaning.
    #[error("invalid number 0 of {0}")]
    Zero(&'static str),
    /// The body is not of the type that belongs to the number.
    #[error("{what}: {error}")]
    Body {
        /// What kind of frame it is.
        what: &'static str,
        /// The decoder's error.
        error: prost::DecodeError,
    },
    /// A heartbeat's period is negative, not a number, or longer than [`MAX_PERIOD`].
    #[error("a heartbeat period of {0} s is out of range: use 0 to 86400 s")]
    Period(String),
    /// A reply does not belong to the request.
    #[error("the reply to request {sent} is {reply}, neither an acknowledgement nor a refusal")]
    NotAnAck {
        /// The request's number.
        sent: u8,
        /// The reply's first bytes.
        reply: String,
    },
    /// It has version 7's form.
    #[error(
        "the peer speaks version 7 of Robot Remote Control, this end version 6: set the peer to version 6"
    )]
    Version7,
    /// A version is not text.
    #[error("the version is not text of at most 256 B")]
    Version,
}

/// Decodes the body of a command, a telemetry frame or a latest value.
///
/// # Errors
/// [`Malformed::Body`]: the bytes are not that message.
pub fn body<M: Message + Default>(bytes: &[u8]) -> Result<M, Malformed> {
    crate::decode::body("", bytes).map_err(|error| Malformed::Body { what: "body", error })
}

#[cfg(test)]
mod tests;
