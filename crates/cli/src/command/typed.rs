//! The types of topics and services: `type` and `find` of both.

use super::endpoints;
use crate::failure::{Failure, Outcome};
use crate::graph::{Graph, is_same_type};
use schema::{did_you_mean, nearest};
use serde_json::json;
use std::collections::BTreeSet;

/// Names with their types.
pub(super) type Typed = BTreeSet<(String, String)>;

/// What has types.
pub(super) struct Kind {
    /// Such as `topic`, which is also the command.
    pub(super) one: &'static str,
    pub(super) many: &'static str,
    /// The verb for a program that uses one, such as `uses`.
    pub(super) verb: &'static str,
}

/// Prints the types of a name.
///
/// # Errors
/// [`Failure`]: there is none of this name.
pub(super) fn print_type(graph: &Graph, all: &Typed, kind: &Kind, name: &str, json: bool) -> Outcome {
    let full = format!("/{}", name.trim_start_matches('/'));
    let types: Vec<_> = all.iter().filter(|(n, _)| *n == full).map(|(_, ty)| ty).collect();
    if types.is_empty() {
        let near = nearest(&full, all.iter().map(|(name, _)| name.as_str()));
        let Kind { one, many, verb } = kind;
        return Err(Failure::input(format_args!(
            "no program {verb} {full}{}; `ropewalk {one} list` lists the {many}{}",
            did_you_mean(near),
            endpoints::but_silent(&graph.survey)
        )));
    }
    if json {
        crate::screen::say!("{:#}", json!({ kind.one: full, "types": types }));
        return Ok(());
    }
    types.iter().for_each(|ty| crate::screen::say!("{ty}"));
    Ok(())
}

/// Prints the names of a type.
pub(super) fn find(all: &Typed, kind: &Kind, type_name: &str, json: bool) {
    let of_type = all.iter().filter(|(_, ty)| is_same_type(ty, type_name));
    let names: BTreeSet<_> = of_type.map(|(name, _)| name).collect();
    if json {
        crate::screen::say!("{:#}", json!({ "type": type_name, kind.many: names }));
        return;
    }
    if names.is_empty() {
        let near = nearest(type_name, all.iter().map(|(_, ty)| ty.as_str()));
        crate::screen::tell!("no {} of type {type_name}{}", kind.one, did_you_mean(near));
    }
    names.iter().for_each(|name| crate::screen::say!("{name}"));
}
