//! The thesis' limit: a single number.

use super::Knee;
use super::setting::{Params, Sample};
use serde::Serialize;
use stats::Cell;
use std::collections::BTreeMap;

/// Most contradicting cells that are listed.
const MOST_NAMED: usize = 8;

/// CSLV = N · f · S (`papers/ros-scalability.txt`, section 4.1); N is the number of senders.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cslv {
    /// In bytes a second, each way.
    pub bytes_per_s: f64,
}

impl Cslv {
    /// The single limit that is nearest to all knees, by their ratios.
    pub fn of(knees: &[Knee]) -> Option<Cslv> {
        let logs: Vec<f64> = knees
            .iter()
            .map(|k| (k.rate() * k.params.bytes.max(1) as f64).ln())
            .collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        (!logs.is_empty() && mean.is_finite()).then(|| Cslv {
            bytes_per_s: mean.exp(),
        })
    }

    /// Predicted knee in round trips a second.
    pub fn knee(&self, params: &Params) -> f64 {
        self.bytes_per_s / params.bytes.max(1) as f64
    }
}

/// Interval that contains CSLV according to the cells of one platform (system, medium, hosts, share of the processors,
/// topology): the limit below which they work and above which they do not.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// The platform.
    pub params: Params,
    /// Result.
    pub metrics: WindowMetrics,
}

/// Output format.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WindowMetrics {
    /// CSLV in bytes a second each way: the geometric middle of its window, or the known end.
    pub bytes_per_s: f64,
    /// The largest N · f · S below the best-fitting limit; none if no cell works.
    pub low_bytes_per_s: Option<f64>,
    /// The smallest above it; none if every cell works.
    pub high_bytes_per_s: Option<f64>,
    /// Number of cells.
    pub cells: usize,
    /// Number of cells that work above the window, or fail below it.
    pub contradicting: usize,
    /// Some of the contradicting cells.
    pub against: Vec<Params>,
}

impl Window {
    /// The windows of all platforms in these samples; none for a platform whose cells have no rate.
    pub fn all(samples: &[Sample]) -> Vec<Window> {
        let mut platforms = BTreeMap::<String, Vec<&Sample>>::new();
        for sample in samples.iter().filter(|s| volume(s) > 0.0) {
            let key = serde_json::to_string(&platform(&sample.params)).unwrap_or_default();
            platforms.entry(key).or_default().push(sample);
        }
        platforms
            .into_values()
            .filter_map(|cells| Window::of(&cells))
            .collect()
    }

    fn of(cells: &[&Sample]) -> Option<Window> {
        let mut volumes: Vec<f64> = cells.iter().map(|s| volume(s)).collect();
        volumes.sort_by(f64::total_cmp);
        volumes.dedup();
        // A limit lies between two volumes, or beyond all: it is identified by the largest volume below it.
        let places = std::iter::once(None).chain(volumes.iter().copied().map(Some));
        let wrong = |below: Option<f64>| {
            let is_below = |s: &Sample| below.is_some_and(|b| volume(s) <= b);
            cells.iter().filter(|s| s.sustained != is_below(s)).count()
        };
        let mut places: Vec<(Option<f64>, usize)> = places.map(|below| (below, wrong(below))).collect();
        // If some cells work and some do not, the limit lies between two of them, however many contradict it.
        let works = cells.iter().filter(|s| s.sustained).count();
        if works > 0 && works < cells.len() && volumes.len() > 1 {
            places = places[1..places.len() - 1].to_vec();
        }
        let least = places.iter().map(|(_, wrong)| *wrong).min()?;
        let mut best = places
            .iter()
            .filter(|(_, wrong)| *wrong == least)
            .map(|(below, _)| *below);
        let low = best.next()?;
        let last = best.next_back().unwrap_or(low);
        let high = volumes.iter().copied().find(|v| last.is_none_or(|l| *v > l));
        let against = cells.iter().filter(|s| match s.sustained {
            true => high.is_some_and(|h| volume(s) >= h),
            false => low.is_some_and(|l| volume(s) <= l),
        });
        let against: Vec<&Params> = against.map(|s| &s.params).collect();
        let value = match (low, high) {
            (Some(low), Some(high)) => (low * high).sqrt(),
            (one, other) => one.or(other)?,
        };
        Some(Window {
            params: platform(&cells.first()?.params),
            metrics: WindowMetrics {
                bytes_per_s: value,
                low_bytes_per_s: low,
                high_bytes_per_s: high,
                cells: cells.len(),
                contradicting: against.len(),
                against: against.into_iter().take(MOST_NAMED).cloned().collect(),
            },
        })
    }

