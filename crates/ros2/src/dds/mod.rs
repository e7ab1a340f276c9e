//! DDS as ROS 2 uses it: the endpoints of others, and topics and services as each implementation encodes them.

mod entities;
pub(crate) mod fuzzing;
mod mark;
pub(crate) mod names;
mod qos;
mod service;

use crate::config::Range;
use crate::wire::{Call, Caller, Event, Id, Named, Picture, Port, Seen, SeenNode, SeenParticipant};
use crate::wire::{Shown, Wire, WireError};
use bridge::nodes::{Kind, Qos};
use entities::Entities;
pub(crate) use mark::user_data as marked;
use names::Meaning;
use rtps::{
    EndpointConfig, EndpointData, EntityId, Guid, GuidPrefix, Node, NodeError, ParticipantData, Sample,
    Timestamp, TransportConfig, WriteOptions,
};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest accepted message with node names: a few thousand endpoints.
const MAX_INFO: usize = 256 << 10;

/// Where to find the domain.
#[derive(Clone, Debug)]
pub(crate) struct DomainConfig {
    pub(crate) domain: u32,
    pub(crate) range: Range,
    pub(crate) peers: Vec<Ipv4Addr>,
    pub(crate) interfaces: Vec<Ipv4Addr>,
}

/// A domain.
#[derive(Debug)]
pub(crate) struct Dds {
    node: rtps::Handle,
    /// Present until the bridge leaves.
    runs: Mutex<Option<Node>>,
    /// Writer of this bridge's node names, and reader of those of others.
    info: (EntityId, EntityId),
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    participants: BTreeMap<GuidPrefix, Participant>,
    endpoints: BTreeMap<Guid, Arc<EndpointData>>,
    open: BTreeMap<Port, Open>,
    ports: BTreeMap<EntityId, Port>,
    next: u64,
    /// Counter for calls whose number is in the payload.
    calls: i64,
    held: service::Held,
    shown: Option<Entities>,
    refused: BTreeMap<&'static str, u64>,
}

#[derive(Debug)]
struct Participant {
    data: Arc<ParticipantData>,
    entities: Entities,
}

/// The DDS entities of an endpoint of this bridge.
#[derive(Clone, Copy, Debug)]
enum Open {
    Publisher(EntityId),
    Subscription(EntityId),
    Client { requests: EntityId, responses: EntityId },
    Service { requests: EntityId, responses: EntityId },
}

impl Open {
    fn entities(self) -> [Option<EntityId>; 2] {
        match self {
            Open::Publisher(one) | Open::Subscription(one) => [Some(one), None],
            Open::Client { requests, responses } | Open::Service { requests, responses } => {
                [Some(requests), Some(responses)]
            }
        }
    }
}

impl State {
    fn vendor(&self, prefix: GuidPrefix) -> rtps::VendorId {
        let announced = self.participants.get(&prefix).map(|p| p.data.vendor);
        announced.unwrap_or(rtps::VendorId([prefix.0[0], prefix.0[1]]))
    }

    fn refuse(&mut self, reason: &'static str) {
        *self.refused.entry(reason).or_default() += 1;
    }
}

fn id(guid: Guid) -> Id {
    let mut out = Id::default();
    let (prefix, entity) = out.split_at_mut(12);
    prefix.copy_from_slice(&guid.prefix.0);
    entity.copy_from_slice(&guid.entity.0);
    out
}

fn guid(id: Id) -> Guid {
    let mut out = Guid::default();
    let (prefix, entity) = id.split_at(12);
    out.prefix.0.copy_from_slice(prefix);
    out.entity.0.copy_from_slice(entity);
    out
}

