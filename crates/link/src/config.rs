//! The link's configuration, as written in YAML.
//!
//! ```yaml
//! host: robot                 # unique among the peers
//! radio:
//!   bind: 127.0.0.1:7400      # anything but loopback needs `insecure_udp: true`
//!   rate: 6Mbit/s             # the radio's bit rate, not its goodput
//!   hops: 1                   # how often a datagram is sent on the way to the peer
//! peers:
//!   - {name: base, address: 127.0.0.1:7401}
//! topics:
//!   - {name: /scan, priority: 100, direction: out, depth: 2, deadline: 100ms}
//!   - {name: /cmd_vel, priority: 120, direction: in}
//!   - {name: /camera/image, priority: 10, direction: out, rate_limit: 5Hz}
//! ```

use crate::quantity;
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
    /// The local address.
    pub bind: SocketAddr,
    /// Bit rate in bit/s, as the radio's standard names it (802.11a/g OFDM: 6 to 54 Mbit/s).
    #[serde(deserialize_with = "bit_rate")]
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
    /// Its name, for messages and statistics.
    pub name: String,
    /// Where its link listens.
    pub address: SocketAddr,
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
        Self::named(&text, &path.display().to_string())
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
        let outside = std::iter::once(radio.bind).chain(self.peers.iter().map(|p| p.address));
        if let Some(address) = outside
            .filter(|a| !a.ip().is_loopback())
            .find(|_| !radio.insecure_udp)
        {
            return Err(format!(
                "{address} is not on this host, and plain UDP neither encrypts nor checks who sends: \
                 set `radio.insecure_udp: true` if the network is closed"
            ));
        }
        let mut names = BTreeSet::from([self.host.as_str()]);
        let mut addresses = BTreeSet::from([radio.bind]);
        for peer in &self.peers {
            if peer.name.is_empty() || !names.insert(&peer.name) {
                return Err(format!("the peer name '{}' is empty or used twice", peer.name));
            }
            if !addresses.insert(peer.address) {
                return Err(format!(
                    "the address {} of peer '{}' is used twice",
                    peer.address, peer.name
                ));
            }
            if peer.address.is_ipv4() != radio.bind.is_ipv4() {
                return Err(format!(
                    "peer '{}' and radio.bind must both be IPv4 or both IPv6",
                    peer.name
                ));
            }
        }
        if self.host.is_empty() || self.peers.is_empty() {
            return Err("a link needs a `host` name and at least one entry under `peers`".into());
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
    fn a_missing_or_huge_file_is_named() {
        let error = Config::load(Path::new("/nonexistent/link.yaml"))
            .expect_err("missing")
            .to_string();
        assert!(error.contains("/nonexistent/link.yaml"), "{error}");
        assert!(Config::load(Path::new("/")).is_err());
    }
}
