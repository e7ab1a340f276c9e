//! When claims are no longer believed: the air that is claimed is free.

use core::time::Duration;
use stats::Time;

/// So many datagrams in a row that did not have to wait show that the air is free. Beside one host that fills it, three of four
/// and more have to.
const ENOUGH: u32 = 16;
/// For so long claims of hosts that are not heard are not believed then; twice as long each time that this is found again.
const REST: Duration = Duration::from_secs(5);
const LONGEST_REST: Duration = Duration::from_secs(20);

/// Most hosts do not hear each other's messages, which are for a third and encrypted. But a claim that is true shows: what is
/// sent meanwhile meets what is claimed, and its receipt comes later. Where that never happens nothing is gained by yielding.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    /// Datagrams in a row that met nothing.
    free: u32,
    /// For how long nothing was believed last.
    rest: Option<Duration>,
    /// How often.
    pub(super) found_free: u64,
}

impl Doubt {
    /// A datagram that claims should have made wait had to, or did not. Gives until when they are not believed.
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
