//! Names and words for the topics in a link's state.

use serde_json::Value;

/// Name of a topic: on this host's bus, or if it has none there, on the air with its source.
pub fn shown_name(t: &Value, host: &Value) -> String {
    match t["here"].as_str() {
        Some(here) => here.to_owned(),
        None if t["source"] == *host || t["source"] == t["peer"] => word(&t["name"]),
        None => format!("{} of {}", word(&t["name"]), word(&t["source"])),
    }
}

/// Receivers of a topic that is sent, or the source of one that is received; with the peer on the way if that is
/// another host.
pub fn other_end(t: &Value) -> String {
    let ends: Vec<&str> = match t["to"].as_array() {
        Some(to) => to.iter().filter_map(Value::as_str).collect(),
        None => t["source"].as_str().into_iter().collect(),
    };
    match (ends.as_slice(), word(&t["peer"])) {
        ([], peer) => peer,
        ([one], peer) if *one == peer => peer,
        (ends, peer) => format!("{} via {peer}", ends.join(",")),
    }
}

/// State of a topic that is received.
pub fn received_state(t: &Value) -> &'static str {
    let is_service = t["name"].as_str().is_some_and(|name| name.contains('?'));
    match t["accepted"] == true {
        false => "refused",
        true if t["here"].is_null() && !is_service => "relayed",
        true => "ready",
    }
}

/// Share delivered of the messages whose fate is known.
pub fn delivery(account: &Value) -> Option<f64> {
    let delivered = account["delivered"].as_u64()?;
    let lost = account["dropped"].as_object()?.values().filter_map(Value::as_u64);
    let known = delivered + lost.sum::<u64>();
    (known > 0).then(|| delivered as f64 / known as f64)
}

fn word(v: &Value) -> String {
    v.as_str().unwrap_or("?").to_owned()
}
