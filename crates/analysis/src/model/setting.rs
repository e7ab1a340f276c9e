//! Setting of a cell, and its measurements.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Setting of a cell, in the format of `bench scale` and `bench analyze`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Params {
    /// Number of the experiment.
    pub experiment: Value,
    /// `cell` or `knee`.
    pub what: String,
    /// Number of hosts.
    pub hosts: u32,
    /// Number of machines behind these hosts: namespaces of one machine share its processors.
    pub machines: u32,
    /// Number of nodes, each a process.
    pub nodes: u32,
    /// Number of senders; the others answer.
    pub senders: u32,
    /// Messages a second of each sender.
    pub hz: f64,
    /// Size of a message, one way.
    pub bytes: u64,
    /// Medium between the hosts: `bus`, `loopback`, `veth`, `100mbit`, `wifi-6`, `wifi-6-2hops`, or another name.
    pub medium: String,
    /// Share of the processors' time that may be used, 1 for all.
    pub cpu_share: f64,
    /// Pairs of senders and receivers: `pairs`, or `full` (each sender to every receiver; also `all-to-all`).
    pub topology: String,
    /// Number of runs.
    pub runs: u32,
    /// Messages of each sender in a run; 0 if unknown.
    pub messages: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            experiment: Value::Null,
            what: "cell".into(),
            hosts: 1,
            machines: 1,
            nodes: 2,
            senders: 1,
            hz: 0.0,
            bytes: 1,
            medium: String::new(),
            cpu_share: 1.0,
            topology: String::new(),
            runs: 1,
            messages: 0,
        }
    }
}

impl Params {
    /// Number of receivers of a message.
    pub fn copies(&self) -> f64 {
        let others = match self.topology.as_str() {
            "full" | "all-to-all" => self.nodes.saturating_sub(self.senders),
            _ => 1,
        };
        f64::from(others.max(1))
    }

    /// Round trips a second of all senders.
    pub fn rate(&self) -> f64 {
        f64::from(self.senders) * self.hz * self.copies()
    }

    /// The share of the processors as a factor, also if it is written in percent.
    pub fn share(&self) -> f64 {
        let share = if self.cpu_share > 1.5 {
            self.cpu_share / 100.0
        } else {
            self.cpu_share
        };
        share.clamp(0.01, 1.5)
    }

    /// Number of sending hosts, half of all: each of them has its own link.
    pub(super) fn lines(&self) -> f64 {
        f64::from((self.hosts / 2).max(1))
    }

    /// Round trips of a run, if known.
    pub(super) fn trips(&self) -> Option<f64> {
        let trips = f64::from(self.messages) * f64::from(self.senders) * self.copies();
        (trips > 0.0).then_some(trips)
    }
}

/// One measured cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Setting.
    pub params: Params,
    /// Share of messages received.
    pub delivery: f64,
    /// Mean round trip of the received messages.
    pub mean_ms: Option<f64>,
    /// Processor time of all processes per round trip, if measured.
    pub cpu_us: Option<f64>,
    /// Context switches per round trip, if measured.
    pub switches: Option<f64>,
    /// Whether it works ([`super::SUSTAINED`]).
    pub sustained: bool,
}

#[cfg(test)]
impl Sample {
    /// A cell of `senders` with a receiver each, with no measurement except whether it works.
    pub(super) fn of(senders: u32, hz: f64, sustained: bool) -> Sample {
        Sample {
            params: Params {
                senders,
                nodes: 2 * senders,
                hz,
                ..Params::default()
            },
            delivery: 1.0,
            mean_ms: Some(1.0),
            cpu_us: None,
            switches: None,
            sustained,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasters_have_one_line_per_sending_host() {
        let all = Params {
            hosts: 4,
            nodes: 8,
            senders: 4,
            hz: 10.0,
            topology: "full".into(),
            ..Params::default()
        };
        assert_eq!((all.copies(), all.rate(), all.lines()), (4.0, 160.0, 2.0));
        let one = Params::default();
        assert_eq!((one.copies(), one.lines()), (1.0, 1.0));
    }
}
