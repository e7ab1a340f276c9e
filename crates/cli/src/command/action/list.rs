//! Actions on this host: `ropewalk action list`, `info`, `type` and `find`.

use super::names;
use crate::command::endpoints;
use crate::failure::{Failure, OrFail, Outcome};
use crate::graph::{Graph, Node, is_hidden, is_same_type};
use clap::Args;
use schema::{did_you_mean, nearest};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

/// Print the names of all actions, one per line.
#[derive(Args)]
pub(super) struct List {
    /// Print the type after each action.
    #[arg(short = 't', long)]
    show_types: bool,
    /// Print only the number of actions.
    #[arg(short = 'c', long = "count-actions")]
    count: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Print the nodes that serve and call an action.
#[derive(Args)]
pub(super) struct Info {
    /// The action.
    action: String,
    /// Print the action's type after each node.
    #[arg(short = 't', long)]
    show_types: bool,
    /// Print only the numbers of servers and clients.
    #[arg(short = 'c', long)]
    count: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(super) struct Type {
    /// The action.
    action: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(super) struct Find {
    /// Type name, such as example_interfaces/action/Fibonacci.
    #[arg(value_name = "TYPE")]
    type_name: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Servers and clients of an action, with the type that each states.
#[derive(Default)]
struct Action<'a> {
    types: BTreeSet<String>,
    servers: Vec<(&'a Node, String)>,
    clients: Vec<(&'a Node, String)>,
}

impl Action<'_> {
    fn to_json(&self, name: &str) -> Value {
        let nodes = |all: &[(&Node, String)]| -> Vec<Value> {
            let one = |(node, ty): &(&Node, String)| json!({ "node": node.shown(), "type": ty });
            all.iter().map(one).collect()
        };
        json!({ "action": name, "types": self.types, "servers": nodes(&self.servers), "clients": nodes(&self.clients) })
    }
}

fn actions(graph: &Graph) -> BTreeMap<&str, Action<'_>> {
    let mut all = BTreeMap::<&str, Action<'_>>::new();
    for node in &graph.nodes {
        for serves in [true, false] {
            for (name, ty) in names::of_node(node, serves) {
                let action = all.entry(name).or_default();
                action.types.insert(ty.clone());
                let nodes = if serves {
                    &mut action.servers
                } else {
                    &mut action.clients
                };
                nodes.push((node, ty));
            }
        }
    }
    all
}

pub(super) fn list(node: &ropewalk::Node, options: &List) -> Outcome {
    let graph = Graph::look(node)?;
    let mut all = actions(&graph);
    all.retain(|name, _| !is_hidden(name));
    let mut out = crate::screen::stdout();
    if options.json {
        let actions: Vec<_> = all.iter().map(|(name, action)| action.to_json(name)).collect();
        let all = json!({ "actions": actions, "silent": endpoints::silent_json(&graph.survey) });
        return writeln!(out, "{all:#}").or_job("writing");
    }
    if let Some(silent) = endpoints::silent(&graph.survey) {
        crate::screen::tell!("{silent}");
    }
    if options.count {
        return writeln!(out, "{}", all.len()).or_job("writing");
    }
    if all.is_empty() {
        crate::screen::tell!("no actions in {}", node.bus().config().runtime_dir.display());
    }
    let mut all = all.iter();
    all.try_for_each(|(name, action)| match options.show_types {
        true => writeln!(out, "{name} [{}]", joined(&action.types)),
        false => writeln!(out, "{name}"),
    })
    .or_job("writing")
}

pub(super) fn info(node: &ropewalk::Node, options: &Info) -> Outcome {
    let graph = Graph::look(node)?;
    let (name, action) = one(&graph, &options.action)?;
    let mut out = crate::screen::stdout();
    if options.json {
        return writeln!(out, "{:#}", action.to_json(name)).or_job("writing");
    }
    let mut text = format!("Action: {name}\n");
    for (heading, nodes) in [
        ("Action clients", &action.clients),
        ("Action servers", &action.servers),
    ] {
        text += &format!("{heading}: {}\n", nodes.len());
        for (node, ty) in nodes.iter().filter(|_| !options.count) {
            let ty = if options.show_types {
                format!(" [{ty}]")
            } else {
                String::new()
            };
            text += &format!("    {}{ty}\n", node.shown());
        }
    }
    write!(out, "{text}").or_job("writing")
}

pub(super) fn print_type(node: &ropewalk::Node, options: &Type) -> Outcome {
    let graph = Graph::look(node)?;
    let (name, action) = one(&graph, &options.action)?;
    if options.json {
        crate::screen::say!("{:#}", json!({ "action": name, "types": action.types }));
        return Ok(());
    }
    action.types.iter().for_each(|ty| crate::screen::say!("{ty}"));
    Ok(())
}

pub(super) fn find(node: &ropewalk::Node, options: &Find) -> Outcome {
    let graph = Graph::look(node)?;
    let all = actions(&graph);
    let of = |action: &Action<'_>| action.types.iter().any(|ty| is_same_type(ty, &options.type_name));
    let names: Vec<_> = all
        .iter()
        .filter(|(_, action)| of(action))
        .map(|(name, _)| name)
        .collect();
    if options.json {
        crate::screen::say!("{:#}", json!({ "type": options.type_name, "actions": names }));
        return Ok(());
    }
    if names.is_empty() {
        let types = all.values().flat_map(|action| &action.types);
        let near = nearest(&options.type_name, types.map(String::as_str));
        crate::screen::tell!("no action of type {}{}", options.type_name, did_you_mean(near));
    }
    names.iter().for_each(|name| crate::screen::say!("{name}"));
    Ok(())
}

/// The action of that name, with or without the leading slash.
fn one<'a>(graph: &'a Graph, name: &str) -> Result<(&'a str, Action<'a>), Failure> {
    let wanted = name.trim_start_matches('/');
    let all = actions(graph);
    let near = nearest(&format!("/{wanted}"), all.keys().copied()).map(str::to_owned);
    let found = all
        .into_iter()
        .find(|(name, _)| name.trim_start_matches('/') == wanted);
    found.ok_or_else(|| {
        let near = did_you_mean(near.as_deref());
        let silent = endpoints::but_silent(&graph.survey);
        Failure::input(format_args!(
            "no node serves or calls the action /{wanted}{near}; `ropewalk action list` lists the actions{silent}"
        ))
    })
}

fn joined(types: &BTreeSet<String>) -> String {
    types.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}
