//! The links of this host, and the peers that they do not reach.

use super::finding::Finding;
use crate::command::link::operate::Running;
use serde_json::Value;

/// Asks each link on this host for its state.
pub(super) fn check() -> Vec<Finding> {
    // Another check reports a runtime folder that cannot be read.
    let links = Running::all().unwrap_or_default();
    links.iter().flat_map(of_link).collect()
}

fn of_link(link: &Running) -> Vec<Finding> {
    match link.state() {
        Ok(state) => findings(link.name(), &state),
        Err(_) => vec![Finding::problem(
            "link",
            format!("the link {} does not answer", link.name()),
            "see its log; restart it",
        )],
    }
}

fn findings(link: &str, state: &Value) -> Vec<Finding> {
    let peers = || state["peers"].as_array().into_iter().flatten();
    let unheard = peers().filter_map(|p| p["unheard"]["text"].as_str());
    let mut found: Vec<Finding> = unheard
        .map(|text| {
            let (what, fix) = text
                .split_once(": ")
                .unwrap_or((text, "see `ropewalk link status`"));
            Finding::warning("link", format!("{link}: {what}"), fix)
        })
        .collect();
    if found.is_empty() {
        let up = peers().filter(|p| p["up"] == true).count();
        found.push(Finding::ok(
            "link",
            format!("{link} reaches {up} of {} peers", peers().count()),
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;
    use serde_json::json;

    #[test]
    fn an_unreachable_peer_is_a_warning_with_what_to_check() {
        let text = "base has not answered at 10.0.0.2:7400 for 12 s: nobody listens there";
        let state = json!({ "peers": [{ "name": "base", "up": false, "unheard": { "text": text } }] });
        let found = findings("robot", &state);
        assert_eq!((found.len(), found[0].level), (1, Level::Warning));
        let shown = found[0].text(false, usize::MAX);
        assert!(
            shown.contains("robot: base has not answered at 10.0.0.2:7400 for 12 s"),
            "{shown}"
        );
        assert!(shown.contains("nobody listens there"), "{shown}");
        let state = json!({ "peers": [{ "name": "base", "up": true, "unheard": null }] });
        let found = findings("robot", &state);
        assert_eq!((found.len(), found[0].level), (1, Level::Ok));
    }
}
