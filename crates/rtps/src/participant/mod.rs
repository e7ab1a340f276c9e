//! A participant of a domain: discovery, writers and readers, as one state machine.

mod announcing;
mod endpoints;
mod matching;
mod peer;
mod peers;
mod receiving;

use crate::account::Account;
use crate::config::{Config, ConfigError, EndpointConfig, EndpointError, WriteError};
use crate::context::Context;
use crate::event::{Event, Events};
use crate::reader::Reader;
use crate::send::Outbox;
use crate::timers::{Timer, Timers};
use crate::wire::endpoint::{EndpointData, MAX_TEXT};
use crate::wire::ids::{EntityId, Guid, GuidPrefix, SampleIdentity};
use crate::wire::inline::InlineQos;
use crate::wire::participant::{BUILTIN_ENDPOINTS, MAX_USER_DATA, ParticipantData};
use crate::wire::policies::{MAX_PARTITIONS, MAX_REPRESENTATIONS};
use crate::wire::time::Timestamp;
use crate::writer::{New, Writer};
use core::time::Duration;
#[cfg(test)]
pub(crate) use peer::MAX_ADDRESSES;
use peer::Peer;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

/// A participant of a domain. It does no I/O and reads no clock: datagrams and the time go in, datagrams and events
/// come out.
///
/// Times count from an arbitrary start and never go back. After each call, call [`Participant::poll_transmit`] and
/// [`Participant::poll_event`] until they return nothing, and both again at [`Participant::next_timeout`].
#[derive(Debug)]
pub struct Participant {
    config: Config,
    data: ParticipantData,
    account: Arc<Account>,
    addresses: BTreeMap<Ipv4Addr, Arc<Account>>,
    peers: BTreeMap<GuidPrefix, Peer>,
    writers: BTreeMap<EntityId, Writer>,
    readers: BTreeMap<EntityId, Reader>,
    /// Sequence number of each local endpoint's announcement.
    announced: BTreeMap<EntityId, i64>,
    outbox: Outbox,
    timers: Timers<Timer>,
    events: Events,
    counters: Counters,
    /// Number of endpoint numbers used.
    entities: u32,
    announcements: u32,
    left: bool,
}

/// Counters of data from others that was refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams that could not be read to their end.
    pub malformed: u64,
    /// Announcements that could not be read, or that spoke for another participant.
    pub announcements_refused: u64,
    /// Participants that were refused: too many, no memory, or no address within reach.
    pub participants_refused: u64,
    /// Endpoints and matches that were refused: too many, or no memory.
    pub endpoints_refused: u64,
}

/// Options for writing a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// The request that it answers. Sent as inline QoS, under the specification's parameter ID and under that of Fast
    /// DDS.
    pub related: Option<SampleIdentity>,
    /// When it was created.
    pub source_timestamp: Option<Timestamp>,
}

