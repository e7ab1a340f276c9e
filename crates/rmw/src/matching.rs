//! Which endpoints of the other kind a publisher or subscription matches: what the bus has connected, less what the graph knows not to
//! fit.

use crate::abi::QosProfile;
use crate::context::Context;
use crate::event::Events;
use crate::graph::record::Endpoint;
use crate::graph::{Graph, Listener, NodeName};
use crate::qos::{End, MANUAL_BY_TOPIC, limit};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// What a publisher and a subscription have in common.
pub(crate) struct Matching {
    pub(crate) context: Arc<Context>,
    /// The key of its node.
    node: u64,
    /// As the graph has it.
    own: Endpoint,
    qos: QosProfile,
    end: End,
    pub(crate) events: Arc<Events>,
    /// Whether it follows the graph.
    is_watched: AtomicBool,
}

/// Whether a publisher has to say that it is alive.
fn asserts(qos: &QosProfile) -> bool {
    qos.liveliness == MANUAL_BY_TOPIC && limit(qos.lease).is_some()
}

impl Matching {
    /// Enters an endpoint into the graph.
    pub(crate) fn new(node: &crate::node::Node, end: End, own: Endpoint, qos: QosProfile) -> Self {
        if end == End::Publisher && asserts(&qos) {
            node.context.graph.asserting();
        }
        node.context.graph.add(node.key, own.clone());
        Matching {
            context: node.context.clone(),
            node: node.key,
            events: Arc::new(Events::new(end, qos)),
            own,
            qos,
            end,
            is_watched: AtomicBool::new(false),
        }
    }

    pub(crate) fn graph(&self) -> &Graph {
        &self.context.graph
    }

    pub(crate) fn qos(&self) -> &QosProfile {
        &self.qos
    }

    /// Takes it out of the graph.
    pub(crate) fn end(&self) {
        self.graph().remove(self.node, self.own.id);
    }

    /// Follows the graph from now on, for its events.
    pub(crate) fn watch(&self, entity: Weak<dyn Listener>) {
        if !self.is_watched.swap(true, Ordering::SeqCst) {
            self.graph().listen(entity);
        }
    }

    /// A message went, or came from this publisher.
    pub(crate) fn passed(&self, publisher: Option<u64>) {
        if self.events.passed(publisher) {
            self.graph().look_at_time();
        }
    }

    /// This publisher asserts itself, as every message does for it.
    pub(crate) fn assert(&self) {
        if !asserts(&self.qos) {
            // Its process does so by being there.
            return;
        }
        self.graph().assert(self.own.id);
        if self.events.asserted(None) {
            self.graph().look_at_time();
        }
    }

    fn others(&self) -> Vec<(NodeName, Endpoint)> {
        self.graph().endpoints(&self.own.name, self.end.other_kind())
    }

    fn fits(&self, other: &Endpoint) -> bool {
        self.qos.mismatch(self.end, &(&other.qos).into()).is_none()
    }

    fn among(&self, connected: impl Iterator<Item = u64>, others: &[(NodeName, Endpoint)]) -> BTreeSet<u64> {
        let unfit = |id| others.iter().any(|(_, e)| e.id == id && !self.fits(e));
        connected
            .filter(|id| !unfit(*id) && !self.graph().has_departed(*id))
            .collect()
    }

    /// How many of those that the bus has connected match.
    pub(crate) fn count(&self, connected: impl Iterator<Item = u64>) -> usize {
        self.among(connected, &self.others()).len()
    }

    /// Brings the events up to date; whether all that the graph has are connected.
    pub(crate) fn update<I: Iterator<Item = u64>>(&self, connected: impl FnOnce() -> I) -> bool {
        let mut settled = true;
        self.events.update(&self.own.type_name, || {
            let others = self.others();
            let matched = self.among(connected(), &others);
            let awaited =
                |e: &Endpoint| e.type_name == self.own.type_name && self.fits(e) && !matched.contains(&e.id);
            // What is of another host comes over a link's own endpoint.
            settled = !others.iter().any(|(node, e)| !node.is_far && awaited(e));
            (matched, others.into_iter().map(|(_, e)| e).collect())
        });
        settled
    }
}
