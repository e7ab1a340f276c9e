//! What is to cross between hosts, and the files that say so.

use super::ImportedHost;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

/// The port of a link, if nobody says another.
pub(super) const PORT: u16 = 7400;

#[derive(Debug)]
pub(super) struct Plan {
    /// What it was made of, for the files' first lines.
    pub(super) source: String,
    pub(super) hosts: Vec<Host>,
    /// Of the radio, in Mbit/s; `None` is `auto`.
    pub(super) rate: Option<f64>,
    pub(super) topics: Vec<Topic>,
    pub(super) services: Vec<Service>,
}

#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) name: String,
    /// `None`: the user has to write it.
    pub(super) address: Option<IpAddr>,
    pub(super) port: u16,
}

/// A topic from one host to others, by their places.
#[derive(Clone, Debug)]
pub(super) struct Topic {
    pub(super) name: String,
    pub(super) from: usize,
    pub(super) to: Vec<usize>,
    pub(super) priority: Option<u8>,
    pub(super) deadline_ms: Option<u32>,
    pub(super) depth: Option<u16>,
    pub(super) rate_limit: Option<f64>,
    pub(super) compress: bool,
    pub(super) latched: bool,
    pub(super) reliability: Option<&'static str>,
    /// Transforms, each so often a second.
    pub(super) tf_rate: Option<f64>,
}

impl Topic {
    pub(super) fn new(name: String, from: usize, to: Vec<usize>) -> Self {
        Topic {
            name,
            from,
            to,
            priority: None,
            deadline_ms: None,
            depth: None,
            rate_limit: None,
            compress: false,
            latched: false,
            reliability: None,
            tf_rate: None,
        }
    }
}

/// A service of one host's for others.
#[derive(Clone, Debug)]
pub(super) struct Service {
    pub(super) name: String,
    pub(super) kind: Option<String>,
    pub(super) server: usize,
    pub(super) callers: Vec<usize>,
    pub(super) priority: Option<u8>,
    pub(super) timeout_s: Option<f64>,
}

impl Plan {
    /// The files of every host that sends or receives something.
    pub(super) fn write(&self) -> Vec<ImportedHost> {
        let busy = |host: &usize| self.hosts.len() > *host && !self.neighbours(*host).is_empty();
        (0..self.hosts.len())
            .filter(busy)
            .map(|host| ImportedHost {
                name: self.hosts[host].name.clone(),
                link: self.link(host),
                bridge: self.bridge(host),
            })
            .collect()
    }

