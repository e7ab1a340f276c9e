//! How far the in-flight limit of a cable opens while nothing urgent is sent.

use super::Recent;
use super::tuning::tuning;
use core::time::Duration;
use stats::Time;

/// Datagrams that may be on the way to a peer beyond the limit, if the peer holds them.
#[derive(Debug)]
pub(crate) struct Breadth {
    now: usize,
    most: usize,
    /// The fastest receipt of this interval and of the one before.
    quickest: Recent<Duration>,
}

impl Breadth {
    pub(crate) fn new() -> Self {
        Breadth {
            now: 0,
            most: 0,
            quickest: Recent::least(tuning().breadth_interval),
        }
    }

    /// The peer holds `datagrams` until it reads them; `least` of these are within the usual limit.
    pub(crate) fn holds(&mut self, datagrams: usize, least: usize) {
        self.most = datagrams.min(tuning().breadth_most).saturating_sub(least);
        self.now = self.now.min(self.most);
    }

    pub(crate) fn get(&self) -> usize {
        self.now
    }

    /// A receipt came after `round_trip`; `filled`: the limit was about used up.
    pub(crate) fn receipt(&mut self, now: Time, round_trip: Duration, filled: bool) {
        self.quickest.add(now, round_trip);
        if self.quickest.get() > Some(tuning().breadth_short) {
            self.now = self.now.saturating_sub(tuning().breadth_step);
        } else if filled && round_trip <= tuning().breadth_short {
            self.now = (self.now + tuning().breadth_step).min(self.most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_opens_while_receipts_are_quick_and_it_is_used() {
        let quick = tuning().breadth_short / 2;
        let mut breadth = Breadth::new();
        let now = Time::from_millis(5000);
        breadth.receipt(now, quick, true);
        assert_eq!(breadth.get(), 0, "nobody said what the peer holds");
        breadth.holds(300, 128);
        breadth.receipt(now, quick, false);
        assert_eq!(breadth.get(), 0, "it was not used up");
        (0..1000).for_each(|_| breadth.receipt(now, quick, true));
        assert_eq!(breadth.get(), 300 - 128);
        (0..1000).for_each(|_| breadth.receipt(now, tuning().breadth_short * 2, true));
        assert_eq!(breadth.get(), 300 - 128, "a busy host");
        breadth.receipt(now + tuning().breadth_interval, tuning().breadth_short * 2, true);
        assert_eq!(breadth.get(), 300 - 128, "a moment ago it was quick");
        (0..3).for_each(|_| {
            breadth.receipt(
                now + tuning().breadth_interval * 2,
                tuning().breadth_short * 2,
                true,
            )
        });
        assert_eq!(
            breadth.get(),
            300 - 128 - 3 * tuning().breadth_step,
            "a queue that stands"
        );
        (0..1000).for_each(|_| {
            breadth.receipt(
                now + tuning().breadth_interval * 3,
                tuning().breadth_short * 2,
                true,
            )
        });
        assert_eq!(breadth.get(), 0);
        breadth.holds(usize::MAX, 128);
        (0..1000).for_each(|_| breadth.receipt(now + tuning().breadth_interval * 3, quick, true));
        assert_eq!(breadth.get(), tuning().breadth_most - 128);
        breadth.holds(64, 128);
        assert_eq!(breadth.get(), 0, "never below the bound itself");
    }
}
