//! Pound (unizar-pound-ros-pkg): its `config.h`, and the YAML that its nodes read at start-up.
//!
//! ```text
//! TOPIC(type, topic, source, dest, priority, period, time_to_live)
//! QOSTOPIC(type, topic, source, dest, priority, period, time_to_live, queue_length)
//! SSTOPIC(type, topic, source, dest, priority, period, time_to_live)
//! TFTOPIC(topic, source, dest, priority, period, time_to_live)
//! SERVICE(type, name, server_node, priority, time_to_live)
//! ```
//!
//! Nodes are numbers. Node 0 has the address `base_ip` (192.168.1.1), node 1 the next one. Times are in milliseconds.
//! Node N works in the namespace `/RN`:
//!
//! | what | at its source | where it is delivered, or offered |
//! |---|---|---|
//! | topic `a` | `/R0/a` | `/R1/rx/R0/a` |
//! | topic `/a` | `/a` | `/R1/rx/R0/a` |
//! | `SSTOPIC`, and `topics` of the YAML | `/R0/tx/a` | `/R1/rx/R0/a` |
//! | transforms `/tf` | `/tf` | `/tf` |
//! | service `/a` of node 0 | `/a` | `/R1/REM/R0/a` |
//!
//! These names stay, so nodes that subscribed to Pound receive messages from the bridge.

mod header;
mod network;

use super::plan::{Host, PORT, Plan, Service, Tf, Topic};
use super::{
    ImportError, Imported, MAX_HOSTS, MAX_ROUTES, Notes, Scalar, check_length, relative_name, resolved,
    type_name,
};
use header::{Call, calls};
use network::Network;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Highest priority of a link, which is also Pound's.
const MAX_PRIORITY: u32 = 127;
/// Default period of the YAML's topics, in ms.
const PERIOD: u32 = 1000;

/// Converts Pound's `config.h` and, if present, its YAML into files for each node. Each file comes with its name in
/// notes.
///
/// # Errors
/// [`ImportError`]: a file is too long or has no topic or service, or the YAML is malformed. Everything else that is
/// wrong becomes a note.
pub fn pound(config: (&str, &str), network: Option<(&str, &str)>) -> Result<Imported, ImportError> {
    let (file, text) = config;
    check_length(file, text)?;
    let mut notes = Notes::default();
    let mut reader = Reader {
        file,
        notes: &mut notes,
        topics: Vec::new(),
        services: Vec::new(),
    };
    let read = network.map(|(file, text)| Network::read(file, text, &mut *reader.notes));
    let read = read.transpose()?.unwrap_or_default();
    // As in Pound: the header comes after the YAML, and replaces its entries.
    if let Some((file, _)) = network {
        reader.file = file;
        for (line, topic) in &read.topics {
            reader.started(*line, topic);
        }
        reader.file = config.0;
    }
    for call in calls(text) {
        match call {
            Ok(call) => reader.take(&call),
            Err((line, what)) => reader.notes.add(file, line, what),
        }
        if reader.topics.len() + reader.services.len() > MAX_ROUTES {
            return Err(ImportError::TooMuch {
                file: file.to_owned(),
                what: "more topics and services".into(),
                limit: MAX_ROUTES,
            });
        }
    }
    reader.finish(&read)
}

/// Content of the macros. Hosts are node numbers here.
struct Reader<'a> {
    file: &'a str,
    notes: &'a mut Notes,
    topics: Vec<Listed>,
    services: Vec<Service>,
}

/// A topic as listed.
struct Listed {
    /// Name under which Pound's macros refer to it.
    key: String,
    file: String,
    line: usize,
    topic: Topic,
}

/// How a topic's names are derived.
#[derive(Clone, Copy, PartialEq)]
enum Names {
    Topic,
    /// At its source the name is below `tx`.
    Started,
    Transforms,
}

/// What a topic's macro or entry contains in addition to its name.
struct Arguments<'a> {
    kind: Option<&'a str>,
    source: &'a str,
    dest: &'a str,
    priority: &'a str,
    period: &'a str,
    alive: &'a str,
}

