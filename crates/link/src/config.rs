//! The link's configuration, as written in YAML.
//!
//! ```yaml
//! host: robot                 # as in its certificate; unique among the peers
//! keys: keys/robot            # made by `ropewalk keys host`; without it the carrier is plain UDP
//! radio:
//!   bind: 127.0.0.1:7400
//!   rate: 6Mbit/s             # the radio's bit rate, not its goodput
//!   hops: 1                   # how often a datagram is sent on the way to the peer
//! peers:
//!   - name: base
//!     address: 127.0.0.1:7401
//!     allow: {publish: [/cmd_vel], subscribe: [/scan, '/camera/*']}
//! topics:
//!   - {name: /scan, priority: 100, direction: out, depth: 2, deadline: 100ms}
//!   - {name: /cmd_vel, priority: 120, direction: in}
//!   - {name: /camera/image, priority: 10, direction: out, rate_limit: 5Hz}
//! ```

use crate::carrier::serial;
use crate::keys::check_name;
use crate::quantity;
use crate::rules::Allow;
use serde::{Deserialize, Deserializer, de};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest configuration file that is read.
const MAX_FILE: u64 = 1 << 20;

/// What a link daemon does: one radio, its peers, and the topics that cross it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// This host's name; unique among the peers.
    pub host: String,
    /// The folder with this host's keys (`ropewalk keys host`); a relative path counts from the configuration's
    /// folder. With it the carrier is QUIC.
    #[serde(default)]
    pub keys: Option<PathBuf>,
    /// The radio.
    pub radio: RadioConfig,
    /// The hosts at the other ends.
    pub peers: Vec<PeerConfig>,
    /// The topics that cross the radio; no other does, in either direction.
    #[serde(default)]
    pub topics: Vec<TopicConfig>,
}

/// One radio.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RadioConfig {
    /// What moves the datagrams. Default: QUIC where there are `keys`, else UDP.
    #[serde(default)]
    pub carrier: Option<CarrierKind>,
    /// The local address, for QUIC and UDP.
    #[serde(default)]
    pub bind: Option<SocketAddr>,
    /// The serial line, such as /dev/ttyUSB0.
    #[serde(default)]
    pub line: Option<PathBuf>,
    /// The serial line's speed in bit/s.
    #[serde(default)]
    pub baud: Option<u32>,
    /// Bit rate in bit/s, as the radio's standard names it (802.11a/g OFDM: 6 to 54 Mbit/s). A serial line's
    /// follows from its speed.
    #[serde(default, deserialize_with = "bit_rate")]
    pub rate: u64,
    /// How many hops of the same radio a datagram takes; airtime is paid for each. Default 1.
    #[serde(default = "one")]
    pub hops: u8,
    /// What the pacer multiplies airtimes with, if the default does not fit the radio.
    #[serde(default)]
    pub gain: Option<f64>,
    /// The order of sending. Default `priority`; `fifo` is there for comparison.
    #[serde(default)]
    pub order: Order,
    /// Most bytes of messages that wait for the radio; beyond it the lowest priority is dropped. Default 8 MiB.
    #[serde(default = "queue_bytes", deserialize_with = "size")]
    pub queue_bytes: u64,
    /// The user's word that plain UDP may be used beyond this host: no encryption, no proof of identity.
    #[serde(default)]
    pub insecure_udp: bool,
}

impl RadioConfig {
    /// Plain UDP at `bind` over a radio of `rate` bit/s, with defaults for the rest.
    pub fn udp(bind: SocketAddr, rate: u64) -> Self {
        RadioConfig {
            carrier: Some(CarrierKind::Udp),
            bind: Some(bind),
            line: None,
            baud: None,
            rate,
            hops: one(),
            gain: None,
            order: Order::default(),
            queue_bytes: queue_bytes(),
            insecure_udp: false,
        }
    }
}