impl Participant {
    /// Creates a participant. It announces itself with the first [`Participant::poll_transmit`].
    ///
    /// # Errors
    ///
    /// If nothing can be sent with these settings, or its announcement is too long.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        let guid = Guid::new(config.prefix, EntityId::PARTICIPANT);
        let data = ParticipantData {
            guid,
            vendor: config.vendor,
            version: crate::wire::VERSION,
            name: config.name.clone(),
            user_data: config.user_data.clone(),
            lease: Some(config.lease),
            builtin_endpoints: BUILTIN_ENDPOINTS,
            domain: Some(config.domain),
            domain_tag: config.domain_tag.clone(),
            metatraffic: config.metatraffic.clone(),
            unicast: config.unicast.clone(),
        };
        let mut out = Participant {
            data,
            account: Account::new(config.limits.memory, None),
            addresses: BTreeMap::new(),
            peers: BTreeMap::new(),
            writers: BTreeMap::new(),
            readers: BTreeMap::new(),
            announced: BTreeMap::new(),
            outbox: Outbox::new(config.vendor, config.prefix),
            timers: Timers::new(),
            events: Events::default(),
            counters: Counters::default(),
            entities: 0,
            announcements: 0,
            left: false,
            config,
        };
        out.timers.set(Timer::Announce, Some(Duration::ZERO));
        out.add_builtin();
        Ok(out)
    }

    /// Its GUID.
    pub fn guid(&self) -> Guid {
        self.data.guid
    }

    /// The GUID of a local endpoint.
    pub fn guid_of(&self, local: EntityId) -> Guid {
        Guid::new(self.config.prefix, local)
    }

    /// Adds a writer and announces it.
    ///
    /// # Errors
    ///
    /// If a name is empty or too long, or all endpoint numbers are used up.
    pub fn add_writer(&mut self, now: Duration, config: EndpointConfig) -> Result<EntityId, EndpointError> {
        let id = EntityId::writer(self.number(&config)?);
        let data = Arc::new(self.endpoint_data(id, &config));
        self.writers
            .insert(id, Writer::new(id, Arc::clone(&data), &config));
        self.announce_endpoint(now, &data);
        self.match_local(now, id);
        self.set_liveliness(now);
        Ok(id)
    }

    /// Adds a reader and announces it.
    ///
    /// # Errors
    ///
    /// As for [`Participant::add_writer`].
    pub fn add_reader(&mut self, now: Duration, config: EndpointConfig) -> Result<EntityId, EndpointError> {
        let id = EntityId::reader(self.number(&config)?);
        let data = Arc::new(self.endpoint_data(id, &config));
        let reader = Reader::new(id, Arc::clone(&data), self.config.limits.sample);
        self.readers.insert(id, reader);
        self.announce_endpoint(now, &data);
        self.match_local(now, id);
        Ok(id)
    }

    /// Removes a writer or a reader, and announces its removal. A writer's samples are dropped.
    pub fn remove(&mut self, now: Duration, local: EntityId) {
        if local.is_builtin() || !(self.writers.contains_key(&local) || self.readers.contains_key(&local)) {
            return;
        }
        self.unmatch_local(now, local);
        self.withdraw_endpoint(now, local);
        self.writers.remove(&local);
        self.readers.remove(&local);
        self.outbox.forget_writer(local);
        self.timers.set(Timer::Writer(local), None);
        self.events.forget(local);
        self.set_liveliness(now);
    }

    /// Writes a sample: serialized data with its 4 bytes of encapsulation. It is sent by [`Participant::poll_transmit`].
    ///
    /// # Errors
    ///
    /// If there is no such writer, the sample is longer than the writer's limit, or the writer keeps all samples and
    /// has no room.
    pub fn write(
        &mut self,
        now: Duration,
        writer: EntityId,
        payload: impl Into<Arc<[u8]>>,
        options: WriteOptions,
    ) -> Result<SampleIdentity, WriteError> {
        let found = self.writers.get_mut(&writer).filter(|_| !writer.is_builtin());
        let found = found.ok_or(WriteError::NoSuchWriter(writer))?;
        let new = New {
            payload: payload.into(),
            key: false,
            inline: InlineQos {
                related: options.related,
                ..InlineQos::default()
            },
            timestamp: options.source_timestamp,
        };
        let cx = &mut Context {
            now,
            outbox: &mut self.outbox,
            timers: &mut self.timers,
        };
        let sequence = found.write(cx, new)?;
        Ok(SampleIdentity {
            writer: self.guid_of(writer),
            sequence,
        })
    }

    /// Whether a writer would accept a short sample now. Only a writer with keep-all history may refuse.
    pub fn ready(&self, writer: EntityId) -> bool {
        self.writers.get(&writer).is_some_and(|w| !w.is_full(0))
    }

    /// Returns the remote endpoints that a local one is matched with.
    pub fn matched(&self, local: EntityId) -> Vec<Guid> {
        let readers = self.writers.get(&local).map(|w| w.readers().collect());
        let writers = || self.readers.get(&local).map(|r| r.writers().collect());
        readers.or_else(writers).unwrap_or_default()
    }

    /// Returns those of [`Participant::matched`] that have shown that they are matched with the local endpoint too. The
    /// others may not have received its announcement yet: a server drops the reply to a client whose reader it does not
    /// know. A best-effort endpoint never shows it, so all of them count.
    pub fn mutual(&self, local: EntityId) -> Vec<Guid> {
        let readers = self.writers.get(&local).map(|w| w.mutual().collect());
        let writers = || self.readers.get(&local).map(|r| r.mutual().collect());
        readers.or_else(writers).unwrap_or_default()
    }

    /// Writes the next datagram to send into `out` and returns its destination, which may be a multicast group. Returns
    /// `None` if there is nothing to send now.
    pub fn poll_transmit(&mut self, now: Duration, out: &mut Vec<u8>) -> Option<SocketAddrV4> {
        while let Some(timer) = self.timers.pop(now) {
            self.on_timer(now, timer);
        }
        let writers = &mut self.writers;
        let sent = self.outbox.next(now, out, &mut |writer, reader| {
            writers.get_mut(&writer).map(|w| w.heartbeat_with_sample(reader))
        });
        if sent.is_none() {
            self.outbox.tidy(now);
        }
        sent
    }

    /// Stops sending samples to an address until `until`. For a transport that sees that the receiver's buffer is full.
    pub fn pause(&mut self, address: SocketAddrV4, until: Duration) {
        self.outbox.pause(address, until);
    }

    /// When there is something to do next, unless something arrives before. The time may have passed already.
    pub fn next_timeout(&self) -> Option<Duration> {
        [self.timers.next(), self.outbox.ready_at()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// Whether [`Participant::poll_event`] has an event.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Returns counters of data from others that was refused.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Number of bytes that all others make it hold now, as charged (see [`crate::Limits`]).
    pub fn held(&self) -> usize {
        self.account.used()
    }

    /// Number of other participants that it knows.
    pub fn participants(&self) -> usize {
        self.peers.len()
    }

    fn on_timer(&mut self, now: Duration, timer: Timer) {
        let cx = &mut Context {
            now,
            outbox: &mut self.outbox,
            timers: &mut self.timers,
        };
        match timer {
            Timer::Announce => self.announce(now),
            Timer::Liveliness => self.assert_liveliness(now),
            Timer::Lease(prefix) => self.end_lease(now, prefix),
            Timer::Writer(id) => {
                if let Some(writer) = self.writers.get_mut(&id) {
                    writer.on_timer(cx);
                }
            }
            Timer::Reader(id, guid) => {
                if let Some(reader) = self.readers.get_mut(&id) {
                    reader.on_timer(cx, guid);
                }
            }
        }
    }

    /// Returns a number for a new endpoint, if its settings can be announced.
    fn number(&mut self, config: &EndpointConfig) -> Result<u32, EndpointError> {
        let partitions = &config.qos.partitions;
        let names = [("topic", &config.topic), ("type name", &config.type_name)];
        for (what, name) in names
            .into_iter()
            .chain(partitions.iter().map(|p| ("partition", p)))
        {
            let len = name.len();
            if len > MAX_TEXT || len == 0 && what != "partition" {
                return Err(EndpointError::Name { what, len });
            }
        }
        if config.user_data.len() > MAX_USER_DATA {
            return Err(EndpointError::UserData(config.user_data.len()));
        }
        for (n, what, most) in [
            (partitions.len(), "partitions", MAX_PARTITIONS),
            (
                config.qos.representations.len(),
                "data representations",
                MAX_REPRESENTATIONS,
            ),
        ] {
            if n > most {
                return Err(EndpointError::Many(n, what));
            }
        }
        // Three of the four bytes; numbers are never reused.
        self.entities = (self.entities + 1).min(1 << 24);
        (self.entities < 1 << 24)
            .then_some(self.entities)
            .ok_or(EndpointError::Exhausted)
    }

    fn endpoint_data(&self, id: EntityId, config: &EndpointConfig) -> EndpointData {
        EndpointData {
            guid: self.guid_of(id),
            topic: config.topic.clone(),
            type_name: config.type_name.clone(),
            qos: config.qos.clone(),
            user_data: config.user_data.clone(),
            unicast: Vec::new(),
        }
    }
}
