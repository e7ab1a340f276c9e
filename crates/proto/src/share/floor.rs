//! The air that a host keeps, whatever others claim.

use crate::policy::tuning::tuning;
use core::time::Duration;
use stats::Time;

/// Balance of the time that something waited for others and the air that it then took.
///
/// This one bound covers everything that others claim. While something waits, the host earns air at a rate that
/// guarantees its least share: over any such time it has either used that share or is owed it. The air that it is owed
/// is used without regard to others. At most one full frame can have been taken ahead, so a host that had the air until
/// now waits for at most `full / least`; and unused time earns no burst.
#[derive(Debug)]
pub(super) struct Floor {
    /// Air that a unit of waiting earns.
    earns: f64,
    /// Nanoseconds of air that are due; negative while that much was taken ahead.
    due: f64,
    /// Until when the balance is computed, while something waits.
    since: Option<Time>,
}

impl Floor {
    /// Creates the balance for a least share of the air.
    pub(super) fn new(least: f64) -> Self {
        let least = least.clamp(0.001, 0.999);
        Floor {
            earns: least / (1.0 - least),
            due: f64::MIN,
            since: None,
        }
    }

    fn due(&self, now: Time) -> f64 {
        let waited = self.since.map_or(0.0, |t| nanos(now.since(t)));
        (self.due + waited * self.earns).min(nanos(tuning().share_lateness) * self.earns)
    }

    /// Whether the waiting datagram has waited long enough.
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.due(now) >= 0.0
    }

    /// Something waits for others; a datagram of its peer takes at most `full`. Returns when it need not wait any
    /// longer, unless that is now.
    pub(super) fn waits(&mut self, now: Time, full: Duration) -> Option<Time> {
        self.due = self.due(now).max(-nanos(full));
        self.since = Some(now);
        let wait = (-self.due / self.earns).ceil();
        (wait > 0.0).then(|| now + Duration::from_nanos(wait as u64 + 1))
    }

    /// Nothing waits for others.
    pub(super) fn rests(&mut self, now: Time) {
        self.due = self.due(now);
        self.since = None;
    }

    /// A datagram that had to wait for others was sent, and is worth this much air.
    pub(super) fn takes(&mut self, now: Time, air: Duration, full: Duration) {
        self.rests(now);
        self.due = (self.due - nanos(air)).max(-nanos(full));
    }
}

fn nanos(d: Duration) -> f64 {
    d.as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Duration = Duration::from_millis(2);

    #[test]
    fn a_host_that_always_waits_gets_exactly_the_least_share() {
        for (least, datagram) in [(0.1, FULL), (0.1, FULL / 5), (0.3, FULL), (0.01, FULL)] {
            let mut floor = Floor::new(least);
            let (start, end) = (Time::from_millis(1_000), Time::from_millis(31_000));
            let (mut now, mut taken) = (start, Duration::ZERO);
            while now < end {
                match floor.waits(now, FULL) {
                    Some(due) => {
                        assert!(due > now && !floor.is_due(now));
                        now = due;
                        assert!(floor.is_due(now), "{least}");
                    }
                    None => {
                        floor.takes(now, datagram, FULL);
                        taken += datagram;
                        now += datagram;
                    }
                }
            }
            let share = taken.div_duration_f64(now.since(start));
            assert!((share / least - 1.0).abs() < 0.02, "{share} of {least}");
        }
    }

    #[test]
    fn one_frame_is_owed_at_most_and_unused_time_earns_nothing() {
        let mut floor = Floor::new(0.1);
        let t = Time::from_millis(1_000);
        for n in 0..100 {
            floor.takes(t + FULL * n, FULL, FULL);
        }
        let t = t + FULL * 100;
        let due = floor.waits(t, FULL).expect("it waits");
        assert!(due.since(t) <= FULL * 10, "{:?}", due.since(t));
        let later = t + Duration::from_secs(60);
        assert_eq!(floor.waits(later, FULL), None);
        floor.takes(later, FULL, FULL);
        assert!(!floor.is_due(later), "no burst");
    }
}
