#![forbid(unsafe_code)]
//! A bridge between nodes of ROS 2 that stay on DDS and the bus: topics, services and actions, both ways, by rules.
//!
//! It is a participant of DDS by an implementation of its own (the crate `rtps`), so that nothing of ROS is needed to build or to run it. Nodes
//! over Fast DDS and over Cyclone DDS see the bus's nodes as their own, and those the domain's: names, types, qualities of service.
//! What the messages mean is `schema`'s work; what crosses to other hosts is `link`'s.
//!
//! Nothing here is trusted: what a participant makes the bridge hold has a budget. DDS knows no identities without its security
//! extensions, which are not here: whoever reaches the domain may publish. By default that is this host only ([`Config::range`]).
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
mod desk;
mod early;
#[doc(hidden)]
pub mod fuzzing;
mod graph;
mod hub;
mod incoming;
mod offered;
mod outgoing;
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
