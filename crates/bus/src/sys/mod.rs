//! The system layer of the bus, one module for each thing that differs on another system: shared memory
//! ([`segment`]), wake-ups ([`doorbell`]), sockets that carry descriptors ([`socket`]), readiness
//! ([`epoll`]), the death of processes ([`process`]), fork ([`fork`]) and limits ([`limits`]).
//!
//! Shared memory and wake-ups come in two variants, selected only here: Linux's own, or plain POSIX (feature
//! `posix`). Both ends of a connection must use the same variant. `docs/decisions/037-posix-variant.md` lists
//! what else a port would have to replace.
//!
//! Nothing above this module makes a system call. All unsafe code of the crate is here and in `message` and
//! `loan`, which turn addresses into slices.

pub(crate) mod doorbell;
pub(crate) mod epoll;
pub(crate) mod fork;
pub(crate) mod limits;
pub(crate) mod process;
pub(crate) mod segment;
pub(crate) mod socket;

#[cfg(not(feature = "posix"))]
mod linux;
#[cfg(feature = "posix")]
mod posix;
#[cfg(not(feature = "posix"))]
use linux as variant;
#[cfg(feature = "posix")]
use posix as variant;

use crate::block::LAYOUT_VERSION;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

/// How shared memory and doorbells are created and passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "each build creates one of them and may receive both")]
pub(crate) enum Variant {
    Linux,
    Posix,
}

impl Variant {
    /// The variant of this build.
    pub(crate) const OURS: Variant = variant::VARIANT;

    const POSIX_BIT: u16 = 1 << 15;

    /// The layout of shared memory that a hello of this build announces.
    pub(crate) fn layout() -> u16 {
        match Self::OURS {
            Variant::Linux => LAYOUT_VERSION,
            Variant::Posix => LAYOUT_VERSION | Self::POSIX_BIT,
        }
    }

    /// Splits a hello's layout into its version and its variant.
    pub(crate) fn of_layout(layout: u16) -> (u16, Variant) {
        match layout & Self::POSIX_BIT {
            0 => (layout, Variant::Linux),
            _ => (layout & !Self::POSIX_BIT, Variant::Posix),
        }
    }
}

impl std::fmt::Display for Variant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Variant::Linux => "Linux's (memfd)",
            Variant::Posix => "POSIX's (shm_open)",
        })
    }
}

/// Removes shared memory that killed processes left half created.
pub(crate) fn sweep() {
    <variant::Memory as segment::SharedMemory>::sweep();
}

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

/// Derives `CLOCK_REALTIME` from `CLOCK_MONOTONIC`, so that a message that needs both costs one reading.
/// [`Wall::prepare`] compares them again after [`Wall::PERIOD`], in which an adjusted clock slews by at most
/// half a microsecond. If nobody prepares, as when filling a message takes long, the comparison is at most
/// [`Wall::GRACE`] older.
#[derive(Debug, Default)]
pub(crate) struct Wall {
    offset: u64,
    until: u64,
}

impl Wall {
    const PERIOD: u64 = 1_000_000;
    /// How much older the comparison may be.
    const GRACE: u64 = 100_000_000;

    /// Compares the clocks if that was not done recently. Call it when there is time, before
    /// [`Wall::realtime`].
    pub(crate) fn prepare(&mut self, now: u64) {
        if now >= self.until {
            self.compare(now);
        }
    }

    /// Returns `CLOCK_REALTIME` at `now` of `CLOCK_MONOTONIC`. Notices a step of the wall clock within a
    /// tenth of a second.
    pub(crate) fn realtime(&mut self, now: u64) -> u64 {
        if now >= self.until.saturating_add(Self::GRACE) {
            self.compare(now);
        }
        now.wrapping_add(self.offset)
    }

    #[cold]
    fn compare(&mut self, now: u64) {
        self.offset = realtime_ns().wrapping_sub(monotonic_ns());
        self.until = now.saturating_add(Self::PERIOD);
    }
}

/// Returns a number that no other endpoint has.
pub(crate) fn unique_id() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u64(realtime_ns());
    hasher.write_u32(std::process::id());
    hasher.finish().max(1)
}

/// Asks the processor to prefetch `len` bytes from `start`, code or data. Does nothing on processors without
/// support.
#[inline]
pub(crate) fn prefetch(start: *const u8, len: usize) {
    for at in (0..len).step_by(64) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: prefetching changes nothing and faults at no address; every x86_64 has SSE.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(at).cast());
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = start.wrapping_add(at);
    }
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
