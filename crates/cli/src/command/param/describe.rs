//! `ropewalk param describe`.

use super::Target;
use super::value::Type;
use crate::failure::{OrFail, Outcome};
use clap::Args;
use ropewalk::Node;
use serde_json::Value as Json;
use std::io::Write;

/// Print a parameter's type, description and limits
///
///   ropewalk param describe /talker use_sim_time
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Options {
    #[command(flatten)]
    target: Target,
    /// One or more parameters.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Print a line of JSON for each.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(node: &Node, options: &Options) -> Outcome {
    let remote = options.target.remote(node);
    let descriptors = remote.descriptors(&options.names)?;
    let mut out = crate::screen::stdout();
    for (name, descriptor) in options.names.iter().zip(descriptors) {
        if descriptor.ty == Type::NotSet && descriptor.all["dynamic_typing"] != true {
            return Err(remote.undeclared(name));
        }
        let written = match options.json {
            true => writeln!(out, "{}", descriptor.all),
            false => write!(out, "{}", text(name, descriptor.ty.word(), &descriptor.all)),
        };
        written.or_job("writing")?;
    }
    Ok(())
}

/// The text that `ros2 param describe` prints.
fn text(name: &str, ty: &str, all: &Json) -> String {
    let mut out = format!("Parameter name: {name}\n  Type: {ty}\n");
    let stated = |key: &str| all[key].as_str().filter(|text| !text.is_empty());
    if let Some(description) = stated("description") {
        out += &format!("  Description: {description}\n");
    }
    out += "  Constraints:\n";
    if all["read_only"] == true {
        out += "    Read only: true\n";
    }
    if all["dynamic_typing"] == true {
        out += "    Type may change: true\n";
    }
    for range in ["floating_point_range", "integer_range"]
        .iter()
        .filter_map(|key| all[*key].get(0))
    {
        out += &format!(
            "    Min value: {}\n    Max value: {}\n",
            range["from_value"], range["to_value"]
        );
        if range["step"].as_f64().is_some_and(|step| step != 0.0) {
            out += &format!("    Step: {}\n", range["step"]);
        }
    }
    if let Some(more) = stated("additional_constraints") {
        out += &format!("    Additional constraints: {more}\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_are_named() {
        let all = serde_json::json!({
            "description": "of the motor", "read_only": true, "floating_point_range": [],
            "integer_range": [{ "from_value": -5, "to_value": 10, "step": 1 }], "additional_constraints": "",
        });
        assert_eq!(
            text("speed", "integer", &all),
            "Parameter name: speed\n  Type: integer\n  Description: of the motor\n  Constraints:\n    Read only: true\n    \
             Min value: -5\n    Max value: 10\n    Step: 1\n"
        );
    }
}
