//! nimbro_network: launch files with senders and receivers, or the YAML of a sender's topics.
//!
//! A topic is named as the sender lists it. At both ends `<remap>` may give it another name in ROS, and a receiver's
//! `topic_prefix` precedes it. A sender and a receiver belong together if their ports match.

mod document;
mod settings;

use super::launch::{self, Node};
use super::plan::{Host, PORT, Plan, Service, Topic};
use super::{
    ImportError, Imported, Load, MAX_HOSTS, MAX_ROUTES, Notes, global_name, relative_name, type_name,
};
use document::{Document, Entry};
use settings::{Part, Port, Remaps, Settings};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Packages whose nodes are read.
const PACKAGES: [&str; 8] = [
    "nimbro_topic_transport",
    "nimbro_service_transport",
    "sb_topic_transport",
    "sb_service_transport",
    "nimbro_tf_throttle",
    "tf_throttle",
    "nimbro_log_transport",
    "nimbro_cam_transport",
];

/// Files of nimbro_network.
#[derive(Clone, Copy, Debug)]
pub struct Nimbro<'a> {
    /// The sender's file, `.launch` or `.yaml`: its name in notes, and its text.
    pub there: (&'a str, &'a str),
    /// The file of the sender on the other host, if topics return.
    pub back: Option<(&'a str, &'a str)>,
}

/// Converts a sender's files into files for the host that it runs on, `robot`, and for those that it sends to, `base`.
/// `load` returns the name and text of a file that another one names, and may fail.
///
/// # Errors
/// [`ImportError`]: a file is too long, not XML or not YAML, a named parameter file cannot be read, or there is no
/// topic or service. Everything else that is wrong becomes a note.
pub fn nimbro(files: Nimbro<'_>, load: &mut Load<'_>) -> Result<Imported, ImportError> {
    let mut notes = Notes::default();
    let mut found = Found::default();
    found.file(files.there, false, &mut notes, load)?;
    if let Some(back) = files.back {
        found.file(back, true, &mut notes, load)?;
    }
    let mut team = Team {
        notes: &mut notes,
        hosts: vec![Host {
            name: "robot".into(),
            address: None,
            port: PORT,
        }],
        topics: Vec::new(),
        services: Vec::new(),
        remaps: Remaps::default(),
    };
    let ways = team.ways(&found.nodes)?;
    for (sender, way) in found.nodes.iter().zip(ways) {
        if let Some(way) = way {
            team.sends(sender, way, &found.nodes);
        }
    }
    for (is_back, document) in &found.documents {
        team.lists(*is_back, document, &found.nodes);
    }
    team.unused(&found);
    let Team {
        hosts,
        topics,
        services,
        ..
    } = team;
    if topics.len() + services.len() > MAX_ROUTES {
        return Err(ImportError::TooMuch {
            file: files.there.0.to_owned(),
            what: "more topics and services".into(),
            limit: MAX_ROUTES,
        });
    }
    if topics.is_empty() && services.is_empty() {
        return Err(ImportError::Empty {
            file: files.there.0.to_owned(),
            looked_for: "sender of nimbro_topic_transport with `topics`, or client of nimbro_service_transport with `services`, in it",
        });
    }
    if hosts.iter().any(|h| h.address.is_none()) {
        notes.add(
            files.there.0,
            1,
            "192.0.2.1 is a placeholder for addresses that are not given there: replace it where it says `# write its address`",
        );
    }
    let mut plan = Plan {
        source: "nimbro_network's files".into(),
        hosts,
        rate: None,
        topics,
        services,
    };
    for note in plan.settle() {
        notes.add(files.there.0, 1, note);
    }
    Ok(Imported {
        hosts: plan.write(),
        notes: notes.into_sorted(),
    })
}

/// Content of the files.
#[derive(Default)]
struct Found {
    nodes: Vec<Settings>,
    /// Separate lists of topics, and whether they belong to the way back.
    documents: Vec<(bool, Document)>,
    remaps: Vec<launch::Remap>,
}

