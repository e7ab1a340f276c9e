//! State that all parts of a bridge share.

use crate::config::Config;
use crate::master::Master;
use crate::net::HostPort;
use crate::offered::Offered;
use crate::peers::Peers;
use crate::publication::Publication;
use crate::subscription::Subscription;
use bridge::{Graph, Own, Problems};
use ropewalk::{Node, NodeError, Publisher, PublisherOptions};
use schema::{Registry, Schema};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// State that all parts of a bridge share.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) config: Config,
    pub(crate) master: Master,
    /// Address of its TCPROS listener.
    pub(crate) tcpros: HostPort,
    pub(crate) node: Node,
    /// Limits of its peers, and what they use.
    pub(crate) peers: Arc<Peers>,
    /// Definitions of messages and services.
    pub(crate) registry: Registry,
    /// Distinguishes this ROS graph from others, in the origins of messages; 0 until the master has been reached.
    graph: AtomicU32,
    pub(crate) stop: AtomicBool,
    /// By name in ROS.
    pub(crate) subscriptions: Mutex<BTreeMap<String, Arc<Subscription>>>,
    pub(crate) publications: Mutex<BTreeMap<String, Arc<Publication>>>,
    pub(crate) offered: Mutex<BTreeMap<String, Arc<Offered>>>,
    /// Its publishers on the bus.
    own: Mutex<Own>,
    problems: Problems,
    /// The master's reason for shutting the bridge down.
    pub(crate) dismissed: Mutex<Option<String>>,
}

impl Hub {
    pub(crate) fn new(
        config: Config,
        master: Master,
        tcpros: HostPort,
        node: Node,
        registry: Registry,
    ) -> Hub {
        Hub {
            peers: master.peers.clone(),
            config,
            master,
            tcpros,
            node,
            registry,
            graph: AtomicU32::new(0),
            stop: AtomicBool::new(false),
            subscriptions: Mutex::default(),
            publications: Mutex::default(),
            offered: Mutex::default(),
            own: Mutex::default(),
            problems: Problems::default(),
            dismissed: Mutex::default(),
        }
    }

    /// The node's name.
    pub(crate) fn name(&self) -> &str {
        &self.master.caller
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Sets the graph to that of the master with this identity.
    pub(crate) fn set_graph(&self, identity: &str) {
        self.graph.store(Graph::new(identity).number(), Ordering::Release);
    }

    pub(crate) fn graph(&self) -> u32 {
        self.graph.load(Ordering::Acquire)
    }

    /// The origin of messages that a publisher of the bus brings from this graph.
    pub(crate) fn origin(&self, publisher: u64) -> u64 {
        Graph::from_number(self.graph()).map_or(0, |graph| graph.origin(publisher))
    }

    /// Whether a message of the bus came from this graph, through this bridge or another.
    pub(crate) fn is_from_here(&self, origin: u64) -> bool {
        Graph::from_number(self.graph()).is_some_and(|graph| graph.sent(origin))
    }

    /// Creates a publisher on the bus. It is registered as the bridge's own before anyone can find it on the bus.
    pub(crate) fn publish(
        &self,
        topic: &str,
        schema: &Schema,
        options: PublisherOptions,
    ) -> Result<Publisher, NodeError> {
        let mut own = lock(&self.own);
        let publisher = self.node.dynamic_publisher_with(topic, schema, options)?;
        own.begins(publisher.bus().id());
        Ok(publisher)
    }

    /// Unregisters one of the bridge's publishers. Answers of the bus may still name it for a while.
    pub(crate) fn ends(&self, publisher: u64) {
        lock(&self.own).ends(publisher, Instant::now());
    }

    pub(crate) fn is_own(&self, publisher: u64) -> bool {
        lock(&self.own).has(publisher)
    }

    /// Reports a problem with `what`.
    pub(crate) fn problem(&self, what: &str, problem: impl std::fmt::Display) {
        self.problems.tell(what, problem);
    }

    /// Clears the problem of `what`.
    pub(crate) fn solved(&self, what: &str) {
        self.problems.solved(what);
    }

    /// Forgets `what`, which no longer exists.
    pub(crate) fn forget(&self, what: &str) {
        self.problems.forget(what);
    }

    pub(crate) fn problems(&self) -> BTreeMap<String, String> {
        self.problems.list()
    }
}

/// Locks a mutex even if a holder panicked: the guarded data only changes in single steps.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
