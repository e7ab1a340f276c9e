//! The link's configuration, as written in YAML.
//!
//! ```yaml
//! host: robot                 # as in its certificate; unique among the peers
//! keys: keys/robot            # made by `ropewalk keys host`; without it the carrier is plain UDP
//! radio:
//!   bind: 127.0.0.1:7400
//!   rate: 6Mbit/s             # the radio's bit rate, not its goodput; or auto
//!   hops: 1                   # hops over this radio on the way to the peer
//! peers:
//!   - name: base
//!     address: 127.0.0.1:7401
//!     allow: {publish: [/cmd_vel], subscribe: [/scan, '/camera/*']}
//! topics:
//!   - {name: /scan, priority: 100, direction: out, depth: 2, deadline: 100ms}
//!   - {name: /cmd_vel, priority: 120, direction: in}
//!   - {name: /camera/image, priority: 10, direction: out, rate_limit: 5Hz}
//! services:
//!   - {name: /arm/grasp, role: serve}        # a server of this host, for its peers
//!   - {name: /map/get, role: call, from: base, priority: 60, timeout: 5s}
//! ros2: graph                 # ROS 2 nodes see the peers' nodes; true: all topics and services cross, too
//! ```

mod address;
mod check;
pub(crate) mod matching;
mod names;
mod parse;
mod position;
mod rate;
mod service;
mod topic;

use crate::compress::Compress;
use crate::names::nodes_of;
use crate::rules::{Allow, Relayed};
use bridge::plain;
pub(crate) use names::{namespace, on_bus, on_wire, sent, sent_as, sent_by, service_on_bus};
pub(crate) use parse::MAX_EVERY;
use parse::{
    a_tenth, all, bandwidth, coding, hops, maybe_address, maybe_baud, maybe_mtu, maybe_size, one, ros2,
    share, spreading, syntax, yes,
};
pub use rate::Rate;
use serde::Deserialize;
pub use service::{Role, ServiceConfig, ServiceRole};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
pub use topic::{Direction, Reliability, TopicConfig, When};

/// Largest configuration file that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Pattern for all topics, or all services.
const EVERYTHING: &str = "/*";
/// Priority and expiry of the topics that describe nodes: after anything with a deadline, and retried until
/// they arrive.
const NODES_PRIORITY: u8 = 20;
const NODES_EXPIRY: Duration = Duration::from_secs(60);
/// Longest record of nodes sent to a peer, or accepted from one, in bytes.
pub(crate) const MAX_REPORTED: usize = 1 << 20;

/// Default limits for waiting bytes, without and with bulk topics.
const QUEUE_BYTES: u64 = 8 << 20;
const BULK_QUEUE_BYTES: u64 = 64 << 20;

/// Nominal rate of a wire, in bit/s. A wire is not paced, so its rate matters only where topics are compared:
/// for their shares and for a deadline's last chance.
const NOMINAL: u64 = 1_000_000_000;
/// Bytes that Ethernet adds to a packet: header, checksum, preamble and gap.
const ETHERNET: u32 = 38;
/// Bits on a serial line for each byte: start, eight data bits, stop.
pub(crate) const SERIAL_BITS: u64 = 10;

/// Configuration of a link daemon: one radio, its peers, and the topics that cross it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// This host's name; unique among the peers.
    pub host: String,
    /// The folder with this host's keys (`ropewalk keys host`). A relative path is relative to the
    /// configuration's folder. With keys, the default carrier is QUIC.
    #[serde(default)]
    pub keys: Option<PathBuf>,
    /// The radio.
    pub radio: RadioConfig,
    /// The topics that this host forwards between its peers: `true`, or a list of names and patterns. Default: none.
    #[serde(default)]
    pub relay: Option<Relayed>,
    /// The hosts at the other ends. Loading a configuration moves peers without an address, which only relays
    /// reach, behind the others.
    pub peers: Vec<PeerConfig>,
    /// The topics that cross the radio. No other topic crosses it, in either direction.
    #[serde(default)]
    pub topics: Vec<TopicConfig>,
    /// The services that can be called over the radio. No other service can, in either direction.
    #[serde(default)]
    pub services: Vec<ServiceConfig>,
    /// Whether ROS 2 nodes here see the peers' nodes and vice versa, and whether topics and services that
    /// neither `topics` nor `services` lists cross too. Default: neither.
    #[serde(default, deserialize_with = "ros2")]
    pub ros2: Ros2,
}

