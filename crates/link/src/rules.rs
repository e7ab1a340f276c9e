//! A peer's permissions on this host.

use crate::names::Line;
use serde::Deserialize;

/// The topics that a peer may publish, subscribe to and call. Anything not listed is forbidden.
///
/// A pattern is a topic's full name, a name that ends with `/*` for all topics below it, or `*` for all
/// topics. A service is two topics, `NAME?request` and `NAME?reply`. `call` lets the peer send requests and
/// receive replies. `publish` and `subscribe` with the service's name let the peer serve it: send replies and
/// receive requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Allow {
    /// Topics that the peer may publish on this host's bus.
    pub publish: Vec<String>,
    /// Topics of this host that the peer may receive.
    pub subscribe: Vec<String>,
    /// Services of this host that the peer may call.
    pub call: Vec<String>,
    /// Whether the peer's airtime announcements count: this host yields to them and repeats them to others.
    /// Default: true if the peer has any other permission, or is a relay for this host.
    pub air: Option<bool>,
}

/// The topics that may go over a relay: all (`true`), none (`false`), or those that match a list of patterns
/// as in [`Allow`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Relayed {
    /// All or none.
    All(bool),
    /// Those that match a pattern.
    Topics(Vec<String>),
}

impl Relayed {
    /// Returns whether `topic` is among them. A service's two topics match by the service's name.
    pub fn covers(&self, topic: &str) -> bool {
        let name = Line::parse(topic).map_or(topic, Line::name);
        match self {
            Relayed::All(all) => *all,
            Relayed::Topics(patterns) => patterns.iter().any(|p| bridge::covers(p, name)),
        }
    }

    /// Returns whether there is any.
    pub fn is_any(&self) -> bool {
        match self {
            Relayed::All(all) => *all,
            Relayed::Topics(patterns) => !patterns.is_empty(),
        }
    }

    /// A pattern that can match nothing, if there is one.
    pub(crate) fn bad_pattern(&self) -> Option<&str> {
        match self {
            Relayed::All(_) => None,
            Relayed::Topics(patterns) => bad_pattern(patterns.iter()),
        }
    }
}

/// An action of a peer on a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Send its messages to this host.
    Publish,
    /// Receive this host's messages.
    Subscribe,
}

/// Returns whether `rules` permit a peer to do it. Without rules everything is permitted. The topics that
/// describe ROS 2 nodes are always permitted: each host describes only what may cross, and accepts nothing
/// else.
pub fn may(rules: Option<&Allow>, right: Right, topic: &str) -> bool {
    permits(rules, right, Line::parse(topic).unwrap_or(Line::Topic(topic)))
}

/// [`may`], for a name that is parsed.
pub(crate) fn permits(rules: Option<&Allow>, right: Right, line: Line<'_>) -> bool {
    let name = line.name();
    let Some(rules) = rules.filter(|_| !crate::names::is_of_nodes(name)) else {
        return true;
    };
    let calls = match line {
        Line::Topic(_) => false,
        Line::Request(_) => right == Right::Publish,
        Line::Reply(_) => right == Right::Subscribe,
    };
    let patterns = match right {
        _ if calls => &rules.call,
        Right::Publish => &rules.publish,
        Right::Subscribe => &rules.subscribe,
    };
    patterns.iter().any(|p| bridge::covers(p, name))
}

impl Allow {
    /// Returns whether it permits anything.
    pub(crate) fn is_any(&self) -> bool {
        ![&self.publish, &self.subscribe, &self.call]
            .iter()
            .all(|l| l.is_empty())
    }

    /// A pattern that can match nothing, if there is one.
    pub(crate) fn bad_pattern(&self) -> Option<&str> {
        bad_pattern(self.publish.iter().chain(&self.subscribe).chain(&self.call))
    }
}

fn bad_pattern<'a>(mut all: impl Iterator<Item = &'a String>) -> Option<&'a str> {
    let bad = all.find(|p| {
        let name = p.strip_suffix("/*").unwrap_or(p);
        let good = name.starts_with('/') && name.len() > 1 && !name.contains(['*', '?']);
        !(good || matches!(p.as_str(), "*" | "/*"))
    });
    bad.map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Allow {
        Allow {
            publish: vec!["/cmd_vel".into(), "/served".into()],
            subscribe: vec!["/camera/*".into()],
            call: vec!["/add".into()],
            air: None,
        }
    }

    #[test]
    fn only_what_is_named_is_allowed() {
        use Right::{Publish, Subscribe};
        let rules = rules();
        for (right, topic, expected) in [
            (Publish, "/cmd_vel", true),
            (Publish, "/cmd_vel2", false),
            (Publish, "/cmd", false),
            (Subscribe, "/cmd_vel", false),
            (Subscribe, "/camera/image", true),
            (Subscribe, "/camera/left/image", true),
            (Subscribe, "/camera", false),
            (Subscribe, "/cameras", false),
            (Publish, "/add?request", true),
            (Subscribe, "/add?reply", true),
            (Publish, "/add?reply", false),
            (Subscribe, "/add?request", false),
            (Publish, "/add", false),
            (Publish, "/served?reply", true),
            (Publish, "/served?request", false),
        ] {
            assert_eq!(may(Some(&rules), right, topic), expected, "{right:?} {topic}");
            assert!(may(None, right, topic));
            assert!(!may(Some(&Allow::default()), right, topic));
        }
    }

    #[test]
    fn patterns_that_match_nothing_are_found() {
        assert_eq!(rules().bad_pattern(), None);
        for bad in ["scan", "", "/", "/a*", "/a/*/b", "**", "/a?request"] {
            let rules = Allow {
                call: vec![bad.into()],
                ..rules()
            };
            assert_eq!(rules.bad_pattern(), Some(bad));
        }
    }
}
