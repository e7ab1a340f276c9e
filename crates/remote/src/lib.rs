#![forbid(unsafe_code)]
//! Command robots over links with loss and seconds of delay. A [`Robot`] takes commands and sends telemetry; a
//! [`Controller`] sends commands and receives telemetry. Both work over any [`transport`].
//!
//! A command ends with an [`Outcome`]. It carries its sender, its number and its expiry. The robot judges its age by
//! its own clock alone. It executes a command at most once, and never one that has expired or that a newer one has
//! overtaken. One controller at a time may move a subsystem; when that controller is lost, the robot stops.
//!
//! The kinds of commands and telemetry are named types ([`CommandKind`], [`TelemetryKind`]); a user's program adds its
//! own.
//!
//! ```
//! use remote::transport::{Wire, local};
//! use remote::{CommandKind, Controller, Outcome, Robot, TelemetryKind};
//! use std::time::Duration;
//!
//! #[derive(Clone, PartialEq, prost::Message)]
//! struct Litres {
//!     #[prost(float, tag = "1")]
//!     value: f32,
//! }
//! struct Spray;
//! impl CommandKind for Spray {
//!     type Body = Litres;
//!     const NAME: &'static str = "acme.Spray";
//! }
//! struct Tank;
//! impl TelemetryKind for Tank {
//!     type Body = Litres;
//!     const NAME: &'static str = "acme.Tank";
//! }
//!
//! let (end, connect) = local::end("sprayer", Wire::Own);
//! let robot = Robot::builder("sprayer").end(end).start()?;
//! robot.set::<Tank>(0, &Litres { value: 5.0 })?;
//! robot.on::<Spray>(|litres, _context| match litres.value {
//!     ..=5.0 => Ok(()),
//!     _ => Err("the tank does not hold enough".into()),
//! });
//!
//! let controller = Controller::builder("desk").end(connect.end()).start()?;
//! assert!(controller.wait_until_found(Duration::from_secs(10)));
//! assert_eq!(controller.command::<Spray>(&Litres { value: 2.0 }), Outcome::Executed);
//! let outcome = controller.command::<Spray>(&Litres { value: 9.0 });
//! assert_eq!(outcome.to_string(), "rejected: the tank does not hold enough");
//! assert_eq!(controller.fetch::<Tank>(0)?, Some(Litres { value: 5.0 }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod callback;
mod clock;
pub mod controller;
pub mod convert;
mod decode;
#[doc(hidden)]
pub mod fuzzing;
#[cfg(test)]
mod generated;
mod inbox;
mod kind;
mod kinds;
mod outcome;
pub mod robot;
mod safe_path;
mod safety;
mod statistics;
mod sync;
pub mod transport;
pub mod v6;
mod zlib;

pub use controller::{Connection, Controller, Expiry, Info, Pending};
pub use inbox::Queue;
pub use kind::{ARM, BASE, CommandKind, TelemetryKind};
pub use kinds::{command, telemetry};
pub use outcome::{Outcome, Rejection};
pub use robot::{Context, Robot};
pub use statistics::{Rate, Statistics};
pub use zlib::ZlibError;

/// `Robot` and `Controller` can be used from any thread.
const _: () = {
    const fn shared<T: Send + Sync + Clone>() {}
    shared::<Robot>();
    shared::<Controller>();
};

/// The messages of Robot Remote Control's wire, version 6. Both wires carry them.
pub mod types {
    #![allow(missing_docs, clippy::all)]
    include!("../generated/robot_remote_control.rs");
}

/// Both packages of messages as an encoded `google.protobuf.FileDescriptorSet`, with comments: for programs that
/// display or read messages of any kind.
pub const DESCRIPTORS: &[u8] = include_bytes!("../generated/descriptors.bin");

/// The messages of Ropewalk's own wire ([`Wire::Own`](transport::Wire::Own)), for implementing another end of it.
pub mod own {
    #![allow(missing_docs, clippy::all)]
    include!("../generated/ropewalk.remote.rs");
}
