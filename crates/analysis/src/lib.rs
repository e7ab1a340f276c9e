#![forbid(unsafe_code)]
//! Evaluates measurements: raw data, and models of machines and radios.
//!
//! - [`raw`]: rows of round trips from third parties, as delivery and delays with their confidence.
//! - [`calibrate`]: a machine's calibration from measurements of `bench scale`.
//! - [`model`]: what a machine and a medium can carry, fitted to few cells, next to the thesis' single limit.
//! - [`plan`]: whether a system fits before it is built, simulated with the link's protocol in virtual time.
//! - [`report`]: renders any result as one page.
//!
//! This crate measures and starts nothing (that is `bench`), and reads no clock. Only the functions `run` access files.

pub mod axis;
pub mod calibrate;
pub mod file;
#[doc(hidden)]
pub mod fuzzing;
pub mod model;
pub mod plan;
pub mod raw;
pub mod report;

pub use terminal::{svg, table};
