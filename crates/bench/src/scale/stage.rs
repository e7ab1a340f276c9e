//! The place of runs: this host, hosts of a lab, or real machines.

use super::cgroup::Quota;
use super::measured::Wire;
use super::peers::Node;
use super::point::Point;
use super::tools::Tools;
use super::{Medium, System, links};
use crate::kit::error::RunError;
use crate::kit::roscore::Roscore;
use crate::kit::sandbox::Sandbox;
use crate::kit::site::{Job, Site};
use lab::Status;
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

const MASTER: u16 = 11311;
/// The host that joins the others' wires, if there are more than two.
const SWITCH: &str = "switch";

/// A place with everything that stays there between runs.
pub(super) struct Stage<'a> {
    key: (Medium, u32, f64),
    tools: &'a Tools<'a>,
    hosts: Vec<String>,
    // In the order of their end.
    master: Option<Master>,
    quotas: Vec<Quota>,
    site: Option<Site<'a>>,
    /// Ports of the links on real machines.
    ports: Vec<u16>,
    pub(super) sandbox: Sandbox,
}

/// A ROS master.
enum Master {
    Here(Roscore),
    There {
        uri: String,
        _job: Job,
    },
    /// On the first of the real machines.
    Agent {
        port: u16,
    },
}

impl<'a> Stage<'a> {
    /// Starts what a point needs.
    pub(super) fn up(tools: &'a Tools<'a>, point: &Point) -> Result<Stage<'a>, RunError> {
        let hosts: Vec<String> = (0..point.hosts).map(links::host_name).collect();
        let mut site = None;
        if point.medium.is_emulated() {
            let yaml = scenario(point.medium, &hosts);
            let mut up = Site::up(&tools.ground, &format!("scale-{}", hosts.len()), Some(&yaml))?;
            if point.medium == Medium::Veth {
                up.let_sleep();
                up.wires(&hosts, SWITCH)?;
            }
            site = Some(up);
        }
        let mut ports = Vec::new();
        if point.medium.is_real() {
            ports = tools.agents()?.stage(point)?;
        }
        let mut quotas = Vec::new();
        if point.cpu_share < 1.0 && !point.medium.is_real() {
            for _ in &hosts {
                quotas.push(Quota::new(point.cpu_share)?);
            }
        }
        Ok(Stage {
            key: key(point),
            tools,
            hosts,
            master: None,
            quotas,
            site,
            ports,
            sandbox: Sandbox::new().map_err(|e| e.to_string())?,
        })
    }

    /// Returns whether a point can use the same place.
    pub(super) fn fits(&self, point: &Point) -> bool {
        self.key == key(point)
    }

    /// Starts what a system needs in addition to its nodes, unless it is running already.
    pub(super) fn prepare(&mut self, system: System) -> Result<(), RunError> {
        if !system.needs_roscore() || self.master.is_some() {
            return Ok(());
        }
        let stopped = self.tools.ground.stopped;
        if self.key.0.is_real() {
            let port = self.tools.agents()?.master()?;
            self.master = Some(Master::Agent { port });
            return Ok(());
        }
        self.master = Some(match &self.site {
            None => match Roscore::start(&self.sandbox, stopped)? {
                Some(roscore) => Master::Here(roscore),
                None => return Err(RunError::Stopped),
            },
            Some(site) => {
                let uri = format!("http://{}:{MASTER}", site.address(&self.hosts[0])?);
                let port = MASTER.to_string();
                let address = self.address(0)?;
                let words = ros_words(address);
                let mut command = vec!["env", &*words[0], &*words[1]];
                command.extend(["roscore", "-p", &port]);
                let mut command = site.command(&self.hosts[0], false, &command);
                self.sandbox.prepare(&mut command);
                command.env("ROS_MASTER_URI", &uri);
                let _job = Job::start(&mut command)?;
                site.listens(&self.hosts[0], MASTER)?;
                Master::There { uri, _job }
            }
        });
        Ok(())
    }

    /// Returns the address of a host.
    pub(super) fn address(&self, host: u32) -> Result<Ipv4Addr, RunError> {
        let Some(site) = &self.site else {
            return Ok(Ipv4Addr::LOCALHOST);
        };
        let address = site.address(&self.hosts[host as usize])?;
        let parsed = address.parse();
        parsed.map_err(|_| format!("the lab's host has no IPv4 address: {address}").into())
    }

    /// Returns the addresses of all hosts.
    pub(super) fn addresses(&self) -> Result<Vec<Ipv4Addr>, RunError> {
        (0..self.key.1).map(|host| self.address(host)).collect()
    }

    pub(super) fn host(&self, host: u32) -> &str {
        &self.hosts[host as usize]
    }

    /// Returns the ports of the links on real machines.
    pub(super) fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Returns the port of the master on the first real machine, if one was started.
    pub(super) fn master_port(&self) -> Option<u16> {
        match self.master {
            Some(Master::Agent { port }) => Some(port),
            _ => None,
        }
    }

    /// Returns the command of a node on its host.
    pub(super) fn command(&self, node: &Node) -> Result<Command, RunError> {
        let mut command = self.program(node.host, &node.words)?;
        command.envs(node.environment.clone());
        Ok(command)
    }

    /// Returns the command of a program on a host, within its share of the processors.
    pub(super) fn program(&self, host: u32, program: &[String]) -> Result<Command, RunError> {
        let mut command = match &self.site {
            None => {
                let mut command = Command::new(&program[0]);
                command.args(&program[1..]);
                command
            }
            Some(site) => {
                let words = ros_words(self.address(host)?);
                let mut all = vec!["env", &*words[0], &*words[1]];
                all.extend(program.iter().map(String::as_str));
                site.command(&self.hosts[host as usize], false, &all)
            }
        };
        match &self.master {
            Some(Master::Here(roscore)) => roscore.prepare(&mut command),
            Some(Master::There { uri, .. }) => drop(command.env("ROS_MASTER_URI", uri)),
            Some(Master::Agent { .. }) | None => {}
        }
        Ok(match self.quotas.get(host as usize) {
            Some(quota) => quota.wrap(&command),
            None => command,
        })
    }

    /// Returns the lab's numbers, if a lab emulates the medium.
    pub(super) fn status(&self) -> Result<Option<Status>, RunError> {
        match &self.site {
            Some(site) if self.key.0 != Medium::Veth => Ok(Some(site.status()?)),
            _ => Ok(None),
        }
    }
}

