//! `ropewalk topic info -v`: node and quality of service of each endpoint, printed as by `ros2 topic info -v`.

use crate::graph::{End, Graph, Hosts, Node};
use bridge::nodes::{Kind, Qos};
use bus::{EndpointDetail, EndpointInfo, Reliability};
use serde_json::{Value, json};

/// Number of seconds that means "forever" in ROS 2.
const FOR_EVER: u64 = 9_223_372_036;

/// Endpoints of a topic, publishers first, with their nodes.
fn ends<'a>(graph: &'a Graph, topic: &'a str) -> Vec<(&'a Node, &'a End)> {
    let mut ends: Vec<_> = graph.ends_of(topic).collect();
    ends.retain(|(_, end)| matches!(end.kind, Kind::Publisher | Kind::Subscription));
    ends.sort_by_key(|(_, end)| end.kind);
    ends
}

fn hosts(ends: &[(&Node, &End)]) -> Hosts {
    match ends.iter().any(|(node, _)| !node.hosts.is_empty()) {
        true => Hosts::ask(),
        false => Hosts::default(),
    }
}

/// Text for people; empty if the topic has no endpoint.
pub(super) fn text(graph: &Graph, topic: &str) -> String {
    let ends = ends(graph, topic);
    let hosts = hosts(&ends);
    let mut out = String::new();
    for (node, end) in &ends {
        let (namespace, name) = node.name.rsplit_once('/').unwrap_or(("", &node.name));
        let namespace = if namespace.is_empty() { "/" } else { namespace };
        out += "\n";
        match node.name.is_empty() {
            true => out += &format!("Process: {}\n", node.shown()),
            false => out += &format!("Node name: {name}\nNode namespace: {namespace}\n"),
        }
        out += &format!(
            "Topic type: {}\nEndpoint type: {}\nGID: {:016x}\n",
            end.type_name,
            kind(end),
            end.id
        );
        if !node.hosts.is_empty() {
            out += &format!("Host: {}\n", hosts.way(&node.hosts));
        }
        out += "QoS profile:\n";
        for (what, _, value) in policies(graph, end) {
            out += &format!("  {what}: {value}\n");
        }
    }
    out
}

/// The same as JSON.
pub(super) fn to_json(graph: &Graph, topic: &str) -> Vec<Value> {
    let ends = ends(graph, topic);
    let hosts = hosts(&ends);
    let one = |(node, end): &(&Node, &End)| {
        let policies = policies(graph, end)
            .into_iter()
            .map(|(_, key, value)| (key.to_owned(), value.into()));
        json!({
            "node": node.name, "hosts": hosts.list(&node.hosts), "type": end.type_name, "endpoint": kind(end).to_lowercase(),
            "id": format!("{:016x}", end.id), "qos": Value::Object(policies.collect()),
        })
    };
    ends.iter().map(one).collect()
}

fn kind(end: &End) -> &'static str {
    match end.kind {
        Kind::Publisher => "PUBLISHER",
        _ => "SUBSCRIPTION",
    }
}

/// Each policy: its name for people, its name for programs, and its value.
fn policies(graph: &Graph, end: &End) -> Vec<(&'static str, &'static str, String)> {
    match &end.qos {
        Some(qos) => stated(qos),
        None => on_bus(graph, end),
    }
}

/// The numbers of `rmw/types.h` as words.
fn stated(qos: &Qos) -> Vec<(&'static str, &'static str, String)> {
    let word = |words: &[&str], code: u8| words.get(usize::from(code)).unwrap_or(&"UNKNOWN").to_string();
    let history = match qos.history {
        1 => format!("KEEP_LAST ({})", qos.depth),
        2 => "KEEP_ALL".into(),
        _ => "UNKNOWN".into(),
    };
    let policy = [
        "SYSTEM_DEFAULT",
        "RELIABLE",
        "BEST_EFFORT",
        "UNKNOWN",
        "BEST_AVAILABLE",
    ];
    let durability = [
        "SYSTEM_DEFAULT",
        "TRANSIENT_LOCAL",
        "VOLATILE",
        "UNKNOWN",
        "BEST_AVAILABLE",
    ];
    let liveliness = [
        "SYSTEM_DEFAULT",
        "AUTOMATIC",
        "UNKNOWN",
        "MANUAL_BY_TOPIC",
        "UNKNOWN",
        "BEST_AVAILABLE",
    ];
    vec![
        ("Reliability", "reliability", word(&policy, qos.reliability)),
        ("History (Depth)", "history", history),
        ("Durability", "durability", word(&durability, qos.durability)),
        ("Lifespan", "lifespan", time(qos.lifespan)),
        ("Deadline", "deadline", time(qos.deadline)),
        ("Liveliness", "liveliness", word(&liveliness, qos.liveliness)),
        (
            "Liveliness lease duration",
            "liveliness_lease_duration",
            time(qos.lease),
        ),
    ]
}

fn time((seconds, nanoseconds): (u64, u64)) -> String {
    match (seconds, nanoseconds) {
        (0, 0) | (FOR_EVER.., _) => "Infinite".into(),
        (s, ns) => format!("{} s", s as f64 + ns as f64 / 1e9),
    }
}

/// The quality of service that a program without a ROS 2 node states on the bus.
fn on_bus(graph: &Graph, end: &End) -> Vec<(&'static str, &'static str, String)> {
    let all = graph
        .survey
        .topics
        .iter()
        .flat_map(|t| t.publishers.iter().chain(&t.subscribers));
    let Some(endpoint) = all.into_iter().find(|e: &&EndpointInfo| e.id == end.id) else {
        return Vec::new();
    };
    match &endpoint.detail {
        EndpointDetail::Publisher(p) => {
            let reliability = match p.offer.reliability {
                Some(Reliability::Reliable) => "RELIABLE",
                Some(Reliability::BestEffort) => "BEST_EFFORT",
                None => "not stated",
            };
            let durability = match p.offer.history {
                0 => "VOLATILE".to_owned(),
                n => format!("TRANSIENT_LOCAL ({n})"),
            };
            let depth = match p.offer.depth {
                0 => "not stated".to_owned(),
                n => format!("KEEP_LAST ({n})"),
            };
            vec![
                ("Reliability", "reliability", reliability.into()),
                ("History (Depth)", "history", depth),
                ("Durability", "durability", durability),
            ]
        }
        EndpointDetail::Subscriber(s) => {
            let durability = if s.history == 0 {
                "VOLATILE"
            } else {
                "as the publishers offer"
            };
            vec![
                ("History (Depth)", "history", format!("KEEP_LAST ({})", s.depth)),
                ("Durability", "durability", durability.into()),
            ]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_named_as_ros_2_names_them() {
        let qos = Qos {
            history: 1,
            reliability: 2,
            durability: 1,
            liveliness: 3,
            depth: 5,
            deadline: (0, 500_000_000),
            lifespan: (FOR_EVER, 0),
            ..Qos::default()
        };
        let values: Vec<_> = stated(&qos).into_iter().map(|(.., value)| value).collect();
        let wanted = [
            "BEST_EFFORT",
            "KEEP_LAST (5)",
            "TRANSIENT_LOCAL",
            "Infinite",
            "0.5 s",
            "MANUAL_BY_TOPIC",
            "Infinite",
        ];
        assert_eq!(values, wanted);
    }
}
