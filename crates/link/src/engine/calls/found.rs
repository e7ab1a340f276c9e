//! Finds services by their names on the air, and by patterns. A service that matches a pattern gets an entry
//! of its own once it is found.

use crate::config::matching::matching;
use crate::config::{ServiceConfig, ServiceRole};
use crate::discovery::MOST_BY_PATTERN;
use proto::PeerId;

/// A service of the configuration, towards one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Of {
    /// The serving or the calling peer.
    pub(crate) peer: PeerId,
    /// Its index in the configuration.
    pub(crate) service: usize,
    pub(crate) role: ServiceRole,
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
