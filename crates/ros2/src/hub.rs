//! State that all parts of a bridge share (decision 344).

use crate::budget::Budget;
use crate::config::Config;
use crate::definitions::Definitions;
use crate::early::Early;
use crate::wire::{Id, Wire};
use bridge::{Graph, Own, Problems, Rules, ServiceRule, TopicRule};
use ropewalk::{Node, NodeError, Publisher, PublisherOptions};
use schema::{Registry, Schema};
use serde_saphyr::Spanned;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A route whose endpoint on the bus has been missing for this long is removed: a busy endpoint may only have failed to
/// answer.
pub(crate) const GRACE: Duration = Duration::from_secs(3);
/// A message may make its publisher reserve this many times its length: a segment of several blocks.
const RESERVED: u64 = 2;
/// Minimum time between two counts of the messages of a participant that is at its limit.
const COUNTED: Duration = Duration::from_millis(50);
/// How long messages of a bridge that has ended may still be on the bus.
const REMEMBERED: Duration = Duration::from_secs(60);

/// State that all parts of a bridge share.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) config: Config,
    topics: Vec<Spanned<TopicRule>>,
    services: Vec<Spanned<ServiceRule>>,
    pub(crate) wire: Arc<dyn Wire>,
    pub(crate) node: Node,
    pub(crate) definitions: Definitions,
    graph: Graph,
    pub(crate) stop: AtomicBool,
    /// Its publishers on the bus.
    own: Mutex<Own>,
    /// Graphs of other bridges of the domain, and when each was last seen.
    graphs: Mutex<BTreeMap<u32, Instant>>,
    problems: Problems,
    /// Reserved memory by participant of the domain.
    memory: Mutex<BTreeMap<Id, Reserved>>,
    /// Budget for messages and requests queued in the bridge.
    pub(crate) budget: Budget,
    /// Budget for its publishers on the bus, charged to participants of the domain.
    pub(crate) publishers: Budget,
    /// Messages whose publishers are not known yet.
    pub(crate) early: Mutex<Early>,
}

/// Memory that the messages of a participant have reserved on the bus, in bytes.
#[derive(Debug)]
struct Reserved {
    counted: u64,
    at: Instant,
    /// Added since the last count.
    since: u64,
}

impl Hub {
    pub(crate) fn new(
        config: Config,
        wire: Arc<dyn Wire>,
        node: Node,
        registry: Registry,
        graph: Graph,
    ) -> Hub {
        let (topics, services) = config.whole();
        Hub {
            config,
            topics,
            services,
            wire,
            node,
            definitions: Definitions::new(registry),
            graph,
            memory: Mutex::default(),
            budget: Budget::waiting(),
            publishers: Budget::publishers(),
            early: Mutex::default(),
            stop: AtomicBool::new(false),
            own: Mutex::default(),
            graphs: Mutex::default(),
            problems: Problems::default(),
        }
    }

    pub(crate) fn rules(&self) -> Rules<'_> {
        Rules {
            topics: &self.topics,
            services: &self.services,
        }
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Stores the other bridges of the domain.
    pub(crate) fn set_bridges(&self, others: impl Iterator<Item = Graph>, now: Instant) {
        let mut graphs = lock(&self.graphs);
        graphs.retain(|_, seen| now.duration_since(*seen) < REMEMBERED);
        graphs.extend(others.map(|graph| (graph.number(), now)));
    }

    /// The origin of messages that a publisher of the bus brings from this domain.
    pub(crate) fn origin(&self, publisher: u64) -> u64 {
        self.graph.origin(publisher)
    }

    /// Whether a message of the bus came from this domain, through this bridge or another.
    pub(crate) fn is_from_here(&self, origin: u64) -> bool {
        let sent = |graph: &u32| Graph::from_number(*graph).is_some_and(|g| g.sent(origin));
        self.graph.sent(origin) || lock(&self.graphs).keys().any(sent)
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

    /// Registers an endpoint of the bridge on the bus.
    pub(crate) fn begins(&self, endpoint: u64) {
        lock(&self.own).begins(endpoint);
    }

    /// Unregisters an endpoint of the bridge on the bus. Answers of the bus may still name it for a while.
    pub(crate) fn ends(&self, endpoint: u64) {
        lock(&self.own).ends(endpoint, Instant::now());
    }

    pub(crate) fn is_own(&self, endpoint: u64) -> bool {
        lock(&self.own).has(endpoint)
    }

    /// Stores how much memory the messages of each participant have reserved on the bus.
    pub(crate) fn set_memory(&self, reserved: &BTreeMap<Id, u64>) {
        let at = Instant::now();
        let of = |(id, counted): (&Id, &u64)| {
            let counted = *counted;
            (
                *id,
                Reserved {
                    counted,
                    at,
                    since: 0,
                },
            )
        };
        *lock(&self.memory) = reserved.iter().map(of).collect();
    }

    /// Whether a participant may put another message on the bus. The estimate assumes that everything that arrived is
    /// still reserved; `look` counts what is.
    pub(crate) fn may_reserve(&self, participant: Id, bytes: u64, look: impl FnOnce() -> u64) -> bool {
        let (most, now) = (self.config.participant_memory(), Instant::now());
        let bytes = bytes.saturating_mul(RESERVED);
        let mut memory = lock(&self.memory);
        if let Some(reserved) = memory.get_mut(&participant) {
            if reserved.counted + reserved.since + bytes <= most {
                reserved.since += bytes;
                return true;
            }
            if now.duration_since(reserved.at) < COUNTED {
                return false;
            }
        }
        drop(memory);
        let counted = look();
        let fits = counted + bytes <= most;
        let reserved = Reserved {
            counted,
            at: now,
            since: if fits { bytes } else { 0 },
        };
        lock(&self.memory).insert(participant, reserved);
        fits
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
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
