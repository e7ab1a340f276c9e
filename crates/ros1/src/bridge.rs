//! The bridge: watches the master and the bus, and starts and ends what crosses.

use crate::address::Address;
use crate::called::{Called, CalledError};
use crate::config::{Config, ConfigError, Direction};
use crate::hub::{Hub, lock};
use crate::listener::Listener;
use crate::master::{ApiError, Master, State};
use crate::net::HostPort;
use crate::offered::Offered;
use crate::peers::Peers;
use crate::publication::Publication;
use crate::slave;
use crate::status::Status;
use crate::subscription::Subscription;
use bus::{BusConfig, EndpointDetail, TopicInfo};
use ropewalk::{Node, NodeError};
use schema::{Flavour, Registry};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

/// How often the master and the bus are queried.
const ROUND: Duration = Duration::from_millis(500);
/// Maximum time that silent endpoints of the bus may delay a query.
const PATIENCE: Duration = Duration::from_millis(200);
/// A route whose endpoint has been missing for this long is removed.
const GRACE: Duration = Duration::from_secs(3);
/// How often a service that could not be offered is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// Maximum number of topics that come from ROS, and of services: a node may register any number of names.
const MAX_TOPICS: usize = 1024;
const MAX_SERVICES: usize = 256;

/// A bridge between one ROS master and the bus.
#[derive(Debug)]
pub struct Bridge {
    hub: Arc<Hub>,
    reached: Arc<AtomicBool>,
    called: BTreeMap<String, Arc<Called>>,
    /// For [`Handle::status`].
    shown_called: Arc<Mutex<BTreeMap<String, Arc<Called>>>>,
    /// When each crossing topic of the bus was last seen, by name in ROS.
    seen: BTreeMap<String, Instant>,
    /// Services that were refused: their servers, and when.
    refused: BTreeMap<String, (Vec<String>, Instant)>,
    _slave: Listener,
    _tcpros: Listener,
}

/// Stops a bridge and reports its status. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    hub: Arc<Hub>,
    reached: Arc<AtomicBool>,
    called: Arc<Mutex<BTreeMap<String, Arc<Called>>>>,
}

/// Why a bridge cannot start, or why it ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// `ROS_IP` or `ROS_HOSTNAME` cannot be used.
    #[error("{0}")]
    Address(String),
    /// The bus cannot be opened.
    #[error(transparent)]
    Bus(#[from] NodeError),
    /// The bridge cannot listen.
    #[error(
        "cannot listen at {host}: {source}; is ROS_IP, ROS_HOSTNAME or `listen` an address of this host?"
    )]
    Listen {
        /// The address.
        host: String,
        /// The reason.
        source: io::Error,
    },
    /// The master, or another node, asked it to shut down.
    #[error(
        "the bridge was asked to shut down: {reason}; a second bridge on one master needs its own name \
             (`node`)"
    )]
    Dismissed {
        /// Their reason.
        reason: String,
    },
}

impl Bridge {
    /// Listens and opens the bus. Contacts the master only in [`Bridge::run`].
    ///
    /// # Errors
    /// [`BridgeError`]
    pub fn open(config: Config, bus: BusConfig) -> Result<Bridge, BridgeError> {
        config.check()?;
        let var = |name| std::env::var(name).ok();
        let host_name = || {
            let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
            if name.is_empty() { "localhost".into() } else { name }
        };
        let address = Address::choose(config.listen, var("ROS_HOSTNAME"), var("ROS_IP"), host_name);
        let address = address.map_err(|e| BridgeError::Address(e.to_string()))?;
        let peers = Arc::new(Peers::new(
            &config.peers,
            config.peer_memory(),
            config.known_memory(),
        ));
        let hub = Arc::<OnceLock<Weak<Hub>>>::default();
        let listen = |name, serve: fn(&Arc<Hub>, &crate::listener::Accepted)| {
            let hub = hub.clone();
            let listener = Listener::start(name, address.bind, &peers, move |accepted| {
                if let Some(hub) = hub.get().and_then(Weak::upgrade) {
                    serve(&hub, &accepted);
                }
            });
            listener.map_err(|source| BridgeError::Listen {
                host: address.bind.to_string(),
                source,
            })
        };
        let slave = listen("ros-slave", slave::serve)?;
        let tcpros = listen("ros-listener", slave::connection)?;
        let at = |port| HostPort {
            host: address.host.clone(),
            port,
        };
        let master_address = config.master_address().map_err(|problem| ConfigError::Problem {
            place: "the configuration".into(),
            problem,
        })?;
        let master = Master {
            caller: config.node_name(),
            api: format!("http://{}/", at(slave.port())),
            peers: peers.clone(),
            address: master_address,
        };
        let mut registry = Registry::from_env(Flavour::Ros1);
        for folder in &config.definitions {
            registry.add_folder(folder);
        }
        let node = Node::with_config("ros1", bus)?;
        tracing::info!(master = %master.address, node = master.caller, listens = %at(tcpros.port()), "the bridge is up");
        if address.bind.is_loopback() {
            let far = if master.address.is_loopback() {
                ""
            } else {
                ", and the master is on another host"
            };
            tracing::warn!(
                "only nodes on this host reach the bridge{far}: set ROS_IP (or --listen) for others"
            );
        }
        let own = Arc::new(Hub::new(config, master, at(tcpros.port()), node, registry));
        let _ = hub.set(Arc::downgrade(&own));
        Ok(Bridge {
            hub: own,
            reached: Arc::default(),
            called: BTreeMap::new(),
            shown_called: Arc::default(),
            seen: BTreeMap::new(),
            refused: BTreeMap::new(),
            _slave: slave,
            _tcpros: tcpros,
        })
    }

