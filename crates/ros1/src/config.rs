//! The configuration of a bridge, in YAML.
//!
//! ```yaml
//! master: http://localhost:11311        # default: ROS_MASTER_URI
//! node: /ropewalk
//! topics:
//!   - {name: /scan, direction: to_bus, priority: 100}
//!   - {name: /cmd_vel, direction: to_ros}
//!   - {name: '/camera/*', direction: to_bus, bus: '/front/*', rate_limit: 5Hz}
//!   - {name: /map, direction: both, latched: true}
//!   - {name: /tf, direction: to_bus, tf: {frames: [odom, base_link], rate: 10Hz}}
//!   - {name: /rosout, direction: to_bus, level: warn}
//! services:
//!   - {name: /arm/grasp, direction: to_bus, type: my_msgs/Grasp}
//! definitions: [src/my_msgs]            # folders of .msg and .srv files, besides ROS_PACKAGE_PATH and /usr/share
//! ```

pub use bridge::{ConfigError, Direction, ServiceRule, TfRule, TopicRule};

use crate::net::HostPort;
use bridge::{Rules, problem_at, unplaced};
use serde::Deserialize;
use serde_saphyr::Spanned;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Default address of the master.
const MASTER: &str = "http://localhost:11311";
/// Default length limit of a message.
const MAX_MESSAGE: u64 = 64 << 20;
/// Default memory limits of an unknown peer and of a known one.
const PEER_MEMORY: u64 = 256 << 20;
const KNOWN_MEMORY: u64 = 2 << 30;

/// Configuration of a bridge: one ROS master, and the topics and services that cross.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The master. Default: the environment's `ROS_MASTER_URI`, else `http://localhost:11311`.
    #[serde(default)]
    pub master: Option<String>,
    /// Name of the bridge as a ROS node; unique on its master. Default `/ropewalk`.
    #[serde(default)]
    pub node: Option<String>,
    /// Address at which nodes reach the bridge, `0.0.0.0` for all of this host. Default: that of `ROS_HOSTNAME` or
    /// `ROS_IP`, else loopback, which other hosts cannot reach.
    #[serde(default)]
    pub listen: Option<IpAddr>,
    /// Longest message accepted from a ROS node, in bytes. Default 64 MiB.
    #[serde(default, deserialize_with = "bridge::maybe_size")]
    pub max_message: Option<u64>,
    /// Addresses of known hosts, in addition to this host and the master's. Each has a share of connections and memory
    /// of its own, and may end the bridge (`rosnode kill`). All other hosts are unknown and share what is left.
    #[serde(default)]
    pub peers: Vec<IpAddr>,
    /// Maximum number of bytes for an unknown host's messages and calls in progress, and its topics on the bus; all
    /// unknown hosts together may take four times as much. Default 256 MiB.
    #[serde(default, deserialize_with = "bridge::maybe_size")]
    pub peer_memory: Option<u64>,
    /// The same for this host, the master's and each of `peers`. Default 2 GiB.
    #[serde(default, deserialize_with = "bridge::maybe_size")]
    pub known_memory: Option<u64>,
    /// Folders with packages, or packages' own folders, relative to the configuration's folder.
    #[serde(default)]
    pub definitions: Vec<PathBuf>,
    /// The topics that cross; no others do.
    #[serde(default)]
    pub topics: Vec<Spanned<TopicRule>>,
    /// The services that cross; no others do.
    #[serde(default)]
    pub services: Vec<Spanned<ServiceRule>>,
}

