//! A topic's names: on this host's bus, and towards a peer (decision 110).

use super::{Config, PeerConfig, ServiceRole, TopicConfig};
use crate::names::{covers, is_of_other_nodes};

/// Stands for the peer's name in a namespace.
const PEER: &str = "{peer}";

/// The namespace of a peer's topics here, empty for none. `{peer}` is replaced by the peer's name, with `_`
/// for `-`, which topics cannot contain.
pub(crate) fn namespace(peer: &PeerConfig) -> String {
    let name = peer.name.replace('-', "_");
    peer.namespace.as_deref().unwrap_or_default().replace(PEER, &name)
}

/// The name of `peer`'s topic `wire` on this host's bus.
pub(crate) fn on_bus(peer: &PeerConfig, wire: &str) -> String {
    namespace(peer) + wire
}

/// A service's name on this host's bus: a service of `peer` is below its namespace; a service of this host
/// has its own name, by which all peers call it.
pub(crate) fn service_on_bus(peer: &PeerConfig, role: ServiceRole, wire: &str) -> String {
    match role {
        ServiceRole::Call => on_bus(peer, wire),
        ServiceRole::Serve => wire.to_owned(),
    }
}

/// The name of this bus's topic towards `peer`; none if it is outside the peer's namespace.
pub(crate) fn on_wire<'a>(peer: &PeerConfig, bus: &'a str) -> Option<&'a str> {
    bus.strip_prefix(&namespace(peer))
        .filter(|rest| rest.starts_with('/'))
}

/// The index of the configured entry for a topic that is sent: its own name, or else the longest pattern.
pub(crate) fn sent_by(config: &Config, wire: &str) -> Option<usize> {
    let all = config.topics.iter().enumerate();
    let sent = all.filter(|(_, t)| t.direction.sends() && covers(&t.name, wire));
    let closest = sent.max_by_key(|(_, t)| (!bridge::is_pattern(&t.name), t.name.len()));
    closest.map(|(i, _)| i)
}

/// Maps this bus's topic `bus` for each peer that receives it. Yields the peer's index, the index of the
/// entry that covers it, and that entry with the name on the air.
pub(crate) fn sent_as(config: &Config, bus: &str) -> impl Iterator<Item = (usize, usize, TopicConfig)> {
    config.peers.iter().enumerate().filter_map(move |(i, peer)| {
        let wire = on_wire(peer, bus).filter(|wire| !is_of_other_nodes(wire, &config.host, &peer.name))?;
        let entry = sent_by(config, wire)?;
        let topic = TopicConfig {
            name: wire.to_owned(),
            ..config.topics[entry].clone()
        };
        Some((i, entry, topic))
    })
}

/// The topics of this bus that are sent to any peer, including patterns.
pub(crate) fn sent(config: &Config) -> impl Iterator<Item = String> + '_ {
    let topics = config.topics.iter().filter(|t| t.direction.sends());
    let all = topics.flat_map(|t| config.peers.iter().map(move |p| (t, p)));
    let meant = all.filter(|(t, p)| !is_of_other_nodes(&t.name, &config.host, &p.name));
    meant.map(|(t, p)| on_bus(p, &t.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::nodes_of;

    fn peer(name: &str, namespace: Option<&str>) -> PeerConfig {
        PeerConfig {
            name: name.into(),
            address: None,
            allow: None,
            namespace: namespace.map(Into::into),
            relay: None,
            memory: None,
        }
    }

    #[test]
    fn names_go_into_a_namespace_and_out_of_it() {
        let robot = peer("robot-1", Some("/fleet/{peer}"));
        assert_eq!(on_bus(&robot, "/scan"), "/fleet/robot_1/scan");
        assert_eq!(on_wire(&robot, "/fleet/robot_1/scan"), Some("/scan"));
        for other in [
            "/scan",
            "/fleet/robot_1",
            "/fleet/robot_11/scan",
            "/fleet/robot_1scan",
        ] {
            assert_eq!(on_wire(&robot, other), None, "{other}");
        }
        let plain = peer("base", None);
        assert_eq!(on_bus(&plain, "/scan"), "/scan");
        assert_eq!(on_wire(&plain, "/scan"), Some("/scan"));
        assert_eq!(on_bus(&robot, "/add?request"), "/fleet/robot_1/add?request");
    }

    #[test]
    fn the_closest_name_counts_for_a_topic() {
        let config = Config::parse(
            "
host: robot
radio: {bind: '127.0.0.1:7400', rate: 6Mbit/s}
peers: [{name: base, address: '127.0.0.1:7401', namespace: /b}]
topics:
  - {name: '/t/*', direction: out, priority: 1}
  - {name: '/t/image/*', direction: out, priority: 2}
  - {name: /t/image/left, direction: out, priority: 3}
  - {name: '/t/image/l/*', direction: in, priority: 4}
",
        )
        .unwrap_or_else(|e| panic!("{e}"));
        let sent = |bus: &str| {
            let mut all = sent_as(&config, bus);
            all.next().map(|(_, entry, t)| (entry, t.name, t.priority))
        };
        for (wire, entry) in [
            ("/t/scan", 0),
            ("/t/image/right", 1),
            ("/t/image/left", 2),
            ("/t/image/l/x", 1),
        ] {
            let priority = entry as u8 + 1;
            assert_eq!(sent(&format!("/b{wire}")), Some((entry, wire.into(), priority)));
        }
        for other in ["/t/scan", "/b/t", "/b/tt/scan", "/b/t/add?request"] {
            assert_eq!(sent(other), None, "{other}");
        }
    }

    #[test]
    fn patterns_exclude_hidden_names_and_nodes_go_to_their_peers_only() {
        assert!(covers("/*", "/scan") && covers("/*", "/fib/_action/status"));
        assert!(!covers("/*", "/_ros2/a") && covers("/_ros2/*", "/_ros2/a") && covers("/_x", "/_x"));
        let config = Config::parse(
            "{host: robot, radio: {bind: '127.0.0.1:7400', rate: 6Mbit/s}, ros2: true, peers: [{name: a, address: \
             '127.0.0.1:7401'}, {name: b, address: '127.0.0.1:7402', namespace: /b}]}",
        )
        .unwrap_or_else(|e| panic!("{e}"));
        let to = |bus: &str| sent_as(&config, bus).map(|(peer, ..)| peer).collect::<Vec<_>>();
        assert_eq!(to(&nodes_of("robot", "a")), [0]);
        assert_eq!(to(&format!("/b{}", nodes_of("robot", "b"))), [1]);
        assert_eq!(to(&nodes_of("robot", "b")), [] as [usize; 0]);
        assert_eq!(to("/scan"), [0]);
        assert!(is_of_other_nodes(&nodes_of("a", "robot"), "b", "robot"));
    }
}
