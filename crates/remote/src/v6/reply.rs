//! Replies: what robots answer.

use super::Malformed;

/// Longest text that is taken for a version.
const MAX_VERSION: usize = 256;

/// The reply to a command, heartbeat or log level that was taken.
pub fn ack(number: u8) -> [u8; 1] {
    [number]
}

/// The reply to what was not taken: malformed, or of a number that nobody handles. It is no protobuf, so that it can be told from a
/// latest value, too.
pub fn nak() -> [u8; 1] {
    [0]
}

/// What became of a command, heartbeat or log level, as far as version 6 tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ack {
    /// The robot took it.
    Taken,
    /// It did not: nobody handles it there, or its body is none.
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

/// The reply to a request of a latest value or a map: `None` where none was set, else its bytes for [`body`](super::body).
///
/// # Errors
/// [`Malformed::Zero`]: the robot refused the request, since it has no such kind or channel.
pub fn latest(reply: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    match reply {
        [] => Ok(None),
        [0] => Err(Malformed::Zero("latest value: the robot refused the request")),
        bytes => Ok(Some(bytes)),
    }
}

/// The reply to a request of a version.
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
