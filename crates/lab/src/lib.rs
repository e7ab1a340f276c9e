#![forbid(unsafe_code)]
//! Emulated radios that real programs can use: the model of `medium` behind sockets.
//!
//! Here is the back end that needs no rights: [`LoopbackRadio`] carries UDP datagrams between sockets of
//! 127.0.0.0/8. It does not isolate programs from the host's network, and it carries nothing but UDP.
//!
//! The emulator's own lateness is part of every result ([`Lateness`]): a radio that is late adds delay that
//! no real radio would.

mod lateness;
mod loopback;

pub use lateness::Lateness;
pub use loopback::{LoopbackRadio, RadioError, RadioStats, Tap};
