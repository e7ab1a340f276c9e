//! Disbelieving claims: when the claimed air turns out to be free.

use core::time::Duration;
use stats::Time;

/// Number of datagrams in a row without a wait that show that the air is free. Next to one host that fills it, three in
/// four datagrams and more have to wait.
const ENOUGH: u32 = 16;
/// How long the claims of hosts that are not heard are then disbelieved; the time doubles each time this is found
/// again.
const REST: Duration = Duration::from_secs(5);
const LONGEST_REST: Duration = Duration::from_secs(20);

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
        if self.free < ENOUGH {
            return None;
        }
        let rest = self.rest.map_or(REST, |r| (r * 2).min(LONGEST_REST));
        (self.free, self.rest) = (0, Some(rest));
        self.found_free += 1;
        Some(now + rest)
    }
}
