//! Topics and services that cross between hosts, and the files that configure this.

use super::ImportedHost;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

/// Default port of a link.
pub(super) const PORT: u16 = 7400;

#[derive(Debug)]
pub(super) struct Plan {
    /// The source files, for the first lines of the output.
    pub(super) source: String,
    pub(super) hosts: Vec<Host>,
    /// Rate of the radio in Mbit/s; `None` is `auto`.
    pub(super) rate: Option<f64>,
    pub(super) topics: Vec<Topic>,
    pub(super) services: Vec<Service>,
}

#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) name: String,
    /// `None` if the user has to write it.
    pub(super) address: Option<IpAddr>,
    pub(super) port: u16,
}

/// A topic from one host to others, by their indices.
#[derive(Clone, Debug)]
pub(super) struct Topic {
    /// Name on the air, and on the bus of every host.
    pub(super) name: String,
    pub(super) from: usize,
    /// Name in the sending host's ROS.
    pub(super) source: String,
    /// The hosts that receive it, each with its name in their ROS.
    pub(super) to: Vec<(usize, String)>,
    pub(super) kind: Option<String>,
    pub(super) priority: Option<u8>,
    pub(super) deadline_ms: Option<u32>,
    pub(super) rate_limit: Option<f64>,
    pub(super) compress: bool,
    pub(super) latched: bool,
    pub(super) reliability: Option<&'static str>,
    pub(super) tf: Option<Tf>,
}

/// Which transforms are sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Tf {
    /// Rate of each transform per second.
    pub(super) rate: Option<f64>,
    /// Child frames; empty for all.
    pub(super) frames: Vec<String>,
}

impl Topic {
    pub(super) fn new(name: String, from: usize, source: String) -> Self {
        Topic {
            name,
            from,
            source,
            to: Vec::new(),
            kind: None,
            priority: None,
            deadline_ms: None,
            rate_limit: None,
            compress: false,
            latched: false,
            reliability: None,
            tf: None,
        }
    }

    /// Returns its name in the ROS of a receiving host.
    pub(super) fn heard(&self, host: usize) -> Option<&str> {
        let found = self.to.iter().find(|(to, _)| *to == host);
        found.map(|(_, name)| name.as_str())
    }
}

/// A service of one host that others call.
#[derive(Clone, Debug)]
pub(super) struct Service {
    /// Name on the air, and on the bus of every host.
    pub(super) name: String,
    pub(super) kind: Option<String>,
    pub(super) server: usize,
    /// Name in the server's ROS.
    pub(super) served: String,
    /// The hosts that call it, each with its name in their ROS.
    pub(super) callers: Vec<(usize, String)>,
    pub(super) priority: Option<u8>,
    pub(super) timeout_s: Option<f64>,
}

impl Service {
    pub(super) fn called(&self, host: usize) -> Option<&str> {
        let found = self.callers.iter().find(|(caller, _)| *caller == host);
        found.map(|(_, name)| name.as_str())
    }
}

impl Plan {
    /// Removes names that a host's bridge could not distinguish, and returns notes about them. In a bridge, a name in
    /// ROS goes onto the bus under one name, and names into ROS correspond one to one.
    pub(super) fn settle(&mut self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut sent = BTreeMap::<(usize, String), String>::new();
        let mut heard = BTreeMap::<(usize, String), String>::new();
        let mut from_bus = BTreeMap::<(usize, String), String>::new();
        for topic in &mut self.topics {
            let source = (topic.from, topic.source.clone());
            let other = sent.entry(source).or_insert_with(|| topic.name.clone());
            if *other != topic.name {
                notes.push(format!(
                    "{}: {} already crosses as {other}: ignored",
                    topic.name, topic.source
                ));
                topic.to.clear();
            }
            let name = topic.name.clone();
            topic.to.retain(|(to, ros)| {
                let key = (*to, ros.clone());
                let same = heard.get(&key).is_none_or(|other| *other == name);
                let bus = from_bus.get(&(*to, name.clone()));
                let fits = same && bus.is_none_or(|other| other == ros);
                if fits {
                    heard.insert(key, name.clone());
                    from_bus.insert((*to, name.clone()), ros.clone());
                } else {
                    notes.push(format!("{name}: arrives as {ros} at a host where one of these names is already in use: ignored there"));
                }
                fits
            });
        }
        self.topics.retain(|t| !t.to.is_empty());
        let mut taken = BTreeSet::<(usize, String)>::new();
        for service in &mut self.services {
            let name = service.name.clone();
            let mut is_free = |host: usize, ros: &str| {
                let free = taken.insert((host, ros.to_owned()));
                if !free {
                    notes.push(format!("{name}: {ros} is another service there: ignored"));
                }
                free
            };
            if is_free(service.server, &service.served) {
                service.callers.retain(|(host, ros)| is_free(*host, ros));
            } else {
                service.callers.clear();
            }
        }
        self.services.retain(|s| !s.callers.is_empty());
        notes
    }

