//! Wakes a thread that waits for sockets.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// An eventfd that a thread polls together with its sockets. A thread that leaves work for it rings; that costs a
/// system call only if the thread sleeps, so work that the thread leaves for itself is free.
pub(super) struct Wake {
    bell: OwnedFd,
    asleep: AtomicBool,
}

impl Wake {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Wake {
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            asleep: AtomicBool::new(false),
        })
    }

    /// Called after leaving work under a lock.
    pub(super) fn ring(&self) {
        if self.asleep.swap(false, Ordering::SeqCst) {
            // A full counter is readable already.
            let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        }
    }

    /// Called by the thread, before it checks under the locks a last time and waits.
    pub(super) fn lie_down(&self) {
        self.asleep.store(true, Ordering::SeqCst);
    }

    /// Called by the thread, after waiting.
    pub(super) fn rise(&self) {
        if !self.asleep.swap(false, Ordering::SeqCst) {
            let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        }
    }

    pub(super) fn raw(&self) -> RawFd {
        self.bell.as_raw_fd()
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