impl Reader<'_> {
    fn note(&mut self, line: usize, text: impl Into<String>) {
        self.notes.add(self.file, line, text);
    }

    fn take(&mut self, call: &Call) {
        let wanted = match call.name.as_str() {
            "TOPIC" | "SSTOPIC" => 7,
            "QOSTOPIC" => 8,
            "TFTOPIC" => 6,
            "SERVICE" => 5,
            "TF_ADD_WHITELIST" | "TF_ADD_BLACKLIST" | "TF_OUT_TOPIC" => 2,
            "TOPIC_STOP" => 1,
            other => {
                let known = "TOPIC, QOSTOPIC, SSTOPIC, TFTOPIC, SERVICE, TF_…, TOPIC_STOP";
                return self.note(call.line, format!("{other} is not one of {known}: ignored"));
            }
        };
        let arguments: Vec<&str> = call.arguments.iter().map(|a| a.trim()).collect();
        if arguments.len() != wanted {
            let (name, n) = (&call.name, arguments.len());
            return self.note(
                call.line,
                format!("{name} has {n} arguments instead of {wanted}: ignored"),
            );
        }
        let args = |kind, at: usize| Arguments {
            kind,
            source: arguments[at],
            dest: arguments[at + 1],
            priority: arguments[at + 2],
            period: arguments[at + 3],
            alive: arguments[at + 4],
        };
        let kind = arguments.first().copied();
        let done = match call.name.as_str() {
            "TOPIC" => self.topic(call.line, arguments[1], Names::Topic, &args(kind, 2)),
            "SSTOPIC" => self.topic(call.line, arguments[1], Names::Started, &args(kind, 2)),
            "QOSTOPIC" => {
                let text = format!(
                    "{}: queue_length {} is a playout buffer at the receiver, which waits for that many messages and delivers them at the period: \
                     ignored; messages are delivered as they arrive",
                    arguments[1], arguments[7]
                );
                self.note(call.line, text);
                self.topic(call.line, arguments[1], Names::Topic, &args(kind, 2))
            }
            "TFTOPIC" => self.topic(call.line, arguments[0], Names::Transforms, &args(None, 1)),
            "SERVICE" => self.service(call.line, &arguments),
            _ => self.change(call.line, &call.name, &arguments),
        };
        if let Err(what) = done {
            self.note(call.line, what);
        }
    }

    fn topic(&mut self, line: usize, key: &str, names: Names, args: &Arguments<'_>) -> Result<(), String> {
        let bad = || format!("'{key}' is not a topic name: ignored");
        let name = relative_name(key).ok_or_else(bad)?;
        let source = node(args.source)?;
        let at_source = match names {
            Names::Started => format!("/R{source}/tx/{name}"),
            _ => resolved(&format!("/R{source}"), key).ok_or_else(bad)?,
        };
        // Transforms of all nodes are one topic; others are distinguished by their source.
        let on_air = match names {
            Names::Transforms => at_source.clone(),
            _ => format!("/R{source}/{name}"),
        };
        let mut topic = Topic::new(on_air, source as usize, at_source.clone());
        for dest in args.dest.split([',', ' ', '/']).filter(|d| !d.is_empty()) {
            let dest = node(dest)?;
            let heard = match names {
                Names::Transforms => resolved(&format!("/R{dest}"), key).ok_or_else(bad)?,
                _ => format!("/R{dest}/rx/R{source}/{name}"),
            };
            if dest == source {
                let text = format!(
                    "{key}: node {source} is source and destination: {at_source} is not repeated as {heard}; subscribe to the first or run \
                     `rosrun topic_tools relay {at_source} {heard}`"
                );
                self.note(line, text);
            } else if topic.heard(dest as usize).is_none() {
                topic.to.push((dest as usize, heard));
            }
        }
        if topic.to.is_empty() {
            return Err(format!("{key} has no destination: ignored"));
        }
        let priority = number(args.priority, "priority")?;
        if priority > MAX_PRIORITY {
            let text = format!("{key}: priority {priority} exceeds {MAX_PRIORITY}: using {MAX_PRIORITY}");
            self.note(line, text);
        }
        let period = number(args.period, "period")?;
        let alive = number(args.alive, "time to live")?;
        topic.priority = Some(priority.min(MAX_PRIORITY) as u8);
        topic.deadline_ms = (alive > 0).then_some(alive);
        // Pound passes messages at about the period: one message in N if N times as many arrive.
        let rate = (period > 0).then(|| f64::from(1_000_000 / period) / 1000.0);
        let rate = rate.filter(|r| *r > 0.0);
        match names {
            Names::Transforms => {
                let frames = Vec::new();
                topic.tf = Some(Tf { rate, frames });
            }
            _ => topic.rate_limit = rate,
        }
        if let Some(kind) = args.kind {
            topic.kind = type_name(kind);
            if topic.kind.is_none() {
                self.note(
                    line,
                    format!("{key}: '{kind}' is not a message type: using that of its publishers"),
                );
            }
        }
        self.list(Listed {
            key: key.to_owned(),
            file: self.file.to_owned(),
            line,
            topic,
        });
        Ok(())
    }

    /// Adds a topic. Pound keeps one topic per name: the last.
    fn list(&mut self, new: Listed) {
        let source = new.topic.from;
        let twin = self
            .topics
            .iter()
            .position(|old| old.key == new.key || old.topic.name == new.topic.name);
        if let Some(at) = twin {
            let old = &self.topics[at];
            let (file, line, from) = (old.file.clone(), old.line, old.topic.from);
            if from == source {
                let text = format!(
                    "{}: is listed again in line {}, which replaces it, as in Pound: ignored",
                    old.key, new.line
                );
                self.topics.remove(at);
                self.notes.add(&file, line, text);
            } else {
                let text = format!(
                    "{}: also comes from node {from} (line {line}); Pound sends only the last one listed, here both cross",
                    new.key
                );
                self.notes.add(&new.file, new.line, text);
            }
        }
        self.topics.push(new);
    }

    /// Adds a topic that nodes read at start-up.
    fn started(&mut self, line: usize, entry: &BTreeMap<String, Scalar>) {
        let text = |key: &str, default: &str| entry.get(key).map_or(default.to_owned(), Scalar::to_string);
        let name = text("name", "");
        let period = PERIOD.to_string();
        let (source, dest) = (text("source", "0"), text("dest", ""));
        let (priority, deadline) = (text("priority", "0"), text("deadline", &period));
        let period = text("period", &period);
        let args = Arguments {
            kind: None,
            source: &source,
            dest: &dest,
            priority: &priority,
            period: &period,
            alive: &deadline,
        };
        let done = self.topic(line, &name, Names::Started, &args);
        if done.is_ok() {
            let compress = entry.get("use_compression").is_some_and(Scalar::is_true);
            if let Some(listed) = self.topics.last_mut() {
                listed.topic.compress = compress;
            }
            self.note(
                line,
                format!("{name}: Pound ignores `source`, each node that reads this sends its own; here only node {source} does"),
            );
        }
        let known = [
            "name",
            "source",
            "dest",
            "priority",
            "period",
            "deadline",
            "use_compression",
        ];
        for key in entry.keys().filter(|k| !known.contains(&k.as_str())) {
            self.note(line, format!("{name}: {key} is not understood: ignored"));
        }
        if let Err(what) = done {
            let stated: Vec<&str> = entry
                .keys()
                .map(String::as_str)
                .filter(|k| *k != "name")
                .collect();
            let with = match stated.is_empty() {
                true => String::new(),
                false => format!(" (with its {})", stated.join(", ")),
            };
            self.note(line, format!("{what}{with}"));
        }
    }

    fn service(&mut self, line: usize, arguments: &[&str]) -> Result<(), String> {
        let [kind, key, server, priority, alive] = *arguments else {
            return Ok(());
        };
        let bad = || format!("'{key}' is not a service name: ignored");
        let name = relative_name(key).ok_or_else(bad)?;
        let server = node(server)?;
        let on_air = format!("/R{server}/{name}");
        if self.services.iter().any(|s| s.name == on_air) {
            return Err(format!("{key} is listed twice: using the first entry"));
        }
        let served = resolved(&format!("/R{server}"), key).ok_or_else(bad)?;
        let kind_name = type_name(kind);
        if kind_name.is_none() {
            self.note(
                line,
                format!("'{kind}' is not a service type: using that of its server"),
            );
        }
        let priority = number(priority, "priority")?.min(MAX_PRIORITY);
        let alive = number(alive, "time to live")?;
        self.note(
            line,
            format!("{key}: a call waits as long as its caller, not {alive} ms per message: set `timeout` to change this"),
        );
        self.services.push(Service {
            name: on_air,
            kind: kind_name,
            server: server as usize,
            served,
            callers: Vec::new(),
            priority: Some(priority as u8),
            timeout_s: None,
        });
        Ok(())
    }

    /// Handles macros that change a listed topic.
    fn change(&mut self, line: usize, name: &str, arguments: &[&str]) -> Result<(), String> {
        let key = arguments[0];
        let value = arguments.get(1).copied().unwrap_or_default();
        let at = self.topics.iter().rposition(|l| l.key == key);
        let at = at.ok_or_else(|| format!("{name}: no topic '{key}' is listed above: ignored"))?;
        if name == "TOPIC_STOP" {
            self.topics.remove(at);
            return Err(format!("{key}: is stopped until it is started: ignored"));
        }
        let topic = &mut self.topics[at].topic;
        let Some(tf) = &mut topic.tf else {
            return Err(format!("{name}: '{key}' is not a TFTOPIC: ignored"));
        };
        match name {
            "TF_ADD_WHITELIST" => {
                let child = value.rsplit("->").next().unwrap_or_default();
                let good = |c: char| c.is_ascii_alphanumeric() || "_/-.".contains(c);
                if child.is_empty() || child.len() > 100 || !child.chars().all(good) {
                    return Err(format!(
                        "'{value}' does not name a frame as parent->child: ignored"
                    ));
                }
                tf.frames.push(child.to_owned());
                let text = format!("{value}: {child} crosses, whatever its parent");
                self.note(line, text);
            }
            "TF_OUT_TOPIC" => {
                let names: Option<Vec<_>> = (topic.to.iter())
                    .map(|(to, _)| Some((*to, resolved(&format!("/R{to}"), value)?)))
                    .collect();
                topic.to = names.ok_or_else(|| format!("'{value}' is not a topic name: ignored"))?;
            }
            _ => {
                return Err(format!(
                    "{value} is excluded in Pound, but crosses here: list the frames that should cross under `tf: {{frames: […]}}` in bridge.yaml"
                ));
            }
        }
        Ok(())
    }

    fn finish(self, network: &Network) -> Result<Imported, ImportError> {
        let (file, notes) = (self.file, self.notes);
        let mut topics: Vec<Topic> = self.topics.into_iter().map(|l| l.topic).collect();
        let mut services = self.services;
        if topics.is_empty() && services.is_empty() {
            return Err(ImportError::Empty {
                file: file.to_owned(),
                looked_for: "TOPIC(type, name, source, dest, priority, period, time_to_live) or SERVICE(…) that could be read",
            });
        }
        let of_topics = topics
            .iter()
            .flat_map(|t| t.to.iter().map(|(to, _)| *to).chain([t.from]));
        let mut nodes: Vec<usize> = of_topics.chain(services.iter().map(|s| s.server)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        if nodes.len() > MAX_HOSTS {
            return Err(ImportError::TooMuch {
                file: file.to_owned(),
                what: format!("{} nodes", nodes.len()),
                limit: MAX_HOSTS,
            });
        }
        // From here on, nodes are indices.
        let place = |node: usize| nodes.binary_search(&node).unwrap_or(0);
        for topic in &mut topics {
            topic.from = place(topic.from);
            topic.to.iter_mut().for_each(|(to, _)| *to = place(*to));
        }
        for service in &mut services {
            // Every other node may call it.
            let name = service.name.trim_start_matches('/').to_owned();
            let others = nodes.iter().filter(|n| **n != service.server);
            service.callers = others.map(|n| (place(*n), format!("/R{n}/REM/{name}"))).collect();
            service.server = place(service.server);
        }
        let hosts = nodes.iter().map(|node| Host {
            name: format!("node-{node}"),
            address: u32::try_from(*node)
                .ok()
                .and_then(|node| u32::from(network.base).checked_add(node))
                .map(|a| IpAddr::V4(a.into())),
            port: PORT,
        });
        let mut plan = Plan {
            source: "Pound's configuration".into(),
            hosts: hosts.collect(),
            rate: Some(network.rate),
            topics,
            services,
        };
        for note in plan.settle() {
            notes.add(file, 1, note);
        }
        Ok(Imported {
            hosts: plan.write(),
            notes: std::mem::take(notes).into_sorted(),
        })
    }
}

fn node(text: &str) -> Result<u32, String> {
    let node = number(text, "node")?;
    if node > 253 {
        return Err(format!("node {node} has no address: nodes are 0 to 253; ignored"));
    }
    Ok(node)
}

fn number(text: &str, what: &str) -> Result<u32, String> {
    let text = text.trim();
    text.parse()
        .map_err(|_| format!("the {what} '{text}' is not a number: ignored"))
}
