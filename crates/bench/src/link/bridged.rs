//! Nodes of ROS at both ends, with a bridge on each host that joins them to its bus: nodes of roscpp with a roscore on
//! each host, as Pound requires, or nodes of ROS 2 over DDS.

use super::Tools;
use crate::flows::play::{Leg, Part};
use crate::ipc::error::RunError;
use crate::lab::Source;
use crate::lab::pound::{Peer, Transport};
use crate::lab::site::{Job, Site};
use crate::links::Daemons;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Masters and bridges of all hosts where a leg begins or ends. Dropping it ends them.
pub(super) struct Masters<'a> {
    ros: &'a Peer,
    addresses: BTreeMap<&'a str, String>,
    bridges: Daemons,
    roscores: Vec<Job>,
}

impl<'a> Masters<'a> {
    /// Starts them. Messages from a host's nodes cross to its bus, and messages for the nodes cross back.
    pub(super) fn up(
        tools: &'a Tools<'_>,
        site: &Site<'_>,
        legs: &'a [Leg],
    ) -> Result<Masters<'a>, RunError> {
        let mut masters = Masters {
            ros: tools.ros()?,
            addresses: BTreeMap::new(),
            bridges: Daemons::default(),
            roscores: Vec::new(),
        };
        let program = site.executable().to_string_lossy().into_owned();
        for host in legs.iter().flat_map(|l| [&*l.from, &*l.to]) {
            if masters.addresses.contains_key(host) {
                continue;
            }
            let (address, roscore) = masters.ros.roscore(site, host)?;
            masters.roscores.push(roscore);
            let topics = crossing(legs, host);
            let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
            let words = [&[&*program, "ros1", "--json"], &topics[..]].concat();
            let mut command = site.command(host, true, &words);
            command.env("ROS_MASTER_URI", &address);
            tools.sandbox.prepare(&mut command);
            masters.bridges.start(&format!("{host}, bridge"), &mut command)?;
            masters.addresses.insert(host, address);
        }
        Ok(masters)
    }

    /// Returns the command of the roscpp node for a part on a host.
    pub(super) fn part(
        &self,
        site: &Site<'_>,
        (part, host): (Part, &str),
        source: Source,
        legs: &[&Leg],
    ) -> Command {
        let master = self.addresses.get(host).map_or("", String::as_str);
        let how = (part, Transport::Tcpros, source);
        self.ros.part(site, (host, master), how, legs)
    }

    /// Ends them after a run. Returns the run's result, and the last state that each bridge printed.
    pub(super) fn end<T>(
        self,
        played: Result<T, RunError>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(T, BTreeMap<String, Value>), RunError> {
        self.bridges.end(played, stopped)
    }
}

/// Returns the options for the topics that cross on a host.
fn crossing(legs: &[Leg], host: &str) -> Vec<String> {
    let crosses = legs.iter().filter_map(|l| match (&*l.from, &*l.to) {
        (from, _) if from == host => Some(format!("{}=to_bus", l.flow.topic)),
        (_, to) if to == host => Some(format!("{}=to_ros", l.flow.topic)),
        _ => None,
    });
    crosses.flat_map(|t| ["--topic".to_owned(), t]).collect()
}

/// Bridges of all hosts where a leg begins or ends, each to the host's own domain of DDS. Dropping it ends them.
pub(super) struct Domains(Daemons);

impl Domains {
    /// Starts them. Messages from a host's nodes cross to its bus, and messages for the nodes cross back.
    pub(super) fn up(tools: &Tools<'_>, site: &Site<'_>, legs: &[Leg]) -> Result<Domains, RunError> {
        let mut bridges = Daemons::default();
        let program = site.executable().to_string_lossy().into_owned();
        let hosts: BTreeSet<&str> = legs.iter().flat_map(|l| [&*l.from, &*l.to]).collect();
        for host in hosts {
            let topics = crossing(legs, host);
            let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
            let fixed = [
                &*program,
                "ros2",
                "--json",
                "--range",
                "localhost",
                "--domain",
                "0",
            ];
            let mut command = site.command(host, true, &[&fixed, &topics[..]].concat());
            tools.sandbox.prepare(&mut command);
            bridges.start(&format!("{host}, bridge"), &mut command)?;
        }
        Ok(Domains(bridges))
    }

    /// As [`Masters::end`].
    pub(super) fn end<T>(
        self,
        played: Result<T, RunError>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(T, BTreeMap<String, Value>), RunError> {
        self.0.end(played, stopped)
    }
}
