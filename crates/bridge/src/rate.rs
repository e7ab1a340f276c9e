//! A limit on messages per second.

use stats::Time;
use std::time::Duration;

/// Passes a given number of messages per second. A source that jitters by up to half a period keeps its rate.
#[derive(Debug)]
pub struct Ticker {
    period: Duration,
    next: Option<Time>,
}

impl Ticker {
    /// Creates a limit of `hz` per second, which is more than 0.
    pub fn new(hz: f64) -> Ticker {
        Ticker {
            // From 1 MHz to once in eleven days.
            period: Duration::from_secs_f64((1.0 / hz).clamp(0.0, 1e6)),
            next: None,
        }
    }

    /// Returns whether one may pass at `now`, and counts it if so.
    pub fn due(&mut self, now: Time) -> bool {
        let next = self.next.unwrap_or(now);
        if now + self.period / 2 < next {
            return false;
        }
        self.next = Some(next.max(now) + self.period);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_holds_whatever_comes() {
        let mut ticker = Ticker::new(10.0);
        let start = Time(1);
        let passed = (0..1000)
            .filter(|i| ticker.due(start + Duration::from_millis(10 * i)))
            .count();
        assert!((100..=101).contains(&passed), "{passed}");
    }
}
