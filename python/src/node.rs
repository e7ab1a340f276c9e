//! Nodes.

use crate::describe::{ServiceType, Type};
use crate::fault::{OrRaise, raise};
use crate::service::{Client, Server};
use crate::topic::{Publisher, Subscriber, policy};
use crate::{Born, wait};
use pyo3::prelude::*;
use ropewalk::{BusConfig, ClientOptions, NodeError, QueuePolicy, ServerOptions};
use std::sync::{Mutex, PoisonError};

/// A named member of this host's bus.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Node(pub(crate) ropewalk::Node, Born);

#[pymethods]
impl Node {
    #[new]
    #[pyo3(signature = (name, runtime_dir=None, domain=0))]
    fn new(name: &str, runtime_dir: Option<&str>, domain: u32) -> PyResult<Self> {
        let node = match runtime_dir {
            Some(dir) => ropewalk::Node::with_config(name, BusConfig::new(dir).with_domain(domain)),
            None => ropewalk::Node::new(name),
        };
        Ok(Node(node.or_raise()?, Born::here()))
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[pyo3(signature = (topic, kind, *, memory_limit=None, subscriber_quota=None, max_subscribers=None, history=0, memory_policy="best_effort", medium_drops=1, block_timeout=0.0))]
    #[allow(clippy::too_many_arguments)] // Keywords in Python.
    fn publisher(
        &self,
        topic: &str,
        kind: &Type,
        memory_limit: Option<u64>,
        subscriber_quota: Option<u64>,
        max_subscribers: Option<usize>,
        history: u32,
        memory_policy: &str,
        medium_drops: u32,
        block_timeout: f64,
    ) -> PyResult<Publisher> {
        let policy = policy(memory_policy, medium_drops, block_timeout)?;
        let mut options = ropewalk::PublisherOptions::default()
            .with_history(history)
            .with_memory_policy(policy);
        options.subscriber_quota = subscriber_quota;
        options.memory_limit = memory_limit.unwrap_or(options.memory_limit);
        options.max_subscribers = max_subscribers.unwrap_or(options.max_subscribers);
        let publisher = self
            .0
            .dynamic_publisher_with(topic, &kind.0, options)
            .or_raise()?;
        Ok(Publisher(publisher, Born::here()))
    }

    #[pyo3(signature = (topic, kind, *, depth=16, max_held=16, max_held_bytes=None, queue_policy="drop_oldest", history=None))]
    #[allow(clippy::too_many_arguments)] // Keywords in Python.
    fn subscriber(
        &self,
        topic: &str,
        kind: &Type,
        depth: u32,
        max_held: u32,
        max_held_bytes: Option<u64>,
        queue_policy: &str,
        history: Option<u32>,
    ) -> PyResult<Subscriber> {
        let queue = match queue_policy {
            "drop_oldest" => QueuePolicy::DropOldest,
            "drop_newest" => QueuePolicy::DropNewest,
            other => {
                let text = format!("{other:?} is not a queue policy: drop_oldest, drop_newest");
                return Err(raise("BadName", text));
            }
        };
        let mut options = ropewalk::SubscriberOptions::default()
            .with_depth(depth)
            .with_max_held(max_held)
            .with_queue_policy(queue);
        options.max_held_bytes = max_held_bytes.unwrap_or(options.max_held_bytes);
        options.history = history.unwrap_or(options.history);
        let subscriber = self
            .0
            .dynamic_subscriber_with(topic, &kind.0, options)
            .or_raise()?;
        Ok(Subscriber(subscriber, Born::here()))
    }

    #[pyo3(signature = (service, kind, *, max_outstanding=None, max_held=None, memory_limit=None))]
    fn client(
        &self,
        service: &str,
        kind: &ServiceType,
        max_outstanding: Option<u32>,
        max_held: Option<u32>,
        memory_limit: Option<u64>,
    ) -> PyResult<Client> {
        let mut options = ClientOptions::default();
        options.max_outstanding = max_outstanding.unwrap_or(options.max_outstanding);
        options.max_held = max_held.unwrap_or(options.max_held);
        options.memory_limit = memory_limit.unwrap_or(options.memory_limit);
        let client = self.0.dynamic_client_with(service, &kind.0, options).or_raise()?;
        Ok(Client(client, Born::here()))
    }

    #[pyo3(signature = (service, kind, *, depth=None, max_held=None, max_clients=None, memory_limit=None, client_quota=None))]
    #[allow(clippy::too_many_arguments)] // Keywords in Python.
    fn server(
        &self,
        service: &str,
        kind: &ServiceType,
        depth: Option<u32>,
        max_held: Option<u32>,
        max_clients: Option<usize>,
        memory_limit: Option<u64>,
        client_quota: Option<u64>,
    ) -> PyResult<Server> {
        let mut options = ServerOptions::default();
        options.depth = depth.unwrap_or(options.depth);
        options.max_held = max_held.unwrap_or(options.max_held);
        options.max_clients = max_clients.unwrap_or(options.max_clients);
        options.memory_limit = memory_limit.unwrap_or(options.memory_limit);
        options.client_quota = client_quota;
        let server = self.0.dynamic_server_with(service, &kind.0, options).or_raise()?;
        Ok(Server(server, Born::here()))
    }

    /// Returns the type of a topic, from its publisher.
    #[pyo3(signature = (topic, timeout=None))]
    fn discover(&self, py: Python<'_>, topic: &str, timeout: Option<f64>) -> PyResult<Type> {
        self.1.check()?;
        let like = Mutex::new(None);
        let found = wait(py, timeout, |patience| match self.0.discover(topic, patience) {
            Err(NodeError::NoPublisher { near, .. }) => {
                *like.lock().unwrap_or_else(PoisonError::into_inner) = near;
                Ok(None)
            }
            other => other.or_raise().map(Some),
        })?;
        let none = || {
            raise(
                "NoPeer",
                format!(
                    "nobody published {topic} in time{}; `ropewalk topic list` shows what there is",
                    suggestion(&like)
                ),
            )
        };
        found.map(Type).ok_or_else(none)
    }

    /// Returns the type of a service, from its server.
    #[pyo3(signature = (service, timeout=None))]
    fn discover_service(&self, py: Python<'_>, service: &str, timeout: Option<f64>) -> PyResult<ServiceType> {
        self.1.check()?;
        let like = Mutex::new(None);
        let found = wait(py, timeout, |patience| {
            match self.0.discover_service(service, patience) {
                Err(NodeError::NoServer { near, .. }) => {
                    *like.lock().unwrap_or_else(PoisonError::into_inner) = near;
                    Ok(None)
                }
                other => other.or_raise().map(Some),
            }
        })?;
        let none = || {
            raise(
                "NoPeer",
                format!(
                    "nobody served {service} in time{}; `ropewalk service list` shows what there is",
                    suggestion(&like)
                ),
            )
        };
        found.map(ServiceType).ok_or_else(none)
    }
}

/// The name that was probably meant, as an addition to an error.
fn suggestion(near: &Mutex<Option<String>>) -> String {
    let near = near.lock().unwrap_or_else(PoisonError::into_inner);
    ropewalk::did_you_mean(near.as_deref())
}
