//! Requests of controllers.

use super::Malformed;
use crate::CommandKind;
use crate::types::{ControlMessageType as Number, FileRequest, HeartBeat};
use prost::Message;
use std::time::Duration;

/// Maximum period between heartbeats that is accepted.
pub const MAX_PERIOD: Duration = Duration::from_secs(24 * 60 * 60);

/// A request of a controller.
#[derive(Clone, Debug, PartialEq)]
pub enum Request<'a> {
    /// Asks for the protocol definitions. The reply is [`PROTOCOL_VERSION`](super::PROTOCOL_VERSION).
    ProtocolVersion,
    /// Asks for the release. The reply is [`LIBRARY_VERSION`](super::LIBRARY_VERSION).
    LibraryVersion,
    /// Asks for the commit. The reply is text.
    GitVersion,
    /// Heartbeat of the controller. The reply is [`ack`](super::ack).
    Heartbeat {
        /// Time until the next one.
        period: Duration,
    },
    /// Asks for the latest value. The reply is its protobuf, or empty if there is none.
    Telemetry {
        /// The number of the kind ([`TelemetryKind::V6`](crate::TelemetryKind::V6)).
        number: u8,
        /// The channel.
        channel: u8,
    },
    /// As [`Request::Telemetry`] for maps. Controllers of version 6 use that; earlier ones use this.
    Map {
        /// The channel.
        channel: u8,
    },
    /// Asks for a file or folder. The reply is [`files`](super::files).
    File(FileRequest),
    /// Limits log messages to this level ([`LogLevel`](crate::types::LogLevel)). The reply is [`ack`](super::ack).
    LogLevel(u8),
    /// A command, of the library or of an extension. The reply is [`ack`](super::ack), or [`nak`](super::nak) if this
    /// number has no handler or its body is invalid.
    Command {
        /// The number of the kind ([`CommandKind::V6`]).
        number: u8,
        /// Protobuf.
        body: &'a [u8],
    },
}

impl<'a> Request<'a> {
    /// Reads a frame.
    ///
    /// # Errors
    /// [`Malformed`]; answer it with [`nak`](super::nak).
    pub fn parse(frame: &'a [u8]) -> Result<Self, Malformed> {
        let (first, body) = frame.split_first().ok_or(Malformed::Empty)?;
        if super::is_version_7_frame(frame) {
            return Err(Malformed::Version7);
        }
        let undecodable = |what| move |error| Malformed::Body { what, error };
        let Ok(number) = Number::try_from(i32::from(*first)) else {
            return Ok(Request::Command { number: *first, body });
        };
        Ok(match (number, body) {
            (Number::NoControlData, _) => return Err(Malformed::Zero("a request")),
            (Number::ProtocolVersion, []) => Request::ProtocolVersion,
            (Number::LibraryVersion, []) => Request::LibraryVersion,
            (Number::GitVersion, []) => Request::GitVersion,
            (Number::Heartbeat, body) => {
                let heartbeat = HeartBeat::decode(body).map_err(undecodable("heartbeat"))?;
                let period = period(heartbeat.heart_beat_duration)?;
                Request::Heartbeat { period }
            }
            (Number::TelemetryRequest, [0, _]) => return Err(Malformed::Zero("telemetry")),
            (Number::TelemetryRequest, &[number, channel]) => Request::Telemetry { number, channel },
            (Number::MapRequest, []) => Request::Map { channel: 0 },
            (Number::MapRequest, &[channel]) => Request::Map { channel },
            (Number::FileRequest, body) => {
                Request::File(FileRequest::decode(body).map_err(undecodable("file request"))?)
            }
            (Number::LogLevelSelect, &[level]) => Request::LogLevel(level),
            (
                Number::ProtocolVersion
                | Number::LibraryVersion
                | Number::GitVersion
                | Number::TelemetryRequest
                | Number::MapRequest
                | Number::LogLevelSelect,
                _,
            ) => {
                return Err(Malformed::Length {
                    what: number.as_str_name(),
                    len: frame.len(),
                });
            }
            _ => Request::Command { number: *first, body },
        })
    }

    /// Returns its number, with which it is acknowledged.
    pub fn number(&self) -> u8 {
        let number = match self {
            Request::ProtocolVersion => Number::ProtocolVersion,
            Request::LibraryVersion => Number::LibraryVersion,
            Request::GitVersion => Number::GitVersion,
            Request::Heartbeat { .. } => Number::Heartbeat,
            Request::Telemetry { .. } => Number::TelemetryRequest,
            Request::Map { .. } => Number::MapRequest,
            Request::File(_) => Number::FileRequest,
            Request::LogLevel(_) => Number::LogLevelSelect,
            Request::Command { number, .. } => return *number,
        };
        number as u8
    }

    /// Returns its frame.
    pub fn encode(&self) -> Vec<u8> {
        let mut frame = vec![self.number()];
        match self {
            Request::ProtocolVersion | Request::LibraryVersion | Request::GitVersion => {}
            Request::Heartbeat { period } => {
                let heartbeat = HeartBeat {
                    heart_beat_duration: period.min(&MAX_PERIOD).as_secs_f64() as f32,
                };
                frame.extend(heartbeat.encode_to_vec());
            }
            Request::Telemetry { number, channel } => frame.extend([number, channel]),
            Request::Map { channel } => frame.push(*channel),
            Request::File(request) => frame.extend(request.encode_to_vec()),
            Request::LogLevel(level) => frame.push(*level),
            Request::Command { body, .. } => frame.extend_from_slice(body),
        }
        frame
    }
}

/// Returns the frame of a command; `None` if its kind has no number in version 6.
pub fn command<K: CommandKind>(body: &K::Body) -> Option<Vec<u8>> {
    let mut frame = Vec::with_capacity(1 + body.encoded_len());
    frame.push(K::V6?);
    // A Vec always has room.
    body.encode(&mut frame).ok()?;
    Some(frame)
}

fn period(seconds: f32) -> Result<Duration, Malformed> {
    match Duration::try_from_secs_f32(seconds) {
        Ok(period) if period <= MAX_PERIOD => Ok(period),
        _ => Err(Malformed::Period(seconds.to_string())),
    }
}
