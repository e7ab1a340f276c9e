//! Pound (unizar-pound-ros-pkg): its `config.h`, and the YAML of its network.
//!
//! ```text
//! TOPIC(type, topic, source, dest, priority, period, time_to_live)
//! QOSTOPIC(type, topic, source, dest, priority, period, time_to_live, queue_length)
//! TFTOPIC(topic, source, dest, priority, period, time_to_live)
//! SERVICE(type, name, server_node, priority, time_to_live)
//! ```
//!
//! Nodes are numbers; node 0 has the address `base_ip` (192.168.1.1), node 1 the next one. Times are in milliseconds.

use super::plan::{Host, PORT, Plan, Service, Topic};
use super::{ImportError, Imported, MAX_HOSTS, MAX_ROUTES, Notes, check_length, global_name, type_name};
use serde_saphyr::Spanned;
use std::net::{IpAddr, Ipv4Addr};

/// Link priorities end where Pound's do.
const MAX_PRIORITY: u32 = 127;
/// The bit rate that Pound assumes.
const RATE: f64 = 6.0;

/// Turns Pound's `config.h`, and if there is one its YAML, each with the name that notes give it, into files for each node.
///
/// # Errors
/// [`ImportError`]: too long, or without a topic or service; or YAML that is none. What else is wrong is a note.
pub fn pound(config: (&str, &str), network: Option<(&str, &str)>) -> Result<Imported, ImportError> {
    let (file, text) = config;
    check_length(file, text)?;
    let mut notes = Notes::default();
    let mut reader = Reader {
        file,
        notes: &mut notes,
        nodes: Vec::new(),
        topics: Vec::new(),
        services: Vec::new(),
    };
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
    let Reader {
        mut nodes,
        mut topics,
        mut services,
        ..
    } = reader;
    if topics.is_empty() && services.is_empty() {
        return Err(ImportError::Empty {
            file: file.to_owned(),
            looked_for: "TOPIC(type, name, source, dest, priority, period, time_to_live) or SERVICE(…) that could be read",
        });
    }
    let network = match network {
        Some((file, text)) => Network::read(file, text, &mut notes)?,
        None => Network::default(),
    };
    nodes.sort_unstable();
    nodes.dedup();
    if nodes.len() > MAX_HOSTS {
        return Err(ImportError::TooMuch {
            file: file.to_owned(),
            what: format!("{} nodes", nodes.len()),
            limit: MAX_HOSTS,
        });
    }
    // From here on nodes are places.
    let place = |node: &u32| nodes.binary_search(node).unwrap_or(0);
    for topic in &mut topics {
        topic.from = place(&(topic.from as u32));
        topic.to.iter_mut().for_each(|to| *to = place(&(*to as u32)));
    }
    for service in &mut services {
        service.server = place(&(service.server as u32));
        // Every other node may call it.
        service.callers = (0..nodes.len()).filter(|n| *n != service.server).collect();
    }
    let hosts = nodes.iter().map(|node| Host {
        name: format!("node-{node}"),
        address: u32::from(network.base)
            .checked_add(*node)
            .map(|a| IpAddr::V4(a.into())),
        port: PORT,
    });
    let plan = Plan {
        source: "Pound's config.h".into(),
        hosts: hosts.collect(),
        rate: Some(network.rate),
        topics,
        services,
    };
    Ok(Imported {
        hosts: plan.write(),
        notes: notes.into_sorted(),
    })
}

/// What the macros say. Hosts are nodes' numbers here.
struct Reader<'a> {
    file: &'a str,
    notes: &'a mut Notes,
    nodes: Vec<u32>,
    topics: Vec<Topic>,
    services: Vec<Service>,
}

