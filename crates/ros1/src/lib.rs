#![forbid(unsafe_code)]
//! A bridge between a ROS 1 graph and the bus: topics and services, both ways, by rules.
//!
//! It is a ROS node of its own making: the master's and the nodes' XML-RPC, TCPROS, connection headers and services are spoken
//! here, so that nothing of ROS is needed to build or to run it. A message that comes from ROS is written once, from the
//! socket into a block of the bus (where its type has one long array; else once more in between), and one that goes into
//! ROS is sent from the block. What the messages mean is `schema`'s work; what crosses to other hosts is `link`'s.
//!
//! Whoever connects has a thread of its own, so that who stays silent blocks nobody. Nothing here is trusted: every length is
//! bounded, and memory grows with what has come, not with what is promised. ROS 1 itself knows no identities: whoever
//! reaches the master or a node may publish. By default the bridge is reached from this host only ([`Config::listen`]).
//!
//! ```no_run
//! use ros1::{Bridge, Config, Direction, TopicRule};
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

mod address;
mod body;
mod bridge;
mod called;
mod config;
#[doc(hidden)]
pub mod fuzzing;
mod header;
mod http;
mod hub;
pub mod import;
mod listener;
mod master;
mod net;
mod offered;
mod peers;
mod publication;
mod slave;
mod status;
mod subscription;
mod types;
mod xmlrpc;

pub use ::bridge::{Flow, ServiceStatus};
pub use bridge::{Bridge, BridgeError, Handle};
pub use config::{Config, ConfigError, Direction, ServiceRule, TfRule, TopicRule};
pub use status::Status;
