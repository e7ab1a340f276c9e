#![forbid(unsafe_code)]
//! The link protocol: decides what a radio sends next and when, and reassembles it at the other end.
//!
//! A [`Radio`] does all of one host's sending and receiving over one shared medium, to any number of peers. It
//! announces each topic once. Messages wait by priority and deadline, and only the newest are kept. A pacer hands over
//! one datagram per slot of airtime, so the device queue stays about empty; receipts bound the data in flight in any
//! case. More important messages pre-empt others between fragments, and a message that the radio foresees, because its
//! source is periodic, finds the air free. The receiving side reassembles fragments in any order straight into memory
//! that its [`Sink`] loans. The sender keeps the messages of a reliable topic until they are acknowledged and
//! retransmits what is missing; [`Radio::next_outcome`] returns the outcome of each message. A large message of a bulk
//! topic is sent as fountain symbols; the caller runs the long computations for them elsewhere ([`Radio::next_job`]).
//!
//! It does no I/O, reads no clock and draws no random numbers: datagrams and [`stats::Time`] come in as arguments, so
//! every scenario replays in virtual time. The link daemon carries the datagrams, encrypts them and interprets the
//! messages. The wire format is in `docs/wire/link.md`.
//!
//! ```
//! use proto::{AirtimeModel, Message, PeerConfig, Radio, RadioConfig, TopicConfig, Transmit};
//! use stats::Time;
//!
//! let mut radio = Radio::new(RadioConfig::new(1, AirtimeModel::wifi(6_000_000)))?;
//! let base = radio.add_peer(Time::ZERO, PeerConfig::default())?;
//! let scan = radio.add_topic(Time::ZERO, base, TopicConfig {
//!     priority: 100,
//!     ..TopicConfig::new("/scan", "sensor_msgs/LaserScan")
//! })?;
//! // No peer has answered yet, so the message is dropped and counted.
//! let dropped = radio.offer(Time::ZERO, scan, Message::new(vec![0u8; 2631], Time::ZERO));
//! assert_eq!(dropped, Err(stats::DropReason::NoPeer));
//!
//! // The first datagram greets the peer.
//! let mut datagram = Vec::new();
//! assert!(matches!(radio.poll_transmit(Time::ZERO, &mut datagram), Transmit::Datagram { peer, .. } if peer == base));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod airtime;
mod announcement;
mod arriving;
mod body;
mod coding;
mod config;
mod fountain;
#[doc(hidden)]
pub mod fuzzing;
#[doc(hidden)]
pub mod fuzzing_relay;
mod geometry;
mod outcome;
mod peer;
mod policy;
mod radio;
mod receive;
mod relay;
mod route;
mod send;
mod session;
mod share;
mod statistics;
mod wire;

pub use airtime::AirtimeModel;
pub use announcement::{Announcement, Flavour, Ordering, Reliability, Via};
pub use arriving::Arriving;
pub use body::{Body, Down, Incoming, Message, PeerInfo, Sink, Slot, Verdict};
pub use config::{
    ConfigError, MAX_DEFINITION, MAX_DEPTH, MAX_HOST_NAME, MAX_NAME, MAX_PRIORITY, MAX_TOPICS, Order,
    PeerConfig, PeerError, PeerId, RadioConfig, ReceiveLimits, RemoteTopic, TopicChange, TopicConfig,
    TopicError, TopicId,
};
pub use fountain::{Job, JobDone};
pub use geometry::{Geometry, GeometryError, MAX_PARTS};
pub use outcome::{End, Outcome};
pub use policy::tuning::Tuning;
pub use radio::{Radio, Transmit};
pub use relay::{FlowKey, Relay, RelayStats, Sealed, Sealer, Sealing, Taken};
pub use route::{MAX_DESTINATIONS, MAX_HOPS, Route, RouteConfig, Seen, Way};
pub use share::{ClockOffset, LinkDelay};
pub use statistics::{
    Account, BulkStats, ClockStats, PeerStats, RadioStats, RateSource, ReceiverReport, RemoteTopicStats,
    TopicState, TopicStats, YieldsTo, short_id,
};
pub use wire::{PacketError, VERSION};
