//! The options.

use crate::kit::error::Error;
use crate::kit::roscpp::Source;
use crate::kit::systems::{System, choice};
use ::link::config::CarrierKind;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// The experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Experiment {
    /// Pound's laser and image (sections VI-A to VI-D), over one and two hops; with the rate set or found; with loss.
    Pound,
    /// Laser and image over each shipped scenario whose medium stays the same: with the rate found by the links beside
    /// the rate set.
    Rates,
    /// More flows and hops (section VI-H), Ropewalk's relays next to the kernel's forwarding, a joystick against a
    /// video, a second robot that saturates the radio.
    Flows,
    /// Throughput of one flow, by message size (Fig. 19), and over a wire that only the hosts limit.
    Bandwidth,
    /// The radio of the sender, or of the relay, is off for five seconds (Table V); the direct path fades next to a
    /// relay.
    Reconnect,
    /// A control loop over the radio together with large messages (section VI-G, Fig. 21).
    Control,
    /// The radio's rate falls from 6 to 1 Mbit/s and returns, without notice to the links.
    DriveAway,
    /// Reliable commands of 64 B and their answers, with a loss of one packet in five in each direction; redundant
    /// messages of 1 KB, with a loss of one in ten in bursts.
    Lossy,
    /// A message of 10 MB over 10 Mbit/s, with a round trip of two seconds and a loss of one packet in five in each
    /// direction.
    Bulk,
    /// Eight robots on one radio.
    Team,
    /// 40 B at 20 Hz together with a file of 20 KB, over a serial line of 115,200 baud.
    Serial,
    /// Pound's laser and image while unauthenticated senders flood both links with handshakes, replays and garbage.
    Flood,
    /// Nodes of rclpy on two hosts: time until all know each other, and bytes on the air. Over `rmw_ropewalk` and a
    /// link, and over Fast DDS.
    Discovery,
    /// Two robots of ROS 2 (rclpy over Fast DDS) and one of ROS 1 (roscpp) commanded from a base of ROS 2: lasers, an image, joysticks, a
    /// service and an action, over links with bridges on each host, and over Fast DDS alone.
    Robots,
}

impl Experiment {
    /// Returns each of the selected experiments once.
    pub(super) fn wanted(asked: &[Experiment]) -> Vec<Experiment> {
        let all = Experiment::value_variants().iter();
        all.filter(|e| asked.contains(e)).copied().collect()
    }

    /// Returns the carriers by which it measures Ropewalk.
    pub(super) fn carriers(self) -> &'static [CarrierKind] {
        use CarrierKind::{Quic, Serial, Tls, Udp};
        match self {
            Experiment::Pound => &[Quic, Udp],
            Experiment::Bandwidth => &[Quic, Tls, Udp],
            Experiment::Serial => &[Serial],
            Experiment::Rates
            | Experiment::Flows
            | Experiment::Reconnect
            | Experiment::Control
            | Experiment::DriveAway
            | Experiment::Lossy
            | Experiment::Bulk
            | Experiment::Team
            | Experiment::Flood
            | Experiment::Discovery
            | Experiment::Robots => &[Quic],
        }
    }

    /// Returns its name in results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Experiment::Pound => "pound",
            Experiment::Rates => "rates",
            Experiment::Flows => "flows",
            Experiment::Bandwidth => "bandwidth",
            Experiment::Reconnect => "reconnect",
            Experiment::Control => "control",
            Experiment::DriveAway => "drive-away",
            Experiment::Lossy => "lossy",
            Experiment::Bulk => "bulk",
            Experiment::Team => "team",
            Experiment::Serial => "serial",
            Experiment::Flood => "flood",
            Experiment::Discovery => "discovery",
            Experiment::Robots => "robots",
        }
    }
}