    /// Returns the files of every host that sends or receives something.
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

    /// Returns the hosts that a host exchanges something with, in order.
    fn neighbours(&self, host: usize) -> Vec<usize> {
        let topics = self.topics.iter().map(|t| (t.from, &t.to));
        let services = self.services.iter().map(|s| (s.server, &s.callers));
        let mut found: Vec<usize> = topics
            .chain(services)
            .flat_map(|(one, others)| {
                others.iter().filter_map(move |(other, _)| match host {
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
            // A documentation address (RFC 5737) is the placeholder for an unknown one.
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

    /// Returns a peer's permissions at `host`: the routes between the two.
    fn allow(&self, host: usize, peer: usize) -> String {
        let topics = |from: usize, to: usize| {
            let names = self
                .topics
                .iter()
                .filter(move |t| t.from == from && t.heard(to).is_some());
            names.map(|t| t.name.as_str())
        };
        // A host that calls a service lets its server publish under that name: the replies.
        let called = self
            .services
            .iter()
            .filter(|s| s.server == peer && s.called(host).is_some());
        let called = called.map(|s| s.name.as_str());
        let calls = self
            .services
            .iter()
            .filter(|s| s.server == host && s.called(peer).is_some());
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
            let (sends, hears) = (topic.from == host, topic.heard(host).is_some());
            if sends || hears {
                let line: &mut (bool, bool, &Topic) =
                    lines.entry(&topic.name).or_insert((false, false, topic));
                line.0 |= sends;
                line.1 |= hears;
                // The sender's settings apply.
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
            let (serves, calls) = (service.server == host, service.called(host).is_some());
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
        // By name in ROS and on the bus: the directions, and the topic that is sent.
        let mut lines = BTreeMap::<(&str, &str), (bool, bool, Option<&Topic>)>::new();
        for topic in &self.topics {
            if topic.from == host {
                let line = lines.entry((&topic.source, &topic.name)).or_default();
                (line.0, line.2) = (true, line.2.or(Some(topic)));
            }
            if let Some(heard) = topic.heard(host) {
                lines.entry((heard, &topic.name)).or_default().1 = true;
            }
        }
        if !lines.is_empty() {
            out.push_str("topics:\n");
        }
        for ((name, bus), (sends, hears, topic)) in lines {
            let direction = match (sends, hears) {
                (true, true) => "both",
                (true, false) => "to_bus",
                _ => "to_ros",
            };
            let kind = topic.and_then(|t| t.kind.as_ref());
            let kind = kind.map_or(String::new(), |kind| format!(", type: {kind}"));
            let tf = topic.and_then(|t| t.tf.as_ref());
            let tf = tf.map_or(String::new(), |tf| format!(", tf: {{{}}}", tf.keys()));
            let _ = writeln!(
                out,
                "  - {{name: {name}{}, direction: {direction}{kind}{tf}}}",
                on_bus(name, bus)
            );
        }
        let mut first = true;
        for service in &self.services {
            let serves = service.server == host;
            let (name, direction) = match service.called(host) {
                _ if serves => (service.served.as_str(), "to_bus"),
                Some(called) => (called, "to_ros"),
                None => continue,
            };
            if std::mem::take(&mut first) {
                out.push_str("services:\n");
            }
            let kind = service.kind.as_ref();
            let kind = kind.map_or(String::new(), |kind| format!(", type: {kind}"));
            let bus = on_bus(name, &service.name);
            let _ = writeln!(out, "  - {{name: {name}{bus}, direction: {direction}{kind}}}");
        }
        out
    }
}

impl Tf {
    fn keys(&self) -> String {
        let frames = self
            .frames
            .iter()
            .map(|f| format!("'{f}'"))
            .collect::<Vec<_>>()
            .join(", ");
        let frames = (!self.frames.is_empty()).then(|| format!("frames: [{frames}]"));
        let rate = self.rate.map(|rate| format!("rate: {rate}Hz"));
        frames.into_iter().chain(rate).collect::<Vec<_>>().join(", ")
    }
}

/// Returns the setting of the name on the bus, if it differs from that in ROS.
fn on_bus(ros: &str, bus: &str) -> String {
    match ros == bus {
        true => String::new(),
        false => format!(", bus: {bus}"),
    }
}

/// Lists names in order, each once.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}
