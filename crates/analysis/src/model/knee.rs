//! The knees at which sweeps break.

use super::{Params, Sample};
use serde::Serialize;
use stats::Cell;
use std::collections::BTreeMap;

/// The quantity that a sweep raises until it breaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Varied {
    /// The frequency.
    #[default]
    Hz,
    /// The number of nodes, at one frequency.
    Nodes,
}

/// The point at which a sweep breaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Knee {
    /// The setting at the knee, between the measured ones; models are fitted to it.
    pub params: Params,
    /// The measured settings on both sides of it, if known.
    pub ends: Option<[End; 2]>,
    /// The quantity that was raised.
    pub varied: Varied,
    /// The highest rate that works, in round trips a second.
    pub sustained: f64,
    /// The lowest rate above it that does not work.
    pub broken: f64,
    /// Processor time per round trip there, if measured.
    pub cpu_us: Option<f64>,
}

/// A measured setting on one side of a knee.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct End {
    /// Number of nodes.
    pub nodes: u32,
    /// Number of senders.
    pub senders: u32,
    /// Messages a second of each sender.
    pub hz: f64,
}

/// Output format.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KneeMetrics {
    /// Rate at the geometric middle of the two.
    pub messages_per_s: f64,
    /// The same in payload.
    pub bytes_per_s: f64,
    /// The highest rate that works.
    pub sustained_per_s: f64,
    /// The lowest rate above it that does not work.
    pub broken_per_s: f64,
    /// The quantity that was raised.
    pub varied: Varied,
    /// The highest setting that works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub works: Option<End>,
    /// The lowest setting above it that does not work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breaks: Option<End>,
}

impl Knee {
    /// Rate in round trips a second.
    pub fn rate(&self) -> f64 {
        (self.sustained * self.broken).sqrt()
    }

    /// Error of a prediction, as a share of the measured rate: 0 between the rates that work and that do not, since
    /// nothing was measured there.
    pub fn error(&self, predicted: f64) -> f64 {
        let nearest = predicted.clamp(self.sustained.min(self.broken), self.broken.max(self.sustained));
        (predicted / nearest - 1.0).abs()
    }

    /// The highest setting that works, if known.
    pub(super) fn measured(&self) -> Params {
        let mut params = self.params.clone();
        if let Some([works, _]) = self.ends {
            (params.nodes, params.senders, params.hz) = (works.nodes, works.senders, works.hz);
        }
        params
    }

    /// Output format.
    pub(crate) fn cell(&self, system: &str) -> Cell<Params, KneeMetrics> {
        let mut params = self.measured();
        params.what = "knee".into();
        let [works, breaks] = self.ends.map_or([None; 2], |ends| ends.map(Some));
        Cell {
            system: system.to_owned(),
            metrics: KneeMetrics {
                messages_per_s: self.rate(),
                bytes_per_s: self.rate() * params.bytes as f64,
                sustained_per_s: self.sustained,
                broken_per_s: self.broken,
                varied: self.varied,
                works,
                breaks,
            },
            params,
        }
    }
}

/// The knees of all sweeps that have one: over the frequency, and over the number of nodes.
///
/// A sweep counts up to the first cell that does not work; a later one that works is chance.
pub fn knees(samples: &[Sample]) -> Vec<Knee> {
    let by_hz = sweeps(samples, |p| {
        p.hz = 0.0;
    });
    let by_nodes = sweeps(samples, |p| {
        (p.nodes, p.senders) = (0, 0);
    });
    let hz = by_hz.iter().filter_map(|s| knee(s, Varied::Hz));
    let nodes = by_nodes.iter().filter_map(|s| knee(s, Varied::Nodes));
    hz.chain(nodes).collect()
}

fn sweeps<'a>(samples: &'a [Sample], forget: impl Fn(&mut Params)) -> Vec<Vec<&'a Sample>> {
    let mut sweeps = BTreeMap::<String, Vec<&'a Sample>>::new();
    for sample in samples {
        let mut params = sample.params.clone();
        // Properties of a single run are not part of the setting.
        (params.runs, params.messages) = (0, 0);
        forget(&mut params);
        let key = serde_json::to_string(&params).unwrap_or_default();
        sweeps.entry(key).or_default().push(sample);
    }
    sweeps.into_values().collect()
}

fn knee(sweep: &[&Sample], varied: Varied) -> Option<Knee> {
    let mut sweep = sweep.to_vec();
    sweep.sort_by(|a, b| a.params.rate().total_cmp(&b.params.rate()));
    let broken = sweep.iter().position(|s| !s.sustained)?;
    let (last, first) = (sweep.get(broken.checked_sub(1)?)?, sweep[broken]);
    if last.params.rate() <= 0.0 {
        return None;
    }
    let end = |s: &Sample| End {
        nodes: s.params.nodes,
        senders: s.params.senders,
        hz: s.params.hz,
    };
    let rate = (last.params.rate() * first.params.rate()).sqrt();
    Some(Knee {
        params: grown(&last.params, varied, rate),
        ends: Some([end(last), end(first)]),
        varied,
        sustained: last.params.rate(),
        broken: first.params.rate(),
        cpu_us: last.cpu_us,
    })
}

/// The same setting with more of `varied`, at this rate in round trips a second.
pub(super) fn grown(params: &Params, varied: Varied, rate: f64) -> Params {
    let mut params = params.clone();
    let factor = rate / params.rate();
    match varied {
        Varied::Hz => params.hz *= factor,
        Varied::Nodes => {
            let more = |n: u32| (f64::from(n) * factor).round() as u32;
            (params.nodes, params.senders) = (more(params.nodes), more(params.senders).max(1));
        }
    }
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_breaks_where_it_first_does() {
        let all = [
            Sample::of(1, 400.0, false),
            Sample::of(1, 100.0, true),
            Sample::of(1, 800.0, true),
            Sample::of(2, 100.0, true),
            Sample::of(8, 100.0, false),
        ];
        let knees = knees(&all);
        let short: Vec<_> = knees
            .iter()
            .map(|k| (k.varied, k.sustained, k.broken, k.params.senders))
            .collect();
        assert_eq!(
            short,
            [(Varied::Hz, 100.0, 400.0, 1), (Varied::Nodes, 200.0, 800.0, 4)]
        );
        assert_eq!(knees[0].rate(), 200.0);
        // Only measured values are printed.
        let by_nodes = knees[1].cell("a");
        assert_eq!((by_nodes.params.senders, by_nodes.params.nodes), (2, 4));
        let ends = [by_nodes.metrics.works, by_nodes.metrics.breaks];
        assert_eq!(ends.map(|e| e.map(|e| e.nodes)), [Some(4), Some(16)]);
    }

    #[test]
    fn a_prediction_between_what_works_and_what_does_not_is_right() {
        let knee = Knee {
            params: Params::default(),
            ends: None,
            varied: Varied::Hz,
            sustained: 200.0,
            broken: 400.0,
            cpu_us: None,
        };
        assert_eq!([200.0, 300.0, 400.0].map(|p| knee.error(p)), [0.0; 3]);
        assert_eq!([100.0, 500.0].map(|p| knee.error(p)), [0.5, 0.25]);
    }
}
