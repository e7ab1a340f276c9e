//! What a participant tells its program.

use crate::account::Charge;
use crate::qos::Policy;
use crate::wire::endpoint::EndpointData;
use crate::wire::ids::{EntityId, Guid, SampleIdentity};
use crate::wire::participant::ParticipantData;
use crate::wire::time::Timestamp;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What happened, in the order in which it did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A participant appeared, or says something else of itself.
    Participant(Arc<ParticipantData>),
    /// A participant left, or its lease ended. Its endpoints vanished before.
    ParticipantGone(Guid),
    /// An endpoint of another participant appeared, or its policies or user data changed.
    Endpoint(Arc<EndpointData>),
    /// An endpoint of another participant vanished. What it was matched with was unmatched before.
    EndpointGone(Guid),
    /// A local endpoint and a remote one agree, and data flows.
    Matched {
        /// The local one.
        local: EntityId,
        /// The other.
        remote: Guid,
    },
    /// They are no longer matched.
    Unmatched {
        /// The local one.
        local: EntityId,
        /// The other.
        remote: Guid,
    },
    /// A local endpoint and a remote one are of the same topic, and do not agree.
    Incompatible {
        /// The local one.
        local: EntityId,
        /// The other.
        remote: Guid,
        /// On what.
        policy: Policy,
    },
    /// A sample came.
    Sample(Sample),
    /// Samples were lost before a reader: the writer no longer has them, or gave best effort.
    Lost {
        /// The local reader.
        reader: EntityId,
        /// How many since the last such event.
        count: u64,
    },
    /// A writer that refused a sample ([`crate::WriteError::Full`]) has room again.
    Writable {
        /// The local writer.
        writer: EntityId,
    },
}

/// A sample that a reader took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The local reader.
    pub reader: EntityId,
    /// The serialized data with its 4 bytes of encapsulation, as it was sent. Behind a short one up to 3 bytes of padding may stand
    /// (DDSI-RTPS 2.5, section 9.4.1).
    pub payload: Vec<u8>,
    /// Who wrote it.
    pub writer: Guid,
    /// Its number there, from 1.
    pub sequence: i64,
    /// The request that it answers, of a reply; of a request of Fast DDS, the reader of its reply.
    pub related: Option<SampleIdentity>,
    /// When it was written, by its writer's clock.
    pub source_timestamp: Option<Timestamp>,
}

/// Events that wait to be taken, each with what it costs.
#[derive(Debug, Default)]
pub(crate) struct Events {
    queue: VecDeque<(Event, Option<Charge>)>,
    /// What is only counted waits but once.
    lost: BTreeMap<EntityId, u64>,
    writable: BTreeMap<EntityId, ()>,
}

/// What an event costs that holds nothing of variable length.
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

    /// What is only said of an endpoint that is no more.
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
