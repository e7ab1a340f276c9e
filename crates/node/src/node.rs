//! A node: a named member of a bus.

use crate::name::{self, NameError};
use crate::{Publisher, Subscriber};
use bus::{Bus, BusConfig, PublisherOptions, SubscriberOptions, TopicInfo, TopicType, WaitSet};
use schema::{Flavour, Registry, Schema};
use std::time::{Duration, Instant};

/// How often the bus is asked for a topic that nobody publishes yet.
const DISCOVERY_INTERVAL: Duration = Duration::from_millis(100);
/// How long silent endpoints may hold up one question to the bus.
const PATIENCE: Duration = Duration::from_millis(500);

/// A named member of this host's bus; makes publishers and subscribers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Node {
    name: String,
    bus: Bus,
}

/// Why a node cannot be made, or cannot make what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// See [`NameError`].
    #[error(transparent)]
    Name(#[from] NameError),
    /// The environment's settings are wrong.
    #[error(transparent)]
    Config(#[from] bus::ConfigError),
    /// The bus cannot be opened or listed.
    #[error(transparent)]
    Open(#[from] bus::OpenError),
    /// The bus refuses a publisher or a subscriber.
    #[error("{topic}: {source}")]
    Create {
        /// The topic.
        topic: String,
        /// Why.
        source: bus::CreateError,
    },
    /// A publisher's definition of its type cannot be read.
    #[error("{topic} is published as {type_name}, whose definition cannot be used: {source}")]
    Definition {
        /// The topic.
        topic: String,
        /// The type's name.
        type_name: String,
        /// What is wrong with it.
        source: schema::DefinitionError,
    },
    /// A publisher's definition does not have the sum that it states.
    #[error("{topic} is published as {type_name} with sum {stated}, but its definition has {computed}")]
    Sum {
        /// The topic.
        topic: String,
        /// The type's name.
        type_name: String,
        /// The MD5 that the publisher states.
        stated: String,
        /// The MD5 of its definition.
        computed: String,
    },
    /// Nobody publishes the topic.
    #[error("nobody published {topic} within {waited:?}; `ropewalk topic list` shows what there is")]
    NoPublisher {
        /// The topic.
        topic: String,
        /// How long was waited.
        waited: Duration,
    },
}

impl Node {
    /// A node called `name` on the bus that the environment names ([`BusConfig::from_env`]).
    ///
    /// # Errors
    /// [`NodeError`]: a bad name, or a runtime folder that cannot be used.
    pub fn new(name: &str) -> Result<Self, NodeError> {
        Self::with_config(name, BusConfig::from_env()?)
    }

    /// A node called `name` on the bus of `config`.
    ///
    /// # Errors
    /// As [`Node::new`].
    pub fn with_config(name: &str, config: BusConfig) -> Result<Self, NodeError> {
        name::node(name)?;
        Ok(Node {
            name: name.to_owned(),
            bus: Bus::open(config)?,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The bus, for what this crate does not wrap.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Offers messages of `schema` on `topic`. Returns at once; subscribers connect in the background.
    ///
    /// # Errors
    /// [`NodeError`]: a bad name, or no descriptors left.
    pub fn publisher(&self, topic: &str, schema: &Schema) -> Result<Publisher, NodeError> {
        self.publisher_with(topic, schema, PublisherOptions::default())
    }

    /// As [`Node::publisher`], with limits of memory, what to do when they are reached, and history for late
    /// joiners.
    ///
    /// # Errors
    /// As [`Node::publisher`].
    pub fn publisher_with(
        &self,
        topic: &str,
        schema: &Schema,
        options: PublisherOptions,
    ) -> Result<Publisher, NodeError> {
        let kind = topic_type(topic, schema)?;
        let made = self.bus.publisher(kind.clone(), options);
        made.map(|p| Publisher::new(p, schema.clone()))
            .map_err(|source| create(kind, source))
    }

    /// Subscribes to `topic`, whose messages are of `schema`. Publishers of another type are refused, and both
    /// sides are told. Returns at once; publishers connect in the background.
    ///
    /// # Errors
    /// As [`Node::publisher`].
    pub fn subscriber(&self, topic: &str, schema: &Schema) -> Result<Subscriber, NodeError> {
        self.subscriber_with(topic, schema, SubscriberOptions::default())
    }

    /// As [`Node::subscriber`], with depth, policy, limits, history and a wait set.
    ///
    /// # Errors
    /// As [`Node::publisher`].
    pub fn subscriber_with(
        &self,
        topic: &str,
        schema: &Schema,
        options: SubscriberOptions,
    ) -> Result<Subscriber, NodeError> {
        let kind = topic_type(topic, schema)?;
        let made = self.bus.subscriber(kind.clone(), options);
        made.map(|s| Subscriber::new(s, schema.clone()))
            .map_err(|source| create(kind, source))
    }

    /// Finds out the type of `topic` from whoever publishes it, waiting for a publisher at most `timeout`.
    ///
    /// # Errors
    /// [`NodeError::NoPublisher`] after `timeout`; [`NodeError::Definition`] and [`NodeError::Sum`] if what
    /// the publisher tells cannot be used.
    pub fn discover(&self, topic: &str, timeout: Duration) -> Result<Schema, NodeError> {
        let topic = name::topic(topic)?;
        let start = Instant::now();
        loop {
            let found = self
                .topics()?
                .into_iter()
                .find(|t| t.topic.topic == topic && !t.publishers.is_empty());
            if let Some(info) = found {
                return self.schema_of(&info);
            }
            if start.elapsed() >= timeout {
                return Err(NodeError::NoPublisher {
                    topic,
                    waited: timeout,
                });
            }
            std::thread::sleep(DISCOVERY_INTERVAL.min(timeout));
        }
    }

    /// Every topic of the bus with its publishers and subscribers. Blocks for half a second at most.
    ///
    /// # Errors
    /// [`NodeError::Open`] if the runtime folder cannot be read.
    pub fn topics(&self) -> Result<Vec<TopicInfo>, NodeError> {
        Ok(self.bus.topics(PATIENCE)?)
    }

    /// The type of a topic that [`Node::topics`] listed, from the definition that its publisher tells.
    ///
    /// # Errors
    /// [`NodeError::Definition`] and [`NodeError::Sum`] if what the publisher tells cannot be used.
    pub fn schema_of(&self, info: &TopicInfo) -> Result<Schema, NodeError> {
        schema_of(&info.topic)
    }

    /// A doorbell that several subscribers share ([`SubscriberOptions::with_wait_set`]).
    ///
    /// # Errors
    /// [`NodeError::Open`] if no descriptor is left.
    pub fn wait_set(&self) -> Result<WaitSet, NodeError> {
        Ok(WaitSet::new(&self.bus)?)
    }
}

fn create(kind: TopicType, source: bus::CreateError) -> NodeError {
    NodeError::Create {
        topic: kind.topic,
        source,
    }
}

fn topic_type(topic: &str, schema: &Schema) -> Result<TopicType, NameError> {
    Ok(TopicType {
        topic: name::topic(topic)?,
        type_name: schema.name().to_owned(),
        type_hash: schema.md5(),
        definition: schema.definition().into(),
    })
}

/// The schema of a topic as its publisher describes it. Which ROS the definition is of is not stated: the one
/// whose sum fits is taken.
fn schema_of(kind: &TopicType) -> Result<Schema, NodeError> {
    let name = &kind.type_name;
    let mut computed = String::new();
    let mut problem = None;
    for flavour in [Flavour::Ros1, Flavour::Ros2] {
        let mut registry = Registry::new(flavour);
        match registry
            .add_embedded(name, &kind.definition)
            .and_then(|()| registry.schema(name))
        {
            Ok(schema) if schema.md5() == kind.type_hash => return Ok(schema),
            Ok(schema) => computed = schema.md5_hex(),
            Err(error) => drop(problem.get_or_insert(error)),
        }
    }
    let (topic, type_name) = (kind.topic.clone(), name.clone());
    Err(match problem {
        Some(source) => NodeError::Definition {
            topic,
            type_name,
            source,
        },
        None => {
            let stated = kind.type_hash.iter().map(|b| format!("{b:02x}")).collect();
            NodeError::Sum {
                topic,
                type_name,
                stated,
                computed,
            }
        }
    })
}
