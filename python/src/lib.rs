#![forbid(unsafe_code)]
//! The native half of the Python package: handles, bytes and places in shared memory. What a message looks like is
//! the business of `ropewalk/_codec.py`; here it is a control part and data parts (`docs/wire/control-part.md`).
//!
//! A data part is given to numpy by its address (`__array_interface__`): the array keeps the [`Part`], and the part
//! keeps what its memory belongs to, so that a view stays valid, and its block out of use, as long as it is
//! referenced. Waiting lets other Python threads run.

mod describe;
mod fault;
mod message;
mod node;
mod remote;
mod service;
mod topic;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::describe::{ServiceType, Type};
    #[pymodule_export]
    use super::message::{Loan, Message, Part};
    #[pymodule_export]
    use super::node::Node;
    #[pymodule_export]
    use super::remote::{Controller, Robot, Sent, command_kinds, descriptors, telemetry_kinds};
    #[pymodule_export]
    use super::service::{Client, Pending, Request, Server};
    #[pymodule_export]
    use super::topic::{Publisher, Subscriber};
}

use std::time::{Duration, Instant};

/// How long a wait that signals do not end goes on before it looks for them.
const SLICE: Duration = Duration::from_millis(50);

/// Waits by `step`, which waits at most as long as it is told, until it gives something or the time is over, lets other
/// threads run meanwhile, and ends with what a signal's handler raises (KeyboardInterrupt). `timeout` in seconds;
/// `None` is for ever.
fn wait<T: Send>(
    py: Python<'_>,
    timeout: Option<f64>,
    step: impl Fn(Duration) -> PyResult<Option<T>> + Sync,
) -> PyResult<Option<T>> {
    let deadline = deadline(timeout);
    loop {
        let left = deadline.map_or(SLICE, |d| d.saturating_duration_since(Instant::now()).min(SLICE));
        if let Some(done) = py.detach(|| step(left))? {
            return Ok(Some(done));
        }
        py.check_signals()?;
        if deadline.is_some_and(|d| Instant::now() >= d) {
            return Ok(None);
        }
    }
}

fn deadline(timeout: Option<f64>) -> Option<Instant> {
    Instant::now().checked_add(duration(timeout))
}

/// A timeout in seconds; `None` and what is too long are for ever, what is no number or negative is none.
fn duration(timeout: Option<f64>) -> Duration {
    match timeout {
        None => Duration::MAX,
        Some(seconds) if seconds > 0.0 => Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
        Some(_) => Duration::ZERO,
    }
}
