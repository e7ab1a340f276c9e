//! The clock of this crate.

use rustix::time::{ClockId, clock_gettime};
use stats::Time;

/// CLOCK_BOOTTIME: like CLOCK_MONOTONIC, but it keeps counting while the machine is suspended, because the data that a
/// suspended robot or controller holds ages meanwhile.
pub(crate) fn now() -> Time {
    let t = clock_gettime(ClockId::Boottime);
    let secs = u64::try_from(t.tv_sec).unwrap_or(0);
    Time(
        secs.saturating_mul(1_000_000_000)
            .saturating_add(t.tv_nsec as u64),
    )
}

/// Returns a number that no other run of a program has. It is never `NOBODY` nor one of the numbers reserved for ends
/// whose peers have none.
pub(crate) fn random_id() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    loop {
        // The hasher is keyed with the system's random numbers.
        let id = std::hash::RandomState::new().build_hasher().finish();
        if crate::safety::is_valid(id) {
            return id;
        }
    }
}
