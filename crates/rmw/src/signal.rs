//! A flag that wakes the thread that polls it.

use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by any thread; readable while it is set.
#[derive(Debug)]
pub(crate) struct Signal {
    set: AtomicBool,
    fd: OwnedFd,
}

impl Signal {
    pub(crate) fn new() -> rustix::io::Result<Self> {
        Ok(Signal {
            set: AtomicBool::new(false),
            fd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    pub(crate) fn set(&self) {
        if !self.set.swap(true, Ordering::SeqCst) {
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }

    pub(crate) fn is_set(&self) -> bool {
        self.set.load(Ordering::SeqCst)
    }

    /// Returns whether the flag was set, and clears it.
    pub(crate) fn take(&self) -> bool {
        // Read before clearing the flag: a thread that sets it afterwards writes again.
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.fd, &mut count);
        self.set.swap(false, Ordering::SeqCst)
    }
}

impl AsFd for Signal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    #[test]
    fn it_is_readable_while_it_is_set() {
        let signal = Signal::new().unwrap();
        let readable = || {
            let mut fds = [PollFd::new(&signal, PollFlags::IN)];
            poll(&mut fds, Some(&Timespec::default())).unwrap() == 1
        };
        assert!(!readable() && !signal.take());
        signal.set();
        signal.set();
        assert!(readable() && signal.take() && !readable());
        signal.set();
        assert!(readable());
    }
}
