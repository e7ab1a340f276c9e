//! The configuration of a bridge, in YAML.
//!
//! ```yaml
//! domain: 0                             # default: ROS_DOMAIN_ID, else 0
//! range: localhost                      # or subnet, off; default: ROS_AUTOMATIC_DISCOVERY_RANGE, else localhost
//! topics:
//!   - {name: /scan, direction: to_bus, priority: 100}
//!   - {name: /cmd_vel, direction: to_ros}
//!   - {name: '/camera/*', direction: to_bus, bus: '/front/*', rate_limit: 5Hz}
//!   - {name: /tf, direction: to_bus, tf: {frames: [odom, base_link], rate: 10Hz}}
//!   - {name: /rosout, direction: to_bus, level: warn}
//! services:
//!   - {name: /arm/grasp, direction: to_bus}
//! actions:
//!   - {name: /navigate_to_pose, direction: to_bus}
//! wire: dds                             # or zenoh, if built with it, and then
//! # zenoh: {connect: [tcp/10.0.0.2:7447], config: zenoh.json5}
//! definitions: [src/my_msgs]            # folders of .msg, .srv and .action files, in addition to AMENT_PREFIX_PATH
//! ```

pub use bridge::{ConfigError, Direction, ServiceRule, TfRule, TopicRule};

use bridge::{Rules, problem_at, unplaced};
use serde::Deserialize;
use serde_saphyr::Spanned;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Highest domain that has ports.
const MAX_DOMAIN: u32 = 232;
/// Default of `participant_memory`.
const PARTICIPANT_MEMORY: u64 = 1 << 30;
/// Default timeout of a call for an action's result, which lasts as long as the goal.
const RESULT: Duration = Duration::from_secs(24 * 3600);
/// The services and topics of an action (ROS 2 design, "Actions").
const ACTION_SERVICES: [&str; 3] = ["send_goal", "cancel_goal", "get_result"];
const ACTION_TOPICS: [&str; 2] = ["feedback", "status"];

/// Configuration of a bridge: one domain, and the topics, services and actions that cross.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The domain. Default: the environment's `ROS_DOMAIN_ID`, else 0.
    pub domain: Option<u32>,
    /// Middleware of the nodes. Default: DDS.
    pub wire: Middleware,
    /// With `wire: zenoh`, the routers to connect to. Default: a router on this host.
    pub zenoh: Option<ZenohConfig>,
    /// Where to look for nodes. Default: the environment's `ROS_AUTOMATIC_DISCOVERY_RANGE`, else this host only.
    pub range: Option<Range>,
    /// Hosts on which to look for nodes, wherever they are. Default: the environment's `ROS_STATIC_PEERS`.
    pub static_peers: Option<Vec<Ipv4Addr>>,
    /// With `range: subnet`, the addresses of this host's interfaces to use. Default: all.
    pub interfaces: Vec<Ipv4Addr>,
    /// Name of the bridge as a ROS node. Default `/ropewalk`.
    pub node: Option<String>,
    /// Longest message accepted from a node, in bytes. Default 64 MiB.
    #[serde(deserialize_with = "bridge::maybe_size")]
    pub max_message: Option<u64>,
    /// Maximum number of bytes that the messages of one participant (usually a process) may take on the bus. Default 1
    /// GiB.
    #[serde(deserialize_with = "bridge::maybe_size")]
    pub participant_memory: Option<u64>,
    /// Folders with packages, or packages' own folders, relative to the configuration's folder.
    pub definitions: Vec<PathBuf>,
    /// Whether to carry also topics and services of other Ropewalk bridges of the domain. Without it, a bridge carries
    /// only those of nodes. Set it if nothing else connects this bus with theirs: no link, and no other bridge.
    pub from_bridges: bool,
    /// The topics that cross; no others do.
    pub topics: Vec<Spanned<TopicRule>>,
    /// The services that cross; no others do.
    pub services: Vec<Spanned<ServiceRule>>,
    /// The actions that cross: each stands for its three services and two topics.
    pub actions: Vec<Spanned<ActionRule>>,
}

/// A middleware of ROS 2 nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Middleware {
    /// DDS, as used by rmw_fastrtps and rmw_cyclonedds.
    #[default]
    Dds,
    /// Zenoh, as used by rmw_zenoh. Only if this crate is built with the feature `zenoh`.
    Zenoh,
}

/// How a bridge to nodes of rmw_zenoh connects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ZenohConfig {
    /// Endpoints of routers. Default: those of `config`, else `tcp/localhost:7447`.
    pub connect: Vec<String>,
    /// A configuration file of Zenoh (JSON5), for certificates and access control for example, relative to the
    /// configuration's folder. Default: that of rmw_zenoh.
    pub config: Option<PathBuf>,
}

