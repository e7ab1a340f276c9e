//! Confidence interval of a mean over a few runs.

use serde::{Deserialize, Serialize};

/// Range that contains the true mean with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

impl Interval {
    /// By Student's t over independent runs; `None` for fewer than two, which do not show how far runs differ.
    pub fn of_runs(values: &[f64]) -> Option<Interval> {
        let n = values.len();
        if n < 2 {
            return None;
        }
        let count = n as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        // Beyond the table: the expansion of the quantile around the normal's, within 0.1 %.
        let t = T
            .get(n - 2)
            .copied()
            .unwrap_or_else(|| 1.96 + 2.37 / (count - 1.0));
        let half = t * (squares / (count - 1.0) / count).sqrt();
        Some(Interval {
            low: mean - half,
            high: mean + half,
        })
    }

    /// Whether `value` lies within.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_t_over_runs() {
        let i = Interval::of_runs(&[1.0, 2.0, 3.0]).expect("three runs");
        // 2 ± 4.303 · 1/√3
        assert!(
            (i.low - (2.0 - 2.4843)).abs() < 1e-3 && (i.high - 4.4843).abs() < 1e-3,
            "{i:?}"
        );
        assert!(i.contains(2.0) && !i.contains(4.5));
        assert_eq!(Interval::of_runs(&[1.0]), None);
        assert_eq!(Interval::of_runs(&[]), None);
    }

    #[test]
    fn many_runs_go_on_where_the_table_ends() {
        let half = |n: usize| {
            let values: Vec<f64> = (0..n).map(|i| f64::from(i as u32 % 2)).collect();
            let i = Interval::of_runs(&values).expect("many runs");
            (i.high - i.low) / 2.0
        };
        assert!(half(31) > half(32) && half(32) > half(33));
    }

    #[test]
    fn one_interval_in_twenty_misses() {
        let mut state = 1u64;
        let mut uniform = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let mut hit = 0;
        for _ in 0..4000 {
            let runs: Vec<f64> = (0..5).map(|_| (0..12).map(|_| uniform()).sum::<f64>()).collect();
            hit += u32::from(Interval::of_runs(&runs).is_some_and(|i| i.contains(6.0)));
        }
        assert!((3740..3860).contains(&hit), "{hit} of 4000");
    }
}
