//! Settings of a node of nimbro_network.

use super::super::launch::Node;
use super::super::{ImportError, Notes, global_name, relative_name, resolved};
use super::document::{Document, Entry};
use super::not_carried;
use std::collections::BTreeSet;

/// Role of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    TopicSender,
    TopicReceiver,
    Client,
    Server,
}

/// How two nodes connect to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) is_tcp: bool,
    pub(super) number: u32,
}

/// A node with its parameters.
pub(super) struct Settings {
    pub(super) node: Node,
    pub(super) part: Part,
    /// Whether it belongs to the host that sends back.
    pub(super) is_back: bool,
    pub(super) port: Port,
    /// For senders and clients: the destination as written.
    pub(super) destination: String,
    pub(super) prefix: String,
    pub(super) is_redundant: bool,
    pub(super) timeout_s: Option<f64>,
    pub(super) topics: Vec<Entry>,
    pub(super) services: Vec<Entry>,
}

impl Part {
    /// Returns a node's role, and whether it uses TCP.
    pub(super) fn of(node: &Node) -> Option<(Part, bool)> {
        let of_topics = matches!(
            node.package.as_str(),
            "nimbro_topic_transport" | "sb_topic_transport"
        );
        Some(match (of_topics, node.kind.as_str()) {
            (true, "udp_sender") => (Part::TopicSender, false),
            (true, "tcp_sender") => (Part::TopicSender, true),
            (true, "udp_receiver") => (Part::TopicReceiver, false),
            (true, "tcp_receiver") => (Part::TopicReceiver, true),
            (false, "udp_client") => (Part::Client, false),
            (false, "tcp_client" | "service_client") => (Part::Client, true),
            (false, "udp_server") => (Part::Server, false),
            (false, "tcp_server" | "service_server") => (Part::Server, true),
            _ => return None,
        })
    }

    /// Names of the parameters for address and port.
    fn keys(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Part::TopicSender => (&["destination_addr", "address"], &["destination_port", "port"]),
            Part::Client => (&["server"], &["port"]),
            Part::TopicReceiver | Part::Server => (&[], &["port"]),
        }
    }

    fn default_port(self, is_tcp: bool) -> u32 {
        match (self, is_tcp) {
            (Part::TopicSender | Part::TopicReceiver, _) => 5050,
            (_, true) => 6050,
            (_, false) => 5000,
        }
    }
}

impl Settings {
    pub(super) fn of(
        mut node: Node,
        (part, is_tcp): (Part, bool),
        is_back: bool,
        notes: &mut Notes,
    ) -> Result<Settings, ImportError> {
        let (mut topics, mut services) = (Vec::new(), Vec::new());
        let mut values: Vec<(String, usize, String, String)> = Vec::new();
        for param in std::mem::take(&mut node.params) {
            if !param.is_yaml {
                values.push((param.file, param.line, param.name, param.value));
                continue;
            }
            let read = Document::read(&param.file, param.line, &param.name, &param.value, notes)?;
            topics.extend(read.topics);
            services.extend(read.services);
            let of_file = |(line, key, value)| (param.file.clone(), line, key, value);
            values.extend(read.values.into_iter().map(of_file));
        }
        let mut settings = Settings {
            part,
            is_back,
            port: Port {
                is_tcp,
                number: part.default_port(is_tcp),
            },
            destination: String::new(),
            prefix: String::new(),
            is_redundant: false,
            timeout_s: None,
            topics,
            services,
            node,
        };
        for (file, line, key, value) in values {
            settings.set(&file, line, &key, value.trim(), notes);
        }
        settings.misplaced(notes);
        Ok(settings)
    }

    fn set(&mut self, file: &str, line: usize, key: &str, value: &str, notes: &mut Notes) {
        let (addresses, ports) = self.part.keys();
        let part = self.part;
        let mut left_out = |why: &str| notes.add(file, line, format!("{key}: {why}"));
        match key {
            _ if addresses.contains(&key) => value.clone_into(&mut self.destination),
            _ if ports.contains(&key) => {
                match value.parse() {
                    Ok(number) => self.port.number = number,
                    Err(_) => left_out("is not a port: using nimbro's default"),
                }
                left_out(not_carried("port").unwrap_or_default());
            }
            "fec" if part == Part::TopicSender && !self.port.is_tcp => {
                let off = ["false", "0", "0.0", ""];
                self.is_redundant = !off.contains(&value.to_ascii_lowercase().as_str());
            }
            "fec" if part == Part::TopicReceiver => {
                left_out("the sender's `reliability` applies at both ends")
            }
            "topic_prefix" if part == Part::TopicReceiver => value.clone_into(&mut self.prefix),
            "timeout" if part == Part::Client && !self.port.is_tcp => {
                let timeout = value.parse().ok().filter(|t: &f64| (0.001..=3600.0).contains(t));
                match timeout {
                    Some(timeout) => self.timeout_s = Some(timeout),
                    None => left_out("is not a time in seconds up to an hour: using the link's default"),
                }
            }
            "timeout" if part == Part::Client => left_out("only applies to UDP: ignored, as in nimbro"),
            "keep_compressed" if part == Part::TopicReceiver => {
                left_out("messages arrive uncompressed; a link that forwards them compresses them again");
            }
            _ => left_out(not_carried(key).unwrap_or("is not understood: ignored")),
        }
    }

    /// Notes and drops topics of nodes that take none; likewise services.
    fn misplaced(&mut self, notes: &mut Notes) {
        for (part, entries, what) in [
            (Part::TopicSender, &mut self.topics, "topics"),
            (Part::Client, &mut self.services, "services"),
        ] {
            if part != self.part {
                for entry in std::mem::take(entries) {
                    let text = format!("{} does not read {what}: ignored", self.node.kind);
                    notes.add(&entry.file, entry.line, text);
                }
            }
        }
    }

    /// Returns a topic's name in its sender's ROS, or a service's in its client's: nimbro resolves it in the node's own
    /// namespace.
    pub(super) fn private(&self, name: &str, remaps: &mut Remaps) -> Option<String> {
        let name = resolved(&self.node.name, name)?;
        Some(remaps.apply(&self.node, name))
    }

    /// Returns a topic's name in its receiver's ROS, or a service's in its server's.
    pub(super) fn public(&self, name: &str, remaps: &mut Remaps) -> Option<String> {
        let name = resolved(self.node.namespace(), &format!("{}{name}", self.prefix))?;
        Some(remaps.apply(&self.node, name))
    }

    /// Whether this node receives what the other sends.
    pub(super) fn takes(&self, other: &Settings) -> bool {
        let fits = match other.part {
            Part::TopicSender => self.part == Part::TopicReceiver,
            Part::Client => self.part == Part::Server,
            _ => false,
        };
        fits && self.is_back != other.is_back && self.port == other.port
    }
}

/// Remaps that had an effect, by file and line.
#[derive(Default)]
pub(super) struct Remaps(pub(super) BTreeSet<(String, usize)>);

impl Remaps {
    fn apply(&mut self, node: &Node, name: String) -> String {
        let found = node.remaps.iter().rfind(|remap| {
            let from = match remap.from.strip_prefix('~') {
                Some(private) => relative_name(private).map(|p| format!("{}/{p}", node.name)),
                None => resolved(node.namespace(), &remap.from),
            };
            from.as_deref() == Some(&name)
        });
        let Some(remap) = found else { return name };
        let Some(to) = resolved(node.namespace(), &remap.to) else {
            return name;
        };
        self.0.insert((remap.file.clone(), remap.line));
        global_name(&to).unwrap_or(name)
    }
}
