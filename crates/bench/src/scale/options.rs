//! The options.

use super::plan::Plan;
use super::{Medium, SYSTEMS, System, Topology, system};
use crate::kit::error::Error;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Measure how many nodes, messages and bytes a system can carry
///
/// The experiments are those of "Scalability in ROS". Half of the nodes send,
/// the others send messages back; round trips are measured on the sender's
/// clock. Every node is a process of its own. Experiments: 1 rates of an
/// 11-byte text, 2 fresh and warm hosts, 3 CPU share, 4 Ethernet and Wi-Fi,
/// 5 and 6 the same with laser scans and images, 7 up to 256 nodes, 8 the same
/// on real machines (see `ropewalk bench agent --help`, which also runs the
/// others there), 9 up to eight hosts, all to all. Each ends with the highest
/// load that every system sustains: 99.9 % delivered, 100 ms on average, and
/// the schedule kept.
///
/// Examples:
///   ropewalk bench scale --experiment 1 --quick
///   ropewalk bench scale --experiment 7 --quick \
///       --systems ropewalk,roscpp,rospy --media host
///   ropewalk bench scale --experiment 5 --out scale-5
/// Run the last one again to resume where it stopped.
#[derive(Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct Options {
    /// Experiments to run, 1 to 9.
    #[arg(long, value_delimiter = ',', value_name = "N", required = true, value_parser = clap::value_parser!(u32).range(1..=9))]
    pub experiment: Vec<u32>,
    /// Measure for minutes instead of hours: fewer points, seconds at each, two runs.
    #[arg(long)]
    pub quick: bool,
    /// Measure only these systems. A missing one is then an error.
    #[arg(long, value_parser = System::parser(&SYSTEMS), value_delimiter = ',', value_name = "A,B")]
    pub systems: Vec<System>,
    /// Measure only on these media, in place of the experiment's.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "A,B")]
    pub media: Vec<Medium>,
    /// Measure only these rates of a sender, in Hz; the search for the highest load goes no higher.
    #[arg(long, value_delimiter = ',', value_name = "HZ", value_parser = rate)]
    pub hz: Vec<f64>,
    /// Measure only these numbers of nodes, senders and echoes together (experiment 9: on each host).
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = nodes)]
    pub nodes: Vec<u32>,
    /// Measure only these numbers of hosts, for experiments with more than one.
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = hosts)]
    pub hosts: Vec<u32>,
    /// Measure only these message sizes, in bytes: 11 is a text, 4250 a laser scan, 308000 an image; other sizes are
    /// one of the three types.
    #[arg(long, value_delimiter = ',', value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..=1 << 26))]
    pub bytes: Vec<u64>,
    /// Measure only these shares of each host's processors, in percent (by a cgroup's quota, in periods of 1 ms).
    #[arg(long, value_delimiter = ',', value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub cpu: Vec<u32>,
    /// Topology of senders and echoes, in place of the experiment's.
    #[arg(long, value_enum)]
    pub topology: Option<Topology>,
    /// Number of runs of each point (default 2 with --quick, else the experiment's).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: Option<u32>,
    /// Number of messages of each sender (default the experiment's).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..=10_000_000))]
    pub messages: Option<u32>,
    /// Also count system calls: in separate runs under strace, for the first rate of each size and up to 8 nodes on one
    /// host.
    #[arg(long)]
    pub calls: bool,
    /// Also sample processor time by function: in separate runs under perf, for the highest rate of each size, number
    /// of nodes and medium.
    #[arg(long)]
    pub profile: bool,
    /// Do not search for the highest load.
    #[arg(long, conflicts_with = "knees_only")]
    pub no_knees: bool,
    /// Only search for the highest load.
    #[arg(long)]
    pub knees_only: bool,
    /// Keep raw data and results in this folder (`id,sent_ns,recv_ns` rows, for `ropewalk bench analyze`); existing
    /// results are not measured again.
    #[arg(long, visible_alias = "resume", value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// `--json`.
    #[command(flatten)]
    pub json: terminal::json::Json,
    /// Also write the cells to this file.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Draw round trips by rate and number of nodes into this file (SVG).
    #[arg(long, value_name = "FILE")]
    pub figure: Option<PathBuf>,
    /// Folder of the peers (default: `peers` here or further up).
    #[arg(long, value_name = "FOLDER")]
    pub peers: Option<PathBuf>,
    /// Number of real machines, of `ropewalk bench agent`.
    #[arg(skip)]
    pub machines: u32,
}

