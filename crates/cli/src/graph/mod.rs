//! Nodes, and what each publishes, subscribes to, serves and calls.
//!
//! Nodes of ROS 2 publish records of themselves on the bus, and links repeat those of other hosts. Other programs state
//! a node only with each publisher; the other endpoints of a process count as its node's, if it has only one.

mod hosts;
mod name;
mod plain;
mod records;

use crate::failure::{Failure, OrFail};
use bridge::nodes::{Kind, Qos};
use bus::{EndpointInfo, Ros, Survey};
pub(crate) use hosts::Hosts;
pub(crate) use name::{full, is_hidden, is_same_type, type_name};

/// All nodes, and the survey of the bus from which they were found.
pub(crate) struct Graph {
    /// By name.
    pub(crate) nodes: Vec<Node>,
    pub(crate) survey: Survey,
}

/// A node with its endpoints.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// Name with namespace; empty if its process states none.
    pub(crate) name: String,
    /// Hosts on the path to it, the farthest first; none if it is on this host.
    pub(crate) hosts: Vec<u64>,
    /// Its process and program, if it is on this host.
    pub(crate) process: Option<(i32, Option<String>)>,
    /// Whether it is a node of ROS 2 over `rmw_ropewalk`.
    pub(crate) is_ros2: bool,
    pub(crate) ends: Vec<End>,
}

/// What a node publishes, subscribes to, serves or calls.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) kind: Kind,
    /// Full name of the topic or service.
    pub(crate) name: String,
    /// Type name as its ROS writes it.
    pub(crate) type_name: String,
    /// Identifier on the bus, for topics.
    pub(crate) id: u64,
    /// What a node of ROS 2 states.
    pub(crate) qos: Option<Qos>,
}

impl Graph {
    /// Asks the bus. Blocks for a second at most.
    pub(crate) fn look(node: &ropewalk::Node) -> Result<Graph, Failure> {
        let survey = node.survey().or_input()?;
        let records = records::take(node, &survey)?;
        let mut nodes = Vec::new();
        let mut contexts = Vec::new();
        for (publisher, record) in records {
            let process = process(&survey, publisher);
            for participant in record.participants {
                let is_here = participant.hosts.is_empty();
                if is_here {
                    contexts.extend(process.as_ref().map(|p| p.0));
                }
                nodes.extend(participant.nodes.into_iter().map(|node| Node {
                    name: full(&node.namespace, &node.name),
                    hosts: participant.hosts.clone(),
                    process: process.clone().filter(|_| is_here),
                    is_ros2: true,
                    ends: node.endpoints.into_iter().map(End::of_record).collect(),
                }));
            }
        }
        nodes.extend(plain::nodes(&survey, &contexts));
        nodes.sort_by(|a, b| (&a.name, &a.hosts, a.pid()).cmp(&(&b.name, &b.hosts, b.pid())));
        Ok(Graph { nodes, survey })
    }

    /// All nodes called `name`, with or without the leading slash.
    pub(crate) fn named(&self, name: &str) -> Vec<&Node> {
        let wanted = name.trim_start_matches('/');
        let of = |node: &&Node| !node.name.is_empty() && node.name.trim_start_matches('/') == wanted;
        self.nodes.iter().filter(of).collect()
    }

    /// The endpoints of a topic or service, with their nodes.
    pub(crate) fn ends_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a Node, &'a End)> {
        let ends = self.nodes.iter().flat_map(|n| n.ends.iter().map(move |e| (n, e)));
        ends.filter(move |(_, end)| end.name == name)
    }

    /// The type of a topic or service as its ROS writes it: as a node of ROS 2 states it, else from the bus's name for
    /// it.
    pub(crate) fn type_of(&self, name: &str, on_bus: &str, ros: Ros, folder: &str) -> String {
        let mut stated = self.ends_of(name).filter(|(node, _)| node.is_ros2);
        let short = |long: &str| name::without_folder(long) == on_bus;
        match stated.find(|(_, end)| short(&end.type_name)) {
            Some((_, end)) if ros != Ros::One => end.type_name.clone(),
            _ => type_name(on_bus, ros, folder),
        }
    }
}

impl Node {
    fn pid(&self) -> i32 {
        self.process.as_ref().map_or(0, |p| p.0)
    }

    /// Whether ROS 2 hides it: its name starts with an underscore. A process without a node has no name to show.
    pub(crate) fn is_hidden(&self) -> bool {
        self.name.is_empty() || self.name.rsplit('/').next().is_some_and(|n| n.starts_with('_'))
    }

    /// Its name, or its program if it has none.
    pub(crate) fn shown(&self) -> String {
        match (&*self.name, &self.process) {
            ("", Some((pid, program))) => crate::command::endpoints::process(program.as_deref(), *pid),
            (name, _) => name.to_owned(),
        }
    }
}

impl End {
    fn of_record(end: bridge::nodes::Endpoint) -> End {
        End {
            kind: end.kind,
            name: end.name,
            type_name: end.type_name,
            id: end.id,
            qos: Some(end.qos),
        }
    }
}

/// The process of an endpoint of the bus.
fn process(survey: &Survey, id: u64) -> Option<(i32, Option<String>)> {
    let all = survey
        .topics
        .iter()
        .flat_map(|t| t.publishers.iter().chain(&t.subscribers));
    let mut of = all.filter(|e: &&EndpointInfo| e.id == id);
    of.next().map(|e| (e.pid, e.program.clone()))
}
