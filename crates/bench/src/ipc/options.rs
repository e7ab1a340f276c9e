//! The options.

use super::{Language, SYSTEMS, System, all};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Experiment {
    /// Latency by size and number of subscribers at 30 Hz (the TZC paper's Fig. 7).
    Fig7,
    /// Copied payloads per message (Table I).
    Table1,
    /// 4 MiB to 8 subscribers at SCHED_FIFO (Fig. 8).
    Fig8,
    /// Received messages at high rates, and next to a slow subscriber (Fig. 9).
    Fig9,
    /// Round trips between processes that never sleep.
    Spin,
    /// Calls of a service: from a request to its reply.
    Service,
    /// Throughput: as fast as publishing allows.
    Throughput,
    /// Cost of publishing, to subscribers awake and asleep.
    Publish,
    /// Resident and shared memory.
    Memory,
    /// All of these, one after the other.
    All,
}

impl Experiment {
    /// Returns its name in results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Experiment::Fig7 => "fig7",
            Experiment::Table1 => "table1",
            Experiment::Fig8 => "fig8",
            Experiment::Fig9 => "fig9",
            Experiment::Spin => "spin",
            Experiment::Service => "service",
            Experiment::Throughput => "throughput",
            Experiment::Publish => "publish",
            Experiment::Memory => "memory",
            Experiment::All => "all",
        }
    }
}

/// Compare local transports: Ropewalk, the floor of this machine, and other systems.
///
/// Peers are separate programs in the folder `peers`, built when first needed. Each run starts all processes again,
/// systems alternate, and everything runs on this machine. In every system, the publisher fills the payload, then
/// stamps it, then publishes it.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Experiment to run.
    #[arg(long, value_enum, default_value = "fig7")]
    pub experiment: Experiment,
    /// Run fewer cells, 150 messages, one run.
    #[arg(long)]
    pub quick: bool,
    /// Number of runs of each cell and system (default 1 with --quick, else 3).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: Option<u32>,
    /// Measure only these systems. A missing one is then an error.
    #[arg(long, value_parser = System::parser(&SYSTEMS), value_delimiter = ',', value_name = "A,B")]
    pub systems: Vec<System>,
    /// Compare programs in these languages: Ropewalk in each, next to roscpp (cpp) or rospy (python), Ropewalk from
    /// Rust with generated structures, and the floor. `rclpy`, `rcl`: nodes of ROS 2 in Python and in C++ over
    /// `rmw_ropewalk` and over Fast DDS.
    ///
    /// `--systems` takes precedence. Example: `ropewalk bench ipc --quick --language rust,cpp,python`.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "A,B")]
    pub language: Vec<Language>,
    /// Measure only these sizes, such as 4K or 1M (powers of 1024).
    #[arg(long, value_delimiter = ',', value_name = "A,B", value_parser = size)]
    pub sizes: Vec<u64>,
    /// Measure only these numbers of subscribers.
    #[arg(long, value_delimiter = ',', value_name = "A,B", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub subscribers: Vec<u32>,
    /// Number of measured messages in each run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub messages: Option<u32>,
    /// Messages per second, in place of the experiment's rate.
    #[arg(long, value_name = "HZ", value_parser = rate)]
    pub rate: Option<f64>,
    /// Queue depth of each subscriber before it loses the oldest message (default: each system's own).
    ///
    /// In `fig9` with a slow and a fast subscriber, it applies only to the slow one, with 1 as default: the slow
    /// subscriber then always takes the newest message. Example: `ropewalk bench ipc --experiment fig9 --quick
    /// --systems ropewalk,floor --depth 4`. `peers/README.md` lists the systems whose queues cannot lose the oldest
    /// message.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub depth: Option<u32>,
    /// Keep the processors from sleeping, with a loop on each that runs only when it is otherwise idle (SCHED_IDLE).
    ///
    /// A sleeping processor takes 5 or 30 µs to wake, by chance: with this option, a difference of a microsecond
    /// between two systems is visible. It uses full power. Example: `ropewalk bench ipc --quick --runs 5 --awake
    /// --language rust,cpp`.
    #[arg(long)]
    pub awake: bool,
    /// `--json`.
    #[command(flatten)]
    pub json: terminal::json::Json,
    /// Also write the cells to this file.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Draw the experiment's figure into this file (SVG).
    #[arg(long, value_name = "FILE")]
    pub figure: Option<PathBuf>,
    /// Folder of the peers (default: `peers` here or further up).
    #[arg(long, value_name = "FOLDER")]
    pub peers: Option<PathBuf>,
}