/// Support for ROS 2 nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ros2 {
    /// `false`: nothing. Topics and services cross like any others.
    #[default]
    No,
    /// `graph`: nodes see the peers' nodes, with those of their topics and services that the configuration
    /// lists.
    Graph,
    /// `true`: as `graph`, and all topics and services cross in both directions. Listed ones cross as the
    /// configuration says, the others with the reliability and depth of their publishers.
    All,
}

/// One radio.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RadioConfig {
    /// Distinguishes the links of a host that has several radios: 1 to 64 letters, digits and underscores.
    /// Default: the host's name.
    #[serde(default)]
    pub name: Option<String>,
    /// The carrier of the datagrams. Default: QUIC if `keys` is set, else UDP.
    #[serde(default)]
    pub carrier: Option<CarrierKind>,
    /// The local address, for QUIC, TLS and UDP.
    #[serde(default, deserialize_with = "maybe_address")]
    pub bind: Option<SocketAddr>,
    /// The serial line, such as /dev/ttyUSB0.
    #[serde(default)]
    pub line: Option<PathBuf>,
    /// The serial line's speed in bit/s.
    #[serde(default, deserialize_with = "maybe_baud")]
    pub baud: Option<u32>,
    /// Size of the largest IP packet on the path to the peers, in bytes. Without it, QUIC discovers the size
    /// and UDP leaves fragmentation to IP.
    #[serde(default, deserialize_with = "maybe_mtu")]
    pub mtu: Option<u16>,
    /// The LoRa modem behind the serial line: its settings say how long a datagram takes. Default: the line itself.
    #[serde(default)]
    pub lora: Option<Lora>,
    /// The share of the time for which this host may transmit, as regulations limit it. Default 100%. Less needs a known
    /// rate.
    #[serde(default = "all", deserialize_with = "share")]
    pub duty: f64,
    /// Bit rate, as the radio's standard names it (802.11a/g OFDM: 6 to 54 Mbit/s), `auto`, or `unlimited`
    /// for a wire. The rate of a serial line follows from its speed.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// Number of hops that a datagram takes over the same radio. Each hop costs airtime. Default 1.
    #[serde(default = "one", deserialize_with = "hops")]
    pub hops: u8,
    /// Factor that the pacer applies to airtimes, if the default does not fit the radio.
    #[serde(default)]
    pub gain: Option<f64>,
    /// The order of sending. Default `priority`; `fifo` exists for comparison.
    #[serde(default)]
    pub order: Order,
    /// Least share of this host's airtime for all messages but the most important waiting ones. Default 0%:
    /// strictly by priority.
    #[serde(default, deserialize_with = "share")]
    pub min_share: f64,
    /// Whether this host announces its waiting messages to its peers, and yields to more important messages on other
    /// hosts. Default true.
    #[serde(default = "yes")]
    pub yields: bool,
    /// The share of the air that this host keeps when it yields. Default 10%.
    #[serde(default = "a_tenth", deserialize_with = "share")]
    pub least_share: f64,
    /// The medium that `rate` describes. Default: Wi-Fi.
    #[serde(default)]
    pub medium: Medium,
    /// Most bytes of messages that may wait for the radio. Beyond it, the link drops messages of the lowest
    /// priority. Default 8 MiB, or 64 MiB if this host sends a bulk topic.
    #[serde(default, deserialize_with = "maybe_size")]
    pub queue_bytes: Option<u64>,
    /// Allow unencrypted, unauthenticated UDP beyond this host.
    #[serde(default)]
    pub insecure_udp: bool,
}

impl RadioConfig {
    /// Plain UDP at `bind` over a radio of `rate` bit/s, with defaults for the rest.
    pub fn udp(bind: SocketAddr, rate: u64) -> Self {
        RadioConfig {
            name: None,
            carrier: Some(CarrierKind::Udp),
            bind: Some(bind),
            line: None,
            baud: None,
            lora: None,
            duty: all(),
            mtu: None,
            rate: Some(Rate::Set(rate)),
            hops: one(),
            gain: None,
            order: Order::default(),
            min_share: 0.0,
            yields: yes(),
            least_share: a_tenth(),
            medium: Medium::default(),
            queue_bytes: None,
            insecure_udp: false,
        }
    }
}

