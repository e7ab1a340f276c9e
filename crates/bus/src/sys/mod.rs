//! The system below the bus, one module per thing that another system does differently: shared memory
//! ([`segment`]), waking ([`doorbell`]), sockets that carry descriptors ([`socket`]), readiness ([`epoll`]),
//! the death of processes ([`process`]), fork ([`fork`]) and limits ([`limits`]).
//!
//! Nothing above this module makes a system call, and all unsafe code of the crate stands here and in
//! `message` and `loan`, which turn addresses into slices.

pub(crate) mod doorbell;
pub(crate) mod epoll;
pub(crate) mod fork;
pub(crate) mod limits;
pub(crate) mod process;
pub(crate) mod segment;
pub(crate) mod socket;

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds of `CLOCK_MONOTONIC`, which all processes of the host share.
pub(crate) fn monotonic_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (t.tv_sec as u64)
        .saturating_mul(1_000_000_000)
        .saturating_add(t.tv_nsec as u64)
}

/// Nanoseconds of `CLOCK_REALTIME`.
pub(crate) fn realtime_ns() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
}

/// A number that no other endpoint has.
pub(crate) fn unique_id() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u64(realtime_ns());
    hasher.write_u32(std::process::id());
    hasher.finish().max(1)
}

/// Repeats a call that a signal interrupted.
pub(crate) fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(rustix::io::Errno::INTR) => {}
            other => return other.map_err(io::Error::from),
        }
    }
}
