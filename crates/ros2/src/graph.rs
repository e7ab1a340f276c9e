//! The domain's nodes as the bus's ROS 2 nodes see them, and the bus's nodes as the domain sees them.

use crate::hub::Hub;
use crate::wire::{Id, Picture, Port, Seen, Shown};
use bridge::nodes::{self, Endpoint, Kind, Node, Participant, Qos, Record};
use bridge::{best, renamed};
use bus::{Bus, CreateError, Publisher, PublisherOptions, Stamp, Subscriber, SubscriberOptions, TopicType};
use std::collections::{BTreeMap, BTreeSet};

/// Queue depth for records of different contexts.
const QUEUE: u32 = 64;

/// Records that contexts on the bus publish, and the record of this bridge.
#[derive(Debug)]
pub(crate) struct Records {
    publisher: Publisher,
    subscriber: Subscriber,
    here: BTreeMap<u64, Record>,
    announced: Option<Record>,
}

fn topic() -> TopicType {
    TopicType {
        topic: nodes::TOPIC.into(),
        type_name: nodes::TYPE.into(),
        type_hash: nodes::HASH,
        flavour: bus::Flavour::default(),
        definition: nodes::DEFINITION.into(),
    }
}

impl Records {
    pub(crate) fn open(bus: &Bus) -> Result<Self, CreateError> {
        let options = PublisherOptions::default()
            .with_history(1)
            .with_memory_limit(16 * nodes::MAX_RECORD as u64);
        let publisher = bus.publisher(topic(), options)?;
        let options = SubscriberOptions::default().with_depth(QUEUE).with_history(1);
        Ok(Records {
            publisher,
            subscriber: bus.subscriber(topic(), options)?,
            here: BTreeMap::new(),
            announced: None,
        })
    }

    /// Receives the records of the contexts on this bus.
    pub(crate) fn hear(&mut self) -> Result<(), bus::TakeError> {
        while let Some(message) = self.subscriber.take()? {
            let id = message.publisher();
            if id == self.publisher.id() {
                continue;
            }
            match Record::decode(message.control()) {
                Some(record) => drop(self.here.insert(id, record)),
                None => {
                    static MALFORMED: clock::Quiet = clock::Quiet::new();
                    if let Some(more) = MALFORMED.lets() {
                        tracing::warn!(publisher = id, more, "ignoring a malformed record of nodes");
                    }
                }
            }
        }
        let there: Vec<u64> = self.subscriber.stats().publishers.iter().map(|p| p.id).collect();
        self.here.retain(|id, _| there.contains(id));
        Ok(())
    }