impl Found {
    fn file(
        &mut self,
        (file, text): (&str, &str),
        is_back: bool,
        notes: &mut Notes,
        load: &mut Load<'_>,
    ) -> Result<(), ImportError> {
        if file.ends_with(".yaml") || file.ends_with(".yml") {
            let document = Document::read(file, 1, "", text, notes)?;
            for (line, key, _) in &document.values {
                let why = not_carried(key).unwrap_or("is not understood: ignored");
                if !matches!(key.as_str(), "destination_addr" | "address" | "server") {
                    notes.add(file, *line, format!("{key}: {why}"));
                }
            }
            self.documents.push((is_back, document));
            return Ok(());
        }
        let (nodes, remaps) = launch::nodes(file, text, &PACKAGES, notes, load)?;
        self.remaps.extend(remaps);
        for node in nodes {
            match Part::of(&node) {
                Some(part) => self.nodes.push(Settings::of(node, part, is_back, notes)?),
                None => notes.add(&node.file, node.line, instead(&node)),
            }
        }
        Ok(())
    }
}

/// Describes what replaces a node.
fn instead(node: &Node) -> String {
    match (node.package.as_str(), node.kind.as_str()) {
        ("nimbro_tf_throttle" | "tf_throttle", kind) => format!(
            "{kind}, with its parameters: transforms: list /tf with `tf: {{frames: […], rate: 10Hz}}` in bridge.yaml, and in link.yaml"
        ),
        ("nimbro_log_transport", kind) => {
            format!(
                "{kind}, with its parameters: the log: list /rosout with `level: warn` in bridge.yaml, and in link.yaml"
            )
        }
        ("nimbro_cam_transport", kind) => format!(
            "{kind}, with its parameters: video is not encoded; list the topic with `rate_limit` and `compress`, or a compressed one"
        ),
        (_, kind) => format!("the node {kind}, with its parameters, is not understood: ignored"),
    }
}

/// The topics and services that cross. Host 0 is the sender.
struct Team<'a> {
    notes: &'a mut Notes,
    hosts: Vec<Host>,
    topics: Vec<Topic>,
    services: Vec<Service>,
    remaps: Remaps,
}

/// Source and destination, as indices of hosts.
#[derive(Clone, Copy)]
struct Way {
    from: usize,
    to: usize,
}