impl Dds {
    /// Joins a domain. `user_data` is what the participant announces about itself.
    pub(crate) fn join(
        domain_config: DomainConfig,
        user_data: Vec<u8>,
        max_message: u64,
    ) -> Result<Self, NodeError> {
        let transport = TransportConfig {
            domain: domain_config.domain,
            range: match domain_config.range {
                Range::Off => rtps::Range::Off,
                Range::Localhost => rtps::Range::Localhost,
                Range::Subnet => rtps::Range::Subnet,
            },
            interfaces: domain_config.interfaces,
            peers: domain_config.peers,
            ..TransportConfig::default()
        };
        let node = Node::open(transport, |config| {
            config.user_data = user_data;
            config.name = "ropewalk ros2".to_owned();
            config.limits.sample = u32::try_from(max_message).unwrap_or(u32::MAX);
        })?;
        let mut info = EndpointConfig::new(entities::TOPIC, entities::TYPE, qos::of_info());
        info.user_data = names::user_data(entities::HASH);
        // These names are the same in every bridge, so they are valid.
        let made = node
            .add_writer(info.clone())
            .and_then(|writer| Ok((writer, node.add_reader(info)?)));
        let info = made.map_err(|error| NodeError::Io(std::io::Error::other(error)))?;
        Ok(Dds {
            node: node.handle(),
            runs: Mutex::new(Some(node)),
            info,
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn endpoint(
        &self,
        meaning: &Meaning,
        type_name: &str,
        hash: Option<[u8; 32]>,
        qos: &Qos,
    ) -> Result<EndpointConfig, WireError> {
        let type_name = names::dds_type(type_name)
            .ok_or_else(|| WireError(format!("{type_name} is not a type name of ROS 2")))?;
        let mut out = EndpointConfig::new(names::topic(meaning), type_name, qos::to_dds(qos));
        out.user_data = hash.map(names::user_data).unwrap_or_default();
        Ok(out)
    }

    fn writer(&self, config: EndpointConfig) -> Result<EntityId, WireError> {
        self.node.add_writer(config).map_err(|e| WireError(e.to_string()))
    }

    fn reader(&self, config: EndpointConfig) -> Result<EntityId, WireError> {
        self.node.add_reader(config).map_err(|e| WireError(e.to_string()))
    }

    fn on_event(&self, event: rtps::Event) -> Option<Event> {
        let mut state = self.state();
        match event {
            rtps::Event::Participant(data) => {
                let prefix = data.guid.prefix;
                match state.participants.get_mut(&prefix) {
                    Some(known) => known.data = data,
                    None => {
                        let entities = Entities::default();
                        state.participants.insert(prefix, Participant { data, entities });
                    }
                }
            }
            rtps::Event::ParticipantGone(gone) => {
                state.participants.remove(&gone.prefix);
                state.endpoints.retain(|guid, _| guid.prefix != gone.prefix);
            }
            rtps::Event::Endpoint(data) => drop(state.endpoints.insert(data.guid, data)),
            rtps::Event::EndpointGone(gone) => drop(state.endpoints.remove(&gone)),
            rtps::Event::Matched { local, .. } => {
                let ready = state.held.ready(local, |writer| self.node.matched(writer));
                drop(state);
                for (payload, options) in ready {
                    self.send(local, payload, options);
                }
            }
            rtps::Event::Unmatched { .. } => {}
            rtps::Event::Incompatible {
                local,
                remote,
                policy,
            } => {
                state.refuse("qos");
                let topic = state
                    .endpoints
                    .get(&remote)
                    .map(|e| e.topic.clone())
                    .unwrap_or_default();
                tracing::warn!(
                    "{topic}: the endpoint {remote} of another node does not match ours ({local}): they differ in {policy}"
                );
                return None;
            }
            rtps::Event::Sample(sample) if sample.reader == self.info.1 => {
                on_info(&mut state, &sample);
            }
            rtps::Event::Sample(sample) => return self.on_sample(&mut state, sample),
            rtps::Event::Lost { count, .. } => {
                *state.refused.entry("lost").or_default() += count;
                return None;
            }
            _ => return None,
        }
        Some(Event::Changed)
    }

    fn on_sample(&self, state: &mut State, sample: Sample) -> Option<Event> {
        let port = *state.ports.get(&sample.reader)?;
        match *state.open.get(&port)? {
            Open::Subscription(_) => Some(Event::Message {
                port,
                from: id(sample.writer),
                payload: sample.payload,
                time: sample.source_timestamp.and_then(|t| u64::try_from(t.0).ok()),
            }),
            Open::Service { .. } => {
                let cyclone = state.vendor(sample.writer.prefix) == rtps::VendorId::CYCLONE;
                let request = service::request(&sample, cyclone);
                if request.is_none() {
                    state.refuse("requests");
                }
                let (caller, payload) = request?;
                Some(Event::Request {
                    port,
                    caller,
                    payload,
                })
            }
            Open::Client { requests, responses } => {
                let own = [requests, responses].map(|e| Guid::new(self.node.guid().prefix, e));
                let cyclone = state.vendor(sample.writer.prefix) == rtps::VendorId::CYCLONE;
                // Every client receives the responses to all clients.
                let (call, payload) = service::response(&sample, cyclone, own, client(own[0]))?;
                Some(Event::Response { port, call, payload })
            }
            Open::Publisher(_) => None,
        }
    }

    fn send(&self, writer: EntityId, payload: Vec<u8>, options: WriteOptions) {
        if let Err(error) = self.node.write(writer, payload, options) {
            tracing::warn!(%error, "cannot send a response");
        }
    }
}

/// Distinguishes a client's calls from others' if the number is in the payload.
fn client(requests: Guid) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&requests.prefix.0[4..]);
    u64::from_le_bytes(bytes) ^ u64::from(u32::from_le_bytes(requests.entity.0))
}

/// Handles a participant's announcement of its nodes. A participant can only announce its own.
fn on_info(state: &mut State, sample: &Sample) {
    let decoded = (sample.payload.len() <= MAX_INFO).then(|| Entities::decode(&sample.payload));
    let prefix = sample.writer.prefix;
    match decoded {
        Some(Ok(mut entities)) if guid(entities.gid).prefix == prefix => {
            let is_own = |gid: &Id| guid(*gid).prefix == prefix;
            for node in &mut entities.nodes {
                node.readers.retain(is_own);
                node.writers.retain(is_own);
            }
            if let Some(participant) = state.participants.get_mut(&prefix) {
                participant.entities = entities;
            }
        }
        _ => state.refuse("nodes"),
    }
}

impl Wire for Dds {
    fn picture(&self) -> Picture {
        let state = self.state();
        let mut out = Picture::default();
        for (prefix, participant) in &state.participants {
            let node = |n: &entities::Node| SeenNode {
                namespace: n.namespace.clone(),
                name: n.name.clone(),
                endpoints: n.readers.iter().chain(&n.writers).copied().collect(),
            };
            let seen = SeenParticipant {
                enclave: mark::enclave(&participant.data.user_data),
                nodes: participant.entities.nodes.iter().map(node).collect(),
                bridge: mark::of(&participant.data.user_data),
            };
            let guid = Guid::new(*prefix, EntityId::PARTICIPANT);
            out.participants.insert(id(guid), seen);
        }
        for data in state.endpoints.values() {
            if let Some(seen) = seen(data) {
                out.endpoints.insert(seen.id, seen);
            }
        }
        out
    }

