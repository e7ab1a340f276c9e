//! The clock of this crate.

use rustix::time::{ClockId, clock_gettime};
use stats::Time;

/// CLOCK_BOOTTIME: as CLOCK_MONOTONIC, but it goes on while the machine is suspended, since what a suspended robot or
/// controller holds grows older all the same.
pub(crate) fn now() -> Time {
    let t = clock_gettime(ClockId::Boottime);
    let secs = u64::try_from(t.tv_sec).unwrap_or(0);
    Time(
        secs.saturating_mul(1_000_000_000)
            .saturating_add(t.tv_nsec as u64),
    )
}

/// A number that no other run of a program has: not nobody's, and none of those kept for ends whose peers have none.
pub(crate) fn random_id() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    loop {
        // Its keys are of the system's random numbers.
        let id = std::hash::RandomState::new().build_hasher().finish();
        if crate::safety::is_valid(id) {
            return id;
        }
    }
}
