//! `ropewalk topic type` and `ropewalk topic find`.

use crate::command::endpoints;
use crate::failure::{Failure, Outcome};
use crate::graph::{Graph, is_same_type};
use bridge::nodes::Kind;
use clap::Args;
use ropewalk::Node;
use schema::{did_you_mean, nearest};
use serde_json::json;
use std::collections::BTreeSet;

#[derive(Args)]
pub(super) struct Type {
    /// The topic.
    topic: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(super) struct Find {
    /// Type name, such as sensor_msgs/msg/LaserScan or sensor_msgs/LaserScan.
    #[arg(value_name = "TYPE")]
    type_name: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// All topics with their types, including those of other hosts' nodes.
fn topics(graph: &Graph) -> BTreeSet<(String, String)> {
    let of_bus = graph
        .survey
        .topics
        .iter()
        .filter(|t| !t.is_of_service())
        .map(|t| {
            let (name, ty) = (&t.topic.topic, &t.topic.type_name);
            (name.clone(), graph.type_of(name, ty, t.topic.flavour.ros, "msg"))
        });
    let ends = graph.nodes.iter().filter(|n| n.is_ros2).flat_map(|n| &n.ends);
    let ends = ends.filter(|e| matches!(e.kind, Kind::Publisher | Kind::Subscription));
    of_bus
        .chain(ends.map(|e| (e.name.clone(), e.type_name.clone())))
        .collect()
}

pub(super) fn print_type(node: &Node, options: &Type) -> Outcome {
    let graph = Graph::look(node)?;
    let full = format!("/{}", options.topic.trim_start_matches('/'));
    let all = topics(&graph);
    let found: Vec<_> = all.iter().filter(|(name, _)| *name == full).collect();
    if found.is_empty() {
        let near = nearest(&full, all.iter().map(|(name, _)| name.as_str()));
        return Err(Failure::input(format_args!(
            "no program uses {full}{}; `ropewalk topic list` lists the topics{}",
            did_you_mean(near),
            endpoints::but_silent(&graph.survey)
        )));
    }
    if options.json {
        let types: Vec<_> = found.iter().map(|(_, ty)| ty).collect();
        crate::screen::say!("{:#}", json!({ "topic": full, "types": types }));
        return Ok(());
    }
    found.iter().for_each(|(_, ty)| crate::screen::say!("{ty}"));
    Ok(())
}

pub(super) fn find(node: &Node, options: &Find) -> Outcome {
    let graph = Graph::look(node)?;
    let all = topics(&graph);
    let of = |ty: &str| is_same_type(ty, &options.type_name);
    let names: BTreeSet<_> = all
        .iter()
        .filter(|(_, ty)| of(ty))
        .map(|(name, _)| name)
        .collect();
    if options.json {
        crate::screen::say!("{:#}", json!({ "type": options.type_name, "topics": names }));
        return Ok(());
    }
    if names.is_empty() {
        let near = nearest(&options.type_name, all.iter().map(|(_, ty)| ty.as_str()));
        crate::screen::tell!("no topic of type {}{}", options.type_name, did_you_mean(near));
    }
    names.iter().for_each(|name| crate::screen::say!("{name}"));
    Ok(())
}
