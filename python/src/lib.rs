#![forbid(unsafe_code)]
//! The native half of the Python package: handles, places in shared memory, and messages as objects of the
//! classes that `ropewalk/_codec.py` creates from their types ([`codec`]).
//!
//! A data part is passed to numpy by its address (`__array_struct__`). The array keeps the [`Part`], and the
//! part keeps the owner of its memory, so a view stays valid, and its block is not reused, as long as it is
//! referenced. Other Python threads run while one waits.

mod codec;
mod describe;
mod fault;
mod message;
mod node;
mod remote;
mod service;
mod topic;
mod zmq;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::codec::Codec;
    #[pymodule_export]
    use super::describe::{ServiceType, Type, standard_names, standard_service, standard_type};
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
    #[pymodule_export]
    use super::zmq::make_key;
}

use crate::fault::raise;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// The process that created an object. Waiting in a forked child would never end: the thread that it waits
/// for runs only in the parent.
#[derive(Clone, Copy)]
pub(crate) struct Born(u32);

impl Born {
    pub(crate) fn here() -> Self {
        Born(std::process::id())
    }

    pub(crate) fn check(self) -> PyResult<()> {
        if self.0 == std::process::id() {
            return Ok(());
        }
        let text = "it belongs to the parent process: create a node and its endpoints after fork";
        Err(raise("Forked", text))
    }
}

/// Maximum time of a wait that signals do not end, before signals are checked.
const SLICE: Duration = Duration::from_millis(50);

/// Waits with `step`, which waits at most the given time, until it returns a value or the time is over. Other
/// threads run in the meantime, and an exception of a signal's handler (KeyboardInterrupt) ends the wait.
/// `timeout` is in seconds; `None` means forever.
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

/// Checks with `look`, and while it finds nothing sleeps until `fd` is readable or the time is over. Other
/// threads run in the meantime, and exceptions of signal handlers end the wait, as with Python's
/// `select.poll`.
fn receive<T>(
    py: Python<'_>,
    fd: BorrowedFd<'_>,
    timeout: Option<f64>,
    look: impl Fn() -> PyResult<Option<T>>,
) -> PyResult<Option<T>> {
    if let Some(found) = look()? {
        return Ok(Some(found));
    }
    let deadline = self::deadline(timeout);
    loop {
        let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(None);
        }
        py.check_signals()?;
        // A time that is too long to represent means forever.
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let slept = py.detach(|| poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], left.as_ref()));
        match slept {
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(raise("SystemFault", format!("waiting for a message: {e}"))),
        }
        if let Some(found) = look()? {
            return Ok(Some(found));
        }
    }
}

fn deadline(timeout: Option<f64>) -> Option<Instant> {
    Instant::now().checked_add(duration(timeout))
}

/// Converts a timeout in seconds. `None` and too large values mean forever; NaN and negative values mean
/// none.
fn duration(timeout: Option<f64>) -> Duration {
    match timeout {
        None => Duration::MAX,
        Some(seconds) if seconds > 0.0 => Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
        Some(_) => Duration::ZERO,
    }
}