/// The systems that carry the messages.
pub(crate) const SYSTEMS: [(System, &str); 11] = [
    (System::Ropewalk, "`ropewalk link` on each host"),
    (System::Tcpros, "TCPROS with its defaults"),
    (System::Nodelay, "TCPROS with TCP_NODELAY"),
    (System::Udpros, "UDPROS"),
    (
        System::Mixed,
        "The first flow by UDPROS, the others by TCPROS with TCP_NODELAY: the paper's UDP/NOD",
    ),
    (System::Tcp, "A plain TCP connection; for bulk"),
    (
        System::ZenohTcp,
        "Zenoh with priorities, over TCP: a connection for important messages and one for the others",
    ),
    (System::ZenohUdp, "Zenoh with priorities, over UDP"),
    (System::ZenohQuic, "Zenoh with priorities, over QUIC"),
    (System::RclpyFastdds, "Nodes of rclpy over Fast DDS and UDP"),
    (
        System::DdsZenoh,
        "Nodes of rclpy over Fast DDS, whose messages a bridge on each host passes through Zenoh, as zenoh-plugin-ros2dds does; for `robots`, in a program built with `--features zenoh`",
    ),
];

/// Returns them without their descriptions.
pub(super) fn systems() -> impl Iterator<Item = System> {
    SYSTEMS.into_iter().map(|(system, _)| system)
}

/// The carriers of Ropewalk's datagrams.
const CARRIERS: [(CarrierKind, &str); 4] = [
    (CarrierKind::Quic, "QUIC datagrams, encrypted and authenticated"),
    (
        CarrierKind::Tls,
        "Datagrams in a TLS stream, encrypted and authenticated; only over wires",
    ),
    (CarrierKind::Udp, "Plain UDP"),
    (CarrierKind::Serial, "A serial line"),
];

/// Publishers and subscribers at the ends of Ropewalk's links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ends {
    /// Processes on the hosts' buses.
    Bus,
    /// Nodes of roscpp, with a roscore on each host and `ropewalk ros1` between it and the bus; for `pound` and `flows`.
    Ros,
    /// Nodes of rclpy over `rmw_ropewalk`; also for `reconnect`.
    Ros2,
    /// Nodes of rclpy over Fast DDS, with `ropewalk ros2` on each host between them and the bus; for the same
    /// experiments as `ros2`.
    Dds,
}

impl Ends {
    pub(super) fn name(self) -> &'static str {
        match self {
            Ends::Bus => "bus",
            Ends::Ros => "ros",
            Ends::Ros2 => "ros2",
            Ends::Dds => "dds",
        }
    }
}

/// How links know the radio's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rate {
    /// Their configuration sets it.
    Set,
    /// They measure it.
    Auto,
}

impl Rate {
    /// Returns the variant for a configuration's word.
    pub(super) fn of(word: &str) -> Rate {
        if word == "auto" { Rate::Auto } else { Rate::Set }
    }

    /// The same for results: a wire has no rate.
    pub(super) fn said(word: &str) -> &'static str {
        match word {
            "unlimited" => "unlimited",
            _ => Rate::of(word).name(),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Rate::Set => "set",
            Rate::Auto => "auto",
        }
    }
}

