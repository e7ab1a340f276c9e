//! Comparison of the link with other systems, in the lab: `ropewalk bench link`.
//!
//! Each run brings up a lab of its own, with a link daemon (or another system) on each host, a process that sends and
//! one that logs. The measured interval is from the publisher's stamp to the subscriber's clock on another
//! host (decision 105).

mod bandwidth;
mod bridged;
mod bulk;
mod case;
mod control;
mod discovery;
mod drive;
mod flood;
mod flows;
mod lossy;
mod network;
mod options;
pub mod part;
mod pound;
mod rates;
mod reconnect;
mod robots;
mod ros2;
mod serial;
mod tools;
mod wire;
mod zenoh;

pub use crate::kit::outcome::Outcome;
pub use crate::kit::systems::System;
pub use ::link::config::CarrierKind;
#[cfg(test)]
pub(crate) use options::SYSTEMS;
use options::systems;
pub use options::{Ends, Experiment, Options};

use crate::flows::play::Leg;
use crate::kit::cell::{Metrics, Params, Target, Timing, Values};
use crate::kit::error::Error;
use crate::kit::error::RunError;
use crate::kit::findings;
use crate::kit::outcome;
use crate::kit::outcome::{Failed, Series};
use crate::kit::tries::tried;
use crate::machine;
use serde_json::json;
use stats::{Cell, Report};
use tools::Tools;

/// Measures according to `options`. Blocks for minutes to hours, with its progress on standard error. It calls
/// `stopped` at least ten times a second; true ends it early, with the results so far.
///
/// The calling process must be `ropewalk`: labs and links are started by running it again.
///
/// # Errors
/// [`Error`]: nothing can be measured. Failed rows are in the [`Outcome`].
pub fn run(options: &Options, stopped: &dyn Fn() -> bool) -> Result<Outcome, Error> {
    let between_nodes = |e: &Experiment| match options.ends {
        Ends::Bus => true,
        Ends::Ros => matches!(e, Experiment::Pound | Experiment::Flows),
        Ends::Ros2 | Ends::Dds => matches!(e, Experiment::Pound | Experiment::Flows | Experiment::Reconnect),
    };
    if !options.experiment.iter().all(between_nodes) {
        let why = "--ends ros is for the experiments pound and flows, --ends ros2 and dds also for reconnect";
        return Err(Error::Input(why.into()));
    }
    options.check_carriers()?;
    let mut rows: Vec<Row> = Vec::new();
    for experiment in Experiment::wanted(&options.experiment) {
        rows.extend(match experiment {
            Experiment::Pound => pound::rows(options),
            Experiment::Rates => rates::rows(options),
            Experiment::Flows => flows::rows(options),
            Experiment::Bandwidth => [bandwidth::rows(options), wire::rows(options)]
                .into_iter()
                .flatten()
                .collect(),
            Experiment::Reconnect => reconnect::rows(options),
            Experiment::Control => control::rows(options),
            Experiment::DriveAway => drive::rows(options),
            Experiment::Lossy => lossy::rows(options),
            Experiment::Bulk => bulk::rows(options),
            Experiment::Team => flows::team(options),
            Experiment::Serial => serial::rows(options),
            Experiment::Flood => flood::rows(options),
            Experiment::Discovery => discovery::rows(options),
            Experiment::Robots => robots::rows(options),
        });
    }
    rows.retain(|row| options.wants_scenario(row.scenario));
    let is_ours = |row: &Row| row.system == System::Ropewalk || row.beside.contains(&System::Ropewalk);
    if rows.is_empty() || !options.carriers.is_empty() && !rows.iter().any(is_ours) {
        let why = "nothing is left to measure: no row has these --systems, --carriers, --rates, --hops and --scenarios";
        return Err(Error::Input(why.into()));
    }
    let tools = Tools::prepare(options, &rows, stopped)?;
    rows.retain(|row| tools.has(row.system));
    if rows.is_empty() {
        return Err(Error::Nothing(tools.notes.join("; ")));
    }
    let (before, note) = findings::watch();
    let mut report = Report {
        experiment: "link".to_owned(),
        machine: machine::describe(),
        versions: tools.versions(),
        cells: Vec::new(),
    };
    let (mut failed, mut complete, mut series) = (Vec::new(), true, Vec::new());
    let runs = options.wanted_runs();
    for (i, row) in rows.iter().enumerate() {
        eprintln!("[{}/{}] {}", i + 1, rows.len(), row.shown());
        match row.measure(&tools, runs) {
            Ok((cells, lines)) => {
                for cell in cells {
                    eprintln!("    {}", outcome::one_line(&cell.metrics));
                    report.cells.push(cell);
                }
                series.extend(lines);
            }
            Err(RunError::Stopped) => {
                complete = false;
                break;
            }
            Err(RunError::Failed(why)) => {
                eprintln!("    FAILED: {why}");
                let (check, scenario) = (row.shown(), row.scenario);
                failed.push(Failed { check, scenario, why });
            }
        }
    }
    let paper = if options.experiment.contains(&Experiment::Pound) {
        crate::kit::paper::rows()
    } else {
        Vec::new()
    };
    let notes = note.into_iter().chain(tools.notes).collect();
    let mut outcome = Outcome::new(report, failed, notes, before, complete, paper);
    outcome.series = series;
    Ok(outcome)
}