    /// With whom a host has something to exchange, in order.
    fn neighbours(&self, host: usize) -> Vec<usize> {
        let topics = self.topics.iter().map(|t| (t.from, &t.to));
        let services = self.services.iter().map(|s| (s.server, &s.callers));
        let mut found: Vec<usize> = topics
            .chain(services)
            .flat_map(|(one, others)| {
                others.iter().filter_map(move |other| match host {
                    h if h == one => Some(*other),
                    h if h == *other => Some(one),
                    _ => None,
                })
            })
            .filter(|other| *other != host)
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    fn link(&self, host: usize) -> String {
        let own = &self.hosts[host];
        let rate = self.rate.map_or("auto".to_owned(), |r| format!("{r}Mbit/s"));
        let mut out = format!(
            "# Made of {} by `ropewalk import`. Keys: `ropewalk keys team`, `ropewalk keys host {}`.\n\
             host: {}\nkeys: keys/{}\nradio: {{bind: '0.0.0.0:{}', rate: {rate}}}\npeers:\n",
            self.source, own.name, own.name, own.name, own.port
        );
        let neighbours = self.neighbours(host);
        for &peer in &neighbours {
            let other = &self.hosts[peer];
            // An address for documentation (RFC 5737) stands for one that nobody told.
            let address = other.address.unwrap_or(IpAddr::from([192, 0, 2, 1]));
            let _ = write!(
                out,
                "  - {{name: {}, address: '{}'",
                other.name,
                SocketAddr::new(address, other.port)
            );
            if neighbours.len() > 1 {
                let _ = write!(out, ", allow: {{{}}}", self.allow(host, peer));
            }
            let missing = if other.address.is_none() {
                "   # write its address"
            } else {
                ""
            };
            let _ = writeln!(out, "}}{missing}");
        }
        self.link_topics(host, &mut out);
        self.link_services(host, &mut out);
        out
    }

    /// What a peer may do at `host`: the routes between the two.
    fn allow(&self, host: usize, peer: usize) -> String {
        let topics = |from: usize, to: usize| {
            let names = self
                .topics
                .iter()
                .filter(move |t| t.from == from && t.to.contains(&to));
            names.map(|t| t.name.as_str())
        };
        // A host that calls a service lets its server publish by that name: the replies.
        let called = self
            .services
            .iter()
            .filter(|s| s.server == peer && s.callers.contains(&host));
        let called = called.map(|s| s.name.as_str());
        let calls = self
            .services
            .iter()
            .filter(|s| s.server == host && s.callers.contains(&peer));
        let calls: Vec<&str> = calls.map(|s| s.name.as_str()).collect();
        format!(
            "publish: [{}], subscribe: [{}], call: [{}]",
            listed(topics(peer, host).chain(called)),
            listed(topics(host, peer)),
            calls.join(", ")
        )
    }

    fn link_topics(&self, host: usize, out: &mut String) {
        let mut lines = BTreeMap::new();
        for topic in &self.topics {
            let (sends, hears) = (topic.from == host, topic.to.contains(&host));
            if sends || hears {
                let line: &mut (bool, bool, &Topic) =
                    lines.entry(&topic.name).or_insert((false, false, topic));
                line.0 |= sends;
                line.1 |= hears;
                // The sender's settings count.
                if sends {
                    line.2 = topic;
                }
            }
        }
        if !lines.is_empty() {
            out.push_str("topics:\n");
        }
        for (name, (sends, hears, topic)) in lines {
            let direction = match (sends, hears) {
                (true, true) => "both",
                (true, false) => "out",
                _ => "in",
            };
            let _ = write!(out, "  - {{name: {name}, direction: {direction}");
            if let Some(priority) = topic.priority {
                let _ = write!(out, ", priority: {priority}");
            }
            if let Some(reliability) = topic.reliability {
                let _ = write!(out, ", reliability: {reliability}");
            }
            if topic.latched {
                out.push_str(", latched: true");
            }
            if sends {
                if let Some(deadline) = topic.deadline_ms {
                    let _ = write!(out, ", deadline: {deadline}ms");
                }
                if let Some(depth) = topic.depth {
                    let _ = write!(out, ", depth: {depth}");
                }
                if let Some(rate) = topic.rate_limit {
                    let _ = write!(out, ", rate_limit: {rate}Hz");
                }
                if topic.compress {
                    out.push_str(", compress: auto");
                }
            }
            out.push_str("}\n");
        }
    }

    fn link_services(&self, host: usize, out: &mut String) {
        let mut first = true;
        for service in &self.services {
            let (serves, calls) = (service.server == host, service.callers.contains(&host));
            if !serves && !calls {
                continue;
            }
            if std::mem::take(&mut first) {
                out.push_str("services:\n");
            }
            let _ = write!(out, "  - {{name: {}, ", service.name);
            let _ = if serves {
                write!(out, "role: serve")
            } else {
                write!(out, "role: call, from: {}", self.hosts[service.server].name)
            };
            if let Some(priority) = service.priority {
                let _ = write!(out, ", priority: {priority}");
            }
            if let Some(timeout) = service.timeout_s.filter(|_| !serves) {
                let _ = write!(out, ", timeout: {timeout}s");
            }
            out.push_str("}\n");
        }
    }

    fn bridge(&self, host: usize) -> String {
        let mut out = format!("# Made of {} by `ropewalk import`.\n", self.source);
        let mut lines = BTreeMap::new();
        for topic in &self.topics {
            let line: &mut (bool, bool, Option<f64>) = lines.entry(&topic.name).or_default();
            line.0 |= topic.from == host;
            line.1 |= topic.to.contains(&host);
            if topic.from == host {
                line.2 = line.2.or(topic.tf_rate);
            }
        }
        lines.retain(|_, (sends, hears, _)| *sends || *hears);
        if !lines.is_empty() {
            out.push_str("topics:\n");
        }
        for (name, (sends, hears, tf_rate)) in lines {
            let direction = match (sends, hears) {
                (true, true) => "both",
                (true, false) => "to_bus",
                _ => "to_ros",
            };
            let tf = tf_rate.map_or(String::new(), |rate| format!(", tf: {{rate: {rate}Hz}}"));
            let _ = writeln!(out, "  - {{name: {name}, direction: {direction}{tf}}}");
        }
        let mut first = true;
        for service in &self.services {
            let (serves, calls) = (service.server == host, service.callers.contains(&host));
            if serves || calls {
                if std::mem::take(&mut first) {
                    out.push_str("services:\n");
                }
                let direction = if serves { "to_bus" } else { "to_ros" };
                let kind = service
                    .kind
                    .as_ref()
                    .map_or(String::new(), |kind| format!(", type: {kind}"));
                let _ = writeln!(
                    out,
                    "  - {{name: {}, direction: {direction}{kind}}}",
                    service.name
                );
            }
        }
        out
    }
}

/// Names in order, each once.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}
