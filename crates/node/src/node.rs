//! A node: a named member of a bus.

use crate::name::{self, NameError};
use crate::{Callback, Client, Publisher, Request, Server, Subscriber};
use bus::{
    Bus, BusConfig, ClientOptions, PublisherOptions, ServerOptions, ServiceInfo, ServiceType,
    SubscriberOptions, TopicInfo, TopicType, WaitSet,
};
use schema::{DefinitionError, Flavour, Registry, Schema, Service, Value};
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
    /// A publisher's, or a server's, definition of its type cannot be read.
    #[error("{topic} is said to be of type {type_name}, whose definition cannot be used: {source}")]
    Definition {
        /// The topic.
        topic: String,
        /// The type's name.
        type_name: String,
        /// What is wrong with it.
        source: schema::DefinitionError,
    },
    /// A publisher's, or a server's, definition does not have the sum that it states.
    #[error("{topic} is said to be of type {type_name} with sum {stated}, but its definition has {computed}")]
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
    /// Nobody serves the service.
    #[error("nobody served {service} within {waited:?}; `ropewalk service list` shows what there is")]
    NoServer {
        /// The service.
        service: String,
        /// How long was waited.
        waited: Duration,
    },
    /// No thread can be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
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
    /// joiners. The publisher says that it is this node's, unless the options name another.
    ///
    /// # Errors
    /// As [`Node::publisher`].
    pub fn publisher_with(
        &self,
        topic: &str,
        schema: &Schema,
        mut options: PublisherOptions,
    ) -> Result<Publisher, NodeError> {
        if options.node.is_empty() {
            options.node = format!("/{}", self.name);
        }
        let kind = topic_type(topic, schema)?;
        let made = self.bus.publisher(kind.clone(), options);
        made.map(|p| Publisher::new(p, schema.clone()))
            .map_err(|source| create(kind, source))
    }

    /// Subscribes to `topic`, whose messages are of `schema`. Messages of its namesake of the other ROS are converted (in ROS 1 a
    /// `Header` has a `seq`, which becomes 0 or is left out). Publishers of another type are refused, and both
    /// sides are told. Returns at once; publishers connect in the background.
    ///
    /// # Errors
    /// As [`Node::publisher`].
    pub fn subscriber(&self, topic: &str, schema: &Schema) -> Result<Subscriber, NodeError> {
        self.subscriber_with(topic, schema, SubscriberOptions::default())
    }

    /// As [`Node::subscriber`], with depth, policy, limits, history, a wait set, and whether messages are converted.
    ///
    /// # Errors
    /// As [`Node::publisher`].
    pub fn subscriber_with(
        &self,
        topic: &str,
        schema: &Schema,
        mut options: SubscriberOptions,
    ) -> Result<Subscriber, NodeError> {
        let kind = topic_type(topic, schema)?;
        options.conversion.get_or_insert(true);
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

    /// Everything that the bus has, topics and services, and whose endpoints did not answer. Blocks for half a second at most, and
    /// only if one is silent: its process is stopped or hangs, or the machine is busy.
    ///
    /// # Errors
    /// [`NodeError::Open`] if the runtime folder cannot be read.
    pub fn survey(&self) -> Result<bus::Survey, NodeError> {
        Ok(self.bus.survey(PATIENCE)?)
    }

    /// Every topic of the bus with its publishers and subscribers. Blocks for half a second at most; those that are silent
    /// ([`Node::survey`]) are left out.
    ///
    /// # Errors
    /// [`NodeError::Open`] if the runtime folder cannot be read.
    pub fn topics(&self) -> Result<Vec<TopicInfo>, NodeError> {
        let mut topics = self.bus.topics(PATIENCE)?;
        // What carries services is listed as services.
        topics.retain(|t| !t.is_of_service());
        Ok(topics)
    }

    /// The type of a topic that [`Node::topics`] listed, from the definition that its publisher tells.
    ///
    /// # Errors
    /// [`NodeError::Definition`] and [`NodeError::Sum`] if what the publisher tells cannot be used.
    pub fn schema_of(&self, info: &TopicInfo) -> Result<Schema, NodeError> {
        schema_of(&info.topic)
    }

    /// Calls the service `name`. Servers of another type are refused, and both sides are told. Returns at once;
    /// servers connect in the background ([`Client::wait_for_server`]).
    ///
    /// # Errors
    /// As [`Node::publisher`].
    pub fn client(&self, name: &str, schema: &Service) -> Result<Client, NodeError> {
        self.client_with(name, schema, ClientOptions::default())
    }

    /// As [`Node::client`], with limits.
    ///
    /// # Errors
    /// As [`Node::publisher`].
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

    /// Serves the service `name`, taking requests when it pleases. Returns at once; clients connect in the
    /// background.
    ///
    /// # Errors
    /// As [`Node::publisher`].
    pub fn server(&self, name: &str, schema: &Service) -> Result<Server, NodeError> {
        self.server_with(name, schema, ServerOptions::default())
    }

    /// As [`Node::server`], with depth, limits and a wait set.
    ///
    /// # Errors
    /// As [`Node::publisher`].
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

    /// Serves the service `name`: every request is answered with what `f` gives, on a thread of its own, until the
    /// [`Callback`] is dropped. An error of `f` is the client's.
    ///
    /// # Errors
    /// As [`Node::publisher`]; [`NodeError::Thread`].
    pub fn service(
        &self,
        name: &str,
        schema: &Service,
        f: impl FnMut(&Request) -> Result<Value, String> + Send + 'static,
    ) -> Result<Callback, NodeError> {
        self.server(name, schema)?.callback(f).map_err(NodeError::Thread)
    }

    /// Every service of the bus with its servers and clients. Blocks for half a second at most.
    ///
    /// # Errors
    /// [`NodeError::Open`] if the runtime folder cannot be read.
    pub fn services(&self) -> Result<Vec<ServiceInfo>, NodeError> {
        Ok(self.bus.services(PATIENCE)?)
    }

    /// Finds out the type of the service `name` from whoever serves it, waiting for a server at most `timeout`.
    ///
    /// # Errors
    /// [`NodeError::NoServer`] after `timeout`; [`NodeError::Definition`] and [`NodeError::Sum`] if what the
    /// server tells cannot be used.
    pub fn discover_service(&self, name: &str, timeout: Duration) -> Result<Service, NodeError> {
        let service = name::service(name)?;
        let start = Instant::now();
        loop {
            let mut found = self.services()?.into_iter();
            let found = found.find(|s| s.service.service == service && !s.servers.is_empty());
            if let Some(info) = found {
                return self.schema_of_service(&info);
            }
            if start.elapsed() >= timeout {
                return Err(NodeError::NoServer {
                    service,
                    waited: timeout,
                });
            }
            std::thread::sleep(DISCOVERY_INTERVAL.min(timeout));
        }
    }

    /// The type of a service that [`Node::services`] listed, from the definition that its server tells.
    ///
    /// # Errors
    /// [`NodeError::Definition`] and [`NodeError::Sum`] if what the server tells cannot be used.
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
        flavour: flavour(schema.flavour(), schema.type_hash(), schema.common_sum()),
        definition: schema.definition().into(),
    })
}

/// As the bus states it.
fn flavour(of: Flavour, rihs01: [u8; 32], common: [u8; 16]) -> bus::Flavour {
    let ros = ros(of);
    bus::Flavour { ros, rihs01, common }
}

/// A ROS as the bus names it.
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

/// The schema of a topic as its publisher describes it.
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

/// The bus names types without the folder that their hashes are of.
fn with_folder(type_name: &str, folder: &str) -> String {
    match type_name.split_once('/') {
        Some((package, name)) => format!("{package}/{folder}/{name}"),
        None => type_name.to_owned(),
    }
}

/// Where it is not stated which ROS a definition is of, the one whose sum fits is taken.
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
