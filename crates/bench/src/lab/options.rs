//! The options.

use super::{Source, Transport};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// The experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    /// The lab, compared with the literature's closed forms and its own settings.
    Validate,
    /// Pound's comparison (sections VI-C and VI-D) with real roscpp; needs ROS 1.
    Pound,
    /// Both.
    All,
}

/// Validate the lab, and rerun Pound's comparison in it
///
/// Rows cover goodput, delay, loss, fairness, the lab's own lateness, and 64
/// hosts. Each row has a target, measured values and a verdict; a row that
/// misses its target gives exit code 1. A run in which the lab itself was late
/// is repeated, up to three times. It has the requirements of
/// `ropewalk lab up`, and needs iperf3 and ping; `pound` also needs ROS 1
/// (peers/flow, built when first needed). Keep the machine quiet.
///
///   ropewalk bench lab --quick
///   ropewalk bench lab --scenarios wifi-1hop,loss-20 --json
///   ropewalk bench lab --experiment pound --scenarios wifi-1hop --figure pound.svg
#[derive(Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct Options {
    /// Experiment to run.
    #[arg(long, value_enum, default_value = "validate")]
    pub experiment: Experiment,
    /// Measure with shorter runs.
    #[arg(long)]
    pub quick: bool,
    /// Measure only the rows of these scenarios, by their names in the table.
    #[arg(long, alias = "scenario", value_delimiter = ',', value_name = "A,B")]
    pub scenarios: Vec<String>,
    /// Measure only these transports of roscpp for Pound's flows: tcpros, nodelay, udpros, mixed (laser UDPROS, image
    /// NODELAY).
    #[arg(long, alias = "system", value_enum, value_delimiter = ',', value_name = "A,B")]
    pub systems: Vec<Transport>,
    /// Source that paces Pound's flows: an absolute schedule, or roscpp's own timers.
    #[arg(long, value_enum, default_value = "periodic")]
    pub source: Source,
    /// Number of runs of each row; the median is reported.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: u32,
    /// `--json`.
    #[command(flatten)]
    pub json: terminal::json::Json,
    /// Write a line for each cell and metric into this file.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Draw jitter and delay of Pound's flows into this file (SVG).
    #[arg(long, value_name = "FILE")]
    pub figure: Option<PathBuf>,
    /// Folder of the peers (default: `peers` here or further up).
    #[arg(long, value_name = "FOLDER")]
    pub peers: Option<PathBuf>,
}

impl Options {
    /// Returns whether rows of that scenario are selected.
    pub(super) fn wants(&self, scenario: &str) -> bool {
        self.scenarios.is_empty() || self.scenarios.iter().any(|s| s == scenario)
    }

    /// Returns whether Pound's comparison is selected.
    pub(super) fn compares(&self) -> bool {
        self.experiment != Experiment::Validate
    }

    pub(super) fn wanted_systems(&self) -> Vec<Transport> {
        let all = Transport::value_variants();
        let wanted = |t: &&Transport| self.systems.is_empty() || self.systems.contains(t);
        all.iter().filter(wanted).copied().collect()
    }

    pub(super) fn validates(&self) -> bool {
        self.experiment != Experiment::Pound
    }
}
