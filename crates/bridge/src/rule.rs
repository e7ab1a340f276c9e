//! Rules by which topics and services cross.

use crate::TfRule;
use crate::name;
use crate::read::{maybe_duration, maybe_frequency, maybe_level, maybe_size};
use serde::Deserialize;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Range of a configured message limit, in bytes.
pub const MAX_MESSAGE: RangeInclusive<u64> = 1024..=1 << 30;

/// Default timeout of a call.
const PATIENCE: Duration = Duration::from_secs(30);
/// Default number of messages that wait for one slow listener.
const DEPTH: u32 = 16;
/// The highest priority of a link.
const MAX_PRIORITY: u8 = 127;

/// The direction in which something crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From ROS nodes, which publish or serve it, to the bus.
    ToBus,
    /// From the bus, which publishes or serves it, to ROS.
    ToRos,
    /// Both directions; topics only.
    Both,
}

impl Direction {
    /// Returns whether it leads to the bus.
    pub fn is_to_bus(self) -> bool {
        self != Direction::ToRos
    }

    /// Returns whether it leads to ROS.
    pub fn is_to_ros(self) -> bool {
        self != Direction::ToBus
    }
}

/// How a topic crosses, or all topics below a name.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopicRule {
    /// The topic's full name in ROS. A name that ends with `/*` matches all topics below it, except
    /// `/rosout`, `/rosout_agg` and names that begin with an underscore. An exact name takes precedence over
    /// patterns, and a longer pattern over a shorter one.
    pub name: String,
    /// The direction.
    pub direction: Direction,
    /// Its name on the bus, with `/*` at the end if `name` has it. Default: the same.
    #[serde(default)]
    pub bus: Option<String>,
    /// The required type. Default: the publishers' type.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    /// The priority that its messages request from links (`publisher_priority`), 0 to 127. Only to the bus.
    #[serde(default)]
    pub priority: Option<u8>,
    /// Most messages per second that cross; the others are dropped. Default: all.
    #[serde(default, deserialize_with = "maybe_frequency")]
    pub rate_limit: Option<f64>,
    /// The longest message of this topic to the bus, in bytes. Default: the bridge's `max_message`.
    #[serde(default, deserialize_with = "maybe_size")]
    pub max_message: Option<u64>,
    /// Number of messages that may wait for one slow listener; a newer one replaces the oldest. Default 16.
    #[serde(default)]
    pub depth: Option<u32>,
    /// Whether late joiners get the last message of each publisher. Default: as the publishers do.
    #[serde(default)]
    pub latched: Option<bool>,
    /// Which transforms cross; for `tf2_msgs/TFMessage` and `tf/tfMessage`.
    #[serde(default)]
    pub tf: Option<TfRule>,
    /// The lowest level that crosses; for `rosgraph_msgs/Log` and `rcl_interfaces/msg/Log`.
    #[serde(default, deserialize_with = "maybe_level")]
    pub level: Option<i128>,
}

/// How a service crosses, or all services below a name.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceRule {
    /// The service's full name in ROS, or a name that ends with `/*`.
    pub name: String,
    /// The direction in which it is offered: with `to_bus` a ROS service is offered on the bus, with `to_ros`
    /// a service of the bus in ROS.
    pub direction: Direction,
    /// Its name on the bus. Default: the same.
    #[serde(default)]
    pub bus: Option<String>,
    /// The required type. Default: the server's type.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    /// The longest message of this service, in bytes, for requests and replies. Default: the bridge's
    /// `max_message`.
    #[serde(default, deserialize_with = "maybe_size")]
    pub max_message: Option<u64>,
    /// How long a call waits for its reply. Default 30 s; a caller on the bus may set a shorter time.
    #[serde(default, deserialize_with = "maybe_duration")]
    pub timeout: Option<Duration>,
}

impl TopicRule {
    /// A rule with defaults for all but name and direction.
    pub fn new(name: impl Into<String>, direction: Direction) -> Self {
        TopicRule {
            name: name.into(),
            direction,
            bus: None,
            kind: None,
            priority: None,
            rate_limit: None,
            max_message: None,
            depth: None,
            latched: None,
            tf: None,
            level: None,
        }
    }