impl Reader<'_> {
    fn take(&mut self, call: &Call) {
        let done = match (call.name.as_str(), call.arguments.len()) {
            ("TOPIC", 7) => self.topic(call, 1, None),
            ("QOSTOPIC", 8) => self.topic(call, 1, Some(7)),
            ("TFTOPIC", 6) => self.topic(call, 0, None),
            ("SERVICE", 5) => self.service(call),
            ("TOPIC" | "QOSTOPIC" | "TFTOPIC" | "SERVICE", n) => {
                let wanted = match call.name.as_str() {
                    "TOPIC" => 7,
                    "QOSTOPIC" => 8,
                    "TFTOPIC" => 6,
                    _ => 5,
                };
                Err(format!(
                    "{} has {n} arguments where {wanted} belong: left out",
                    call.name
                ))
            }
            (other, _) => Err(format!(
                "{other} is none of TOPIC, QOSTOPIC, TFTOPIC, SERVICE: left out"
            )),
        };
        if let Err(what) = done {
            self.notes.add(self.file, call.line, what);
        }
    }

    /// The name is argument `at`; what follows is in the same order in all three macros.
    fn topic(&mut self, call: &Call, at: usize, queue: Option<usize>) -> Result<(), String> {
        let argument = |i: usize| call.arguments[i].as_str();
        let is_tf = at == 0;
        let name = global_name(argument(at))
            .ok_or_else(|| format!("'{}' is no topic's name: left out", argument(at)))?;
        let source = node(argument(at + 1))?;
        let mut to = Vec::new();
        for dest in argument(at + 2).split(',') {
            let dest = node(dest)?;
            if dest == source {
                self.notes.add(
                    self.file,
                    call.line,
                    format!("{name}: node {source} is source and destination: it hears itself through its own roscore"),
                );
            } else if !to.contains(&(dest as usize)) {
                to.push(dest as usize);
            }
        }
        if to.is_empty() {
            return Err(format!("{name} has no destination: left out"));
        }
        let priority = number(argument(at + 3), "priority")?;
        if priority > MAX_PRIORITY {
            self.notes.add(
                self.file,
                call.line,
                format!("{name}: priority {priority} is beyond {MAX_PRIORITY}, which is taken"),
            );
        }
        let period = number(argument(at + 4), "period")?;
        let alive = number(argument(at + 5), "time to live")?;
        if let Some(twin) = self
            .topics
            .iter()
            .find(|t| t.name == name && t.to.iter().any(|n| to.contains(n)))
        {
            self.notes.add(
                self.file,
                call.line,
                format!(
                    "{name} comes to a node from node {} as well: give peers a `namespace` there if these are not to merge",
                    twin.from
                ),
            );
        }
        let mut topic = Topic::new(name, source as usize, to);
        topic.priority = Some(priority.min(MAX_PRIORITY) as u8);
        topic.deadline_ms = (alive > 0).then_some(alive);
        if let Some(queue) = queue {
            topic.depth = Some(number(argument(queue), "queue length")?.clamp(1, 1024) as u16);
        }
        if is_tf {
            topic.tf_rate = (period > 0)
                .then(|| f64::from(1_000_000 / period) / 1000.0)
                .filter(|r| *r > 0.0);
        }
        self.nodes.push(source);
        self.nodes.extend(topic.to.iter().map(|n| *n as u32));
        self.topics.push(topic);
        Ok(())
    }

    fn service(&mut self, call: &Call) -> Result<(), String> {
        let name = &call.arguments[1];
        let name = global_name(name).ok_or_else(|| format!("'{name}' is no service's name: left out"))?;
        if self.services.iter().any(|s| s.name == name) {
            return Err(format!("{name} is listed twice: the first counts"));
        }
        let kind = type_name(&call.arguments[0]);
        if kind.is_none() {
            self.notes.add(
                self.file,
                call.line,
                format!(
                    "'{}' is no service's type: its server's counts",
                    call.arguments[0]
                ),
            );
        }
        let server = node(&call.arguments[2])?;
        let priority = number(&call.arguments[3], "priority")?.min(MAX_PRIORITY);
        let alive = number(&call.arguments[4], "time to live")?;
        self.notes.add(
            self.file,
            call.line,
            format!("{name}: a call waits as long as its caller, not {alive} ms for each message: set `timeout` if it shall not"),
        );
        self.nodes.push(server);
        self.services.push(Service {
            name,
            kind,
            server: server as usize,
            callers: Vec::new(),
            priority: Some(priority as u8),
            timeout_s: None,
        });
        Ok(())
    }
}

