//! Kinds of commands and telemetry as a user's program adds them.

use remote::{BASE, CommandKind, TelemetryKind};

#[derive(Clone, PartialEq, prost::Message)]
pub struct Speed {
    #[prost(double, tag = "1")]
    pub forward: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Blob {
    #[prost(bytes = "vec", tag = "1")]
    pub data: Vec<u8>,
}

/// Moves the base.
pub struct Drive;
impl CommandKind for Drive {
    type Body = Speed;
    const NAME: &'static str = "conformance.Drive";
    const MOVES: Option<&'static str> = Some(BASE);
}

/// Moves nothing.
pub struct Lamp;
impl CommandKind for Lamp {
    type Body = Speed;
    const NAME: &'static str = "conformance.Lamp";
}

pub struct Odometer;
impl TelemetryKind for Odometer {
    type Body = Speed;
    const NAME: &'static str = "conformance.Odometer";
}

pub struct Picture;
impl TelemetryKind for Picture {
    type Body = Blob;
    const NAME: &'static str = "conformance.Picture";
    const PRIORITY: u8 = 10;
}

pub struct Serial;
impl TelemetryKind for Serial {
    type Body = Speed;
    const NAME: &'static str = "conformance.Serial";
    const ON_REQUEST: bool = true;
}

pub fn speed(forward: f64) -> Speed {
    Speed { forward }
}
