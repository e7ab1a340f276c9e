//! `ropewalk service type` and `ropewalk service find`.

use crate::command::endpoints;
use crate::failure::{Failure, Outcome};
use crate::graph::{Graph, is_same_type};
use clap::Args;
use ropewalk::Node;
use std::collections::BTreeSet;

#[derive(Args)]
pub(super) struct Type {
    /// The service.
    service: String,
}

#[derive(Args)]
pub(super) struct Find {
    /// Type name, such as std_srvs/srv/SetBool or std_srvs/SetBool.
    #[arg(value_name = "TYPE")]
    type_name: String,
}

/// All services with their types.
fn services(graph: &Graph) -> BTreeSet<(String, String)> {
    let services = graph.survey.services().into_iter().map(|s| {
        let (name, ty) = (s.service.service, s.service.type_name);
        let ty = graph.type_of(&name, &ty, s.service.flavour.ros, "srv");
        (name, ty)
    });
    services.collect()
}

pub(super) fn print_type(node: &Node, options: &Type) -> Outcome {
    let graph = Graph::look(node)?;
    let wanted = options.service.trim_start_matches('/');
    let mut found = services(&graph);
    found.retain(|(name, _)| name.trim_start_matches('/') == wanted);
    if found.is_empty() {
        return Err(Failure::input(format_args!(
            "no program serves or calls /{wanted}; `ropewalk service list` lists the services{}",
            endpoints::but_silent(&graph.survey)
        )));
    }
    found.iter().for_each(|(_, ty)| crate::screen::say!("{ty}"));
    Ok(())
}

pub(super) fn find(node: &Node, options: &Find) -> Outcome {
    let graph = Graph::look(node)?;
    let mut found = services(&graph);
    found.retain(|(_, ty)| is_same_type(ty, &options.type_name));
    if found.is_empty() {
        crate::screen::tell!("no service of type {}", options.type_name);
    }
    found.iter().for_each(|(name, _)| crate::screen::say!("{name}"));
    Ok(())
}