    fn open(&self, kind: Kind, what: &Named, qos: &Qos) -> Result<Port, WireError> {
        let name = || what.name.clone();
        // Events that arrive immediately wait until the endpoint is registered here.
        let mut state = self.state();
        let open = match kind {
            Kind::Publisher | Kind::Subscription => {
                let config = self.endpoint(&Meaning::Topic(name()), &what.type_name, what.hashes[0], qos)?;
                match kind {
                    Kind::Publisher => Open::Publisher(self.writer(config)?),
                    _ => Open::Subscription(self.reader(config)?),
                }
            }
            Kind::Client | Kind::Service => {
                let part = |meaning, suffix: &str, hash| {
                    self.endpoint(&meaning, &format!("{}_{suffix}", what.type_name), hash, qos)
                };
                let requests = part(Meaning::Requests(name()), "Request", what.hashes[0])?;
                let responses = part(Meaning::Responses(name()), "Response", what.hashes[1])?;
                if kind == Kind::Client {
                    Open::Client {
                        responses: self.reader(responses)?,
                        requests: self.writer(requests)?,
                    }
                } else {
                    Open::Service {
                        responses: self.writer(responses)?,
                        requests: self.reader(requests)?,
                    }
                }
            }
        };
        state.next += 1;
        let port = Port(state.next);
        for entity in open.entities().into_iter().flatten() {
            state.ports.insert(entity, port);
        }
        state.open.insert(port, open);
        Ok(port)
    }

    fn close(&self, port: Port) {
        let mut state = self.state();
        let Some(open) = state.open.remove(&port) else {
            return;
        };
        for entity in open.entities().into_iter().flatten() {
            state.ports.remove(&entity);
            state.held.forget(entity);
            self.node.remove(entity);
        }
    }

    fn connected(&self, port: Port) -> usize {
        let Some(open) = self.state().open.get(&port).copied() else {
            return 0;
        };
        let each = open.entities().into_iter().flatten();
        each.map(|e| self.node.mutual(e).len()).min().unwrap_or(0)
    }

    fn write(&self, port: Port, payload: Vec<u8>, time: u64) -> Result<(), WireError> {
        let Some(Open::Publisher(writer)) = self.state().open.get(&port).copied() else {
            return Err(WireError("the endpoint has ended".into()));
        };
        let options = WriteOptions {
            source_timestamp: i64::try_from(time).ok().map(Timestamp),
            ..WriteOptions::default()
        };
        match self.node.write(writer, payload, options) {
            Ok(_) => Ok(()),
            Err(error) => Err(WireError(error.to_string())),
        }
    }