    /// The name or pattern on the bus.
    pub fn bus_name(&self) -> &str {
        self.bus.as_deref().unwrap_or(&self.name)
    }

    /// Number of messages that may wait for one slow listener.
    pub fn depth(&self) -> u32 {
        self.depth.unwrap_or(DEPTH)
    }

    /// Why two rules contradict each other: a ROS name maps to one name on the bus, and towards ROS the
    /// mapping is one to one.
    pub fn clash(&self, other: &TopicRule) -> Option<String> {
        let both = |leads: fn(Direction) -> bool| leads(self.direction) && leads(other.direction);
        let (to_bus, to_ros) = (both(Direction::is_to_bus), both(Direction::is_to_ros));
        if self.name == other.name && (to_bus || to_ros) {
            return Some(format!("{} is listed twice: keep one", self.name));
        }
        (to_ros && self.bus_name() == other.bus_name()).then(|| {
            format!(
                "{} of the bus would become {} and {}: keep one",
                self.bus_name(),
                self.name,
                other.name
            )
        })
    }

    /// Checks the values.
    ///
    /// # Errors
    /// What is wrong, and what to write.
    pub fn check(&self) -> Result<(), String> {
        check_pair(&self.name, self.bus_name())?;
        if let Some(priority) = self.priority.filter(|p| *p > MAX_PRIORITY) {
            return Err(format!(
                "priority {priority}: it must be 0 to {MAX_PRIORITY}, higher goes first"
            ));
        }
        if self.priority.is_some() && !self.direction.is_to_bus() {
            return Err("priority: only topics to the bus have one, ROS has none: leave it out".into());
        }
        if self.rate_limit.is_some_and(|hz| hz <= 0.0) {
            return Err("rate_limit: it must be more than 0Hz".into());
        }
        check_length(self.max_message)?;
        if !(1..=1024).contains(&self.depth()) {
            return Err(format!("depth is {}; it must be 1 to 1024", self.depth()));
        }
        if self.tf.is_some() && self.level.is_some() {
            return Err("`tf` is for transforms and `level` for the log: keep only one of them".into());
        }
        let rates = self.tf.iter().flat_map(|tf| tf.rates.values().chain(&tf.rate));
        if rates.into_iter().any(|hz| *hz <= 0.0) {
            return Err(
                "tf: rates must be more than 0Hz; to stop a frame from crossing, leave it out of `frames`"
                    .into(),
            );
        }
        Ok(())
    }
}

impl ServiceRule {
    /// A rule with defaults for all but name and direction.
    pub fn new(name: impl Into<String>, direction: Direction) -> Self {
        ServiceRule {
            name: name.into(),
            direction,
            bus: None,
            kind: None,
            max_message: None,
            timeout: None,
        }
    }

    /// The name or pattern on the bus.
    pub fn bus_name(&self) -> &str {
        self.bus.as_deref().unwrap_or(&self.name)
    }

    /// How long a call waits for its reply.
    pub fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(PATIENCE)
    }

    /// Checks the values.
    ///
    /// # Errors
    /// What is wrong, and what to write.
    pub fn check(&self) -> Result<(), String> {
        check_pair(&self.name, self.bus_name())?;
        if self.direction == Direction::Both {
            return Err(format!(
                "{}: a service is served on one side: write to_bus or to_ros for its direction",
                self.name
            ));
        }
        check_length(self.max_message)?;
        if self.timeout().is_zero() || self.timeout() > Duration::from_secs(3600) {
            return Err("timeout: it must be more than 0 s and at most an hour".into());
        }
        Ok(())
    }
}

fn check_pair(ros: &str, bus: &str) -> Result<(), String> {
    name::check(ros, true)?;
    name::check(bus, true)?;
    if ros.ends_with("/*") != bus.ends_with("/*") {
        return Err(format!("{ros} and {bus}: both or neither must end with /*"));
    }
    Ok(())
}

fn check_length(max_message: Option<u64>) -> Result<(), String> {
    let good = max_message.is_none_or(|m| MAX_MESSAGE.contains(&m));
    good.then_some(())
        .ok_or_else(|| "max_message: it must be 1KiB to 1GiB".into())
}