/// What moves a link's datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CarrierKind {
    /// QUIC datagrams in TLS 1.3 between hosts of one team.
    Quic,
    /// Plain UDP: neither encrypted nor authenticated.
    Udp,
    /// Frames over a serial line.
    Serial,
}

/// In which order waiting messages are sent.
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
    /// Its name: that in its certificate, and for messages and statistics.
    pub name: String,
    /// Where its link listens; none for a serial line.
    #[serde(default)]
    pub address: Option<SocketAddr>,
    /// What it may do. Default: whatever is listed under `topics`.
    #[serde(default)]
    pub allow: Option<Allow>,
}

/// How one topic crosses the radio.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopicConfig {
    /// The topic's full name, such as `/scan`.
    pub name: String,
    /// 0–127; higher goes first. Default 50.
    #[serde(default = "middle", deserialize_with = "priority")]
    pub priority: u8,
    /// Whether this host sends it, receives it, or both.
    pub direction: Direction,
    /// How many messages may wait for the radio; a newer one replaces the oldest. Default 1: only the newest.
    #[serde(default = "one_message")]
    pub depth: u16,
    /// A message older than this is dropped before it costs airtime. Default: never.
    #[serde(default, deserialize_with = "maybe_duration")]
    pub deadline: Option<Duration>,
    /// At most so many messages a second are sent; others are dropped. Default: all.
    #[serde(default, deserialize_with = "maybe_frequency")]
    pub rate_limit: Option<f64>,
}

/// Which way a topic goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From this host's bus to the peers.
    Out,
    /// From the peers to this host's bus.
    In,
    /// Both ways.
    Both,
}

impl Direction {
    /// Whether this host sends it.
    pub fn sends(self) -> bool {
        self != Direction::In
    }