    pub(crate) fn cell(&self, system: &str) -> Cell<Params, WindowMetrics> {
        Cell {
            system: system.to_owned(),
            params: self.params.clone(),
            metrics: self.metrics.clone(),
        }
    }
}

/// N · f · S, in bytes a second.
fn volume(sample: &Sample) -> f64 {
    sample.params.rate() * sample.params.bytes as f64
}

/// The settings that share one CSLV.
fn platform(of: &Params) -> Params {
    Params {
        experiment: of.experiment.clone(),
        what: "cslv".into(),
        hosts: of.hosts,
        machines: of.machines,
        medium: of.medium.clone(),
        cpu_share: of.cpu_share,
        topology: of.topology.clone(),
        ..Params::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(senders: u32, hz: f64, sustained: bool) -> Sample {
        let mut cell = Sample::of(senders, hz, sustained);
        (cell.params.bytes, cell.params.medium) = (1000, "wifi".into());
        cell
    }

    #[test]
    fn the_window_lies_between_what_works_and_what_does_not() {
        // As in the thesis' experiment 7: 128 senders at 1 Hz break for another reason.
        let mut cells = vec![cell(128, 1.0, false)];
        for senders in [1, 2, 4, 8, 16, 32, 64] {
            for hz in [1.0, 10.0, 20.0, 100.0, 200.0] {
                cells.push(cell(senders, hz, f64::from(senders) * hz <= 200.0));
            }
        }
        let windows = Window::all(&cells);
        let [Window { params, metrics: m }] = &windows[..] else {
            panic!("{windows:?}");
        };
        assert_eq!((params.what.as_str(), params.medium.as_str()), ("cslv", "wifi"));
        assert_eq!(
            (m.low_bytes_per_s, m.high_bytes_per_s),
            (Some(200e3), Some(320e3))
        );
        assert!((m.bytes_per_s - 253e3).abs() < 1e3, "{m:?}");
        assert_eq!((m.cells, m.contradicting), (36, 1));
        assert_eq!((m.against[0].senders, m.against[0].hz), (128, 1.0));
    }

    #[test]
    fn unmeasured_bounds_are_left_empty() {
        let window = |cells: &[Sample]| Window::all(cells).first().map(|w| w.metrics.clone());
        let all = window(&[cell(1, 10.0, true), cell(1, 20.0, true)]).expect("a window");
        assert_eq!((all.low_bytes_per_s, all.high_bytes_per_s), (Some(20e3), None));
        let none = window(&[cell(1, 10.0, false), cell(1, 20.0, false)]).expect("a window");
        assert_eq!((none.low_bytes_per_s, none.high_bytes_per_s), (None, Some(10e3)));
        assert_eq!((none.bytes_per_s, none.contradicting), (10e3, 0));
        // A cell that fails early, although larger ones work, does not hide the limit.
        let odd = [
            cell(1, 2.0, false),
            cell(1, 10.0, true),
            cell(1, 20.0, false),
            cell(1, 40.0, false),
        ];
        let odd = window(&odd).expect("a window");
        let ends = (odd.low_bytes_per_s, odd.high_bytes_per_s, odd.contradicting);
        assert_eq!(ends, (Some(10e3), Some(20e3), 1));
        assert_eq!(window(&[]), None);
        assert_eq!(window(&[cell(1, 0.0, true)]), None);
    }
}
