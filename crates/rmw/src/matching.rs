//! Finds the endpoints of the other kind that a publisher or subscription matches: those that the bus has connected,
//! without those that do not fit according to the graph.

use crate::abi::QosProfile;
use crate::context::Context;
use crate::event::Events;
use crate::graph::record::Endpoint;
use crate::graph::{Graph, Listener, NodeName};
use crate::qos::{End, MANUAL_BY_TOPIC, limit};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// State that publishers and subscriptions have in common.
pub(crate) struct Matching {
    pub(crate) context: Arc<Context>,
    /// Key of its node.
    node: u64,
    /// The endpoint's entry in the graph.
    own: Endpoint,
    qos: QosProfile,
    end: End,
    pub(crate) events: Arc<Events>,
    /// Whether it follows the graph.
    is_watched: AtomicBool,
}

/// Whether a publisher has to assert that it is alive.
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

    /// Removes the endpoint from the graph.
    pub(crate) fn end(&self) {
        self.graph().remove(self.node, self.own.id);
    }

    /// Starts to follow the graph, for the entity's events.
    pub(crate) fn watch(&self, entity: Weak<dyn Listener>) {
        if !self.is_watched.swap(true, Ordering::SeqCst) {
            self.graph().listen(entity);
        }
    }

    /// Records that a message was sent, or received from this publisher.
    pub(crate) fn passed(&self, publisher: Option<u64>) {
        if self.events.passed(publisher) {
            self.graph().look_at_time();
        }
    }

    /// Asserts this publisher. Every message that it sends does so too.
    pub(crate) fn assert(&self) {
        if !asserts(&self.qos) {
            // The existence of the process suffices.
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

    /// Whether a connected endpoint matches.
    pub(crate) fn matches(&self, id: u64) -> bool {
        let mut fits = !self.graph().has_departed(id);
        self.graph().each(|node, _, _| {
            let endpoint = node.endpoints.iter().find(|e| e.id == id);
            fits &= endpoint.is_none_or(|e| self.fits(e));
        });
        fits
    }

    /// Brings the events up to date. Returns whether all matching endpoints of the graph are connected.
    pub(crate) fn update<I: Iterator<Item = u64>>(&self, connected: impl FnOnce() -> I) -> bool {
        let mut settled = true;
        self.events.update(&self.own.type_name, || {
            let others = self.others();
            let matched: BTreeSet<u64> = connected().filter(|id| self.matches(*id)).collect();
            let awaited =
                |e: &Endpoint| e.type_name == self.own.type_name && self.fits(e) && !matched.contains(&e.id);
            // Endpoints on other hosts are reached through a link's own endpoint.
            settled = !others.iter().any(|(node, e)| !node.is_far && awaited(e));
            (matched, others.into_iter().map(|(_, e)| e).collect())
        });
        settled
    }
}
