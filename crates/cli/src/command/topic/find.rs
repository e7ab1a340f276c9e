//! `ropewalk topic type` and `ropewalk topic find`.

use crate::command::typed::{self, Kind, Typed};
use crate::failure::Outcome;
use crate::graph::Graph;
use bridge::nodes;
use clap::Args;
use ropewalk::Node;

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
fn topics(graph: &Graph) -> Typed {
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
    let ends = ends.filter(|e| matches!(e.kind, nodes::Kind::Publisher | nodes::Kind::Subscription));
    of_bus
        .chain(ends.map(|e| (e.name.clone(), e.type_name.clone())))
        .collect()
}

const KIND: Kind = Kind {
    one: "topic",
    many: "topics",
    verb: "uses",
};

pub(super) fn print_type(node: &Node, options: &Type) -> Outcome {
    let graph = Graph::look(node)?;
    typed::print_type(&graph, &topics(&graph), &KIND, &options.topic, options.json)
}

pub(super) fn find(node: &Node, options: &Find) -> Outcome {
    let graph = Graph::look(node)?;
    typed::find(&topics(&graph), &KIND, &options.type_name, options.json);
    Ok(())
}
