//! Distributions in bounded memory.

use core::time::Duration;

/// Sub-buckets per octave, as a power of two: values in one bucket differ by less than 0.8 %.
const SUB_BITS: u32 = 7;
const SUB: u64 = 1 << SUB_BITS;

/// A distribution of durations or other non-negative integers, in log-linear buckets.
///
/// Mean, standard deviation, minimum and maximum are exact; quantiles are exact below 256 and within
/// 0.8 % above. Memory is bounded (at most 58 KiB) and grows only as far as the largest value needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    buckets: Vec<u64>,
    moments: Moments,
    min: u64,
    max: u64,
}

impl Histogram {
    /// An empty distribution.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one value.
    pub fn record(&mut self, value: u64) {
        let i = bucket(value);
        if self.buckets.len() <= i {
            self.buckets.resize(i + 1, 0);
        }
        self.buckets[i] += 1;
        self.min = if self.is_empty() {
            value
        } else {
            self.min.min(value)
        };
        self.max = self.max.max(value);
        self.moments.record(value as f64);
    }

    /// Counts one duration, in nanoseconds.
    pub fn record_duration(&mut self, d: Duration) {
        self.record(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Number of values counted.
    pub fn count(&self) -> u64 {
        self.moments.count()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The arithmetic mean; 0 if empty.
    pub fn mean(&self) -> f64 {
        self.moments.mean()
    }

    /// The standard deviation of the population; 0 if empty.
    pub fn std(&self) -> f64 {
        self.moments.std()
    }

    /// The smallest value; 0 if empty.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// The largest value; 0 if empty.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The value at or below which the share `q` (0 to 1) of all values lies (nearest rank); 0 if empty.
    pub fn quantile(&self, q: f64) -> u64 {
        let n = self.count();
        if n == 0 {
            return 0;
        }
        let rank = ((q.clamp(0.0, 1.0) * n as f64).ceil() as u64).clamp(1, n);
        let mut seen = 0;
        for (i, c) in self.buckets.iter().enumerate() {
            seen += c;
            if seen >= rank {
                return middle(i).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        if other.is_empty() {
            return;
        }
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (a, b) in self.buckets.iter_mut().zip(&other.buckets) {
            *a += b;
        }
        self.min = if self.is_empty() {
            other.min
        } else {
            self.min.min(other.min)
        };
        self.max = self.max.max(other.max);
        self.moments.merge(&other.moments);
    }

    /// The cumulative distribution: pairs of (value, share of values at or below it), ascending.
    pub fn cumulative(&self) -> Vec<(u64, f64)> {
        let n = self.count().max(1) as f64;
        let mut seen = 0u64;
        let mut points = Vec::new();
        for (i, c) in self.buckets.iter().enumerate().filter(|(_, c)| **c > 0) {
            seen += c;
            points.push((middle(i).clamp(self.min, self.max), seen as f64 / n));
        }
        points
    }
}

/// Count, mean and standard deviation, updated one value at a time (Welford 1962).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    count: u64,
    mean: f64,
    m2: f64,
}

impl Moments {
    /// Counts one value.
    pub fn record(&mut self, value: f64) {
        self.count += 1;
        let d = value - self.mean;
        self.mean += d / self.count as f64;
        self.m2 += d * (value - self.mean);
    }

    /// Number of values counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The arithmetic mean; 0 if empty.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The standard deviation of the population; 0 if empty.
    pub fn std(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            (self.m2 / self.count as f64).max(0.0).sqrt()
        }
    }

    /// Adds all values of `other` (Chan et al. 1979).
    pub fn merge(&mut self, other: &Moments) {
        let n = self.count + other.count;
        if n == 0 {
            return;
        }
        let d = other.mean - self.mean;
        self.mean += d * other.count as f64 / n as f64;
        self.m2 += other.m2 + d * d * self.count as f64 * other.count as f64 / n as f64;
        self.count = n;
    }
}

fn bucket(v: u64) -> usize {
    if v < 2 * SUB {
        return v as usize;
    }
    let shift = 63 - v.leading_zeros() - SUB_BITS;
    (u64::from(shift) * SUB + (v >> shift)) as usize
}

fn middle(i: usize) -> u64 {
    let i = i as u64;
    if i < 2 * SUB {
        return i;
    }
    let shift = i / SUB - 1;
    let low = (SUB + i % SUB) << shift;
    low + ((1u64 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_value_falls_into_the_bucket_that_stands_for_it() {
        for shift in 0..64 {
            for d in [0i64, -1, 1, 12345] {
                let v = (1u64 << shift).wrapping_add_signed(d);
                let m = middle(bucket(v));
                let error = m.abs_diff(v) as f64 / (v.max(1)) as f64;
                assert!(error < 0.008, "{v} stands at {m}");
            }
        }
        assert!(bucket(u64::MAX) < 58 * 128 + 128);
    }

    proptest! {
        #[test]
        fn agrees_with_the_sorted_list(mut values in prop::collection::vec(0u64..10_000_000_000, 1..300), q in 0.0f64..=1.0) {
            let mut h = Histogram::new();
            let mut halves = (Histogram::new(), Histogram::new());
            for (i, v) in values.iter().enumerate() {
                h.record(*v);
                if i % 2 == 0 { halves.0.record(*v) } else { halves.1.record(*v) }
            }
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1];
            prop_assert!(h.quantile(q).abs_diff(exact) as f64 <= 0.008 * exact as f64 + 1.0);
            prop_assert_eq!(h.max(), *values.last().expect("not empty"));
            prop_assert_eq!(h.min(), values[0]);
            let mean = values.iter().map(|v| *v as f64).sum::<f64>() / values.len() as f64;
            prop_assert!((h.mean() - mean).abs() <= 1e-6 * mean.max(1.0));
            halves.0.merge(&halves.1);
            prop_assert_eq!(halves.0.quantile(q), h.quantile(q));
            prop_assert!((halves.0.std() - h.std()).abs() <= 1e-6 * h.std().max(1.0));
        }
    }
}