impl Options {
    /// Returns the options of an experiment with all other values at their defaults.
    pub fn new(experiment: Experiment) -> Self {
        Options {
            experiment,
            quick: false,
            runs: None,
            systems: Vec::new(),
            language: Vec::new(),
            sizes: Vec::new(),
            subscribers: Vec::new(),
            messages: None,
            rate: None,
            depth: None,
            awake: false,
            json: Default::default(),
            csv: None,
            figure: None,
            peers: None,
        }
    }

    /// Returns the systems to measure, each once.
    pub(super) fn wanted(&self) -> Vec<System> {
        let named = match (&self.systems[..], &self.language[..]) {
            ([], []) => all().filter(|s| !s.is_special()).collect(),
            ([], languages) => {
                let systems = languages.iter().flat_map(|l| l.systems());
                std::iter::once(&System::Floor).chain(systems).copied().collect()
            }
            (systems, _) => systems.to_vec(),
        };
        let mut wanted: Vec<System> = Vec::new();
        for system in named {
            if !wanted.contains(&system) {
                wanted.push(system);
            }
        }
        wanted
    }

    pub(super) fn runs(&self) -> u32 {
        self.runs.unwrap_or(if self.quick { 1 } else { 3 })
    }
}

/// Parses bytes, with K, M or G as powers of 1024. The minimum leaves room for stamp and number, and is the size from
/// which Ropewalk's messages use a data part.
fn size(text: &str) -> Result<u64, String> {
    let problem = || format!("{text:?} is not a size from 256 to 1G: give bytes, or a size such as 4K or 1M");
    let (number, factor) = match text.strip_suffix(['K', 'k', 'M', 'm', 'G', 'g']) {
        Some(number) => match text.chars().last() {
            Some('K' | 'k') => (number, 1 << 10),
            Some('M' | 'm') => (number, 1 << 20),
            _ => (number, 1 << 30),
        },
        None => (text, 1),
    };
    let bytes = number.parse::<u64>().ok().and_then(|n| n.checked_mul(factor));
    bytes.filter(|b| (256..=1 << 30).contains(b)).ok_or_else(problem)
}

fn rate(text: &str) -> Result<f64, String> {
    let good = text
        .parse()
        .ok()
        .filter(|r: &f64| (0.1..=1e5).contains(r) || *r == 0.0);
    good.ok_or_else(|| "give a rate in Hz from 0.1 to 100000, or 0 for as fast as publishing allows".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(size("4K"), Ok(4096));
        assert_eq!(size("1m"), Ok(1 << 20));
        assert_eq!(size("300"), Ok(300));
        for bad in [
            "",
            "K",
            "4T",
            "-1",
            "16",
            "2G",
            "99999999999999999999",
            "18014398509481985K",
            "é",
        ] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn languages_bring_their_systems() {
        let mut options = Options::new(Experiment::Fig7);
        assert_eq!(options.wanted().len(), 10);
        options.language = vec![Language::Cpp, Language::Python, Language::Cpp];
        let names: Vec<_> = options.wanted().into_iter().map(System::name).collect();
        assert_eq!(
            names,
            [
                "floor",
                "ropewalk-typed",
                "ropewalk-cpp",
                "tcpros",
                "ropewalk-python",
                "rospy"
            ]
        );
        for system in options.wanted().into_iter().skip(2) {
            assert!(system.language().is_some_and(|l| options.language.contains(&l)));
        }
        options.systems = vec![System::ImageView, System::ImageView];
        assert_eq!(options.wanted(), [System::ImageView]);
    }

    #[test]
    fn one_name_everywhere() {
        for experiment in Experiment::value_variants() {
            let value = experiment.to_possible_value().expect("shown");
            assert_eq!(value.get_name(), experiment.name());
            let json = serde_json::to_value(experiment).expect("serializes");
            assert_eq!(json, experiment.name());
        }
    }
}
