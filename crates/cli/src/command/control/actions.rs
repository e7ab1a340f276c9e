//! Calls the robot's actions by name.

use super::session::{Done, PATIENCE, Problem, Session, usage};
use super::{kinds, moving, shorthand};
use prost::Message;
use remote::types::{ComplexActionType, SimpleAction};
use remote::{Controller, telemetry};
use std::time::Duration;

/// Calls the simple or complex action of that name.
pub(super) fn call(session: &Session, line: &str, words: &[&str]) -> Done {
    let [name, rest @ ..] = words else {
        return usage(
            "call ACTION [STATE | X,Y[,HEADING] ... | FORWARD,TURN ...]; `get simple-actions` and \
             `get complex-actions` list the actions",
        );
    };
    let controller = &session.controller;
    let simple = controller
        .fetch_within::<telemetry::SimpleActions>(0, PATIENCE)
        .wait();
    let simple = simple.map_err(Problem::failed)?.unwrap_or_default().actions;
    if let Some(action) = simple.iter().find(|a| a.name == *name) {
        let state = match rest {
            [] => 1.0,
            [state] => state_of(action, state).map_err(Problem::Usage)?,
            _ => return usage(format!("{name} is a simple action: call {name} STATE")),
        };
        let body = shorthand::simple(name, state).encode_to_vec();
        return moving::send(
            session,
            line,
            kinds::command_named("SimpleAction").map_err(Problem::Usage)?,
            &body,
        );
    }
    let complex = controller
        .fetch_within::<telemetry::ComplexActions>(0, PATIENCE)
        .wait();
    let complex = complex.map_err(Problem::failed)?.unwrap_or_default().actions;
    let Some(action) = complex.iter().find(|a| a.name == *name) else {
        let names: Vec<_> = simple
            .iter()
            .map(|a| &*a.name)
            .chain(complex.iter().map(|a| &*a.name))
            .collect();
        let near = schema::did_you_mean(schema::nearest(name, names.iter().copied()));
        return usage(format!(
            "the robot has no action {name:?}{near}; it has {}",
            names.join(", ")
        ));
    };
    let kind =
        ComplexActionType::try_from(action.r#type).unwrap_or(ComplexActionType::UndefinedComplexAction);
    let body = shorthand::complex(name, kind, rest).map_err(|e| {
        let form = match kind {
            ComplexActionType::Twist | ComplexActionType::TwistList => "FORWARD,TURN ...",
            _ => "X,Y[,HEADING] ...",
        };
        Problem::Usage(format!("{e}: call {name} {form}"))
    })?;
    moving::send(
        session,
        line,
        kinds::command_named("ComplexAction").map_err(Problem::Usage)?,
        &body.encode_to_vec(),
    )
}

/// A number, or a name that the robot gave to one of the action's states.
fn state_of(action: &SimpleAction, typed: &str) -> Result<f32, String> {
    let names = action
        .r#type
        .as_ref()
        .map(|t| t.value_names.as_slice())
        .unwrap_or_default();
    let named = names.iter().find(|n| n.name == typed).map(|n| n.value);
    named.or_else(|| typed.parse().ok()).ok_or_else(|| {
        let names: Vec<_> = names.iter().map(|n| &*n.name).collect();
        format!(
            "{typed:?} is not a state of {}: give a number {}",
            action.name,
            names.join(" ")
        )
    })
}

/// Names of all actions, for completion. Waits for the robot only briefly.
pub(super) fn names(controller: &Controller) -> Vec<String> {
    const SOON: Duration = Duration::from_millis(500);
    let simple = controller.fetch_within::<telemetry::SimpleActions>(0, SOON);
    let complex = controller.fetch_within::<telemetry::ComplexActions>(0, SOON);
    let simple = simple.wait().ok().flatten().unwrap_or_default();
    let complex = complex.wait().ok().flatten().unwrap_or_default();
    let simple = simple.actions.into_iter().map(|a| a.name);
    simple
        .chain(complex.actions.into_iter().map(|a| a.name))
        .collect()
}
