//! A link daemon on each host of a lab.

use super::{CarrierKind, Tools};
use crate::flows::play::Leg;
use crate::kit::error::RunError;
use crate::kit::links::{Daemons, link_words};
use crate::kit::site::Site;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

/// Port of the links.
pub(super) const PORT: u16 = 7400;

/// Settings of the links of one run.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) carrier: CarrierKind,
    /// The radio's rate as in the configuration: `6Mbit/s`, or `auto`.
    pub(crate) rate: &'static str,
    /// Number of hops of a datagram to a peer.
    pub(crate) hops: u32,
    /// Which hosts hear each other, if the links forward: hosts where no leg begins or ends are relays. Empty: hosts
    /// where a leg begins or ends reach each other, and the network between them is not the links' task.
    pub(crate) neighbours: Neighbours,
    /// Whether hosts yield to more important traffic of other hosts.
    pub(crate) yields: bool,
    /// For each leg of the run, in order.
    pub(crate) topics: Vec<Topic>,
    /// Services and actions that cross, too.
    pub(crate) called: &'static [Called],
}

/// A service or an action of one host that nodes of another call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Called {
    pub(crate) name: &'static str,
    pub(crate) is_action: bool,
    pub(crate) server: &'static str,
    pub(crate) caller: &'static str,
}

impl Called {
    /// As a link's rules name it.
    fn pattern(&self) -> String {
        let all = if self.is_action { "/*" } else { "" };
        format!("{}{all}", self.name)
    }

    /// The options of a bridge on a host.
    pub(super) fn bridged(&self, host: &str) -> Vec<String> {
        let way = match host {
            _ if host == self.server => "to_bus",
            _ if host == self.caller => "to_ros",
            _ => return Vec::new(),
        };
        let option = if self.is_action { "--action" } else { "--service" };
        vec![option.to_owned(), format!("{}={way}", self.name)]
    }
}

/// Pairs of hosts that hear each other.
pub(crate) type Neighbours = &'static [(&'static str, &'static str)];

impl Setting {
    fn are_neighbours(&self, a: &str, b: &str) -> bool {
        let pair = |p: &(&str, &str)| *p == (a, b) || *p == (b, a);
        self.neighbours.is_empty() || self.neighbours.iter().any(pair)
    }
}

/// How a topic crosses the radio.
#[derive(Clone, Debug)]
pub(crate) struct Topic {
    pub(crate) priority: u8,
    pub(crate) depth: u32,
    /// Further settings of the configuration, such as `deadline: 100ms`.
    pub(crate) more: &'static str,
}

/// The running daemons. Dropping it ends them.
pub(crate) struct Network(Daemons);

impl Network {
    /// Starts a daemon on each host where a leg begins or ends, or that forwards. It runs as a user's would: it
    /// requests SCHED_FIFO itself, for the thread that owns the radio.
    pub(crate) fn up(
        tools: &Tools<'_>,
        site: &Site<'_>,
        legs: &[Leg],
        setting: &Setting,
    ) -> Result<Network, RunError> {
        Network::over_lines(tools, site, legs, setting, &[])
    }

    /// Starts daemons of two hosts that carry all topics of ROS 2 nodes, as in the README.
    pub(crate) fn of_ros2(
        tools: &Tools<'_>,
        site: &Site<'_>,
        hosts: [&str; 2],
        rate: &str,
    ) -> Result<Network, RunError> {
        let mut daemons = Daemons::default();
        for (host, peer) in [(hosts[0], hosts[1]), (hosts[1], hosts[0])] {
            let (own, other) = (site.address(host)?, site.address(peer)?);
            let text = format!(
                "host: {host}\nkeys: '{}'\nradio: {{bind: '{own}:{PORT}', rate: {rate}}}\n\
                 peers: [{{name: {peer}, address: '{other}:{PORT}'}}]\nros2: true\n",
                tools.keys(host)?.display()
            );
            start(tools, site, &mut daemons, host, &text)?;
        }
        Ok(Network(daemons))
    }

