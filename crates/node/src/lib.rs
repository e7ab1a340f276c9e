#![forbid(unsafe_code)]
//! The library for user programs: nodes that publish and subscribe to topics of one host's bus, and that call
//! and serve services.
//!
//! A [`Schema`] describes the type of a message, so no generated types are needed. Messages are read and
//! written as ROS 1 bytes, as [`Value`]s, or part by part, written once and read in place. They can also be
//! structures that `ropewalk gen rust` generates ([`typed`]) or, with the feature `serde`, structures that
//! the Rust generators of ROS 2 generate (`structure`). The crate `bus` shares the memory. The link daemon
//! sends topics to other hosts; on the bus it is an ordinary subscriber.
//!
//! ```
//! use ropewalk::{Node, Registry, Flavour};
//! use std::time::Duration;
//!
//! # let folder = tempfile::tempdir()?;
//! # let config = bus::BusConfig::new(folder.path());
//! let node = Node::with_config("example", config)?; // or Node::new("example")?
//! let string = Registry::new(Flavour::Ros1).schema("std_msgs/String")?;
//! let publisher = node.publisher("/chatter", &string)?;
//! let subscriber = node.subscriber("/chatter", &string)?;
//! assert!(publisher.wait_for_subscribers(1, Duration::from_secs(10)));
//!
//! publisher.publish_ros1(b"\x05\0\0\0hello")?;
//! let message = subscriber.take_timeout(Duration::from_secs(10))?.expect("a message");
//! assert_eq!(message.ros1()?, b"\x05\0\0\0hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod callback;
mod client;
mod executor;
pub mod guard;
mod message;
mod name;
mod node;
mod publisher;
mod server;
#[cfg(feature = "serde")]
pub mod structure;
mod subscriber;
pub mod typed;

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
