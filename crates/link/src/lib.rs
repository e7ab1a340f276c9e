#![forbid(unsafe_code)]
//! The link: joins a host's bus to a radio that it shares with other hosts.
//!
//! A [`Daemon`] subscribes on its bus to the topics that its [`Config`] names, lets `proto` decide what
//! leaves when, and hands one datagram at a time to a [`Carrier`]. It reassembles incoming messages directly
//! in loaned blocks and publishes them on the bus. One daemon owns a radio: all traffic over that radio goes
//! through the bus.
//!
//! `proto` implements the protocol's logic and `bus` the memory. Carriers are QUIC between hosts of one team
//! ([`QuicCarrier`], [`keys`]), the same in TLS over TCP for cables ([`TlsCarrier`]), plain UDP for closed
//! networks ([`UdpCarrier`]), and serial lines ([`SerialCarrier`]).
//!
//! ```no_run
//! use link::{Config, Daemon};
//!
//! let config = Config::load("robot.yaml".as_ref())?;
//! let bus = bus::Bus::open(bus::BusConfig::from_env()?)?;
//! Daemon::open(config, bus)?.run()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blocks;
mod carrier;
mod coder;
pub mod compress;
pub mod config;
pub mod control;
mod daemon;
pub mod direct;
mod discovery;
mod engine;
mod error;
mod flows;
#[doc(hidden)]
pub mod fuzzing;
mod handle;
mod inbound;
pub mod keys;
mod names;
mod nodes;
mod outbound;
mod outgoing;
mod periodic;
mod pump;
mod reach;
mod recent;
mod relay;
pub mod rules;
mod seal;
mod services;
mod status;
pub mod tf;
#[doc(hidden)]
pub mod unauthenticated;

pub use carrier::{
    Carrier, CarrierError, Path, PeerIndex, QuicCarrier, QuicConfig, Received, Sent, SerialCarrier, TeamPeer,
    TlsCarrier, UdpCarrier, open_carrier,
};
pub use config::{Config, ConfigError, ServiceRole};
pub use daemon::Daemon;
pub use engine::calls::{Failure, ServiceState, ServiceStatus};
pub use error::LinkError;
pub use handle::Handle;
pub use reach::Unheard;
pub use recent::Recent;
pub use seal::SealStats;
pub use stats::quantity;
pub use status::{PeerStatus, ReceivedTopic, SentTopic, Status, WayStatus};
