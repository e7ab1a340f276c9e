//! Status of a bridge's topics and services.

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
    /// Connected ROS nodes: publishers if it crosses to the bus, else subscribers.
    pub connected: usize,
    /// Messages that crossed.
    pub messages: u64,
    /// Their bytes, in ROS's serialization.
    pub bytes: u64,
    /// Messages that the rule leaves out by rate, frame or level.
    pub filtered: u64,
    /// Messages that slow listeners in ROS missed, counted per listener.
    pub dropped: u64,
    /// Messages that could not cross: of another type, or without memory.
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
    /// Calls with an answer.
    pub calls: u64,
    /// Calls without an answer.
    pub failed: u64,
}

/// Counts of one topic or service. Any thread may add to them.
#[derive(Debug, Default)]
pub struct Counts {
    messages: AtomicU64,
    bytes: AtomicU64,
    filtered: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

impl Counts {
    /// Counts a message of this many bytes that crossed, or an answered call.
    pub fn passed(&self, bytes: usize) {
        self.messages.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// Counts a message that the rule leaves out.
    pub fn filtered(&self) {
        self.filtered.fetch_add(1, Relaxed);
    }

    /// Counts a message that a slow listener missed.
    pub fn dropped(&self) {
        self.dropped.fetch_add(1, Relaxed);
    }

    /// Counts a message or a call that could not cross.
    pub fn failed(&self) {
        self.failed.fetch_add(1, Relaxed);
    }

    /// Number of messages that crossed.
    pub fn messages(&self) -> u64 {
        self.messages.load(Relaxed)
    }

    /// The counts as a topic, called `bus` on the bus, of type `kind`, with this many nodes connected.
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

    /// The counts as a service.
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
