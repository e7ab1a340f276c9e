//! Nodes of programs that publish no records: those that use Ropewalk's own API, in any language.

use super::{End, Node, type_name};
use bridge::nodes::Kind;
use bus::{EndpointDetail, EndpointInfo, Survey};
use std::collections::BTreeMap;

/// An endpoint, before its node is known.
struct Found {
    process: (i32, Option<String>),
    /// The node that it states, if any.
    node: String,
    end: End,
}

/// Nodes of all processes except this one and those of ROS 2.
pub(super) fn nodes(survey: &Survey, contexts: &[i32]) -> Vec<Node> {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let mut by_process: BTreeMap<i32, Vec<Found>> = BTreeMap::new();
    for found in endpoints(survey) {
        let pid = found.process.0;
        if pid != own && !contexts.contains(&pid) {
            by_process.entry(pid).or_default().push(found);
        }
    }
    by_process.into_values().flat_map(of_process).collect()
}

fn of_process(found: Vec<Found>) -> Vec<Node> {
    let mut nodes: BTreeMap<String, Node> = BTreeMap::new();
    let mut stated: Vec<_> = found
        .iter()
        .map(|f| f.node.clone())
        .filter(|n| !n.is_empty())
        .collect();
    stated.sort();
    stated.dedup();
    for Found { process, node, end } in found {
        let name = match (&*node, stated.as_slice()) {
            ("", [only]) => only.clone(),
            (name, _) => name.to_owned(),
        };
        let node = nodes.entry(name.clone()).or_insert_with(|| Node {
            name,
            process: Some(process),
            ..Node::default()
        });
        node.ends.push(end);
    }
    nodes.into_values().collect()
}

fn endpoints(survey: &Survey) -> Vec<Found> {
    let mut all = Vec::new();
    let mut add = |endpoint: &EndpointInfo, end: (Kind, &str, String)| {
        let node = match &endpoint.detail {
            EndpointDetail::Publisher(p) => p.offer.node.clone(),
            _ => String::new(),
        };
        all.push(Found {
            process: (endpoint.pid, endpoint.program.clone()),
            node,
            end: End {
                kind: end.0,
                name: end.1.to_owned(),
                type_name: end.2,
                id: endpoint.id,
                qos: None,
            },
        });
    };
    for t in survey.topics.iter().filter(|t| !t.is_of_service()) {
        let ty = || type_name(&t.topic.type_name, t.topic.flavour.ros, "msg");
        t.publishers
            .iter()
            .for_each(|e| add(e, (Kind::Publisher, &t.topic.topic, ty())));
        t.subscribers
            .iter()
            .for_each(|e| add(e, (Kind::Subscription, &t.topic.topic, ty())));
    }
    for s in survey.services() {
        let ty = || type_name(&s.service.type_name, s.service.flavour.ros, "srv");
        s.servers
            .iter()
            .for_each(|e| add(e, (Kind::Service, &s.service.service, ty())));
        s.clients
            .iter()
            .for_each(|e| add(e, (Kind::Client, &s.service.service, ty())));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(node: &str, name: &str) -> Found {
        Found {
            process: (7, None),
            node: node.into(),
            end: End {
                kind: Kind::Publisher,
                name: name.into(),
                type_name: String::new(),
                id: 0,
                qos: None,
            },
        }
    }

    #[test]
    fn endpoints_without_a_node_belong_to_the_only_one_of_their_process() {
        let of = |found| {
            let nodes: Vec<_> = of_process(found)
                .into_iter()
                .map(|n| (n.name, n.ends.len()))
                .collect();
            nodes
        };
        assert_eq!(of(vec![found("/a", "/x"), found("", "/y")]), [("/a".into(), 2)]);
        let two = of(vec![found("/a", "/x"), found("/b", "/x"), found("", "/y")]);
        assert_eq!(two, [(String::new(), 1), ("/a".into(), 1), ("/b".into(), 1)]);
        assert_eq!(of(vec![found("", "/y")]), [(String::new(), 1)]);
    }
}
