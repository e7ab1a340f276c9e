//! What bridges tell of each topic and service.

use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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

/// Counts of one topic or service, added to by any thread.
#[derive(Debug, Default)]
pub struct Counts {
    messages: AtomicU64,
    bytes: AtomicU64,
    filtered: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

impl Counts {
    /// A message of so many bytes crossed, or a call was answered.
    pub fn passed(&self, bytes: usize) {
        self.messages.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// The rule left a message out.
    pub fn filtered(&self) {
        self.filtered.fetch_add(1, Relaxed);
    }

    /// A slow listener missed a message.
    pub fn dropped(&self) {
        self.dropped.fetch_add(1, Relaxed);
    }

    /// A message or a call could not cross.
    pub fn failed(&self) {
        self.failed.fetch_add(1, Relaxed);
    }

    /// How many crossed.
    pub fn messages(&self) -> u64 {
        self.messages.load(Relaxed)
    }

    /// As a topic, which is `bus` there, of type `kind`, with so many nodes connected.
    pub fn flow(&self, bus: &str, kind: &str, connected: usize) -> Flow {
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

    /// As a service.
    pub fn service(&self, bus: &str, kind: &str, direction: &'static str) -> ServiceStatus {
        ServiceStatus {
            bus: bus.to_owned(),
            kind: kind.to_owned(),
            direction,
            calls: self.messages(),
            failed: self.failed.load(Relaxed),
        }
    }
}
