#![forbid(unsafe_code)]
//! Experiments: commands that measure, compare with other systems in the same session, and report.
//!
//! The other systems are separate programs outside this workspace. This crate starts them, triggers their start, and
//! computes from what they print. It does not depend on their internals, and implements no transport: Ropewalk's own
//! peer ([`ipc::peer`]) uses the `ropewalk` crate as any user would.
//!
//! ```no_run
//! use bench::ipc::{Experiment, Options, System};
//!
//! let mut options = Options::new(Experiment::Fig7);
//! options.quick = true;
//! options.systems = vec![System::Ropewalk];
//! let result = bench::ipc::run(&options, &|| false)?;
//! println!("{}", result.text());
//! # Ok::<(), bench::Error>(())
//! ```

pub mod brake;
mod flows;
#[doc(hidden)]
pub mod fuzzing;
pub mod ipc;
mod kit;
pub mod lab;
pub mod link;
pub mod remote;
pub mod scale;

pub use kit::error::Error;
pub use terminal::{machine, svg, table};
