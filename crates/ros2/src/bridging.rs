//! The bridge: watches the domain and the bus, and starts and ends what crosses.

use crate::config::{Config, ConfigError, Middleware, Range};
use crate::dds::{self, Dds, DomainConfig};
use crate::early::Message;
use crate::graph::{self, Ports, Records};
use crate::hub::{Hub, lock};
use crate::routes::{RouteTable, Target};
use crate::status::Status;
use crate::types::OnBus;
use crate::wire::{Event, Id, Mark, Picture, Seen, Wire};
use crate::{services, topics};
use bridge::{Direction, Graph, Lock, LockError, problem_at};
use bus::{BusConfig, EndpointDetail};
use ropewalk::{Node, NodeError};
use schema::{Flavour, Registry};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the bus is queried, and how soon after a change of the domain both are checked.
const ROUND: Duration = Duration::from_millis(300);
const SOON: Duration = Duration::from_millis(30);
/// Maximum time that silent endpoints of the bus may delay a query.
const PATIENCE: Duration = Duration::from_millis(200);

/// A bridge between one domain and the bus.
#[derive(Debug)]
pub struct Bridge {
    hub: Arc<Hub>,
    shared: Arc<Shared>,
    records: Records,
    folder: PathBuf,
    lock: Option<Lock>,
}

/// State that its threads and handles share, in addition to the hub.
#[derive(Debug, Default)]
struct Shared {
    routes: Mutex<RouteTable>,
    /// Whether the domain has changed since it was last checked.
    changed: Mutex<bool>,
    rings: Condvar,
    stands_by: Mutex<Option<String>>,
    participants: Mutex<usize>,
    failed: AtomicBool,
}

/// Stops a bridge and reports its status. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    hub: Arc<Hub>,
    shared: Arc<Shared>,
}

impl BridgeError {
    /// Whether the same call may succeed later, because the bridge depends on a host that does not answer yet.
    pub fn is_temporary(&self) -> bool {
        match self {
            #[cfg(feature = "zenoh")]
            BridgeError::Session(crate::zenoh::SessionError::NoRouter { .. }) => true,
            _ => false,
        }
    }
}

