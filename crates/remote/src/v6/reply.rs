//! Replies of robots.

use super::Malformed;

/// Maximum length of a version's text.
const MAX_VERSION: usize = 256;

/// Builds the reply to a command, heartbeat or log level that the robot accepted.
pub fn ack(number: u8) -> [u8; 1] {
    [number]
}

/// Builds the reply to a request that the robot did not accept: malformed, or with a number that has no handler. It is
/// not valid protobuf, so that it also differs from any latest value.
pub fn nak() -> [u8; 1] {
    [0]
}

/// The outcome of a command, heartbeat or log level, as far as version 6 reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ack {
    /// The robot accepted it.
    Taken,
    /// The robot did not accept it: it has no handler, or its body is invalid.
    Refused,
}

impl Ack {
    /// Reads the reply to a request of this number ([`Request::number`](super::Request::number)).
    ///
    /// # Errors
    /// [`Malformed`]: it is the reply to something else.
    pub fn parse(sent: u8, reply: &[u8]) -> Result<Self, Malformed> {
        match reply {
            [] => Err(Malformed::Empty),
            [0] => Ok(Ack::Refused),
            [number] if *number == sent => Ok(Ack::Taken),
            other if super::is_version_7_reply(other) => Err(Malformed::Version7),
            other => Err(Malformed::NotAnAck {
                sent,
                reply: other.iter().take(8).map(|b| format!("{b:02x}")).collect(),
            }),
        }
    }
}

/// Reads the reply to a request for a latest value or a map: `None` if none was set, else its bytes for
/// [`body`](super::body).
///
/// # Errors
/// [`Malformed::Zero`]: the robot refused the request, because it has no such kind or channel.
pub fn latest(reply: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    match reply {
        [] => Ok(None),
        [0] => Err(Malformed::Zero("a latest value: the robot refused the request")),
        bytes => Ok(Some(bytes)),
    }
}

/// Reads the reply to a request for a version.
///
/// # Errors
/// [`Malformed`]: it is not text, or too long.
pub fn version(reply: &[u8]) -> Result<&str, Malformed> {
    let text = std::str::from_utf8(reply).map_err(|_| Malformed::Version)?;
    if text.len() > MAX_VERSION || text.contains(char::is_control) {
        return Err(Malformed::Version);
    }
    Ok(text)
}
