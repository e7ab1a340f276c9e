//! The least of recent values.

use super::tuning::tuning;
use core::time::Duration;
use stats::Time;

/// The least value in this span of time and in the one before.
#[derive(Debug, Default)]
pub(super) struct Least {
    values: [Option<Duration>; 2],
    span: Time,
}

impl Least {
    pub(super) fn add(&mut self, now: Time, value: Duration) {
        if now >= self.span + tuning().path_span {
            (self.values, self.span) = ([None, self.values[0]], now);
        }
        self.values[0] = Some(self.values[0].map_or(value, |v| v.min(value)));
    }

    pub(super) fn get(&self) -> Option<Duration> {
        self.values.iter().flatten().min().copied()
    }
}
