#![forbid(unsafe_code)]
//! From numbers to conclusions: what raw data, the model of a machine and the model of a radio tell.
//!
//! - [`raw`]: rows of round trips that others wrote, as delivery and delays with their confidence.
//!
//! - [`model`]: what a machine and a medium will carry, fitted from few cells, beside the thesis' one limit.
//!
//! It measures nothing and starts nothing (that is `bench`), and reads no clock. Only the functions `run` touch files.

pub mod calibrate;
pub mod model;
pub mod raw;
pub mod svg;
pub mod table;
