//! Measures delivery, delay and jitter of one topic's messages.

use crate::{Drops, Histogram, Moments, Time};
use serde::{Deserialize, Serialize};

/// Measures one topic at its receiving end.
///
/// - **period**: time between two arrivals (Pound's J).
/// - **added jitter**: how much the path changed the time between two messages, (arrival₂ − arrival₁) − (stamp₂ −
///   stamp₁). Unlike the period's deviation it is zero for a source that is itself irregular.
/// - **delay**: arrival − stamp. Both must be of one clock; an arrival before its stamp counts as 0 and is counted in
///   [`Flow::negative_delays`].
#[derive(Clone, Debug, Default)]
pub struct Flow {
    last: Option<(Time, Time)>,
    first_arrival: Option<Time>,
    received: u64,
    bytes: u64,
    period: Moments,
    jitter: Moments,
    jitter_magnitude: Histogram,
    delay: Histogram,
    negative_delays: u64,
}

impl Flow {
    /// Nothing received yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one message of `bytes` bytes, stamped by its source at `stamp`, that arrived at `arrival`.
    pub fn received(&mut self, stamp: Time, arrival: Time, bytes: u64) {
        if let Some((last_stamp, last_arrival)) = self.last {
            let gap = arrival.signed_since(last_arrival);
            let added = gap.saturating_sub(stamp.signed_since(last_stamp));
            self.period.record(gap as f64);
            self.jitter.record(added as f64);
            self.jitter_magnitude.record(added.unsigned_abs());
        }
        if arrival < stamp {
            self.negative_delays += 1;
        }
        self.delay.record_duration(arrival.since(stamp));
        self.first_arrival.get_or_insert(arrival);
        self.last = Some((stamp, arrival));
        self.received += 1;
        self.bytes += bytes;
    }

    /// Messages received.
    pub fn count(&self) -> u64 {
        self.received
    }

    /// Bytes received.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Delays in nanoseconds.
    pub fn delay(&self) -> &Histogram {
        &self.delay
    }

    /// Messages that arrived before they were stamped: the two clocks differ by more than the delay.
    pub fn negative_delays(&self) -> u64 {
        self.negative_delays
    }

    /// Mean arrival rate in messages per second; 0 before the second message.
    pub fn rate_hz(&self) -> f64 {
        let mean = self.period.mean();
        if mean > 0.0 { 1e9 / mean } else { 0.0 }
    }

    /// The numbers of this flow, given that the source sent `sent` messages and lost those in `drops`.
    pub fn metrics(&self, sent: u64, drops: &Drops) -> FlowMetrics {
        let elapsed = match (self.first_arrival, self.last) {
            (Some(first), Some((_, last))) => last.since(first).as_secs_f64(),
            _ => 0.0,
        };
        FlowMetrics {
            sent,
            received: self.received,
            delivery: if sent == 0 {
                0.0
            } else {
                self.received as f64 / sent as f64
            },
            period_ms: Spread {
                mean: ms(self.period.mean()),
                std: ms(self.period.std()),
            },
            added_jitter_ms: Jitter {
                std: ms(self.jitter.std()),
                p99: ms(self.jitter_magnitude.quantile(0.99) as f64),
            },
            delay_ms: Delay {
                mean: ms(self.delay.mean()),
                std: ms(self.delay.std()),
                p50: ms(self.delay.quantile(0.5) as f64),
                p99: ms(self.delay.quantile(0.99) as f64),
                max: ms(self.delay.max() as f64),
            },
            mbit_s: if elapsed > 0.0 {
                self.bytes as f64 * 8.0 / elapsed / 1e6
            } else {
                0.0
            },
            drops: drops.clone(),
        }
    }
}

/// The numbers of one topic, as every table shows them and as they are written to JSON. Units are in the names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowMetrics {
    /// Messages that the source published.
    pub sent: u64,
    /// Messages that arrived.
    pub received: u64,
    /// `received / sent`; 0 if nothing was sent.
    pub delivery: f64,
    /// Time between two arrivals.
    pub period_ms: Spread,
    /// Time that the path added between two messages: deviation, and 99 % quantile of its magnitude.
    pub added_jitter_ms: Jitter,
    /// Arrival minus the source's stamp.
    pub delay_ms: Delay,
    /// Payload received, over the time between first and last arrival.
    pub mbit_s: f64,
    /// Losses by reason.
    pub drops: Drops,
}

/// Mean and standard deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation.
    pub std: f64,
}

/// Deviation and tail of a signed quantity around zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Jitter {
    /// Standard deviation.
    pub std: f64,
    /// 99 % quantile of the magnitude.
    pub p99: f64,
}

/// Summary of a delay distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Delay {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation.
    pub std: f64,
    /// Median.
    pub p50: f64,
    /// 99 % quantile.
    pub p99: f64,
    /// Maximum.
    pub max: f64,
}

fn ms(ns: f64) -> f64 {
    // Whole nanoseconds: more digits would be noise.
    ns.round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DropReason;

    #[test]
    fn an_irregular_source_over_a_constant_way_has_no_added_jitter() {
        let mut f = Flow::new();
        for t in [0u64, 10, 35, 36, 90] {
            f.received(Time::from_millis(t), Time::from_millis(t + 7), 100);
        }
        let m = f.metrics(6, &Drops::default());
        assert_eq!((m.sent, m.received), (6, 5));
        assert_eq!(m.added_jitter_ms, Jitter { std: 0.0, p99: 0.0 });
        assert_eq!(m.period_ms.mean, 22.5);
        assert!(m.period_ms.std > 10.0);
        assert!((m.delay_ms.p99 - 7.0).abs() < 0.06 && m.delay_ms.max == 7.0);
        assert!((m.mbit_s - 500.0 * 8.0 / 0.09 / 1e6).abs() < 1e-9);
    }

    #[test]
    fn a_wandering_way_shows_as_added_jitter() {
        let mut f = Flow::new();
        for (t, d) in [(0u64, 5u64), (20, 15), (40, 5), (60, 15)] {
            f.received(Time::from_millis(t), Time::from_millis(t + d), 1);
        }
        let mut drops = Drops::default();
        drops.add(DropReason::Replaced, 3);
        let m = f.metrics(7, &drops);
        assert!((m.added_jitter_ms.p99 - 10.0).abs() < 0.1, "{m:?}");
        assert!((m.added_jitter_ms.std - 9.428).abs() < 0.001, "{m:?}");
        assert_eq!(m.drops.total(), 3);
    }

    #[test]
    fn disagreeing_clocks_are_counted() {
        let mut f = Flow::new();
        f.received(Time::from_millis(10), Time::from_millis(9), 1);
        assert_eq!((f.negative_delays(), f.delay().max()), (1, 0));
    }
}
