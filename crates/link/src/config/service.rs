//! Services that are called over the radio.

use super::parse::{calls, maybe_duration, middle, priority};
use super::position::Problem;
use super::{Config, PeerConfig, Reliability, service_on_bus};
use crate::rules::{Right, may};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// This host's role for a service of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceRole {
    /// The callers are here.
    Call,
    /// The server is here.
    Serve,
}

/// Default and longest timeout of a call.
const TIMEOUT: Duration = Duration::from_secs(60);
const MAX_TIMEOUT: Duration = Duration::from_secs(3600);
/// The longest name: each of its two topics' names is eight bytes longer.
const MAX_NAME: usize = bus::MAX_NAME - 8;

/// One service.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceConfig {
    /// The service's full name as it crosses the air, such as `/arm/grasp`, without the peer's namespace on
    /// this bus. A name that ends with `/*` matches all services below it, as they appear and disappear. An
    /// exact name takes precedence over patterns, and a longer pattern over a shorter one.
    pub name: String,
    /// Where the service runs.
    pub role: Role,
    /// The peer whose service is called, by name. Default: every peer that offers it.
    #[serde(default)]
    pub from: Option<String>,
    /// 0–127; higher goes first. It applies to requests on the caller's host and to replies on the server's.
    /// Default 50.
    #[serde(default = "middle", deserialize_with = "priority")]
    pub priority: u8,
    /// Longest duration of a call, even if its caller would wait longer. Default one minute.
    #[serde(default, deserialize_with = "maybe_duration")]
    pub timeout: Option<Duration>,
    /// Most open calls per peer; further calls are refused at once. Default 16.
    #[serde(default = "depth", deserialize_with = "calls")]
    pub depth: u16,
    /// How replies of this host's server are sent: `reliable` (default), or `bulk` for large replies over
    /// long or lossy paths. Small replies are sent the same way with both.
    #[serde(default = "reliable")]
    pub reliability: Reliability,
}

/// Where a service runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// On peers, for callers on this host.
    Call,
    /// On this host, for callers on peers with permission to call it.
    Serve,
    /// Both. Each peer whose service is called then needs a namespace.
    Both,
}

fn depth() -> u16 {
    16
}

fn reliable() -> Reliability {
    Reliability::Reliable
}

impl ServiceConfig {
    /// A service with defaults for all but its name and role.
    pub fn new(name: impl Into<String>, role: Role) -> Self {
        ServiceConfig {
            name: name.into(),
            role,
            from: None,
            priority: middle(),
            timeout: None,
            depth: depth(),
            reliability: reliable(),
        }
    }

    /// Returns whether it stands for all services below a name.
    pub(crate) fn is_pattern(&self) -> bool {
        bridge::is_pattern(&self.name)
    }

