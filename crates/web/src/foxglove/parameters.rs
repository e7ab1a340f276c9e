//! Settings of links as parameters: `/link/NAME/topics/TOPIC/priority`.

use observe::{LinkState, Links, SentState};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a link may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// A setting that a parameter may change: name of the parameter, name in the link, unit, value in the link's state.
type Setting = (&'static str, &'static str, &'static str, fn(&SentState) -> Json);
const SETTINGS: [Setting; 5] = [
    ("priority", "priority", "", |topic| json!(topic.priority)),
    ("depth", "depth", "", |topic| json!(topic.depth)),
    ("every", "every", "", |topic| json!(topic.every)),
    ("rate_limit_hz", "rate_limit", "Hz", |topic| {
        json!(topic.rate_limit_hz)
    }),
    ("deadline_ms", "deadline", "ms", |topic| json!(topic.deadline_ms)),
];

/// All parameters of the links on this bus. Blocks until the links answer, at most some seconds.
pub(crate) fn all(links: &Links) -> BTreeMap<String, Json> {
    let mut found = BTreeMap::new();
    for link in links.iter() {
        let reported = link.state(PATIENCE).map_err(|e| e.to_string());
        match reported.and_then(|text| LinkState::parse(&text).map_err(|e| e.to_string())) {
            Ok(state) => read(link.name(), &state, &mut found),
            Err(error) => tracing::debug!(link = link.name(), error, "a link does not report its state"),
        }
    }
    found
}

/// The parameters in a link's state. For a topic with several peers, the first peer counts.
fn read(link: &str, state: &LinkState, found: &mut BTreeMap<String, Json>) {
    for topic in &state.sent {
        // Its name on this host's bus, or on the air if it has none there.
        let named = topic.here.as_ref().unwrap_or(&topic.name);
        for (name, _, _, value) in SETTINGS {
            let full = format!("/link/{link}/topics{named}/{name}");
            found.entry(full).or_insert_with(|| value(topic));
        }
    }
}

/// Changes one parameter. Blocks until the link answers.
///
/// # Errors
/// A line that says why not, from here or from the link.
pub(crate) fn set(links: &Links, name: &str, value: &Json) -> Result<(), String> {
    let (link, topic, change) = change(name, value)?;
    let link = links
        .get(&link)
        .ok_or_else(|| format!("there is no link {link:?} on this bus"))?;
    let set = link.set(&topic, None, &[change], PATIENCE);
    set.map(drop).map_err(|e| e.to_string())
}

/// The link, the topic and the change that a parameter's new value means.
fn change(name: &str, value: &Json) -> Result<(String, String, String), String> {
    let unknown =
        || format!("{name:?} is not a parameter: write, for example, /link/NAME/topics/TOPIC/priority");
    let (link, rest) = name
        .strip_prefix("/link/")
        .and_then(|rest| rest.split_once("/topics/"))
        .ok_or_else(unknown)?;
    let (topic, setting) = rest.rsplit_once('/').ok_or_else(unknown)?;
    let known = SETTINGS.iter().find(|(name, ..)| *name == setting);
    let (_, key, unit, _) = known.ok_or_else(unknown)?;
    let text = match value {
        Json::Null if !unit.is_empty() => "none".to_owned(),
        // Some viewers write every number with a fraction.
        Json::Number(n) => match n.as_f64() {
            Some(n) if n.fract() == 0.0 && n.abs() < 1e9 => format!("{n:.0}{unit}"),
            _ => format!("{n}{unit}"),
        },
        _ => return Err(format!("{name}: write a number, or nothing for no limit")),
    };
    Ok((link.to_owned(), format!("/{topic}"), format!("{key}={text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_names_link_topic_and_setting() {
        let of = |name: &str, value: Json| change(name, &value);
        let text = |a: &str, b: &str, c: &str| Ok((a.to_owned(), b.to_owned(), c.to_owned()));
        assert_eq!(
            of("/link/base/topics/scan/priority", json!(7.0)),
            text("base", "/scan", "priority=7")
        );
        assert_eq!(
            of("/link/base/topics/front/camera/rate_limit_hz", json!(2.5)),
            text("base", "/front/camera", "rate_limit=2.5Hz")
        );
        assert_eq!(
            of("/link/b/topics/scan/deadline_ms", Json::Null),
            text("b", "/scan", "deadline=none")
        );
        for (name, value) in [
            ("/scan/priority", json!(1)),
            ("/link/base/topics/scan/colour", json!(1)),
            ("/link/base/topics/scan/priority", json!("7; x")),
            ("/link/base/topics/scan/priority", Json::Null),
        ] {
            assert!(of(name, value).is_err(), "{name}");
        }
    }

    #[test]
    fn the_state_of_a_link_becomes_parameters() {
        let state = json!({ "sent": [{ "name": "/scan", "source": "robot", "here": null, "priority": 7, "depth": 1, "every": 1,
                                       "rate_limit_hz": null, "deadline_ms": 100.0 }] });
        let mut found = BTreeMap::new();
        let state = LinkState::parse(&state.to_string()).unwrap();
        read("base", &state, &mut found);
        assert_eq!(found["/link/base/topics/scan/priority"], json!(7));
        assert_eq!(found["/link/base/topics/scan/rate_limit_hz"], Json::Null);
        assert_eq!(found.len(), SETTINGS.len());
    }
}
