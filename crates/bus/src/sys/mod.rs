//! The system below the bus, one module per thing that another system does differently: shared memory
//! ([`segment`]), waking ([`doorbell`]), sockets that carry descriptors ([`socket`]), readiness ([`epoll`]),
//! the death of processes ([`process`]), fork ([`fork`]) and limits ([`limits`]).
//!
//! Shared memory and waking are built in one of two variants, chosen here alone: Linux's own, or what POSIX has
//! (feature `posix`). Both ends of a connection must be of one variant. What else a port would have to replace
//! is listed in `docs/decisions/037-posix-variant.md`.
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

/// How shared memory and doorbells are made and passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "each build makes one of them, and hears of both")]
pub(crate) enum Variant {
    Linux,
    Posix,
}

impl Variant {
    /// The variant of this build.
    pub(crate) const OURS: Variant = variant::VARIANT;

    const POSIX_BIT: u16 = 1 << 15;

    /// What a hello of this build says of the layout of shared memory.
    pub(crate) fn layout() -> u16 {
        match Self::OURS {
            Variant::Linux => LAYOUT_VERSION,
            Variant::Posix => LAYOUT_VERSION | Self::POSIX_BIT,
        }
    }

    /// The version of the layout and the variant that a hello names.
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

/// Removes what processes left that were killed while they made shared memory.
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

/// `CLOCK_REALTIME` told from `CLOCK_MONOTONIC`, so that a message that needs both costs one reading. They are
/// compared anew by [`Wall::prepare`] after [`Wall::PERIOD`], by which an adjusted clock has slewed by half a microsecond
/// at most; while nobody prepares, as when a message is filled for long, a stamp is never older than [`Wall::GRACE`] more.
#[derive(Debug, Default)]
pub(crate) struct Wall {
    offset: u64,
    until: u64,
}

impl Wall {
    const PERIOD: u64 = 1_000_000;
    /// How much older the comparison may be.
    const GRACE: u64 = 100_000_000;

    /// Compares the clocks if that was not done lately: where there is time for it, before [`Wall::realtime`] is called.
    pub(crate) fn prepare(&mut self, now: u64) {
        if now >= self.until {
            self.compare(now);
        }
    }

    /// `CLOCK_REALTIME` at `now` of `CLOCK_MONOTONIC`, a step of the wall clock noticed within a tenth of a second.
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

/// A number that no other endpoint has.
pub(crate) fn unique_id() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u64(realtime_ns());
    hasher.write_u32(std::process::id());
    hasher.finish().max(1)
}

/// Asks the processor to fetch `len` bytes from `start` on, code or data, into its caches. Where it cannot be asked nothing
/// happens.
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
