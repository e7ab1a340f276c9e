//! Nodes of ROS at both ends, with a bridge on each host that joins them to its bus: nodes of roscpp with a roscore on
//! each host, as Pound requires, or nodes of ROS 2 over DDS.

use super::Tools;
use super::network::{Called, Topic};
use super::zenoh;
use crate::flows::play::{Leg, Part};
use crate::kit::error::RunError;
use crate::kit::links::Daemons;
use crate::kit::roscpp::{Peer, Source, Transport};
use crate::kit::site::{Job, Site};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::process::Command;

/// The hosts on which a leg begins or ends.
pub(super) fn ends(legs: &[Leg]) -> BTreeSet<&str> {
    legs.iter().flat_map(|l| [&*l.from, &*l.to]).collect()
}

/// A roscore and a bridge on each of some hosts. Dropping it ends them.
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
        legs: &[Leg],
        hosts: &BTreeSet<&'a str>,
    ) -> Result<Masters<'a>, RunError> {
        let mut masters = Masters {
            ros: tools.ros()?,
            addresses: BTreeMap::new(),
            bridges: Daemons::default(),
            roscores: Vec::new(),
        };
        let program = site.executable().to_string_lossy().into_owned();
        for host in hosts {
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

/// Starts a bridge on each of some hosts, to the host's own domain of DDS. Messages from a host's nodes cross to its bus, and
/// messages for the nodes cross back.
pub(super) fn domains(
    tools: &Tools<'_>,
    site: &Site<'_>,
    (legs, called): (&[Leg], &[Called]),
    hosts: &BTreeSet<&str>,
) -> Result<Daemons, RunError> {
    let mut bridges = Daemons::default();
    let program = site.executable().to_string_lossy().into_owned();
    for host in hosts {
        let mut topics = crossing(legs, host);
        topics.extend(called.iter().flat_map(|c| c.bridged(host)));
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
        command.env("AMENT_PREFIX_PATH", tools.rclpy()?.prefix());
        bridges.start(&format!("{host}, bridge"), &mut command)?;
    }
    Ok(bridges)
}

/// Starts a second bridge on each host, from its bus to Zenoh; the sessions of all hosts connect to `middle`.
pub(super) fn to_zenoh(
    tools: &Tools<'_>,
    site: &Site<'_>,
    legs: &[Leg],
    topics: &[Topic],
    called: &[Called],
    middle: &str,
) -> Result<Daemons, RunError> {
    let mut bridges = Daemons::default();
    let program = site.executable().to_string_lossy().into_owned();
    for host in ends(legs) {
        let session = zenoh::passing(site, host, middle)?;
        let session_file = tools.file(&format!("{host}-passed.json5"));
        let text = zenoh_rules(legs, topics, called, host, &session_file.to_string_lossy());
        let file = tools.file(&format!("{host}-passed.yaml"));
        for (file, text) in [(&session_file, session), (&file, text)] {
            fs::write(file, text).map_err(|e| format!("{}: {e}", file.display()))?;
        }
        let words = [&*program, "ros2", &*file.to_string_lossy(), "--json"];
        let mut command = site.command(host, true, &words);
        tools.sandbox.prepare(&mut command);
        command.env("AMENT_PREFIX_PATH", tools.rclpy()?.prefix());
        bridges.start(&format!("{host}, bridge to Zenoh"), &mut command)?;
    }
    Ok(bridges)
}

/// The configuration of a host's bridge to Zenoh: the other way round than to its own nodes.
fn zenoh_rules(legs: &[Leg], topics: &[Topic], called: &[Called], host: &str, session: &str) -> String {
    let mut text = format!("wire: zenoh\nfrom_bridges: true\nzenoh: {{config: '{session}'}}\ntopics:\n");
    for (leg, topic) in legs.iter().zip(topics) {
        // On the way to Zenoh, the bridge takes the priority that the topic has on the bus.
        let way = match (leg.from == host, leg.to == host) {
            (true, _) => "to_ros".to_owned(),
            (_, true) => format!("to_bus, priority: {}", topic.priority),
            _ => continue,
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  - {{name: {}, direction: {way}}}", leg.flow.topic);
    }
    for (is_action, key) in [(false, "services"), (true, "actions")] {
        let of_host = called.iter().filter(|c| c.is_action == is_action);
        let of_host = of_host.filter(|c| c.server == host || c.caller == host);
        let mut of_host = of_host.peekable();
        if of_host.peek().is_some() {
            let _ = writeln!(text, "{key}:");
        }
        for each in of_host {
            let way = if each.server == host { "to_ros" } else { "to_bus" };
            let _ = writeln!(text, "  - {{name: {}, direction: {way}}}", each.name);
        }
    }
    text
}