    /// Longest duration of a call.
    pub fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(TIMEOUT)
    }

    /// Returns whether this host has this role towards some peer.
    pub(crate) fn has(&self, role: ServiceRole) -> bool {
        match role {
            ServiceRole::Call => self.role != Role::Serve,
            ServiceRole::Serve => self.role != Role::Call,
        }
    }

    /// Returns whether this host calls it at that peer, or serves it to that peer.
    pub(crate) fn is_for(&self, role: ServiceRole, peer: &PeerConfig) -> bool {
        match role {
            ServiceRole::Call => {
                let from = self.from.as_ref().map(|from| *from == peer.name);
                // A relay with no permissions of its own serves nothing. For a pattern it depends on the
                // service.
                let may_serve = || self.is_pattern() || may(peer.allow.as_ref(), Right::Publish, &self.name);
                let is_from = from.unwrap_or_else(may_serve);
                self.has(role) && is_from
            }
            ServiceRole::Serve => self.has(role),
        }
    }

    /// Returns whether this host serves it.
    pub(crate) fn is_for_serving(&self) -> bool {
        self.has(ServiceRole::Serve)
    }

    fn check(&self, peers: &[PeerConfig]) -> Result<(), Problem> {
        let name = &self.name;
        let stem = name.strip_suffix("/*").unwrap_or(name);
        let is_good = stem.starts_with('/') && stem.len() > 1 || name == "/*";
        if !is_good || stem.contains(['?', '*', ' ']) {
            let text = format!(
                "service '{name}': write its full name, such as /arm/grasp, or '/arm/*' for all below it"
            );
            return Err(Problem::at("name", text));
        }
        if let Some(from) = &self.from {
            if !peers.iter().any(|p| p.name == *from) {
                let known: Vec<&str> = peers.iter().map(|p| p.name.as_str()).collect();
                let known = known.join(", ");
                let text = format!(
                    "service {name}: `from` names '{from}', which is not a peer: the peers are \
                             {known}"
                );
                return Err(Problem::at("from", text));
            }
            if self.role == Role::Serve {
                return Err(Problem::at(
                    "from",
                    format!(
                        "service {name}: `from` is for `role: call`; use the peers' `allow` to limit who may call it here"
                    ),
                ));
            }
        }
        let may_serve = |p: &PeerConfig| self.is_pattern() || may(p.allow.as_ref(), Right::Publish, name);
        let servers = peers.iter().filter(|p| self.is_for(ServiceRole::Call, p));
        if self.role != Role::Serve && !servers.clone().any(may_serve) {
            return Err(Problem::at(
                if self.from.is_some() { "from" } else { "role" },
                format!(
                    "service {name}: no peer may serve it: name it in a peer's `allow`, under `publish` (for \
                     replies) and `subscribe` (for requests)"
                ),
            ));
        }
        if !matches!(self.reliability, Reliability::Reliable | Reliability::Bulk) {
            let text = format!(
                "service {name}: replies must arrive: set `reliability` to `reliable` (the default), or `bulk` for large replies"
            );
            return Err(Problem::at("reliability", text));
        }
        if self.reliability == Reliability::Bulk && !self.is_for_serving() {
            let text = format!(
                "service {name}: `reliability` is for a server's replies: set it on the server's host, with `role: serve`"
            );
            return Err(Problem::at("reliability", text));
        }
        let timeout = self.timeout();
        if timeout < Duration::from_millis(1) || timeout > MAX_TIMEOUT {
            let text = format!("service {name}: `timeout` must be 1ms to 3600s");
            return Err(Problem::at("timeout", text));
        }
        Ok(())
    }
}

