//! Finds services by their names on the air, and by patterns. A service that matches a pattern gets an entry
//! of its own once it is found.

use super::Of;
use crate::config::ServiceRole;
use crate::config::{Config, PeerConfig, ServiceConfig};
use crate::discovery::MOST_BY_PATTERN;
use crate::names;
use crate::names::{REPLY, REQUEST};
use crate::rules::{Right, may};
use proto::PeerId;

/// The index of the entry for a service of this name: its own, or that of the longest pattern. The first
/// `listed` entries are the configuration's.
fn matching(services: &[ServiceConfig], listed: usize, name: &str, role: ServiceRole) -> Option<usize> {
    let own = services.iter().position(|s| s.name == name && !s.is_pattern());
    own.or_else(|| {
        let all = services.iter().take(listed).enumerate();
        let covering = all.filter(|(_, s)| s.is_pattern() && s.has(role) && names::covers(&s.name, name));
        covering.max_by_key(|(_, s)| s.name.len()).map(|(i, _)| i)
    })
}

/// The index of a service's entry, and whether it was another service's before. A new match of a pattern gets
/// an entry after the `listed` ones.
pub(super) fn found_index(
    services: &mut Vec<ServiceConfig>,
    listed: usize,
    (name, role): (&str, ServiceRole),
    in_use: impl Fn(usize) -> bool,
) -> Result<Option<(usize, bool)>, &'static str> {
    let Some(index) = matching(services, listed, name, role) else {
        return Ok(None);
    };
    if !services[index].is_pattern() {
        return Ok(Some((index, false)));
    }
    let found = ServiceConfig {
        name: name.to_owned(),
        ..services[index].clone()
    };
    if services.len() - listed < MOST_BY_PATTERN {
        services.push(found);
        return Ok(Some((services.len() - 1, false)));
    }
    let free = (listed..services.len()).find(|i| !in_use(*i));
    let index = free.ok_or("too many services match patterns: list some by name")?;
    services[index] = found;
    Ok(Some((index, true)))
}

/// The service that a topic belongs to, and this host's role for it.
pub(super) fn named(topic: &str) -> Option<(&str, ServiceRole)> {
    match (topic.strip_suffix(REQUEST), topic.strip_suffix(REPLY)) {
        (Some(name), _) => Some((name, ServiceRole::Serve)),
        (_, Some(name)) => Some((name, ServiceRole::Call)),
        _ => None,
    }
}

/// Returns whether the configuration lists, by name or pattern, the service of a topic that `peer` announces.
pub(crate) fn is_configured(config: &Config, peer: PeerId, topic: &str) -> bool {
    is_for(
        &config.services,
        config.services.len(),
        config.peers.get(peer.0 as usize),
        topic,
    )
}

/// Returns whether `peer` may take part in the service of a topic, by sending on that topic.
pub(crate) fn may_take_part(config: &Config, peer: &PeerConfig, topic: &str) -> bool {
    is_for(&config.services, config.services.len(), Some(peer), topic)
        && may(peer.allow.as_ref(), Right::Publish, topic)
}

/// Returns whether the service of a topic, listed or found, is for `peer`.
pub(super) fn is_for(
    services: &[ServiceConfig],
    listed: usize,
    peer: Option<&PeerConfig>,
    topic: &str,
) -> bool {
    let (Some((name, role)), Some(peer)) = (named(topic), peer) else {
        return false;
    };
    matching(services, listed, name, role).is_some_and(|i| services[i].is_for(role, peer))
}

/// The service of a topic that `peer` announces, if the configuration lists it by name.
pub(crate) fn configured(config: &Config, peer: PeerId, topic: &str) -> Option<Of> {
    let (name, role) = named(topic)?;
    let service = config.services.iter().position(|s| s.name == name)?;
    let from = config.peers.get(peer.0 as usize)?;
    config.services[service]
        .is_for(role, from)
        .then_some(Of { peer, service, role })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Role;

    #[test]
    fn patterns_find_no_more_services_than_a_link_carries() {
        let mut services = vec![
            ServiceConfig::new("/arm/*", Role::Serve),
            ServiceConfig::new("/arm/grasp", Role::Call),
            ServiceConfig {
                priority: 90,
                ..ServiceConfig::new("/arm/left/*", Role::Both)
            },
        ];
        let listed = services.len();
        let mut index = |name: &str, role, in_use: &dyn Fn(usize) -> bool| {
            let index = found_index(&mut services, listed, (name, role), in_use);
            index.map(|p| p.map(|(i, anew)| (i, anew, services[i].name.clone(), services[i].priority)))
        };
        let (serve, call, all) = (ServiceRole::Serve, ServiceRole::Call, |_| true);
        assert_eq!(
            index("/arm/grasp", serve, &all),
            Ok(Some((1, false, "/arm/grasp".into(), 50)))
        );
        assert_eq!(index("/leg", serve, &all), Ok(None));
        assert_eq!(
            index("/arm/x", call, &all),
            Ok(None),
            "the pattern is for serving"
        );
        let left = Ok(Some((3, false, "/arm/left/x".into(), 90)));
        assert_eq!(
            index("/arm/left/x", call, &all),
            left,
            "the longest pattern counts"
        );
        assert_eq!(index("/arm/left/x", serve, &all), left, "it has an entry");
        for i in 1..MOST_BY_PATTERN {
            assert!(matches!(
                index(&format!("/arm/{i}"), serve, &all),
                Ok(Some((_, false, ..)))
            ));
        }
        assert!(index("/arm/more", serve, &all).is_err());
        let free = |i| i != 7;
        assert_eq!(
            index("/arm/more", serve, &free),
            Ok(Some((7, true, "/arm/more".into(), 50)))
        );
        assert_eq!(
            index("/arm/more", serve, &all),
            Ok(Some((7, false, "/arm/more".into(), 50)))
        );
    }
}