fn key(point: &Point) -> (Medium, u32, f64) {
    (point.medium, point.hosts, point.cpu_share)
}

/// Environment variables that name a host to ROS: it would have to resolve a name.
pub(super) fn ros_words(address: Ipv4Addr) -> [String; 2] {
    [format!("ROS_IP={address}"), format!("ROS_HOSTNAME={address}")]
}

/// Usage of the medium between two readings, of which the first was `idle` before the first message.
pub(super) fn wire_between(before: &Status, after: &Status, idle: Duration) -> Wire {
    let time = (after.uptime_s - before.uptime_s - idle.as_secs_f64()).max(1e-9);
    let mut wire = Wire {
        in_time: after.timing.good_since(&before.timing),
        ..Wire::default()
    };
    for (old, new) in before.media.iter().zip(&after.media) {
        wire.collisions += new.collisions.saturating_sub(old.collisions);
        let mut most = 0f64;
        for (old, new) in old.hosts.iter().zip(&new.hosts) {
            let share = (new.air_s - old.air_s) / time;
            let of_host = wire.air.entry(new.host.clone()).or_default();
            *of_host = of_host.max(share);
            wire.retries += new.retries.saturating_sub(old.retries);
            most = most.max(share);
        }
        // A wire has two directions; a waiting sender waits for the busier one.
        let busy = if new.name == RADIO {
            (new.busy_s - old.busy_s) / time
        } else {
            most
        };
        wire.busy = wire.busy.max(busy);
        wire.wanted = wire.wanted.max((new.wanted_s - old.wanted_s) / time);
    }
    wire
}

