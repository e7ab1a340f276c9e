//! One setting of one experiment.

use super::System;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The thesis' payloads: `Hello World`, a laser scan, an image.
pub(super) const TEXT: u64 = 11;
pub(super) const SCAN: u64 = 4_250;
pub(super) const IMAGE: u64 = 308_000;

/// Queue depth of a sender for one receiver: its rate (as in the thesis), within these bounds.
const QUEUE: [f64; 2] = [16.0, 4_000.0];
/// The same for all rates of large messages.
const QUEUE_OF_LARGE: f64 = 1_000.0;
/// A higher depth is allowed only up to this many bytes.
const QUEUE_BYTES: f64 = (32 << 20) as f64;

/// Limits of a point: hosts, nodes, and paths from a sender to an echo.
const MOST_HOSTS: u32 = 64;
const MOST_NODES: u32 = 1 << 16;
const MOST_WAYS: u64 = 1 << 20;

/// The medium that joins the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Medium {
    /// One host: Ropewalk's bus, and what other systems use on one host.
    Host,
    /// Hosts on wires without a limit.
    Veth,
    /// Hosts on wires of 100 Mbit/s.
    #[value(name = "100mbit")]
    #[serde(rename = "100mbit")]
    Mbit100,
    /// Hosts on a channel of 802.11a at 6 Mbit/s.
    #[value(name = "wifi-6")]
    #[serde(rename = "wifi-6")]
    Wifi6,
    /// Hosts on a channel of 802.11g at 24 Mbit/s.
    #[value(name = "wifi-24")]
    #[serde(rename = "wifi-24")]
    Wifi24,
    /// Hosts on a channel of 802.11g at 54 Mbit/s.
    #[value(name = "wifi-54")]
    #[serde(rename = "wifi-54")]
    Wifi54,
    /// Real machines, by `ropewalk bench agent`.
    Machines,
    /// The same, joined by cables: links send without a rate limit instead of measuring the capacity of the network.
    MachinesWired,
}

impl Medium {
    /// Returns its name in results: for one host, the bus for Ropewalk and the loopback device for others.
    pub(super) fn name(self, system: System) -> &'static str {
        match self {
            Medium::Host if system.is_ours() => "bus",
            Medium::Host => "loopback",
            Medium::Veth => "veth",
            Medium::Mbit100 => "100mbit",
            Medium::Wifi6 => "wifi-6",
            Medium::Wifi24 => "wifi-24",
            Medium::Wifi54 => "wifi-54",
            Medium::Machines => "machines",
            Medium::MachinesWired => "machines-wired",
        }
    }

    /// Returns whether it needs the lab.
    pub(super) fn is_emulated(self) -> bool {
        !matches!(self, Medium::Host) && !self.is_real()
    }

    /// Returns whether it is real machines.
    pub(super) fn is_real(self) -> bool {
        matches!(self, Medium::Machines | Medium::MachinesWired)
    }
}

/// The receivers of each sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// Each sender has its own echo.
    Pairs,
    /// Each sender sends to every echo, and every echo answers it.
    Full,
}

/// One setting. Half of the nodes send, the others echo.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Point {
    pub(super) experiment: u32,
    pub(super) hosts: u32,
    pub(super) nodes: u32,
    pub(super) hz: f64,
    pub(super) bytes: u64,
    pub(super) medium: Medium,
    pub(super) cpu_share: f64,
    pub(super) topology: Topology,
    /// Messages of each sender, including warm-up.
    pub(super) messages: u32,
    /// Whether it follows an uncounted run, with the same master and folders.
    pub(super) warm: bool,
}

impl Point {
    pub(super) fn senders(&self) -> u32 {
        (self.nodes / 2).max(1)
    }

