#![forbid(unsafe_code)]
//! The wire protocol of DDS (OMG DDSI-RTPS 2.3), as far as a bridge for ROS 2 needs it.
//!
//! A [`Participant`] discovers the participants of its domain (SPDP) and their endpoints (SEDP), matches its own
//! writers and readers with theirs by topic, type and policies, and exchanges samples with them. Samples are reliable
//! or best effort, are fragmented if they are long, and are kept for late joiners. It does no I/O, reads no clock and
//! draws no random numbers: datagrams and the time are arguments, so every scenario replays in virtual time.
//! [`Transport`] has the sockets. A [`Node`] runs both in a thread.
//!
//! The memory that a remote participant can make it hold is bounded ([`Limits`]): memory is charged before it is
//! allocated, and released when the participant leaves or its lease expires. Without DDS' security extensions, which
//! this crate lacks, DDS has no identities: any process that can reach the sockets can claim anything.
//!
//! Out of scope: serializing data (payloads pass unchanged, with their 4 bytes of encapsulation), keyed topics, IPv6,
//! TCP, shared memory, content filters, exclusive ownership, type lookup, discovery servers, security (decision 344).
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
//! // There is no peer, and no address to announce the writer to.
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
