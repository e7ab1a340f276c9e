//! Nodes: members of a bus.

use crate::message;
use crate::options::{self, NodeOptions, PublisherOptions, SubscriberOptions};
use crate::pointer::{self, consume, give, handle, output, timeout};
use crate::publisher::Publisher;
use crate::service::{Client, Server};
use crate::status::{Status, free, guard};
use crate::subscriber::Subscriber;
use crate::types::{MessageType, ServiceType};
use crate::wait::WaitSet;
use std::ffi::c_char;

/// A named member of this host's bus.
pub struct Node(ropewalk::Node);

impl Node {
    pub(crate) fn inner(&self) -> &ropewalk::Node {
        &self.0
    }
}

/// Creates a node. `options` may be NULL: the bus is then the one that `ROPEWALK_RUNTIME_DIR` and
/// `ROPEWALK_DOMAIN` name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_node_new(
    name: *const c_char,
    options: *const NodeOptions,
    out: *mut *mut Node,
) -> Status {
    guard(|| {
        output(out, "out")?;
        // SAFETY: the crate's contract.
        let (name, config) = unsafe { (pointer::text(name, "node's name")?, options::bus_config(options)?) };
        let node = match config {
            Some(config) => ropewalk::Node::with_config(name, config)?,
            None => ropewalk::Node::new(name)?,
        };
        // SAFETY: the crate's contract; `out` was checked.
        unsafe { give(Node(node), out) };
        Ok(Status::Ok)
    })
}

/// Frees a node. Everything that it created stays valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_node_free(node: *mut Node) {
    // SAFETY: the crate's contract.
    free(|| drop(unsafe { consume(node, "node") }));
}

/// Discovers the type of a topic from its publisher, waiting for one at most `timeout_ns`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_node_discover(
    node: *const Node,
    topic: *const c_char,
    timeout_ns: i64,
    out: *mut *mut MessageType,
) -> Status {
    guard(|| {
        output(out, "out")?;
        // SAFETY: the crate's contract.
        let (node, topic) = unsafe { (handle(node, "node")?, pointer::text(topic, "topic")?) };
        let schema = node.0.discover(topic, timeout(timeout_ns))?;
        // SAFETY: the crate's contract; `out` was checked.
        unsafe { give(MessageType(schema), out) };
        Ok(Status::Ok)
    })
}

/// Creates a publisher for messages of a type on a topic. Returns at once; subscribers connect in the
/// background. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_node_publisher(
    node: *const Node,
    topic: *const c_char,
    kind: *const MessageType,
    options: *const PublisherOptions,
    out: *mut *mut Publisher,
) -> Status {
    guard(|| {
        output(out, "out")?;
        // SAFETY: the crate's contract.
        let (node, topic) = unsafe { (handle(node, "node")?, pointer::text(topic, "topic")?) };
        // SAFETY: the crate's contract.
        let (kind, options) = unsafe { (handle(kind, "type")?, options::publisher(options)?) };
        let made = node.0.dynamic_publisher_with(topic, &kind.0, options)?;
        // SAFETY: the crate's contract; `out` was checked.
        unsafe { give(Publisher(made), out) };
        Ok(Status::Ok)
    })
}

/// Subscribes to a topic. Publishers of another type are refused, and both sides record why
/// (`ropewalk_subscriber_refusals`). Returns at once. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_node_subscriber(
    node: *const Node,
    topic: *const c_char,
    kind: *const MessageType,
    options: *const SubscriberOptions,
    out: *mut *mut Subscriber,
) -> Status {
    guard(|| {
        output(out, "out")?;
        // SAFETY: the crate's contract.
        let (node, topic) = unsafe { (handle(node, "node")?, pointer::text(topic, "topic")?) };
        // SAFETY: the crate's contract.
        let (kind, options) = unsafe { (handle(kind, "type")?, options::subscriber(options)?) };
        let made = node.0.dynamic_subscriber_with(topic, &kind.0, options)?;
        message::fetch_code(made.bus());
        // SAFETY: the crate's contract; `out` was checked.
        unsafe { give(Subscriber(made), out) };
        Ok(Status::Ok)
    })
}

/// Creates a client of a service. Returns at once; servers connect in the background
/// (`ropewalk_client_wait_for_server`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_node_client(
    node: *const Node,
    service: *const c_char,
    kind: *const ServiceType,
    out: *mut *mut Client,
) -> Status {
    guard(|| {
        output(out, "out")?;
        // SAFETY: the crate's contract.
        let (node, service) = unsafe { (handle(node, "node")?, pointer::text(service, "service")?) };
        // SAFETY: the crate's contract.
        let kind = unsafe { handle(kind, "service type") }?;
        let made = node.0.dynamic_client(service, &kind.0)?;
        // SAFETY: the crate's contract; `out` was checked.
        unsafe { give(Client(made), out) };
        Ok(Status::Ok)
    })
}

/// Creates a server of a service. Returns at once; clients connect in the background. `wait_set` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_node_server(
    node: *const Node,
    service: *const c_char,
    kind: *const ServiceType,
    wait_set: *const WaitSet,
    out: *mut *mut Server,
) -> Status {
    guard(|| {
        output(out, "out")?;
        // SAFETY: the crate's contract.
        let (node, service) = unsafe { (handle(node, "node")?, pointer::text(service, "service")?) };
        // SAFETY: the crate's contract.
        let (kind, set) = unsafe { (handle(kind, "service type")?, wait_set.as_ref()) };
        let mut options = bus::ServerOptions::default();
        options.wait_set = set.map(|set| set.0.clone());
        let made = node.0.dynamic_server_with(service, &kind.0, options)?;
        // SAFETY: the crate's contract; `out` was checked.
        unsafe { give(Server(made), out) };
        Ok(Status::Ok)
    })
}

/// Creates a doorbell that several subscribers and servers share.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_node_wait_set(node: *const Node, out: *mut *mut WaitSet) -> Status {
    guard(|| {
        output(out, "out")?;
        // SAFETY: the crate's contract.
        let made = unsafe { handle(node, "node") }?.0.wait_set()?;
        // SAFETY: the crate's contract; `out` was checked.
        unsafe { give(WaitSet(made), out) };
        Ok(Status::Ok)
    })
}
