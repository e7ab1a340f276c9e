#![forbid(unsafe_code)]
//! The library for user programs: nodes that publish and subscribe to topics of one host's bus, and that call
//! and serve services.
//!
//! Messages are structures: those of the standard packages ([`msgs`]) or those that `ropewalk gen rust` generates
//! for other types ([`typed`]); requests and replies of services are too. With the feature `serde` they may also be structures that the Rust generators of
//! ROS 2 generate (`structure`). Programs that learn a type only at run time describe it by a [`Schema`]
//! ([`Node::dynamic_publisher`], [`Node::dynamic_subscriber`]) or a [`Service`] ([`Node::dynamic_client`],
//! [`Node::dynamic_server`]), and read and write its messages as ROS 1 bytes, as [`Value`]s, or part by part. In all these forms large arrays are written once and read in place. The crate `bus`
//! shares the memory. The link daemon sends topics to other hosts; on the bus it is an ordinary subscriber.
//!
//! ```
//! use ropewalk::{Node, msgs::std_msgs::String};
//! use std::time::Duration;
//!
//! # let folder = tempfile::tempdir()?;
//! # let config = bus::BusConfig::new(folder.path());
//! let node = Node::with_config("example", config)?; // or Node::new("example")?
//! let publisher = node.publisher::<String>("/chatter")?;
//! let subscriber = node.subscriber::<String>("/chatter")?;
//! assert!(publisher.wait_for_subscribers(1, Duration::from_secs(60)));
//!
//! publisher.publish(&String { data: "hello".into() })?;
//! let message = subscriber.take_timeout(Duration::from_secs(60))?.expect("a message");
//! assert_eq!(message.read()?.data, "hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Generated code names this crate.
extern crate self as ropewalk;

mod callback;
mod client;
mod executor;
pub mod guard;
mod message;
#[cfg(feature = "msgs")]
pub mod msgs;
mod name;
mod node;
mod publisher;
mod server;
#[cfg(feature = "serde")]
pub mod structure;
mod subscriber;
pub mod typed;
mod unpublished;

pub use bus::{
    BusConfig, ClientOptions, Interrupt, Loan, MemoryPolicy, Offer, Published, PublisherOptions, QueuePolicy,
    ServerOptions, ServiceInfo, Stamp, SubscriberOptions, WaitSet,
};
pub use callback::Callback;
pub use client::{CallError, Client, Pending, Reply};
pub use executor::{Executor, OtherWaitSet, Stopper};
pub use guard::CallbackOptions;
pub use message::Message;
pub use name::NameError;
pub use node::{Node, NodeError};
pub use publisher::{PublishError, Publisher};
pub use schema::{
    Arity, CodecError, DefinitionError, FieldType, Flavour, MessageType, Registry, Schema, Service, Value,
    did_you_mean,
};
pub use server::{Request, RespondError, Server};
pub use stats::Time;
pub use subscriber::Subscriber;

#[cfg(all(doctest, feature = "msgs"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The type parameter of [`Publisher`], [`Subscriber`], [`Client`] and [`Server`], and of what they take, for a type that
/// is known only at run time.
#[derive(Clone, Copy, Debug)]
pub enum Dynamic {}
