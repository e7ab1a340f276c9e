//! ROS 2 nodes across a link: a thread tells each peer which nodes this host has, and tells this host's nodes
//! which nodes a peer has.
//!
//! Towards a peer, the nodes are one message of a topic like any other ([`names::nodes_of`]), so the features
//! of topics apply to them: the order on the air, relays, keys, memory. Only endpoints cross that may cross
//! anyway: those of topics and services that the configuration carries and the peer's `allow` permits, on
//! either side (decision 337).

use crate::config::matching::may_take_part;
use crate::config::{self, Config, MAX_REPORTED, PeerConfig};
use crate::names::{self, Line, host_id};
use crate::periodic::PeriodicThread;
use crate::rules::{Right, may};
use bridge::nodes::{self, Endpoint, Kind, MAX_HOSTS, Node, Participant, Record};
use bus::{Bus, CreateError, Publisher, PublisherOptions, Stamp, Subscriber, SubscriberOptions, TopicType};
use std::collections::BTreeMap;
use std::time::Duration;

/// Interval at which to check for changes. Changes within it cross together.
const INTERVAL: Duration = Duration::from_millis(200);
/// Most records of different contexts that may wait.
const QUEUE: u32 = 64;

/// The thread.
pub(crate) struct Nodes {
    _thread: PeriodicThread,
}

impl Nodes {
    /// Starts it. `is_heard` returns whether a peer, by its index, is alive; nodes of other peers are not
    /// shown.
    ///
    /// # Errors
    /// If the bus rejects an endpoint, or no thread can start.
    pub(crate) fn start(
        config: &Config,
        bus: &Bus,
        is_heard: impl Fn(usize) -> bool + Send + 'static,
    ) -> Result<Self, StartError> {
        let mut exchange = Exchange::new(config, bus)?;
        let thread = PeriodicThread::start("link-nodes", move || {
            if let Err(error) = exchange.round(&is_heard) {
                tracing::error!(%error, "the exchange of ROS 2 nodes with peers has ended");
                return None;
            }
            Some(INTERVAL)
        })?;
        Ok(Nodes { _thread: thread })
    }
}

/// Why the exchange cannot start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error(transparent)]
    Thread(#[from] std::io::Error),
}

/// Why a round fails.
#[derive(Debug, thiserror::Error)]
enum RoundError {
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error(transparent)]
    Take(#[from] bus::TakeError),
}

struct Exchange {
    config: Config,
    bus: Bus,
    /// Records of this bus's contexts, and of other links of this host.
    records: Subscriber,
    here: BTreeMap<u64, Record>,
    peers: Vec<Peer>,
}

/// The exchange with one peer: the record sent to it, and the one received.
struct Peer {
    out: Publisher,
    announced: Option<Record>,
    came: Subscriber,
    record: Option<Record>,
    /// The record that this host's nodes see of the peer, and its publisher.
    shown: Option<(Publisher, Record)>,
}

/// The direction in which a record crosses the link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Out,
    In,
}

fn topic(name: String) -> TopicType {
    TopicType {
        topic: name,
        type_name: nodes::TYPE.into(),
        type_hash: nodes::HASH,
        flavour: bus::Flavour::default(),
        definition: nodes::DEFINITION.into(),
    }
}

fn publisher(bus: &Bus, name: String) -> Result<Publisher, CreateError> {
    // One kept message, one being written, and those that slow subscribers hold.
    let options = PublisherOptions::default()
        .with_history(1)
        .with_memory_limit(16 * MAX_REPORTED as u64);
    bus.publisher(topic(name), options)
}

fn subscriber(bus: &Bus, name: String, depth: u32) -> Result<Subscriber, CreateError> {
    let options = SubscriberOptions::default().with_depth(depth).with_history(1);
    bus.subscriber(topic(name), options)
}