    /// Returns all nodes of the bus except those that this bridge publishes.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        let participants = self.here.values().flat_map(|r| &r.participants);
        participants.flat_map(|p| &p.nodes)
    }

    /// Returns the quality of service of the bus's publishers, by identity.
    pub(crate) fn offered(&self) -> BTreeMap<u64, Qos> {
        let endpoints = self.here.values().flat_map(Record::endpoints);
        let publishers = endpoints.filter(|e| e.kind == Kind::Publisher);
        publishers.map(|e| (e.id, e.qos)).collect()
    }

    /// Publishes the domain's nodes to the bus's contexts.
    pub(crate) fn announce(&mut self, record: Record) {
        if self.announced.as_ref() == Some(&record) {
            return;
        }
        let bytes = record.encode();
        if Record::decode(&bytes).is_none() {
            let len = bytes.len();
            return tracing::warn!(
                len,
                "more nodes than a record on the bus can hold: bridge fewer topics and services"
            );
        }
        let sent = match self.publisher.loan(bytes.len(), &[]) {
            Ok(mut loan) => {
                loan.control_mut().copy_from_slice(&bytes);
                let sent = self.publisher.publish(loan, Stamp::default());
                sent.map_err(|e| e.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        match sent {
            Ok(_) => self.announced = Some(record),
            Err(error) => tracing::warn!(error, "cannot publish a change of the domain's nodes"),
        }
    }
}

/// Returns the domain's nodes as the bus's contexts see them: with the endpoints that cross. `on_bus` returns the bus's
/// publisher for one of the domain.
pub(crate) fn of_domain(hub: &Hub, picture: &Picture, on_bus: impl Fn(&Seen) -> Option<u64>) -> Record {
    let mut all = Vec::new();
    let from_bridges = hub.config.from_bridges;
    let participants = picture.participants.values();
    for participant in participants.filter(|p| p.bridge.is_none() || from_bridges) {
        let node = |node: &crate::wire::SeenNode| {
            let seen = node.endpoints.iter().filter_map(|id| picture.endpoints.get(id));
            Node {
                name: node.name.clone(),
                namespace: node.namespace.clone(),
                endpoints: seen.filter_map(|s| endpoint(hub, s, &on_bus)).collect(),
            }
        };
        let nodes: Vec<Node> = participant.nodes.iter().map(node).collect();
        if !nodes.is_empty() {
            all.push(Participant {
                enclave: participant.enclave.clone(),
                hosts: Vec::new(),
                nodes,
            });
        }
    }
    fitting(all)
}

/// Selects as many participants as a record holds, smallest first, so that a participant with many nodes does not hide
/// others.
fn fitting(all: Vec<Participant>) -> Record {
    let sized = all.into_iter().map(|participant| {
        let one = Record {
            participants: vec![participant],
        };
        let nodes = one.participants.iter().map(|p| p.nodes.len()).sum();
        ([nodes, one.endpoints().count(), one.encode().len()], one)
    });
    let mut all: Vec<([usize; 3], Record)> = sized.collect();
    // Count each participant by the largest share of a record's limits that it takes.
    all.sort_by_key(|([nodes, endpoints, bytes], _)| {
        let of = |n: &usize, most: usize| n * nodes::MAX_RECORD / most;
        let (nodes, endpoints) = (of(nodes, nodes::MAX_NODES), of(endpoints, nodes::MAX_ENDPOINTS));
        nodes.max(endpoints).max(*bytes)
    });
    let mut out = Record::default();
    let (mut names, mut ends, mut bytes) = (0, 0, Record::default().encode().len());
    let count = all.len();
    for ([own_names, own_ends, own_bytes], one) in all {
        (names, ends, bytes) = (names + own_names, ends + own_ends, bytes + own_bytes);
        let fits = out.participants.len() < nodes::MAX_PARTICIPANTS
            && names <= nodes::MAX_NODES
            && ends <= nodes::MAX_ENDPOINTS
            && bytes <= nodes::MAX_RECORD;
        if !fits {
            let left = count - out.participants.len();
            tracing::debug!(
                left,
                "too many participants: the nodes of some are not published on the bus"
            );
            break;
        }
        out.participants.extend(one.participants);
    }
    out
}

/// Returns an endpoint of the domain as the bus sees it, if it crosses.
fn endpoint(hub: &Hub, seen: &Seen, on_bus: impl Fn(&Seen) -> Option<u64>) -> Option<Endpoint> {
    let name = bus_name(hub, seen.kind, &seen.what.name)?;
    let id = match seen.kind {
        Kind::Publisher => on_bus(seen)?,
        _ => mixed(seen.id),
    };
    Some(Endpoint {
        kind: seen.kind,
        name,
        type_name: seen.what.type_name.clone(),
        type_hash: seen.what.hashes[0].map_or((0, [0; 32]), |hash| (1, hash)),
        id,
        qos: seen.qos,
    })
}

/// Returns the name on the bus of the topic or service that an endpoint of the domain belongs to.
fn bus_name(hub: &Hub, kind: Kind, name: &str) -> Option<String> {
    let rules = hub.rules();
    let to_ros = |direction: bridge::Direction| direction.is_to_ros();
    Some(match kind {
        Kind::Publisher => rules.topic_to_bus(name)?.1,
        Kind::Service => rules.service_to_bus(name)?.1,
        Kind::Subscription => {
            let topics = rules.topics.iter().map(|r| &r.value);
            let rule = best(topics, |r| (&r.name, to_ros(r.direction)), name)?;
            renamed(&rule.name, rule.bus_name(), name)
        }
        Kind::Client => {
            let services = rules.services.iter().map(|r| &r.value);
            let rule = best(services, |r| (&r.name, to_ros(r.direction)), name)?;
            renamed(&rule.name, rule.bus_name(), name)
        }
    })
}

/// An identity for an endpoint that has none on the bus (splitmix64's last step).
fn mixed(id: Id) -> u64 {
    let (high, low) = id.split_at(8);
    let number = |half: &[u8]| half.iter().fold(0, |n, b| n << 8 | u64::from(*b));
    let x = number(high).rotate_left(29) ^ number(low);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// The bridge's endpoints in the domain, by their counterparts on the bus.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    /// By publisher on the bus.
    pub(crate) publishers: BTreeMap<u64, Port>,
    /// By topic or service on the bus.
    pub(crate) subscriptions: BTreeMap<String, Vec<Port>>,
    pub(crate) clients: BTreeMap<String, Port>,
    pub(crate) services: BTreeMap<String, Port>,
}

impl Ports {
    fn of(&self, endpoint: &Endpoint) -> Vec<Port> {
        let name = &endpoint.name;
        let one = match endpoint.kind {
            Kind::Publisher => self.publishers.get(&endpoint.id),
            Kind::Subscription => return self.subscriptions.get(name).cloned().unwrap_or_default(),
            Kind::Client => self.clients.get(name),
            Kind::Service => self.services.get(name),
        };
        one.into_iter().copied().collect()
    }

    fn all(&self) -> BTreeSet<Port> {
        let single = [&self.clients, &self.services]
            .into_iter()
            .flat_map(BTreeMap::values);
        let several = self.subscriptions.values().flatten();
        let all = self.publishers.values().chain(single).chain(several);
        all.copied().collect()
    }
}

/// Returns the bus's nodes as the domain sees them. `plain` are publishers of nodes outside ROS 2, with the names of
/// their nodes. Endpoints without a node belong to the bridge's own node.
pub(crate) fn of_bus<'a>(
    own: &str,
    nodes: impl Iterator<Item = &'a Node>,
    plain: &BTreeMap<u64, String>,
    ports: &Ports,
    domain: &Picture,
) -> Vec<Shown> {
    let there = domain.participants.values().filter(|p| p.bridge.is_none());
    let there: BTreeSet<(&str, &str)> = there
        .flat_map(|p| &p.nodes)
        .map(|n| (n.namespace.as_str(), n.name.as_str()))
        .collect();
    let mut left = ports.all();
    let mut shown: BTreeMap<(String, String), BTreeSet<Port>> = BTreeMap::new();
    for node in nodes.filter(|n| !there.contains(&(n.namespace.as_str(), n.name.as_str()))) {
        let of: Vec<Port> = node.endpoints.iter().flat_map(|e| ports.of(e)).collect();
        left.retain(|port| !of.contains(port));
        let key = (node.namespace.clone(), node.name.clone());
        shown.entry(key).or_default().extend(of);
    }
    for (publisher, name) in plain {
        let Some(port) = ports.publishers.get(publisher).filter(|p| left.contains(p)) else {
            continue;
        };
        if let Some(key) = parted(name) {
            left.remove(port);
            shown.entry(key).or_default().insert(*port);
        }
    }
    if let Some(key) = parted(own) {
        shown.entry(key).or_default().extend(left);
    }
    let shown = shown.into_iter().map(|((namespace, name), ports)| Shown {
        namespace,
        name,
        ports: ports.into_iter().collect(),
    });
    shown.collect()
}

/// Splits a full name into namespace and name, if it is valid in ROS 2.
fn parted(full: &str) -> Option<(String, String)> {
    bridge::check(full, false).ok()?;
    let (namespace, name) = full.rsplit_once('/')?;
    let namespace = if namespace.is_empty() { "/" } else { namespace };
    Some((namespace.to_owned(), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn participant(enclave: &str, count: usize, endpoints: usize) -> Participant {
        let endpoint = Endpoint {
            kind: Kind::Publisher,
            name: "/a".repeat(200),
            type_name: "a/msg/B".into(),
            type_hash: (1, [7; 32]),
            id: 9,
            qos: Qos::default(),
        };
        let node = |n| Node {
            name: format!("node{n}"),
            namespace: "/".into(),
            endpoints: vec![endpoint.clone(); endpoints],
        };
        Participant {
            enclave: enclave.into(),
            hosts: Vec::new(),
            nodes: (0..count).map(node).collect(),
        }
    }

    #[test]
    fn participants_that_say_too_much_of_themselves_do_not_hide_others() {
        for (nodes, endpoints) in [(1_000, 0), (1, 4_096), (100, 40)] {
            let mut all = vec![participant("/honest", 3, 10)];
            all.extend((0..20).map(|_| participant("/", nodes, endpoints)));
            all.push(participant("/honest", 1, 1));
            let record = fitting(all);
            let read = Record::decode(&record.encode()).expect("what a bus takes");
            let honest = read.participants.iter().filter(|p| p.enclave == "/honest");
            assert_eq!(honest.count(), 2, "{nodes} of {endpoints}");
            assert!((2..22).contains(&read.participants.len()));
        }
        let small = vec![participant("/", 1, 1); nodes::MAX_PARTICIPANTS + 9];
        assert_eq!(fitting(small).participants.len(), nodes::MAX_PARTICIPANTS);
    }
}