/// Compare Ropewalk's link with other systems, in the lab
///
/// Each run brings up a lab, starts `ropewalk link` (or another system) on each
/// of its hosts, sends flows from one host to the other, and reports jitter,
/// delay and delivery with the lab's own lateness. A run in which the lab was
/// late is repeated, up to three times. Rows that miss their targets give exit
/// code 1. It has the requirements of `ropewalk lab up`; other systems need
/// their peers (`peers/`, built when first needed). Keep the machine quiet.
///
///   ropewalk bench link --experiment pound --quick
///   ropewalk bench link --experiment pound --systems ropewalk --hops 1 \
///       --runs 5 --json
///   ropewalk bench link --experiment pound --figure pound.svg --csv pound.csv
#[derive(Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct Options {
    /// Experiments to measure; several are measured one after the other.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "pound",
        value_name = "A,B"
    )]
    pub experiment: Vec<Experiment>,
    /// Measure with shorter runs, and two of each instead of five.
    #[arg(long)]
    pub quick: bool,
    /// Measure only these systems.
    #[arg(
        long,
        alias = "system",
        value_parser = System::parser(&SYSTEMS),
        value_delimiter = ',',
        value_name = "A,B"
    )]
    pub systems: Vec<System>,
    /// Measure only these carriers of Ropewalk.
    #[arg(
        long,
        alias = "carrier",
        value_parser = choice(&CARRIERS, CarrierKind::name),
        value_delimiter = ',',
        value_name = "A,B"
    )]
    pub carriers: Vec<CarrierKind>,
    /// Measure only rows of Ropewalk in which its links know the radio's rate (`set`) or find it (`auto`).
    #[arg(long, alias = "rate", value_enum, value_delimiter = ',', value_name = "A,B")]
    pub rates: Vec<Rate>,
    /// Measure only rows with this number of hops.
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    pub hops: Vec<u32>,
    /// Measure only the rows of these scenarios, by their names in the table.
    #[arg(long, alias = "scenario", value_delimiter = ',', value_name = "A,B")]
    pub scenarios: Vec<String>,
    /// Source that releases the messages: an absolute schedule, or roscpp's timers.
    #[arg(long, value_enum, default_value = "periodic")]
    pub source: Source,
    /// Publishers and subscribers at the ends of Ropewalk's links.
    #[arg(long, value_enum, default_value = "bus")]
    pub ends: Ends,
    /// Number of runs of each row, of different phase; the median is reported. Default 5, with --quick 2.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: Option<u32>,
    /// `--json`.
    #[command(flatten)]
    pub json: terminal::json::Json,
    /// Write a line for each cell and metric into this file.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Draw jitter and delay of the flows into this file (SVG).
    #[arg(long, value_name = "FILE")]
    pub figure: Option<PathBuf>,
    /// Write the raw results of each run into files of this folder: the arrival of every message, the lab's numbers,
    /// and the last state that the links printed.
    #[arg(long, value_name = "FOLDER")]
    pub keep: Option<PathBuf>,
    /// Folder of the peers (default: `peers` here or further up).
    #[arg(long, value_name = "FOLDER")]
    pub peers: Option<PathBuf>,
}

impl Options {
    /// Returns whether a system is selected.
    pub(super) fn wants(&self, system: System) -> bool {
        self.systems.is_empty() || self.systems.contains(&system)
    }

    /// Returns whether one of these systems was selected by name.
    pub(super) fn names(&self, which: impl Fn(System) -> bool) -> bool {
        self.systems.iter().any(|s| which(*s))
    }

    /// Refuses a carrier that none of the selected experiments measures.
    pub(super) fn check_carriers(&self) -> Result<(), Error> {
        let has = |carrier: CarrierKind| move |e: &&Experiment| e.carriers().contains(&carrier);
        let unused = |c: &&CarrierKind| !self.experiment.iter().any(|e| has(**c)(&e));
        let Some(unused) = self.carriers.iter().find(unused) else {
            return Ok(());
        };
        let able = Experiment::value_variants().iter().filter(has(*unused));
        let able: Vec<_> = able.map(|e| e.name()).collect();
        let asked: Vec<_> = self.experiment.iter().map(|e| e.name()).collect();
        let carrier = unused.name();
        Err(Error::Input(format!(
            "--carriers {carrier}: {} does not measure it: give --experiment {}",
            asked.join(","),
            able.join(" or ")
        )))
    }

    /// Returns the selected carriers of those that an experiment has.
    pub(super) fn carriers_of(&self, experiment: Experiment) -> Vec<CarrierKind> {
        let all = experiment.carriers();
        let wanted = |c: &&CarrierKind| self.carriers.is_empty() || self.carriers.contains(c);
        all.iter().filter(wanted).copied().collect()
    }

    pub(super) fn wants_scenario(&self, scenario: &str) -> bool {
        self.scenarios.is_empty() || self.scenarios.iter().any(|s| s == scenario)
    }

    pub(super) fn wants_rate(&self, word: &str) -> bool {
        self.rates.is_empty() || self.rates.contains(&Rate::of(word))
    }

    pub(super) fn wants_hops(&self, hops: u32) -> bool {
        self.hops.is_empty() || self.hops.contains(&hops)
    }

    pub(super) fn wanted_runs(&self) -> u32 {
        self.runs.unwrap_or(if self.quick { 2 } else { 5 })
    }
}
