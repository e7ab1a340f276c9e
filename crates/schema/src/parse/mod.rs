//! Parses `.msg`, `.srv` and `.action` text into definitions.
//!
//! The grammar is that of ROS 1's genmsg (`genmsg`) and ROS 2's rosidl (`line`): one declaration a line, `type name` or
//! `type NAME=value`, comments from `#` to the end of the line, sections separated by a line `---`. Where the two
//! differ the [`Flavour`](crate::Flavour) decides: string constants take the whole rest of the line in ROS 1 and are
//! quoted in ROS 2; bounds, defaults and `wstring` exist only in ROS 2.

mod cursor;
mod genmsg;
mod line;
mod literal;

use crate::definition::{Definition, Flavour};
use crate::limits::{MAX_FIELDS, MAX_TEXT};
use crate::{DefinitionError, TypeName};
use std::sync::Arc;

pub(crate) use literal::{parse_list, unquote};

/// Origin of a text, for errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    /// File name, or the type's name.
    pub(crate) file: &'a str,
    /// Lines of the file before this text.
    pub(crate) line: usize,
}

/// Parses one message definition.
pub(crate) fn message(
    name: TypeName,
    text: &str,
    flavour: Flavour,
    origin: Origin<'_>,
) -> Result<Definition, DefinitionError> {
    check_size(&name, text)?;
    let mut def = Definition {
        name,
        folder: "msg",
        fields: Vec::new(),
        constants: Vec::new(),
        sums: Vec::new(),
        text: Arc::from(text),
    };
    for (i, raw) in text.split('\n').enumerate() {
        let raw = raw.strip_suffix('\r').unwrap_or(raw);
        let origin = Origin {
            line: origin.line + i,
            ..origin
        };
        match flavour {
            Flavour::Ros1 => genmsg::parse(&mut def, raw, origin)?,
            Flavour::Ros2 => line::parse(&mut def, raw, origin)?,
        }
        let count = def.fields.len() + def.sums.len();
        if count > MAX_FIELDS {
            return Err(DefinitionError::TooLarge {
                name: def.name.to_string(),
                what: "number of fields",
                value: count as u64,
                limit: MAX_FIELDS as u64,
            });
        }
    }
    Ok(def)
}

/// Splits a `.srv` (2) or `.action` (3) text at its lines `---`; each section comes with its first line's number. If
/// `lenient`, lines `---` may be missing, and the last section continues after further ones.
pub(crate) fn sections<const N: usize>(
    name: &TypeName,
    text: &str,
    file: &str,
    lenient: bool,
) -> Result<[(String, usize); N], DefinitionError> {
    check_size(name, text)?;
    let mut found: [(String, usize); N] = std::array::from_fn(|_| (String::new(), 0));
    let mut at = 0;
    for (i, line) in text.split('\n').enumerate() {
        // genmsg's rule: the line starts with the delimiter.
        if line.starts_with("---") {
            if lenient && at + 1 == N {
                // The separator counts as a line, so that errors have correct line numbers.
                if let Some(slot) = found.get_mut(at) {
                    slot.0.push('\n');
                }
                continue;
            }
            at += 1;
            if let Some(slot) = found.get_mut(at) {
                slot.1 = i + 1;
                continue;
            }
            let what = format!("more than {} lines `---`", N - 1);
            return Err(DefinitionError::Syntax {
                file: file.into(),
                line: i + 1,
                column: 1,
                what,
            });
        }
        if let Some(slot) = found.get_mut(at) {
            slot.0.push_str(line);
            slot.0.push('\n');
        }
    }
    if at + 1 < N && !lenient {
        let what = format!("expected {} lines `---`, found {at}", N - 1);
        let line = text.split('\n').count();
        return Err(DefinitionError::Syntax {
            file: file.into(),
            line,
            column: 1,
            what,
        });
    }
    Ok(found)
}

