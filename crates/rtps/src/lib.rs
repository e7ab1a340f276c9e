#![forbid(unsafe_code)]
//! The wire protocol of DDS (OMG DDSI-RTPS 2.3), as far as a bridge for ROS 2 needs it.
//!
//! A [`Participant`] finds the participants of its domain (SPDP) and their endpoints (SEDP), matches its own writers and readers
//! with theirs by topic, type and policies, and exchanges samples with them: reliable or best effort, in fragments where
//! they are long, with what a late reader is to be given. It does no I/O, reads no clock and draws no random numbers: datagrams and the
//! time come in as arguments, so that every scenario replays in virtual time. The sockets are [`Transport`]'s; a [`Node`] joins both in a thread.
//!
//! What one participant of others can make it hold is bounded ([`Limits`]): memory is charged before it is taken, and given back when
//! the participant leaves or its lease ends. DDS knows no identities without its security extensions, which are not here: any process
//! that reaches the sockets may say anything.
//!
//! Not here: serializing data (a payload goes through as it is, with its 4 bytes of encapsulation), topics with keys, IPv6, TCP and shared memory,
//! content filters, exclusive ownership, type lookup, discovery servers, security.
//!
//! ```
//! use core::time::Duration;
//! use rtps::{Config, EndpointConfig, GuidPrefix, Participant, Qos, WriteOptions};
//!
//! let mut participant = Participant::new(Config::new(GuidPrefix(*b"\x01\xfesomeone-01"), 0))?;
//! let now = Duration::ZERO;
//! let topic = EndpointConfig::new("rt/chatter", "std_msgs::msg::dds_::String_", Qos::writer());
//! let writer = participant.add_writer(now, topic)?;
//! // "hi" in CDR, little endian.
//! let payload = [0, 1, 0, 0, 3, 0, 0, 0, b'h', b'i', 0];
//! let sample = participant.write(now, writer, payload, WriteOptions::default())?;
//! assert_eq!(sample.sequence, 1);
//! // Nobody is there, and there is nowhere to announce it to.
//! assert_eq!(participant.poll_transmit(now, &mut Vec::new()), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod account;
mod config;
mod context;
mod event;
#[doc(hidden)]
pub mod fuzzing;
mod participant;
mod partition;
mod qos;
mod reader;
mod send;
#[cfg(test)]
mod simulation;
mod timers;
mod udp;
mod wire;
mod writer;

pub use config::{Config, ConfigError, EndpointConfig, EndpointError, Limits, Pace, Reach, WriteError};
pub use event::{Event, Sample};
pub use participant::{Counters, Participant, WriteOptions};
pub use qos::{
    DestinationOrder, Durability, History, Liveliness, Ownership, Policy, Presentation, Qos, Reliability,
};
pub use udp::{Handle, Node, NodeError, Range, Transport, TransportConfig, TransportError};
pub use wire::endpoint::EndpointData;
pub use wire::error::WireError;
pub use wire::ids::{EntityId, Guid, GuidPrefix, SampleIdentity, VendorId};
pub use wire::participant::ParticipantData;
pub use wire::time::Timestamp;
