//! Telemetry frames.

use super::Malformed;
use crate::TelemetryKind;
use prost::Message;

/// A value that a robot sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Telemetry<'a> {
    /// The number of the kind ([`TelemetryKind::V6`]).
    pub number: u8,
    /// The channel.
    pub channel: u8,
    /// Protobuf.
    pub body: &'a [u8],
}

impl<'a> Telemetry<'a> {
    /// Reads a frame.
    ///
    /// # Errors
    /// [`Malformed`]: it is shorter than its head, or has number 0.
    pub fn parse(frame: &'a [u8]) -> Result<Self, Malformed> {
        match *frame {
            [] => Err(Malformed::Empty),
            [0, ..] => Err(Malformed::Zero("telemetry")),
            [number, channel, ref body @ ..] => Ok(Telemetry {
                number,
                channel,
                body,
            }),
            [_] => Err(Malformed::Length {
                what: "a telemetry frame",
                len: 1,
            }),
        }
    }

    /// Returns its frame.
    pub fn encode(&self) -> Vec<u8> {
        let mut frame = Vec::with_capacity(2 + self.body.len());
        frame.extend([self.number, self.channel]);
        frame.extend_from_slice(self.body);
        frame
    }
}

/// Returns the frame of a value; `None` if its kind has no number in version 6.
pub fn telemetry<K: TelemetryKind>(channel: u8, body: &K::Body) -> Option<Vec<u8>> {
    let mut frame = Vec::with_capacity(2 + body.encoded_len());
    frame.extend([K::V6?, channel]);
    // A Vec always has room.
    body.encode(&mut frame).ok()?;
    Some(frame)
}
