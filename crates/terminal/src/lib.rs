#![forbid(unsafe_code)]
//! Code that Ropewalk's programs share for the terminal.
//!
//! - [`screen`] writes text that people read, without control characters from other processes, hosts and files.
//! - [`failure`] is how a command fails, and its exit code.
//! - [`signals`] watches Ctrl-C.
//! - [`table`] and [`svg`]: how results are shown.
//! - [`machine`] describes where a result was measured.
//! - [`log`] writes log messages to standard error.
//! - [`json`] is the option `--json[=FILE]`.
//! - [`help`] prints completion scripts and manual pages.

pub mod failure;
pub mod help;
pub mod json;
pub mod log;
pub mod machine;
pub mod screen;
pub mod signals;
pub mod svg;
pub mod table;
