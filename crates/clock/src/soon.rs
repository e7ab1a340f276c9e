//! Busy waiting for events that are due soon.

use stats::Time;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Waits that usually take longer than this sleep: a wake-up is short in comparison.
const SOON: Duration = Duration::from_micros(300);
/// A new sample counts for one part in this many in the smoothed duration.
const SMOOTH: u64 = 8;

/// Decides how long to wait awake. If recent waits were short, a thread waits awake for about as long as they took: a
/// sleeping processor takes 10 to 50 µs to come back, as long as all the rest of an answer on this host. With a single
/// processor, or slow answers, threads sleep at once.
#[derive(Debug)]
pub struct Soon {
    /// Smoothed duration of recent waits, in ns.
    typical: AtomicU64,
    alone: bool,
}

impl Default for Soon {
    fn default() -> Self {
        Soon {
            typical: AtomicU64::new(0),
            alone: std::thread::available_parallelism().is_ok_and(|n| n.get() == 1),
        }
    }
}

impl Soon {
    /// Until when a thread that begins to wait now should not sleep, but yield and look again.
    pub fn awake_until(&self, now: Time) -> Time {
        let typical = Duration::from_nanos(self.typical.load(Ordering::Relaxed));
        match self.alone || typical > SOON {
            true => now,
            false => now + (typical * 2).min(SOON),
        }
    }

    /// A wait ended after `after`.
    pub fn came(&self, after: Duration) {
        let new = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX).min(1 << 40);
        // Samples that other threads add meanwhile may get lost: this is a heuristic.
        let old = self.typical.load(Ordering::Relaxed);
        let typical = (old * (SMOOTH - 1) + new) / SMOOTH;
        self.typical.store(typical, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_came_soon_lately_is_waited_for_awake() {
        let soon = Soon {
            alone: false,
            ..Soon::default()
        };
        let now = Time::from_millis(5);
        assert_eq!(soon.awake_until(now), now, "nothing is known");
        (0..40).for_each(|_| soon.came(Duration::from_micros(100)));
        let awake = soon.awake_until(now).since(now);
        assert!(
            awake > Duration::from_micros(150) && awake <= Duration::from_micros(200),
            "{awake:?}"
        );
        soon.came(Duration::from_secs(2));
        assert_eq!(soon.awake_until(now), now, "answers are slow");
        (0..400).for_each(|_| soon.came(Duration::from_micros(100)));
        assert!(soon.awake_until(now) > now, "quick again");
        let alone = Soon { alone: true, ..soon };
        assert_eq!(alone.awake_until(now), now);
    }
}
