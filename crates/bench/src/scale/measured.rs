//! Result of one run, and of several runs together (decision 240).

use super::point::Point;
use super::profile::Profile;
use super::statistics::{OverRuns, Trips};
use super::{System, Topology};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A load is sustained with this delivery and a mean of at most this.
pub(super) const DELIVERY: f64 = 0.999;
const MEAN_MS: f64 = 100.0;
/// Minimum share of the scheduled rate that a sender must have kept: otherwise the load was not as planned.
pub(super) const SCHEDULE: f64 = 0.98;

/// Result of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) trips: Trips,
    /// Share of the scheduled rate that the senders kept, over all messages.
    pub(super) schedule: f64,
    pub(super) refused: u64,
    /// Number of sent messages, including warm-up, times the answers to each.
    pub(super) all: u64,
    /// Processor time by part: sender, echo, link.
    pub(super) cpu_s: BTreeMap<String, f64>,
    pub(super) switches: u64,
    pub(super) memory_kib: u64,
    /// The thread with the highest demand for a processor while messages were sent.
    pub(super) busiest: Option<Busiest>,
    /// Share of all processors used by any program on this machine, or taken by other guests.
    pub(super) host_busy: f64,
    pub(super) host_steal: f64,
    /// Losses by place and reason.
    pub(super) drops: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) wire: Option<Wire>,
    /// The link in which most messages waited.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) held: Option<Held>,
    /// The process in whose sockets most bytes waited.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) sockets: Option<InSockets>,
    #[serde(default)]
    pub(super) lost: Lost,
    /// Processor time by function, in a run that sampled it.
    #[serde(skip)]
    pub(super) profile: Option<Profile>,
}

/// Messages that waited in a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Held {
    /// Its host.
    pub(super) host: String,
    /// Maximum number of bytes.
    pub(super) bytes: u64,
    /// The same in messages.
    pub(super) messages: u64,
}

/// Bytes that waited in the sockets of one process, just before the last messages were sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct InSockets {
    /// The part that the process belongs to.
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

/// Losses in kernels while messages were sent. A system may retransmit them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Lost {
    /// Datagrams that arrived at a socket with a full buffer.
    pub(super) datagrams: u64,
    /// Frames that arrived at a device with a full queue.
    pub(super) frames: u64,
    /// Fragments of datagrams that were never complete, or for which there was no memory.
    pub(super) fragments: u64,
    /// Datagrams that were still incomplete at the end.
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

/// The thread with the highest demand for a processor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Busiest {
    /// The part that it belongs to.
    pub part: String,
    /// Its name.
    pub thread: String,
    /// Share of the time for which it ran.
    pub share: f64,
    /// Share of the time for which it was runnable while others had the processors.
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
    /// Share of the time for which it was busy; for a wire, the mean of its two directions.
    pub busy: f64,
    /// Share of the time in which a host sent or waited to send, for a channel.
    #[serde(default)]
    pub wanted: f64,
    /// Airtime by host.
    pub air: BTreeMap<String, f64>,
    /// Collisions.
    pub collisions: u64,
    /// Transmissions after the first of their frame.
    pub retries: u64,
    /// Whether the emulator was in time.
    pub in_time: bool,
}

impl Measured {
    pub(super) fn is_sustained(&self) -> bool {
        self.trips.delivery() >= DELIVERY
            && self.schedule >= SCHEDULE
            && self.trips.mean_ms.is_some_and(|m| m <= MEAN_MS)
    }

    /// The same for a short run, in which a growing queue may not have grown enough yet.
    pub(super) fn lasts(&self) -> bool {
        self.is_sustained() && self.trips.tail_ms.is_some_and(|m| m <= MEAN_MS)
    }

    /// Processor time for a message in µs, by part.
    pub(super) fn cpu_us(&self) -> f64 {
        self.cpu_s.values().sum::<f64>() * 1e6 / self.all.max(1) as f64
    }
}