/// Publishes a record. Returns false if that has to be tried again.
fn publish(publisher: &Publisher, record: &Record) -> bool {
    let bytes = record.encode();
    let topic = &publisher.topic().topic;
    // In a namespace of this host, names are longer than the peer wrote them.
    if bytes.len() > 2 * MAX_REPORTED {
        let len = bytes.len();
        tracing::warn!(
            topic,
            len,
            "too many ROS 2 nodes for a link: list fewer topics and services"
        );
        return true;
    }
    let sent = match publisher.loan(bytes.len(), &[]) {
        Ok(mut loan) => {
            loan.control_mut().copy_from_slice(&bytes);
            publisher
                .publish(loan, Stamp::default())
                .map_err(|e| e.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    static FAILED: clock::Quiet = clock::Quiet::new();
    if let Err(error) = &sent
        && let Some(suppressed) = FAILED.lets()
    {
        tracing::warn!(
            topic,
            error,
            suppressed,
            "cannot report a change of the ROS 2 graph yet"
        );
    }
    sent.is_ok()
}

impl Exchange {
    fn new(config: &Config, bus: &Bus) -> Result<Self, CreateError> {
        let peer = |p: &PeerConfig| {
            let out = config::on_bus(p, &names::nodes_of(&config.host, &p.name));
            let came = config::on_bus(p, &names::nodes_of(&p.name, &config.host));
            Ok(Peer {
                out: publisher(bus, out)?,
                announced: None,
                came: subscriber(bus, came, 4)?,
                record: None,
                shown: None,
            })
        };
        Ok(Exchange {
            records: subscriber(bus, nodes::TOPIC.into(), QUEUE)?,
            here: BTreeMap::new(),
            peers: config
                .peers
                .iter()
                .map(peer)
                .collect::<Result<_, CreateError>>()?,
            config: config.clone(),
            bus: bus.clone(),
        })
    }

    fn round(&mut self, is_heard: &impl Fn(usize) -> bool) -> Result<(), RoundError> {
        self.hear()?;
        for (index, peer) in self.peers.iter_mut().enumerate() {
            let Some(config) = self.config.peers.get(index) else {
                continue;
            };
            let record = record_for(&self.config, config, self.here.values());
            if peer.announced.as_ref() != Some(&record) && publish(&peer.out, &record) {
                peer.announced = Some(record);
            }
            while let Some(message) = peer.came.take()? {
                let record = Record::decode(message.control());
                if record.is_none() {
                    tracing::warn!(peer = config.name, "ignored its malformed record of nodes");
                }
                peer.record = record;
            }
            if peer.came.stats().publishers.is_empty() {
                peer.record = None;
            }
            let record = peer.record.as_ref().filter(|_| is_heard(index));
            match record.map(|r| taken(&self.config, config, r)) {
                None => peer.shown = None,
                Some(record) => match &mut peer.shown {
                    Some((_, before)) if *before == record => {}
                    Some((publisher, before)) => {
                        if publish(publisher, &record) {
                            *before = record;
                        }
                    }
                    None => {
                        let publisher = publisher(&self.bus, nodes::TOPIC.into())?;
                        if publish(&publisher, &record) {
                            peer.shown = Some((publisher, record));
                        }
                    }
                },
            }
        }
        Ok(())
    }

    /// Receives the records of this bus's contexts.
    fn hear(&mut self) -> Result<(), RoundError> {
        while let Some(message) = self.records.take()? {
            let id = message.publisher();
            let own = |p: &Peer| {
                p.shown
                    .as_ref()
                    .is_some_and(|(publisher, _)| publisher.id() == id)
            };
            if self.peers.iter().any(own) {
                continue;
            }
            match Record::decode(message.control()) {
                Some(record) => drop(self.here.insert(id, record)),
                None => tracing::warn!(publisher = id, "ignored a malformed record of nodes"),
            }
        }
        let there: Vec<u64> = self.records.stats().publishers.iter().map(|p| p.id).collect();
        self.here.retain(|id, _| there.contains(id));
        Ok(())
    }
}

/// The record for a peer: every participant that did not arrive through it, with the endpoints that cross.
fn record_for<'a>(config: &Config, peer: &PeerConfig, here: impl Iterator<Item = &'a Record>) -> Record {
    let to = host_id(&peer.name);
    let all = here.flat_map(|r| &r.participants);
    let all = all.filter(|p| p.hosts.len() < MAX_HOSTS && !p.hosts.contains(&to));
    let crossing = all.filter_map(|p| {
        let name = |bus: &str| config::on_wire(peer, bus).map(str::to_owned);
        through(config, peer, Way::Out, p, |node| {
            // A name of this bus belongs to the peer only below its namespace; nodes keep their names.
            let endpoints = node.endpoints.iter();
            let endpoints = endpoints.filter_map(|e| {
                Some(Endpoint {
                    name: name(&e.name)?,
                    ..e.clone()
                })
            });
            Node {
                endpoints: endpoints.collect(),
                ..node.clone()
            }
        })
    });
    Record {
        participants: crossing.take(nodes::MAX_PARTICIPANTS).collect(),
    }
}

/// The part of a peer's record that this host's nodes see.
fn taken(config: &Config, peer: &PeerConfig, record: &Record) -> Record {
    let (own, from, namespace) = (
        host_id(&config.host),
        host_id(&peer.name),
        config::namespace(peer),
    );
    let all = record.participants.iter();
    let all = all.filter(|p| p.hosts.len() < MAX_HOSTS && !p.hosts.contains(&own));
    let shown = all.filter_map(|p| {
        let mut shown = through(config, peer, Way::In, p, Node::clone)?;
        shown.hosts.push(from);
        // Names that would become too long are left out, so that the rest stays readable.
        let fits = |name: &str| namespace.len() + name.len() <= nodes::MAX_TEXT;
        shown.nodes.retain(|n| fits(&n.namespace));
        for node in &mut shown.nodes {
            node.endpoints.retain(|e| fits(&e.name));
            node.namespace = match node.namespace.as_str() {
                "/" if !namespace.is_empty() => namespace.clone(),
                own => namespace.clone() + own,
            };
            for endpoint in &mut node.endpoints {
                endpoint.name = namespace.clone() + &endpoint.name;
                endpoint.id = mixed(endpoint.id, from);
            }
        }
        Some(shown)
    });
    Record {
        participants: shown.collect(),
    }
}

/// A participant with those of its endpoints that cross, under their names on the air; none if there are none
/// and the peer may not see more.
fn through(
    config: &Config,
    peer: &PeerConfig,
    way: Way,
    participant: &Participant,
    named: impl Fn(&Node) -> Node,
) -> Option<Participant> {
    let nodes = participant.nodes.iter().map(|node| {
        let mut node = named(node);
        node.endpoints.retain(|e| crosses(config, peer, way, e));
        node
    });
    let is_limited = peer.allow.is_some();
    let nodes: Vec<Node> = nodes.filter(|n| !is_limited || !n.endpoints.is_empty()).collect();
    (!nodes.is_empty()).then(|| Participant {
        nodes,
        ..participant.clone()
    })
}

/// Returns whether a link carries the traffic of an endpoint, named as on the air. `way` is the direction of
/// the record that contains it.
fn crosses(config: &Config, peer: &PeerConfig, way: Way, endpoint: &Endpoint) -> bool {
    let name = &endpoint.name;
    let rules = peer.allow.as_ref();
    let sends = || config::sent_by(config, name).is_some() && may(rules, Right::Subscribe, name);
    let receives = || {
        let mut topics = config.topics.iter();
        topics.any(|t| t.direction.receives() && names::covers(&t.name, name))
            && may(rules, Right::Publish, name)
    };
    let service = |line: Line<'_>| may_take_part(config, peer, line);
    match (endpoint.kind, way) {
        (Kind::Publisher, Way::Out) | (Kind::Subscription, Way::In) => sends(),
        (Kind::Publisher, Way::In) | (Kind::Subscription, Way::Out) => receives(),
        // The peer's clients send requests, and its servers send replies.
        (Kind::Service, Way::Out) | (Kind::Client, Way::In) => service(Line::Request(name)),
        (Kind::Service, Way::In) | (Kind::Client, Way::Out) => service(Line::Reply(name)),
    }
}

/// An endpoint's identity here, which differs from the one on its own host's bus (last step of splitmix64).
fn mixed(id: u64, host: u64) -> u64 {
    let x = id ^ host;
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Fuzz target: any peer's input becomes a record that contexts can read.
pub(crate) fn fuzz(data: &[u8]) {
    let Some(record) = Record::decode(data) else {
        return;
    };
    assert_eq!(Record::decode(&record.encode()).as_ref(), Some(&record));
    let text = "{host: base, ros2: true, radio: {bind: '127.0.0.1:7400', rate: 6Mbit/s}, peers: [{name: robot, namespace: /far, \
                address: '127.0.0.1:7401', allow: {publish: ['/*'], subscribe: [/cmd], call: [/do]}}]}";
    let Ok(config) = Config::parse(text) else { return };
    for peer in &config.peers {
        let shown = taken(&config, peer, &record);
        assert!(
            shown
                .participants
                .iter()
                .all(|p| p.hosts.last() == Some(&host_id(&peer.name)))
        );
        assert_eq!(Record::decode(&shown.encode()).as_ref(), Some(&shown));
        let announced = record_for(&config, peer, [&shown].into_iter());
        assert!(announced.participants.is_empty(), "it does not go back");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(rest: &str) -> Config {
        let text = format!("{{host: base, radio: {{bind: '127.0.0.1:7400', rate: 6Mbit/s}}, {rest}}}");
        Config::parse(&text).unwrap_or_else(|e| panic!("{e}"))
    }

    fn node(namespace: &str, endpoints: &[(Kind, &str)]) -> Node {
        let endpoint = |(i, (kind, name)): (usize, &(Kind, &str))| Endpoint {
            kind: *kind,
            name: (*name).into(),
            type_name: "std_msgs/msg/String".into(),
            type_hash: (1, [7; 32]),
            id: i as u64,
            qos: nodes::Qos::default(),
        };
        Node {
            name: "talker".into(),
            namespace: namespace.into(),
            endpoints: endpoints.iter().enumerate().map(endpoint).collect(),
        }
    }

    fn record(hosts: &[u64], nodes: Vec<Node>) -> Record {
        Record {
            participants: vec![Participant {
                enclave: "/".into(),
                hosts: hosts.to_vec(),
                nodes,
            }],
        }
    }

    fn shown(record: &Record) -> Vec<(String, Vec<(Kind, String)>)> {
        let nodes = record.participants.iter().flat_map(|p| &p.nodes);
        let endpoints = |n: &Node| n.endpoints.iter().map(|e| (e.kind, e.name.clone())).collect();
        nodes.map(|n| (n.namespace.clone(), endpoints(n))).collect()
    }

    use Kind::{Client, Publisher as Sends, Service, Subscription as Receives};

    const ALL: [(Kind, &str); 8] = [
        (Sends, "/scan"),
        (Receives, "/cmd_vel"),
        (Sends, "/cmd_vel"),
        (Receives, "/scan"),
        (Service, "/get"),
        (Client, "/do"),
        (Service, "/do"),
        (Sends, "/_hidden/x"),
    ];

    #[test]
    fn nodes_are_announced_with_the_endpoints_the_link_carries() {
        let peer = "peers: [{name: robot, address: '127.0.0.1:7401'}]";
        let listed = "topics: [{name: /scan, direction: out}, {name: /cmd_vel, direction: in}], \
                      services: [{name: /get, role: serve}, {name: /do, role: call}]";
        let here = record(&[], vec![node("/", &ALL), node("/a", &[])]);
        let names = |kinds: &[(Kind, &str)]| {
            kinds
                .iter()
                .map(|(k, n)| (*k, (*n).to_owned()))
                .collect::<Vec<_>>()
        };
        let c = config(&format!("ros2: graph, {peer}, {listed}"));
        let out = record_for(&c, &c.peers[0], [&here].into_iter());
        let expected = names(&[
            (Sends, "/scan"),
            (Receives, "/cmd_vel"),
            (Service, "/get"),
            (Client, "/do"),
        ]);
        assert_eq!(shown(&out), [("/".into(), expected), ("/a".into(), vec![])]);
        // A peer's record is subject to the same rules, in reverse.
        let came = taken(&c, &c.peers[0], &here);
        let expected = names(&[(Sends, "/cmd_vel"), (Receives, "/scan"), (Service, "/do")]);
        assert_eq!(shown(&came)[0].1, expected);
        assert_eq!(came.participants[0].hosts, [host_id("robot")]);
        assert_ne!(
            came.participants[0].nodes[0].endpoints[0].id, 2,
            "ids are this host's own"
        );
        let c = config(&format!("ros2: true, {peer}"));
        assert_eq!(
            shown(&record_for(&c, &c.peers[0], [&here].into_iter()))[0]
                .1
                .len(),
            7,
            "but hidden names"
        );
    }

    #[test]
    fn a_peer_learns_only_of_what_it_may_use() {
        let c = config(
            "ros2: true, peers: [{name: robot, address: '127.0.0.1:7401', allow: {subscribe: [/scan], call: [/get]}}]",
        );
        let here = record(&[], vec![node("/", &ALL), node("/a", &[])]);
        let out = record_for(&c, &c.peers[0], [&here].into_iter());
        assert_eq!(
            shown(&out),
            [(
                "/".into(),
                vec![(Sends, "/scan".into()), (Service, "/get".into())]
            )]
        );
        let came = taken(&c, &c.peers[0], &here);
        assert_eq!(shown(&came), [("/".into(), vec![(Receives, "/scan".into())])]);
    }

    #[test]
    fn names_go_into_the_peers_namespace_and_out_of_it() {
        let c = config("ros2: true, peers: [{name: robot, address: '127.0.0.1:7401', namespace: '/{peer}'}]");
        let here = record(
            &[],
            vec![node("/", &[(Sends, "/robot/cmd_vel"), (Sends, "/other")])],
        );
        let out = record_for(&c, &c.peers[0], [&here].into_iter());
        assert_eq!(shown(&out), [("/".into(), vec![(Sends, "/cmd_vel".into())])]);
        let there = record(&[], vec![node("/", &[(Sends, "/scan")]), node("/arm", &[])]);
        let came = taken(&c, &c.peers[0], &there);
        assert_eq!(
            shown(&came),
            [
                ("/robot".into(), vec![(Sends, "/robot/scan".into())]),
                ("/robot/arm".into(), vec![])
            ]
        );
    }

    #[test]
    fn nodes_do_not_go_in_circles() {
        let c = config("ros2: true, peers: [{name: robot, address: '127.0.0.1:7401'}]");
        let of = |hosts: &[u64]| record(hosts, vec![node("/", &[])]);
        let (own, peer) = (host_id("base"), host_id("robot"));
        for (hosts, crosses) in [
            (vec![], true),
            (vec![9], true),
            (vec![peer], false),
            (vec![1; MAX_HOSTS], false),
        ] {
            let out = record_for(&c, &c.peers[0], [&of(&hosts)].into_iter());
            assert_eq!(!out.participants.is_empty(), crosses, "{hosts:?}");
        }
        for (hosts, crosses) in [
            (vec![], true),
            (vec![9], true),
            (vec![9, own], false),
            (vec![1; MAX_HOSTS], false),
        ] {
            let came = taken(&c, &c.peers[0], &of(&hosts));
            assert_eq!(!came.participants.is_empty(), crosses, "{hosts:?}");
        }
    }
}
