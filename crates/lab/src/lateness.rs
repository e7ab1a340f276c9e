//! How punctual an emulator was.

use stats::{Histogram, Time};
use std::time::Duration;

/// How late events were handled, relative to their ideal times.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    histogram: Histogram,
    stalls: u64,
}

impl Lateness {
    /// A p99 above this puts a run's timing in doubt.
    pub const P99_LIMIT: Duration = Duration::from_micros(300);
    /// More than [`Lateness::MOST_STALLS`] events later than this put a run's timing in doubt.
    pub const STALL: Duration = Duration::from_millis(5);
    /// Number of events later than [`Lateness::STALL`] that are tolerated.
    pub const MOST_STALLS: u64 = 1;

    /// Counts an event that was due at `ideal` and handled at `actual`.
    pub fn record(&mut self, ideal: Time, actual: Time) {
        let late = actual.since(ideal);
        self.histogram.record_duration(late);
        self.stalls += u64::from(late > Self::STALL);
    }

    /// Lateness in nanoseconds.
    pub fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    /// Events later than [`Lateness::STALL`].
    pub fn stalls(&self) -> u64 {
        self.stalls
    }

    /// Whether the timing of a run with this lateness can be trusted.
    pub fn good(&self) -> bool {
        self.histogram.quantile(0.99) <= Self::P99_LIMIT.as_nanos() as u64 && self.stalls <= Self::MOST_STALLS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_stalls_or_a_late_tail_spoil_a_run() {
        let mut l = Lateness::default();
        for _ in 0..1000 {
            l.record(Time(0), Time::from_micros(40));
        }
        assert!(l.good());
        l.record(Time(0), Time::from_millis(6));
        assert!(l.good());
        l.record(Time(0), Time::from_millis(6));
        assert!(!l.good());

        let mut tail = Lateness::default();
        for i in 0..100 {
            tail.record(Time(0), Time::from_micros(if i < 98 { 10 } else { 400 }));
        }
        assert!(!tail.good());
    }
}
