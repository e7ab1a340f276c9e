//! Finds the configured service that a topic belongs to.

use super::{Config, PeerConfig, ServiceConfig, ServiceRole};
use crate::names::{Line, covers};
use crate::rules::{Right, permits};
use proto::PeerId;

/// The index of the entry for a service of this name: its own, or that of the longest pattern. The first
/// `listed` entries are the configuration's.
pub(crate) fn matching(
    services: &[ServiceConfig],
    listed: usize,
    name: &str,
    role: ServiceRole,
) -> Option<usize> {
    let own = services.iter().position(|s| s.name == name && !s.is_pattern());
    own.or_else(|| {
        let all = services.iter().take(listed).enumerate();
        let covering = all.filter(|(_, s)| s.is_pattern() && s.has(role) && covers(&s.name, name));
        covering.max_by_key(|(_, s)| s.name.len()).map(|(i, _)| i)
    })
}

/// The service that a peer's topic belongs to, and this host's role for it.
pub(crate) fn named(line: Line<'_>) -> Option<(&str, ServiceRole)> {
    match line {
        Line::Topic(_) => None,
        Line::Request(name) => Some((name, ServiceRole::Serve)),
        Line::Reply(name) => Some((name, ServiceRole::Call)),
    }
}

/// Returns whether the configuration lists, by name or pattern, the service of a topic that `peer` announces.
pub(crate) fn is_configured(config: &Config, peer: PeerId, line: Line<'_>) -> bool {
    is_for(
        &config.services,
        config.services.len(),
        config.peers.get(peer.0 as usize),
        line,
    )
}

/// Returns whether `peer` may take part in the service of a topic, by sending on that topic.
pub(crate) fn may_take_part(config: &Config, peer: &PeerConfig, line: Line<'_>) -> bool {
    is_for(&config.services, config.services.len(), Some(peer), line)
        && permits(peer.allow.as_ref(), Right::Publish, line)
}

/// Returns whether the service of a topic, listed or found, is for `peer`.
pub(crate) fn is_for(
    services: &[ServiceConfig],
    listed: usize,
    peer: Option<&PeerConfig>,
    line: Line<'_>,
) -> bool {
    let (Some((name, role)), Some(peer)) = (named(line), peer) else {
        return false;
    };
    matching(services, listed, name, role).is_some_and(|i| services[i].is_for(role, peer))
}