impl Config {
    pub(super) fn check_services(&self) -> Result<(), Problem> {
        let mut listed = BTreeSet::new();
        // The owner of each name on this bus: a peer, or none for a server of this host.
        let mut here: BTreeMap<String, Option<&str>> = BTreeMap::new();
        for (i, service) in self.services.iter().enumerate() {
            let path = format!("services.{i}");
            service.check(&self.peers).map_err(|p| p.below(&path))?;
            let at = |key: &str, text: String| Err(Problem::at(key, text).below(&path));
            if !listed.insert(&service.name) {
                return at(
                    "name",
                    format!(
                        "service {} is listed twice; `role: both` calls and serves it",
                        service.name
                    ),
                );
            }
            for (role, peer) in [ServiceRole::Serve, ServiceRole::Call]
                .iter()
                .flat_map(|r| self.peers.iter().map(move |p| (*r, p)))
                // The names that a pattern matches are compared when they are found.
                .filter(|(role, peer)| !service.is_pattern() && service.is_for(*role, peer))
            {
                let name = service_on_bus(peer, role, &service.name);
                if name.len() > MAX_NAME {
                    return at("name", format!("service {name}: use at most {MAX_NAME} bytes"));
                }
                let owner = (role == ServiceRole::Call).then_some(peer.name.as_str());
                match here.insert(name.clone(), owner) {
                    None => {}
                    Some(other) if other == owner && owner.is_none() => {}
                    Some(Some(other)) if owner.is_some() => {
                        return at(
                            "role",
                            format!(
                                "the service {} of '{other}' and of '{}' would both be {name} here, so \
                                 calls would be ambiguous: set `from`, or give each peer a `namespace`",
                                service.name, peer.name
                            ),
                        );
                    }
                    Some(_) => {
                        return at(
                            "role",
                            format!(
                                "{name} would be a service of this host and one of a peer, so calls would be \
                                 ambiguous: give the peer a `namespace`"
                            ),
                        );
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(peers: &str, services: &str) -> Result<Config, String> {
        let text = format!(
            "{{host: base, radio: {{bind: '127.0.0.1:7400', rate: 6Mbit/s}}, peers: [{peers}], services: [{services}]}}"
        );
        Config::parse(&text).map_err(|e| e.to_string())
    }

    const ONE: &str = "{name: r-1, address: '127.0.0.1:7401'}";
    const TWO: &str = "{name: r-1, address: '127.0.0.1:7401'}, {name: r-2, address: '127.0.0.1:7402'}";
    const SHUT: &str = "{name: r-1, address: '127.0.0.1:7401', allow: {publish: [/scan]}}";
    const RELAYED: &str = "{name: r-1}, {name: r-2, address: '127.0.0.1:7402', relay: true, allow: {}}";
    const APART: &str = "{name: r-1, address: '127.0.0.1:7401', namespace: '/{peer}'}, \
                         {name: r-2, address: '127.0.0.1:7402', namespace: '/{peer}'}";

    #[test]
    fn a_service_has_defaults() {
        let c = parse(ONE, "{name: /arm/grasp, role: call}").expect("is good");
        let s = &c.services[0];
        assert_eq!(
            (s.priority, s.timeout(), s.depth, s.from.as_deref()),
            (50, Duration::from_secs(60), 16, None)
        );
        let c = parse(
            TWO,
            "{name: /a, role: call, from: r-2, timeout: 250ms, depth: 1, priority: 127}",
        );
        let s = &c.expect("is good").services[0];
        assert_eq!(
            (s.priority, s.timeout(), s.depth),
            (127, Duration::from_millis(250), 1)
        );
        for (peers, services) in [
            (TWO, "{name: /a, role: serve}, {name: /b, role: call, from: r-1}"),
            (APART, "{name: /a, role: call}, {name: /b, role: both}"),
            (RELAYED, "{name: /a, role: call}"),
            (
                TWO,
                "{name: '/arm/*', role: both}, {name: '/*', role: call, priority: 7}",
            ),
        ] {
            parse(peers, services).expect(services);
        }
    }

    #[test]
    fn every_refusal_is_one_line_that_names_the_service_and_the_fix() {
        for (peers, service, fix) in [
            (ONE, "{name: grasp, role: call}", "full name"),
            (ONE, "{name: '/a?request', role: call}", "full name"),
            (ONE, "{name: '/a*', role: call}", "full name"),
            (ONE, "{name: '/a/*/b', role: call}", "'/arm/*'"),
            (ONE, "{name: /a}", "role"),
            (ONE, "{name: /a, role: ask}", "serve"),
            (ONE, "{name: /a, role: call, form: r-1}", "from"),
            (ONE, "{name: /a, role: call, from: r-3}", "not a peer"),
            (ONE, "{name: /a, role: serve, from: r-1}", "`allow`"),
            (ONE, "{name: /a, role: call, depth: 0}", "1 to 256"),
            (ONE, "{name: /a, role: call, timeout: 0s}", "1ms"),
            (ONE, "{name: /a, role: call, timeout: 2h}", ""),
            (ONE, "{name: /a, role: call, priority: 128}", "0 to 127"),
            (ONE, "{name: /a, role: serve, reliability: redundant}", "`bulk`"),
            (ONE, "{name: /a, role: call, reliability: bulk}", "`role: serve`"),
            (
                ONE,
                "{name: /a, role: call}, {name: /a, role: serve}",
                "`role: both`",
            ),
            (ONE, "{name: /a, role: both}", "`namespace`"),
            (TWO, "{name: /a, role: call}", "set `from`"),
            (SHUT, "{name: /a, role: call}", "`publish`"),
            (SHUT, "{name: /a, role: call, from: r-1}", "`publish`"),
        ] {
            let error = parse(peers, service).expect_err(service);
            assert!(error.contains(fix), "{service}: {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
        let long = format!("{{name: /{}, role: serve}}", "a".repeat(MAX_NAME));
        assert!(parse(ONE, &long).expect_err("refused").contains("at most"));
    }
}