fn check_size(name: &TypeName, text: &str) -> Result<(), DefinitionError> {
    if text.len() > MAX_TEXT {
        return Err(DefinitionError::TooLarge {
            name: name.to_string(),
            what: "text in bytes",
            value: text.len() as u64,
            limit: MAX_TEXT as u64,
        });
    }
    Ok(())
}

/// Parses a service into its request and response. Their names have the suffix that ROS gives them.
pub(crate) fn service(
    name: &TypeName,
    folder: &'static str,
    text: &str,
    flavour: Flavour,
    file: &str,
) -> Result<[Definition; 2], DefinitionError> {
    // genmsg accepts a missing or a second separator.
    let [request, response] = sections::<2>(name, text, file, flavour == Flavour::Ros1)?;
    let suffix = |s: &str| match flavour {
        Flavour::Ros1 => TypeName::join(name.package(), &format!("{}{s}", name.name())),
        Flavour::Ros2 => TypeName::join(name.package(), &format!("{}_{s}", name.name())),
    };
    let read = |part: &(String, usize), s: &str| {
        let def = message(suffix(s), &part.0, flavour, Origin { file, line: part.1 })?;
        Ok(Definition { folder, ..def })
    };
    let (request, response) = (read(&request, "Request")?, read(&response, "Response")?);
    Ok([request, response])
}

/// Parses an action into the seven messages that ROS 1's genaction derives from it, or in ROS 2 into its three parts
/// and its feedback message.
pub(crate) fn action(
    name: &TypeName,
    text: &str,
    flavour: Flavour,
    file: &str,
) -> Result<Vec<Definition>, DefinitionError> {
    let parts = sections::<3>(name, text, file, false)?;
    let mut out = Vec::new();
    let (join, folder) = match flavour {
        Flavour::Ros1 => ("", "msg"),
        Flavour::Ros2 => ("_", "action"),
    };
    let base = name.name();
    let named = |suffix: &str| TypeName::join(name.package(), &format!("{base}{join}{suffix}"));
    let mut read = |suffix: &str, text: &str, line| {
        let def = message(named(suffix), text, flavour, Origin { file, line })?;
        out.push(Definition { folder, ..def });
        Ok(())
    };
    for (part, suffix) in parts.iter().zip(["Goal", "Result", "Feedback"]) {
        read(suffix, &part.0, part.1)?;
    }
    match flavour {
        Flavour::Ros1 => {
            let status = "actionlib_msgs/GoalStatus status";
            let id = "actionlib_msgs/GoalID goal_id";
            for (suffix, text) in [
                ("ActionGoal", format!("Header header\n{id}\n{base}Goal goal\n")),
                (
                    "ActionResult",
                    format!("Header header\n{status}\n{base}Result result\n"),
                ),
                (
                    "ActionFeedback",
                    format!("Header header\n{status}\n{base}Feedback feedback\n"),
                ),
                (
                    "Action",
                    format!(
                        "{base}ActionGoal action_goal\n{base}ActionResult action_result\n\
                         {base}ActionFeedback action_feedback\n"
                    ),
                ),
            ] {
                read(suffix, &text, 0)?;
            }
        }
        Flavour::Ros2 => {
            let text = format!("{GOAL_ID}{base}_Feedback feedback\n");
            read("FeedbackMessage", &text, 0)?;
        }
    }
    Ok(out)
}

/// The first field of every message of a ROS 2 action.
const GOAL_ID: &str = "unique_identifier_msgs/UUID goal_id\n";

/// The services of a ROS 2 action, by the suffixes of their names (ROS 2 design, "Actions").
pub(crate) fn action_service(action: &TypeName, suffix: &str) -> Option<String> {
    let base = action.name();
    Some(match suffix {
        "SendGoal" => {
            format!("{GOAL_ID}{base}_Goal goal\n---\nbool accepted\nbuiltin_interfaces/Time stamp\n")
        }
        "GetResult" => format!("{GOAL_ID}---\nint8 status\n{base}_Result result\n"),
        _ => return None,
    })
}
