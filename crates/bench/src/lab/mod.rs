//! Validates the lab, and reruns published experiments in it: `ropewalk bench lab`.
//!
//! Each row brings up a lab of its own with this program's `lab up`, runs ordinary programs inside (iperf3, ping, its
//! own [`probe`]), reads the lab's own timing, and ends it. A run in which the lab was late is repeated.

mod busy;
mod checks;
mod many_hosts;
mod options;
mod pound;
mod wire;

pub use crate::kit::cell::{Metrics, Params, Target, Timing, Values, Verdict};
pub use crate::kit::outcome::{Failed, Outcome, Series};
pub use crate::kit::paper::PaperRow;
pub use crate::kit::probe;
pub use crate::kit::roscpp::{Source, Transport};
pub use options::{Experiment, Options};

use crate::kit::error::{Error, RunError};
use crate::kit::roscpp::Peer;
use crate::kit::site::Ground;
use crate::kit::tries::tried;
use crate::kit::{findings, paper};
use crate::machine;
use checks::Check;
use serde_json::json;
use stats::{Cell, Report};
use std::process::Command;
use std::time::Duration;

/// Measures according to `options`. Blocks for minutes, with its progress on standard error. It calls `stopped` at
/// least ten times a second; true ends it early, with the results so far.
///
/// The calling process must be `ropewalk`: labs are started by running it again.
///
/// # Errors
/// [`Error`]: nothing can be measured. Failed rows are in the [`Outcome`].
pub fn run(options: &Options, stopped: &dyn Fn() -> bool) -> Result<Outcome, Error> {
    let ground = Ground::new("rwb-lab-", stopped)?;
    let mut checks = Vec::new();
    if options.validates() {
        checks = checks::all(options.quick);
    }
    let mut rows = Vec::new();
    if options.compares() {
        rows = pound::Row::all(&options.wanted_systems(), options.source, options.quick);
    }
    let known = checks
        .iter()
        .map(|c| c.scenario)
        .chain(rows.iter().map(|r| r.scenario));
    refuse_unknown(options, known.collect())?;
    checks.retain(|c| options.wants(c.scenario));
    rows.retain(|r| options.wants(r.scenario));
    let mut versions = machine::versions();
    let peer = if rows.is_empty() {
        None
    } else {
        let peer = Peer::prepare(options.peers.as_deref(), &ground)?;
        versions.insert("roscpp".into(), peer.version.clone());
        Some(peer)
    };
    for (program, flag) in [("iperf3", "--version"), ("ping", "-V")] {
        if checks.iter().any(|c| c.needs(program)) {
            versions.insert(program.into(), version(&ground, program, flag)?);
        }
    }
    let (before, note) = findings::watch();
    let mut report = Report {
        experiment: "lab".to_owned(),
        machine: machine::describe(),
        versions,
        cells: Vec::new(),
    };
    let (mut failed, mut complete) = (Vec::new(), true);
    let all = checks.len() + rows.len();
    let mut todo: Vec<Todo<'_>> = Vec::new();
    for check in &checks {
        let run = || measure(check, options.runs, &ground).map(|cell| vec![cell]);
        todo.push((check.scenario, check.what.to_owned(), Box::new(run)));
    }
    for row in &rows {
        let (runs, ground, peer) = (options.runs, &ground, &peer);
        let run = move || match peer {
            Some(peer) => pound::measure(row, runs, peer, ground),
            None => Ok(vec![]),
        };
        todo.push((row.scenario, row.shown(), Box::new(run)));
    }
    for (i, (scenario, what, run)) in todo.into_iter().enumerate() {
        eprintln!("[{}/{all}] {scenario} {what}", i + 1);
        match run() {
            Ok(cells) => {
                for cell in cells {
                    eprintln!("    {}", crate::kit::outcome::one_line(&cell.metrics));
                    report.cells.push(cell);
                }
            }
            Err(RunError::Stopped) => {
                complete = false;
                break;
            }
            Err(RunError::Failed(why)) => {
                eprintln!("    FAILED: {why}");
                let check = what;
                failed.push(Failed { check, scenario, why });
            }
        }
    }
    let paper = if rows.is_empty() {
        Vec::new()
    } else {
        paper::rows()
    };
    let notes = note.into_iter().collect();
    Ok(Outcome::new(report, failed, notes, before, complete, paper))
}

/// Scenario, what is measured there, and how.
type Todo<'a> = (
    &'static str,
    String,
    Box<dyn Fn() -> Result<Vec<Cell<Params, Metrics>>, RunError> + 'a>,
);

impl Check {
    fn needs(&self, program: &str) -> bool {
        // Lateness is measured under iperf3's load, and hosts ping each other.
        match program {
            "iperf3" => self.system == "iperf3" || self.scenario == "wifi-1hop-busy",
            _ => self.system == "ping" || self.scenario == "wifi-chain-64",
        }
    }
}

fn refuse_unknown(options: &Options, mut known: Vec<&str>) -> Result<(), Error> {
    known.dedup();
    match options.scenarios.iter().find(|s| !known.contains(&&***s)) {
        Some(unknown) => Err(Error::Input(format!(
            "--scenarios: '{unknown}' is not one of {}",
            known.join(", ")
        ))),
        None => Ok(()),
    }
}

/// Returns the first line of a program's version output.
fn version(ground: &Ground<'_>, program: &str, flag: &str) -> Result<String, Error> {
    let package = if program == "ping" {
        "iputils-ping"
    } else {
        program
    };
    match ground.hear(Command::new(program).arg(flag), Duration::from_secs(10)) {
        Ok(said) => {
            let first = said.lines().next().unwrap_or_default();
            Ok(first
                .replace("ping from ", "")
                .split(" (")
                .next()
                .unwrap_or_default()
                .to_owned())
        }
        Err(RunError::Stopped) => Err(Error::Stopped),
        Err(RunError::Failed(why)) => Err(Error::Nothing(format!(
            "{why}: install it (apt-get install {package})"
        ))),
    }
}

fn measure(check: &Check, runs: u32, ground: &Ground<'_>) -> Result<Cell<Params, Metrics>, RunError> {
    let (mut results, mut tries) = (Vec::new(), 0);
    for _ in 0..runs {
        results.push(tried(check.needs_time, &mut tries, || (check.run)(ground))?);
    }
    let mut params = check.params.clone();
    params.insert("check".into(), json!(check.what));
    params.insert("scenario".into(), json!(check.scenario));
    params.insert("runs".into(), json!(runs));
    let metrics = Metrics::new(
        &results,
        tries,
        check.targets.clone(),
        check.source,
        check.needs_time,
    );
    Ok(Cell {
        system: check.system.to_owned(),
        params,
        metrics: metrics.ok_or_else(|| RunError::Failed("no run".into()))?,
    })
}
