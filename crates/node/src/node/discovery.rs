//! Finds topics and services on the bus, and the types that their publishers and servers announce.

use super::{Node, NodeError};
use crate::name;
use bus::{ServiceInfo, TopicInfo, TopicType};
use schema::{DefinitionError, Flavour, Registry, Schema, Service};
use std::time::{Duration, Instant};

/// How often to query the bus for a topic that nobody publishes yet.
const DISCOVERY_INTERVAL: Duration = Duration::from_millis(100);
/// How long silent endpoints may delay one query to the bus.
const PATIENCE: Duration = Duration::from_millis(500);

impl Node {
    /// Discovers the type of `topic` from its publisher, waiting for one at most `timeout`.
    ///
    /// # Errors
    /// [`NodeError::NoPublisher`] after `timeout`; [`NodeError::Definition`] and [`NodeError::Sum`] if the
    /// publisher's definition cannot be used.
    pub fn discover(&self, topic: &str, timeout: Duration) -> Result<Schema, NodeError> {
        let topic = name::topic(topic)?;
        let start = Instant::now();
        loop {
            let mut topics = self.topics()?;
            topics.retain(|t| !t.publishers.is_empty());
            if let Some(info) = topics.iter().find(|t| t.topic.topic == topic) {
                return self.schema_of(info);
            }
            if start.elapsed() >= timeout {
                let topics = topics.iter().filter(|t| !t.is_of_service());
                let near = schema::nearest(&topic, topics.map(|t| t.topic.topic.as_str()));
                return Err(NodeError::NoPublisher {
                    near: near.map(str::to_owned),
                    topic,
                    waited: timeout,
                });
            }
            std::thread::sleep(DISCOVERY_INTERVAL.min(timeout));
        }
    }

    /// Returns everything on the bus, topics and services, and the endpoints that did not answer. Blocks for
    /// at most half a second, and only if an endpoint is silent: its process is stopped or hangs, or the
    /// machine is busy.
    ///
    /// # Errors
    /// [`NodeError::Open`] if the runtime folder cannot be read.
    pub fn survey(&self) -> Result<bus::Survey, NodeError> {
        Ok(self.bus.survey(PATIENCE)?)
    }

    /// Returns all topics of the bus with their publishers and subscribers. Blocks for at most half a second;
    /// silent endpoints ([`Node::survey`]) are left out, unless they answered before.
    ///
    /// # Errors
    /// [`NodeError::Open`] if the runtime folder cannot be read.
    pub fn topics(&self) -> Result<Vec<TopicInfo>, NodeError> {
        let mut topics = self.bus.topics(PATIENCE)?;
        // Topics that carry services are listed as services.
        topics.retain(|t| !t.is_of_service());
        Ok(topics)
    }

    /// Returns the type of a topic that [`Node::topics`] listed, from its publisher's definition.
    ///
    /// # Errors
    /// [`NodeError::Definition`] and [`NodeError::Sum`] if the definition cannot be used.
    pub fn schema_of(&self, info: &TopicInfo) -> Result<Schema, NodeError> {
        schema_of(&info.topic)
    }

    /// Returns all services of the bus with their servers and clients. Blocks for at most half a second.
    ///
    /// # Errors
    /// [`NodeError::Open`] if the runtime folder cannot be read.
    pub fn services(&self) -> Result<Vec<ServiceInfo>, NodeError> {
        Ok(self.bus.services(PATIENCE)?)
    }

    /// Discovers the type of the service `name` from its server, waiting for one at most `timeout`.
    ///
    /// # Errors
    /// [`NodeError::NoServer`] after `timeout`; [`NodeError::Definition`] and [`NodeError::Sum`] if the
    /// server's definition cannot be used.
    pub fn discover_service(&self, name: &str, timeout: Duration) -> Result<Service, NodeError> {
        let service = name::service(name)?;
        let start = Instant::now();
        loop {
            let mut services = self.services()?;
            services.retain(|s| !s.servers.is_empty());
            if let Some(info) = services.iter().find(|s| s.service.service == service) {
                return self.schema_of_service(info);
            }
            if start.elapsed() >= timeout {
                let near = schema::nearest(&service, services.iter().map(|s| s.service.service.as_str()));
                return Err(NodeError::NoServer {
                    near: near.map(str::to_owned),
                    service,
                    waited: timeout,
                });
            }
            std::thread::sleep(DISCOVERY_INTERVAL.min(timeout));
        }
    }

