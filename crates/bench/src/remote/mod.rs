//! Commanding a robot over bad networks: `ropewalk bench remote`, the Robot Remote Control paper's Figures 1 to 3.
//!
//! Each row brings up a lab of its own (none on loopback), a process that commands and one that is the robot, and the
//! transport between them: link daemons, ZeroMQ, or roscore. A measured interval is between two readings of the
//! commanding process's clock; in one direction, between two processes that share CLOCK_MONOTONIC.

mod figure;
mod links;
mod options;
mod outcome;
mod paper;
pub mod part;
mod plan;
mod properties;
mod setup;
mod stage;
mod tools;
mod trial;
mod values;

pub use crate::kit::systems::System;
#[cfg(test)]
pub(crate) use options::SYSTEMS;
pub use options::{Network, Options, What};
pub use outcome::Outcome;
pub use paper::Given;
pub use properties::{Measured, RoundTrip};
pub use setup::Table2;

use crate::kit::cell::{Metrics, Params};
use crate::kit::error::Error;
use crate::kit::error::RunError;
use crate::kit::findings;
use crate::kit::findings::{Findings, Health};
use crate::kit::outcome::{Failed, one_line};
use crate::kit::progress::Progress;
use crate::kit::tries::tried;
use crate::machine;
use plan::{Means, Row};
use stats::{Cell, Report};
use std::collections::BTreeMap;
use tools::Tools;

/// Source of the targets.
const SOURCE: &str = "docs/guide/bench-remote.md";

/// Measures according to `options`. Blocks for minutes to hours, with its progress on standard error. It calls
/// `stopped` at least ten times a second; true ends it early, with the results so far.
///
/// The calling process must be `ropewalk`: labs, links and robots are started by running it again.
///
/// # Errors
/// [`Error`]: nothing can be measured. Failed rows are in the [`Outcome`].
pub fn run(options: &Options, stopped: &dyn Fn() -> bool) -> Result<Outcome, Error> {
    let mut rows = plan::rows(options);
    if rows.is_empty() {
        let why = "nothing is left to measure: no row has these --networks, --what and --systems";
        return Err(Error::Input(why.into()));
    }
    let tools = Tools::prepare(options, &rows, stopped)?;
    rows.retain(|row| tools.has(row.means.system()));
    let (before, note) = findings::watch();
    let mut session = Session {
        options,
        tools: &tools,
        cells: Vec::new(),
        networks: Vec::new(),
        failed: Vec::new(),
        floors: BTreeMap::new(),
    };
    let complete = session.measure(&rows);
    let Session {
        cells,
        networks,
        failed,
        ..
    } = session;
    let found = Findings {
        report: Report {
            experiment: "remote".to_owned(),
            machine: machine::describe(),
            versions: tools.versions(),
            cells,
        },
        missing: Vec::new(),
        failed,
        notes: note.into_iter().chain(tools.notes.iter().cloned()).collect(),
        health: Health::now(before),
        complete,
        named: false,
    };
    Ok(Outcome::new(found, networks))
}

struct Session<'a> {
    options: &'a Options,
    tools: &'a Tools<'a>,
    cells: Vec<Cell<Params, Metrics>>,
    networks: Vec<Measured>,
    failed: Vec<Failed>,
    /// Median of bare sockets, in ms, by measurement, and by whether processors were kept awake.
    floors: BTreeMap<(What, Option<bool>), f64>,
}