    /// Checks that it is a valid point: another machine's coordinator sends points in lines.
    ///
    /// # Errors
    /// What is invalid.
    pub(super) fn check(&self) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("a point of an experiment with {what}"));
        if !(1..=9).contains(&self.experiment) {
            return wrong("an unknown number");
        }
        if self.hosts != 1 && !(self.hosts.is_multiple_of(2) && (2..=MOST_HOSTS).contains(&self.hosts)) {
            return wrong("an invalid number of hosts");
        }
        if !(1..=MOST_NODES).contains(&self.nodes) || !(1..=10_000_000).contains(&self.messages) {
            return wrong("an invalid number of nodes or messages");
        }
        if u64::from(self.senders()) * u64::from(self.answers()) > MOST_WAYS {
            return wrong("too many pairs of nodes");
        }
        if !(0.01..=1e6).contains(&self.hz) || !(1..=1 << 26).contains(&self.bytes) {
            return wrong("an invalid rate or size");
        }
        if !(0.01..=1.0).contains(&self.cpu_share) {
            return wrong("an invalid share of the processors");
        }
        Ok(())
    }

    /// Returns the number of echoes that answer each message.
    pub(super) fn answers(&self) -> u32 {
        match self.topology {
            Topology::Pairs => 1,
            Topology::Full => self.senders(),
        }
    }

    /// Returns the number of answers that each sender expects.
    pub(super) fn rows(&self) -> u64 {
        u64::from(self.messages) * u64::from(self.answers())
    }

    /// Returns the echoes that answer a sender.
    pub(super) fn echoes_of(&self, sender: u32) -> std::ops::Range<u32> {
        match self.topology {
            Topology::Pairs => sender..sender + 1,
            Topology::Full => 0..self.senders(),
        }
    }

    /// Returns the host of a sender, and of an echo: half of the hosts send, the others echo.
    pub(super) fn hosts_of(&self, number: u32) -> [u32; 2] {
        let half = (self.hosts / 2).max(1);
        let host = number % half;
        [host, if self.hosts > 1 { half + host } else { host }]
    }

    /// Returns the host of a node: echoes come first, then senders.
    pub(super) fn host_of(&self, node: u32) -> u32 {
        match node.checked_sub(self.senders()) {
            None => self.hosts_of(node)[1],
            Some(sender) => self.hosts_of(sender)[0],
        }
    }

    pub(super) fn queue(&self) -> u32 {
        let most = (QUEUE_BYTES / self.bytes as f64).clamp(QUEUE_OF_LARGE, QUEUE[1]);
        self.hz.clamp(QUEUE[0], most) as u32
    }

    /// Returns N·f: messages per second in each direction, of all senders.
    pub(super) fn messages_per_s(&self) -> f64 {
        f64::from(self.senders()) * f64::from(self.answers()) * self.hz
    }

    /// Returns how long sending takes.
    pub(super) fn lasts(&self) -> Duration {
        Duration::from_secs_f64(f64::from(self.messages) / self.hz)
    }

    /// Returns what identifies a search: everything except rate and number of nodes.
    pub(super) fn setting(&self) -> (u32, u32, u64, Medium, u64, Topology) {
        let cpu = (self.cpu_share * 100.0).round() as u64;
        (
            self.experiment,
            self.hosts,
            self.bytes,
            self.medium,
            cpu,
            self.topology,
        )
    }

    /// Returns the name of the data set for its raw data: everything except rate and number of nodes, as far as senders
    /// have the same number of rows.
    pub(super) fn data_set(&self, system: System) -> String {
        let Point {
            experiment,
            hosts,
            bytes,
            ..
        } = self;
        let mut name = format!(
            "{}-e{experiment}-{}-{hosts}hosts-{bytes}B",
            system.name(),
            self.medium.name(system)
        );
        if self.cpu_share < 1.0 {
            name.push_str(&format!("-cpu{:.0}", self.cpu_share * 100.0));
        }
        if self.topology == Topology::Full {
            name.push_str("-full");
        }
        if self.warm {
            name.push_str("-warm");
        }
        name.push_str(&format!("-{}rows", self.rows()));
        name
    }

    /// Returns its folder in the data set.
    pub(super) fn folder(&self) -> String {
        format!("{}hz/{}nodes", self.hz, self.nodes)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "E{} {} B, {} nodes at {} Hz",
            self.experiment,
            self.bytes,
            self.nodes,
            shown_hz(self.hz)
        )?;
        if self.hosts > 1 {
            write!(f, " on {} hosts", self.hosts)?;
        }
        if self.cpu_share < 1.0 {
            write!(f, ", {:.0} % of the processors", self.cpu_share * 100.0)?;
        }
        if self.topology == Topology::Full {
            f.write_str(", all to all")?;
        }
        if self.warm {
            f.write_str(", warm")?;
        }
        Ok(())
    }
}