    /// Returns the type of a service that [`Node::services`] listed, from its server's definition.
    ///
    /// # Errors
    /// [`NodeError::Definition`] and [`NodeError::Sum`] if the definition cannot be used.
    pub fn schema_of_service(&self, info: &ServiceInfo) -> Result<Service, NodeError> {
        let kind = &info.service;
        stated(
            &kind.service,
            &kind.type_name,
            kind.type_hash,
            kind.flavour.ros,
            |registry| {
                let read = |registry: &mut Registry, name: &str| {
                    registry.add_embedded_service(name, &kind.definition)?;
                    registry.service(name)
                };
                let mut service = read(registry, &kind.type_name)?;
                if service.type_hash() != kind.flavour.rihs01 && kind.flavour.ros == bus::Ros::Two {
                    let name = with_folder(&kind.type_name, "action");
                    let of_action = read(&mut Registry::new(registry.flavour()), &name).ok();
                    let of_action = of_action.filter(|s| s.type_hash() == kind.flavour.rihs01);
                    service = of_action.unwrap_or(service);
                }
                let sum = service.md5();
                Ok((service, sum))
            },
        )
    }
}

/// Returns the schema of a topic from its publisher's definition.
fn schema_of(kind: &TopicType) -> Result<Schema, NodeError> {
    stated(
        &kind.topic,
        &kind.type_name,
        kind.type_hash,
        kind.flavour.ros,
        |registry| {
            let read = |registry: &mut Registry, name: &str| {
                registry.add_embedded(name, &kind.definition)?;
                registry.schema(name)
            };
            let schema = read(registry, &kind.type_name)?;
            let in_folder = |folder| {
                let found = read(
                    &mut Registry::new(registry.flavour()),
                    &with_folder(&kind.type_name, folder),
                );
                found.ok().filter(|s| s.type_hash() == kind.flavour.rihs01)
            };
            let is_other = schema.type_hash() != kind.flavour.rihs01 && kind.flavour.ros == bus::Ros::Two;
            let others = ["action", "srv"].into_iter().filter(|_| is_other);
            let schema = others.filter_map(in_folder).next().unwrap_or(schema);
            let sum = schema.md5();
            Ok((schema, sum))
        },
    )
}

/// Adds the folder (`msg` or `srv`), which hashes include and the bus's type names do not.
fn with_folder(type_name: &str, folder: &str) -> String {
    match type_name.split_once('/') {
        Some((package, name)) => format!("{package}/{folder}/{name}"),
        None => type_name.to_owned(),
    }
}

/// If the ROS version of a definition is not stated, takes the one whose sum matches.
fn stated<T>(
    topic: &str,
    type_name: &str,
    sum: [u8; 16],
    ros: bus::Ros,
    read: impl Fn(&mut Registry) -> Result<(T, [u8; 16]), DefinitionError>,
) -> Result<T, NodeError> {
    let hex = |sum: [u8; 16]| sum.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let mut computed = String::new();
    let mut problem = None;
    let flavours: &[Flavour] = match ros {
        bus::Ros::Unstated => &[Flavour::Ros1, Flavour::Ros2],
        bus::Ros::One => &[Flavour::Ros1],
        bus::Ros::Two => &[Flavour::Ros2],
    };
    for &flavour in flavours {
        match read(&mut Registry::new(flavour)) {
            Ok((schema, found)) if found == sum => return Ok(schema),
            Ok((_, found)) => computed = hex(found),
            Err(error) => drop(problem.get_or_insert(error)),
        }
    }
    let (topic, type_name) = (topic.to_owned(), type_name.to_owned());
    Err(match problem {
        Some(source) => NodeError::Definition {
            topic,
            type_name,
            source,
        },
        None => NodeError::Sum {
            topic,
            type_name,
            stated: hex(sum),
            computed,
        },
    })
}
