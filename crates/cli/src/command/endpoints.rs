//! How the users of a topic or a service are shown.

use bus::{EndpointInfo, Silent, Survey};
use serde_json::{Value, json};

/// Programs with their processes, for people.
pub(crate) fn who(endpoints: &[EndpointInfo]) -> String {
    let names = endpoints.iter().map(|e| process(e.program.as_deref(), e.pid));
    names.collect::<Vec<_>>().join(", ")
}

/// A program without its folder, and its process.
pub(crate) fn process(program: Option<&str>, pid: i32) -> String {
    let program = program.and_then(|p| p.rsplit('/').next()).unwrap_or("?");
    format!("{program} ({pid})")
}

/// The same as JSON.
pub(crate) fn to_json(endpoints: &[EndpointInfo]) -> Vec<Value> {
    let endpoint = |e: &EndpointInfo| {
        json!({ "pid": e.pid, "uid": e.uid, "program": e.program, "connected": e.connected,
                "messages": e.messages, "memory_bytes": e.memory })
    };
    endpoints.iter().map(endpoint).collect()
}

/// Most processes named on a line.
const MAX_NAMED: usize = 5;

/// Names the processes that did not answer, whose endpoints may be missing; `None` if all did.
pub(crate) fn silent(survey: &Survey) -> Option<String> {
    let name = |s: &Silent| process(s.program.as_deref(), s.pid);
    let mut names: Vec<_> = survey.silent.iter().map(name).collect();
    names.sort();
    names.dedup();
    let more = names.len().saturating_sub(MAX_NAMED);
    names.truncate(MAX_NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    (!names.is_empty()).then(|| {
        format!(
            "no answer from {}{more}: stopped, hung, or the machine is busy (ropewalk doctor)",
            names.join(", ")
        )
    })
}

/// The same as [`silent`], as JSON.
pub(crate) fn silent_json(survey: &Survey) -> Vec<Value> {
    let one = |s: &Silent| json!({ "pid": s.pid, "program": s.program });
    survey.silent.iter().map(one).collect()
}

/// The same as the end of a "not found" error.
pub(crate) fn but_silent(survey: &Survey) -> String {
    silent(survey).map(|s| format!("; {s}")).unwrap_or_default()
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
