#![forbid(unsafe_code)]
//! A bridge between a ROS 1 graph and the bus: topics and services, both ways, by rules.
//!
//! It is a ROS node with an implementation of its own: it speaks XML-RPC with the master and nodes, TCPROS, connection
//! headers and services, so building and running it needs nothing of ROS. A message from ROS is written once, from the
//! socket into a block of the bus (if its type has one long array; otherwise with one intermediate copy). A message
//! into ROS is sent from its block. The crate `schema` interprets messages; the crate `link` takes them to other hosts.
//!
//! Each connection has a thread of its own, so a silent peer blocks nobody. The bridge trusts no peer: every length is
//! bounded, and memory grows with what has arrived, not with what was announced. ROS 1 itself has no identities: anyone
//! who can reach the master or a node may publish. By default the bridge can only be reached from this host
//! ([`Config::listen`], decision 210).
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
