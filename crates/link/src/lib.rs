#![forbid(unsafe_code)]
//! The link: joins a host's bus to a radio that it shares with other hosts.
//!
//! A [`Daemon`] subscribes on its bus to the topics that its [`Config`] names, lets `proto` decide what
//! leaves when, and hands one datagram at a time to a [`Carrier`]; what comes is put together straight
//! into loaned blocks and published on the bus. One daemon owns a radio: everything that wants it goes
//! through the bus.
//!
//! The protocol's logic is `proto`'s, the memory is `bus`'s. There is one carrier so far, plain UDP
//! ([`UdpCarrier`]), for closed networks.
//!
//! ```no_run
//! use link::{Config, Daemon, UdpCarrier};
//!
//! let config = Config::load("robot.yaml".as_ref())?;
//! let bus = bus::Bus::open(bus::BusConfig::from_env()?)?;
//! let peers = config.peers.iter().map(|p| p.address).collect();
//! let carrier = UdpCarrier::bind(config.radio.bind, peers)?;
//! Daemon::new(config, bus, carrier)?.run()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod carrier;
pub mod config;
mod daemon;
mod discovery;
#[doc(hidden)]
pub mod fuzzing;
mod inbound;
pub mod keys;
mod outbound;
mod status;

pub use carrier::{
    Carrier, CarrierError, Path, PeerIndex, QuicCarrier, QuicConfig, QuicPeer, Received, Sent, SerialCarrier,
    UdpCarrier,
};
pub use config::{Config, ConfigError};
pub use daemon::{Daemon, Handle, LinkError};
pub use stats::quantity;
pub use status::{PeerStatus, ReceivedTopic, SentTopic, Status};
