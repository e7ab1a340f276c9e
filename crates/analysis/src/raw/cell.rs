//! Metrics of one cell's runs.

use super::Run;
use crate::model::SUSTAINED;
use serde::Serialize;
use stats::{Histogram, Interval, Moments};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Most points of delay by message number that are kept for figures.
const MOST_POINTS: usize = 400;

/// Metrics of one cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellMetrics {
    /// Share of messages received, as the mean over the runs.
    pub delivery: f64,
    /// Round trips.
    pub rtt_ms: Rtt,
    /// Whether messages are missing, so that the mean lacks the longest round trips.
    pub censored: bool,
    /// The mean if the missing messages had arrived when the log closed: a lower bound of the true mean.
    pub mean_at_least_ms: f64,
    /// Delivery of 0.999 or more at a mean of 100 ms or less.
    pub sustained: bool,
    /// 95 % intervals by Student's t over the runs; absent with fewer than two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Intervals>,
    /// Rank among the cells of one medium and system, from 1; equal cells share a rank.
    pub rank: u32,
    /// Number of expected messages.
    pub expected: u64,
    /// Number of received messages.
    pub received: u64,
    /// Distribution of the received messages, for box plots.
    pub spread_ms: Spread,
    /// Means over senders and runs by message number: pairs of number and ms, thinned out evenly.
    pub by_number_ms: Vec<[f64; 2]>,
}

/// Round trips in ms, each as the mean over the runs, like the intervals. Quantiles refer to all messages: none if
/// fewer arrived in one of the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rtt {
    /// Mean of received messages, over the runs with any; none if no message was received.
    pub mean: Option<f64>,
    /// Time within which half of all messages arrived.
    pub p50: Option<f64>,
    /// Time within which 99 % of all messages arrived.
    pub p99: Option<f64>,
}

/// 95 % confidence intervals, clipped to the possible range: no delay is negative, and no delivery above 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Intervals {
    /// Interval of the delivery.
    pub delivery: Interval,
    /// Interval of the mean round trip in ms, if all runs have one.
    pub mean_ms: Option<Interval>,
    /// Interval of the median.
    pub p50_ms: Option<Interval>,
    /// Interval of the 99 % quantile.
    pub p99_ms: Option<Interval>,
}

/// Summary of a distribution, in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Least.
    pub min: f64,
    /// Quartile.
    pub p25: f64,
    /// Median.
    pub p50: f64,
    /// Quartile.
    pub p75: f64,
    /// Largest.
    pub max: f64,
    /// Standard deviation.
    pub std: f64,
}

impl CellMetrics {
    pub(super) fn of(runs: &BTreeMap<String, Run>) -> CellMetrics {
        let mut all = Histogram::new();
        let (mut expected, mut received) = (0, 0);
        for run in runs.values() {
            all.merge(&run.rtt);
            expected += run.expected();
            received += run.received;
        }
        let over_runs = |value: &dyn Fn(&Run) -> f64| {
            let mut mean = Moments::default();
            runs.values().for_each(|r| mean.record(value(r)));
            mean.mean()
        };
        let delivery = over_runs(&Run::delivery);
        let mut mean = Moments::default();
        runs.values()
            .filter_map(Run::mean_ms)
            .for_each(|ms| mean.record(ms));
        let mean = (mean.count() > 0).then(|| mean.mean());
        let quantile = |q: f64| {
            let all: Option<Vec<f64>> = runs.values().map(|r| r.quantile_ms(q)).collect();
            all.filter(|v| !v.is_empty())
                .map(|v| v.iter().sum::<f64>() / v.len() as f64)
        };
        let ms = |q: f64| all.quantile(q) as f64 / 1e6;
        CellMetrics {
            delivery,
            rtt_ms: Rtt {
                mean,
                p50: quantile(0.5),
                p99: quantile(0.99),
            },
            censored: received < expected,
            mean_at_least_ms: over_runs(&Run::mean_at_least_ms),
            sustained: SUSTAINED.holds(delivery, mean),
            intervals: intervals(runs),
            rank: 0,
            expected,
            received,
            spread_ms: Spread {
                min: all.min() as f64 / 1e6,
                p25: ms(0.25),
                p50: ms(0.5),
                p75: ms(0.75),
                max: all.max() as f64 / 1e6,
                std: all.std() / 1e6,
            },
            by_number_ms: by_number(runs),
        }
    }

    /// Better cells first: those that sustain, then by delivery. Means decide only between cells without missing
    /// messages, since a mean without its longest round trips says nothing.
    pub(super) fn order(&self, other: &CellMetrics) -> Ordering {
        let complete = |m: &CellMetrics| !m.censored;
        let mean = |m: &CellMetrics| m.rtt_ms.mean.unwrap_or(f64::INFINITY);
        let first = (other.sustained && complete(other)).cmp(&(self.sustained && complete(self)));
        let by_delivery = other.delivery.total_cmp(&self.delivery);
        let by_mean = if complete(self) && complete(other) {
            mean(self).total_cmp(&mean(other))
        } else {
            Ordering::Equal
        };
        first
            .then(other.sustained.cmp(&self.sustained))
            .then(by_delivery)
            .then(by_mean)
    }
}

fn intervals(runs: &BTreeMap<String, Run>) -> Option<Intervals> {
    // Student's t ignores bounds: few runs that differ much give an interval beyond the possible range.
    let of = |value: &dyn Fn(&Run) -> Option<f64>, most: f64| {
        let values: Option<Vec<f64>> = runs.values().map(value).collect();
        let interval = Interval::of_runs(&values?)?;
        Some(Interval {
            low: interval.low.clamp(0.0, most),
            high: interval.high.clamp(0.0, most),
        })
    };
    let of_ms = |value: &dyn Fn(&Run) -> Option<f64>| of(value, f64::INFINITY);
    Some(Intervals {
        delivery: of(&|r| Some(r.delivery()), 1.0)?,
        mean_ms: of_ms(&Run::mean_ms),
        p50_ms: of_ms(&|r| r.quantile_ms(0.5)),
        p99_ms: of_ms(&|r| r.quantile_ms(0.99)),
    })
}

fn by_number(runs: &BTreeMap<String, Run>) -> Vec<[f64; 2]> {
    let messages = runs.values().map(|r| r.by_number.len()).max().unwrap_or(0);
    let step = messages.div_ceil(MOST_POINTS).max(1);
    let mut points = Vec::new();
    for number in (0..messages).step_by(step) {
        let mut mean = Moments::default();
        for m in runs.values().filter_map(|r| r.by_number.get(number)) {
            mean.merge(m);
        }
        if mean.count() > 0 {
            points.push([number as f64, mean.mean()]);
        }
    }
    points
}
