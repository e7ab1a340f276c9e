//! Rates over the recent past, for live views.

use crate::{Histogram, Time};
use core::time::Duration;
use std::collections::VecDeque;

/// Arrivals in the last `span`, at most `limit` of them: what `topic hz` and `topic bw` show.
#[derive(Clone, Debug)]
pub struct Window {
    span: Duration,
    limit: usize,
    arrivals: VecDeque<(Time, u64)>,
}

impl Window {
    /// A window over `span`, which keeps at most `limit` arrivals (at least 2).
    pub fn new(span: Duration, limit: usize) -> Self {
        Window {
            span,
            limit: limit.max(2),
            arrivals: VecDeque::new(),
        }
    }

    /// Counts one arrival of `bytes` bytes.
    pub fn record(&mut self, now: Time, bytes: u64) {
        if self.arrivals.len() == self.limit {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back((now, bytes));
    }

    /// The rates at `now`; arrivals older than the span are dropped.
    pub fn rates(&mut self, now: Time) -> Rates {
        while self
            .arrivals
            .front()
            .is_some_and(|(t, _)| now.since(*t) > self.span)
        {
            self.arrivals.pop_front();
        }
        let mut period = Histogram::new();
        for (a, b) in self.arrivals.iter().zip(self.arrivals.iter().skip(1)) {
            period.record_duration(b.0.since(a.0));
        }
        let bytes: u64 = self.arrivals.iter().map(|a| a.1).sum();
        // n arrivals span n − 1 periods: the first one's bytes belong to the time before the window.
        let first = self.arrivals.front().map_or(0, |a| a.1);
        let elapsed = match (self.arrivals.front(), self.arrivals.back()) {
            (Some(a), Some(b)) => b.0.since(a.0).as_secs_f64(),
            _ => 0.0,
        };
        Rates {
            messages: self.arrivals.len() as u64,
            hz: if elapsed > 0.0 {
                (self.arrivals.len() - 1) as f64 / elapsed
            } else {
                0.0
            },
            bytes_s: if elapsed > 0.0 {
                (bytes - first) as f64 / elapsed
            } else {
                0.0
            },
            bytes_mean: if self.arrivals.is_empty() {
                0.0
            } else {
                bytes as f64 / self.arrivals.len() as f64
            },
            bytes_min: self.arrivals.iter().map(|a| a.1).min().unwrap_or(0),
            bytes_max: self.arrivals.iter().map(|a| a.1).max().unwrap_or(0),
            period,
        }
    }
}

/// Contents of a [`Window`] at one instant.
#[derive(Clone, Debug)]
pub struct Rates {
    /// Arrivals in the window.
    pub messages: u64,
    /// Messages per second.
    pub hz: f64,
    /// Bytes per second.
    pub bytes_s: f64,
    /// Mean size in bytes.
    pub bytes_mean: f64,
    /// Smallest size in bytes.
    pub bytes_min: u64,
    /// Largest size in bytes.
    pub bytes_max: u64,
    /// Times between arrivals, in nanoseconds.
    pub period: Histogram,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_of_a_steady_flow_and_silence_after_it() {
        let mut w = Window::new(Duration::from_secs(2), 1000);
        for i in 0..100u64 {
            w.record(Time::from_millis(i * 20), 1000);
        }
        let r = w.rates(Time::from_millis(1980));
        assert!(
            (r.hz - 50.0).abs() < 1e-9 && (r.bytes_s - 50_000.0).abs() < 1e-6,
            "{r:?}"
        );
        assert_eq!(w.rates(Time::from_millis(60_000)).messages, 0);
    }

    #[test]
    fn keeps_at_most_its_limit() {
        let mut w = Window::new(Duration::from_secs(3600), 10);
        for i in 0..1000 {
            w.record(Time(i), 1);
        }
        assert_eq!(w.rates(Time(1000)).messages, 10);
    }
}
