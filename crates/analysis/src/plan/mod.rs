//! Predicts whether a system fits before it is built (`ropewalk plan`).
//!
//! Delays and losses over radios and wires are simulated with the link's own protocol over a model of the medium, in
//! virtual time. The costs of hosts come from a calibration of `bench model`, or from defaults. A fleet is simulated in
//! the same way, with as many stations on each channel as robots share an access point.

mod advice;
mod air;
mod host;
mod outcome;
mod simulate;
mod system;

pub use advice::{BreaksFirst, Change};
pub use host::HostCosts;
pub use outcome::{FleetFigures, Outcome};
pub use simulate::{Effort, Simulated, TopicFigures, simulate};
pub use system::{Fleet, Kind, Known, Medium, Reliability, System, SystemError, Topic, Trace};

use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Predict whether a system of robots will work, before it is built
///
/// SYSTEM.yaml lists hosts, radios and wires, and topics with their sizes and
/// rates:
///
///   hosts: [robot, base]
///   media:
///     - {name: wifi, radio: 6Mbit/s}
///   topics:
///     - name: /scan
///       from: robot
///       to: base
///       bytes: 2631
///       hz: 30
///       priority: 100
///       deadline: 13ms
///     - {name: /camera, from: robot, to: base, bytes: 77kB, hz: 6.67,
///        depth: 2}
///
/// Prints each topic's delay and delivery ratio, what breaks first as rates
/// grow, what would help, and the confidence. Nothing is sent: the link's own
/// protocol runs over a model of the medium in virtual time. `recording: FILE`
/// takes sizes and times from a bag or MCAP file (`simulated`: the demo's
/// robot), and `fleet: {host: robot, robots: 200, access_points: 12}`
/// multiplies one host. The guide (docs/guide/plan.md) explains every key.
#[derive(Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct Options {
    /// The system.
    #[arg(value_name = "SYSTEM.yaml")]
    pub system: PathBuf,
    /// Costs of the hosts: the JSON of `ropewalk bench model` (default: built-in estimates).
    #[arg(long, value_name = "FILE")]
    pub machine: Option<PathBuf>,
    /// Simulated seconds, in each run.
    #[arg(long, default_value_t = 20.0, value_parser = seconds)]
    pub seconds: f64,
    /// Number of runs, each with another random seed; they give the confidence of the delays.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: u32,
    /// Only report whether the system fits, not what breaks first or would help.
    #[arg(long)]
    pub brief: bool,
    /// `--json`.
    #[command(flatten)]
    pub json: terminal::json::Json,
    /// Seed of the first run.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

fn seconds(text: &str) -> Result<f64, String> {
    let good = text.parse().ok().filter(|s: &f64| (0.5..=3600.0).contains(s));
    good.ok_or_else(|| "give 0.5 to 3600 seconds".into())
}

/// Plans a system; `stopped` is checked between trials.
///
/// # Errors
/// If the protocol or the medium refuses the system.
pub fn plan(
    system: &System,
    costs: &HostCosts,
    options: &Options,
    stopped: &dyn Fn() -> bool,
) -> Result<Outcome, String> {
    let robots = system
        .fleet
        .as_ref()
        .map_or(1, |f| f.robots.div_ceil(f.access_points) as usize);
    let effort = Effort {
        runs: options.runs,
        span: Duration::from_secs_f64(options.seconds),
        seed: options.seed,
    };
    let simulated = simulate(system, costs, 1.0, robots, effort)?;
    let mut outcome = Outcome::new(system, costs, simulated, effort);
    if options.brief {
        return Ok(outcome);
    }
    outcome.breaks_first = Some(advice::breaks_first(system, costs, robots, stopped)?);
    outcome.changes = advice::changes(system, costs, &outcome.simulated, robots, stopped)?;
    if let Some(fleet) = &system.fleet {
        let most = advice::most_robots(system, costs, robots, stopped)?;
        outcome.fleet = Some(FleetFigures::new(fleet, robots, most));
    }
    Ok(outcome)
}