fn node(text: &str) -> Result<u32, String> {
    let node = number(text, "node")?;
    if node > 253 {
        return Err(format!(
            "node {node} has no address: nodes are 0 to 253; left out"
        ));
    }
    Ok(node)
}

fn number(text: &str, what: &str) -> Result<u32, String> {
    let text = text.trim();
    text.parse()
        .map_err(|_| format!("the {what} '{text}' is no number: left out"))
}

/// A macro with its arguments, without quotes.
struct Call {
    line: usize,
    name: String,
    arguments: Vec<String>,
}

/// The macros of a header, or what is there instead, each with its line.
fn calls(text: &str) -> Vec<Result<Call, (usize, String)>> {
    let mut scan = Scan::new(text);
    let mut found = Vec::new();
    loop {
        scan.skip_blank();
        let line = scan.line;
        match scan.peek() {
            None => return found,
            Some('#') => {
                let directive: String = scan.rest_of_line();
                let word = directive.trim_start_matches('#').trim_start();
                if word.starts_with("if") || word.starts_with("el") {
                    found.push(Err((
                        line,
                        format!("`{}` is not evaluated: what is below counts", directive.trim()),
                    )));
                }
            }
            Some(';') => scan.next(),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let name = scan.word();
                scan.skip_blank();
                if scan.peek() != Some('(') {
                    found.push(Err((line, format!("'{name}' is not understood: left out"))));
                    continue;
                }
                scan.next();
                match scan.arguments() {
                    Some(arguments) => found.push(Ok(Call {
                        line,
                        name,
                        arguments,
                    })),
                    None => found.push(Err((line, format!("{name}( has no end: left out")))),
                }
            }
            Some(c) => {
                found.push(Err((
                    line,
                    format!("'{c}' is not understood: the line is left out"),
                )));
                scan.rest_of_line();
            }
        }
    }
}

struct Scan<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str) -> Self {
        Scan {
            rest: text.chars().peekable(),
            line: 1,
        }
    }

    fn peek(&mut self) -> Option<char> {
        self.rest.peek().copied()
    }

    fn next(&mut self) {
        if self.rest.next() == Some('\n') {
            self.line += 1;
        }
    }

    /// Skips blanks and comments.
    fn skip_blank(&mut self) {
        loop {
            match self.peek() {
                Some(c) if c.is_whitespace() => self.next(),
                Some('/') => {
                    let mut ahead = self.rest.clone();
                    ahead.next();
                    match ahead.peek() {
                        Some('/') => drop(self.rest_of_line()),
                        Some('*') => {
                            self.next();
                            self.next();
                            let mut star = false;
                            while let Some(c) = self.peek() {
                                self.next();
                                if star && c == '/' {
                                    break;
                                }
                                star = c == '*';
                            }
                        }
                        _ => return,
                    }
                }
                _ => return,
            }
        }
    }

    fn rest_of_line(&mut self) -> String {
        let mut line = String::new();
        while let Some(c) = self.peek().filter(|c| *c != '\n') {
            line.push(c);
            self.next();
        }
        line
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.peek().filter(|c| c.is_ascii_alphanumeric() || *c == '_') {
            word.push(c);
            self.next();
        }
        word
    }

    /// What is between the parentheses, which are behind us and at the end; `None` if there is no end.
    fn arguments(&mut self) -> Option<Vec<String>> {
        let mut arguments = vec![String::new()];
        let mut quoted = false;
        let mut depth = 0;
        loop {
            if !quoted {
                self.skip_blank();
            }
            let c = self.peek()?;
            self.next();
            match c {
                '"' => quoted = !quoted,
                _ if quoted => arguments.last_mut()?.push(c),
                ',' if depth == 0 => arguments.push(String::new()),
                '(' | '<' => {
                    depth += 1;
                    arguments.last_mut()?.push(c);
                }
                ')' if depth == 0 => return Some(arguments),
                ')' | '>' => {
                    depth = if depth > 0 { depth - 1 } else { 0 };
                    arguments.last_mut()?.push(c);
                }
                c => arguments.last_mut()?.push(c),
            }
        }
    }
}

