//! A token bucket, which limits the rate towards an address.

use crate::config::Pace;
use core::time::Duration;

/// Bytes that may be sent; below 0 the bucket waits. The last datagram may overdraw it.
#[derive(Debug)]
pub(super) struct Bucket {
    tokens: i64,
    at: Duration,
    /// Nothing is sent before this time, whatever the bucket holds.
    paused: Duration,
    pub(super) pace: Pace,
}

impl Bucket {
    pub(super) fn new(now: Duration, pace: Pace) -> Self {
        Bucket {
            tokens: i64::from(pace.burst),
            at: now,
            paused: Duration::ZERO,
            pace,
        }
    }

    pub(super) fn refill(&mut self, now: Duration) {
        let Some(passed) = now.checked_sub(self.at) else {
            return;
        };
        let nanos = passed.as_nanos().min(1_000_000_000);
        let more = nanos * u128::from(self.pace.rate) / 1_000_000_000;
        let more = i64::try_from(more).unwrap_or(i64::MAX);
        // Keep the time that did not make up a whole byte.
        if more > 0 {
            self.tokens = self.tokens.saturating_add(more).min(i64::from(self.pace.burst));
            self.at = now;
        }
    }

    pub(super) fn pause(&mut self, until: Duration) {
        self.paused = self.paused.max(until);
    }

    pub(super) fn is_open_at(&self, now: Duration) -> bool {
        self.tokens > 0 && self.paused <= now
    }

    pub(super) fn is_full(&self) -> bool {
        self.tokens >= i64::from(self.pace.burst)
    }

    pub(super) fn spend(&mut self, bytes: usize) {
        self.tokens = self
            .tokens
            .saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// When something may be sent.
    pub(super) fn opens(&self) -> Duration {
        if self.tokens > 0 {
            return self.paused;
        }
        let short = (1 - self.tokens) as u128;
        let nanos = (short * 1_000_000_000).div_ceil(u128::from(self.pace.rate.max(1)));
        let at = self.at + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        at.max(self.paused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_then_the_rate() {
        let pace = Pace {
            rate: 1_000_000,
            burst: 10_000,
            ..Pace::default()
        };
        let mut bucket = Bucket::new(Duration::ZERO, pace);
        bucket.spend(12_000);
        assert!(!bucket.is_open_at(Duration::ZERO));
        assert_eq!(bucket.opens(), Duration::from_micros(2_001));
        bucket.refill(Duration::from_micros(2_000));
        assert!(!bucket.is_open_at(Duration::from_micros(2_000)));
        bucket.refill(bucket.opens());
        assert!(bucket.is_open_at(bucket.opens()) && !bucket.is_full());
        bucket.pause(Duration::from_millis(5));
        assert!(!bucket.is_open_at(Duration::from_millis(4)));
        assert_eq!(bucket.opens(), Duration::from_millis(5));
        bucket.refill(Duration::from_secs(100));
        assert!(bucket.is_full());
        bucket.refill(Duration::ZERO);
        assert!(bucket.is_full(), "a clock that goes back changes nothing");
    }
}