/// The carrier of a link's datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CarrierKind {
    /// QUIC datagrams in TLS 1.3 between hosts of one team.
    Quic,
    /// Datagrams in a TLS 1.3 stream over TCP between hosts of one team, for cables.
    Tls,
    /// Plain UDP: neither encrypted nor authenticated.
    Udp,
    /// Frames over a serial line.
    Serial,
}

impl CarrierKind {
    /// Its name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            CarrierKind::Quic => "quic",
            CarrierKind::Tls => "tls",
            CarrierKind::Udp => "udp",
            CarrierKind::Serial => "serial",
        }
    }

    /// Whether hosts prove with keys of one team who they are.
    pub fn has_keys(self) -> bool {
        match self {
            CarrierKind::Quic | CarrierKind::Tls => true,
            CarrierKind::Udp | CarrierKind::Serial => false,
        }
    }

    /// Whether peers have addresses; otherwise there is one, at the other end.
    pub fn has_addresses(self) -> bool {
        self.transport().is_some()
    }

    /// The protocol of the port that it listens on.
    pub(crate) fn transport(self) -> Option<&'static str> {
        match self {
            CarrierKind::Quic | CarrierKind::Udp => Some("UDP"),
            CarrierKind::Tls => Some("TCP"),
            CarrierKind::Serial => None,
        }
    }
}

/// The settings of a LoRa modem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lora {
    /// Spreading factor, 7 to 12.
    #[serde(deserialize_with = "spreading")]
    pub spreading: u8,
    /// Bandwidth in Hz, such as 125000.
    #[serde(deserialize_with = "bandwidth")]
    pub bandwidth: u32,
    /// Redundant bits for every 4, 1 to 4: the coding rates 4/5 to 4/8. Default 1.
    #[serde(default = "one", deserialize_with = "coding")]
    pub coding: u8,
}

/// The medium that a rate describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Medium {
    /// The bit rate of a Wi-Fi radio: each datagram costs the airtime of its frame, with gaps, preambles and
    /// acknowledgement.
    #[default]
    Wifi,
    /// The IP throughput of a cable, a modem, a satellite or any other service, separately for each
    /// direction.
    Wire,
}

/// The order in which waiting messages are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Strictly by priority.
    #[default]
    Priority,
    /// In order of arrival, whatever the priority.
    Fifo,
}

/// A host at the other end of a link.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeerConfig {
    /// The peer's name: the one in its certificate, and the one in messages and statistics.
    pub name: String,
    /// The address on which its link listens. None for a serial line.
    #[serde(default, deserialize_with = "maybe_address")]
    pub address: Option<SocketAddr>,
    /// The peer's permissions. Default: everything listed under `topics`.
    #[serde(default)]
    pub allow: Option<Allow>,
    /// The prefix of the peer's topics on this bus: received topics are published below it, and topics for
    /// the peer are found below it. The peer sees them without the prefix. `{peer}` stands for the peer's
    /// name. Default: none.
    #[serde(default)]
    pub namespace: Option<String>,
    /// The topics that it may forward between this host and others, and can therefore read: `true`, or a list
    /// of names and patterns. Default: none.
    #[serde(default)]
    pub relay: Option<Relayed>,
    /// Most bytes of this host's shared memory that all the peer's topics together may hold. Default 512 MiB.
    #[serde(default, deserialize_with = "maybe_size")]
    pub memory: Option<u64>,
}

/// Default limit for the shared memory that a peer's topics may hold, in bytes.
const PEER_MEMORY: u64 = 512 << 20;

impl PeerConfig {
    /// Returns whether its airtime announcements count.
    pub fn has_air(&self) -> bool {
        let relays = || self.relay.as_ref().is_some_and(Relayed::is_any);
        let rules = self.allow.as_ref();
        rules.is_none_or(|a| a.air.unwrap_or_else(|| a.is_any() || relays()))
    }

    /// Most bytes of shared memory that all its topics together may hold.
    pub fn memory(&self) -> u64 {
        self.memory.unwrap_or(PEER_MEMORY)
    }

