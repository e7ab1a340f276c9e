//! What every experiment gives beside its cells: what it lacks, and how far to trust it.

use crate::ipc::usage::{self, Host};
use crate::ipc::{Error, Floor, HostLoad, Missing};
use serde::Serialize;
use stats::Report;
use std::fmt::Display;
use std::time::Duration;

/// How long the machine's load is watched before the start.
const WATCH: Duration = Duration::from_secs(1);
/// More load by others than this spoils times.
const BUSY: f64 = 0.1;

/// What an experiment gave, with what it lacks. `P`: the setting of a cell, `M`: what was measured, `F`: a run that
/// gave no numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Findings<P, M, F> {
    /// Machine, versions and cells.
    #[serde(flatten)]
    pub report: Report<P, M>,
    /// Systems that could not be measured.
    pub missing: Vec<Missing>,
    /// Runs that gave no numbers.
    pub failed: Vec<F>,
    /// What else is to be known.
    pub notes: Vec<String>,
    /// How quiet the machine was.
    pub health: Health,
    /// Whether it went on to the end.
    pub complete: bool,
    /// Whether systems were asked for by name.
    #[serde(skip)]
    pub(crate) named: bool,
}

/// A run that gave no numbers; displayed with which run it was.
pub trait Failure: Display {
    /// What happened.
    fn why(&self) -> &str;
}

/// How quiet the machine was.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Health {
    /// Load by whatever else runs here, before the start.
    pub before: HostLoad,
    /// Load averages over 1, 5 and 15 minutes at the end.
    pub loadavg: String,
    /// The floor's latency in each run: where it moves, the machine did. Absent in experiments without a floor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<Vec<Floor>>,
}

impl Health {
    /// At the end of an experiment, without a floor.
    pub(crate) fn now(before: HostLoad) -> Self {
        Health {
            before,
            loadavg: usage::loadavg(),
            floor: None,
        }
    }
}

/// A system, or none with a note if it is missing and was not asked for by name.
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

/// Watches the machine for a second, and says so if others keep it busy.
pub(crate) fn watch() -> (HostLoad, Option<String>) {
    let host = Host::now();
    std::thread::sleep(WATCH);
    let before = Host::now().since(&host);
    let note = (before.busy > BUSY).then(|| {
        format!(
            "others use {:.0} % of this machine's processors: all times are worse than they could be",
            before.busy * 100.0
        )
    });
    (before, note)
}

impl<P, M, F: Failure> Findings<P, M, F> {
    /// Whether all went as it was asked for.
    ///
    /// # Errors
    /// [`Error::Stopped`], [`Error::Missing`] for a system that was asked for by name, or [`Error::Incomplete`]
    /// for a run that failed.
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

    /// What was measured, in one line.
    pub(crate) fn versions(&self) -> String {
        let versions = self.report.versions.iter().map(|(s, v)| format!("{s} {v}"));
        versions.collect::<Vec<_>>().join(", ")
    }

    /// What people are to know beside the tables, a line each.
    pub(crate) fn lacks(&self) -> Vec<String> {
        let missing = self
            .missing
            .iter()
            .map(|m| format!("missing: {}: {}", m.system, m.why));
        let failed = self.failed.iter().map(|f| format!("failed: {f}"));
        let notes = self.notes.iter().map(|n| format!("note: {n}"));
        let HostLoad { busy, steal } = self.health.before;
        let health = format!(
            "before the start others used {:.0} % of the processors, other guests {:.0} %; load averages {}",
            busy * 100.0,
            steal * 100.0,
            self.health.loadavg
        );
        missing.chain(failed).chain(notes).chain([health]).collect()
    }
}

impl<P: Serialize, M: Serialize, F: Serialize> Findings<P, M, F> {
    /// The result as JSON.
    pub fn json(&self) -> String {
        json(self)
    }
}

/// For people and programs alike.
pub(crate) fn json(result: &impl Serialize) -> String {
    // Numbers, texts and maps with text keys: serializing cannot fail.
    serde_json::to_string_pretty(result).unwrap_or_default()
}
