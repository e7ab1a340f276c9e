//! `ropewalk service type` and `ropewalk service find`.

use crate::command::endpoints;
use crate::failure::{Failure, Outcome};
use crate::graph::{Graph, is_same_type};
use clap::Args;
use ropewalk::Node;
use schema::{did_you_mean, nearest};
use serde_json::json;
use std::collections::BTreeSet;

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
    let full = format!("/{}", options.service.trim_start_matches('/'));
    let all = services(&graph);
    let found: Vec<_> = all.iter().filter(|(name, _)| *name == full).collect();
    if found.is_empty() {
        let near = nearest(&full, all.iter().map(|(name, _)| name.as_str()));
        return Err(Failure::input(format_args!(
            "no program serves or calls {full}{}; `ropewalk service list` lists the services{}",
            did_you_mean(near),
            endpoints::but_silent(&graph.survey)
        )));
    }
    if options.json {
        let types: Vec<_> = found.iter().map(|(_, ty)| ty).collect();
        crate::screen::say!("{:#}", json!({ "service": full, "types": types }));
        return Ok(());
    }
    found.iter().for_each(|(_, ty)| crate::screen::say!("{ty}"));
    Ok(())
}

pub(super) fn find(node: &Node, options: &Find) -> Outcome {
    let graph = Graph::look(node)?;
    let all = services(&graph);
    let of = |ty: &str| is_same_type(ty, &options.type_name);
    let names: BTreeSet<_> = all
        .iter()
        .filter(|(_, ty)| of(ty))
        .map(|(name, _)| name)
        .collect();
    if options.json {
        crate::screen::say!("{:#}", json!({ "type": options.type_name, "services": names }));
        return Ok(());
    }
    if names.is_empty() {
        let near = nearest(&options.type_name, all.iter().map(|(_, ty)| ty.as_str()));
        crate::screen::tell!("no service of type {}{}", options.type_name, did_you_mean(near));
    }
    names.iter().for_each(|name| crate::screen::say!("{name}"));
    Ok(())
}
