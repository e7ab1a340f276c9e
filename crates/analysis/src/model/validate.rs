//! Error of predictions for sweeps outside the calibration.

use super::fit::median;
use super::{Cslv, FitError, Knee, MOST_CELLS, Model, Network, Params, Sample};
use serde::Serialize;
use stats::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// Number of knees in a calibration; the rest are cells that work, for the delay.
const KNEES: usize = 10;
/// A cell is quiet up to this share of the highest rate that works.
const QUIET: f64 = 0.25;

/// A model of a system, and the error of both models outside their calibration.
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    /// The system.
    pub of: String,
    /// Model fitted to the calibration.
    pub model: Model,
    /// The thesis' limit, from the same knees.
    pub cslv: Option<Cslv>,
    /// Errors in output format.
    pub metrics: ValidationMetrics,
    /// Each predicted knee.
    pub compared: Vec<Compared>,
}

/// Errors are shares of the measured value: 0.15 is 15 %. A prediction between a rate that works and one that does not
/// has no error.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValidationMetrics {
    /// Median error of the model's knees.
    pub median_error: f64,
    /// Median error of CSLV.
    pub cslv_median_error: f64,
    /// Number of predicted knees.
    pub cells: usize,
    /// Number of knees and cells to which the models were fitted.
    pub calibrated: usize,
    /// Whether each knee was predicted from all others, because there are too few for a separate set.
    pub leave_one_out: bool,
    /// Number of predicted knees outside the calibrated range in two or more of nodes, frequency, size and medium.
    pub outside: usize,
    /// The model's median error for those.
    pub outside_median_error: Option<f64>,
    /// Assumptions of the model.
    pub assumed: Vec<String>,
}

/// A knee outside the calibration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Setting: the highest that works, if known.
    pub params: Params,
    /// Measured round trips a second, in the geometric middle of the two neighbours.
    pub measured_per_s: f64,
    /// The highest rate that works.
    pub sustained_per_s: f64,
    /// The lowest rate above it that does not work.
    pub broken_per_s: f64,
    /// Predicted rate; none if the model has no limit.
    pub predicted_per_s: Option<f64>,
    /// Error of the prediction, as a share of the measured rate; 1 without a prediction.
    pub error: f64,
    /// Rate predicted by CSLV.
    pub cslv_per_s: f64,
    /// Error of CSLV.
    pub cslv_error: f64,
    /// Number of quantities among nodes, frequency, size and medium that lie outside the calibrated range.
    pub outside: u32,
}

impl Validation {
    pub(crate) fn cell(&self) -> Cell<serde_json::Value, ValidationMetrics> {
        Cell {
            system: "model".into(),
            params: serde_json::json!({ "of": self.of }),
            metrics: self.metrics.clone(),
        }
    }

    /// Lines for people.
    pub fn lines(&self) -> Vec<String> {
        let m = &self.metrics;
        let how = if m.leave_one_out {
            "each from all others".to_owned()
        } else {
            format!(
                "{} calibrated, {} outside in two ways or more",
                m.calibrated, m.outside
            )
        };
        let mut lines = vec![format!(
            "model of {}: knees within {:.0} % (median of {}, {how}); CSLV within {:.0} %",
            self.of,
            m.median_error * 100.0,
            m.cells,
            m.cslv_median_error * 100.0
        )];
        lines.extend(m.assumed.iter().map(|a| format!("assumed of {}: {a}", self.of)));
        lines
    }
}

