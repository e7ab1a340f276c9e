#![forbid(unsafe_code)]
//! One set of numbers: instants, histograms, jitter, delivery and drop reasons, computed here and shown
//! alike by the bench, the command line, the API and the dashboard.
//!
//! This crate does no I/O and reads no clock: every instant comes in as a [`Time`].

mod drops;
mod time;

pub use drops::{DropReason, Drops};
pub use time::Time;
