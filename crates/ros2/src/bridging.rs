//! The bridge: watches the domain and the bus, and starts and ends what crosses.

use crate::called::Called;
use crate::config::{Config, ConfigError, Range};
use crate::dds::{self, Dds, Place};
use crate::desk::{Desk, Target};
use crate::graph::{self, Ports, Records};
use crate::hub::{Hub, lock};
use crate::incoming::Incoming;
use crate::offered::Offered;
use crate::outgoing::Outgoing;
use crate::status::Status;
use crate::types::{self, OnBus};
use crate::wire::{Event, Id, Picture, Seen};
use bridge::nodes::policy::{BEST_EFFORT, KEEP_LAST, RELIABLE, TRANSIENT_LOCAL, VOLATILE};
use bridge::nodes::{Kind, Qos};
use bridge::{Direction, Graph, Lock, LockError, problem_at};
use bus::{BusConfig, EndpointDetail, EndpointInfo, TopicInfo};
use ropewalk::{Node, NodeError};
use schema::{Flavour, Registry};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the bus is asked, and how soon after a change of the domain both are looked at.
const ROUND: Duration = Duration::from_millis(300);
const SOON: Duration = Duration::from_millis(30);
/// How long silent endpoints of the bus may hold up a question.
const PATIENCE: Duration = Duration::from_millis(200);
/// What is gone from the bus for this long is ended.
const GRACE: Duration = Duration::from_secs(3);
/// Most topics and services of a direction.
const MAX_TOPICS: usize = 1024;
const MAX_SERVICES: usize = 256;

/// A bridge between one domain and the bus.
#[derive(Debug)]
pub struct Bridge {
    hub: Arc<Hub>,
    shared: Arc<Shared>,
    records: Records,
    folder: PathBuf,
    lock: Option<Lock>,
    /// When each topic of the bus that crosses was seen last, by its name in ROS.
    seen: BTreeMap<String, Instant>,
}

/// What its threads and handles share beside the hub.
#[derive(Debug, Default)]
struct Shared {
    desk: Mutex<Desk>,
    /// Whether the domain has changed since it was looked at.
    changed: Mutex<bool>,
    rings: Condvar,
    stands_by: Mutex<Option<String>>,
    participants: Mutex<usize>,
    failed: AtomicBool,
}

/// Stops a bridge and tells how it is. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    hub: Arc<Hub>,
    shared: Arc<Shared>,
}