/// Fits both models to some of the knees, and predicts the others, which include those with the most nodes and the
/// largest messages. With 12 knees or fewer, each is predicted from all others.
///
/// # Errors
/// [`FitError::TooFew`].
pub fn validate(of: &str, samples: &[Sample], knees: &[Knee]) -> Result<Validation, FitError> {
    if knees.len() < 3 {
        return Err(FitError::TooFew { knees: knees.len() });
    }
    let leave_one_out = knees.len() <= MOST_CELLS;
    let mut compared = Vec::new();
    let (model, cslv, calibrated) = if leave_one_out {
        for (i, knee) in knees.iter().enumerate() {
            let mut others = knees.to_vec();
            others.remove(i);
            let cells = quiet(samples, &others);
            let model = Model::of_knees(&others, &cells)?;
            compared.push(compare(&model, Cslv::of(&others), knee, &others));
        }
        (
            Model::fit(knees, &quiet(samples, knees))?,
            Cslv::of(knees),
            knees.len(),
        )
    } else {
        let (inner, others) = apart(knees);
        let cells = quiet(samples, &inner);
        let model = Model::fit(&inner, &cells)?;
        let cslv = Cslv::of(&inner);
        compared.extend(others.iter().map(|k| compare(&model, cslv, k, &inner)));
        (model, cslv, inner.len() + cells.len())
    };
    let mut errors: Vec<f64> = compared.iter().map(|c| c.error).collect();
    let mut cslv_errors: Vec<f64> = compared.iter().map(|c| c.cslv_error).collect();
    let mut outside: Vec<f64> = compared
        .iter()
        .filter(|c| c.outside >= 2)
        .map(|c| c.error)
        .collect();
    Ok(Validation {
        of: of.to_owned(),
        metrics: ValidationMetrics {
            median_error: median(&mut errors).unwrap_or(1.0),
            cslv_median_error: median(&mut cslv_errors).unwrap_or(1.0),
            cells: compared.len(),
            calibrated,
            leave_one_out,
            outside: outside.len(),
            outside_median_error: median(&mut outside),
            assumed: model.assumed.clone(),
        },
        model,
        cslv,
        compared,
    })
}

/// Splits the knees into those for the calibration, far from each other, and the rest. The larger half of the numbers
/// of nodes, the largest messages and one medium of several of a kind are excluded from the calibration if enough knees
/// remain.
fn apart(knees: &[Knee]) -> (Vec<Knee>, Vec<Knee>) {
    let values = |of: &dyn Fn(&Knee) -> u64| knees.iter().map(of).collect::<BTreeSet<u64>>();
    let (mut nodes, bytes) = (values(&|k| k.params.nodes.into()), values(&|k| k.params.bytes));
    // Numbers of nodes with few knees say little about the cost of more nodes.
    let with = |n: u64| knees.iter().filter(|k| u64::from(k.params.nodes) == n).count();
    nodes.retain(|n| 10 * with(*n) >= knees.len());
    let most_bytes = bytes
        .iter()
        .rev()
        .nth(usize::from(bytes.len() >= 3))
        .copied()
        .unwrap_or(u64::MAX);
    let media: BTreeSet<&str> = knees.iter().map(|k| k.params.medium.as_str()).collect();
    let kind = |m: &str| std::mem::discriminant(&Network::named(m));
    let unseen = media
        .iter()
        .rev()
        .find(|m| media.len() >= 3 && media.iter().any(|o| o != *m && kind(o) == kind(m)));
    let below = |most_nodes: u64| -> Vec<&Knee> {
        let seen = |p: &Params| unseen.is_none_or(|m| *m != p.medium) && p.bytes <= most_bytes;
        let inner = |p: &Params| u64::from(p.nodes) <= most_nodes && seen(p);
        knees.iter().filter(|k| inner(&k.params)).collect()
    };
    // Larger numbers of nodes if the others are too few.
    let half = nodes.len().div_ceil(2).max(2) - 1;
    let inner = nodes.iter().skip(half).map(|most| below(*most));
    let inner = inner.reduce(|fewer, more| if fewer.len() < KNEES { more } else { fewer });
    let inner = inner.unwrap_or_else(|| below(u64::MAX));
    let few: Vec<&Knee> = knees.iter().collect();
    let of = if inner.len() >= 4 { &inner } else { &few };
    let chosen = farthest(of, KNEES, |a, b| apart_by(&a.params, &b.params));
    let is_chosen = |k: &&Knee| chosen.iter().any(|c| std::ptr::eq(*c, *k));
    let others = knees.iter().filter(|k| !is_chosen(k)).cloned().collect();
    (chosen.iter().map(|k| (*k).clone()).collect(), others)
}

/// Distance between two settings, ignoring their frequency.
fn apart_by(a: &Params, b: &Params) -> f64 {
    let ratio = |a: f64, b: f64| (a.max(1.0) / b.max(1.0)).ln().abs();
    // If the medium is the limit, the number of senders says little.
    let limited = [a, b].map(|p| Network::named(&p.medium).share().is_some());
    let weight = if limited == [true; 2] { 0.5 } else { 3.0 };
    let nodes = weight * ratio(a.senders.into(), b.senders.into());
    let bytes = ratio(a.bytes as f64, b.bytes as f64);
    let medium = if a.medium == b.medium { 0.0 } else { 3.0 };
    nodes + bytes / 2.0 + medium + 4.0 * (a.share() - b.share()).abs()
}

