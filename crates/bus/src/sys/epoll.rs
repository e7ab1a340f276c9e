//! Readiness of many descriptors, and a way to interrupt the wait.

use rustix::event::epoll;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// The set of descriptors that the housekeeping thread watches.
#[derive(Debug)]
pub(crate) struct Epoll {
    fd: OwnedFd,
    wake: OwnedFd,
}

/// The token of the wake-up itself.
pub(crate) const WAKE: u64 = 0;

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        let fd = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        // Only this process holds it, so nobody else can fill it or make it block.
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let epoll = Epoll { fd, wake };
        epoll.add(&epoll.wake, WAKE)?;
        Ok(epoll)
    }

    /// Reports `token` while `fd` is readable or hung up. `token` is not [`WAKE`].
    pub(crate) fn add(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP;
        epoll::add(&self.fd, fd, epoll::EventData::new_u64(token), flags).map_err(Into::into)
    }

    pub(crate) fn remove(&self, fd: impl AsFd) {
        let _ = epoll::delete(&self.fd, fd);
    }

    /// Ends the current or next wait.
    pub(crate) fn wake(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Waits for readiness, at most `timeout`, and returns the tokens.
    pub(crate) fn wait(&self, timeout: Option<Duration>, tokens: &mut Vec<u64>) -> io::Result<()> {
        tokens.clear();
        let timeout = timeout.map(|t| {
            let t = t.min(Duration::from_secs(3600));
            rustix::time::Timespec {
                tv_sec: t.as_secs() as _,
                tv_nsec: t.subsec_nanos() as _,
            }
        });
        let mut events = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }; 32];
        let n = match epoll::wait(&self.fd, &mut events, timeout.as_ref()) {
            Ok(n) => n,
            Err(rustix::io::Errno::INTR) => 0,
            Err(e) => return Err(e.into()),
        };
        for event in &events[..n] {
            let token = event.data.u64();
            if token == WAKE {
                let _ = rustix::io::read(&self.wake, &mut [0; 8]);
            } else {
                tokens.push(token);
            }
        }
        Ok(())
    }
}