/// Why a bridge cannot start, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The bus cannot be opened.
    #[error(transparent)]
    Bus(#[from] NodeError),
    /// An endpoint of the bus cannot be made.
    #[error(transparent)]
    Endpoint(#[from] bus::CreateError),
    /// The domain cannot be joined.
    #[error("the domain: {0}")]
    Domain(#[from] rtps::NodeError),
    /// What says that one bridge brings a domain onto a bus cannot be used.
    #[error("{}: {source}; remove it", path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The system refused a thread.
    #[error("no thread: {0}")]
    Thread(#[from] std::io::Error),
}

impl Bridge {
    /// Joins the domain and opens the bus. Nothing crosses before [`Bridge::run`].
    ///
    /// # Errors
    /// [`BridgeError`]
    pub fn open(config: Config, bus: BusConfig) -> Result<Bridge, BridgeError> {
        config.check()?;
        let wrong = |problem| problem_at(None, "the configuration", problem);
        let place = Place {
            domain: config.domain().map_err(wrong)?,
            range: config.range().map_err(wrong)?,
            peers: config.peers().map_err(wrong)?,
            interfaces: config.interfaces.clone(),
        };
        let mut registry = Registry::from_env(Flavour::Ros2);
        for folder in &config.definitions {
            registry.add_folder(folder);
        }
        let folder = bus.runtime_dir.clone();
        let bus_domain = bus.domain;
        let node = Node::with_config("ros2", bus)?;
        let graph = Graph::new(&format!(
            "{} {}",
            std::process::id(),
            clock::realtime().as_nanos()
        ));
        let domain = place.domain;
        if place.range == Range::Localhost && place.peers.is_empty() {
            tracing::warn!(
                "only this host's nodes reach the bridge: set `range: subnet` or ROS_AUTOMATIC_DISCOVERY_RANGE for others"
            );
        }
        let max_message = config.max_message();
        let wire = Arc::new(Dds::join(place, dds::marked(graph), max_message)?);
        let records = Records::open(node.bus())?;
        tracing::info!(domain, bus = %folder.display(), node = config.node_name(), "the bridge is up");
        Ok(Bridge {
            hub: Arc::new(Hub::new(config, wire, node, registry, graph)),
            shared: Arc::default(),
            records,
            folder: folder.join(format!("ros2-{bus_domain}-{domain}")),
            lock: None,
            seen: BTreeMap::new(),
        })
    }

    /// What stops it, and tells how it is.
    pub fn handle(&self) -> Handle {
        Handle {
            hub: self.hub.clone(),
            shared: self.shared.clone(),
        }
    }

    /// Bridges until [`Handle::stop`]. While another bridge brings the same domain onto the same bus it stands by, and takes over when that ends.
    ///
    /// # Errors
    /// [`BridgeError`]
    pub fn run(mut self) -> Result<(), BridgeError> {
        let (hub, shared) = (self.hub.clone(), self.shared.clone());
        let thread = std::thread::Builder::new().name("ros2-events".into());
        let events = thread.spawn(move || shared.pump(&hub))?;
        let mut ended = Ok(());
        while !self.hub.stopped() && ended.is_ok() {
            ended = self.round();
            self.shared.wait(&self.hub);
        }
        self.hub.stop.store(true, Ordering::Release);
        lock(&self.shared.desk).clear(&self.hub);
        // A panic there was told already, and everything else has ended in order.
        let _ = events.join();
        ended
    }

    /// Whether it is this bridge that brings the domain onto the bus.
    fn is_first(&mut self) -> Result<bool, BridgeError> {
        if self.lock.is_some() {
            return Ok(true);
        }
        let (folder, what) = (self.folder.parent(), self.folder.file_name());
        let (Some(folder), Some(what)) = (folder, what.and_then(|w| w.to_str())) else {
            return Ok(true);
        };
        let holder = format!("process {}", std::process::id());
        match Lock::take(folder, "bridge", what, &holder) {
            Ok(lock) => {
                self.lock = Some(lock);
                if self.shared.set_stands_by(None) {
                    tracing::info!("the other bridge has ended: this one takes over");
                }
                Ok(true)
            }
            Err(LockError::Held(holder)) => {
                if self.shared.set_stands_by(Some(&holder)) {
                    tracing::info!(
                        holder,
                        "another bridge brings this domain onto this bus: this one stands by"
                    );
                }
                Ok(false)
            }
            Err(LockError::File(path, source)) => Err(BridgeError::Lock { path, source }),
        }
    }

    fn round(&mut self) -> Result<(), BridgeError> {
        let hub = self.hub.clone();
        let picture = hub.wire.picture();
        *lock(&self.shared.participants) = picture.participants.len();
        let now = Instant::now();
        let others = picture.participants.values();
        hub.set_bridges(others.filter_map(|p| p.bridge), now);
        if !self.is_first()? {
            return Ok(());
        }
        let bus = match hub.node.bus().survey(PATIENCE) {
            Ok(survey) => OnBus::new(survey),
            Err(error) => {
                hub.problem("the bus", error);
                return Ok(());
            }
        };
        if let Err(error) = self.records.hear() {
            hub.problem("the bus", error);
        } else {
            hub.solved("the bus");
        }
        let shared = self.shared.clone();
        let mut desk = lock(&shared.desk);
        topics_to_bus(&hub, &mut desk, &picture, &bus);
        desk.settle();
        self.topics_to_ros(&mut desk, &picture, &bus);
        services_to_bus(&hub, &mut desk, &picture, &bus, now);
        services_to_ros(&hub, &mut desk, &bus);
        desk.settle();
        let mut reserved = BTreeMap::new();
        desk.incoming.values().for_each(|i| i.add_reserved(&mut reserved));
        hub.set_memory(&reserved);
        self.show(&desk, &picture, &bus);
        Ok(())
    }

    fn topics_to_ros(&mut self, desk: &mut Desk, picture: &Picture, bus: &OnBus) {
        let hub = self.hub.clone();
        let awaited: BTreeSet<&str> = picture
            .endpoints
            .values()
            .filter(|s| s.kind == Kind::Subscription && !is_of_bridge(picture, s))
            .map(|s| s.what.name.as_str())
            .collect();
        let offered = self.records.offered();
        let topics = bus.survey.topics.iter().filter(|t| !t.is_of_service());
        for info in topics {
            let publishers: Vec<&EndpointInfo> =
                info.publishers.iter().filter(|p| !hub.is_own(p.id)).collect();
            let crosses = hub.rules().topic_to_ros(&info.topic.topic);
            let Some((rule, topic)) = crosses.filter(|_| !publishers.is_empty()) else {
                continue;
            };
            self.seen.insert(topic.clone(), Instant::now());
            let publishers: BTreeMap<u64, Qos> = publishers
                .iter()
                .map(|p| (p.id, offer(p, rule, offered.get(&p.id))))
                .collect();
            if !desk.outgoing.contains_key(&topic) {
                if desk.outgoing.len() >= MAX_TOPICS {
                    hub.problem(
                        &topic,
                        format_args!("more than {MAX_TOPICS} topics; the others are left out"),
                    );
                    continue;
                }
                match begin(&hub, info, &topic, rule) {
                    Ok(outgoing) => {
                        hub.solved(&topic);
                        desk.outgoing.insert(topic.clone(), outgoing);
                    }
                    Err(error) => hub.problem(&topic, error),
                }
            }
            if let Some(outgoing) = desk.outgoing.get(&topic) {
                outgoing.update(&hub, &publishers, awaited.contains(topic.as_str()));
            }
        }
        let seen = &mut self.seen;
        desk.outgoing.retain(|topic, outgoing| {
            let stays = seen.get(topic).is_some_and(|seen| seen.elapsed() < GRACE);
            if !stays {
                seen.remove(topic);
                outgoing.end(&hub);
            }
            stays
        });
    }

    /// Shows the nodes of each side to the other.
    fn show(&mut self, desk: &Desk, picture: &Picture, bus: &OnBus) {
        let hub = &self.hub;
        let on_bus = |seen: &Seen| desk.incoming.get(&seen.what.name)?.on_bus(seen.id);
        self.records.tell(graph::of_domain(hub, picture, on_bus));
        let mut ports = Ports::default();
        let mut plain = BTreeMap::new();
        for outgoing in desk.outgoing.values() {
            let of = bus
                .survey
                .topics
                .iter()
                .filter(|t| t.topic.topic == outgoing.bus_topic);
            for publisher in of.flat_map(|t| &t.publishers) {
                if let Some(port) = outgoing.port(publisher.id) {
                    ports.publishers.insert(publisher.id, port);
                    if let EndpointDetail::Publisher(p) = &publisher.detail {
                        plain.insert(publisher.id, p.offer.node.clone());
                    }
                }
            }
        }
        for incoming in desk.incoming.values() {
            ports
                .subscriptions
                .insert(incoming.bus_topic.clone(), incoming.ports());
        }
        ports.clients = desk
            .called
            .values()
            .map(|c| (c.bus_name.clone(), c.port))
            .collect();
        ports.services = desk
            .offered
            .values()
            .map(|o| (o.bus_name.clone(), o.port))
            .collect();
        let own = hub.config.node_name();
        let shown = graph::of_bus(&own, self.records.nodes(), &plain, &ports, picture);
        hub.wire.show(shown);
    }
}

/// The quality of service of a publisher of the bus: what its node of ROS 2 says, else what the bus says of it.
fn offer(publisher: &EndpointInfo, rule: &bridge::TopicRule, told: Option<&Qos>) -> Qos {
    let mut qos = told.copied().unwrap_or_else(|| {
        let EndpointDetail::Publisher(info) = &publisher.detail else {
            return Qos::default();
        };
        let offer = &info.offer;
        Qos {
            history: KEEP_LAST,
            reliability: match offer.reliability {
                Some(bus::Reliability::BestEffort) => BEST_EFFORT,
                _ => RELIABLE,
            },
            durability: kept(offer.history > 0),
            depth: u64::from(offer.depth.max(offer.history)),
            ..Qos::default()
        }
    });
    if let Some(latched) = rule.latched {
        qos.durability = kept(latched);
    }
    if qos.durability != TRANSIENT_LOCAL {
        qos.depth = qos.depth.max(rule.depth().into());
    }
    qos
}

/// The durability of what is kept for later subscribers, or is not.
fn kept(is_kept: bool) -> u8 {
    if is_kept { TRANSIENT_LOCAL } else { VOLATILE }
}

fn begin(
    hub: &Arc<Hub>,
    info: &TopicInfo,
    topic: &str,
    rule: &bridge::TopicRule,
) -> Result<Arc<Outgoing>, String> {
    let name = &info.topic.type_name;
    let schema = hub.node.schema_of(info).map_err(|e| e.to_string())?;
    if let Some(wanted) = rule
        .kind
        .as_ref()
        .filter(|k| *k != name && **k != schema.ros2_name())
    {
        return Err(format!(
            "on the bus it is a {name}, and the rule asks for {wanted}: mend `type`"
        ));
    }
    // Messages of ROS 1 are converted on the way.
    let schema = schema.in_flavour(Flavour::Ros2).map_err(|error| {
        format!("on the bus it has ROS 1's definition of {name}, which ROS 2 cannot have: {error}")
    })?;
    let made = Outgoing::new(topic.to_owned(), info.topic.topic.clone(), schema, rule);
    made.map_err(|e| e.to_string())
}

fn topics_to_bus(hub: &Hub, desk: &mut Desk, picture: &Picture, bus: &OnBus) {
    let nodes = node_names(picture);
    let mut topics: BTreeMap<&str, Vec<(&Seen, String)>> = BTreeMap::new();
    for seen in picture.endpoints.values().filter(|s| s.kind == Kind::Publisher) {
        if !is_of_bridge(picture, seen) {
            let node = nodes.get(&seen.id).cloned().unwrap_or_default();
            topics.entry(&seen.what.name).or_default().push((seen, node));
        }
    }
    for (topic, publishers) in &topics {
        let Some((rule, bus_topic)) = hub.rules().topic_to_bus(topic) else {
            continue;
        };
        if !desk.incoming.contains_key(*topic) {
            if desk.incoming.len() >= MAX_TOPICS {
                hub.problem(
                    topic,
                    format_args!("more than {MAX_TOPICS} topics; the others are left out"),
                );
                continue;
            }
            // One publisher whose type cannot be used does not cost the others.
            let made = publishers.iter().map(|(seen, _)| {
                let schema = types::of_topic(hub, bus, &seen.what, rule).map_err(|e| e.to_string())?;
                Incoming::new(topic, bus_topic.clone(), schema, rule).map_err(|e| e.to_string())
            });
            let mut problem = None;
            let made = made.filter_map(|m| m.map_err(|e| problem = Some(e)).ok()).next();
            match (made, problem) {
                (Some(incoming), _) => {
                    hub.solved(topic);
                    desk.incoming.insert((*topic).to_owned(), Arc::new(incoming));
                }
                (None, problem) => {
                    hub.problem(topic, problem.unwrap_or_default());
                    continue;
                }
            }
        }
        let Some(incoming) = desk.incoming.get(*topic) else {
            continue;
        };
        let named = types::named_topic(topic, &incoming.schema);
        let fits = |seen: &Seen| {
            let hash = seen.what.hashes[0];
            seen.what.type_name == named.type_name && (hash.is_none() || hash == named.hashes[0])
        };
        let (fitting, others): (Vec<_>, Vec<_>) =
            publishers.iter().cloned().partition(|(seen, _)| fits(seen));
        if let Some((other, node)) = others.first() {
            hub.problem(
                topic,
                format_args!(
                    "{node} publishes it as another {}: left out; build all its nodes against one definition",
                    other.what.type_name
                ),
            );
        }
        let on_bus = bus
            .survey
            .topics
            .iter()
            .filter(|t| t.topic.topic == incoming.bus_topic);
        let is_heard = on_bus.flat_map(|t| &t.subscribers).any(|s| !hub.is_own(s.id));
        incoming.update(hub, &fitting, is_heard);
    }
    desk.incoming.retain(|topic, incoming| {
        let stays = topics.contains_key(topic.as_str());
        if !stays {
            incoming.end(hub);
        }
        stays
    });
}

/// The full names of the nodes whose endpoints these are.
fn node_names(picture: &Picture) -> BTreeMap<Id, String> {
    let nodes = picture.participants.values().flat_map(|p| &p.nodes);
    let named = nodes.flat_map(|node| {
        let full = format!("{}/{}", node.namespace.trim_end_matches('/'), node.name);
        let full = if full.len() <= bus::MAX_NAME {
            full
        } else {
            String::new()
        };
        node.endpoints.iter().map(move |id| (*id, full.clone()))
    });
    named.collect()
}

fn is_of_bridge(picture: &Picture, seen: &Seen) -> bool {
    let participant = picture.participants.get(&seen.participant);
    participant.is_some_and(|p| p.bridge.is_some())
}

/// Services of the domain onto the bus. What goes wrong is each service's own.
fn services_to_bus(hub: &Arc<Hub>, desk: &mut Desk, picture: &Picture, bus: &OnBus, now: Instant) {
    let servers = picture.endpoints.values().filter(|s| s.kind == Kind::Service);
    let servers: Vec<&Seen> = servers.filter(|s| !is_of_bridge(picture, s)).collect();
    for seen in &servers {
        let name = &seen.what.name;
        let Some((rule, bus_name)) = hub.rules().service_to_bus(name) else {
            continue;
        };
        if !desk.called.contains_key(name) {
            if desk.called.len() >= MAX_SERVICES {
                hub.problem(
                    name,
                    format_args!("more than {MAX_SERVICES} services; the others are left out"),
                );
                continue;
            }
            let made =
                types::of_service(hub, bus, &seen.what, rule.kind.as_deref()).map_err(|e| e.to_string());
            let made = made.and_then(|service| {
                Called::new(hub, name, bus_name, service, rule).map_err(|e| e.to_string())
            });
            match made {
                Ok(called) => drop(desk.called.insert(name.clone(), called)),
                Err(error) => {
                    hub.problem(name, error);
                    continue;
                }
            }
        }
        if let Some(called) = desk.called.get(name) {
            match called.offer(hub) {
                Ok(()) => hub.solved(name),
                Err(error) => hub.problem(name, error),
            }
        }
    }
    let there: BTreeSet<&str> = servers.iter().map(|s| s.what.name.as_str()).collect();
    desk.called.retain(|name, called| {
        let stays = there.contains(name.as_str());
        if stays {
            called.sweep(now);
        } else {
            called.end(hub);
        }
        stays
    });
}

fn services_to_ros(hub: &Arc<Hub>, desk: &mut Desk, bus: &OnBus) {
    let mut there = BTreeSet::new();
    for info in &bus.services {
        let served = info.servers.iter().any(|s| !hub.is_own(s.id));
        let crosses = hub.rules().service_to_ros(&info.service.service);
        let Some((rule, name)) = crosses.filter(|_| served) else {
            continue;
        };
        there.insert(name.clone());
        if desk.offered.contains_key(&name) {
            continue;
        }
        if desk.offered.len() >= MAX_SERVICES {
            hub.problem(
                &name,
                format_args!("more than {MAX_SERVICES} services; the others are left out"),
            );
            continue;
        }
        let made = hub.node.schema_of_service(info).map_err(|e| e.to_string());
        // One of ROS 1 is served as its namesake.
        let made = made.and_then(|service| {
            service.in_flavour(Flavour::Ros2).map_err(|error| {
                format!("on the bus it has ROS 1's definition, which ROS 2 cannot have: {error}")
            })
        });
        let made = made.and_then(|service| {
            let kind = &info.service.type_name;
            if let Some(wanted) = rule.kind.as_ref().filter(|k| *k != kind) {
                return Err(format!(
                    "on the bus it is a {kind}, and the rule asks for {wanted}: mend `type`"
                ));
            }
            let bus_name = info.service.service.clone();
            Offered::start(hub, name.clone(), bus_name, service, rule).map_err(|e| e.to_string())
        });
        match made {
            Ok(offered) => {
                hub.solved(&name);
                desk.offered.insert(name, offered);
            }
            Err(error) => hub.problem(&name, error),
        }
    }
    desk.offered.retain(|name, offered| {
        let stays = there.contains(name);
        if !stays {
            offered.end(hub);
        }
        stays
    });
}

impl Shared {
    /// Hands on what comes from the domain until the bridge stops.
    fn pump(&self, hub: &Hub) {
        while !hub.stopped() {
            let Some(event) = hub.wire.next(Duration::from_millis(100)) else {
                continue;
            };
            match event {
                Event::Changed => {
                    *lock(&self.changed) = true;
                    self.rings.notify_all();
                }
                Event::Message {
                    port,
                    from,
                    payload,
                    time,
                } => {
                    let target = lock(&self.desk).target(port);
                    if let Some(Target::Incoming(incoming)) = target {
                        let reserved = |participant| self.reserved(participant);
                        incoming.message(hub, (port, from), &payload, time, reserved);
                    }
                }
                Event::Request {
                    port,
                    caller,
                    payload,
                } => {
                    let target = lock(&self.desk).target(port);
                    if let Some(Target::Offered(offered)) = target {
                        offered.request(hub, caller, &payload);
                    }
                }
                Event::Response { port, call, payload } => {
                    let target = lock(&self.desk).target(port);
                    if let Some(Target::Called(called)) = target {
                        called.respond(hub, call, &payload);
                    }
                }
            }
        }
        self.failed.store(true, Ordering::Release);
    }

    /// What the messages of a participant have reserved on the bus.
    fn reserved(&self, participant: Id) -> u64 {
        let all: Vec<_> = lock(&self.desk).incoming.values().cloned().collect();
        let mut reserved = BTreeMap::new();
        all.iter().for_each(|i| i.add_reserved(&mut reserved));
        reserved.get(&participant).copied().unwrap_or_default()
    }

    /// Waits until it is time for the next round.
    fn wait(&self, hub: &Hub) {
        std::thread::sleep(SOON);
        let changed = lock(&self.changed);
        let waits = |changed: &mut bool| !*changed && !hub.stopped();
        let waited = self.rings.wait_timeout_while(changed, ROUND, waits);
        let (mut changed, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *changed = false;
    }

    /// Whether that is new.
    fn set_stands_by(&self, holder: Option<&str>) -> bool {
        let mut stands_by = lock(&self.stands_by);
        let is_new = stands_by.as_deref() != holder;
        *stands_by = holder.map(str::to_owned);
        is_new
    }
}

impl Handle {
    /// Makes [`Bridge::run`] return within a second.
    pub fn stop(&self) {
        self.hub.stop.store(true, Ordering::Release);
        self.shared.rings.notify_all();
    }

    /// How it is at present.
    pub fn status(&self) -> Status {
        let hub = &self.hub;
        let mut status = Status {
            node: hub.config.node_name(),
            domain: hub.config.domain().unwrap_or_default(),
            stands_by: lock(&self.shared.stands_by).clone(),
            participants: *lock(&self.shared.participants),
            problems: hub.problems(),
            refused: hub.wire.refused(),
            ..Status::default()
        };
        let desk = lock(&self.shared.desk);
        for (topic, i) in &desk.incoming {
            let flow = i.counts.flow(&i.bus_topic, i.schema.name(), i.connected());
            status.to_bus.insert(topic.clone(), flow);
        }
        for (topic, o) in &desk.outgoing {
            let connected = o.ports().into_iter().map(|port| hub.wire.connected(port)).sum();
            let flow = o.counts.flow(&o.bus_topic, o.schema.name(), connected);
            status.to_ros.insert(topic.clone(), flow);
        }
        for (name, o) in &desk.offered {
            let to_ros = direction(Direction::ToRos);
            let service = o.counts.service(&o.bus_name, &o.service.name(), to_ros);
            status.services.insert(name.clone(), service);
        }
        for (name, c) in &desk.called {
            let to_bus = direction(Direction::ToBus);
            let service = c.counts.service(&c.bus_name, &c.service.name(), to_bus);
            status.services.insert(name.clone(), service);
        }
        status
    }
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::ToBus => "to_bus",
        Direction::ToRos => "to_ros",
        Direction::Both => "both",
    }
}
