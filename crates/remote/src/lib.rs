#![forbid(unsafe_code)]
//! Commanding robots through loss and seconds of delay: a robot takes commands and tells its state, a controller sends the one and
//! hears the other, over any [`transport`].

#[doc(hidden)]
pub mod fuzzing;
mod kind;
mod kinds;
pub mod transport;
pub mod v6;
mod zlib;

pub use kind::{ARM, BASE, CommandKind, TelemetryKind};
pub use kinds::{command, telemetry};
pub use zlib::ZlibError;

/// The messages of Robot Remote Control's wire, version 6, which both wires carry.
pub mod types {
    #![allow(missing_docs, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/robot_remote_control.rs"));
}

/// The messages of the own wire ([`Wire::Own`](transport::Wire::Own)), for whoever writes another end of it.
pub mod own {
    #![allow(missing_docs, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/ropewalk.remote.rs"));
}