/// One line of the plan: a system in a setting, which gives one or more cells.
struct Row {
    experiment: Experiment,
    system: System,
    /// Other systems that are measured in the same runs, if available.
    beside: Vec<System>,
    scenario: &'static str,
    hops: u32,
    /// How it differs from other rows of its system, for people.
    setting: String,
    /// The same by name, with further parameters.
    params: Params,
    /// Executes the run with a given number.
    run: Run,
}

type Measured = (Vec<Cell<Params, Metrics>>, Vec<Series>);
type Run = Box<dyn Fn(&Tools<'_>, u32) -> Result<(Vec<Part>, Timing), RunError>>;

/// Result of one run for one cell.
struct Part {
    /// What is measured.
    check: String,
    /// The system, if not the row's.
    system: Option<System>,
    params: Params,
    values: Values,
    targets: Vec<Target>,
    /// Seconds since the lab came up, and the longest delay of a message sent in that second in ms; for a figure.
    over_time: Vec<[f64; 2]>,
}

impl Part {
    /// The numbers of a flow.
    fn of_flow(leg: &Leg, values: Values, targets: Vec<Target>) -> Part {
        let flow = &leg.flow;
        Part {
            check: format!("flow {}", flow.topic),
            system: None,
            params: Params::from([
                ("topic".into(), json!(flow.topic)),
                ("message_bytes".into(), json!(flow.bytes)),
                ("sent_period_ms".into(), json!(flow.period_us as f64 / 1e3)),
                ("messages".into(), json!(flow.counted)),
            ]),
            values,
            targets,
            over_time: Vec::new(),
        }
    }
}

impl Row {
    fn shown(&self) -> String {
        format!(
            "{} {}: {} {}",
            self.experiment.name(),
            self.scenario,
            self.system.name(),
            self.setting
        )
    }

    /// Executes all runs. Returns a cell for each part, and the first run over time.
    fn measure(&self, tools: &Tools<'_>, runs: u32) -> Result<Measured, RunError> {
        let (mut results, mut tries) = (Vec::new(), 0);
        for run in 0..runs {
            let (parts, timing) = tried(true, &mut tries, || (self.run)(tools, run))?;
            for part in parts.iter().filter(|_| runs > 1) {
                let said = outcome::values_line(&part.values);
                let late = timing.late_p99_us;
                eprintln!(
                    "    run {}, {}: {said} (lab late p99 {late:.0} us)",
                    run + 1,
                    part.check
                );
            }
            results.push((parts, timing));
        }
        let parts = results.iter().map(|r| r.0.len()).min().unwrap_or_default();
        let (mut cells, mut series) = (Vec::new(), Vec::new());
        for i in 0..parts {
            let of_part: Vec<(Values, Timing)> = results
                .iter()
                .map(|(parts, t)| (parts[i].values.clone(), *t))
                .collect();
            let part = &results[0].0[i];
            let mut params = self.params.clone();
            params.extend(part.params.clone());
            for (name, value) in [
                ("experiment", json!(self.experiment.name())),
                ("scenario", json!(self.scenario)),
                ("hops", json!(self.hops)),
                ("setting", json!(self.setting)),
                ("check", json!(part.check)),
                ("runs", json!(runs)),
            ] {
                params.insert(name.into(), value);
            }
            // Only Ropewalk has targets.
            let system = part.system.unwrap_or(self.system);
            let targets = match system {
                System::Ropewalk => part.targets.clone(),
                _ => Vec::new(),
            };
            let source = if targets.is_empty() {
                ""
            } else {
                "docs/guide/bench-link.md"
            };
            let metrics = Metrics::new(&of_part, tries, targets, source, true);
            cells.push(Cell {
                system: system.name().to_owned(),
                params,
                metrics: metrics.ok_or_else(|| RunError::Failed("no run".into()))?,
            });
            if let Some(cell) = cells.last().filter(|_| !part.over_time.is_empty()) {
                series.push(Series {
                    name: format!("{}: {}", part.check, outcome::label(cell)),
                    max_delay_ms: part.over_time.clone(),
                });
            }
        }
        Ok((cells, series))
    }
}
