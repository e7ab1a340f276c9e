//! A participant of a domain that announces what a ROS 2 node announces.

use super::{Domain, LONG, until};
use rtps::{
    Durability, EndpointConfig, EndpointData, EntityId, Event, Guid, History, Node, ParticipantData, Qos,
    Range, Reliability, Sample, TransportConfig, WriteOptions,
};
use schema::Schema;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A participant. Events are sorted on each query.
pub(crate) struct Peer {
    pub(crate) node: Node,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    samples: BTreeMap<EntityId, VecDeque<Sample>>,
    endpoints: BTreeMap<Guid, Arc<EndpointData>>,
    participants: BTreeMap<Guid, Arc<ParticipantData>>,
}

pub(crate) fn reliable() -> Qos {
    Qos {
        history: History::KeepLast(100),
        ..Qos::writer()
    }
}

pub(crate) fn best_effort() -> Qos {
    Qos {
        reliability: Reliability::BestEffort,
        ..reliable()
    }
}

/// For late joiners.
pub(crate) fn kept() -> Qos {
    Qos {
        durability: Durability::TransientLocal,
        ..reliable()
    }
}

impl Peer {
    pub(crate) fn new(domain: &Domain) -> Self {
        Peer::with(domain, |_| {})
    }

    pub(crate) fn with(domain: &Domain, set: impl FnOnce(&mut rtps::Config)) -> Self {
        let transport = TransportConfig {
            domain: domain.number,
            range: Range::Localhost,
            ..TransportConfig::default()
        };
        let node = Node::open(transport, |config| {
            config.user_data = b"enclave=/;".to_vec();
            config.name = "peer".to_owned();
            set(config);
        });
        Peer {
            node: node.expect("a participant"),
            state: Mutex::default(),
        }
    }

    pub(crate) fn publisher(&self, topic: &str, schema: &Schema, qos: Qos) -> EntityId {
        self.node.add_writer(named(topic, schema, qos)).expect("a writer")
    }

    pub(crate) fn subscriber(&self, topic: &str, schema: &Schema, qos: Qos) -> EntityId {
        self.node.add_reader(named(topic, schema, qos)).expect("a reader")
    }

    pub(crate) fn write(&self, writer: EntityId, payload: Vec<u8>) {
        self.node
            .write(writer, payload, WriteOptions::default())
            .expect("a sample");
    }

    /// Waits until an endpoint is connected to `count` others.
    pub(crate) fn connected(&self, local: EntityId, count: usize) {
        until("the other endpoint", || {
            self.sort(Duration::ZERO);
            (self.node.mutual(local).len() >= count).then_some(())
        });
    }

    /// Returns the next sample of a reader.
    pub(crate) fn next(&self, reader: EntityId) -> Sample {
        self.next_within(reader, LONG).expect("a sample")
    }

    pub(crate) fn next_within(&self, reader: EntityId, patience: Duration) -> Option<Sample> {
        let end = Instant::now() + patience;
        loop {
            let mut state = self.state.lock().expect("no panic");
            if let Some(sample) = state.samples.get_mut(&reader).and_then(VecDeque::pop_front) {
                return Some(sample);
            }
            drop(state);
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            self.sort(left.min(Duration::from_millis(50)));
        }
    }

    /// Returns all samples of a reader, until none arrives for a while.
    pub(crate) fn all(&self, reader: EntityId) -> Vec<Sample> {
        std::iter::from_fn(|| self.next_within(reader, super::A_WHILE)).collect()
    }

    /// Returns the endpoints of others on this DDS topic.
    pub(crate) fn endpoints(&self, topic: &str) -> Vec<Arc<EndpointData>> {
        self.sort(Duration::ZERO);
        let state = self.state.lock().expect("no panic");
        let all = state.endpoints.values().filter(|e| e.topic == topic);
        all.cloned().collect()
    }

    /// Returns the other participants.
    pub(crate) fn participants(&self) -> Vec<Arc<ParticipantData>> {
        self.sort(Duration::ZERO);
        let state = self.state.lock().expect("no panic");
        state.participants.values().cloned().collect()
    }

