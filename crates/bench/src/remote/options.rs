//! The options.

use crate::kit::systems::System;
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::path::PathBuf;

/// The systems that command the robot.
pub(crate) const SYSTEMS: [(System, &str); 4] = [
    (System::BareSockets, "Plain TCP sockets, on loopback: the floor"),
    (
        System::RopewalkLink,
        "Ropewalk's `Robot` and `Controller` over links",
    ),
    (System::RopewalkZmq, "The same over ZeroMQ"),
    (System::Ros1, "roscpp: services and topics"),
];

/// The network between robot and controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Network {
    /// This host's loopback, without a lab.
    Loopback,
    /// A local network as in the paper's Table 2.
    Default,
    /// A loss of one packet in five in each direction, at round trips of 20 ms and 2 s.
    #[value(name = "loss-20")]
    Loss20,
    /// A delay of 2000 ms from the controller to the robot.
    #[value(name = "delay-2000")]
    Delay2000,
    /// A radio of 6 Mbit/s, for `file`.
    #[value(name = "wifi-6")]
    Wifi6,
}

impl Network {
    /// Returns its name in results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Network::Loopback => "loopback",
            Network::Default => "default",
            Network::Loss20 => "loss-20",
            Network::Delay2000 => "delay-2000",
            Network::Wifi6 => "wifi-6",
        }
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
pub enum What {
    /// A twist, from sending it until its execution is known (the paper's Fig. 1).
    #[serde(rename = "twist")]
    Twist,
    /// 1 MB of telemetry there and back (Fig. 2 and 3).
    #[value(name = "telemetry-1mb")]
    #[serde(rename = "telemetry-1mb")]
    Telemetry1Mb,
    /// 10 MB of telemetry there and back.
    #[value(name = "telemetry-10mb")]
    #[serde(rename = "telemetry-10mb")]
    Telemetry10Mb,
    /// 10 MB of telemetry from the robot to the controller.
    #[value(name = "telemetry-10mb-oneway")]
    #[serde(rename = "telemetry-10mb-oneway")]
    Telemetry10MbOneway,
    /// Twists while another controller fetches a file of 200 MB.
    #[serde(rename = "file")]
    File,
}

impl What {
    /// Returns its name in results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            What::Twist => "twist",
            What::Telemetry1Mb => "telemetry-1mb",
            What::Telemetry10Mb => "telemetry-10mb",
            What::Telemetry10MbOneway => "telemetry-10mb-oneway",
            What::File => "file",
        }
    }

    /// Returns the bytes of telemetry.
    pub(super) fn bytes(self) -> u64 {
        match self {
            What::Twist | What::File => 0,
            What::Telemetry1Mb => 1_000_000,
            What::Telemetry10Mb | What::Telemetry10MbOneway => 10_000_000,
        }
    }
}

/// Measure commanding a robot over links, ZeroMQ and ROS 1
///
/// The measurements are those of the Robot Remote Control paper's Figures 1 to
/// 3: the time of a twist until its execution is known, and of 1 and 10 MB of
/// telemetry there and back. They run on this host's loopback, and in the lab
/// on the paper's networks, whose properties are measured first (its Table 2).
/// Next to each number are those of the paper and upstream, the theoretical
/// minimum (delay + size / rate), and on loopback bare sockets. `twist` also
/// reports how many commands were decided, and executed; `file` shows the
/// effect of another controller's file transfer on twists.
///
/// Rows that miss their targets give exit code 1. All networks except
/// `loopback` have the requirements of `ropewalk lab up`, and need ping and
/// iperf3; `ros1` needs ROS 1 (peers/remote, built when first needed). Keep the
/// machine quiet: on loopback, wake-ups of threads take most of the time.
///
///   ropewalk bench remote --quick                        # under 5 minutes
///   ropewalk bench remote --networks loopback --json     # no lab, no root
///   ropewalk bench remote --what twist --networks loss-20 \
///       --systems ropewalk-link
///   ropewalk bench remote --figure remote.svg --csv remote.csv
/// The last one makes 200 runs of everything, which takes a day.
#[derive(Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct Options {
    /// Measurements to run (default: all).
    #[arg(long, value_enum, value_delimiter = ',', value_name = "A,B")]
    pub what: Vec<What>,
    /// Measure only these networks.
    #[arg(
        long,
        alias = "network",
        value_enum,
        value_delimiter = ',',
        value_name = "A,B"
    )]
    pub networks: Vec<Network>,
    /// Measure only these systems; bare sockets are measured wherever they are a floor.
    #[arg(
        long,
        alias = "system",
        value_parser = System::parser(&SYSTEMS),
        value_delimiter = ',',
        value_name = "A,B"
    )]
    pub systems: Vec<System>,
    /// Reduce the number of long runs, and skip some rows of other systems.
    #[arg(long)]
    pub quick: bool,
    /// Number of runs of each row, instead of 200, or of the number with --quick.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub runs: Option<u64>,
    /// `--json`.
    #[command(flatten)]
    pub json: terminal::json::Json,
    /// Write a line for each cell and metric into this file.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Draw the paper's Figures 1 to 3 into this file (SVG).
    #[arg(long, value_name = "FILE")]
    pub figure: Option<PathBuf>,
    /// Write the raw results of each run into files of this folder: every time, the lab's numbers, and the last state
    /// that the links printed.
    #[arg(long, value_name = "FOLDER")]
    pub keep: Option<PathBuf>,
    /// Folder of the peers (default: `peers` here or further up).
    #[arg(long, value_name = "FOLDER")]
    pub peers: Option<PathBuf>,
}

impl Options {
    /// Returns whether a row is selected.
    pub(super) fn wants(&self, network: Network, what: What, system: System) -> bool {
        let floor = system == System::BareSockets;
        (self.networks.is_empty() || self.networks.contains(&network))
            && (self.what.is_empty() || self.what.contains(&what))
            && (self.systems.is_empty() || floor || self.systems.contains(&system))
    }

    /// Returns whether a system was selected by name.
    pub(super) fn names(&self, system: System) -> bool {
        self.systems.contains(&system)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn names_are_those_of_the_results() {
        for network in Network::value_variants() {
            let shown = network.to_possible_value().expect("shown");
            assert_eq!(shown.get_name(), network.name());
        }
        for what in What::value_variants() {
            let shown = what.to_possible_value().expect("shown");
            assert_eq!(shown.get_name(), what.name());
            assert_eq!(
                serde_json::to_string(what).expect("JSON"),
                format!("{:?}", what.name())
            );
        }
    }

    #[test]
    fn selected_measurements_are_wanted() {
        let parse = |words: &[&str]| Line::try_parse_from([&["bench"], words].concat()).map(|l| l.options);
        let all = parse(&[]).expect("no option is required");
        assert!(all.wants(Network::Loopback, What::File, System::Ros1));
        let some = parse(&[
            "--networks",
            "loss-20,delay-2000",
            "--what",
            "twist",
            "--systems",
            "ros1",
        ]);
        let some = some.expect("is right");
        assert!(some.wants(Network::Delay2000, What::Twist, System::Ros1));
        assert!(some.wants(Network::Loss20, What::Twist, System::BareSockets));
        assert!(!some.wants(Network::Loopback, What::Twist, System::Ros1));
        assert!(!some.wants(Network::Loss20, What::File, System::Ros1));
        assert!(!some.wants(Network::Loss20, What::Twist, System::RopewalkZmq));
        for bad in [
            &["--networks", "moon"][..],
            &["--systems", "rrc"],
            &["--what", "dance"],
            &["--runs", "0"],
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
