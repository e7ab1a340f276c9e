//! Completes names that exist now: topics, services, actions and nodes of the bus, and types.
//!
//! A shell runs this program with COMPLETE=SHELL in the environment: once to get a script, then for each line. Packages
//! install the scripts of `ropewalk completions`, which complete only commands and options.

use crate::command::action::names;
use crate::graph::{Graph, is_hidden};
use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::CompleteEnv;
use ropewalk::{Flavour, Node};
use schema::Registry;
use std::collections::BTreeSet;
use std::ffi::OsStr;

type Names = fn(&Node) -> Option<BTreeSet<String>>;

/// Answers a shell, and ends the process, if one asks.
pub(crate) fn answer() {
    CompleteEnv::with_factory(|| with_names(crate::command())).complete();
}

/// The name of an argument's value says what it is.
fn with_names(command: Command) -> Command {
    command.mut_args(with_completer).mut_subcommands(with_names)
}

fn with_completer(arg: Arg) -> Arg {
    let shown = arg.get_value_names().and_then(|names| names.first());
    let names: Names = match shown.map_or_else(|| arg.get_id().as_str(), |name| name.as_str()) {
        "TOPIC" => topics,
        "SERVICE" => services,
        "ACTION" => actions,
        "NODE" => nodes,
        "TYPE" => types,
        _ => return arg,
    };
    arg.add(ArgValueCompleter::new(move |typed: &OsStr| {
        candidates(typed, names)
    }))
}

/// The names that continue what is typed, in whose form they are: with or without the leading slash.
fn candidates(typed: &OsStr, names: Names) -> Vec<CompletionCandidate> {
    let (Some(typed), Ok(node)) = (typed.to_str(), Node::new("completion")) else {
        return Vec::new();
    };
    let all = names(&node).unwrap_or_default();
    // Other processes chose the names, and a shell prints them as they are.
    let all = all.into_iter().filter(|name| !name.contains(char::is_control));
    let of_form = all.map(|name| match name.strip_prefix('/') {
        Some(bare) if !typed.is_empty() && !typed.starts_with('/') => bare.to_owned(),
        _ => name,
    });
    of_form
        .filter(|name| name.starts_with(typed))
        .map(CompletionCandidate::new)
        .collect()
}

fn topics(node: &Node) -> Option<BTreeSet<String>> {
    let names = node.topics().ok()?.into_iter().map(|t| t.topic.topic);
    Some(names.filter(|name| !is_hidden(name)).collect())
}

fn services(node: &Node) -> Option<BTreeSet<String>> {
    let survey = node.survey().ok()?;
    let names = survey.services().into_iter().map(|s| s.service.service);
    Some(names.filter(|name| !is_hidden(name)).collect())
}

fn actions(node: &Node) -> Option<BTreeSet<String>> {
    let graph = Graph::look(node).ok()?;
    let of = |serves| graph.nodes.iter().flat_map(move |n| names::of_node(n, serves));
    let all = of(true).chain(of(false)).map(|(name, _)| name.to_owned());
    Some(all.filter(|name| !is_hidden(name)).collect())
}

fn nodes(node: &Node) -> Option<BTreeSet<String>> {
    let nodes = Graph::look(node).ok()?.nodes.into_iter();
    let names = nodes.filter(|n| !n.is_hidden()).map(|n| n.name);
    Some(
        names
            .filter(|name| !name.is_empty() && name != "/completion")
            .collect(),
    )
}

/// Those that are built in, as ROS 2 writes them, and those in use.
fn types(node: &Node) -> Option<BTreeSet<String>> {
    let registry = Registry::from_env(Flavour::Ros2);
    let built_in = registry.names();
    let built_in = built_in
        .iter()
        .map(|ty| format!("{}/msg/{}", ty.package(), ty.name()));
    let survey = node.survey().ok()?;
    let services = survey.services().into_iter().map(|s| s.service.type_name);
    let topics = node.topics().ok()?.into_iter().map(|t| t.topic.type_name);
    Some(built_in.chain(services).chain(topics).collect())
}
