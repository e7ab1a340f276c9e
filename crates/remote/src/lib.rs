#![forbid(unsafe_code)]
//! Commanding robots through loss and seconds of delay: a [`Robot`] takes commands and tells its state, a [`Controller`] sends the one and
//! hears the other, over any [`transport`].
//!
//! A command ends with what became of it ([`Outcome`]). It carries who sends it, its number and how long it stays good; the
//! robot judges its age by its own clock alone, carries it out at most once, and never one that is expired or overtaken. One
//! controller at a time may move a subsystem; when it is lost, the robot stops.
//!
//! The kinds of commands and telemetry are named types ([`CommandKind`], [`TelemetryKind`]); a user's program adds its own.
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
//!     _ => Err("so much is not in the tank".into()),
//! });
//!
//! let controller = Controller::builder("desk").end(connect.end()).start()?;
//! assert!(controller.wait_until_found(Duration::from_secs(10)));
//! assert_eq!(controller.command::<Spray>(&Litres { value: 2.0 }), Outcome::Executed);
//! let outcome = controller.command::<Spray>(&Litres { value: 9.0 });
//! assert_eq!(outcome.to_string(), "rejected: so much is not in the tank");
//! assert_eq!(controller.fetch::<Tank>(0)?, Some(Litres { value: 5.0 }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod beneath;
mod callback;
mod clock;
pub mod controller;
pub mod convert;
mod decode;
#[doc(hidden)]
pub mod fuzzing;
mod inbox;
mod kind;
mod kinds;
mod outcome;
pub mod robot;
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

/// Any thread may use them.
const _: () = {
    const fn shared<T: Send + Sync + Clone>() {}
    shared::<Robot>();
    shared::<Controller>();
};

/// The messages of Robot Remote Control's wire, version 6, which both wires carry.
pub mod types {
    #![allow(missing_docs, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/robot_remote_control.rs"));
}

/// Both packages of messages as an encoded `google.protobuf.FileDescriptorSet`, with comments: for programs that show or read messages
/// of any kind.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// The messages of the own wire ([`Wire::Own`](transport::Wire::Own)), for whoever writes another end of it.
pub mod own {
    #![allow(missing_docs, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/ropewalk.remote.rs"));
}
