//! Statistics of round trips when some messages were not back at the closing of the log.

use super::raw::Row;
use serde::{Deserialize, Serialize};
use stats::Interval;

/// The messages of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Trips {
    /// Rows that count.
    pub(super) sent: u64,
    /// Of these, not back when the log closed.
    pub(super) censored: u64,
    /// Mean of the returned messages: the more are missing, the less it means.
    pub(super) mean_ms: Option<f64>,
    pub(super) std_ms: Option<f64>,
    /// Median of all sent messages, where missing ones count as later than all others; `None` if it is one of these.
    pub(super) p50_ms: Option<f64>,
    pub(super) p99_ms: Option<f64>,
    /// Mean of the last fifth: grows with a growing queue.
    pub(super) tail_ms: Option<f64>,
}

impl Trips {
    /// From the rows of one or several senders, each without its warm-up. The last fifth is taken of each.
    pub(super) fn of(senders: &[&[Row]]) -> Trips {
        let mut back: Vec<u64> = Vec::new();
        let (mut sent, mut tail) = (0, Vec::new());
        for rows in senders {
            sent += rows.len() as u64;
            back.extend(rows.iter().filter_map(Row::took_ns));
            let last = &rows[rows.len() - rows.len().div_ceil(5)..];
            tail.extend(last.iter().filter_map(Row::took_ns));
        }
        back.sort_unstable();
        let quantile = |q: f64| {
            let place = ((sent as f64 * q).ceil() as usize).max(1) - 1;
            back.get(place).map(|ns| *ns as f64 / 1e6)
        };
        let mean = mean_ms(&back);
        let std_ms = mean.map(|mean| {
            let square = |ns: &u64| (*ns as f64 / 1e6 - mean).powi(2);
            (back.iter().map(square).sum::<f64>() / back.len() as f64).sqrt()
        });
        Trips {
            sent,
            censored: sent - back.len() as u64,
            mean_ms: mean,
            std_ms,
            p50_ms: quantile(0.5),
            p99_ms: quantile(0.99),
            tail_ms: mean_ms(&tail),
        }
    }

    pub(super) fn delivery(&self) -> f64 {
        if self.sent == 0 {
            return 0.0;
        }
        (self.sent - self.censored) as f64 / self.sent as f64
    }
}

fn mean_ms(ns: &[u64]) -> Option<f64> {
    let sum: f64 = ns.iter().map(|ns| *ns as f64).sum();
    (!ns.is_empty()).then(|| sum / ns.len() as f64 / 1e6)
}

/// A number over runs: its mean, and the bounds of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OverRuns {
    pub(super) mean: f64,
    /// `None` for a single run.
    pub(super) ci95: Option<[f64; 2]>,
}

impl OverRuns {
    /// `None` without runs. It estimates the mean of runs, regardless of the distribution within one.
    pub(super) fn of(values: &[f64]) -> Option<OverRuns> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let ci95 = Interval::of_runs(values).map(|i| [i.low, i.high]);
        Some(OverRuns { mean, ci95 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(took_ms: &[Option<u64>]) -> Vec<Row> {
        let row = |(id, took): (usize, &Option<u64>)| Row {
            id: id as u64,
            sent_ns: id as u64 * 1_000,
            recv_ns: took.map(|ms| id as u64 * 1_000 + ms * 1_000_000),
        };
        took_ms.iter().enumerate().map(row).collect()
    }

    #[test]
    fn quantiles_count_what_is_not_back_as_latest() {
        let all: Vec<_> = (1..=100).map(Some).collect();
        let trips = Trips::of(&[&rows(&all)]);
        assert_eq!((trips.sent, trips.censored, trips.delivery()), (100, 0, 1.0));
        assert_eq!(
            (trips.p50_ms, trips.p99_ms, trips.mean_ms),
            (Some(50.0), Some(99.0), Some(50.5))
        );
        assert_eq!(trips.tail_ms, Some(90.5));
        // The quickest are missing: a mean of the rest, and a median that includes the missing ones.
        let some: Vec<_> = (1..=100).map(|ms| (ms > 40).then_some(ms)).collect();
        let trips = Trips::of(&[&rows(&some)]);
        assert_eq!(
            (trips.censored, trips.p50_ms, trips.p99_ms),
            (40, Some(90.0), None)
        );
        assert_eq!(trips.mean_ms, Some(70.5));
    }

    #[test]
    fn nothing_back_and_nothing_sent_are_no_numbers() {
        let none = Trips::of(&[&rows(&[None, None])]);
        assert_eq!(
            (none.mean_ms, none.p50_ms, none.tail_ms, none.delivery()),
            (None, None, None, 0.0)
        );
        assert_eq!(Trips::of(&[]).delivery(), 0.0);
        assert_eq!(Trips::of(&[&[]]).p50_ms, None);
    }

    #[test]
    fn intervals_are_over_runs() {
        assert_eq!(OverRuns::of(&[]), None);
        assert_eq!(
            OverRuns::of(&[3.0]),
            Some(OverRuns {
                mean: 3.0,
                ci95: None
            })
        );
        let three = OverRuns::of(&[1.0, 2.0, 3.0]).expect("runs");
        let [low, high] = three.ci95.expect("an interval");
        assert!((low - (2.0 - 4.303 / 3f64.sqrt())).abs() < 1e-9 && (high + low - 4.0).abs() < 1e-9);
    }
}
