//! `ropewalk param set` and `ropewalk param delete`.

use super::Target;
use super::value::Parameter;
use crate::failure::{Failure, Outcome};
use clap::Args;
use ropewalk::Node;

/// Set parameters of a node: ropewalk param set /talker use_sim_time true
///
///   ropewalk param set /camera exposure 0.02
///   ropewalk param set /camera exposure 0.02 gain 3    # several at once
///   ropewalk param set /camera roi '[0, 0, 640, 480]'
///
/// The value is YAML. A parameter of type double also accepts whole numbers, a
/// parameter of type string any text.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Set {
    #[command(flatten)]
    target: Target,
    /// The parameter and its value; more pairs may follow.
    #[arg(required = true, num_args = 2.., value_names = ["NAME", "VALUE"], allow_negative_numbers = true)]
    pairs: Vec<String>,
}

/// Delete a parameter: ropewalk param delete /talker scratch
#[derive(Args)]
pub(super) struct Delete {
    #[command(flatten)]
    target: Target,
    /// The parameter.
    name: String,
}

pub(super) fn set(node: &Node, options: &Set) -> Outcome {
    if !options.pairs.len().is_multiple_of(2) {
        return Err(Failure::input(
            "a parameter has no value: write NAME VALUE, then more pairs",
        ));
    }
    let remote = options.target.remote(node);
    let pairs: Vec<_> = options.pairs.chunks_exact(2).collect();
    let names: Vec<String> = pairs.iter().map(|pair| pair[0].clone()).collect();
    let types = remote.descriptors(&names)?;
    let parse = |(pair, declared): (&&[String], super::remote::Descriptor)| {
        let value = Parameter::parse(&pair[1], declared.ty);
        let value = value.map_err(|e| Failure::input(format_args!("{}: {e}", pair[0])))?;
        Ok::<_, Failure>((pair[0].clone(), value))
    };
    let parameters: Vec<_> = pairs.iter().zip(types).map(parse).collect::<Result<_, _>>()?;
    let mut refused = Vec::new();
    for ((name, value), answer) in parameters.iter().zip(remote.set(&parameters)?) {
        match answer.is_successful {
            true => crate::screen::say!("Set parameter {name} successful: {}", value.yaml()),
            false => refused.push(format!("{name}: {}", answer.reason)),
        }
    }
    failed("set", &refused)
}

pub(super) fn delete(node: &Node, options: &Delete) -> Outcome {
    let remote = options.target.remote(node);
    let parameters = [(options.name.clone(), Parameter::NotSet)];
    let answers = remote.set(&parameters)?;
    let refused: Vec<_> = answers
        .into_iter()
        .filter(|a| !a.is_successful)
        .map(|a| a.reason)
        .collect();
    if refused.is_empty() {
        crate::screen::say!("Deleted parameter {} successfully", options.name);
    }
    failed("delete", &refused)
}

/// The error for refused changes.
pub(super) fn failed(what: &str, refused: &[String]) -> Outcome {
    match refused {
        [] => Ok(()),
        some => Err(Failure::job(format_args!(
            "the node refuses to {what} {}",
            some.join("; ")
        ))),
    }
}
