//! `ropewalk node list`.

use crate::command::endpoints;
use crate::failure::{OrFail, Outcome};
use crate::graph::{self, Graph, Hosts};
use clap::Args;
use serde_json::json;
use std::io::Write;

/// Print the names of all nodes, one per line.
#[derive(Args)]
pub(super) struct Options {
    /// Also print hidden nodes, whose names start with an underscore, and processes that state no node.
    #[arg(short, long)]
    all: bool,
    /// Print only the number of nodes.
    #[arg(short = 'c', long = "count-nodes")]
    count: bool,
    /// Print JSON, with each node's process and the hosts on its path.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(node: &ropewalk::Node, options: &Options) -> Outcome {
    let graph = Graph::look(node)?;
    let shown: Vec<_> = graph
        .nodes
        .iter()
        .filter(|n| options.all || !n.is_hidden())
        .collect();
    let mut out = crate::screen::stdout();
    if options.json {
        let hosts = if shown.iter().any(|n| !n.hosts.is_empty()) {
            Hosts::ask()
        } else {
            Hosts::default()
        };
        let nodes: Vec<_> = shown.iter().map(|n| to_json(n, &hosts)).collect();
        let all = json!({ "nodes": nodes, "silent": endpoints::silent_json(&graph.survey) });
        return writeln!(out, "{all:#}").or_job("writing");
    }
    if let Some(silent) = endpoints::silent(&graph.survey) {
        crate::screen::tell!("{silent}");
    }
    if options.count {
        return writeln!(out, "{}", shown.len()).or_job("writing");
    }
    if shown.is_empty() {
        let folder = node.bus().config().runtime_dir.display();
        crate::screen::tell!(
            "no nodes in {folder}; `ropewalk node list -a` also shows processes that state no node"
        );
    }
    shown
        .iter()
        .try_for_each(|n| writeln!(out, "{}", n.shown()))
        .or_job("writing")
}

/// JSON fields common to `node list` and `node info`.
pub(super) fn to_json(node: &graph::Node, hosts: &Hosts) -> serde_json::Value {
    json!({
        "node": node.name, "ros2": node.is_ros2, "hosts": hosts.list(&node.hosts),
        "pid": node.process.as_ref().map(|p| p.0), "program": node.process.as_ref().and_then(|p| p.1.clone()),
    })
}