const RADIO: &str = "wifi";

/// Returns the lab's scenario.
fn scenario(medium: Medium, hosts: &[String]) -> String {
    let list = hosts.join(", ");
    let wifi = |standard, rate| {
        format!(
            "hosts: [{list}]\nmedia:\n  - name: {RADIO}\n    wifi: {{standard: {standard}, rate: {rate}Mbit/s, topology: mesh}}\n"
        )
    };
    match medium {
        Medium::Wifi6 => wifi("802.11a", 6),
        Medium::Wifi24 => wifi("802.11g", 24),
        Medium::Wifi54 => wifi("802.11g", 54),
        _ if hosts.len() == 2 => {
            format!("hosts: [{list}]\nmedia:\n  - name: eth\n    wire: {{rate: 100Mbit/s}}\n")
        }
        _ => {
            let mut text = format!("hosts: [{list}, {SWITCH}]\nmedia:\n");
            for (i, host) in hosts.iter().enumerate() {
                // Writing to a string cannot fail.
                let _ = writeln!(
                    text,
                    "  - name: eth{i}\n    hosts: [{host}, {SWITCH}]\n    wire: {{rate: 100Mbit/s}}"
                );
            }
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(medium: &str, uptime_s: f64, busy_s: f64, air_s: [f64; 2]) -> Status {
        let host = |(i, air_s): (usize, f64)| {
            json!({
                "host": format!("h{i}"), "air_s": air_s, "attempts": 0, "retries": i, "queue_frames": 0,
                "queue_high_water_frames": 0, "drops": {},
            })
        };
        let hosts: Vec<_> = air_s.into_iter().enumerate().map(host).collect();
        let status = json!({
            "name": "l", "scenario": "s", "congestion_control": "cubic", "uptime_s": uptime_s, "hosts": [],
            "media": [{
                "name": medium, "busy_s": busy_s, "wanted_s": busy_s * 1.25, "collisions": 3, "lost_frames": 0, "delivered_frames": 0,
                "delivered_bytes": 0, "hosts": hosts,
            }],
            "timing": {
                "verdict": "good", "trusted": true, "scheduling": "", "events": 0, "lateness_p50_us": 0.0,
                "lateness_p99_us": 0.0, "lateness_max_us": 0.0, "stalls": 0, "lateness": [],
            },
        });
        serde_json::from_value(status).expect("a status")
    }

    #[test]
    fn a_radio_is_busy_as_a_whole_and_a_wire_in_its_busier_direction() {
        let before = |medium| status(medium, 10.0, 1.0, [1.0, 0.0]);
        let after = |medium| status(medium, 15.0, 4.0, [2.0, 2.0]);
        let idle = Duration::from_secs(1);
        let radio = wire_between(&before(RADIO), &after(RADIO), idle);
        assert_eq!((radio.busy, radio.air["h1"], radio.in_time), (0.75, 0.5, true));
        assert_eq!(radio.wanted, 0.9375);
        let wire = wire_between(&before("eth"), &after("eth"), idle);
        assert_eq!((wire.busy, wire.air["h0"], wire.collisions), (0.5, 0.25, 0));
    }

    #[test]
    fn scenarios_join_all_hosts() {
        let hosts = |n: u32| (0..n).map(|i| format!("h{i}")).collect::<Vec<_>>();
        let two = scenario(Medium::Mbit100, &hosts(2));
        assert!(
            two.contains("hosts: [h0, h1]\n") && two.contains("wire: {rate: 100Mbit/s}"),
            "{two}"
        );
        let four = scenario(Medium::Mbit100, &hosts(4));
        assert!(
            four.contains("hosts: [h0, h1, h2, h3, switch]") && four.contains("hosts: [h3, switch]"),
            "{four}"
        );
        let radio = scenario(Medium::Wifi6, &hosts(4));
        assert!(
            radio.contains("standard: 802.11a, rate: 6Mbit/s, topology: mesh"),
            "{radio}"
        );
    }
}
