//! How far predictions are from sweeps that the calibration did not see.

use super::fit::median;
use super::{Cslv, FitError, Knee, MOST_CELLS, Model, Params, Sample};
use serde::Serialize;
use stats::Cell;
use std::collections::BTreeSet;

/// Of a calibration so many are knees; the rest are cells that work, for the delay.
const KNEES: usize = 9;

/// A model of a system, and how far both models are from what it did not see.
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    /// The system.
    pub of: String,
    /// Fitted to the calibration.
    pub model: Model,
    /// The thesis' limit, from the same knees.
    pub cslv: Option<Cslv>,
    /// Errors, as they are written.
    pub metrics: ValidationMetrics,
    /// Each knee that was predicted.
    pub compared: Vec<Compared>,
}

/// Errors are shares of what was measured: 0.15 is 15 %.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValidationMetrics {
    /// Median error of the model's knees.
    pub median_error: f64,
    /// Of CSLV's.
    pub cslv_median_error: f64,
    /// Knees that were predicted.
    pub cells: usize,
    /// Knees and cells that the models were fitted to.
    pub calibrated: usize,
    /// Whether each knee was predicted from all others, since there are too few to set some apart.
    pub leave_one_out: bool,
    /// Predicted knees outside the calibrated range in two or more of nodes, frequency, size and medium.
    pub outside: usize,
    /// The model's median error of those.
    pub outside_median_error: Option<f64>,
    /// What was assumed.
    pub assumed: Vec<String>,
}

/// A knee that was not calibrated with.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Where.
    pub params: Params,
    /// Round trips a second as measured.
    pub measured_per_s: f64,
    /// As predicted; none: the model knows no limit.
    pub predicted_per_s: Option<f64>,
    /// As CSLV has it.
    pub cslv_per_s: f64,
    /// In how many of nodes, frequency, size and medium it lies outside of what was calibrated.
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

    /// For people.
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

/// Fits both models to some of the knees, and predicts the others: those with the most nodes and the largest messages are
/// among the latter. With 12 knees or fewer each is predicted from all others.
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
    let error = |c: &Compared| {
        c.predicted_per_s
            .map_or(1.0, |p| (p / c.measured_per_s - 1.0).abs())
    };
    let mut errors: Vec<f64> = compared.iter().map(error).collect();
    let mut cslv_errors: Vec<f64> = compared
        .iter()
        .map(|c| (c.cslv_per_s / c.measured_per_s - 1.0).abs())
        .collect();
    let mut outside: Vec<f64> = compared.iter().filter(|c| c.outside >= 2).map(error).collect();
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

/// Of all knees those to calibrate with, far from each other, and the rest. The larger half of the numbers of nodes, the
/// largest messages and one medium of several of a kind are kept out of the calibration where enough is left.
fn apart(knees: &[Knee]) -> (Vec<Knee>, Vec<Knee>) {
    let values = |of: &dyn Fn(&Knee) -> u64| knees.iter().map(of).collect::<BTreeSet<u64>>();
    let (nodes, bytes) = (values(&|k| k.params.nodes.into()), values(&|k| k.params.bytes));
    let most_nodes = nodes
        .iter()
        .nth(nodes.len().div_ceil(2).max(2) - 1)
        .copied()
        .unwrap_or(u64::MAX);
    let most_bytes = bytes
        .iter()
        .rev()
        .nth(usize::from(bytes.len() >= 3))
        .copied()
        .unwrap_or(u64::MAX);
    let media: BTreeSet<&str> = knees.iter().map(|k| k.params.medium.as_str()).collect();
    let kind = |m: &str| std::mem::discriminant(&super::Network::named(m));
    let unseen = media
        .iter()
        .rev()
        .find(|m| media.len() >= 3 && media.iter().any(|o| o != *m && kind(o) == kind(m)));
    let inner: Vec<&Knee> = knees
        .iter()
        .filter(|k| u64::from(k.params.nodes) <= most_nodes && k.params.bytes <= most_bytes)
        .filter(|k| unseen.is_none_or(|m| *m != k.params.medium))
        .collect();
    let few: Vec<&Knee> = knees.iter().collect();
    let chosen = spread(if inner.len() >= 4 { &inner } else { &few }, KNEES);
    let is_chosen = |k: &&Knee| chosen.iter().any(|c| std::ptr::eq(*c, *k));
    let others = knees.iter().filter(|k| !is_chosen(k)).cloned().collect();
    (chosen.iter().map(|k| (*k).clone()).collect(), others)
}

/// The farthest from those that are chosen, one after the other, from the first on.
fn spread<'a>(knees: &[&'a Knee], most: usize) -> Vec<&'a Knee> {
    let distance = |a: &Knee, b: &Knee| {
        let nodes = (f64::from(a.params.senders.max(1)) / f64::from(b.params.senders.max(1)))
            .ln()
            .abs();
        let bytes = (a.params.bytes.max(1) as f64 / b.params.bytes.max(1) as f64)
            .ln()
            .abs();
        let medium = if a.params.medium == b.params.medium {
            0.0
        } else {
            3.0
        };
        let share = 4.0 * (a.params.share() - b.params.share()).abs();
        nodes + bytes / 2.0 + medium + share
    };
    let mut chosen: Vec<&Knee> = knees.first().copied().into_iter().collect();
    while chosen.len() < most.min(knees.len()) {
        let nearest = |k: &Knee| {
            chosen
                .iter()
                .map(|c| distance(k, c))
                .fold(f64::INFINITY, f64::min)
        };
        let next = knees
            .iter()
            .filter(|k| !chosen.iter().any(|c| std::ptr::eq(*c, **k)))
            .max_by(|a, b| nearest(a).total_cmp(&nearest(b)));
        let Some(next) = next else { break };
        chosen.push(next);
    }
    chosen
}

/// Cells that work, of settings between those of the knees, at the lowest rates: where the delay is that of idle machines.
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
    let mut quiet: Vec<&Sample> = samples
        .iter()
        .filter(|s| s.sustained && s.mean_ms.is_some())
        .filter(within)
        .collect();
    quiet.sort_by(|a, b| a.params.rate().total_cmp(&b.params.rate()));
    // The quietest of each setting first, from small messages to large ones.
    let mut seen = BTreeSet::new();
    quiet.retain(|s| seen.insert((s.params.bytes, s.params.nodes, s.params.medium.clone())));
    quiet.sort_by_key(|s| s.params.bytes);
    let step = (quiet.len() as f64 / room.max(1) as f64).max(1.0);
    let picked = (0..room).filter_map(|i| quiet.get((i as f64 * step).round() as usize));
    picked.map(|s| (*s).clone()).collect()
}

fn compare(model: &Model, cslv: Option<Cslv>, knee: &Knee, calibrated: &[Knee]) -> Compared {
    let outside = |of: &dyn Fn(&Params) -> f64| {
        let all = calibrated.iter().map(|k| of(&k.params));
        let (low, high) = all.fold((f64::INFINITY, 0.0f64), |(a, b), v| (a.min(v), b.max(v)));
        u32::from(!(low..=high).contains(&of(&knee.params)))
    };
    let medium = u32::from(calibrated.iter().all(|k| k.params.medium != knee.params.medium));
    let ranges = outside(&|p| p.nodes.into()) + outside(&|p| p.hz) + outside(&|p| p.bytes as f64);
    Compared {
        params: knee.params.clone(),
        measured_per_s: knee.rate(),
        predicted_per_s: model.knee(&knee.params, knee.varied),
        cslv_per_s: cslv.map_or(0.0, |c| c.knee(&knee.params)),
        outside: ranges + medium,
    }
}
