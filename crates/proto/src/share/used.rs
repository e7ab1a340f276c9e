//! How much of the air messages take, both those that this host sends and those that it hears.

use crate::policy::tuning::tuning;
use core::time::Duration;
use stats::Time;

/// The share of recent time that was used: of the air by messages, without those of hosts that this one does not hear.
#[derive(Debug)]
pub(super) struct Used {
    span: Duration,
    share: f64,
    at: Time,
}

impl Used {
    pub(super) fn new() -> Self {
        Self::over(tuning().used_span)
    }

    /// Use that counts less by a factor of e after `span`.
    pub(super) fn over(span: Duration) -> Self {
        Used {
            span,
            share: 0.0,
            at: Time::ZERO,
        }
    }

    /// A datagram that takes this much air was sent or received.
    pub(super) fn add(&mut self, now: Time, air: Duration) {
        self.share = self.share(now) + air.div_duration_f64(self.span);
        self.at = now;
    }

    /// Whether hardly any is left.
    pub(super) fn is_full(&self, now: Time) -> bool {
        self.share(now) > tuning().used_full
    }

    pub(super) fn share(&self, now: Time) -> f64 {
        self.share * (-now.since(self.at).div_duration_f64(self.span)).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_full_while_hardly_any_air_is_left() {
        let air = Duration::from_millis(2);
        let full_after = |each: Duration| {
            let mut used = Used::new();
            let mut now = Time::from_millis(5);
            for n in 0..2_000 {
                if used.is_full(now) {
                    return Some(n);
                }
                used.add(now, air);
                now += each;
            }
            None
        };
        assert_eq!(full_after(air.mul_f64(1.1)), None);
        assert!(full_after(air.mul_f64(1.03)).is_some_and(|n| n > 200));
        let mut used = Used::new();
        used.add(Time::from_millis(5), tuning().used_span);
        assert!(used.is_full(Time::from_millis(5)) && !used.is_full(Time::from_millis(25)));
    }
}
