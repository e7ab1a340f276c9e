//! Topics with types, services and their users on the bus.

use bus::{EndpointDetail, EndpointInfo, TopicInfo};
use observe::Links;
use ropewalk::{Node, NodeError, Schema, Service};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

/// Topics that are offered to clients.
const MAX_TOPICS: usize = 4096;
/// Services that are offered to clients.
const MAX_SERVICES: usize = 1024;

/// State of the bus. Topics and services keep their numbers as long as their types stay the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) topics: BTreeMap<u32, Topic>,
    pub(crate) services: BTreeMap<u32, NamedService>,
    /// Types of topics that are only subscribed to.
    pub(crate) wanted: BTreeMap<String, Schema>,
    pub(crate) graph: Json,
    pub(crate) links: Links,
    next: u32,
}

/// A topic with a publisher.
#[derive(Clone, Debug)]
pub(crate) struct Topic {
    pub(crate) name: String,
    pub(crate) schema: Schema,
}

/// A service with a server.
#[derive(Clone, Debug)]
pub(crate) struct NamedService {
    pub(crate) name: String,
    pub(crate) service: Service,
}

impl World {
    /// Surveys the bus again. Blocks for at most half a second if an endpoint is silent.
    ///
    /// # Errors
    /// [`NodeError`] if the bus cannot be read.
    pub(crate) fn look(&self, node: &Node, shows: impl Fn(&str) -> bool) -> Result<World, NodeError> {
        let survey = node.survey()?;
        let mut new = World {
            next: self.next,
            links: self.links.clone(),
            ..World::default()
        };
        new.links.update(node, &survey);
        let mut published = BTreeMap::<&str, Vec<String>>::new();
        let mut subscribed = BTreeMap::<&str, Vec<String>>::new();
        for info in survey.topics.iter().filter(|t| !t.is_of_service()) {
            let name = info.topic.topic.as_str();
            if name.starts_with("/_") || !shows(name) {
                continue;
            }
            published
                .entry(name)
                .or_default()
                .extend(info.publishers.iter().map(user));
            subscribed
                .entry(name)
                .or_default()
                .extend(info.subscribers.iter().map(user));
            if new.topics.values().any(|t| t.name == name) || new.topics.len() >= MAX_TOPICS {
                continue;
            }
            self.add_topic(&mut new, node, info);
        }
        let services = survey.services();
        for info in &services {
            let name = &info.service.service;
            if info.servers.is_empty() || name.starts_with("/_") || new.services.len() >= MAX_SERVICES {
                continue;
            }
            let known = self
                .services
                .iter()
                .find(|(_, s)| s.name == *name && s.service.md5() == info.service.type_hash);
            if let Some((id, service)) = known {
                new.services.insert(*id, service.clone());
            } else if let Ok(service) = node.schema_of_service(info) {
                let name = name.clone();
                let id = new.number();
                new.services.insert(id, NamedService { name, service });
            }
        }
        let list = |all: BTreeMap<&str, Vec<String>>, users: &str| -> Vec<Json> {
            let used = all.into_iter().filter(|(_, who)| !who.is_empty());
            used.map(|(name, who)| json!({ "name": name, users: who }))
                .collect()
        };
        let served = services.iter().filter(|s| !s.servers.is_empty());
        let served = served.map(|s| json!({ "name": s.service.service, "providerIds": s.servers.iter().map(user).collect::<Vec<_>>() }));
        new.graph = json!({
            "published": list(published, "publisherIds"),
            "subscribed": list(subscribed, "subscriberIds"),
            "services": served.collect::<Vec<_>>(),
        });
        Ok(new)
    }

    fn add_topic(&self, new: &mut World, node: &Node, info: &TopicInfo) {
        let name = &info.topic.topic;
        let known = self
            .topics
            .iter()
            .find(|(_, t)| t.name == *name && t.schema.md5() == info.topic.type_hash);
        let schema = match known {
            Some((_, topic)) => Ok(topic.schema.clone()),
            None => node.schema_of(info),
        };
        let schema = match schema {
            Ok(schema) => schema,
            Err(error) => return tracing::debug!(%error, "a topic is not offered"),
        };
        if info.publishers.is_empty() {
            new.wanted.insert(name.clone(), schema);
            return;
        }
        let same = known.filter(|(_, t)| t.schema.flavour() == schema.flavour());
        let id = same.map_or_else(|| new.number(), |(id, _)| *id);
        let name = name.clone();
        new.topics.insert(id, Topic { name, schema });
    }

    fn number(&mut self) -> u32 {
        self.next = self.next.wrapping_add(1);
        self.next
    }

    /// The type of a topic with a publisher or a subscriber.
    pub(crate) fn schema(&self, topic: &str) -> Option<&Schema> {
        let published = self.topics.values().find(|t| t.name == topic);
        published.map(|t| &t.schema).or_else(|| self.wanted.get(topic))
    }
}

/// The user of a topic: its node's name if it is known, else its program and process.
fn user(endpoint: &EndpointInfo) -> String {
    match &endpoint.detail {
        EndpointDetail::Publisher(info) if !info.offer.node.is_empty() => info.offer.node.clone(),
        _ => match &endpoint.program {
            Some(program) => format!("{program} ({})", endpoint.pid),
            None => format!("process {}", endpoint.pid),
        },
    }
}