/// Returns a rate for people.
pub(super) fn shown_hz(hz: f64) -> String {
    if hz >= 100.0 || hz.fract() == 0.0 {
        format!("{hz:.0}")
    } else {
        format!("{hz:.2}")
    }
}

#[cfg(test)]
pub(super) fn example() -> Point {
    Point {
        experiment: 7,
        hosts: 1,
        nodes: 8,
        hz: 100.0,
        bytes: SCAN,
        medium: Medium::Host,
        cpu_share: 1.0,
        topology: Topology::Pairs,
        messages: 200,
        warm: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_nodes_and_of_the_hosts_send() {
        let mut point = example();
        assert_eq!((point.senders(), point.answers()), (4, 1));
        assert_eq!((point.hosts_of(3), point.echoes_of(3)), ([0, 0], 3..4));
        assert_eq!(point.messages_per_s(), 400.0);
        point.topology = Topology::Full;
        assert_eq!((point.answers(), point.echoes_of(3)), (4, 0..4));
        assert_eq!(point.messages_per_s(), 1600.0);
        point.hosts = 6;
        assert_eq!(point.hosts_of(4), [1, 4]);
        assert_eq!([point.host_of(2), point.host_of(4), point.host_of(5)], [5, 0, 1]);
    }

    #[test]
    fn impossible_points_are_refused() {
        assert_eq!(example().check(), Ok(()));
        let wrong = |change: &dyn Fn(&mut Point)| {
            let mut point = example();
            change(&mut point);
            point.check().is_err()
        };
        assert!(wrong(&|p| p.experiment = 0) && wrong(&|p| p.hosts = 3) && wrong(&|p| p.hosts = 66));
        assert!(wrong(&|p| p.nodes = 0) && wrong(&|p| p.messages = 0) && wrong(&|p| p.nodes = u32::MAX));
        assert!(wrong(&|p| (p.nodes, p.topology) = (1 << 16, Topology::Full)));
        assert!(wrong(&|p| p.hz = f64::NAN) && wrong(&|p| p.hz = 0.0) && wrong(&|p| p.bytes = 0));
        assert!(wrong(&|p| p.cpu_share = 1.5) && wrong(&|p| p.cpu_share = f64::INFINITY));
    }

    #[test]
    fn data_sets_distinguish_settings() {
        let point = example();
        let name = |p: &Point| p.data_set(System::Ropewalk);
        assert_eq!(name(&point), "ropewalk-e7-bus-1hosts-4250B-200rows");
        assert_eq!(
            point.data_set(System::Rospy),
            "rospy-e7-loopback-1hosts-4250B-200rows"
        );
        assert_eq!(point.folder(), "100hz/8nodes");
        let other = Point {
            cpu_share: 0.5,
            topology: Topology::Full,
            warm: true,
            ..point
        };
        assert_eq!(
            name(&other),
            "ropewalk-e7-bus-1hosts-4250B-cpu50-full-warm-800rows"
        );
    }

    #[test]
    fn queues_follow_the_rate_within_bounds() {
        let queue = |hz| Point { hz, ..example() }.queue();
        assert_eq!([queue(1.0), queue(200.0), queue(1e6)], [16, 200, 4000]);
        let large = Point {
            hz: 1e6,
            bytes: IMAGE,
            ..example()
        };
        assert_eq!(large.queue(), 1000);
    }
}