    /// Returns whether it may forward a topic between this host and others.
    pub fn carries(&self, topic: &str) -> bool {
        self.relay.as_ref().is_some_and(|r| r.covers(topic))
    }
}

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The text is not a valid configuration.
    #[error("{place}: {problem}")]
    Syntax {
        /// File (or `configuration`), line and column.
        place: String,
        /// What is wrong there.
        problem: String,
    },
    /// The parts contradict each other.
    #[error("{place}: {problem}")]
    Meaning {
        /// File (or `configuration`), line and column.
        place: String,
        /// What is wrong, and how to fix it.
        problem: String,
    },
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ConfigError`], with file, line and column if known.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        let read = |source| ConfigError::Read {
            path: path.to_owned(),
            source,
        };
        let size = std::fs::metadata(path).map_err(read)?.len();
        if size > MAX_FILE {
            let problem = format!("the file has {size} bytes; a configuration has at most {MAX_FILE}");
            return Err(ConfigError::Syntax {
                place: path.display().to_string(),
                problem,
            });
        }
        let text = std::fs::read_to_string(path).map_err(read)?;
        let mut config = Self::named(&text, &path.display().to_string())?;
        let folder = path.parent().unwrap_or(Path::new(""));
        // `join` leaves an absolute path unchanged.
        config.keys = config.keys.map(|keys| folder.join(keys));
        Ok(config)
    }

    /// Most bytes of messages that may wait for the radio.
    pub fn queue_bytes(&self) -> u64 {
        let topic = |t: &TopicConfig| t.direction.sends() && t.reliability == Reliability::Bulk;
        let service = |s: &ServiceConfig| s.is_for_serving() && s.reliability == Reliability::Bulk;
        let default = if self.topics.iter().any(topic) || self.services.iter().any(service) {
            BULK_QUEUE_BYTES
        } else {
            QUEUE_BYTES
        };
        self.radio.queue_bytes.unwrap_or(default)
    }

    /// Longest accepted message of each received topic that sets a limit.
    pub(crate) fn max_messages(&self) -> BTreeMap<String, u32> {
        let received = self.topics.iter().filter(|t| t.direction.receives());
        let limited = received.filter_map(|t| {
            let most = u32::try_from(t.max_message?).unwrap_or(u32::MAX);
            Some((t.name.clone(), most))
        });
        limited.collect()
    }

    /// The carrier of the datagrams.
    pub fn carrier(&self) -> CarrierKind {
        let default = if self.keys.is_some() {
            CarrierKind::Quic
        } else {
            CarrierKind::Udp
        };
        self.radio.carrier.unwrap_or(default)
    }

    /// Distinguishes this link from others of the bus: `radio.name`, or the host's name with the characters
    /// that a topic name allows.
    pub fn link_name(&self) -> String {
        plain(self.radio.name.as_deref().unwrap_or(&self.host))
    }

    /// Identity of the radio itself, for a file's name and for people: the serial line or the address. None
    /// for loopback and unspecified addresses.
    pub(crate) fn radio_identity(&self) -> Option<(String, String)> {
        if let Some(line) = &self.radio.line {
            let real = std::fs::canonicalize(line).unwrap_or_else(|_| line.clone());
            let shown = real.display().to_string();
            return Some((shown.clone(), shown));
        }
        let bind = self.radio.bind?;
        let known = !bind.ip().is_loopback() && !bind.ip().is_unspecified();
        known.then(|| (address::host(bind), address::host(bind)))
    }

    /// Returns whether messages may travel over relays: this host or a peer.
    pub fn routes(&self) -> bool {
        let all = self.peers.iter().map(|p| &p.relay).chain([&self.relay]);
        all.flatten().any(Relayed::is_any)
    }

    /// The peers that this host reaches directly. The others follow them in `peers`.
    pub fn neighbours(&self) -> &[PeerConfig] {
        let far = |p: &&PeerConfig| p.address.is_none() && self.carrier().has_addresses();
        let near = self.peers.iter().take_while(|p| !far(p)).count();
        &self.peers[..near]
    }

    /// Reads YAML text.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse(text: &str) -> Result<Config, ConfigError> {
        Self::named(text, "configuration")
    }

    fn named(text: &str, place: &str) -> Result<Config, ConfigError> {
        let mut config: Config = serde_saphyr::from_str(text).map_err(|e| syntax(&e, place))?;
        // The position of each peer in the text.
        let mut order: Vec<usize> = (0..config.peers.len()).collect();
        if config.carrier().has_addresses() {
            order.sort_by_key(|i| config.peers[*i].address.is_none());
            config.peers.sort_by_key(|p| p.address.is_none());
        }
        config.check().map_err(|problem| {
            let path = match problem.path.split('.').collect::<Vec<_>>().as_slice() {
                ["peers", i, rest @ ..] => {
                    let written = i.parse().ok().and_then(|i: usize| order.get(i));
                    let written = written.map_or("".into(), usize::to_string);
                    [&["peers", &written], rest].concat().join(".")
                }
                _ => problem.path.clone(),
            };
            ConfigError::Meaning {
                place: placed(text, place, &path),
                problem: parse::on_one_line(&problem.text),
            }
        })?;
        config.list_for_ros2();
        Ok(config)
    }

    /// Adds the topics and services that `ros2` lets cross in addition to the listed ones.
    fn list_for_ros2(&mut self) {
        if self.ros2 == Ros2::No {
            return;
        }
        if self.ros2 == Ros2::All {
            if !self.topics.iter().any(|t| t.name == EVERYTHING) {
                self.topics.push(TopicConfig {
                    reliability: Reliability::Offered,
                    ..TopicConfig::new(EVERYTHING, Direction::Both)
                });
            }
            if !self.services.iter().any(|s| s.name == EVERYTHING) {
                self.services.push(ServiceConfig::new(EVERYTHING, Role::Both));
            }
        }
        for peer in &self.peers {
            let nodes_topic = |name: String, direction| TopicConfig {
                priority: NODES_PRIORITY,
                reliability: Reliability::Reliable,
                expiry: Some(NODES_EXPIRY),
                depth: Some(1),
                latched: Some(true),
                compress: Compress::Auto,
                max_message: Some(MAX_REPORTED as u64),
                ..TopicConfig::new(name, direction)
            };
            self.topics
                .push(nodes_topic(nodes_of(&self.host, &peer.name), Direction::Out));
            self.topics
                .push(nodes_topic(nodes_of(&peer.name, &self.host), Direction::In));
        }
    }

    /// The place of a key such as `radio.bind` in a file, for people: file, line and column.
    pub fn place(file: &Path, key: &str) -> String {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        placed(&text, &file.display().to_string(), key)
    }

    /// Returns whether there is an unpaced wire in place of a radio.
    pub(crate) fn is_wire(&self) -> bool {
        self.radio.rate == Some(Rate::Unlimited)
    }

    /// Returns whether it is a wire, with or without a rate.
    pub(crate) fn has_wire(&self) -> bool {
        self.is_wire() || self.radio.medium == Medium::Wire
    }

    /// The airtime model of this radio, if the carrier adds `overhead` bytes to each datagram.
    pub(crate) fn airtime(&self, overhead: usize) -> proto::AirtimeModel {
        let overhead = u32::try_from(overhead).unwrap_or(u32::MAX);
        if let Some(lora) = self.radio.lora {
            let model = proto::AirtimeModel::lora(lora.spreading.into(), lora.bandwidth, lora.coding.into());
            return proto::AirtimeModel {
                extra_bytes: overhead,
                ..model
            };
        }
        match (self.carrier(), self.radio.baud) {
            // A byte takes ten bits on the line.
            (CarrierKind::Serial, Some(baud)) => {
                proto::AirtimeModel::bytes(u64::from(baud) * 8 / SERIAL_BITS, overhead).with_gain(1.0)
            }
            _ if self.is_wire() => proto::AirtimeModel::bytes(NOMINAL, overhead + ETHERNET).with_gain(1.0),
            _ if self.radio.medium == Medium::Wire => {
                proto::AirtimeModel::bytes(self.radio.rate.unwrap_or(Rate::Auto).first(), overhead)
            }
            _ => {
                let mut airtime = proto::AirtimeModel::wifi(self.radio.rate.unwrap_or(Rate::Auto).first());
                // The model already includes IP and UDP.
                airtime.extra_bytes += overhead.saturating_sub(28);
                airtime
            }
        }
    }
}

fn placed(text: &str, place: &str, key: &str) -> String {
    match position::find(text, key) {
        Some((line, column)) => format!("{place}:{line}:{column}"),
        None => place.to_owned(),
    }
}

#[cfg(test)]
mod tests;