    /// The same over serial lines: each host's baud rate and its end.
    pub(crate) fn over_lines(
        tools: &Tools<'_>,
        site: &Site<'_>,
        legs: &[Leg],
        setting: &Setting,
        lines: &[(&str, u32, String)],
    ) -> Result<Network, RunError> {
        let mut hosts: Vec<&str> = legs.iter().flat_map(|l| [&*l.from, &*l.to]).collect();
        hosts.extend(setting.neighbours.iter().flat_map(|(a, b)| [*a, *b]));
        hosts.sort_unstable();
        hosts.dedup();
        let addresses = hosts.iter().map(|h| Ok((*h, site.address(h)?)));
        let addresses = addresses.collect::<Result<BTreeMap<_, _>, RunError>>()?;
        let mut daemons = Daemons::default();
        for host in &hosts {
            let keys = match setting.carrier.has_keys() {
                true => Some(tools.keys(host)?),
                false => None,
            };
            let radio = match lines.iter().find(|l| l.0 == *host) {
                Some((_, baud, line)) => format!("carrier: serial, line: {line}, baud: {baud}"),
                None => {
                    let bind = addresses.get(host).map_or("0.0.0.0", String::as_str);
                    let carrier = match setting.carrier {
                        CarrierKind::Tls => ", carrier: tls",
                        CarrierKind::Udp => ", insecure_udp: true",
                        CarrierKind::Quic | CarrierKind::Serial => "",
                    };
                    let Setting { rate, hops, .. } = setting;
                    let yields = if setting.yields { "" } else { ", yields: false" };
                    format!("bind: '{bind}:{PORT}', rate: {rate}, hops: {hops}{yields}{carrier}")
                }
            };
            let text = configuration(host, &addresses, legs, setting, (keys.as_ref(), &radio));
            start(tools, site, &mut daemons, host, &text)?;
        }
        Ok(Network(daemons))
    }

    /// The daemons, to be ended with others.
    pub(crate) fn into_daemons(self) -> Daemons {
        self.0
    }

