//! `ropewalk topic type` and `ropewalk topic find`.

use crate::command::endpoints;
use crate::failure::{Failure, Outcome};
use crate::graph::{Graph, is_same_type};
use bridge::nodes::Kind;
use clap::Args;
use ropewalk::Node;
use std::collections::BTreeSet;

#[derive(Args)]
pub(super) struct Type {
    /// The topic.
    topic: String,
}

#[derive(Args)]
pub(super) struct Find {
    /// Type name, such as sensor_msgs/msg/LaserScan or sensor_msgs/LaserScan.
    #[arg(value_name = "TYPE")]
    type_name: String,
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
    let wanted = options.topic.trim_start_matches('/');
    let mut found = topics(&graph);
    found.retain(|(name, _)| name.trim_start_matches('/') == wanted);
    if found.is_empty() {
        return Err(Failure::input(format_args!(
            "no program uses /{wanted}; `ropewalk topic list` lists the topics{}",
            endpoints::but_silent(&graph.survey)
        )));
    }
    found.iter().for_each(|(_, ty)| crate::screen::say!("{ty}"));
    Ok(())
}

pub(super) fn find(node: &Node, options: &Find) -> Outcome {
    let graph = Graph::look(node)?;
    let mut found = topics(&graph);
    found.retain(|(_, ty)| is_same_type(ty, &options.type_name));
    if found.is_empty() {
        crate::screen::tell!("no topic of type {}", options.type_name);
    }
    let names: BTreeSet<_> = found.iter().map(|(name, _)| name).collect();
    names.iter().for_each(|name| crate::screen::say!("{name}"));
    Ok(())
}
