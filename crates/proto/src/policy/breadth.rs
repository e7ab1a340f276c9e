//! How far the in-flight limit of a cable opens while nothing urgent is sent.

use super::tuning::tuning;
use core::time::Duration;
use stats::Time;

/// Datagrams that may be on the way to a peer beyond the limit, if the peer holds them.
#[derive(Debug, Default)]
pub(crate) struct Breadth {
    now: usize,
    most: usize,
    /// The fastest receipt of this interval and of the one before.
    quickest: [Duration; 2],
    since: Time,
}

impl Breadth {
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
        if now >= self.since + tuning().breadth_interval {
            (self.quickest, self.since) = ([round_trip, self.quickest[0]], now);
        }
        self.quickest[0] = self.quickest[0].min(round_trip);
        if self.quickest[0].min(self.quickest[1]) > tuning().breadth_short {
            self.now = self.now.saturating_sub(tuning().breadth_step);
        } else if filled && round_trip <= tuning().breadth_short {
            self.now = (self.now + tuning().breadth_step).min(self.most);
        }
    }
}

/// Importance of recent messages.
#[derive(Debug, Default)]
pub(crate) struct Lately {
    /// The most important of this span and of the one before.
    most: [Option<u8>; 2],
    span: Time,
}

impl Lately {
    pub(crate) fn went(&mut self, now: Time, importance: u8) {
        if now >= self.span + tuning().lately {
            let before = self.most[0].filter(|_| now < self.span + 2 * tuning().lately);
            (self.most, self.span) = ([None, before], now);
        }
        self.most[0] = self.most[0].max(Some(importance));
    }

    /// Whether anything more important was sent recently.
    pub(crate) fn outranks(&self, now: Time, importance: u8) -> bool {
        let spans = self.most.iter().flatten();
        now < self.span + 2 * tuning().lately && spans.max().is_some_and(|m| *m > importance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_opens_while_receipts_are_quick_and_it_is_used() {
        let quick = tuning().breadth_short / 2;
        let mut breadth = Breadth::default();
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

    #[test]
    fn sent_priorities_are_remembered_for_one_to_two_spans() {
        let mut lately = Lately::default();
        let start = Time::from_millis(5000);
        assert!(!lately.outranks(start, 0));
        lately.went(start, 100);
        lately.went(start, 10);
        assert!(lately.outranks(start, 10) && !lately.outranks(start, 100));
        let next = start + tuning().lately;
        lately.went(next, 10);
        assert!(lately.outranks(next, 10));
        assert!(
            !lately.outranks(next + 2 * tuning().lately, 10),
            "nothing went since"
        );
        lately.went(next + tuning().lately, 10);
        assert!(!lately.outranks(next + tuning().lately, 10));
    }
}
