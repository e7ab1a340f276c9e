//! What one run gave, and what runs come to.

use super::point::Point;
use super::profile::Profile;
use super::statistics::{OverRuns, Trips};
use super::{System, Topology};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is sustained: so much is delivered, and the mean is no longer.
pub(super) const DELIVERY: f64 = 0.999;
const MEAN_MS: f64 = 100.0;
/// The least of the schedule's rate that a sender must have kept: otherwise it was not sent what is measured.
pub(super) const SCHEDULE: f64 = 0.98;

/// What one run gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) trips: Trips,
    /// Of all messages that were to be sent, by how much the senders kept to their rate.
    pub(super) schedule: f64,
    pub(super) refused: u64,
    /// Messages sent, those before counting included, with the answers of each.
    pub(super) all: u64,
    /// By part: sender, echo, link.
    pub(super) cpu_s: BTreeMap<String, f64>,
    pub(super) switches: u64,
    pub(super) memory_kib: u64,
    /// While messages were sent: the thread that most wanted a processor.
    pub(super) busiest: Option<Busiest>,
    /// Share of all processors that were in use by anything on this machine, and that other guests took.
    pub(super) host_busy: f64,
    pub(super) host_steal: f64,
    /// By place and reason.
    pub(super) drops: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) wire: Option<Wire>,
    /// The link in which most messages waited.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) held: Option<Held>,
    /// The process in whose sockets most waited.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) sockets: Option<InSockets>,
    #[serde(default)]
    pub(super) lost: Lost,
    /// Where processor time went, in a run that sampled it.
    #[serde(skip)]
    pub(super) profile: Option<Profile>,
}

/// Messages that waited in a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Held {
    /// Its host.
    pub(super) host: String,
    /// How many bytes there were at most.
    pub(super) bytes: u64,
    /// The same in messages.
    pub(super) messages: u64,
}

/// Bytes that waited in the sockets of one process, just before the last messages were sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct InSockets {
    /// Which part the process belongs to.
    pub(super) part: String,
    /// Sent by it, and not acknowledged yet.
    pub(super) to_send: u64,
    /// Received, and not read by it yet.
    pub(super) to_read: u64,
}

impl InSockets {
    pub(super) fn most(&self) -> u64 {
        self.to_send.max(self.to_read)
    }
}

/// What kernels lost while messages were sent. A system may send it again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Lost {
    /// Datagrams that came to a socket whose buffer was full.
    pub(super) datagrams: u64,
    /// Frames that came to a device whose queue was full.
    pub(super) frames: u64,
    /// Fragments of datagrams that were never whole, or for which there was no memory.
    pub(super) fragments: u64,
    /// Datagrams that were still not whole at the end.
    #[serde(default)]
    pub(super) parts: u64,
}

impl Lost {
    pub(super) fn add(&mut self, other: &Lost) {
        self.datagrams = self.datagrams.saturating_add(other.datagrams);
        self.frames = self.frames.saturating_add(other.frames);
        self.fragments = self.fragments.saturating_add(other.fragments);
        self.parts = self.parts.saturating_add(other.parts);
    }

    pub(super) fn since(&self, earlier: &Lost) -> Lost {
        Lost {
            datagrams: self.datagrams.saturating_sub(earlier.datagrams),
            frames: self.frames.saturating_sub(earlier.frames),
            fragments: self.fragments.saturating_sub(earlier.fragments),
            parts: self.parts,
        }
    }
}

/// The thread that most wanted a processor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Busiest {
    /// Which part it belongs to.
    pub part: String,
    /// Its name.
    pub thread: String,
    /// How much of the time it ran.
    pub share: f64,
    /// How much of the time it could have run, but others had the processors.
    #[serde(default)]
    pub waiting_share: f64,
}

impl Busiest {
    pub(super) fn wanted(&self) -> f64 {
        self.share + self.waiting_share
    }
}

/// The medium while messages were sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wire {
    /// How much of the time it was busy; of a wire's two directions the mean.
    pub busy: f64,
    /// How much of the time somebody sent or waited to, where it is a channel.
    #[serde(default)]
    pub wanted: f64,
    /// Of this, airtime by host.
    pub air: BTreeMap<String, f64>,
    /// Collisions.
    pub collisions: u64,
    /// Transmissions after the first of their frame.
    pub retries: u64,
    /// Whether the emulator kept its time meanwhile.
    pub in_time: bool,
}

impl Measured {
    pub(super) fn is_sustained(&self) -> bool {
        self.trips.delivery() >= DELIVERY
            && self.schedule >= SCHEDULE
            && self.trips.mean_ms.is_some_and(|m| m <= MEAN_MS)
    }

    /// The same for a short run, in which a queue that grows may not have grown enough yet.
    pub(super) fn lasts(&self) -> bool {
        self.is_sustained() && self.trips.tail_ms.is_some_and(|m| m <= MEAN_MS)
    }