    /// Announces a node with all these endpoints, as ROS 2 nodes do.
    pub(crate) fn tell(&self, name: &str, endpoints: &[EntityId]) -> EntityId {
        let writer = self.info_writer();
        self.write(
            writer,
            info(self.node.guid(), &[("/", name, self.gids(endpoints))]),
        );
        writer
    }

    pub(crate) fn info_writer(&self) -> EntityId {
        let config = EndpointConfig::new(INFO, INFO_TYPE, kept());
        self.node.add_writer(config).expect("a writer")
    }

    pub(crate) fn info_reader(&self) -> EntityId {
        let config = EndpointConfig::new(INFO, INFO_TYPE, kept());
        self.node.add_reader(config).expect("a reader")
    }

    pub(crate) fn gids(&self, endpoints: &[EntityId]) -> Vec<Guid> {
        let own = self.node.guid().prefix;
        endpoints.iter().map(|e| Guid::new(own, *e)).collect()
    }

    /// Receives and sorts events.
    pub(crate) fn sort(&self, patience: Duration) {
        let mut patience = patience;
        while let Some(event) = self.node.next_event(patience) {
            patience = Duration::ZERO;
            let mut state = self.state.lock().expect("no panic");
            match event {
                Event::Sample(sample) => state.samples.entry(sample.reader).or_default().push_back(sample),
                Event::Endpoint(data) => drop(state.endpoints.insert(data.guid, data)),
                Event::EndpointGone(guid) => drop(state.endpoints.remove(&guid)),
                Event::Participant(data) => drop(state.participants.insert(data.guid, data)),
                Event::ParticipantGone(guid) => drop(state.participants.remove(&guid)),
                _ => {}
            }
        }
    }
}

const INFO: &str = "ros_discovery_info";
const INFO_TYPE: &str = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_";

/// An endpoint of a ROS 2 topic, with the hash of its type.
fn named(topic: &str, schema: &Schema, qos: Qos) -> EndpointConfig {
    let (namespace, name) = {
        let ros = schema.ros2_name();
        let (namespace, name) = ros.rsplit_once('/').expect("three words");
        (namespace.replace('/', "::"), name.to_owned())
    };
    let mut out = EndpointConfig::new(topic, format!("{namespace}::dds_::{name}_"), qos);
    out.user_data = format!("typehash={};", schema.rihs01()).into_bytes();
    out
}

/// `rmw_dds_common/ParticipantEntitiesInfo` in CDR, for nodes by namespace and name.
pub(crate) fn info(participant: Guid, nodes: &[(&str, &str, Vec<Guid>)]) -> Vec<u8> {
    let length = |out: &mut Vec<u8>, n: usize| {
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend((n as u32).to_le_bytes());
    };
    let mut out = vec![0, 1, 0, 0];
    out.extend(participant.to_bytes());
    length(&mut out, nodes.len());
    for (namespace, name, all) in nodes {
        for text in [namespace, name] {
            length(&mut out, text.len() + 1);
            out.extend(text.as_bytes());
            out.push(0);
        }
        for readers in [true, false] {
            let of: Vec<_> = all.iter().filter(|g| g.entity.is_reader() == readers).collect();
            length(&mut out, of.len());
            of.iter().for_each(|g| out.extend(g.to_bytes()));
        }
    }
    out
}

/// The nodes in such a message, each with its endpoints.
pub(crate) fn guids(bytes: &[u8]) -> BTreeMap<String, Vec<Guid>> {
    let mut at = 20;
    let mut out = BTreeMap::new();
    let word = |at: &mut usize| {
        *at = at.next_multiple_of(4);
        let word = u32::from_le_bytes(bytes[*at..*at + 4].try_into().expect("4 bytes"));
        *at += 4;
        word as usize
    };
    for _ in 0..word(&mut at) {
        let mut text = || {
            let len = word(&mut at);
            at += len;
            String::from_utf8(bytes[at - len..at - 1].to_vec()).expect("a text")
        };
        let (namespace, name) = (text(), text());
        let mut all = Vec::new();
        for _ in 0..2 {
            for _ in 0..word(&mut at) {
                all.push(Guid::from_bytes(bytes[at..at + 16].try_into().expect("16 bytes")));
                at += 16;
            }
        }
        out.insert(format!("{}/{name}", namespace.trim_end_matches('/')), all);
    }
    out
}
