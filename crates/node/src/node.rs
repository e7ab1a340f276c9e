//! A node: a named member of a bus.

mod discovery;
mod services;

use crate::name::{self, NameError};
use crate::typed::{self, Structure};
use crate::{Publisher, Subscriber};
use bus::{Bus, BusConfig, PublisherOptions, SubscriberOptions, TopicType, WaitSet};
use schema::{Flavour, Schema};
use std::time::Duration;

/// A named member of this host's bus; creates publishers and subscribers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Node {
    name: String,
    bus: Bus,
}

/// Why a node, or an endpoint of it, cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// See [`NameError`].
    #[error(transparent)]
    Name(#[from] NameError),
    /// The settings in the environment are wrong.
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
    /// The type definition that a publisher or server announced, or that a structure has, cannot be read.
    #[error("{topic} is announced with type {type_name}, whose definition cannot be used: {source}")]
    Definition {
        /// The topic.
        topic: String,
        /// The type's name.
        type_name: String,
        /// What is wrong with it.
        source: schema::DefinitionError,
    },
    /// The definition that a publisher or server announced does not match the sum that it stated.
    #[error("{topic} is announced with type {type_name} and sum {stated}, but its definition has {computed}")]
    Sum {
        /// The topic.
        topic: String,
        /// The type's name.
        type_name: String,
        /// The MD5 sum that the publisher states.
        stated: String,
        /// The MD5 sum of its definition.
        computed: String,
    },
    /// Nobody publishes the topic.
    #[error("nobody published {topic} within {waited:?}{}; `ropewalk topic list` shows what there is", schema::did_you_mean(.near.as_deref()))]
    NoPublisher {
        /// The topic.
        topic: String,
        /// How long it waited.
        waited: Duration,
        /// One that exists and has a similar name.
        near: Option<String>,
    },
    /// Nobody serves the service.
    #[error("nobody served {service} within {waited:?}{}; `ropewalk service list` shows what there is", schema::did_you_mean(.near.as_deref()))]
    NoServer {
        /// The service.
        service: String,
        /// How long it waited.
        waited: Duration,
        /// One that exists and has a similar name.
        near: Option<String>,
    },
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

impl Node {
    /// Creates a node called `name` on the bus that the environment names ([`BusConfig::from_env`]).
    ///
    /// # Errors
    /// [`NodeError`]: a bad name, or a runtime folder that cannot be used.
    pub fn new(name: &str) -> Result<Self, NodeError> {
        Self::with_config(name, BusConfig::from_env()?)
    }

    /// Creates a node called `name` on the bus of `config`.
    ///
    /// # Errors
    /// As for [`Node::new`].
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

    /// Returns the bus, for features that this crate does not wrap.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Creates a publisher of `topic` for messages that are generated structures, such as those of
    /// [`typed`]. Returns at once; subscribers connect in the background.
    ///
    /// # Errors
    /// [`NodeError`]: a bad name, or no descriptors left.
    pub fn publisher<T: Structure>(&self, topic: &str) -> Result<Publisher<T>, NodeError> {
        self.publisher_with(topic, PublisherOptions::default())
    }

    /// Like [`Node::publisher`], with memory limits, a policy for when they are reached, and history for late
    /// joiners. The publisher announces this node's name, unless the options name another.
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn publisher_with<T: Structure>(
        &self,
        topic: &str,
        options: PublisherOptions,
    ) -> Result<Publisher<T>, NodeError> {
        self.publish(topic, &of_structure::<T>(topic)?, options)
    }

    /// Creates a publisher of `topic` for messages of type `schema`, which is known only at run time. Returns at
    /// once, like [`Node::publisher`].
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn dynamic_publisher(&self, topic: &str, schema: &Schema) -> Result<Publisher, NodeError> {
        self.dynamic_publisher_with(topic, schema, PublisherOptions::default())
    }

    /// Like [`Node::dynamic_publisher`], with the options of [`Node::publisher_with`].
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn dynamic_publisher_with(
        &self,
        topic: &str,
        schema: &Schema,
        options: PublisherOptions,
    ) -> Result<Publisher, NodeError> {
        self.publish(topic, schema, options)
    }

    fn publish<T>(
        &self,
        topic: &str,
        schema: &Schema,
        mut options: PublisherOptions,
    ) -> Result<Publisher<T>, NodeError> {
        if options.node.is_empty() {
            options.node = format!("/{}", self.name);
        }
        let kind = topic_type(topic, schema)?;
        let made = self.bus.publisher(kind.clone(), options);
        made.map(|p| Publisher::new(p, schema.clone()))
            .map_err(|source| create(kind, source))
    }

    /// Subscribes to `topic`, whose messages are read as generated structures ([`typed`]). Messages of the same
    /// type from the other ROS version are converted (in ROS 1 a `Header` has a `seq`, which becomes 0 or is left
    /// out). Publishers of any other type are refused, and both sides record why. Returns at once; publishers
    /// connect in the background.
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn subscriber<T: Structure>(&self, topic: &str) -> Result<Subscriber<T>, NodeError> {
        self.subscriber_with(topic, SubscriberOptions::default())
    }

    /// Like [`Node::subscriber`], with queue depth, policy, limits, history, a wait set, and whether to
    /// convert messages.
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn subscriber_with<T: Structure>(
        &self,
        topic: &str,
        options: SubscriberOptions,
    ) -> Result<Subscriber<T>, NodeError> {
        self.subscribe(topic, &of_structure::<T>(topic)?, options)
    }

    /// Subscribes to `topic` like [`Node::subscriber`], for messages of type `schema`, which is known only at run
    /// time ([`Node::discover`]).
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn dynamic_subscriber(&self, topic: &str, schema: &Schema) -> Result<Subscriber, NodeError> {
        self.dynamic_subscriber_with(topic, schema, SubscriberOptions::default())
    }

    /// Like [`Node::dynamic_subscriber`], with the options of [`Node::subscriber_with`].
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn dynamic_subscriber_with(
        &self,
        topic: &str,
        schema: &Schema,
        options: SubscriberOptions,
    ) -> Result<Subscriber, NodeError> {
        self.subscribe(topic, schema, options)
    }

    fn subscribe<T: 'static>(
        &self,
        topic: &str,
        schema: &Schema,
        mut options: SubscriberOptions,
    ) -> Result<Subscriber<T>, NodeError> {
        let kind = topic_type(topic, schema)?;
        options.conversion.get_or_insert(true);
        let made = self.bus.subscriber(kind.clone(), options);
        made.map(|s| Subscriber::new(s, schema.clone(), self.bus.clone()))
            .map_err(|source| create(kind, source))
    }

    /// Creates a doorbell that several subscribers share ([`SubscriberOptions::with_wait_set`]).
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

/// The type of a generated structure.
fn of_structure<T: Structure>(topic: &str) -> Result<Schema, NodeError> {
    typed::schema::<T>().map_err(|source| NodeError::Definition {
        topic: topic.to_owned(),
        type_name: T::NAME.to_owned(),
        source,
    })
}

fn topic_type(topic: &str, schema: &Schema) -> Result<TopicType, NameError> {
    Ok(TopicType {
        topic: name::topic(topic)?,
        type_name: schema.name().to_owned(),
        type_hash: schema.md5(),
        flavour: flavour(schema.flavour(), schema.type_hash(), schema.common_sum()),
        definition: schema.definition().into(),
    })
}

/// Converts to the bus's representation.
fn flavour(of: Flavour, rihs01: [u8; 32], common: [u8; 16]) -> bus::Flavour {
    let ros = ros(of);
    bus::Flavour { ros, rihs01, common }
}

/// Converts a ROS version to the bus's representation.
pub(crate) fn ros(of: Flavour) -> bus::Ros {
    match of {
        Flavour::Ros1 => bus::Ros::One,
        Flavour::Ros2 => bus::Ros::Two,
    }
}