    /// What the processor did for a message, in µs, by part.
    pub(super) fn cpu_us(&self) -> f64 {
        self.cpu_s.values().sum::<f64>() * 1e6 / self.all.max(1) as f64
    }
}

/// The setting of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Params {
    /// 1 to 9.
    pub experiment: u32,
    /// `cell`, or `knee`: the highest load that is sustained.
    pub what: &'static str,
    /// Hosts; half of them send, if there are several.
    pub hosts: u32,
    /// Nodes on all hosts together.
    pub nodes: u32,
    /// Of these, senders.
    pub senders: u32,
    /// Messages a second of each sender.
    pub hz: f64,
    /// Bytes of a message.
    pub bytes: u64,
    /// `bus` or `loopback` on one host.
    pub medium: &'static str,
    /// Of each host's processors.
    pub cpu_share: f64,
    /// Who sends to whom.
    pub topology: Topology,
    /// Experiment 2: after a run that counts nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub warm: bool,
    /// Runs that went well.
    pub runs: u32,
    /// Of each sender in each run.
    pub messages: u32,
}

impl Params {
    pub(super) fn new(point: &Point, system: System, what: &'static str, runs: usize) -> Params {
        Params {
            experiment: point.experiment,
            what,
            hosts: point.hosts,
            nodes: point.nodes,
            senders: point.senders(),
            hz: point.hz,
            bytes: point.bytes,
            medium: point.medium.name(system),
            cpu_share: point.cpu_share,
            topology: point.topology,
            warm: point.warm,
            runs: runs as u32,
            messages: point.messages,
        }
    }
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Metrics {
    /// At one point.
    Cell(Box<CellMetrics>),
    /// The highest load that is sustained.
    Knee(Box<KneeMetrics>),
}

/// At one point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellMetrics {
    /// Share of the messages that were back when the log closed.
    pub delivery: f64,
    /// Round trips.
    pub rtt_ms: Rtt,
    /// Processor time of all processes for a message and its answer.
    pub cpu_us_per_message: f64,
    /// The same by part.
    pub cpu_us_per_message_by_part: BTreeMap<String, f64>,
    /// Memory of all processes, what they share counted once.
    pub memory_kib: f64,
    /// Switches of all threads for a message and its answer.
    pub context_switches_per_message: f64,
    /// System calls for a message and its answer, where they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_calls_per_message: Option<f64>,
    /// Where processor time goes, where it was sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_profile: Option<Profile>,
    /// Messages that were not back when the log closed, in all runs: their round trips are in no mean.
    pub censored: u64,
    /// Of their rate, what the senders kept.
    pub schedule: f64,
    /// Whether 99.9 % were back, after 100 ms on average, and the schedule was kept.
    pub sustained: bool,
    /// The thread that most wanted a processor while messages were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busiest: Option<Busiest>,
    /// Share of all processors in use; where the medium is emulated, by the system's own processes.
    pub host_busy: f64,
    /// Losses by place and reason, as far as the system counts them.
    pub drops: BTreeMap<String, u64>,
    /// The medium, where it is emulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<Wire>,
}

/// Round trips in ms, the mean of the runs. Quantiles count what was not back as later than all others, and are absent where
/// they are among those.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rtt {
    /// Of those that were back.
    pub mean: Option<f64>,
    /// Their standard deviation.
    pub std: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Where the mean of each lies in 95 of 100 cases, over the runs; absent for one run.
    pub ci95: Ci95,
}

/// Intervals over runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Ci95 {
    /// Of the mean.
    pub mean: Option<[f64; 2]>,
    /// Of the median.
    pub p50: Option<[f64; 2]>,
    /// Of the 99th percentile.
    pub p99: Option<[f64; 2]>,
}

/// The highest load that is sustained.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KneeMetrics {
    /// Payload each way.
    pub bytes_per_s: f64,
    /// Messages each way, of all senders.
    pub messages_per_s: f64,
    /// What was at its end a little above.
    pub cause: String,
    /// For each number of nodes that was tried.
    pub by_nodes: Vec<NodesKnee>,
    /// There.
    #[serde(flatten)]
    pub at: Option<CellMetrics>,
}

/// The highest load for a number of nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodesKnee {
    /// Senders and echoes.
    pub nodes: u32,
    /// Of each sender; 0: none was sustained.
    pub hz: f64,
    /// Messages each way, of all senders.
    pub messages_per_s: f64,
    /// Why not more.
    pub cause: String,
    /// Processor time of all processes there for a message and its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us_per_message: Option<f64>,
}

