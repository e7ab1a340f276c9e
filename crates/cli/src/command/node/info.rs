//! `ropewalk node info`: the endpoints of a node, printed as by `ros2 node info`.

use super::list;
use crate::command::action::names;
use crate::command::endpoints;
use crate::failure::{Failure, OrFail, Outcome};
use crate::graph::{self, End, Graph, Hosts, is_hidden};
use bridge::nodes::Kind;
use clap::Args;
use schema::{did_you_mean, nearest};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;

/// Print a node's subscribers, publishers, services and actions
///
///   ropewalk node info /talker
///   ropewalk node info talker -a     # with the parts of actions and other
///                                    # hidden names
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Options {
    /// The node, with its namespace.
    node: String,
    /// Also print hidden topics and services, in whose names a word starts with an underscore.
    #[arg(short, long, alias = "include-hidden")]
    all: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(node: &ropewalk::Node, options: &Options) -> Outcome {
    let graph = Graph::look(node)?;
    let found = graph.named(&options.node);
    if found.is_empty() {
        return Err(unknown(&graph, &options.node));
    }
    let hosts = if found.iter().any(|n| !n.hosts.is_empty()) {
        Hosts::ask()
    } else {
        Hosts::default()
    };
    let mut out = crate::screen::stdout();
    if options.json {
        let nodes: Vec<_> = found.iter().map(|n| to_json(n, &hosts, options.all)).collect();
        return writeln!(out, "{:#}", json!({ "nodes": nodes })).or_job("writing");
    }
    if found.len() > 1 {
        crate::screen::tell!("{} nodes are called {}", found.len(), found[0].name);
    }
    found
        .iter()
        .try_for_each(|n| write!(out, "{}", text(n, &hosts, options.all)))
        .or_job("writing")
}

/// The error for an unknown node.
pub(crate) fn unknown(graph: &Graph, name: &str) -> Failure {
    let silent = endpoints::but_silent(&graph.survey);
    let full = format!("/{}", name.trim_start_matches('/'));
    let near = nearest(&full, graph.nodes.iter().map(|n| n.name.as_str()));
    Failure::input(format_args!(
        "no node {full}{}; `ropewalk node list -a` lists all{silent}",
        did_you_mean(near)
    ))
}

/// Sections of a node by their headings: names with their types.
fn sections(node: &graph::Node, all: bool) -> [(&'static str, &'static str, BTreeMap<&str, String>); 6] {
    let of = |kind: Kind| {
        let ends = node
            .ends
            .iter()
            .filter(move |e| e.kind == kind && (all || !is_hidden(&e.name)));
        ends.map(|e: &End| (e.name.as_str(), e.type_name.clone()))
            .collect()
    };
    let actions = |server: bool| names::of_node(node, server).into_iter().collect();
    [
        ("Subscribers", "subscribers", of(Kind::Subscription)),
        ("Publishers", "publishers", of(Kind::Publisher)),
        ("Service Servers", "service_servers", of(Kind::Service)),
        ("Service Clients", "service_clients", of(Kind::Client)),
        ("Action Servers", "action_servers", actions(true)),
        ("Action Clients", "action_clients", actions(false)),
    ]
}

fn text(node: &graph::Node, hosts: &Hosts, all: bool) -> String {
    let mut out = format!("{}\n", node.name);
    if let Some((pid, program)) = &node.process {
        out += &format!("  Process: {}\n", endpoints::process(program.as_deref(), *pid));
    }
    if !node.hosts.is_empty() {
        out += &format!("  Host: {}\n", hosts.way(&node.hosts));
    }
    for (heading, _, parts) in sections(node, all) {
        out += &format!("  {heading}:\n");
        for (name, ty) in parts {
            out += &format!("    {name}: {ty}\n");
        }
        out.push('\n');
    }
    // The blank line after the last section.
    out.pop();
    out
}

fn to_json(node: &graph::Node, hosts: &Hosts, all: bool) -> Value {
    let mut out = list::to_json(node, hosts);
    for (_, key, parts) in sections(node, all) {
        let parts: Vec<_> = parts
            .iter()
            .map(|(name, ty)| json!({ "name": name, "type": ty }))
            .collect();
        out[key] = parts.into();
    }
    out
}
