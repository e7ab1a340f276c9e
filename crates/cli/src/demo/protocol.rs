//! Messages between the demo and its processes, one JSON line each: reports on a part's standard output, a single
//! command on its standard input. End of input means stop, so that no part outlives the demo.

use serde::{Deserialize, Serialize};
use stats::{Drops, FlowMetrics};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The line that lets the publisher start.
pub(crate) const GO: &str = "go";

/// A part of the demo; several may share a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Part {
    /// Recording → the robot's bus.
    Publisher,
    /// The robot's bus → radio.
    RobotLink,
    /// The model of a radio, between loopback sockets.
    Radio,
    /// Radio → the base's bus.
    BaseLink,
    /// The base's bus → statistics.
    Subscriber,
}

impl Part {
    pub(crate) const ALL: [Part; 5] = [
        Part::Publisher,
        Part::RobotLink,
        Part::Radio,
        Part::BaseLink,
        Part::Subscriber,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Part::Publisher => "publisher",
            Part::RobotLink => "robot-link",
            Part::Radio => "radio",
            Part::BaseLink => "base-link",
            Part::Subscriber => "subscriber",
        }
    }
}

/// Parameters of one run, for every part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    /// Folder of this run; it holds the buses of both hosts.
    pub(crate) work: PathBuf,
    pub(crate) recording: PathBuf,
    pub(crate) seconds: f64,
    /// The radio's rate in bit/s.
    pub(crate) rate: u64,
    pub(crate) hops: u8,
    pub(crate) fifo: bool,
    pub(crate) seed: u64,
    /// The run's own network 127.a.b.0/24, so that concurrent runs do not meet.
    pub(crate) net: [u8; 2],
    pub(crate) topics: BTreeMap<String, TopicPlan>,
}

/// How a topic is sent over the radio.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TopicPlan {
    pub(crate) type_name: String,
    pub(crate) priority: u8,
    pub(crate) depth: u16,
    /// Only in the run by priority: first in, first out has no deadlines.
    pub(crate) deadline: Option<Duration>,
    /// Mean size in bytes.
    pub(crate) bytes: f64,
}

impl Spec {
    /// Addresses of the robot's link, the base's link, and the two sides of the radio.
    pub(crate) fn address(&self, host: u8) -> SocketAddr {
        SocketAddr::from(([127, self.net[0], self.net[1], host], 7400))
    }
}

pub(crate) const ROBOT: u8 = 1;
pub(crate) const BASE: u8 = 2;
pub(crate) const AIR_AT_ROBOT: u8 = 3;
pub(crate) const AIR_AT_BASE: u8 = 4;

/// A part's report.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Report {
    /// The part works.
    Ready { part: Part, scheduling: String },
    /// The part cannot continue.
    Failed {
        part: Part,
        message: String,
        bad_input: bool,
    },
    /// The publisher's counts so far.
    Published {
        topics: BTreeMap<String, Sent>,
        done: bool,
    },
    /// A link's counts so far.
    Link {
        part: Part,
        connected: bool,
        topics: BTreeMap<String, Drops>,
    },
    /// The radio's counts so far.
    Radio(RadioState),
    /// Messages that arrived so far.
    Received { topics: BTreeMap<String, Arrived> },
}

/// Counts of the radio.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RadioState {
    pub(crate) delivered: u64,
    pub(crate) drops: Drops,
    pub(crate) air_percent: f64,
    pub(crate) late_p99_us: f64,
    pub(crate) stalls: u64,
    /// Whether its timing can be trusted.
    pub(crate) good: bool,
}

/// Messages of a topic published on the robot's bus.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sent {
    pub(crate) messages: u64,
}

/// Messages of a topic taken from the base's bus.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Arrived {
    /// The demo fills in `sent` and the values computed from it.
    pub(crate) metrics: FlowMetrics,
    /// Rate of the last second, in Hz.
    pub(crate) recent_hz: f64,
    /// Mean delay of the last second.
    pub(crate) recent_delay_ms: f64,
    /// Added jitter of the last second.
    pub(crate) recent_jitter_ms: f64,
    /// Messages whose ROS 1 bytes equal those of the recording, in its order.
    pub(crate) equal: u64,
    /// Messages whose bytes differ, or that arrived out of order or twice.
    pub(crate) unequal: u64,
    /// Messages not compared yet.
    pub(crate) unchecked: u64,
    /// Losses between the bus and the subscriber.
    pub(crate) drops: Drops,
    /// Cumulative distribution of delays (ns).
    pub(crate) cumulative: Vec<(u64, f64)>,
}
