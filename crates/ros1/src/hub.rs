//! What all parts of a bridge share.

use crate::config::Config;
use crate::master::Master;
use crate::net::Place;
use crate::offered::Offered;
use crate::peers::Peers;
use crate::publication::Publication;
use crate::subscription::Subscription;
use bridge::Graph;
use ropewalk::{Node, NodeError, Publisher, PublisherOptions};
use schema::{Registry, Schema};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a publisher that ended may still be named by the bus.
const REMEMBERED: Duration = Duration::from_secs(10);
/// Most problems that are remembered, and the longest text of one in characters: whoever connects makes some.
const MAX_PROBLEMS: usize = 1024;
const MAX_TEXT: usize = 1024;

/// What all parts of a bridge share.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) config: Config,
    pub(crate) master: Master,
    /// Where its TCPROS connections are taken.
    pub(crate) tcpros: Place,
    pub(crate) node: Node,
    /// What its peers have taken.
    pub(crate) peers: Arc<Peers>,
    /// Definitions of messages and services.
    pub(crate) registry: Registry,
    /// Tells this ROS graph from others, in the origins of messages; 0 while the master was never reached.
    graph: AtomicU32,
    pub(crate) stop: AtomicBool,
    /// By their names in ROS.
    pub(crate) subscriptions: Mutex<BTreeMap<String, Arc<Subscription>>>,
    pub(crate) publications: Mutex<BTreeMap<String, Arc<Publication>>>,
    pub(crate) offered: Mutex<BTreeMap<String, Arc<Offered>>>,
    /// The identities of the bus's publishers that are this bridge's, and when they ended.
    own: Mutex<BTreeMap<u64, Option<Instant>>>,
    /// What is wrong at present, by what it concerns; each is told once.
    problems: Mutex<BTreeMap<String, String>>,
    /// Why the master wants it to end.
    pub(crate) dismissed: Mutex<Option<String>>,
}

impl Hub {
    pub(crate) fn new(config: Config, master: Master, tcpros: Place, node: Node, registry: Registry) -> Hub {
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
            problems: Mutex::default(),
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

    /// The graph is the one of the master with this identity.
    pub(crate) fn set_graph(&self, identity: &str) {
        self.graph.store(Graph::new(identity).number(), Ordering::Release);
    }

    pub(crate) fn graph(&self) -> u32 {
        self.graph.load(Ordering::Acquire)
    }

    /// The origin of what a publisher of the bus brings from this graph.
    pub(crate) fn origin(&self, publisher: u64) -> u64 {
        Graph::from_number(self.graph()).map_or(0, |graph| graph.origin(publisher))
    }

    /// Whether a message of the bus came from this graph, through this bridge or another.
    pub(crate) fn is_from_here(&self, origin: u64) -> bool {
        Graph::from_number(self.graph()).is_some_and(|graph| graph.sent(origin))
    }

    /// Makes a publisher of the bus. Whoever finds it there, finds it among the bridge's own.
    pub(crate) fn publish(
        &self,
        topic: &str,
        schema: &Schema,
        options: PublisherOptions,
    ) -> Result<Publisher, NodeError> {
        let mut own = lock(&self.own);
        let publisher = self.node.publisher_with(topic, schema, options)?;
        own.insert(publisher.bus().id(), None);
        Ok(publisher)
    }

    /// One of the bridge's publishers ends. Answers of the bus may still name it for a while.
    pub(crate) fn ends(&self, publisher: u64) {
        let now = Instant::now();
        let mut own = lock(&self.own);
        own.retain(|_, ended| ended.is_none_or(|at| now.duration_since(at) < REMEMBERED));
        own.insert(publisher, Some(now));
    }

    pub(crate) fn is_own(&self, publisher: u64) -> bool {
        lock(&self.own).contains_key(&publisher)
    }

    /// Something is wrong with `what`: told in the log unless it was the last thing told of it.
    pub(crate) fn problem(&self, what: &str, problem: impl std::fmt::Display) {
        let (what, problem) = (printable(what), printable(&problem.to_string()));
        if note(&mut lock(&self.problems), &what, &problem) {
            tracing::warn!("{what}: {problem}");
        }
    }

    /// Nothing is wrong with `what` any more.
    pub(crate) fn solved(&self, what: &str) {
        if lock(&self.problems).remove(&printable(what)).is_some() {
            tracing::info!("{what}: good again");
        }
    }

    /// `what` is no more.
    pub(crate) fn forget(&self, what: &str) {
        lock(&self.problems).remove(&printable(what));
    }

    pub(crate) fn problems(&self) -> BTreeMap<String, String> {
        lock(&self.problems).clone()
    }
}

/// Notes what is wrong with `what`; whether that is new.
fn note(problems: &mut BTreeMap<String, String>, what: &str, problem: &str) -> bool {
    if problems.get(what).is_some_and(|known| known == problem) {
        return false;
    }
    if problems.len() >= MAX_PROBLEMS && !problems.contains_key(what) {
        problems.pop_first();
    }
    problems.insert(what.to_owned(), problem.to_owned());
    true
}

/// A text that others chose, on one line and at most 1,024 characters long.
pub(crate) fn printable(text: &str) -> String {
    stats::text::printable(text).chars().take(MAX_TEXT).collect()
}

/// A lock whose holder panicked is taken nevertheless: what it guards is changed in single steps.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_bounded_in_number_and_length() {
        let mut problems = BTreeMap::new();
        for n in 0..2 * MAX_PROBLEMS {
            assert!(note(&mut problems, &format!("{n:05}"), "bad"));
        }
        assert_eq!(problems.len(), MAX_PROBLEMS);
        let last = format!("{:05}", 2 * MAX_PROBLEMS - 1);
        assert!(!note(&mut problems, &last, "bad") && note(&mut problems, &last, "worse"));
        let long = "\u{1b}ä".repeat(MAX_TEXT);
        let told = printable(&long);
        assert_eq!((told.chars().count(), told.contains('\u{1b}')), (MAX_TEXT, false));
    }
}
