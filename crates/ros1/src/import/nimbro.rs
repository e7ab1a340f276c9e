//! nimbro_network: the launch file, or the YAML of topics, of a sender.

use super::launch::{self, Node};
use super::plan::{Host, PORT, Plan, Service, Topic};
use super::{
    ImportError, Imported, Load, MAX_HOSTS, MAX_ROUTES, Notes, check_length, global_name, type_name,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::Spanned;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Files of nimbro_network.
#[derive(Clone, Copy, Debug)]
pub struct Nimbro<'a> {
    /// The sender's, as it is named in notes, and its text: `.launch` or `.yaml`.
    pub there: (&'a str, &'a str),
    /// The sender's on the other host, if topics come back.
    pub back: Option<(&'a str, &'a str)>,
}

/// Turns a sender's files into files for the host that it runs on, `robot`, and for those that it sends to, `base`. `load`
/// gives the name and text of a file that another names, and may fail.
///
/// # Errors
/// [`ImportError`]: too long, no XML or no YAML, a named file that cannot be read, or neither topic nor service in it. What else is wrong is
/// a note.
pub fn nimbro(files: Nimbro<'_>, load: &mut Load<'_>) -> Result<Imported, ImportError> {
    let mut notes = Notes::default();
    let mut team = Team {
        notes: &mut notes,
        hosts: vec![Host {
            name: "robot".into(),
            address: None,
            port: PORT,
        }],
        topics: Vec::new(),
        services: Vec::new(),
    };
    team.file(files.there, false, load)?;
    if let Some(back) = files.back {
        team.file(back, true, load)?;
    }
    let Team {
        hosts,
        topics,
        services,
        ..
    } = team;
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
            "192.0.2.1 stands for addresses that are not told there: write them where `# write its address` is",
        );
    }
    let plan = Plan {
        source: "nimbro_network's files".into(),
        hosts,
        rate: None,
        topics,
        services,
    };
    Ok(Imported {
        hosts: plan.write(),
        notes: notes.into_sorted(),
    })
}

/// What is read. Host 0 is the one that sends.
struct Team<'a> {
    notes: &'a mut Notes,
    hosts: Vec<Host>,
    topics: Vec<Topic>,
    services: Vec<Service>,
}

/// A sender's parameters, or a client's.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    topics: Vec<Spanned<Entry>>,
    #[serde(default)]
    services: Vec<Spanned<Entry>>,
}

/// A topic or a service.
#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    name: Option<String>,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    rate: Option<f64>,
    #[serde(default)]
    compress: Option<bool>,
    #[serde(default)]
    latch: Option<bool>,
    #[serde(default)]
    resend: Option<bool>,
    #[serde(flatten)]
    rest: BTreeMap<String, IgnoredAny>,
}

/// From where to where, and how.
#[derive(Clone, Copy)]
struct Way {
    from: usize,
    to: usize,
    reliability: Option<&'static str>,
    timeout_s: Option<f64>,
}

