//! `ropewalk service type` and `ropewalk service find`.

use crate::command::typed::{self, Kind, Typed};
use crate::failure::Outcome;
use crate::graph::Graph;
use clap::Args;
use ropewalk::Node;

#[derive(Args)]
pub(super) struct Type {
    /// The service.
    service: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(super) struct Find {
    /// Type name, such as std_srvs/srv/SetBool or std_srvs/SetBool.
    #[arg(value_name = "TYPE")]
    type_name: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// All services with their types.
fn services(graph: &Graph) -> Typed {
    let services = graph.survey.services().into_iter().map(|s| {
        let (name, ty) = (s.service.service, s.service.type_name);
        let ty = graph.type_of(&name, &ty, s.service.flavour.ros, "srv");
        (name, ty)
    });
    services.collect()
}

const KIND: Kind = Kind {
    one: "service",
    many: "services",
    verb: "serves or calls",
};

pub(super) fn print_type(node: &Node, options: &Type) -> Outcome {
    let graph = Graph::look(node)?;
    typed::print_type(&graph, &services(&graph), &KIND, &options.service, options.json)
}

pub(super) fn find(node: &Node, options: &Find) -> Outcome {
    let graph = Graph::look(node)?;
    typed::find(&services(&graph), &KIND, &options.type_name, options.json);
    Ok(())
}
