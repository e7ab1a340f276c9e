//! Names of topics and hosts, without a configuration. [`crate::config`] maps a topic's name on this host's bus to its
//! name towards a peer.

use std::fmt;

/// The name of a topic on the air: of a topic, or of one of the two topics of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    Topic(&'a str),
    /// The requests of the service with this name.
    Request(&'a str),
    /// Its replies.
    Reply(&'a str),
}

impl<'a> Line<'a> {
    /// Parses a name; `None` if it is none of these.
    pub(crate) fn parse(name: &'a str) -> Option<Self> {
        match name.split_once('?') {
            None => Some(Line::Topic(name)),
            Some((service, "request")) => Some(Line::Request(service)),
            Some((service, "reply")) => Some(Line::Reply(service)),
            Some(_) => None,
        }
    }

    /// The name of the topic or service.
    pub(crate) fn name(self) -> &'a str {
        match self {
            Line::Topic(name) | Line::Request(name) | Line::Reply(name) => name,
        }
    }

    /// The name of the service that it belongs to.
    pub(crate) fn service(self) -> Option<&'a str> {
        (!self.is_topic()).then_some(self.name())
    }

    pub(crate) fn is_topic(self) -> bool {
        matches!(self, Line::Topic(_))
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Line::Topic(_) => Ok(()),
            Line::Request(_) => f.write_str("?request"),
            Line::Reply(_) => f.write_str("?reply"),
        }
    }
}

/// Returns whether a namespace consists of words of letters, digits and `_`, none of which begins with a
/// digit, as in ROS.
pub(crate) fn is_good(namespace: &str) -> bool {
    let good = |w: &str| {
        w.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && w.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    namespace
        .strip_prefix('/')
        .is_some_and(|rest| rest.split('/').all(good))
}

/// Prefix of this project's internal names. A pattern matches them only if it has the prefix, too.
const HIDDEN: &str = "/_";

/// Returns whether a configured topic or service covers the one with this name, which is not that of a service's
/// topic: those are covered by the configuration of services.
pub(crate) fn covers(name: &str, topic: &str) -> bool {
    let is_topic = || Line::parse(topic).is_some_and(Line::is_topic);
    let by_pattern = || is_topic() && (!topic.starts_with(HIDDEN) || name.starts_with(HIDDEN));
    bridge::covers(name, topic) && (name == topic || by_pattern())
}

/// The topic by which one host tells another which ROS 2 nodes it has.
pub(crate) fn nodes_of(from: &str, to: &str) -> String {
    format!("{NODES}{:016x}/{:016x}", host_id(from), host_id(to))
}

/// Prefix of these topics.
const NODES: &str = "/_ros2/";

/// Returns whether `topic` describes nodes, but not from `from` to `to`.
pub(crate) fn is_of_other_nodes(topic: &str, from: &str, to: &str) -> bool {
    is_of_nodes(topic) && topic != nodes_of(from, to)
}

/// Returns whether `topic` describes nodes, possibly below a peer's namespace.
pub(crate) fn is_of_nodes(topic: &str) -> bool {
    topic.contains(NODES)
}

/// The ROS flavour of a topic's type as an announcement states it.
pub(crate) fn announced(flavour: bus::Flavour) -> proto::Flavour {
    proto::Flavour(flavour.to_bytes())
}

/// The ROS flavour that an announcement states; an unknown one counts as unstated.
pub(crate) fn stated(flavour: proto::Flavour) -> bus::Flavour {
    bus::Flavour::from_bytes(&flavour.0).unwrap_or_default()
}

/// A host's id from its name: FNV-1a, so that every run and every peer agree.
pub(crate) fn host_id(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_of_a_topic_or_of_one_part_of_a_service() {
        for (name, line) in [
            ("/scan", Line::Topic("/scan")),
            ("/arm/grasp?request", Line::Request("/arm/grasp")),
            ("/arm/grasp?reply", Line::Reply("/arm/grasp")),
        ] {
            assert_eq!(Line::parse(name), Some(line));
            assert_eq!(line.to_string(), name);
        }
        for other in ["?greeting", "/a?", "/a?requests", "/a?b?request", "/a?request?"] {
            assert_eq!(Line::parse(other), None, "{other}");
        }
    }

    #[test]
    fn namespaces_are_words() {
        assert!(is_good("/r1") && is_good("/fleet/_a"));
        for bad in ["", "/", "r1", "/r1/", "/1", "/a-b", "/a//b", "/{name}", "/a b"] {
            assert!(!is_good(bad), "{bad}");
        }
    }
}