impl Team<'_> {
    fn file(
        &mut self,
        (file, text): (&str, &str),
        back: bool,
        load: &mut Load<'_>,
    ) -> Result<(), ImportError> {
        if !file.ends_with(".yaml") && !file.ends_with(".yml") {
            for node in launch::nodes(file, text, self.notes, load)? {
                self.node(&node, back)?;
            }
            return Ok(());
        }
        let base = self.host("");
        let (from, to) = if back { (base, 0) } else { (0, base) };
        let way = Way {
            from,
            to,
            reliability: None,
            timeout_s: None,
        };
        self.document(file, 1, text, way)
    }

    fn node(&mut self, node: &Node, back: bool) -> Result<(), ImportError> {
        let (address, way) = match (node.package.as_str(), node.kind.as_str()) {
            ("nimbro_topic_transport", "udp_sender") => ("destination_addr", repairs(node)),
            ("nimbro_topic_transport", "tcp_sender") => ("destination_addr", Some("reliable")),
            ("nimbro_service_transport", "udp_client" | "tcp_client" | "service_client") => ("server", None),
            ("nimbro_topic_transport", "udp_receiver" | "tcp_receiver") => {
                if node
                    .param("keep_compressed")
                    .is_some_and(|p| p.value.eq_ignore_ascii_case("true"))
                {
                    self.notes.add(
                        &node.file,
                        node.line,
                        "keep_compressed: messages arrive unpacked; a link that sends them on packs them again",
                    );
                }
                return Ok(());
            }
            ("nimbro_service_transport", "udp_server" | "tcp_server" | "service_server") => return Ok(()),
            ("nimbro_topic_transport" | "nimbro_service_transport", kind) => {
                self.notes.add(
                    &node.file,
                    node.line,
                    format!("the node {kind} is not understood: left out"),
                );
                return Ok(());
            }
            ("nimbro_tf_throttle" | "nimbro_log_transport" | "nimbro_cam_transport", kind) => {
                self.notes.add(
                    &node.file,
                    node.line,
                    match kind {
                        k if k.starts_with("tf_") => "transforms: list /tf with `tf: {frames: […], rate: 10Hz}` in bridge.yaml, and in link.yaml".into(),
                        k if k.starts_with("log_") => "the log: list /rosout with `level: warn` in bridge.yaml, and in link.yaml".into(),
                        k => format!("{k}: no video is coded; list the topic with `rate_limit` and `compress`, or a compressed one"),
                    },
                );
                return Ok(());
            }
            _ => return Ok(()),
        };
        let destination = node.param(address).map(|p| p.value.clone()).unwrap_or_default();
        let (from, to) = if back {
            // What comes back is sent to the robot, by the base.
            if let Ok(address) = destination.trim().parse() {
                self.hosts[0].address = Some(address);
            }
            let base = if self.hosts.len() > 1 { 1 } else { self.host("") };
            (base, 0)
        } else {
            (0, self.host(&destination))
        };
        if self.hosts.len() > MAX_HOSTS {
            return Err(ImportError::TooMuch {
                file: node.file.clone(),
                what: "more hosts".into(),
                limit: MAX_HOSTS,
            });
        }
        if self.hosts[to].address.is_none() {
            self.notes.add(
                &node.file,
                node.line,
                format!("'{destination}' is no address: a link's peers have addresses, such as 192.168.1.2"),
            );
        }
        for param in &node.params {
            if let Some(why) = not_carried(&param.name) {
                self.notes
                    .add(&param.file, param.line, format!("{}: {why}", param.name));
            }
        }
        let timeout = node.param("timeout").and_then(|p| p.value.trim().parse().ok());
        let way = Way {
            from,
            to,
            reliability: way,
            timeout_s: timeout.filter(|t: &f64| (0.001..=3600.0).contains(t)),
        };
        for param in node.params.iter().filter(|p| p.name.is_empty()) {
            self.document(&param.file, param.line, &param.value, way)?;
        }
        Ok(())
    }

    /// The host at an address, which is made if it is new.
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

    /// Lists of topics and services; `first` is the line at which the text begins in its file.
    fn document(&mut self, file: &str, first: usize, text: &str, way: Way) -> Result<(), ImportError> {
        check_length(file, text)?;
        let text = dedent(text);
        if text.trim().is_empty() {
            return Ok(());
        }
        let document: Document = serde_saphyr::from_str(&text).map_err(|e| ImportError::Syntax {
            file: file.to_owned(),
            line: first - 1 + e.location().map_or(1, |l| l.line() as usize),
            problem: "this is no YAML with `topics: [{name: …}]` or `services: [{name: …, type: …}]`".into(),
        })?;
        for (number, line) in text.lines().enumerate() {
            // The document's own keys.
            let key = line.split_once(':').map_or("", |(key, _)| key);
            let is_key = key.starts_with(|c: char| c.is_ascii_alphabetic());
            if is_key && key != "topics" && key != "services" {
                let why = not_carried(key).unwrap_or("is not understood: left out");
                self.notes.add(file, first + number, format!("{key}: {why}"));
            }
        }
        for entry in &document.topics {
            let line = first - 1 + entry.referenced.line() as usize;
            self.topic(file, line, &entry.value, way);
        }
        for entry in &document.services {
            let line = first - 1 + entry.referenced.line() as usize;
            self.service(file, line, &entry.value, way);
        }
        if self.topics.len() + self.services.len() > MAX_ROUTES {
            return Err(ImportError::TooMuch {
                file: file.to_owned(),
                what: "more topics and services".into(),
                limit: MAX_ROUTES,
            });
        }
        Ok(())
    }

    fn name(&mut self, file: &str, line: usize, entry: &Entry) -> Option<String> {
        let name = entry.name.as_deref().unwrap_or_default();
        let global = global_name(name);
        if global.is_none() {
            self.notes
                .add(file, line, format!("'{name}' is no name: left out"));
        }
        for key in entry.rest.keys() {
            self.notes
                .add(file, line, format!("{name}: {key} is not understood: left out"));
        }
        global
    }

    fn topic(&mut self, file: &str, line: usize, entry: &Entry, way: Way) {
        let Some(name) = self.name(file, line, entry) else {
            return;
        };
        if self.topics.len() > MAX_ROUTES {
            return;
        }
        if let Some(twin) = self
            .topics
            .iter_mut()
            .find(|t| t.name == name && t.from == way.from)
        {
            if !twin.to.contains(&way.to) {
                twin.to.push(way.to);
                self.notes.add(
                    file,
                    line,
                    format!("{name} goes to several hosts: the settings of the first count for all"),
                );
            }
            return;
        }
        let mut topic = Topic::new(name.clone(), way.from, vec![way.to]);
        topic.reliability = way.reliability;
        topic.compress = entry.compress == Some(true);
        topic.latched = entry.latch == Some(true);
        if let Some(rate) = entry.rate {
            if (0.001..=1e6).contains(&rate) {
                topic.rate_limit = Some(rate);
            } else {
                self.notes
                    .add(file, line, format!("{name}: rate {rate} is no limit: left out"));
            }
        }
        if entry.resend == Some(true) {
            topic.latched = true;
            self.notes.add(
                file,
                line,
                format!("{name}: resend: nothing is sent again in turn; who was away gets the last message (`latched`), `reliability: redundant` repairs loss"),
            );
        }
        self.topics.push(topic);
    }

    fn service(&mut self, file: &str, line: usize, entry: &Entry, way: Way) {
        let Some(name) = self.name(file, line, entry) else {
            return;
        };
        if self.services.iter().any(|s| s.name == name) {
            self.notes
                .add(file, line, format!("{name} is listed twice: the first counts"));
            return;
        }
        if self.services.len() > MAX_ROUTES {
            return;
        }
        let kind = entry.kind.as_deref().and_then(type_name);
        if kind.is_none() {
            self.notes.add(
                file,
                line,
                format!("{name} has no type that is one: its server's counts"),
            );
        }
        self.services.push(Service {
            name,
            kind,
            // The client is where it is called.
            server: way.to,
            callers: vec![way.from],
            priority: None,
            timeout_s: way.timeout_s,
        });
    }
}