/// Why a bridge cannot start, or why it ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The bus cannot be opened.
    #[error(transparent)]
    Bus(#[from] NodeError),
    /// An endpoint of the bus cannot be created.
    #[error(transparent)]
    Endpoint(#[from] bus::CreateError),
    /// The domain cannot be joined.
    #[error("cannot join the domain: {0}")]
    Domain(#[from] rtps::NodeError),
    /// There is no session with Zenoh.
    #[cfg(feature = "zenoh")]
    #[error(transparent)]
    Session(#[from] crate::zenoh::SessionError),
    /// The file that allows only one bridge between a domain and a bus cannot be used.
    #[error("cannot use the lock file {}: {source}; remove it", path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The system provides no thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

impl Bridge {
    /// Joins the domain and opens the bus. Nothing crosses before [`Bridge::run`]. With a Zenoh configuration whose mode
    /// is `client`, this blocks for up to 3 s until a router answers.
    ///
    /// # Errors
    /// [`BridgeError`]; try again if [`BridgeError::is_temporary`].
    pub fn open(config: Config, bus: BusConfig) -> Result<Bridge, BridgeError> {
        config.check()?;
        let domain = config.domain().map_err(wrong)?;
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
        let mark = Mark {
            graph,
            from_bridges: config.from_bridges,
        };
        let (wire, kind): (Arc<dyn Wire>, _) = match config.wire {
            Middleware::Dds => (Arc::new(dds(&config, mark)?), "ros2"),
            #[cfg(feature = "zenoh")]
            Middleware::Zenoh => (Arc::new(zenoh(&config, mark)?), "zenoh"),
            #[cfg(not(feature = "zenoh"))]
            Middleware::Zenoh => unreachable!("the configuration was checked"),
        };
        let records = Records::open(node.bus())?;
        tracing::info!(domain, bus = %folder.display(), node = config.node_name(), "the bridge is up");
        Ok(Bridge {
            hub: Arc::new(Hub::new(config, wire, node, registry, graph)),
            shared: Arc::default(),
            records,
            folder: folder.join(format!("{kind}-{bus_domain}-{domain}")),
            lock: None,
        })
    }

    /// Returns a handle that stops the bridge and reports its status.
    pub fn handle(&self) -> Handle {
        Handle {
            hub: self.hub.clone(),
            shared: self.shared.clone(),
        }
    }

    /// Bridges until [`Handle::stop`]. While another bridge connects the same domain to the same bus, this one stands
    /// by, and takes over when the other ends.
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
        lock(&self.shared.routes).clear(&self.hub);
        // A panic there is already reported, and everything else has ended in order.
        let _ = events.join();
        // Handles may outlive the bridge.
        self.hub.wire.leave();
        ended
    }

    /// Whether this is the bridge that connects the domain to the bus.
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
                    tracing::info!("the other bridge has ended: taking over");
                }
                Ok(true)
            }
            Err(LockError::Held(holder)) => {
                if self.shared.set_stands_by(Some(&holder)) {
                    tracing::info!(
                        holder,
                        "another bridge connects this domain to this bus: standing by"
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
        match hub.wire.problem() {
            Some(problem) => hub.problem("the domain", problem),
            None => hub.solved("the domain"),
        }
        let now = Instant::now();
        let others = picture.participants.values();
        hub.set_bridges(others.filter_map(|p| Some(p.bridge?.graph)), now);
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
        let mut routes = lock(&shared.routes);
        topics::to_bus(&hub, &mut routes, &picture, &bus);
        routes.settle();
        topics::to_ros(&hub, &mut routes, &picture, &bus, &self.records.offered());
        services::to_bus(&hub, &mut routes, &picture, &bus, now);
        services::to_ros(&hub, &mut routes, &bus);
        routes.settle();
        let mut reserved = BTreeMap::new();
        routes
            .incoming
            .values()
            .for_each(|i| i.add_reserved(&mut reserved));
        hub.set_memory(&reserved);
        self.show(&routes, &picture, &bus);
        Ok(())
    }

    /// Shows the nodes of each side to the other.
    fn show(&mut self, routes: &RouteTable, picture: &Picture, bus: &OnBus) {
        let hub = &self.hub;
        let on_bus = |seen: &Seen| routes.incoming.get(&seen.what.name)?.on_bus(seen.id);
        self.records.announce(graph::of_domain(hub, picture, on_bus));
        let mut ports = Ports::default();
        let mut plain = BTreeMap::new();
        for outgoing in routes.outgoing.values() {
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
        for incoming in routes.incoming.values() {
            ports
                .subscriptions
                .insert(incoming.bus_topic.clone(), incoming.ports());
        }
        ports.clients = routes
            .called
            .values()
            .map(|c| (c.bus_name.clone(), c.port))
            .collect();
        ports.services = routes
            .offered
            .values()
            .map(|o| (o.bus_name.clone(), o.port))
            .collect();
        let own = hub.config.node_name();
        let shown = graph::of_bus(&own, self.records.nodes(), &plain, &ports, picture);
        hub.wire.show(shown);
    }
}

fn wrong(problem: String) -> ConfigError {
    problem_at(None, "the configuration", problem)
}

fn dds(config: &Config, mark: Mark) -> Result<Dds, BridgeError> {
    let domain_config = DomainConfig {
        domain: config.domain().map_err(wrong)?,
        range: config.range().map_err(wrong)?,
        peers: config.peers().map_err(wrong)?,
        interfaces: config.interfaces.clone(),
    };
    if domain_config.range == Range::Localhost && domain_config.peers.is_empty() {
        tracing::warn!(
            "only nodes on this host reach the bridge: set `range: subnet` or ROS_AUTOMATIC_DISCOVERY_RANGE for others"
        );
    }
    Ok(Dds::join(domain_config, dds::marked(mark), config.max_message())?)
}

#[cfg(feature = "zenoh")]
fn zenoh(config: &Config, mark: Mark) -> Result<crate::zenoh::Zenoh, BridgeError> {
    let asked = config.zenoh.clone().unwrap_or_default();
    let session_config = crate::zenoh::SessionConfig {
        domain: config.domain().map_err(wrong)?,
        connect: asked.connect,
        config: asked.config,
    };
    Ok(crate::zenoh::Zenoh::join(
        &session_config,
        mark,
        config.max_message(),
    )?)
}

impl Shared {
    /// Forwards events of the domain until the bridge stops.
    fn pump(&self, hub: &Hub) {
        clock::nice_thread(clock::FORWARDING_NICE);
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
                    let target = lock(&self.routes).target(port);
                    if let Some(Target::Incoming(incoming)) = target {
                        let came = Instant::now();
                        let message = Message {
                            port,
                            from,
                            payload,
                            time,
                            came,
                        };
                        incoming.message(hub, message, |participant| self.reserved(participant));
                    }
                }
                Event::Request {
                    port,
                    caller,
                    payload,
                } => {
                    let target = lock(&self.routes).target(port);
                    if let Some(Target::Offered(offered)) = target {
                        offered.request(hub, caller, &payload);
                    }
                }
                Event::Response { port, call, payload } => {
                    let target = lock(&self.routes).target(port);
                    if let Some(Target::Called(called)) = target {
                        called.respond(hub, call, &payload);
                    }
                }
            }
        }
        self.failed.store(true, Ordering::Release);
    }

    /// Number of bytes that the messages of a participant have reserved on the bus.
    fn reserved(&self, participant: Id) -> u64 {
        let all: Vec<_> = lock(&self.routes).incoming.values().cloned().collect();
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

    /// Stores the bridge that this one stands by for. Returns whether that is new.
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

    /// Returns the current status.
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
        let routes = lock(&self.shared.routes);
        for (topic, i) in &routes.incoming {
            let flow = i.counts.flow(&i.bus_topic, i.schema.name(), i.connected());
            status.to_bus.insert(topic.clone(), flow);
        }
        for (topic, o) in &routes.outgoing {
            let connected = o.ports().into_iter().map(|port| hub.wire.connected(port)).sum();
            let flow = o.counts.flow(&o.bus_topic, o.schema.name(), connected);
            status.to_ros.insert(topic.clone(), flow);
        }
        for (name, o) in &routes.offered {
            let to_ros = direction(Direction::ToRos);
            let service = o.counts.service(&o.bus_name, &o.service.name(), to_ros);
            status.services.insert(name.clone(), service);
        }
        for (name, c) in &routes.called {
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
