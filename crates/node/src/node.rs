//! A node: a named member of a bus.

use crate::name::{self, NameError};
use crate::typed::{self, Structure};
use crate::{Callback, Client, Publisher, Request, Server, Subscriber};
use bus::{
    Bus, BusConfig, ClientOptions, PublisherOptions, ServerOptions, ServiceInfo, ServiceType,
    SubscriberOptions, TopicInfo, TopicType, WaitSet,
};
use schema::{DefinitionError, Flavour, Registry, Schema, Service, Value};
use std::time::{Duration, Instant};

/// How often to query the bus for a topic that nobody publishes yet.
const DISCOVERY_INTERVAL: Duration = Duration::from_millis(100);
/// How long silent endpoints may delay one query to the bus.
const PATIENCE: Duration = Duration::from_millis(500);

/// A named member of this host's bus; creates publishers and subscribers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Node {
    name: String,
    bus: Bus,
}

/// Why a node, or something that it was asked to create, cannot be created.
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
        made.map(|s| Subscriber::new(s, schema.clone()))
            .map_err(|source| create(kind, source))
    }

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
    /// silent endpoints ([`Node::survey`]) are left out.
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

    /// Creates a client of the service `name`. Servers of another type are refused, and both sides record
    /// why. Returns at once; servers connect in the background ([`Client::wait_for_server`]).
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn client(&self, name: &str, schema: &Service) -> Result<Client, NodeError> {
        self.client_with(name, schema, ClientOptions::default())
    }

    /// Like [`Node::client`], with limits.
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn client_with(
        &self,
        name: &str,
        schema: &Service,
        options: ClientOptions,
    ) -> Result<Client, NodeError> {
        let kind = service_type(name, schema)?;
        let made = self.bus.client(kind.clone(), options);
        made.map(|c| Client::new(c, schema.clone()))
            .map_err(|source| NodeError::Create {
                topic: kind.service,
                source,
            })
    }

    /// Creates a server of the service `name`, whose requests the caller takes. Returns at once; clients
    /// connect in the background.
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn server(&self, name: &str, schema: &Service) -> Result<Server, NodeError> {
        self.server_with(name, schema, ServerOptions::default())
    }

    /// Like [`Node::server`], with queue depth, limits and a wait set.
    ///
    /// # Errors
    /// As for [`Node::publisher`].
    pub fn server_with(
        &self,
        name: &str,
        schema: &Service,
        options: ServerOptions,
    ) -> Result<Server, NodeError> {
        let kind = service_type(name, schema)?;
        let made = self.bus.server(kind.clone(), options);
        made.map(|s| Server::new(s, schema.clone()))
            .map_err(|source| NodeError::Create {
                topic: kind.service,
                source,
            })
    }

    /// Serves the service `name`: answers every request with the result of `f`, on its own thread, until the
    /// [`Callback`] is dropped. The client receives an error of `f`.
    ///
    /// # Errors
    /// As for [`Node::publisher`]; [`NodeError::Thread`].
    pub fn service(
        &self,
        name: &str,
        schema: &Service,
        f: impl FnMut(&Request) -> Result<Value, String> + Send + 'static,
    ) -> Result<Callback, NodeError> {
        self.server(name, schema)?.callback(f).map_err(NodeError::Thread)
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

fn service_type(name: &str, schema: &Service) -> Result<ServiceType, NameError> {
    Ok(ServiceType {
        service: name::service(name)?,
        type_name: schema.name(),
        type_hash: schema.md5(),
        flavour: flavour(
            schema.request().flavour(),
            schema.type_hash(),
            schema.common_sum().unwrap_or_default(),
        ),
        definition: schema.definition().into(),
    })
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