impl Default for Config {
    /// A configuration that bridges nothing.
    fn default() -> Self {
        Config {
            master: None,
            node: None,
            listen: None,
            max_message: None,
            peers: Vec::new(),
            peer_memory: None,
            known_memory: None,
            definitions: Vec::new(),
            topics: Vec::new(),
            services: Vec::new(),
        }
    }
}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`ConfigError`], with line and column.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        let text = bridge::read_config(path)?;
        let mut config = Config::parse(&text, &path.display().to_string())?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for definitions in &mut config.definitions {
            *definitions = folder.join(&*definitions);
        }
        Ok(config)
    }

    /// Reads and checks a text; errors refer to it as `place`.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse(text: &str, place: &str) -> Result<Config, ConfigError> {
        let config: Config = bridge::parse_config(text, place, "ropewalk ros1")?;
        config.check_at(place)?;
        Ok(config)
    }

    /// Checks a configuration built in code.
    ///
    /// # Errors
    /// [`ConfigError`], without line and column.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_at("the configuration")
    }

    fn check_at(&self, place: &str) -> Result<(), ConfigError> {
        let wrong = |problem: String| Err(problem_at(None, place, problem));
        if let Err(problem) = self.master_address() {
            return wrong(problem);
        }
        if let Err(problem) = bridge::check(self.node_name().as_str(), false) {
            return wrong(format!("node: {problem}"));
        }
        if let Err(problem) = self.max_message().valid() {
            return wrong(problem);
        }
        for (key, bytes) in [
            ("peer_memory", self.peer_memory()),
            ("known_memory", self.known_memory()),
        ] {
            if !(1 << 20..=1 << 40).contains(&bytes) {
                return wrong(format!("{key}: must be 1MiB to 1TiB"));
            }
        }
        self.rules().check(place)?;
        if self.rules().is_empty() {
            return wrong(
                "nothing is bridged: list `topics` or `services`; `ropewalk ros1 --help` shows an example"
                    .into(),
            );
        }
        Ok(())
    }

    /// Adds a rule for a topic.
    #[must_use]
    pub fn with_topic(mut self, rule: TopicRule) -> Self {
        self.topics.push(unplaced(rule));
        self
    }

    /// Adds a rule for a service.
    #[must_use]
    pub fn with_service(mut self, rule: ServiceRule) -> Self {
        self.services.push(unplaced(rule));
        self
    }

    /// Returns its rules.
    pub(crate) fn rules(&self) -> Rules<'_> {
        Rules {
            topics: &self.topics,
            services: &self.services,
        }
    }

    /// Returns the master's address.
    pub(crate) fn master_address(&self) -> Result<HostPort, String> {
        let environment = std::env::var("ROS_MASTER_URI").ok().filter(|uri| !uri.is_empty());
        let uri = self.master.clone().or(environment);
        let uri = uri.as_deref().unwrap_or(MASTER);
        HostPort::parse(uri, "http").ok_or_else(|| {
            format!("master: '{uri}' is not the address of a master: write for example {MASTER}")
        })
    }

    /// Returns the node's full name.
    pub(crate) fn node_name(&self) -> String {
        let name = self.node.as_deref().unwrap_or("ropewalk");
        format!("/{}", name.trim_start_matches('/'))
    }

    /// Longest message, unless a rule sets another limit.
    pub(crate) fn max_message(&self) -> MaxMessage {
        MaxMessage(self.max_message.unwrap_or(MAX_MESSAGE))
    }

    /// Longest message of a rule.
    pub(crate) fn max_message_of(&self, rule: Option<u64>) -> MaxMessage {
        rule.map_or(self.max_message(), MaxMessage)
    }

    pub(crate) fn peer_memory(&self) -> u64 {
        self.peer_memory.unwrap_or(PEER_MEMORY)
    }

    pub(crate) fn known_memory(&self) -> u64 {
        self.known_memory.unwrap_or(KNOWN_MEMORY)
    }
}

/// Maximum length of a message in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaxMessage(pub(crate) u64);

impl MaxMessage {
    /// Checks that a configuration may set this limit.
    pub(crate) fn valid(self) -> Result<(), String> {
        let good = bridge::MAX_MESSAGE.contains(&self.0);
        good.then_some(())
            .ok_or_else(|| "max_message: must be 1KiB to 1GiB".into())
    }

    /// Returns the length that a peer announced, if it is within the limit.
    pub(crate) fn check(self, len: u32) -> Result<usize, TooLong> {
        let fits = u64::from(len) <= self.0;
        let too_long = TooLong { len, most: self.0 };
        usize::try_from(len).ok().filter(|_| fits).ok_or(too_long)
    }
}

/// A message that exceeds the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of {len} bytes, more than the limit of {most}: raise `max_message` if this is intended")]
pub(crate) struct TooLong {
    len: u32,
    most: u64,
}

#[cfg(test)]
mod tests;
