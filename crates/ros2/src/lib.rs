#![forbid(unsafe_code)]
//! A bridge between nodes of ROS 2 that stay on DDS and the bus: topics, services and actions, both ways, by rules.
//!
//! It is a DDS participant with an implementation of its own (the crate `rtps`), so building and running it needs
//! nothing of ROS. Nodes over Fast DDS and Cyclone DDS see the bus's nodes like their own, and the bus's nodes see the
//! domain's: names, types, qualities of service. The crate `schema` interprets messages; the crate `link` takes them to
//! other hosts.
//!
//! The bridge trusts no participant: what a participant makes the bridge hold has a budget. Without DDS' security
//! extensions, which this crate lacks, DDS has no identities: anyone who can reach the domain may publish. By default
//! that is this host only (`range` in its configuration).
//!
//! ```no_run
//! use ros2::{Bridge, Config, Direction, TopicRule};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::default().with_topic(TopicRule::new("/scan", Direction::ToBus));
//! let bridge = Bridge::open(config, bus::BusConfig::from_env()?)?;
//! let handle = bridge.handle(); // stops it, from any thread
//! bridge.run()?;
//! # drop(handle);
//! # Ok(())
//! # }
//! ```

mod bridging;
mod budget;
mod called;
mod config;
mod dds;
mod definitions;
mod early;
#[doc(hidden)]
pub mod fuzzing;
mod graph;
mod hub;
mod incoming;
mod offered;
mod outgoing;
mod routes;
mod services;
mod status;
mod topics;
mod troubles;
mod types;
mod waiting;
mod wire;
#[doc(hidden)]
pub mod zenoh;

pub use ::bridge::{Flow, ServiceStatus};
pub use bridging::{Bridge, BridgeError, Handle};
pub use config::{
    ActionRule, Config, ConfigError, Direction, Middleware, Range, ServiceRule, TfRule, TopicRule,
    ZenohConfig,
};
pub use status::Status;
