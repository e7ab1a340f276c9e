//! How those who use a topic or a service are shown.

use bus::EndpointInfo;
use serde_json::{Value, json};

/// Programs with their processes, for people.
pub(super) fn who(endpoints: &[EndpointInfo]) -> String {
    let names = endpoints.iter().map(|e| {
        let program = e
            .program
            .as_deref()
            .and_then(|p| p.rsplit('/').next())
            .unwrap_or("?");
        format!("{program} ({})", e.pid)
    });
    names.collect::<Vec<_>>().join(", ")
}

/// The same for programs.
pub(super) fn to_json(endpoints: &[EndpointInfo]) -> Vec<Value> {
    let endpoint = |e: &EndpointInfo| {
        json!({ "pid": e.pid, "uid": e.uid, "program": e.program, "connected": e.connected,
                "messages": e.messages, "memory_bytes": e.memory })
    };
    endpoints.iter().map(endpoint).collect()
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
