//! The least or the most of recent values.

use core::time::Duration;
use stats::Time;

/// One value for this span of time, and one for the span before.
#[derive(Debug)]
pub(crate) struct Recent<T> {
    span: Duration,
    choose: fn(T, T) -> T,
    values: [Option<T>; 2],
    since: Time,
}

impl<T: Ord + Copy> Recent<T> {
    pub(crate) fn least(span: Duration) -> Self {
        Self::new(span, T::min)
    }

    pub(crate) fn most(span: Duration) -> Self {
        Self::new(span, T::max)
    }

    fn new(span: Duration, choose: fn(T, T) -> T) -> Self {
        Recent {
            span,
            choose,
            values: [None; 2],
            since: Time::ZERO,
        }
    }

    pub(crate) fn add(&mut self, now: Time, value: T) {
        if now >= self.since + self.span {
            let before = self.values[0].filter(|_| self.counts(now));
            (self.values, self.since) = ([None, before], now);
        }
        self.values[0] = Some(self.values[0].map_or(value, |v| (self.choose)(v, value)));
    }

    /// The value of the span in which the last one was added, and of the span before.
    pub(crate) fn get(&self) -> Option<T> {
        self.values.iter().flatten().copied().reduce(self.choose)
    }

    /// The same, unless it is too old.
    pub(crate) fn at(&self, now: Time) -> Option<T> {
        self.get().filter(|_| self.counts(now))
    }

    fn counts(&self, now: Time) -> bool {
        now < self.since + 2 * self.span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_remembered_for_one_to_two_spans() {
        let span = Duration::from_secs(1);
        let mut most = Recent::most(span);
        let start = Time::from_millis(5000);
        assert_eq!(most.at(start), None);
        most.add(start, 100);
        most.add(start, 10);
        assert_eq!(most.at(start), Some(100));
        let next = start + span;
        most.add(next, 10);
        assert_eq!(most.at(next), Some(100));
        assert_eq!(most.at(next + 2 * span), None, "nothing was added since");
        most.add(next + span, 10);
        assert_eq!(most.at(next + span), Some(10));
        most.add(next + 9 * span, 1);
        assert_eq!(most.get(), Some(1));
    }
}
