//! Text of the `help` command.

use super::session::{Done, Problem, Session, usage};
use super::{body, kinds, shorthand};
use schema::{did_you_mean, nearest};
use serde_json::json;

/// Name, form, and purpose of each command.
pub(super) const COMMANDS: &[(&str, &str, &str)] = &[
    (
        "help",
        "[COMMAND | KIND | kinds]",
        "list commands, kinds, or the fields of a kind",
    ),
    (
        "status",
        "",
        "show the robot, its round trip, and who may move it",
    ),
    (
        "get",
        "KIND [CHANNEL] [--full]",
        "print the newest value; `get pose`",
    ),
    (
        "request",
        "KIND [CHANNEL] [--full]",
        "ask the robot for the value, even if one is known",
    ),
    (
        "watch",
        "KIND [CHANNEL] [-n N] [--timeout SECONDS]",
        "print values as they arrive, until Ctrl-C; `watch pose -n 3`",
    ),
    (
        "listen",
        "KIND [CHANNEL] [--off]",
        "subscribe to a kind, so that `get` needs no request",
    ),
    (
        "set",
        "KIND WORDS | JSON",
        "send a command; `set twist 0.5 0.2`, `help set` for all",
    ),
    (
        "call",
        "ACTION [STATE | POSES | TWISTS]",
        "run one of the robot's actions; `call headlights on`",
    ),
    ("authority", "[SUBSYSTEM]", "show who may move the robot"),
    (
        "take",
        "[SUBSYSTEM] [--over]",
        "ask for the right to move; --over takes it from its holder",
    ),
    ("release", "[SUBSYSTEM]", "give the right to move back"),
    (
        "hand-over",
        "SUBSYSTEM CONTROLLER",
        "give the right to move to another controller",
    ),
    (
        "files",
        "ls [IDENTIFIER] | get IDENTIFIER [PATH [FOLDER]]",
        "list shared files; download, verify and resume them",
    ),
    (
        "log",
        "LEVEL",
        "set the level of the robot's log: none, fatal, error, warn, info, debug",
    ),
    ("stats", "", "show traffic counters"),
    (
        "expiry",
        "[MILLISECONDS | default | never]",
        "show or set how long commands stay valid",
    ),
    (
        "joystick",
        "[SPEED TURN]",
        "drive with arrow keys or WASD; space stops, q ends",
    ),
    ("sleep", "SECONDS", "wait, in scripts"),
    ("quit", "", "end; so does Ctrl-D"),
];

pub(super) fn help(session: &Session, line: &str, words: &[&str]) -> Done {
    let text = match words {
        [] => {
            let row =
                |(name, form, what): &(&str, &str, &str)| format!("{:<48} {what}", format!("{name} {form}"));
            COMMANDS.iter().map(row).collect::<Vec<_>>().join("\n")
        }
        ["kinds"] => kinds_text(session),
        ["set"] => forms(),
        [name] => one(name)?,
        _ => return usage("help [COMMAND | KIND | kinds]"),
    };
    session.output.result(line, &text, json!({ "help": text }));
    Ok(())
}

fn forms() -> String {
    let mut lines = vec!["set KIND JSON, or in the short form (metres, radians, seconds):".to_owned()];
    for (kind, form, example) in shorthand::FORMS {
        let short = kinds::short(kind);
        lines.push(format!(
            "  {:<52} e.g. set {short} {example}",
            format!("set {short} {form}")
        ));
    }
    lines.push("JSON has the fields that `help KIND` shows: set twist {\"linear\": {\"x\": 0.5}}".into());
    lines.join("\n")
}

fn kinds_text(session: &Session) -> String {
    let (takes, tells) = (
        session.controller.robot_commands(),
        session.controller.robot_telemetry(),
    );
    let list = |names: Vec<&'static str>, has: &[String]| {
        let mark = |name: &str| {
            if !session.controller.knows_kinds() || has.iter().any(|h| h == name) {
                ""
            } else {
                " (not this robot)"
            }
        };
        let lines = names
            .into_iter()
            .map(|name| format!("  {}{}", kinds::short(name), mark(name)));
        lines.collect::<Vec<_>>().join("\n")
    };
    format!(
        "commands, for `set`:\n{}\ntelemetry, for `get`, `request`, `watch`, `listen`:\n{}",
        list(kinds::COMMANDS.iter().map(|k| k.name).collect(), &takes),
        list(kinds::TELEMETRY.iter().map(|k| k.name).collect(), &tells)
    )
}

/// Suggests a command.
pub(super) fn like_command(typed: &str) -> String {
    let names = || COMMANDS.iter().map(|(name, _, _)| *name);
    // The start of a word is not misspelt.
    let near = names().find(|name| name.starts_with(typed));
    did_you_mean(near.or_else(|| nearest(typed, names())))
}

fn one(name: &str) -> Result<String, Problem> {
    if let Some((name, form, what)) = COMMANDS.iter().find(|(command, _, _)| *command == name) {
        return Ok(format!("{name} {form}\n  {what}"));
    }
    let mut parts = Vec::new();
    if let Ok(kind) = kinds::command_named(name) {
        let form = shorthand::form(kind.name).map_or("", |(_, form, _)| form);
        let fields = body::fields(&(kind.message)()).map_err(Problem::failed)?;
        let short = kinds::short(kind.name);
        parts.push(format!(
            "command: set {short} {form}, or JSON with the fields\n{}",
            fields.join("\n")
        ));
    }
    if let Ok(kind) = kinds::telemetry_named(name) {
        let fields = body::fields(&(kind.message)()).map_err(Problem::failed)?;
        parts.push(format!(
            "telemetry: get {}\n{}",
            kinds::short(kind.name),
            fields.join("\n")
        ));
    }
    match parts.is_empty() {
        true => usage(format!(
            "no command or kind is called {name:?}{}: `help` and `help kinds` list all",
            like_command(name)
        )),
        false => Ok(parts.join("\n")),
    }
}
