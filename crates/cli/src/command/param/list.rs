//! `ropewalk param list`.

use super::Patience;
use super::remote::Remote;
use crate::failure::{Failure, OrFail, Outcome};
use crate::graph::Graph;
use bridge::nodes::Kind;
use clap::Args;
use ropewalk::Node;
use serde_json::json;
use std::io::Write;

/// Print the parameters of a node, or of all nodes
///
///   ropewalk param list
///   ropewalk param list /talker --param-type
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Options {
    /// The node (default: all nodes).
    node: Option<String>,
    /// Print each parameter's type.
    #[arg(long)]
    param_type: bool,
    /// Print only parameters below this prefix (may be repeated).
    #[arg(long = "param-prefixes", value_name = "PREFIX")]
    prefixes: Vec<String>,
    #[command(flatten)]
    patience: Patience,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(node: &Node, options: &Options) -> Outcome {
    let nodes = match &options.node {
        Some(name) => vec![name.clone()],
        None => with_parameters(&Graph::look(node)?),
    };
    if nodes.is_empty() {
        crate::screen::tell!("no node has parameters; `ropewalk node list` lists the nodes");
    }
    let mut out = crate::screen::stdout();
    let mut all = Vec::new();
    for name in &nodes {
        let remote = Remote::new(node, name, options.patience.duration());
        let parameters = of_node(&remote, options);
        // A node that does not answer does not stop the listing of the others.
        let parameters = match parameters {
            Err(error) if nodes.len() > 1 => {
                crate::screen::tell!("{error}");
                continue;
            }
            other => other?,
        };
        if options.json {
            let one = |(name, ty): &(String, &str)| match *ty {
                "" => json!({ "name": name }),
                ty => json!({ "name": name, "type": ty }),
            };
            let parameters: Vec<_> = parameters.iter().map(one).collect();
            all.push(json!({ "node": remote.name(), "parameters": parameters }));
            continue;
        }
        if options.node.is_none() {
            writeln!(out, "{}:", remote.name()).or_job("writing")?;
        }
        for (name, ty) in parameters {
            let ty = if ty.is_empty() {
                String::new()
            } else {
                format!(" (type: {ty})")
            };
            writeln!(out, "  {name}{ty}").or_job("writing")?;
        }
    }
    match options.json {
        true => writeln!(out, "{:#}", json!({ "nodes": all })).or_job("writing"),
        false => Ok(()),
    }
}

fn of_node(remote: &Remote<'_>, options: &Options) -> Result<Vec<(String, &'static str)>, Failure> {
    let names = remote.names(&options.prefixes)?;
    if !options.param_type {
        return Ok(names.into_iter().map(|name| (name, "")).collect());
    }
    let types = remote.descriptors(&names)?;
    Ok(names.into_iter().zip(types.iter().map(|d| d.ty.word())).collect())
}

/// Nodes that serve a list of their parameters.
fn with_parameters(graph: &Graph) -> Vec<String> {
    let has = |n: &&crate::graph::Node| {
        let service = format!("{}/list_parameters", n.name);
        !n.is_hidden()
            && n.ends
                .iter()
                .any(|e| e.kind == Kind::Service && e.name == service)
    };
    let mut names: Vec<_> = graph.nodes.iter().filter(has).map(|n| n.name.clone()).collect();
    names.dedup();
    names
}