impl ZenohConfig {
    fn check(&self) -> Result<(), String> {
        let is_endpoint = |e: &&String| {
            e.split_once('/')
                .is_some_and(|(kind, at)| !kind.is_empty() && at.contains(':'))
        };
        match self.connect.iter().find(|e| !is_endpoint(e)) {
            Some(other) => Err(format!(
                "zenoh.connect: {other:?} is not an endpoint: write one like tcp/10.0.0.2:7447"
            )),
            None => Ok(()),
        }
    }
}

/// Where to look for nodes, as `ROS_AUTOMATIC_DISCOVERY_RANGE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Range {
    /// Only on named hosts.
    Off,
    /// On this host.
    #[default]
    Localhost,
    /// On the networks of this host's interfaces.
    Subnet,
}

/// How an action crosses.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionRule {
    /// The action's full name in ROS.
    pub name: String,
    /// Where it is served: `to_bus` offers an action of ROS on the bus, `to_ros` one of the bus in ROS.
    pub direction: Direction,
    /// Its name on the bus. Default: the same.
    #[serde(default)]
    pub bus: Option<String>,
}

impl ActionRule {
    /// A rule with the same name on the bus.
    pub fn new(name: impl Into<String>, direction: Direction) -> Self {
        ActionRule {
            name: name.into(),
            direction,
            bus: None,
        }
    }

    fn check(&self) -> Result<(), String> {
        let bus = self.bus.as_deref().unwrap_or(&self.name);
        for name in [&self.name, bus] {
            if bridge::is_pattern(name) {
                return Err(format!(
                    "{name}: an action needs a full name: for everything below a name, list `topics` and `services` by pattern"
                ));
            }
            bridge::check(name, false)?;
        }
        if self.direction == Direction::Both {
            return Err(format!(
                "{}: an action is served on one side: set its direction to to_bus or to_ros",
                self.name
            ));
        }
        Ok(())
    }

    fn part(&self, part: &str) -> (String, Option<String>) {
        let of = |name: &str| format!("{name}/_action/{part}");
        (of(&self.name), self.bus.as_deref().map(of))
    }

    fn services(&self) -> impl Iterator<Item = ServiceRule> {
        ACTION_SERVICES
            .map(|part| {
                let (name, bus) = self.part(part);
                let mut rule = ServiceRule::new(name, self.direction);
                rule.bus = bus;
                rule
            })
            .into_iter()
    }

    fn topics(&self) -> impl Iterator<Item = TopicRule> {
        ACTION_TOPICS
            .map(|part| {
                let (name, bus) = self.part(part);
                let mut rule = TopicRule::new(name, self.direction);
                rule.bus = bus;
                rule
            })
            .into_iter()
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
        let own = config.zenoh.as_mut().and_then(|z| z.config.as_mut());
        own.into_iter().for_each(|own| *own = folder.join(&*own));
        Ok(config)
    }

