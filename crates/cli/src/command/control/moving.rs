//! Sends commands, and manages the right to move.

use super::session::{Done, Problem, Session, usage};
use super::{kinds, line, reading};
use remote::controller::{RequestError, Right};
use remote::{Expiry, Outcome};
use serde_json::{Value, json};
use std::time::Instant;

/// Sends a command of any kind, given as JSON or in the short form.
pub(super) fn set(session: &Session, line: &str, tail: &str) -> Done {
    let (kind, bytes) = line::set(tail).map_err(Problem::Usage)?;
    send(session, line, kind, &bytes)
}

/// Sends a command, waits for its outcome, and prints it.
pub(super) fn send(session: &Session, line: &str, kind: &kinds::Taken, bytes: &[u8]) -> Done {
    let sent = Instant::now();
    let pending = (kind.send)(&session.controller, bytes, session.expiry).map_err(Problem::failed)?;
    let outcome = pending.wait();
    let ms = reading::milliseconds(sent.elapsed());
    let mut fields = json!({ "kind": kind.name, "outcome": word(&outcome), "round_trip_ms": ms });
    if let Outcome::Executed = outcome {
        session
            .output
            .result(line, &format!("executed in {ms} ms"), fields);
        return Ok(());
    }
    let mut text = format!("{outcome} (after {ms} ms)");
    match &outcome {
        Outcome::Rejected(reason) => fields["reason"] = reason.as_str().into(),
        Outcome::Expired(reason) => {
            fields["reason"] = reason.as_str().into();
            if let Expiry::After(time) = session.expiry {
                text += &format!(
                    "; commands expire after {} ms: `expiry MILLISECONDS` sets that",
                    time.as_secs_f64() * 1e3
                );
            }
        }
        Outcome::Unreachable {
            maybe_executed,
            reason,
        } => {
            fields["reason"] = reason.as_str().into();
            fields["maybe_executed"] = (*maybe_executed).into();
            if !session.controller.is_found() {
                text += "; the connection to the robot is lost: is it running?";
            }
        }
        Outcome::Executed => {}
    }
    Err(Problem::Failed { text, fields })
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Executed => "executed",
        Outcome::Rejected(_) => "rejected",
        Outcome::Expired(_) => "expired",
        Outcome::Unreachable { .. } => "unreachable",
    }
}

/// Holder of a right, for people.
pub(super) fn holder(right: &Right) -> String {
    match &right.holder {
        _ if right.mine => "this controller".into(),
        Some((id, name)) => format!("{name} ({id:x})"),
        None => "nobody yet".into(),
    }
}

pub(super) fn right_json(right: &Right) -> Value {
    let holder = right.holder.as_ref();
    json!({ "subsystem": right.subsystem, "mine": right.mine, "holder": holder.map(|(_, name)| name),
            "holder_id": holder.map(|(id, _)| format!("{id:x}")) })
}

fn show(session: &Session, line: &str, right: Result<Right, RequestError>) -> Done {
    let right = right.map_err(|error| {
        let hint = match error {
            RequestError::Rejected(_) => "; `status` shows the subsystems and who may move them",
            _ => "",
        };
        Problem::failed(format_args!("{error}{hint}"))
    })?;
    let what = if right.subsystem.is_empty() {
        "the whole robot"
    } else {
        &right.subsystem
    };
    session.output.result(
        line,
        &format!("may move {what}: {}", holder(&right)),
        right_json(&right),
    );
    Ok(())
}

pub(super) fn authority(session: &Session, line: &str, words: &[&str]) -> Done {
    match words {
        [] => show(session, line, session.controller.right("")),
        [subsystem] => show(session, line, session.controller.right(subsystem)),
        _ => usage("authority [SUBSYSTEM]"),
    }
}

pub(super) fn take(session: &Session, line: &str, words: &[&str]) -> Done {
    let controller = &session.controller;
    match words {
        [] => show(session, line, controller.request_right("")),
        ["--over"] => show(session, line, controller.take_right_over("")),
        [subsystem] => show(session, line, controller.request_right(subsystem)),
        [subsystem, "--over"] => show(session, line, controller.take_right_over(subsystem)),
        _ => usage("take [SUBSYSTEM] [--over]: --over takes it from its holder, if the robot permits"),
    }
}

pub(super) fn release(session: &Session, line: &str, words: &[&str]) -> Done {
    match words {
        [] => show(session, line, session.controller.release_right("")),
        [subsystem] => show(session, line, session.controller.release_right(subsystem)),
        _ => usage("release [SUBSYSTEM]"),
    }
}

pub(super) fn hand_over(session: &Session, line: &str, words: &[&str]) -> Done {
    let [subsystem, to] = words else {
        return usage("hand-over SUBSYSTEM CONTROLLER: its number is in its own `status`, after `this is`");
    };
    match u64::from_str_radix(to, 16) {
        Ok(to) => show(session, line, session.controller.hand_right_over(subsystem, to)),
        Err(_) => usage(format!(
            "{to:?} is not a controller's number: its own `status` shows the number after `this is`"
        )),
    }
}
