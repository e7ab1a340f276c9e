#![forbid(unsafe_code)]
//! The native half of the Python package: handles, places in shared memory, and messages as objects of the classes that
//! `ropewalk/_codec.py` makes of their types ([`codec`]).
//!
//! A data part is given to numpy by its address (`__array_struct__`): the array keeps the [`Part`], and the part
//! keeps what its memory belongs to, so that a view stays valid, and its block out of use, as long as it is
//! referenced. Waiting lets other Python threads run.

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
    #[pymodule_export]
    use super::zmq::make_key;
}

use crate::fault::raise;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// The process that made something. Waiting with it in a forked child would be for ever: what it waits for runs in
/// the parent.
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
        let text = "it belongs to the parent process: make a node and what is of it after fork";
        Err(raise("Forked", text))
    }
}

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

/// Looks by `look`, and while it finds nothing sleeps until `fd` is readable, until the time is over. Other threads run
/// meanwhile, and signals end it by what their handlers raise, as those of Python's `select.poll`.
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
        // What is too long to be told is for ever.
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

/// A timeout in seconds; `None` and what is too long are for ever, what is no number or negative is none.
fn duration(timeout: Option<f64>) -> Duration {
    match timeout {
        None => Duration::MAX,
        Some(seconds) if seconds > 0.0 => Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
        Some(_) => Duration::ZERO,
    }
}