/// What the YAML tells of the network.
struct Network {
    base: Ipv4Addr,
    rate: f64,
}

impl Default for Network {
    fn default() -> Self {
        Network {
            base: Ipv4Addr::new(192, 168, 1, 1),
            rate: RATE,
        }
    }
}

/// Keys of the YAML, and what becomes of each.
#[derive(serde::Deserialize)]
struct Keys {
    #[serde(default)]
    base_ip: Option<Spanned<String>>,
    #[serde(default)]
    rate_mbps: Option<Spanned<f64>>,
}

/// Keys that are not carried over, with the reason.
const NOT_CARRIED: &[(&str, &str)] = &[
    (
        "use_ip",
        "links are over IP (or a serial line): frames without IP are not sent",
    ),
    (
        "device",
        "a link is bound to an address: set `radio.bind` to the device's if it has several",
    ),
    ("nodes", "no MAC addresses are needed: peers are found by IP"),
    (
        "routes",
        "routes stay the kernel's; set `radio.hops` for them, or `relay` where a host between is a link's",
    ),
    ("feedback", "links always report what was lost"),
    (
        "auto_tuning",
        "write `rate: auto` in `radio` if the rate is not known",
    ),
    (
        "port",
        "links use 7400: change `radio.bind` and the peers' addresses alike",
    ),
    (
        "queue",
        "each topic has its own `depth`; `radio.queue_bytes` bounds all",
    ),
    ("delay", "the pacer follows from the radio's rate"),
    (
        "use_discard",
        "a newer message replaces one that waits; `deadline` drops what is late",
    ),
    ("quiet", "set RUST_LOG"),
];

impl Network {
    fn read(file: &str, text: &str, notes: &mut Notes) -> Result<Self, ImportError> {
        check_length(file, text)?;
        let keys: Keys = serde_saphyr::from_str(text).map_err(|e| ImportError::Syntax {
            file: file.to_owned(),
            line: e.location().map_or(1, |l| l.line() as usize),
            problem: "this is no YAML with `base_ip: ADDRESS` and `rate_mbps: NUMBER`".into(),
        })?;
        for (number, line) in text.lines().enumerate() {
            let Some((key, _)) = line.split_once(':') else {
                continue;
            };
            // Only keys of the document itself.
            if key.is_empty() || key.starts_with(|c: char| c.is_whitespace() || c == '#' || c == '-') {
                continue;
            }
            match key {
                "base_ip" | "rate_mbps" => {}
                key => match NOT_CARRIED.iter().find(|(k, _)| *k == key) {
                    Some((key, why)) => notes.add(file, number + 1, format!("{key}: {why}")),
                    None => notes.add(file, number + 1, format!("'{key}' is not understood: left out")),
                },
            }
        }
        let mut network = Network::default();
        if let Some(base) = keys.base_ip {
            match base.value.parse() {
                Ok(base) => network.base = base,
                Err(_) => notes.add(
                    file,
                    base.referenced.line() as usize,
                    format!(
                        "base_ip '{}' is no address: {} is taken",
                        base.value, network.base
                    ),
                ),
            }
        }
        if let Some(rate) = keys.rate_mbps {
            if (0.001..=100_000.0).contains(&rate.value) {
                network.rate = rate.value;
            } else {
                notes.add(
                    file,
                    rate.referenced.line() as usize,
                    format!("rate_mbps {} is no rate: {RATE} is taken", rate.value),
                );
            }
        }
        Ok(network)
    }
}
