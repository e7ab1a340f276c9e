//! Calibrates a machine with results of `ropewalk bench scale` (`ropewalk bench model`).

use crate::file::{self, FileError};
use crate::model::{self, Model, ReadError, Validation, knees, validate};
use crate::raw::value;
use crate::table::{Align, Table};
use clap::Args;
use serde_json::{Value, json};
use stats::{Cell, Report};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Fit a cost model of a machine to measurements, and validate it.
///
/// FILE is the output of `ropewalk bench scale --json` (or `bench analyze --json`). At most 12 of its knees and cells
/// are used for the fit; all other knees validate it, next to CSLV = N·f·S. The JSON output is the input of `ropewalk
/// plan --machine`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Results of `bench scale` or `bench analyze`, as JSON.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Use only these systems.
    #[arg(long, value_name = "SYSTEM", value_delimiter = ',')]
    pub of: Vec<String>,
    /// `--json`.
    #[command(flatten)]
    pub json: terminal::json::Json,
}

/// Why there is no calibration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file contains no cells.
    #[error(transparent)]
    File(#[from] FileError<ReadError>),
    /// No system has enough data.
    #[error("no system has enough data for a calibration: {0}")]
    Nothing(String),
}

/// Models of all systems.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// By system.
    pub validations: Vec<Validation>,
    /// Systems without a model, and why.
    pub notes: Vec<String>,
    machine: BTreeMap<String, Value>,
}

/// Reads the files and fits the models.
///
/// # Errors
/// If a file cannot be read, or nothing can be fitted.
pub fn run(options: &Options, machine: BTreeMap<String, Value>) -> Result<Outcome, Error> {
    let mut all = model::Read::default();
    for path in &options.files {
        let read = file::read(path, model::read)?;
        all.samples.extend(read.samples);
        all.knees.extend(read.knees);
    }
    let mut systems: Vec<&String> = all.samples.iter().map(|(s, _)| s).collect();
    systems.extend(all.knees.iter().map(|(s, _)| s));
    systems.sort();
    systems.dedup();
    let (mut validations, mut notes) = (Vec::new(), Vec::new());
    for system in systems {
        if !options.of.is_empty() && !options.of.contains(system) {
            continue;
        }
        let (samples, measured) = all.of(system);
        // Bisected knees are more accurate than the gap between two cells.
        let found = if measured.is_empty() {
            knees(&samples)
        } else {
            measured
        };
        match validate(system, &samples, &found) {
            Ok(v) => validations.push(v),
            Err(why) => notes.push(format!("no model of {system}: {why}")),
        }
    }
    if validations.is_empty() {
        let why = notes
            .first()
            .cloned()
            .unwrap_or_else(|| "no cells of the requested systems".into());
        return Err(Error::Nothing(why));
    }
    Ok(Outcome {
        validations,
        notes,
        machine,
    })
}

impl Outcome {
    /// The result as JSON: cells in the format of every benchmark, the models for `plan`, and each prediction.
    pub fn json(&self) -> String {
        let cells: Vec<Cell<Value, Value>> = self.validations.iter().map(|v| value(&v.cell())).collect();
        let report = Report {
            experiment: "model".into(),
            machine: self.machine.clone(),
            versions: BTreeMap::from([("ropewalk".into(), env!("CARGO_PKG_VERSION").into())]),
            cells,
        };
        let models: BTreeMap<&str, &Model> = self
            .validations
            .iter()
            .map(|v| (v.of.as_str(), &v.model))
            .collect();
        let compared: BTreeMap<&str, _> = self
            .validations
            .iter()
            .map(|v| (v.of.as_str(), &v.compared))
            .collect();
        let mut whole = serde_json::to_value(report).unwrap_or_default();
        whole["models"] = json!(models);
        whole["compared"] = json!(compared);
        whole["notes"] = json!(self.notes);
        serde_json::to_string_pretty(&whole).unwrap_or_default()
    }

    /// Tables for people.
    pub fn text(&self) -> String {
        let mut out = Vec::new();
        for v in &self.validations {
            let mut table = Table::new(&[
                ("system", Align::Left),
                ("medium", Align::Left),
                ("nodes", Align::Right),
                ("bytes", Align::Right),
                ("works /s", Align::Right),
                ("breaks /s", Align::Right),
                ("model /s", Align::Right),
                ("CSLV /s", Align::Right),
                ("outside", Align::Right),
            ]);
            for c in &v.compared {
                let p = &c.params;
                table.row([
                    v.of.clone(),
                    p.medium.clone(),
                    p.nodes.to_string(),
                    p.bytes.to_string(),
                    format!("{:.0}", c.sustained_per_s),
                    format!("{:.0}", c.broken_per_s),
                    c.predicted_per_s.map_or("no limit".into(), |p| format!("{p:.0}")),
                    format!("{:.0}", c.cslv_per_s),
                    c.outside.to_string(),
                ]);
            }
            out.extend(table.lines());
            out.extend(v.lines());
            out.push(String::new());
        }
        out.extend(self.notes.iter().map(|n| format!("note: {n}")));
        out.join("\n")
    }
}