    /// Whether this host receives it.
    pub fn receives(self) -> bool {
        self != Direction::Out
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
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is not a configuration.
    #[error("{place}: {problem}")]
    Syntax {
        /// File (or `configuration`), line and column.
        place: String,
        /// What is wrong there.
        problem: String,
    },
    /// The parts do not fit each other.
    #[error("{place}: {problem}")]
    Meaning {
        /// The file, or `configuration`.
        place: String,
        /// What is wrong, and its mend.
        problem: String,
    },
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ConfigError`], with file, line and column where there are any.
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
        // An absolute path stays what it is.
        config.keys = config.keys.map(|keys| folder.join(keys));
        Ok(config)
    }

    /// What moves the datagrams.
    pub fn carrier(&self) -> CarrierKind {
        let default = if self.keys.is_some() {
            CarrierKind::Quic
        } else {
            CarrierKind::Udp
        };
        self.radio.carrier.unwrap_or(default)
    }

    /// Reads YAML text.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse(text: &str) -> Result<Config, ConfigError> {
        Self::named(text, "configuration")
    }

    fn named(text: &str, place: &str) -> Result<Config, ConfigError> {
        let config: Config = serde_saphyr::from_str(text).map_err(|e| syntax(&e, place))?;
        config.check().map_err(|problem| ConfigError::Meaning {
            place: place.to_owned(),
            problem,
        })?;
        Ok(config)
    }

    /// Checks what no single field shows.
    fn check(&self) -> Result<(), String> {
        let radio = &self.radio;
        if !(1..=16).contains(&radio.hops) {
            return Err(format!("radio.hops is {}; it must be 1 to 16", radio.hops));
        }
        if radio.gain.is_some_and(|g| !(0.5..=4.0).contains(&g)) {
            return Err("radio.gain must be 0.5 to 4.0; leave it out for the default".into());
        }
        if self.host.is_empty() || self.peers.is_empty() {
            return Err("a link needs a `host` name and at least one entry under `peers`".into());
        }
        let mut names = BTreeSet::from([self.host.as_str()]);
        for peer in &self.peers {
            if peer.name.is_empty() || !names.insert(&peer.name) {
                return Err(format!("the peer name '{}' is empty or used twice", peer.name));
            }
            if let Some(pattern) = peer.allow.as_ref().and_then(Allow::bad_pattern) {
                return Err(format!(
                    "peer '{}': allow names '{pattern}': write a topic's full name, such as /scan, '/camera/*', or '*'",
                    peer.name
                ));
            }
        }
        match self.carrier() {
            CarrierKind::Serial => self.check_serial()?,
            kind => self.check_addresses(kind)?,
        }
        let mut topics = BTreeSet::new();
        for topic in &self.topics {
            if !topic.name.starts_with('/') || topic.name.len() < 2 || topic.name.len() > bus::MAX_NAME {
                return Err(format!(
                    "topic '{}': write its full name, such as /scan",
                    topic.name
                ));
            }
            if !topics.insert(&topic.name) {
                return Err(format!("topic {} is listed twice", topic.name));
            }
            if !(1..=1024).contains(&topic.depth) {
                return Err(format!(
                    "topic {}: depth is {}; it must be 1 to 1024",
                    topic.name, topic.depth
                ));
            }
        }
        Ok(())
    }
}

impl Config {
    fn check_serial(&self) -> Result<(), String> {
        let radio = &self.radio;
        if radio.line.is_none() || radio.baud.is_none_or(|b| b < 300) {
            return Err(
                "a serial carrier needs `radio.line`, such as /dev/ttyUSB0, and `radio.baud`, at least 300"
                    .into(),
            );
        }
        if radio.bind.is_some() || self.keys.is_some() || radio.rate != 0 {
            return Err(
                "`radio.bind`, `radio.rate` and `keys` are not for a serial carrier: leave them out".into(),
            );
        }
        match self.peers.as_slice() {
            [PeerConfig { address: None, .. }] => Ok(()),
            [_] => Err("the peer at the other end of a serial line has no `address`: leave it out".into()),
            _ => Err("a serial line has one peer at its other end".into()),
        }
    }

    fn check_addresses(&self, kind: CarrierKind) -> Result<(), String> {
        let radio = &self.radio;
        let Some(bind) = radio.bind else {
            return Err("`radio.bind` is missing: the local address and port, such as 0.0.0.0:7400".into());
        };
        if radio.line.is_some() || radio.baud.is_some() {
            return Err("`radio.line` and `radio.baud` are for `radio.carrier: serial`".into());
        }
        if radio.rate == 0 {
            return Err("`radio.rate` is missing: the radio's bit rate, such as 6Mbit/s".into());
        }
        let mut addresses = BTreeSet::from([bind]);
        for peer in &self.peers {
            let Some(address) = peer.address else {
                return Err(format!(
                    "peer '{}' has no `address`, such as 192.168.1.7:7400",
                    peer.name
                ));
            };
            if !addresses.insert(address) {
                return Err(format!(
                    "the address {address} of peer '{}' is used twice",
                    peer.name
                ));
            }
            if address.is_ipv4() != bind.is_ipv4() {
                return Err(format!(
                    "peer '{}' and radio.bind must both be IPv4 or both IPv6",
                    peer.name
                ));
            }
        }
        if kind == CarrierKind::Quic {
            if self.keys.is_none() {
                return Err(
                    "the carrier quic needs `keys`: the folder that `ropewalk keys host` made".into(),
                );
            }
            for name in self.peers.iter().map(|p| &p.name).chain([&self.host]) {
                check_name(name).map_err(|e| e.to_string())?;
            }
            return Ok(());
        }
        match addresses.iter().find(|a| !a.ip().is_loopback()) {
            Some(address) if !radio.insecure_udp => Err(format!(
                "{address} is not on this host, and plain UDP neither encrypts nor checks who sends: give the host \
                 `keys` (`ropewalk keys --help`), or set `radio.insecure_udp: true` if the network is closed"
            )),
            _ => Ok(()),
        }
    }

    /// The airtime of datagrams over this radio, of which the carrier adds `overhead` bytes to each.
    pub(crate) fn airtime(&self, overhead: usize) -> proto::AirtimeModel {
        let overhead = u32::try_from(overhead).unwrap_or(u32::MAX);
        match (self.carrier(), self.radio.baud) {
            // Ten bits on the line for eight.
            (CarrierKind::Serial, Some(baud)) => {
                proto::AirtimeModel::bytes(u64::from(baud) * 8 / serial::BITS, overhead).with_gain(1.0)
            }
            _ => {
                let mut airtime = proto::AirtimeModel::wifi(self.radio.rate);
                // The model knows of IP and UDP.
                airtime.extra_bytes += overhead.saturating_sub(28);
                airtime
            }
        }
    }
}

fn syntax(error: &serde_saphyr::Error, place: &str) -> ConfigError {
    let place = match error.location() {
        Some(at) => format!("{place}:{}:{}", at.line(), at.column()),
        None => place.to_owned(),
    };
    // The library repeats the place and may draw the line; one line is asked for here.
    let text = error.without_snippet().to_string();
    let problem = text.lines().next().unwrap_or_default();
    let problem = problem.split(" at line ").next().unwrap_or(problem);
    ConfigError::Syntax {
        place,
        problem: problem.to_owned(),
    }
}

fn one() -> u8 {
    1
}

fn one_message() -> u16 {
    1
}

fn middle() -> u8 {
    50
}

fn queue_bytes() -> u64 {
    8 << 20
}

fn text<'de, D: Deserializer<'de>, T, E: std::fmt::Display>(
    d: D,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<T, D::Error> {
    parse(&String::deserialize(d)?).map_err(de::Error::custom)
}

fn bit_rate<'de, D: Deserializer<'de>>(d: D) -> Result<u64, D::Error> {
    text(d, quantity::bit_rate)
}

fn size<'de, D: Deserializer<'de>>(d: D) -> Result<u64, D::Error> {
    text(d, quantity::bytes)
}

fn maybe_duration<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Duration>, D::Error> {
    text(d, quantity::duration).map(Some)
}

fn maybe_frequency<'de, D: Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
    text(d, quantity::frequency).map(Some)
}

fn priority<'de, D: Deserializer<'de>>(d: D) -> Result<u8, D::Error> {
    let value = i64::deserialize(d)?;
    u8::try_from(value).ok().filter(|p| *p <= 127).ok_or_else(|| {
        de::Error::custom(format!(
            "priority {value}: it must be 0 to 127, higher goes first"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "
host: robot
radio: {bind: '127.0.0.1:7400', rate: 6Mbit/s}
peers:
  - {name: base, address: '127.0.0.1:7401'}
topics:
  - {name: /scan, priority: 100, direction: out, depth: 2, deadline: 100ms}
  - {name: /cmd_vel, direction: both, rate_limit: 10Hz}
";

    fn refusal(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "{from}");
        Config::parse(&GOOD.replacen(from, to, 1))
            .expect_err(to)
            .to_string()
    }

    #[test]
    fn reads_a_configuration_with_its_defaults() {
        let c = Config::parse(GOOD).expect("is good");
        assert_eq!(
            (c.radio.rate, c.radio.hops, c.radio.order),
            (6_000_000, 1, Order::Priority)
        );
        assert_eq!(c.topics[0].deadline, Some(Duration::from_millis(100)));
        assert_eq!(
            (c.topics[1].priority, c.topics[1].depth, c.topics[1].rate_limit),
            (50, 1, Some(10.0))
        );
        assert!(c.topics[1].direction.sends() && c.topics[1].direction.receives());
    }

    #[test]
    fn every_refusal_is_one_line_that_names_the_place_and_the_mend() {
        for (from, to, place, mend) in [
            ("6Mbit/s", "0Mbit/s", "configuration:3:", "6Mbit/s"),
            ("priority: 100", "priority: 200", "configuration:7:", "0 to 127"),
            ("direction: out", "direction: sideways", "configuration:7:", "out"),
            ("depth: 2", "depht: 2", "configuration:7:", "depht"),
            ("100ms", "soon", "configuration:7:", "250ms"),
            ("127.0.0.1:7400", "127.0.0.1", "configuration:3:", "address"),
            (
                "127.0.0.1:7401",
                "192.0.2.1:7401",
                "configuration",
                "insecure_udp",
            ),
            ("6Mbit/s", "6Mbit/s, carrier: quic", "configuration", "keys host"),
            (
                "6Mbit/s",
                "6Mbit/s, carrier: pigeon",
                "configuration:3:",
                "serial",
            ),
            (
                "6Mbit/s",
                "6Mbit/s, carrier: serial",
                "configuration",
                "radio.line",
            ),
            ("6Mbit/s", "6Mbit/s, baud: 9600", "configuration", "serial"),
            (", rate: 6Mbit/s", "", "configuration", "radio.rate"),
            ("bind: '127.0.0.1:7400', ", "", "configuration", "radio.bind"),
            (", address: '127.0.0.1:7401'", "", "configuration", "address"),
            (
                "address: '127.0.0.1:7401'",
                "address: '127.0.0.1:7401', allow: {publish: [scan]}",
                "configuration",
                "'scan'",
            ),
            (
                "address: '127.0.0.1:7401'",
                "address: '127.0.0.1:7401', allow: {listen: [/scan]}",
                "configuration:5:",
                "subscribe",
            ),
            (
                "host: robot",
                "host: Robot_1\nkeys: keys",
                "configuration",
                "lowercase",
            ),
            ("127.0.0.1:7401", "127.0.0.1:7400", "configuration", "used twice"),
            ("name: base", "name: robot", "configuration", "used twice"),
            ("/cmd_vel", "/scan", "configuration", "listed twice"),
            ("/scan", "scan", "configuration", "/scan"),
            ("depth: 2", "depth: 0", "configuration", "1 to 1024"),
            ("host: robot", "host: [robot", "configuration:", ""),
        ] {
            let error = refusal(from, to);
            assert!(error.starts_with(place), "{to}: {error}");
            assert!(error.contains(mend), "{to}: {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn keys_make_it_quic_and_a_line_serial() {
        let c = Config::parse(GOOD).expect("is good");
        assert_eq!(c.carrier(), CarrierKind::Udp);
        let away = GOOD.replace("127.0.0.1:7401", "192.0.2.1:7401");
        let c = Config::parse(&format!("keys: keys/robot{away}")).expect("is good");
        assert_eq!(c.carrier(), CarrierKind::Quic);
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("link.yaml");
        std::fs::write(&file, format!("keys: keys/robot{away}")).expect("writes");
        let c = Config::load(&file).expect("is good");
        assert_eq!(c.keys, Some(folder.path().join("keys/robot")));
        let serial = "
host: robot
radio: {carrier: serial, line: /dev/ttyUSB0, baud: 115200}
peers: [{name: base}]
";
        let c = Config::parse(serial).expect("is good");
        // 100 bytes and the framing at 11,520 bytes a second.
        let airtime = c.airtime(8).airtime(100, 1);
        assert_eq!(airtime.as_micros(), 9375, "{airtime:?}");
        for (from, to, mend) in [
            (
                "{name: base}",
                "{name: base, address: '127.0.0.1:1'}",
                "leave it out",
            ),
            ("{name: base}", "{name: base}, {name: other}", "one peer"),
            ("115200", "115200, bind: '127.0.0.1:1'", "leave them out"),
            ("115200", "110", "at least 300"),
        ] {
            let error = Config::parse(&serial.replace(from, to))
                .expect_err(to)
                .to_string();
            assert!(error.contains(mend), "{error}");
        }
    }

    #[test]
    fn a_missing_or_huge_file_is_named() {
        let error = Config::load(Path::new("/nonexistent/link.yaml"))
            .expect_err("missing")
            .to_string();
        assert!(error.contains("/nonexistent/link.yaml"), "{error}");
        assert!(Config::load(Path::new("/")).is_err());
    }
}