/// What runs come to.
pub(super) fn pool(runs: &[&Measured]) -> Option<CellMetrics> {
    let first = runs.first()?;
    let over = |of: &dyn Fn(&Measured) -> Option<f64>| {
        let values: Vec<f64> = runs.iter().filter_map(|m| of(m)).collect();
        // A quantile that some run does not know is not known.
        (values.len() == runs.len())
            .then(|| OverRuns::of(&values))
            .flatten()
    };
    let mean = |of: &dyn Fn(&Measured) -> f64| over(&|m| Some(of(m))).map_or(0.0, |o| o.mean);
    let (rtt, p50, p99) = (
        over(&|m| m.trips.mean_ms),
        over(&|m| m.trips.p50_ms),
        over(&|m| m.trips.p99_ms),
    );
    let parts: Vec<&String> = first.cpu_s.keys().collect();
    let part =
        |name: &String| mean(&|m| m.cpu_s.get(name).copied().unwrap_or(0.0) * 1e6 / m.all.max(1) as f64);
    let mut drops = BTreeMap::new();
    for (name, n) in runs.iter().flat_map(|m| &m.drops) {
        *drops.entry(name.clone()).or_insert(0) += n;
    }
    let busiest = runs.iter().filter_map(|m| m.busiest.as_ref());
    let sustained = runs.iter().filter(|m| m.is_sustained()).count();
    Some(CellMetrics {
        delivery: mean(&|m| m.trips.delivery()),
        rtt_ms: Rtt {
            mean: rtt.map(|o| o.mean),
            std: over(&|m| m.trips.std_ms).map(|o| o.mean),
            p50: p50.map(|o| o.mean),
            p99: p99.map(|o| o.mean),
            ci95: Ci95 {
                mean: rtt.and_then(|o| o.ci95),
                p50: p50.and_then(|o| o.ci95),
                p99: p99.and_then(|o| o.ci95),
            },
        },
        cpu_us_per_message: mean(&Measured::cpu_us),
        cpu_us_per_message_by_part: parts.into_iter().map(|n| (n.clone(), part(n))).collect(),
        memory_kib: mean(&|m| m.memory_kib as f64),
        context_switches_per_message: mean(&|m| m.switches as f64 / m.all.max(1) as f64),
        system_calls_per_message: None,
        cpu_profile: None,
        censored: runs.iter().map(|m| m.trips.censored).sum(),
        schedule: mean(&|m| m.schedule),
        sustained: 2 * sustained > runs.len(),
        busiest: busiest.max_by(|a, b| a.wanted().total_cmp(&b.wanted())).cloned(),
        host_busy: mean(&|m| m.host_busy),
        drops,
        wire: runs.iter().rev().find_map(|m| m.wire.clone()),
    })
}

#[cfg(test)]
pub(super) fn example(mean_ms: f64, censored: u64) -> Measured {
    Measured {
        trips: Trips {
            sent: 1000,
            censored,
            mean_ms: Some(mean_ms),
            std_ms: Some(1.0),
            p50_ms: Some(mean_ms),
            p99_ms: (censored < 10).then_some(mean_ms * 2.0),
            tail_ms: Some(mean_ms * 1.5),
        },
        schedule: 1.0,
        all: 1000,
        cpu_s: [("sender".to_owned(), 0.1), ("echo".to_owned(), 0.05)].into(),
        switches: 4000,
        ..Measured::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sustained_is_delivered_in_time_and_on_schedule() {
        assert!(example(99.0, 1).is_sustained() && !example(99.0, 1).lasts());
        assert!(example(60.0, 0).lasts());
        assert!(!example(101.0, 0).is_sustained() && !example(1.0, 2).is_sustained());
        let late = Measured {
            schedule: 0.97,
            ..example(1.0, 0)
        };
        assert!(!late.is_sustained());
    }

    #[test]
    fn runs_are_pooled_with_intervals_and_what_is_censored_is_said() {
        let (a, b) = (example(1.0, 0), example(3.0, 20));
        let cell = pool(&[&a, &b]).expect("runs");
        assert_eq!(
            (cell.rtt_ms.mean, cell.rtt_ms.p99, cell.censored),
            (Some(2.0), None, 20)
        );
        assert!(cell.rtt_ms.ci95.mean.is_some() && cell.rtt_ms.ci95.p99.is_none());
        assert_eq!((cell.delivery, cell.context_switches_per_message), (0.99, 4.0));
        assert!((cell.cpu_us_per_message - 150.0).abs() < 1e-9 && !cell.sustained);
        assert!((cell.cpu_us_per_message_by_part["echo"] - 50.0).abs() < 1e-9);
        assert_eq!(pool(&[]), None);
        let json = serde_json::to_value(&cell).expect("is JSON");
        assert!(
            json["rtt_ms"]["p99"].is_null() && json["rtt_ms"]["ci95"]["mean"][0].is_number(),
            "{json}"
        );
    }
}
