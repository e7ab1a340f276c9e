//! `ropewalk param get` and `ropewalk param dump`.

use super::Target;
use super::file;
use super::value::Parameter;
use crate::failure::{OrFail, Outcome};
use clap::Args;
use ropewalk::Node;
use serde_json::json;
use std::io::Write;

/// Print values of parameters: ropewalk param get /talker use_sim_time
#[derive(Args)]
pub(super) struct Get {
    #[command(flatten)]
    target: Target,
    /// One or more parameters.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Print only the value.
    #[arg(long)]
    hide_type: bool,
    /// Print a line of JSON for each.
    #[arg(long)]
    json: bool,
}

/// Print all parameters of a node as YAML, for `param load`
///
///   ropewalk param dump /talker >talker.yaml
///
/// `ros2 param load` reads it as well.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Dump {
    #[command(flatten)]
    target: Target,
}

pub(super) fn get(node: &Node, options: &Get) -> Outcome {
    let values = options.target.remote(node).values(&options.names)?;
    let mut out = crate::screen::stdout();
    for (name, value) in options.names.iter().zip(values) {
        let ty = value.ty().word();
        let line = match (options.json, options.hide_type) {
            (true, _) => json!({ "name": name, "type": ty, "value": value.plain() }).to_string(),
            (_, true) => value.yaml(),
            _ => format!(
                "{}{} value is: {}",
                ty[..1].to_uppercase(),
                &ty[1..],
                value.yaml()
            ),
        };
        writeln!(out, "{line}").or_job("writing")?;
    }
    Ok(())
}

pub(super) fn dump(node: &Node, options: &Dump) -> Outcome {
    let remote = options.target.remote(node);
    let names = remote.names(&[])?;
    let values = if names.is_empty() {
        Vec::new()
    } else {
        remote.values_if_set(&names)?
    };
    let mut all: Vec<_> = names.into_iter().zip(values).collect();
    all.retain(|(_, value)| *value != Parameter::NotSet);
    let mut out = crate::screen::stdout();
    write!(out, "{}", file::text(remote.name(), &all)).or_job("writing")
}