impl Session<'_> {
    /// Measures all rows; returns false if the user stopped it.
    fn measure(&mut self, rows: &[Row]) -> bool {
        let mut progress = Progress::new(rows.iter().map(Row::expected));
        let mut seen = Vec::new();
        for row in rows {
            progress.begin(row.shown());
            if !seen.contains(&row.setup.shown()) {
                seen.push(row.setup.shown());
                match properties::measure(self.tools, row.setup, self.options) {
                    Ok(None) => {}
                    Ok(Some(measured)) => {
                        let lines = properties::lines(std::slice::from_ref(&measured));
                        lines.iter().for_each(|line| eprintln!("    {line}"));
                        self.networks.push(measured);
                    }
                    Err(RunError::Stopped) => return false,
                    Err(RunError::Failed(why)) => {
                        eprintln!("    FAILED: {why}");
                        self.failed("the network's properties".into(), row, why);
                    }
                }
            }
            match self.one(row) {
                Ok(cell) => {
                    progress.done(&one_line(&cell.metrics));
                    self.cells.push(cell);
                }
                Err(RunError::Stopped) => return false,
                Err(RunError::Failed(why)) => {
                    progress.done(&format!("FAILED: {why}"));
                    self.failed(row.shown(), row, why);
                }
            }
        }
        true
    }

    fn failed(&mut self, check: String, row: &Row, why: String) {
        self.failed.push(Failed {
            check,
            scenario: row.setup.shown(),
            why,
        });
    }

    fn one(&mut self, row: &Row) -> Result<Cell<Params, Metrics>, RunError> {
        let mut tries = 0;
        let (mut trial, timing) = match row.setup.is_loopback() {
            true => {
                let (trial, _) = trial::run(row, self.tools)?;
                (trial, None)
            }
            false => {
                let no_lab = || RunError::Failed("the lab reported no timing".into());
                // A quick run without targets is made only once, and shows the lab's lateness itself.
                let again = !self.options.quick || !row.targets.is_empty();
                let (trial, timing) = tried(again, &mut tries, || {
                    let (trial, timing) = trial::run(row, self.tools)?;
                    Ok((trial, timing.ok_or_else(no_lab)?))
                })?;
                (trial, Some(timing))
            }
        };
        let median = trial.values.get("latency_ms.p50").copied();
        match row.means {
            Means::Sockets => {
                let key = (row.what, row.awake);
                self.floors.extend(median.map(|ms| (key, ms)));
            }
            _ if row.has_floor() => {
                // A twist during a file transfer is a twist, and the transfer keeps the processors awake.
                let key = match row.what {
                    What::File => (What::Twist, Some(true)),
                    what => (what, row.awake),
                };
                let floor = self.floors.get(&key).map(|ms| ("floor_ms", *ms));
                trial.values.extend(floor);
            }
            _ => {}
        }
        let form = row.setup.closed_form_ms(row.what);
        trial.values.extend(form.map(|ms| ("closed_form_ms", ms)));
        let targets = row.targets.clone();
        let source = if targets.is_empty() { "" } else { SOURCE };
        let metrics = match timing {
            Some(timing) => Metrics::new(&[(trial.values, timing)], tries, targets, source, true),
            None => Some(Metrics::without_lab(trial.values, targets, source)),
        };
        Ok(Cell {
            system: row.means.system().name().to_owned(),
            params: row.params(trial.made),
            metrics: metrics.ok_or_else(|| RunError::Failed("no run".into()))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::cell::Values;
    use serde_json::json;

    /// A cell with only times of `ms`.
    pub(super) fn cell(system: &str, network: Network, what: What, ms: f64) -> Cell<Params, Metrics> {
        let mut values = Values::from([("decided", 1.0), ("delivery", 1.0), ("closed_form_ms", ms / 2.0)]);
        values.extend(values::LATENCY.map(|name| (name, ms)));
        let name = network.name();
        Cell {
            system: system.into(),
            params: Params::from([
                ("network".into(), json!(name)),
                ("what".into(), json!(what.name())),
                ("scenario".into(), json!(name)),
                ("check".into(), json!(what.name())),
                ("setting".into(), json!("some way")),
            ]),
            metrics: Metrics::without_lab(values, Vec::new(), ""),
        }
    }

    #[test]
    fn options_that_leave_nothing_to_measure_are_refused() {
        let options = Options {
            networks: vec![Network::Wifi6],
            what: vec![What::Twist],
            ..plan::tests::options()
        };
        let error = run(&options, &|| false).expect_err("nothing to measure");
        assert!(matches!(error, Error::Input(why) if why.contains("--networks")));
    }
}
