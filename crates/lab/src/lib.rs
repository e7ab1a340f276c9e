#![deny(unsafe_code)]
//! Emulated radios and bad networks that real programs can use: the model of `medium` behind devices or sockets.
//!
//! A [`Scenario`] defines the hosts and media, and their changes over time. [`Labs::start`] brings it up with a TAP
//! device and namespaces for each host: any program runs inside ([`Lab::run`]). [`LoopbackRadio`] needs no privileges:
//! it carries a scenario's UDP datagrams between sockets of 127.0.0.0/8, isolates nothing, and carries nothing else.
//!
//! `medium` decides what is lost, delayed or queued; this crate only moves it. The emulator's own lateness is part of
//! every result ([`Lateness`]): a late emulator adds delay that no real radio would.
//!
//! All unsafe code is in `sys.rs`.

mod error;
#[doc(hidden)]
pub mod fuzzing;
mod lateness;
mod loopback;
mod scenario;
mod sys;
mod tap;

pub use error::LabError;
pub use lateness::Lateness;
pub use loopback::{LoopbackRadio, RadioError, RadioStats, Tap};
pub use scenario::{MAX_EVENTS, MAX_HOSTS, MAX_MEDIA, Scenario, ScenarioError, Settings, Shipped, shipped};
pub use tap::{
    CategoryStatus, Held, HostStatus, InterfaceStatus, Lab, Labs, LatenessBucket, MediumStatus, Program,
    StationStatus, Status, Timing, Verdict, part,
};
