#![forbid(unsafe_code)]
//! From numbers to conclusions: what raw data, the model of a machine and the model of a radio tell.
//!
//! - [`raw`]: rows of round trips that others wrote, as delivery and delays with their confidence.
//! - [`calibrate`]: a machine's calibration from what `bench scale` measured.
//! - [`model`]: what a machine and a medium will carry, fitted from few cells, beside the thesis' one limit.
//! - [`plan`]: whether a system fits before it is built, by the link's protocol in virtual time.
//! - [`report`]: a page of any result.
//!
//! It measures nothing and starts nothing (that is `bench`), and reads no clock. Only the functions `run` touch files.

pub mod axis;
pub mod calibrate;
pub mod file;
#[doc(hidden)]
pub mod fuzzing;
pub mod model;
pub mod plan;
pub mod raw;
pub mod report;
pub mod svg;
pub mod table;