/// The setting of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Params {
    /// 1 to 9.
    pub experiment: u32,
    /// `cell`, or `knee`: the highest sustained load.
    pub what: &'static str,
    /// Number of hosts; half of them send, if there are several.
    pub hosts: u32,
    /// Number of nodes on all hosts together.
    pub nodes: u32,
    /// Number of senders among these.
    pub senders: u32,
    /// Messages per second of each sender.
    pub hz: f64,
    /// Bytes of a message.
    pub bytes: u64,
    /// `bus` or `loopback` on one host.
    pub medium: &'static str,
    /// Share of each host's processors.
    pub cpu_share: f64,
    /// The receivers of each sender.
    pub topology: Topology,
    /// Experiment 2: whether it follows an uncounted run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub warm: bool,
    /// Number of successful runs.
    pub runs: u32,
    /// Messages of each sender in each run.
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

/// Measured values.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Metrics {
    /// At one point.
    Cell(Box<CellMetrics>),
    /// The highest sustained load.
    Knee(Box<KneeMetrics>),
}

/// Measured values at one point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellMetrics {
    /// Share of the messages that were back when the log closed.
    pub delivery: f64,
    /// Round trips.
    pub rtt_ms: Rtt,
    /// Processor time of all processes per message with its answer.
    pub cpu_us_per_message: f64,
    /// The same by part.
    pub cpu_us_per_message_by_part: BTreeMap<String, f64>,
    /// Memory of all processes, counting shared memory once.
    pub memory_kib: f64,
    /// Context switches of all threads per message with its answer.
    pub context_switches_per_message: f64,
    /// System calls per message with its answer, if they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_calls_per_message: Option<f64>,
    /// Processor time by function, if it was sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_profile: Option<Profile>,
    /// Messages that were not back when the log closed, in all runs: no mean includes their round trips.
    pub censored: u64,
    /// Share of the scheduled rate that the senders kept.
    pub schedule: f64,
    /// Whether 99.9 % were back, after at most 100 ms on average, and the schedule was kept.
    pub sustained: bool,
    /// The thread with the highest demand for a processor while messages were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busiest: Option<Busiest>,
    /// Share of all processors in use; if the medium is emulated, by only the system's own processes.
    pub host_busy: f64,
    /// Losses by place and reason, as far as the system counts them.
    pub drops: BTreeMap<String, u64>,
    /// The medium, if it is emulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<Wire>,
}

/// Round trips in ms, the mean of the runs. Quantiles count missing messages as later than all others, and are absent
/// if they are one of these.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rtt {
    /// Mean of the returned messages.
    pub mean: Option<f64>,
    /// Their standard deviation.
    pub std: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 95 % confidence interval of the mean of each, over the runs; absent for one run.
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

/// The highest sustained load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KneeMetrics {
    /// Payload in each direction.
    pub bytes_per_s: f64,
    /// Messages in each direction, of all senders.
    pub messages_per_s: f64,
    /// What was at its limit slightly above this load.
    pub cause: String,
    /// For each number of nodes.
    pub by_nodes: Vec<NodesKnee>,
    /// Measured values at this load.
    #[serde(flatten)]
    pub at: Option<CellMetrics>,
}

/// The highest sustained load for a number of nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodesKnee {
    /// Senders and echoes.
    pub nodes: u32,
    /// Rate of each sender; 0: none was sustained.
    pub hz: f64,
    /// Messages in each direction, of all senders.
    pub messages_per_s: f64,
    /// Why it is not higher.
    pub cause: String,
    /// Processor time of all processes at this load, per message with its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us_per_message: Option<f64>,
}

/// Combines runs.
pub(super) fn pool(runs: &[&Measured]) -> Option<CellMetrics> {
    let first = runs.first()?;
    let over = |of: &dyn Fn(&Measured) -> Option<f64>| {
        let values: Vec<f64> = runs.iter().filter_map(|m| of(m)).collect();
        // A quantile that is unknown in some run is unknown.
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
