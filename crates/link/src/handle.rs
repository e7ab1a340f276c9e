//! A daemon's handle for other threads.

use crate::status::Status;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Stops a daemon and shows its state, from any thread.
#[derive(Clone)]
pub struct Handle(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) stop: AtomicBool,
    pub(crate) wake: OwnedFd,
    pub(crate) status: Mutex<Status>,
}

impl Handle {
    /// Makes the daemon's `run` return soon.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::Release);
        self.wake();
    }

    /// The daemon's state, at most a tenth of a second old.
    pub fn status(&self) -> Status {
        self.0
            .status
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn wake(&self) {
        // If the counter is full, a wake-up is already pending.
        let _ = rustix::io::write(&self.0.wake, &1u64.to_ne_bytes());
    }
}