/// How hard a sender over UDP tries.
fn repairs(node: &Node) -> Option<&'static str> {
    let fec = node.param("fec")?.value.trim().to_ascii_lowercase();
    (!matches!(fec.as_str(), "false" | "0" | "0.0" | "")).then_some("redundant")
}

/// Parameters that have no counterpart, with what there is instead.
fn not_carried(name: &str) -> Option<&'static str> {
    Some(match name {
        "destination_port" | "source_port" | "port" => {
            "one link carries everything over one port, 7400: `radio.bind`"
        }
        "relay_mode" | "relay_target_bitrate" | "relay_control_rate" => {
            "write `relay: true` on the host between, and its `radio.rate`"
        }
        "ignored_publishers" => "what came over a link never goes back",
        "ignore_publishers" => "what came over a link never goes back",
        "label" => "peers are shown by their names",
        "duplicate_first_packet" => "write `reliability: redundant`",
        "drop_repeated_msgs" => "no message is delivered twice",
        "warn_drop_incomplete" => "`ropewalk top` counts what was lost, by reason",
        "topic_prefix" => "write a `namespace` for the peer, or `bus` in bridge.yaml",
        _ => return None,
    })
}

/// Without the indentation that all lines have.
fn dedent(text: &str) -> String {
    let lines = text.lines().filter(|l| !l.trim().is_empty());
    let depth = lines
        .map(|l| l.len() - l.trim_start_matches([' ', '\t']).len())
        .min()
        .unwrap_or(0);
    let cut = |line: &str| {
        line.get(depth.min(line.len())..)
            .unwrap_or_default()
            .replace('\t', "  ")
    };
    text.lines().map(cut).collect::<Vec<_>>().join("\n")
}
