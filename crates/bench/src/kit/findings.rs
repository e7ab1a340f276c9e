//! Results of an experiment in addition to its cells: what is missing, and how reliable they are.

use crate::kit::error::Error;
use crate::kit::programs::Missing;
use crate::kit::usage::{self, Host, HostLoad};
use serde::Serialize;
use stats::Report;
use std::fmt::Display;
use std::time::Duration;

/// How long the machine's load is observed before the start.
const WATCH: Duration = Duration::from_secs(1);
/// More load by other programs than this distorts times.
const BUSY: f64 = 0.1;

/// Result of an experiment, with what is missing. `P`: the setting of a cell, `M`: the measured values, `F`: a run
/// without a result.
#[derive(Clone, Debug, Serialize)]
pub struct Findings<P, M, F> {
    /// Machine, versions and cells.
    #[serde(flatten)]
    pub report: Report<P, M>,
    /// Systems that could not be measured.
    pub missing: Vec<Missing>,
    /// Runs without a result.
    pub failed: Vec<F>,
    /// Further remarks.
    pub notes: Vec<String>,
    /// How quiet the machine was.
    pub health: Health,
    /// Whether the experiment ran to the end.
    pub complete: bool,
    /// Whether systems were selected by name.
    #[serde(skip)]
    pub(crate) named: bool,
}

/// The floor in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Floor {
    /// Bytes of the payload.
    pub size: u64,
    /// Subscribing processes.
    pub subscribers: u32,
    /// Number of the run, from 0.
    pub run: usize,
    /// Median in microseconds.
    pub p50_us: f64,
    /// 99th percentile in microseconds.
    pub p99_us: f64,
}

/// A run without a result; its `Display` names the run.
pub trait Failure: Display {
    /// Returns the reason.
    fn why(&self) -> &str;
}

/// How quiet the machine was.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Health {
    /// Load by other programs, before the start.
    pub before: HostLoad,
    /// Load averages over 1, 5 and 15 minutes at the end.
    pub loadavg: String,
    /// The floor's latency in each run: a change in it is a change of the machine. Absent in experiments without a
    /// floor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<Vec<Floor>>,
}

impl Health {
    /// Measures at the end of an experiment, without a floor.
    pub(crate) fn now(before: HostLoad) -> Self {
        Health {
            before,
            loadavg: usage::loadavg(),
            floor: None,
        }
    }
}

/// Returns a system; or `None` with a note if it is missing and was not selected by name.
pub(crate) fn found<T>(
    peer: Result<T, Error>,
    named: bool,
    notes: &mut Vec<String>,
) -> Result<Option<T>, Error> {
    match peer {
        Ok(peer) => Ok(Some(peer)),
        Err(Error::Nothing(why)) if !named => {
            notes.push(format!("left out: {why}"));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Observes the machine for a second. Returns a note if other programs keep it busy.
pub(crate) fn watch() -> (HostLoad, Option<String>) {
    let host = Host::now();
    std::thread::sleep(WATCH);
    let before = Host::now().since(&host);
    let note = (before.busy > BUSY).then(|| {
        format!(
            "other programs use {:.0} % of this machine's processors: all times are longer than on an idle machine",
            before.busy * 100.0
        )
    });
    (before, note)
}

impl<P, M, F: Failure> Findings<P, M, F> {
    /// Checks whether everything that was requested has a result.
    ///
    /// # Errors
    /// [`Error::Stopped`], [`Error::Missing`] for a system that was selected by name, or [`Error::Incomplete`] for a
    /// run that failed.
    pub fn verdict(&self) -> Result<(), Error> {
        if !self.complete {
            return Err(Error::Stopped);
        }
        if let Some(Missing { system, why }) = self.missing.first().filter(|_| self.named) {
            return Err(Error::Missing {
                system: *system,
                why: why.clone(),
            });
        }
        match &self.failed[..] {
            [] => Ok(()),
            [first, ..] => Err(Error::Incomplete {
                count: self.failed.len(),
                first: first.why().to_owned(),
            }),
        }
    }

    /// Returns the measured versions in one line.
    pub(crate) fn versions(&self) -> String {
        let versions = self.report.versions.iter().map(|(s, v)| format!("{s} {v}"));
        versions.collect::<Vec<_>>().join(", ")
    }

    /// Returns remarks to print with the tables, one line each.
    pub(crate) fn lacks(&self) -> Vec<String> {
        let missing = self
            .missing
            .iter()
            .map(|m| format!("missing: {}: {}", m.system, m.why));
        let failed = self.failed.iter().map(|f| format!("failed: {f}"));
        let notes = self.notes.iter().map(|n| format!("note: {n}"));
        let HostLoad { busy, steal } = self.health.before;
        let health = format!(
            "before the start other programs used {:.0} % of the processors, other guests {:.0} %; load averages {}",
            busy * 100.0,
            steal * 100.0,
            self.health.loadavg
        );
        missing.chain(failed).chain(notes).chain([health]).collect()
    }
}

impl<P: Serialize, M: Serialize, F: Serialize> Findings<P, M, F> {
    /// Returns the result as JSON.
    pub fn json(&self) -> String {
        json(self)
    }
}

/// Pretty-printed, for people and programs.
pub(crate) fn json(result: &impl Serialize) -> String {
    // Numbers, texts and maps with text keys: serializing cannot fail.
    serde_json::to_string_pretty(result).unwrap_or_default()
}
