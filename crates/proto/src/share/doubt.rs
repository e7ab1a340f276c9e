//! Disbelieving claims: when the claimed air turns out to be free.

use crate::policy::tuning::tuning;
use core::time::Duration;
use stats::Time;

/// Most hosts do not hear each other's messages, which are encrypted and addressed to a third host. But a true claim
/// shows: datagrams sent meanwhile collide with what is claimed, and their receipts arrive later. Where that never
/// happens, yielding gains nothing.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    /// Datagrams in a row that met nothing.
    free: u32,
    /// How long claims were disbelieved last time.
    rest: Option<Duration>,
    /// Number of times.
    pub(super) found_free: u64,
}

impl Doubt {
    /// Records whether a datagram that claims should have delayed had to wait. Returns until when claims are
    /// disbelieved.
    pub(super) fn probed(&mut self, now: Time, met: bool) -> Option<Time> {
        if met {
            (self.free, self.rest) = (0, None);
            return None;
        }
        self.free += 1;
        if self.free < tuning().found_free {
            return None;
        }
        let rest = self
            .rest
            .map_or(tuning().disbelief, |r| (r * 2).min(tuning().longest_disbelief));
        (self.free, self.rest) = (0, Some(rest));
        self.found_free += 1;
        Some(now + rest)
    }
}