/// The first, and then repeatedly the one that is farthest from all that are chosen.
fn farthest<'a, T>(all: &[&'a T], most: usize, distance: impl Fn(&T, &T) -> f64) -> Vec<&'a T> {
    let mut chosen: Vec<&T> = all.first().copied().into_iter().collect();
    while chosen.len() < most.min(all.len()) {
        let nearest = |k: &T| {
            let distances = chosen.iter().map(|c| distance(k, c));
            distances.fold(f64::INFINITY, f64::min)
        };
        let next = all
            .iter()
            .filter(|k| !chosen.iter().any(|c| std::ptr::eq(*c, **k)))
            .max_by(|a, b| nearest(a).total_cmp(&nearest(b)));
        let Some(next) = next else { break };
        chosen.push(next);
    }
    chosen
}

/// Cells that work, with settings between those of the knees, far from each other: from the quietest, which show the
/// idle cost of processes and the delay of idle machines, to some that are not near their knees.
fn quiet(samples: &[Sample], knees: &[Knee]) -> Vec<Sample> {
    let room = MOST_CELLS.saturating_sub(knees.len());
    let within = |s: &&Sample| {
        let of = |value: u64, of: &dyn Fn(&Params) -> u64| {
            let all = knees.iter().map(|k| of(&k.params));
            let (low, high) = all.fold((u64::MAX, 0), |(a, b), v| (a.min(v), b.max(v)));
            (low..=high).contains(&value)
        };
        of(s.params.nodes.into(), &|p| p.nodes.into()) && of(s.params.bytes, &|p| p.bytes)
    };
    // The lowest rate of each setting, and the highest that works.
    let setting = |s: &Sample| (s.params.bytes, s.params.nodes, s.params.medium.clone());
    let mut rates = BTreeMap::<_, (f64, f64)>::new();
    for sample in samples {
        let (lowest, highest) = rates.entry(setting(sample)).or_insert((f64::INFINITY, 0.0));
        let rate = sample.params.rate();
        *lowest = lowest.min(rate);
        if sample.sustained {
            *highest = highest.max(rate);
        }
    }
    let is_quiet = |s: &&Sample| {
        let rate = s.params.rate();
        let of = rates.get(&setting(s));
        of.is_some_and(|(lowest, highest)| rate <= (highest * QUIET).max(*lowest))
    };
    let mut quiet: Vec<&Sample> = samples
        .iter()
        .filter(|s| s.sustained && s.mean_ms.is_some())
        .filter(within)
        .filter(is_quiet)
        .collect();
    quiet.sort_by(|a, b| a.params.rate().total_cmp(&b.params.rate()));
    let between = |a: &Sample, b: &Sample| {
        let rates = (a.params.rate().max(1e-3) / b.params.rate().max(1e-3)).ln().abs();
        rates + apart_by(&a.params, &b.params)
    };
    farthest(&quiet, room, between).into_iter().cloned().collect()
}

fn compare(model: &Model, cslv: Option<Cslv>, knee: &Knee, calibrated: &[Knee]) -> Compared {
    let outside = |of: &dyn Fn(&Params) -> f64| {
        let all = calibrated.iter().map(|k| of(&k.params));
        let (low, high) = all.fold((f64::INFINITY, 0.0f64), |(a, b), v| (a.min(v), b.max(v)));
        u32::from(!(low..=high).contains(&of(&knee.params)))
    };
    let medium = u32::from(calibrated.iter().all(|k| k.params.medium != knee.params.medium));
    let ranges = outside(&|p| p.nodes.into()) + outside(&|p| p.hz) + outside(&|p| p.bytes as f64);
    let predicted = model.knee(&knee.params, knee.varied);
    let cslv = cslv.map_or(0.0, |c| c.knee(&knee.params));
    Compared {
        params: knee.measured(),
        measured_per_s: knee.rate(),
        sustained_per_s: knee.sustained,
        broken_per_s: knee.broken,
        predicted_per_s: predicted,
        error: predicted.map_or(1.0, |p| knee.error(p)),
        cslv_per_s: cslv,
        cslv_error: knee.error(cslv),
        outside: ranges + medium,
    }
}
