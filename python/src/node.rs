//! Nodes.

use crate::describe::{ServiceType, Type};
use crate::fault::{OrRaise, raise};
use crate::service::{Client, Server};
use crate::topic::{Publisher, Subscriber, policy};
use crate::wait;
use pyo3::prelude::*;
use ropewalk::{BusConfig, NodeError, QueuePolicy};

/// A named member of this host's bus.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Node(pub(crate) ropewalk::Node);

#[pymethods]
impl Node {
    #[new]
    #[pyo3(signature = (name, runtime_dir=None, domain=0))]
    fn new(name: &str, runtime_dir: Option<&str>, domain: u32) -> PyResult<Self> {
        let node = match runtime_dir {
            Some(dir) => ropewalk::Node::with_config(name, BusConfig::new(dir).with_domain(domain)),
            None => ropewalk::Node::new(name),
        };
        Ok(Node(node.or_raise()?))
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[pyo3(signature = (topic, kind, *, memory_limit=None, history=0, memory_policy="best_effort", medium_drops=1, block_timeout=0.0))]
    #[allow(clippy::too_many_arguments)] // Keywords in Python.
    fn publisher(
        &self,
        topic: &str,
        kind: &Type,
        memory_limit: Option<u64>,
        history: u32,
        memory_policy: &str,
        medium_drops: u32,
        block_timeout: f64,
    ) -> PyResult<Publisher> {
        let policy = policy(memory_policy, medium_drops, block_timeout)?;
        let mut options = ropewalk::PublisherOptions::default()
            .with_history(history)
            .with_memory_policy(policy);
        if let Some(bytes) = memory_limit {
            options = options.with_memory_limit(bytes);
        }
        Ok(Publisher(
            self.0.publisher_with(topic, &kind.0, options).or_raise()?,
        ))
    }

    #[pyo3(signature = (topic, kind, *, depth=16, max_held=16, queue_policy="drop_oldest", history=None))]
    fn subscriber(
        &self,
        topic: &str,
        kind: &Type,
        depth: u32,
        max_held: u32,
        queue_policy: &str,
        history: Option<u32>,
    ) -> PyResult<Subscriber> {
        let queue = match queue_policy {
            "drop_oldest" => QueuePolicy::DropOldest,
            "drop_newest" => QueuePolicy::DropNewest,
            other => {
                let text = format!("{other:?} is no queue policy: drop_oldest, drop_newest");
                return Err(raise("BadName", text));
            }
        };
        let mut options = ropewalk::SubscriberOptions::default()
            .with_depth(depth)
            .with_max_held(max_held)
            .with_queue_policy(queue);
        if let Some(messages) = history {
            options = options.with_history(messages);
        }
        Ok(Subscriber(
            self.0.subscriber_with(topic, &kind.0, options).or_raise()?,
        ))
    }

    fn client(&self, service: &str, kind: &ServiceType) -> PyResult<Client> {
        Ok(Client(self.0.client(service, &kind.0).or_raise()?))
    }

    fn server(&self, service: &str, kind: &ServiceType) -> PyResult<Server> {
        Ok(Server(self.0.server(service, &kind.0).or_raise()?))
    }

    /// The type of a topic, from whoever publishes it.
    #[pyo3(signature = (topic, timeout=None))]
    fn discover(&self, py: Python<'_>, topic: &str, timeout: Option<f64>) -> PyResult<Type> {
        let found = wait(py, timeout, |patience| match self.0.discover(topic, patience) {
            Err(NodeError::NoPublisher { .. }) => Ok(None),
            other => other.or_raise().map(Some),
        })?;
        let none = || {
            raise(
                "NoPeer",
                format!("nobody published {topic} in time; `ropewalk topic list` shows what there is"),
            )
        };
        found.map(Type).ok_or_else(none)
    }

    /// The type of a service, from whoever serves it.
    #[pyo3(signature = (service, timeout=None))]
    fn discover_service(&self, py: Python<'_>, service: &str, timeout: Option<f64>) -> PyResult<ServiceType> {
        let found = wait(py, timeout, |patience| {
            match self.0.discover_service(service, patience) {
                Err(NodeError::NoServer { .. }) => Ok(None),
                other => other.or_raise().map(Some),
            }
        })?;
        let none = || {
            raise(
                "NoPeer",
                format!("nobody served {service} in time; `ropewalk service list` shows what there is"),
            )
        };
        found.map(ServiceType).ok_or_else(none)
    }
}