    fn call(&self, port: Port, payload: Vec<u8>, _within: Duration) -> Result<Call, WireError> {
        let mut state = self.state();
        let Some(Open::Client { requests, responses }) = state.open.get(&port).copied() else {
            return Err(WireError("the endpoint has ended".into()));
        };
        let servers = self.node.mutual(requests);
        if servers.is_empty() || self.node.mutual(responses).is_empty() {
            return Err(WireError("its server is not connected".into()));
        }
        let own = Guid::new(self.node.guid().prefix, requests);
        let is_cyclone = |server: &Guid| state.vendor(server.prefix) == rtps::VendorId::CYCLONE;
        if servers.iter().any(is_cyclone) {
            state.calls += 1;
            let number = state.calls;
            let payload = service::with_header(client(own), number, &payload);
            let sent = self.node.write(requests, payload, WriteOptions::default());
            // Numbers from the payload and those of samples are disjoint.
            return sent.map(|_| -number).map_err(|e| WireError(e.to_string()));
        }
        drop(state);
        let options = WriteOptions {
            related: Some(service::awaited(Guid::new(own.prefix, responses))),
            ..WriteOptions::default()
        };
        let sent = self.node.write(requests, payload, options);
        sent.map(|s| s.sequence).map_err(|e| WireError(e.to_string()))
    }

    fn respond(&self, port: Port, to: Caller, payload: Vec<u8>) -> Result<(), WireError> {
        let mut state = self.state();
        let Some(Open::Service { responses, .. }) = state.open.get(&port).copied() else {
            return Err(WireError("the endpoint has ended".into()));
        };
        let cyclone = state.vendor(guid(to.sender).prefix) == rtps::VendorId::CYCLONE;
        let answer = service::answer(to, cyclone, payload);
        let matched = self.node.matched(responses);
        if answer.is_reached(&matched) {
            drop(state);
            self.send(responses, answer.payload, answer.options);
        } else if !state.held.hold(responses, answer, Instant::now()) {
            state.refuse("responses");
        }
        Ok(())
    }

    fn show(&self, nodes: Vec<Shown>) {
        let own = self.node.guid();
        let mut state = self.state();
        let gid = |entity| id(Guid::new(own.prefix, entity));
        let node = |shown: &Shown| {
            let open = shown.ports.iter().filter_map(|p| state.open.get(p));
            let entities: Vec<EntityId> = open.flat_map(|o| o.entities()).flatten().collect();
            entities::Node {
                namespace: shown.namespace.clone(),
                name: shown.name.clone(),
                readers: entities
                    .iter()
                    .filter(|e| e.is_reader())
                    .map(|e| gid(*e))
                    .collect(),
                writers: entities
                    .iter()
                    .filter(|e| e.is_writer())
                    .map(|e| gid(*e))
                    .collect(),
            }
        };
        let entities = Entities {
            gid: id(own),
            nodes: nodes.iter().map(node).collect(),
        };
        if state.shown.as_ref() == Some(&entities) {
            return;
        }
        let bytes = entities.encode();
        state.shown = Some(entities);
        drop(state);
        if let Err(error) = self.node.write(self.info.0, bytes, WriteOptions::default()) {
            tracing::warn!(%error, "cannot announce the names of nodes");
        }
    }

    fn leave(&self) {
        drop(self.runs.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn next(&self, timeout: Duration) -> Option<Event> {
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let event = self.node.next_event(left)?;
            if let Some(event) = self.on_event(event) {
                return Some(event);
            }
        }
    }

    fn refused(&self) -> BTreeMap<&'static str, u64> {
        let counters = self.node.counters();
        let mut out = self.state().refused.clone();
        for (reason, count) in [
            ("malformed", counters.malformed),
            ("announcements", counters.announcements_refused),
            ("participants", counters.participants_refused),
            ("endpoints", counters.endpoints_refused),
        ] {
            if count > 0 {
                out.insert(reason, count);
            }
        }
        out
    }
}

/// Describes an endpoint of another participant in ROS 2's terms. The request endpoint of a service stands for the
/// whole service.
fn seen(data: &EndpointData) -> Option<Seen> {
    let writes = data.guid.entity.is_writer();
    let (kind, name) = match (names::meaning(&data.topic)?, writes) {
        (Meaning::Topic(name), true) => (Kind::Publisher, name),
        (Meaning::Topic(name), false) => (Kind::Subscription, name),
        (Meaning::Requests(name), true) => (Kind::Client, name),
        (Meaning::Requests(name), false) => (Kind::Service, name),
        (Meaning::Responses(_), _) => return None,
    };
    let type_name = names::type_of(&data.type_name)?;
    let type_name = match kind {
        Kind::Publisher | Kind::Subscription => type_name,
        Kind::Client | Kind::Service => names::service_of(&type_name)?.to_owned(),
    };
    let fits = |text: &str| text.len() <= bridge::nodes::MAX_TEXT && stats::text::is_plain(text);
    if !fits(&name) || !fits(&type_name) {
        return None;
    }
    Some(Seen {
        id: id(data.guid),
        kind,
        what: Named {
            name,
            type_name,
            hashes: [names::hash_of(&data.user_data), None],
            ..Named::default()
        },
        qos: qos::from_dds(&data.qos),
        participant: id(Guid::new(data.guid.prefix, EntityId::PARTICIPANT)),
    })
}