    /// Reads and checks a text; errors refer to it as `place`.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse(text: &str, place: &str) -> Result<Config, ConfigError> {
        let config: Config = bridge::parse_config(text, place, "ropewalk ros2")?;
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
        let reached = match self.wire {
            Middleware::Dds => self.check_dds(),
            Middleware::Zenoh => self.check_zenoh(),
        };
        if let Err(problem) = reached {
            return wrong(problem);
        }
        if let Err(problem) = bridge::check(&self.node_name(), false) {
            return wrong(format!("node: {problem}"));
        }
        if !bridge::MAX_MESSAGE.contains(&self.max_message()) {
            return wrong("max_message: must be 1KiB to 1GiB".into());
        }
        if !(1 << 20..=1 << 40).contains(&self.participant_memory()) {
            return wrong("participant_memory: must be 1MiB to 1TiB".into());
        }
        for rule in &self.actions {
            if let Err(problem) = rule.value.check() {
                return Err(problem_at(Some(rule.referenced), place, problem));
            }
        }
        let (topics, services) = self.whole();
        let rules = Rules {
            topics: &topics,
            services: &services,
        };
        rules.check(place)?;
        if rules.is_empty() {
            return wrong(
                "nothing is bridged: list `topics`, `services` or `actions`; `ropewalk ros2 --help` shows an example".into(),
            );
        }
        Ok(())
    }

    fn check_dds(&self) -> Result<(), String> {
        if self.zenoh.is_some() {
            return Err("zenoh: only allowed with `wire: zenoh`".into());
        }
        self.domain()?;
        self.range()?;
        self.peers().map(drop)
    }

    fn check_zenoh(&self) -> Result<(), String> {
        if !cfg!(feature = "zenoh") {
            return Err(
                "wire: zenoh: this program is built without Zenoh: build it with `--features zenoh`".into(),
            );
        }
        if self.range.is_some() || self.static_peers.is_some() || !self.interfaces.is_empty() {
            return Err(
                "range, static_peers and interfaces are only for DDS: with `wire: zenoh`, name routers in `zenoh: {connect: [...]}`".into(),
            );
        }
        self.domain()?;
        self.zenoh.as_ref().map_or(Ok(()), ZenohConfig::check)
    }

    /// Returns all rules, including those of actions.
    pub(crate) fn whole(&self) -> (Vec<Spanned<TopicRule>>, Vec<Spanned<ServiceRule>>) {
        let (mut topics, mut services) = (self.topics.clone(), self.services.clone());
        for action in &self.actions {
            let at = (action.referenced, action.defined);
            topics.extend(action.value.topics().map(|r| Spanned::new(r, at.0, at.1)));
            services.extend(action.value.services().map(|r| Spanned::new(r, at.0, at.1)));
        }
        (topics, services)
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

    /// Adds a rule for an action.
    #[must_use]
    pub fn with_action(mut self, rule: ActionRule) -> Self {
        self.actions.push(unplaced(rule));
        self
    }

    pub(crate) fn domain(&self) -> Result<u32, String> {
        let domain = match self.domain {
            Some(domain) => domain,
            None => match variable("ROS_DOMAIN_ID") {
                Some(text) => text
                    .parse()
                    .map_err(|_| format!("ROS_DOMAIN_ID is {text:?}: must be a number"))?,
                None => 0,
            },
        };
        (domain <= MAX_DOMAIN)
            .then_some(domain)
            .ok_or_else(|| format!("domain: {domain} has no ports; domains are 0 to {MAX_DOMAIN}"))
    }

    /// Returns where to look for nodes.
    pub(crate) fn range(&self) -> Result<Range, String> {
        if let Some(range) = self.range {
            return Ok(range);
        }
        let Some(text) = variable("ROS_AUTOMATIC_DISCOVERY_RANGE") else {
            return Ok(Range::Localhost);
        };
        match text.to_ascii_uppercase().as_str() {
            "OFF" => Ok(Range::Off),
            "LOCALHOST" => Ok(Range::Localhost),
            "SUBNET" | "SYSTEM_DEFAULT" => Ok(Range::Subnet),
            _ => Err(format!(
                "ROS_AUTOMATIC_DISCOVERY_RANGE is {text:?}: must be OFF, LOCALHOST, SUBNET or SYSTEM_DEFAULT"
            )),
        }
    }

    /// Returns the hosts on which to look for nodes, wherever they are.
    pub(crate) fn peers(&self) -> Result<Vec<Ipv4Addr>, String> {
        if let Some(peers) = &self.static_peers {
            return Ok(peers.clone());
        }
        let text = variable("ROS_STATIC_PEERS").unwrap_or_default();
        let names = text.split(';').map(str::trim).filter(|n| !n.is_empty());
        let address = |name: &str| match name.parse() {
            Ok(IpAddr::V4(address)) => Ok(address),
            _ => Err(format!(
                "ROS_STATIC_PEERS names {name:?}: only IPv4 addresses are allowed"
            )),
        };
        names.map(address).collect()
    }

    /// Returns the node's full name.
    pub(crate) fn node_name(&self) -> String {
        let name = self.node.as_deref().unwrap_or("ropewalk");
        format!("/{}", name.trim_start_matches('/'))
    }

    pub(crate) fn max_message(&self) -> u64 {
        self.max_message.unwrap_or(64 << 20)
    }

    pub(crate) fn participant_memory(&self) -> u64 {
        self.participant_memory.unwrap_or(PARTICIPANT_MEMORY)
    }
}

/// Whether the bridge always subscribes to this topic. A client of an action sends its goal as soon as it sees the
/// server, and feedback that comes before the bridge subscribes would be lost.
pub(crate) fn is_feedback(topic: &str) -> bool {
    topic.ends_with("/_action/feedback")
}

/// Timeout of a service call.
pub(crate) fn timeout(rule: &ServiceRule, name: &str) -> Duration {
    match rule.timeout {
        None if name.ends_with("/_action/get_result") => RESULT,
        _ => rule.timeout(),
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

#[cfg(test)]
mod tests;
