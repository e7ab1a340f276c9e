//! Robots that take commands.

use crate::picture::{BusTopic, Link};
use crate::{ServiceRole, ServiceState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A robot that takes commands, on this host's bus or over a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Robot {
    /// The link to it; none if it is on this host's bus.
    pub link: Option<String>,
    /// The peer of that link that offers it.
    pub peer: Option<String>,
    /// Whether it can be commanded from this host.
    pub state: ServiceState,
    /// Messages a second of all its telemetry on this host's bus; none before they are counted.
    pub telemetry_hz: Option<f64>,
}

/// The robots by name, which is empty for a robot without one. `served`: the services of this host's bus.
pub(crate) fn robots<'a>(
    served: impl Iterator<Item = &'a str>,
    links: &BTreeMap<String, Link>,
    topics: &BTreeMap<String, BusTopic>,
) -> BTreeMap<String, Robot> {
    let mut robots = BTreeMap::new();
    let mut add = |service: &str, link: Option<&String>, peer: Option<&String>, state: &ServiceState| {
        let Some(name) = service.strip_suffix("/remote/command") else {
            return;
        };
        let telemetry = format!("{name}/remote/telemetry/");
        let topics = topics.range(telemetry.clone()..);
        let hz = topics
            .take_while(|(name, _)| name.starts_with(&telemetry))
            .filter_map(|(_, topic)| topic.hz);
        let robot = Robot {
            link: link.cloned(),
            peer: peer.cloned(),
            state: state.clone(),
            telemetry_hz: hz.reduce(|sum, hz| sum + hz),
        };
        robots.insert(name.trim_start_matches('/').to_owned(), robot);
    };
    for service in served {
        add(service, None, None, &ServiceState::Ready);
    }
    // A link serves on this host's bus what its peers offer.
    for (name, link) in links {
        let called = link.view.services.iter().filter(|s| s.role == ServiceRole::Call);
        for s in called {
            add(&s.service, Some(name), Some(&s.peer), &s.state);
        }
    }
    robots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Service, View};

    #[test]
    fn a_robot_is_known_by_its_commands_and_has_its_telemetry_only() {
        let service = |service: &str, role, state| Service {
            service: service.into(),
            role,
            peer: "tracked".into(),
            state,
            ..Service::default()
        };
        let services = vec![
            service(
                "/fleet/rover/remote/command",
                ServiceRole::Call,
                ServiceState::Ready,
            ),
            service(
                "/fleet/rover/remote/request",
                ServiceRole::Call,
                ServiceState::Ready,
            ),
            service("/boat/remote/command", ServiceRole::Call, ServiceState::NoPeer),
            service("/arm/remote/command", ServiceRole::Serve, ServiceState::Ready),
            service("/no_remote/command", ServiceRole::Call, ServiceState::Ready),
            service("/command", ServiceRole::Call, ServiceState::Ready),
        ];
        let view = View {
            services,
            ..View::default()
        };
        let links = [("base".to_owned(), Link { answers: true, view })].into();
        let topic = |name: &str, hz| {
            let topic = BusTopic {
                hz,
                ..BusTopic::default()
            };
            (name.to_owned(), topic)
        };
        let topics = [
            topic("/fleet/rover/remote/telemetry/Pose", Some(10.0)),
            topic("/fleet/rover/remote/telemetry/large/Map", Some(0.5)),
            topic("/fleet/rover/remote/telemetry/new", None),
            topic("/fleet/rover2/remote/telemetry/Pose", Some(3.0)),
            topic("/arm/remote/telemetry/new", None),
        ]
        .into();
        let served = [
            "/fleet/rover/remote/command",
            "/arm/remote/command",
            "/remote/command",
            "/remote/file",
        ];
        let robot = |link: Option<&str>, state, telemetry_hz| Robot {
            link: link.map(str::to_owned),
            peer: link.map(|_| "tracked".to_owned()),
            state,
            telemetry_hz,
        };
        let expected = [
            ("", robot(None, ServiceState::Ready, None)),
            ("arm", robot(None, ServiceState::Ready, None)),
            ("boat", robot(Some("base"), ServiceState::NoPeer, None)),
            (
                "fleet/rover",
                robot(Some("base"), ServiceState::Ready, Some(10.5)),
            ),
        ];
        let expected = expected.map(|(name, robot)| (name.to_owned(), robot)).into();
        assert_eq!(robots(served.into_iter(), &links, &topics), expected);
    }
}
