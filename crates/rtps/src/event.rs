//! Events that a participant reports to its program.

use crate::account::Charge;
use crate::qos::Policy;
use crate::wire::endpoint::EndpointData;
use crate::wire::ids::{EntityId, Guid, SampleIdentity};
use crate::wire::participant::ParticipantData;
use crate::wire::time::Timestamp;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// An event. Events are reported in the order in which they occur.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A participant appeared, or its announcement changed.
    Participant(Arc<ParticipantData>),
    /// A participant left, or its lease expired. Its endpoints are reported as gone before.
    ParticipantGone(Guid),
    /// An endpoint of another participant appeared, or its policies or user data changed.
    Endpoint(Arc<EndpointData>),
    /// An endpoint of another participant is gone. Its matches are reported as ended before.
    EndpointGone(Guid),
    /// A local endpoint and a remote one match, and data flows.
    Matched {
        /// The local endpoint.
        local: EntityId,
        /// The remote endpoint.
        remote: Guid,
    },
    /// A match ended.
    Unmatched {
        /// The local endpoint.
        local: EntityId,
        /// The remote endpoint.
        remote: Guid,
    },
    /// A local endpoint and a remote one have the same topic but incompatible policies.
    Incompatible {
        /// The local endpoint.
        local: EntityId,
        /// The remote endpoint.
        remote: Guid,
        /// The policy in which they differ.
        policy: Policy,
    },
    /// A sample arrived.
    Sample(Sample),
    /// A reader lost samples: the writer no longer has them, or is best effort.
    Lost {
        /// The local reader.
        reader: EntityId,
        /// Number of samples since the last such event.
        count: u64,
    },
    /// A writer that refused a sample ([`crate::WriteError::Full`]) has room again.
    Writable {
        /// The local writer.
        writer: EntityId,
    },
}

/// A sample that a reader received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The local reader.
    pub reader: EntityId,
    /// The serialized data with its 4 bytes of encapsulation, as sent. Up to 3 bytes of padding may follow a short
    /// sample (DDSI-RTPS 2.5, section 9.4.1).
    pub payload: Vec<u8>,
    /// The writer.
    pub writer: Guid,
    /// The writer's sequence number for it, from 1.
    pub sequence: i64,
    /// For a reply: the request that it answers. For a request of Fast DDS: the reader of its reply.
    pub related: Option<SampleIdentity>,
    /// When the writer wrote it, by the writer's clock.
    pub source_timestamp: Option<Timestamp>,
}

/// Events to be taken, each with its memory charge.
#[derive(Debug, Default)]
pub(crate) struct Events {
    queue: VecDeque<(Event, Option<Charge>)>,
    /// Lost samples by reader, in a single event each.
    lost: BTreeMap<EntityId, u64>,
    writable: BTreeMap<EntityId, ()>,
}

/// Charge in bytes for an event without content of variable length.
pub(crate) const SMALL: usize = 128;

impl Events {
    pub(crate) fn push(&mut self, event: Event, charge: Option<Charge>) {
        self.queue.push_back((event, charge));
    }

    pub(crate) fn lost(&mut self, reader: EntityId, count: u64) {
        if count > 0 {
            let sum = self.lost.entry(reader).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    pub(crate) fn writable(&mut self, writer: EntityId) {
        self.writable.insert(writer, ());
    }

    /// Drops counts of an endpoint that no longer exists.
    pub(crate) fn forget(&mut self, local: EntityId) {
        self.lost.remove(&local);
        self.writable.remove(&local);
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        if let Some((reader, count)) = self.lost.pop_first() {
            return Some(Event::Lost { reader, count });
        }
        if let Some((writer, ())) = self.writable.pop_first() {
            return Some(Event::Writable { writer });
        }
        self.queue.pop_front().map(|(event, _)| event)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.lost.is_empty() && self.writable.is_empty()
    }
}