impl Team<'_> {
    /// Returns where each node sends from and to; `None` for nodes that do not send.
    fn ways(&mut self, nodes: &[Settings]) -> Result<Vec<Option<Way>>, ImportError> {
        let mut ways: Vec<Option<Way>> = nodes.iter().map(|_| None).collect();
        let sends = |s: &Settings| matches!(s.part, Part::TopicSender | Part::Client);
        for (way, s) in ways.iter_mut().zip(nodes) {
            if sends(s) && !s.is_back {
                let to = self.host(&s.destination);
                *way = Some(Way { from: 0, to });
                self.check_address(s, to);
            }
        }
        let base = self.base(nodes, &ways);
        self.find_robot(nodes);
        for (way, s) in ways.iter_mut().zip(nodes) {
            if sends(s) && s.is_back {
                let address: Option<IpAddr> = s.destination.trim().parse().ok();
                let is_robot = address.is_none() || address == self.hosts[0].address;
                let to = match is_robot {
                    true => 0,
                    false => self.host(&s.destination),
                };
                self.check_address(s, to);
                // A node that sends to its own host is no route.
                *way = (to != base).then_some(Way { from: base, to });
            }
        }
        if self.hosts.len() > MAX_HOSTS {
            return Err(ImportError::TooMuch {
                file: nodes.first().map_or(String::new(), |s| s.node.file.clone()),
                what: "more hosts".into(),
                limit: MAX_HOSTS,
            });
        }
        Ok(ways)
    }

    fn check_address(&mut self, s: &Settings, to: usize) {
        if s.destination.trim().parse::<IpAddr>().is_err() {
            let text = match self.hosts[to].address {
                Some(known) => format!("'{}' is not an address: using {known}", s.destination),
                None => format!(
                    "'{}' is not an address: peers of a link have addresses, such as 192.168.1.2",
                    s.destination
                ),
            };
            self.notes.add(&s.node.file, s.node.line, text);
        }
    }

    /// Finds the destination host on which the files of the way back run: the one whose receivers match the senders.
    fn base(&mut self, nodes: &[Settings], ways: &[Option<Way>]) -> usize {
        let Some(first) = nodes.iter().find(|s| s.is_back) else {
            return 1;
        };
        let taken = nodes.iter().zip(ways).filter_map(|(sender, way)| {
            let way = (*way)?;
            nodes.iter().any(|r| r.takes(sender)).then_some(way.to)
        });
        let taken: BTreeSet<usize> = taken.collect();
        if self.hosts.len() < 2 {
            return self.host("");
        }
        let base = taken.first().copied().unwrap_or(1);
        if self.hosts.len() > 2 && taken.len() != 1 {
            let (name, file, line) = (
                self.hosts[base].name.clone(),
                first.node.file.clone(),
                first.node.line,
            );
            let text = format!("it is not clear which destination host runs this: using the first, {name}");
            self.notes.add(&file, line, text);
        }
        base
    }

    /// Finds the robot's address from the destinations of the way back.
    fn find_robot(&mut self, nodes: &[Settings]) {
        let back = |s: &&Settings| s.is_back && matches!(s.part, Part::TopicSender | Part::Client);
        let parsed = nodes.iter().filter(back).filter_map(|s| {
            let address: IpAddr = s.destination.trim().parse().ok()?;
            Some((address, s))
        });
        let all: Vec<(IpAddr, &Settings)> = parsed.collect();
        let is_base = |a: IpAddr| self.hosts.iter().any(|h| h.address == Some(a));
        let candidates: Vec<_> = all.iter().filter(|(a, _)| !is_base(*a)).collect();
        // The robot's receivers have the ports that the way back sends to.
        let fitting = candidates.iter().find(|(_, s)| nodes.iter().any(|r| r.takes(s)));
        let Some((address, _)) = fitting.or(candidates.first()) else {
            return;
        };
        let address = *address;
        self.hosts[0].address = Some(address);
        for (other, s) in candidates.iter().filter(|(a, _)| *a != address) {
            let text = format!(
                "topics come back to {address} and to {other}: {address} is assumed to be the robot, {other} another host; change this if it \
                 is wrong"
            );
            self.notes.add(&s.node.file, s.node.line, text);
        }
    }

    /// Returns the host at an address, and adds it if it is new.
    fn host(&mut self, address: &str) -> usize {
        let address: Option<IpAddr> = address.trim().parse().ok();
        let known = self.hosts.iter().skip(1).position(|h| h.address == address);
        if let Some(known) = known {
            return known + 1;
        }
        let name = match self.hosts.len() {
            1 => "base".into(),
            n => format!("base-{n}"),
        };
        self.hosts.push(Host {
            name,
            address,
            port: PORT,
        });
        self.hosts.len() - 1
    }

    /// Adds the topics of a sender, or the services of a client.
    fn sends(&mut self, sender: &Settings, way: Way, nodes: &[Settings]) {
        let taker = nodes.iter().find(|r| r.takes(sender));
        let others = nodes.iter().any(|r| r.is_back != sender.is_back);
        if taker.is_none() && others {
            let Port { is_tcp, number } = sender.port;
            let over = if is_tcp { "TCP" } else { "UDP" };
            let text = format!(
                "nothing on the other host receives at its port {number} over {over}: using the names of the sender"
            );
            self.notes.add(&sender.node.file, sender.node.line, text);
        }
        for entry in &sender.topics {
            self.topic(entry, way, Some(sender), taker);
        }
        for entry in &sender.services {
            self.service(entry, way, Some(sender), taker);
        }
    }

    /// Adds a separate list of topics.
    fn lists(&mut self, is_back: bool, document: &Document, nodes: &[Settings]) {
        let address_text = document
            .values
            .iter()
            .find(|(_, key, _)| matches!(key.as_str(), "destination_addr" | "address" | "server"));
        let address_text = address_text.map_or("", |(_, _, value)| value.as_str());
        let base = match self.hosts.get_mut(1) {
            None => self.host(if is_back { "" } else { address_text }),
            Some(_) if is_back => 1,
            // The files of the way back have created it without an address.
            Some(base) if base.address.is_none() => {
                base.address = address_text.trim().parse().ok();
                1
            }
            Some(_) => self.host(address_text),
        };
        if let (true, Ok(address)) = (is_back, address_text.trim().parse()) {
            self.hosts[0].address = Some(address);
        }
        let (from, to) = if is_back { (base, 0) } else { (0, base) };
        // The receiver, if there is exactly one.
        let mut takers = nodes
            .iter()
            .filter(|r| r.is_back != is_back && r.part == Part::TopicReceiver);
        let taker = takers.next().filter(|_| takers.next().is_none());
        for entry in &document.topics {
            self.topic(entry, Way { from, to }, None, taker);
        }
        for entry in &document.services {
            self.service(entry, Way { from, to }, None, None);
        }
    }

    /// Returns a name as written, and without a leading slash.
    fn name(&mut self, entry: &Entry, known: &[&str]) -> Option<(String, String)> {
        let written = entry.text("name").unwrap_or_default();
        let name = relative_name(&written);
        if name.is_none() {
            self.notes.add(
                &entry.file,
                entry.line,
                format!("'{written}' is not a name: ignored"),
            );
        }
        for key in entry.fields.keys().filter(|k| !known.contains(&k.as_str())) {
            let text = format!("{written}: {key} is not understood: ignored");
            self.notes.add(&entry.file, entry.line_of(key), text);
        }
        Some((written, name?))
    }

    fn topic(&mut self, entry: &Entry, way: Way, sender: Option<&Settings>, taker: Option<&Settings>) {
        let known = ["name", "type", "rate", "compress", "latch", "resend", "enable"];
        let Some((written, name)) = self.name(entry, &known) else {
            return;
        };
        let on_air = format!("/{name}");
        let is_tcp = sender.is_some_and(|s| s.port.is_tcp);
        let is_private = sender.is_some() && !written.starts_with('/');
        let source = sender.and_then(|s| s.private(&written, &mut self.remaps));
        let heard = taker.and_then(|t| t.public(&written, &mut self.remaps));
        let (source, heard) = (source.unwrap_or(on_air.clone()), heard.unwrap_or(on_air.clone()));
        let mut note = |key: &str, text: String| {
            self.notes
                .add(&entry.file, entry.line_of(key), format!("{written}: {text}"))
        };
        if is_private {
            note(
                "name",
                format!("is resolved to {source}, in the node's own namespace, as in nimbro"),
            );
        }
        if entry.fields.contains_key("enable") && !entry.is_true("enable") {
            return note("enable", "is not sent until it is enabled: ignored".into());
        }
        if self.topics.len() > MAX_ROUTES {
            return;
        }
        let taken = self
            .topics
            .iter()
            .find(|t| t.name != on_air && t.heard(way.to) == Some(&heard));
        if let Some(taken) = taken {
            return note(
                "name",
                format!("{} already arrives there as {heard}: ignored", taken.name),
            );
        }
        let twin = self
            .topics
            .iter_mut()
            .find(|t| t.name == on_air && t.from == way.from);
        if let Some(twin) = twin {
            let text = match twin.heard(way.to) {
                Some(_) => "is listed twice: using the first entry",
                None => "goes to several hosts: using the settings of the first for all",
            };
            note("name", text.into());
            if twin.heard(way.to).is_none() {
                twin.to.push((way.to, heard));
            }
            return;
        }
        let mut topic = Topic::new(on_air, way.from, source);
        topic.to.push((way.to, heard));
        topic.reliability = match sender {
            Some(s) if s.port.is_tcp => Some("reliable"),
            Some(s) if s.is_redundant => Some("redundant"),
            _ => None,
        };
        topic.compress = entry.is_true("compress");
        topic.latched = entry.is_true("latch");
        if let Some(kind) = entry.text("type") {
            topic.kind = type_name(&kind);
            if topic.kind.is_none() {
                note(
                    "type",
                    format!("'{kind}' is not a message type: using that of its publishers"),
                );
            }
        }
        match entry.text("rate").map(|rate| (rate.parse().ok(), rate)) {
            None => {}
            Some((Some(0.0), _)) => note("rate", "0 means no limit, as in nimbro".into()),
            Some((Some(_), _)) if is_tcp => note("rate", "only applies to UDP: ignored, as in nimbro".into()),
            Some((Some(rate), _)) if (0.001..=1e6).contains(&rate) => topic.rate_limit = Some(rate),
            Some((_, rate)) => note("rate", format!("rate {rate} is not a valid limit: ignored")),
        }
        if entry.is_true("resend") && is_tcp {
            note(
                "resend",
                "resend only applies to UDP: ignored, as in nimbro".into(),
            );
        } else if entry.is_true("resend") {
            topic.latched = true;
            note(
                "resend",
                "resend: there is no periodic resending; a host that was away gets the last message (`latched`), and `reliability: redundant` repairs loss".into(),
            );
        }
        self.topics.push(topic);
    }

    fn service(&mut self, entry: &Entry, way: Way, client: Option<&Settings>, server: Option<&Settings>) {
        let Some((written, name)) = self.name(entry, &["name", "type"]) else {
            return;
        };
        let on_air = format!("/{name}");
        let called = client.and_then(|s| s.private(&written, &mut self.remaps));
        let served = server.and_then(|s| s.public(&written, &mut self.remaps));
        let (called, served) = (called.unwrap_or(on_air.clone()), served.unwrap_or(on_air.clone()));
        let mut note = |text: String| {
            self.notes
                .add(&entry.file, entry.line, format!("{written}: {text}"))
        };
        if client.is_some() && !written.starts_with('/') {
            note(format!(
                "is offered as {called}, in the node's own namespace, as in nimbro"
            ));
        }
        if let Some(twin) = self.services.iter_mut().find(|s| s.name == on_air) {
            if twin.server == way.to && twin.called(way.from).is_none() && twin.server != way.from {
                twin.callers.push((way.from, called));
            } else {
                note("is listed twice: using the first entry".into());
            }
            return;
        }
        if self.services.len() > MAX_ROUTES {
            return;
        }
        let kind = entry.text("type").as_deref().and_then(type_name);
        if kind.is_none() {
            note("has no valid type: using that of its server".into());
        }
        self.services.push(Service {
            name: on_air,
            kind,
            // The client runs on the host that calls.
            server: way.to,
            served,
            callers: vec![(way.from, called)],
            priority: None,
            timeout_s: client.and_then(|c| c.timeout_s),
        });
    }

    /// Notes remaps that affect no crossing name.
    fn unused(&mut self, found: &Found) {
        for remap in &found.remaps {
            if !self.remaps.0.contains(&(remap.file.clone(), remap.line)) {
                let both = [&remap.from, &remap.to].map(|n| global_name(n).unwrap_or_else(|| n.clone()));
                let text = format!(
                    "the remap of {} to {} affects no name that is known to cross: ignored",
                    both[0], both[1]
                );
                self.notes.add(&remap.file, remap.line, text);
            }
        }
    }
}

/// Parameters without a counterpart, and what replaces them.
fn not_carried(name: &str) -> Option<&'static str> {
    Some(match name {
        "destination_port" | "source_port" | "port" => {
            "one link carries everything over one port, 7400: see `radio.bind`"
        }
        "relay_mode" | "relay_target_bitrate" | "relay_control_rate" => {
            "write `relay: true` and `radio.rate` on the host in between"
        }
        "ignored_publishers" | "ignore_publishers" => "messages from a link never go back over it",
        "label" => "peers are shown by their names",
        "duplicate_first_packet" => "write `reliability: redundant`",
        "drop_repeated_msgs" => "no message is delivered twice",
        "warn_drop_incomplete" => "`ropewalk top` counts losses by reason",
        "topic_prefix" => "belongs to the receiver: write it there",
        "fec" => "only applies to UDP: the counterpart of TCP on a link is reliable",
        _ => return None,
    })
}