    /// Ends the daemons after a run. Returns the run's result, and the last state that each daemon printed.
    pub(crate) fn end<T>(
        self,
        played: Result<T, RunError>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(T, BTreeMap<String, Value>), RunError> {
        self.0.end(played, stopped)
    }
}

/// Starts the daemon of a host.
fn start(
    tools: &Tools<'_>,
    site: &Site<'_>,
    daemons: &mut Daemons,
    host: &str,
    configuration: &str,
) -> Result<(), RunError> {
    let file = tools.file(&format!("{host}-link.yaml"));
    fs::write(&file, configuration).map_err(|e| format!("{}: {e}", file.display()))?;
    let (program, file) = (site.executable().to_string_lossy(), file.to_string_lossy());
    let mut command = site.command(host, false, &link_words(&program, &file));
    tools.sandbox.prepare(&mut command);
    daemons.start(host, &mut command)
}

/// Returns a host's configuration (`docs/guide/link.md`).
fn configuration(
    host: &str,
    addresses: &BTreeMap<&str, String>,
    legs: &[Leg],
    setting: &Setting,
    (keys, radio): (Option<&PathBuf>, &str),
) -> String {
    let mut text = format!("host: {host}\n");
    // Writing to a string cannot fail.
    if let Some(keys) = keys {
        let _ = writeln!(text, "keys: '{}'", keys.display());
    }
    let is_end = |host: &str| legs.iter().any(|l| l.from == host || l.to == host);
    let topics = |which: &dyn Fn(&Leg) -> bool| {
        let legs = legs.iter().filter(|l| which(l));
        legs.map(|l| l.flow.topic.clone()).collect::<Vec<_>>()
    };
    if !is_end(host) {
        text.push_str("relay: true\n");
    }
    let _ = writeln!(text, "radio: {{{radio}}}\npeers:");
    for (peer, address) in addresses.iter().filter(|(p, _)| **p != host) {
        // A relay forwards its neighbours' topics, from any host.
        let with = |l: &Leg, other: &str| !is_end(host) || l.from == other || l.to == other;
        let mut publish = topics(&|l| l.from == *peer && with(l, host));
        let mut subscribe = topics(&|l| l.to == *peer && with(l, host));
        let serves = setting
            .called
            .iter()
            .filter(|c| c.server == host && c.caller == *peer);
        let calls = setting
            .called
            .iter()
            .filter(|c| c.caller == host && c.server == *peer);
        // A caller takes replies, and sends requests.
        publish.extend(calls.clone().map(Called::pattern));
        subscribe.extend(calls.map(Called::pattern));
        subscribe.extend(serves.clone().filter(|c| c.is_action).map(Called::pattern));
        let call: Vec<_> = serves.map(Called::pattern).collect();
        let (publish, subscribe, call) = (publish.join(", "), subscribe.join(", "), call.join(", "));
        let near = setting.are_neighbours(host, peer);
        let relays = near && !is_end(peer);
        let call = match &*call {
            "" => String::new(),
            services => format!(", call: [{services}]"),
        };
        if publish.is_empty() && subscribe.is_empty() && !relays || !near && !is_end(host) {
            continue;
        }
        let address = match setting.carrier {
            carrier if !near || !carrier.has_addresses() => String::new(),
            _ => format!("address: '{address}:{PORT}', "),
        };
        let relay = if relays { "relay: true, " } else { "" };
        let _ = writeln!(
            text,
            "  - {{name: {peer}, {address}{relay}allow: {{publish: [{publish}], subscribe: [{subscribe}]{call}}}}}"
        );
    }
    if !is_end(host) {
        return text;
    }
    text.push_str("topics:\n");
    for (leg, topic) in legs.iter().zip(&setting.topics) {
        let direction = match (leg.from == host, leg.to == host) {
            (true, _) => "out",
            (_, true) => "in",
            _ => continue,
        };
        let Topic {
            priority,
            depth,
            more,
        } = topic;
        let more = if more.is_empty() {
            String::new()
        } else {
            format!(", {more}")
        };
        let _ = writeln!(
            text,
            "  - {{name: {}, priority: {priority}, direction: {direction}, depth: {depth}{more}}}",
            leg.flow.topic
        );
    }
    let called = setting
        .called
        .iter()
        .filter(|c| c.server == host || c.caller == host);
    let called: Vec<_> = called.collect();
    for action in called.iter().filter(|c| c.is_action) {
        let direction = if action.server == host { "out" } else { "in" };
        let name = action.pattern();
        let _ = writeln!(
            text,
            "  - {{name: '{name}', priority: 60, direction: {direction}, depth: 8}}"
        );
    }
    if !called.is_empty() {
        text.push_str("services:\n");
    }
    for each in called {
        let role = if each.server == host { "serve" } else { "call" };
        let _ = writeln!(
            text,
            "  - {{name: '{}', role: {role}, priority: 110}}",
            each.pattern()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::Sent;

    #[test]
    fn services_may_be_called_by_their_caller_only() {
        const CALLED: &[Called] = &[
            Called {
                name: "/switch",
                is_action: false,
                server: "one",
                caller: "two",
            },
            Called {
                name: "/count",
                is_action: true,
                server: "one",
                caller: "two",
            },
        ];
        let flow = Sent::lasting("/a", 64, 10_000, 1);
        let legs = [("one", "two"), ("three", "two")].map(|(from, to)| Leg {
            flow: flow.clone(),
            from: from.into(),
            to: to.into(),
        });
        let topic = Topic {
            priority: 7,
            depth: 2,
            more: "",
        };
        let setting = Setting {
            carrier: CarrierKind::Udp,
            rate: "6Mbit/s",
            hops: 1,
            neighbours: &[],
            yields: true,
            called: CALLED,
            topics: vec![topic; 2],
        };
        let hosts: BTreeMap<_, _> = ["one", "two", "three"]
            .map(|h| (h, "10.77.0.9".to_owned()))
            .into();
        let text = |host| configuration(host, &hosts, &legs, &setting, (None, "bind: x"));
        let server = text("one");
        assert!(
            server.contains("allow: {publish: [], subscribe: [/a, /count/*], call: [/switch, /count/*]}"),
            "{server}"
        );
        assert!(
            server.contains("direction: out, depth: 8") && server.contains("{name: '/switch', role: serve,"),
            "{server}"
        );
        let caller = text("two");
        assert!(
            caller.contains("allow: {publish: [/a, /switch, /count/*], subscribe: [/switch, /count/*]}"),
            "{caller}"
        );
        assert!(caller.contains("{name: '/count/*', role: call,"), "{caller}");
        assert!(!text("three").contains("services:"));
        assert_eq!(CALLED[1].bridged("two"), ["--action", "/count=to_ros"]);
    }

    #[test]
    fn each_host_lists_its_own_topics_and_peers() {
        let leg = |topic: &str, from: &str, to: &str| Leg {
            flow: Sent::lasting(topic, 64, 10_000, 1),
            from: from.into(),
            to: to.into(),
        };
        let legs = [
            leg("/a", "one", "two"),
            leg("/b", "two", "one"),
            leg("/c", "three", "two"),
        ];
        let topic = Topic {
            priority: 7,
            depth: 2,
            more: "deadline: 100ms",
        };
        let setting = Setting {
            carrier: CarrierKind::Udp,
            rate: "6Mbit/s",
            hops: 2,
            neighbours: &[],
            yields: true,
            topics: vec![topic; 3],
            called: &[],
        };
        let hosts = ["one", "two", "three"].map(|h| (h, format!("10.77.0.{}", h.len())));
        let radio = "bind: '10.77.0.3:7400', rate: 6Mbit/s, hops: 2, insecure_udp: true";
        let text = configuration("one", &hosts.into(), &legs, &setting, (None, radio));
        assert_eq!(
            text,
            "host: one\n\
             radio: {bind: '10.77.0.3:7400', rate: 6Mbit/s, hops: 2, insecure_udp: true}\n\
             peers:\n  \
             - {name: two, address: '10.77.0.3:7400', allow: {publish: [/b], subscribe: [/a]}}\n\
             topics:\n  \
             - {name: /a, priority: 7, direction: out, depth: 2, deadline: 100ms}\n  \
             - {name: /b, priority: 7, direction: in, depth: 2, deadline: 100ms}\n"
        );
    }

    #[test]
    fn hosts_between_relay_for_those_at_the_ends() {
        let legs = [Leg {
            flow: Sent::lasting("/a", 64, 10_000, 1),
            from: "one".into(),
            to: "four".into(),
        }];
        let topic = Topic {
            priority: 7,
            depth: 2,
            more: "",
        };
        let setting = Setting {
            carrier: CarrierKind::Udp,
            rate: "6Mbit/s",
            hops: 1,
            yields: true,
            neighbours: &[("one", "two"), ("two", "three"), ("three", "four")],
            topics: vec![topic],
            called: &[],
        };
        let hosts = ["one", "two", "three", "four"].map(|h| (h, format!("10.77.0.{}", h.len())));
        let text = |host| configuration(host, &hosts.clone().into(), &legs, &setting, (None, "bind: x"));
        assert_eq!(
            text("one"),
            "host: one\nradio: {bind: x}\npeers:\n  \
             - {name: four, allow: {publish: [], subscribe: [/a]}}\n  \
             - {name: two, address: '10.77.0.3:7400', relay: true, allow: {publish: [], subscribe: []}}\n\
             topics:\n  - {name: /a, priority: 7, direction: out, depth: 2}\n"
        );
        assert_eq!(
            text("two"),
            "host: two\nrelay: true\nradio: {bind: x}\npeers:\n  \
             - {name: one, address: '10.77.0.3:7400', allow: {publish: [/a], subscribe: []}}\n  \
             - {name: three, address: '10.77.0.5:7400', relay: true, allow: {publish: [], subscribe: []}}\n"
        );
    }
}