impl Options {
    /// Returns the options of an experiment with all other values at their defaults.
    pub fn new(experiment: u32) -> Self {
        Options {
            experiment: vec![experiment],
            quick: false,
            systems: Vec::new(),
            media: Vec::new(),
            hz: Vec::new(),
            nodes: Vec::new(),
            hosts: Vec::new(),
            bytes: Vec::new(),
            cpu: Vec::new(),
            topology: None,
            runs: None,
            messages: None,
            calls: false,
            profile: false,
            no_knees: false,
            knees_only: false,
            out: None,
            json: Default::default(),
            csv: None,
            figure: None,
            peers: None,
            machines: 0,
        }
    }

    /// Returns the selected systems, or all.
    pub(super) fn wanted(&self) -> Vec<System> {
        if self.systems.is_empty() {
            return system::all().collect();
        }
        self.systems.clone()
    }

    /// Checks that clap cannot do.
    pub(super) fn check(&self) -> Result<(), Error> {
        let whole = |e: &u32| *e == 9 || self.nodes.iter().all(|n| n.is_multiple_of(2));
        if !self.experiment.iter().all(whole) {
            return Err(Error::Input(
                "--nodes: give even numbers: half send, half echo".into(),
            ));
        }
        if self.machines == 0 {
            return Ok(());
        }
        if !self.media.iter().all(|m| m.is_real()) {
            return Err(Error::Input(
                "--media: everything runs on the named machines: omit it, or give machines or machines-wired"
                    .into(),
            ));
        }
        if self.hosts.iter().any(|n| *n > self.machines) {
            return Err(Error::Input(format!(
                "--hosts: there are {} machines",
                self.machines
            )));
        }
        if self.calls {
            return Err(Error::Input(
                "--calls: system calls are counted on one host, without `bench agent`".into(),
            ));
        }
        if self.profile {
            return Err(Error::Input(
                "--profile: processor time is sampled on this machine, without `bench agent`".into(),
            ));
        }
        Ok(())
    }

    /// Returns whether real machines are needed but not given.
    pub(super) fn lacks_machines(&self, plan: &Plan) -> bool {
        let sweeps = plan.sweeps.iter().map(|s| &s.base);
        let mut points = plan.points.iter().chain(sweeps);
        self.machines == 0 && points.any(|p| p.medium.is_real())
    }

    /// Returns how long after the last message a log closes.
    pub(super) fn linger(&self) -> Duration {
        Duration::from_secs(if self.quick { 1 } else { 5 })
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let good = text.parse().ok().filter(|r: &f64| (0.1..=1e6).contains(r));
    good.ok_or_else(|| "give a rate from 0.1 to 1000000 Hz".into())
}

fn nodes(text: &str) -> Result<u32, String> {
    let good = text.parse().ok().filter(|n: &u32| (1..=1024).contains(n));
    good.ok_or_else(|| "give a number from 1 to 1024".into())
}

fn hosts(text: &str) -> Result<u32, String> {
    let good = text
        .parse()
        .ok()
        .filter(|n: &u32| (2..=64).contains(n) && n.is_multiple_of(2));
    good.ok_or_else(|| "give an even number from 2 to 64: half send, half echo".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_must_be_whole() {
        assert_eq!((nodes("8"), hosts("2")), (Ok(8), Ok(2)));
        for bad in ["0", "-2", "x", "4096"] {
            assert!(nodes(bad).is_err() && hosts(bad).is_err(), "{bad}");
        }
        let mut options = Options::new(9);
        options.nodes = vec![1];
        assert!(options.check().is_ok() && hosts("3").is_err());
        options.experiment = vec![7, 9];
        assert!(options.check().is_err());
        options.experiment = vec![7];
        options.nodes.clear();
        options.machines = 2;
        assert!(options.check().is_ok());
        options.hosts = vec![4];
        assert!(
            options
                .check()
                .is_err_and(|e| e.to_string().contains("2 machines"))
        );
        options.hosts.clear();
        options.media = vec![Medium::MachinesWired];
        assert!(options.check().is_ok());
        options.profile = true;
        assert!(
            options
                .check()
                .is_err_and(|e| e.to_string().contains("--profile"))
        );
        options.media = vec![Medium::Veth];
        assert!(options.check().is_err_and(|e| e.to_string().contains("--media")));
        assert!(rate("0").is_err() && rate("inf").is_err() && rate("0.5") == Ok(0.5));
    }
}