    /// Returns a handle that stops the bridge and reports its status.
    pub fn handle(&self) -> Handle {
        Handle {
            hub: self.hub.clone(),
            reached: self.reached.clone(),
            called: self.shown_called.clone(),
        }
    }

    /// Bridges until [`Handle::stop`]. While the master is out of reach, the bridge retries, and existing connections
    /// go on. After a restart of the master, everything is registered again.
    ///
    /// # Errors
    /// [`BridgeError::Dismissed`]
    pub fn run(mut self) -> Result<(), BridgeError> {
        while !self.hub.stopped() {
            let begun = Instant::now();
            self.round();
            while !self.hub.stopped() && begun.elapsed() < ROUND {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        self.end();
        match lock(&self.hub.dismissed).take() {
            Some(reason) => Err(BridgeError::Dismissed { reason }),
            None => Ok(()),
        }
    }

    fn round(&mut self) {
        let hub = self.hub.clone();
        let asked = hub.master.identity().and_then(|identity| {
            let types = hub.master.types()?;
            Ok((identity, types, hub.master.state()?))
        });
        let what = "the ROS master";
        let (identity, types, state) = match asked {
            Ok(asked) => asked,
            Err(error) => {
                self.reached.store(false, Ordering::Release);
                return hub.problem(
                    what,
                    format_args!("{error}; retrying (check ROS_MASTER_URI; is roscore running?)"),
                );
            }
        };
        self.reached.store(true, Ordering::Release);
        hub.solved(what);
        hub.set_graph(&identity);
        // Every error here concerns the master, so the next round handles it.
        let done = self.topics_to_bus(&state, &types).and_then(|()| {
            let topics = match hub.node.topics() {
                Ok(topics) => topics,
                Err(error) => {
                    hub.problem("the bus", error);
                    return Ok(());
                }
            };
            self.topics_to_ros(&state, topics)?;
            self.services_to_bus(&state);
            self.services_to_ros(&state)
        });
        if let Err(error) = done {
            hub.problem(what, error);
        }
    }

    /// Whether any of `nodes` is not this bridge.
    fn others(&self, nodes: &[String]) -> bool {
        nodes.iter().any(|n| n != self.hub.name())
    }

    fn registered(&self, nodes: Option<&Vec<String>>) -> bool {
        nodes.is_some_and(|n| n.iter().any(|n| n == self.hub.name()))
    }

    fn topics_to_bus(&mut self, state: &State, types: &BTreeMap<String, String>) -> Result<(), ApiError> {
        let hub = &self.hub;
        for (topic, nodes) in &state.publishers {
            let Some((rule, bus_topic)) = hub
                .config
                .rules()
                .topic_to_bus(topic)
                .filter(|_| self.others(nodes))
            else {
                continue;
            };
            let (known, count) = {
                let all = lock(&hub.subscriptions);
                (all.get(topic).cloned(), all.len())
            };
            if known.is_none() && count >= MAX_TOPICS {
                hub.problem(
                    topic,
                    format_args!("more than {MAX_TOPICS} topics: ignoring the others"),
                );
                continue;
            }
            let subscription = known.unwrap_or_else(|| {
                let kind = types.get(topic).cloned().unwrap_or_else(|| "*".into());
                let new = Subscription::new(topic.clone(), bus_topic, kind, rule.clone());
                lock(&hub.subscriptions).insert(topic.clone(), new.clone());
                new
            });
            // Also after a restart of the master.
            if !self.registered(state.subscribers.get(topic)) || subscription.is_doubted(nodes) {
                let uris = hub.master.register_subscriber(topic, &subscription.kind)?;
                subscription.asked(nodes);
                subscription.update(hub, &uris);
            }
        }
        let all: Vec<_> = lock(&hub.subscriptions).values().cloned().collect();
        for subscription in all {
            let topic = &subscription.topic;
            let published = state.publishers.get(topic).is_some_and(|n| self.others(n));
            if !published && !subscription.is_alive() {
                lock(&hub.subscriptions).remove(topic);
                subscription.stop();
                hub.forget(topic);
                hub.master.unregister_subscriber(topic)?;
            }
        }
        Ok(())
    }

    fn topics_to_ros(&mut self, state: &State, topics: Vec<TopicInfo>) -> Result<(), ApiError> {
        let hub = self.hub.clone();
        for info in topics {
            let others = info.publishers.iter().filter(|p| !hub.is_own(p.id));
            let Some((rule, topic)) = hub
                .config
                .rules()
                .topic_to_ros(&info.topic.topic)
                .filter(|_| others.clone().count() > 0)
            else {
                continue;
            };
            self.seen.insert(topic.clone(), Instant::now());
            if lock(&hub.publications).contains_key(&topic) {
                continue;
            }
            if let Some(wanted) = rule.kind.as_ref().filter(|k| **k != info.topic.type_name) {
                hub.problem(
                    &topic,
                    format_args!(
                        "its type on the bus is {}, but the rule requires {wanted}: correct `type`",
                        info.topic.type_name
                    ),
                );
                continue;
            }
            let schema = match hub.node.schema_of(&info) {
                // Messages of ROS 2 are converted on the way.
                Ok(schema) => match schema.in_flavour(Flavour::Ros1) {
                    Ok(schema) => schema,
                    Err(error) => {
                        hub.problem(
                            &topic,
                            format_args!(
                                "on the bus it has a ROS 2 definition of {} that cannot be converted to ROS 1: {error}",
                                info.topic.type_name
                            ),
                        );
                        continue;
                    }
                },
                Err(error) => {
                    hub.problem(&topic, error);
                    continue;
                }
            };
            let keeps = |d: &EndpointDetail| matches!(d, EndpointDetail::Publisher(p) if p.offer.history > 0);
            let latched = rule.latched.unwrap_or(others.clone().any(|p| keeps(&p.detail)));
            match Publication::start(
                &hub,
                topic.clone(),
                info.topic.topic.clone(),
                schema,
                rule,
                latched,
            ) {
                Ok(publication) => {
                    hub.solved(&topic);
                    lock(&hub.publications).insert(topic, publication);
                }
                Err(error) => hub.problem(&topic, error),
            }
        }
        let all: Vec<_> = lock(&hub.publications).values().cloned().collect();
        for publication in all {
            let topic = &publication.topic;
            if self.seen.get(topic).is_none_or(|seen| seen.elapsed() > GRACE) {
                self.seen.remove(topic);
                lock(&hub.publications).remove(topic);
                publication.stop();
                hub.forget(topic);
                hub.master.unregister_publisher(topic)?;
            } else if !self.registered(state.publishers.get(topic)) {
                hub.master.register_publisher(topic, publication.schema.name())?;
            }
        }
        Ok(())
    }

    /// Updates services of ROS that go onto the bus. Each service's problems affect only that service.
    fn services_to_bus(&mut self, state: &State) {
        let hub = self.hub.clone();
        for (name, nodes) in &state.services {
            let Some((rule, bus_name)) = hub
                .config
                .rules()
                .service_to_bus(name)
                .filter(|_| self.others(nodes))
            else {
                continue;
            };
            let early = |(names, when): &(Vec<String>, Instant)| names == nodes && when.elapsed() < AGAIN;
            if self.called.contains_key(name) || self.refused.get(name).is_some_and(early) {
                continue;
            }
            if self.called.len() + self.refused.len() >= MAX_SERVICES && !self.refused.contains_key(name) {
                hub.problem(
                    name,
                    format_args!("more than {MAX_SERVICES} services: ignoring the others"),
                );
                continue;
            }
            match Called::start(&hub, name, bus_name, rule) {
                Ok(called) => {
                    hub.solved(name);
                    self.refused.remove(name);
                    self.called.insert(name.clone(), called);
                }
                Err(error) => {
                    if !matches!(error, CalledError::Bridge) {
                        hub.problem(name, error);
                    }
                    self.refused.insert(name.clone(), (nodes.clone(), Instant::now()));
                }
            }
        }
        self.called.retain(|name, called| {
            let there = state.services.contains_key(name);
            if !there {
                called.stop();
                hub.forget(name);
            }
            there
        });
        self.refused.retain(|name, _| state.services.contains_key(name));
        *lock(&self.shown_called) = self.called.clone();
    }

    fn services_to_ros(&mut self, state: &State) -> Result<(), ApiError> {
        let hub = self.hub.clone();
        let services = match hub.node.bus().services(PATIENCE) {
            Ok(services) => services,
            Err(error) => {
                hub.problem("the bus", error);
                return Ok(());
            }
        };
        let at = format!("rosrpc://{}", hub.tcpros);
        let mut there = BTreeSet::new();
        for info in services {
            let own = self.called.values().any(|c| c.id() == info.service.service);
            let Some((rule, name)) = hub
                .config
                .rules()
                .service_to_ros(&info.service.service)
                .filter(|_| !own && !info.servers.is_empty())
            else {
                continue;
            };
            let served = state.services.get(&name);
            if let Some(other) = served.and_then(|n| n.iter().find(|n| *n != hub.name())) {
                hub.problem(&name, format_args!("{other} already serves it in ROS: stop that node, or give the bus's service another name in ROS (`name` and `bus`)"));
                continue;
            }
            there.insert(name.clone());
            if !lock(&hub.offered).contains_key(&name) {
                let service = hub.node.schema_of_service(&info);
                // A service of ROS 2 is served as the ROS 1 service of the same name.
                let service = service.map(|s| s.in_flavour(Flavour::Ros1).unwrap_or(s));
                let wanted = rule.kind.as_ref().filter(|k| **k != info.service.type_name);
                if let Some(wanted) = wanted {
                    hub.problem(
                        &name,
                        format_args!(
                            "its type on the bus is {}, but the rule requires {wanted}: correct `type`",
                            info.service.type_name
                        ),
                    );
                    continue;
                }
                let offered = service.and_then(|service| {
                    let bus_name = info.service.service.clone();
                    Offered::new(&hub, name.clone(), bus_name, service, rule)
                });
                match offered {
                    Ok(offered) => {
                        hub.solved(&name);
                        lock(&hub.offered).insert(name.clone(), Arc::new(offered));
                    }
                    Err(error) => {
                        hub.problem(&name, error);
                        continue;
                    }
                }
            }
            if served.is_none() {
                hub.master.register_service(&name, &at)?;
            }
        }
        let gone: Vec<_> = lock(&hub.offered)
            .values()
            .filter(|o| !there.contains(&o.name))
            .cloned()
            .collect();
        for offered in gone {
            lock(&hub.offered).remove(&offered.name);
            offered.stop();
            hub.forget(&offered.name);
            hub.master.unregister_service(&offered.name, &at)?;
        }
        Ok(())
    }

    /// Unregisters from the master, if it answers.
    fn end(&mut self) {
        let hub = &self.hub;
        hub.stop.store(true, Ordering::Release);
        let subscriptions = std::mem::take(&mut *lock(&hub.subscriptions));
        let publications = std::mem::take(&mut *lock(&hub.publications));
        let offered = std::mem::take(&mut *lock(&hub.offered));
        subscriptions.values().for_each(|s| s.stop());
        publications.values().for_each(|p| p.stop());
        offered.values().for_each(|o| o.stop());
        self.called.values().for_each(|c| c.stop());
        if !self.reached.load(Ordering::Acquire) {
            return;
        }
        let at = format!("rosrpc://{}", hub.tcpros);
        let leave = || {
            subscriptions
                .keys()
                .try_for_each(|t| hub.master.unregister_subscriber(t))?;
            publications
                .keys()
                .try_for_each(|t| hub.master.unregister_publisher(t))?;
            offered
                .keys()
                .try_for_each(|s| hub.master.unregister_service(s, &at))
        };
        if let Err(error) = leave() {
            tracing::debug!(%error, "cannot unregister from the master");
        }
    }
}

impl Handle {
    /// Makes [`Bridge::run`] return within a few seconds.
    pub fn stop(&self) {
        self.hub.stop.store(true, Ordering::Release);
    }

    /// Returns the current status.
    pub fn status(&self) -> Status {
        let hub = &self.hub;
        let mut status = Status {
            node: hub.name().to_owned(),
            master: format!("http://{}", hub.master.address),
            master_reached: self.reached.load(Ordering::Acquire),
            problems: hub.problems(),
            refused: hub.peers.refused(),
            ..Status::default()
        };
        for (topic, s) in lock(&hub.subscriptions).iter() {
            let flow = s.counts.flow(&s.bus_topic, &s.kind, s.connected());
            status.to_bus.insert(topic.clone(), flow);
        }
        for (topic, p) in lock(&hub.publications).iter() {
            let flow = p.counts.flow(&p.bus_topic, p.schema.name(), p.connected());
            status.to_ros.insert(topic.clone(), flow);
        }
        for (name, o) in lock(&hub.offered).iter() {
            let service = o
                .counts
                .service(&o.bus_name, &o.service.name(), direction(Direction::ToRos));
            status.services.insert(name.clone(), service);
        }
        for (name, c) in lock(&self.called).iter() {
            let service = c
                .counts
                .service(&c.bus_name, &c.service.name(), direction(Direction::ToBus));
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

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;
