//! What a bridge tells of itself.

use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a bridge does at present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// The node's name in ROS.
    pub node: String,
    /// Where the master is.
    pub master: String,
    /// Whether the master answered when it was last asked.
    pub master_reached: bool,
    /// Topics on their way onto the bus, by their names in ROS.
    pub to_bus: BTreeMap<String, Flow>,
    /// Topics on their way into ROS, by their names in ROS.
    pub to_ros: BTreeMap<String, Flow>,
    /// Services, by their names in ROS.
    pub services: BTreeMap<String, ServiceStatus>,
    /// What is wrong, by what it concerns.
    pub problems: BTreeMap<String, String>,
    /// What was refused, by reason, of those that were: `connections` and `silent` ones beyond a peer's share, `malformed`
    /// requests and headers, `memory`, `calls` that only the master or a known host may make, `names` that are none, and
    /// publishers that were not `dialled` since there are too many.
    pub refused: BTreeMap<&'static str, u64>,
}

/// One topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Flow {
    /// Its name on the bus.
    pub bus: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// ROS nodes that are connected: publishers on the way onto the bus, else subscribers.
    pub connected: usize,
    /// Messages that crossed.
    pub messages: u64,
    /// Their bytes, in ROS's serialization.
    pub bytes: u64,
    /// Messages that the rule leaves out: rate, frames, level.
    pub filtered: u64,
    /// Messages that a slow listener in ROS missed, by listener.
    pub dropped: u64,
    /// Messages that could not cross: not of their type, or no memory.
    pub failed: u64,
}

/// One service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ServiceStatus {
    /// Its name on the bus.
    pub bus: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `to_bus` or `to_ros`.
    pub direction: &'static str,
    /// Calls that were answered.
    pub calls: u64,
    /// Calls that were not.
    pub failed: u64,
}

/// Counts of one topic or service.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    messages: AtomicU64,
    bytes: AtomicU64,
    filtered: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

impl Counts {
    pub(crate) fn passed(&self, bytes: usize) {
        self.messages.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn filtered(&self) {
        self.filtered.fetch_add(1, Relaxed);
    }

    pub(crate) fn dropped(&self) {
        self.dropped.fetch_add(1, Relaxed);
    }

    pub(crate) fn failed(&self) {
        self.failed.fetch_add(1, Relaxed);
    }

    pub(crate) fn messages(&self) -> u64 {
        self.messages.load(Relaxed)
    }

    pub(crate) fn flow(&self, bus: &str, kind: &str, connected: usize) -> Flow {
        Flow {
            bus: bus.to_owned(),
            kind: kind.to_owned(),
            connected,
            messages: self.messages(),
            bytes: self.bytes.load(Relaxed),
            filtered: self.filtered.load(Relaxed),
            dropped: self.dropped.load(Relaxed),
            failed: self.failed.load(Relaxed),
        }
    }

    pub(crate) fn service(&self, bus: &str, kind: &str, direction: &'static str) -> ServiceStatus {
        ServiceStatus {
            bus: bus.to_owned(),
            kind: kind.to_owned(),
            direction,
            calls: self.messages(),
            failed: self.failed.load(Relaxed),
        }
    }
}
