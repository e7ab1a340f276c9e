//! Zero-copy publish/subscribe between the processes of one host.
//!
//! A publisher owns shared memory and writes each message once, into a block of that memory. Subscribers read
//! the data parts in place. There is no daemon: endpoints find each other through sockets in a runtime folder
//! and perform the handshake there. After that, messages go through shared memory alone, and a pipe wakes
//! sleeping subscribers.
//!
//! This crate does not interpret messages: `schema` turns bytes into fields, and `ropewalk` offers typed
//! messages. It never leaves the host; `link` does that. Its API is synchronous: for an event loop it
//! provides a file descriptor. `docs/wire/bus.md` specifies the protocol.
//!
//! ```no_run
//! use bus::{Bus, BusConfig, PublisherOptions, Stamp, SubscriberOptions, TopicType};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let bus = Bus::open(BusConfig::from_env()?)?;
//! let topic = TopicType {
//!     topic: "/image".into(),
//!     type_name: "sensor_msgs/Image".into(),
//!     type_hash: [0x11; 16],
//!     flavour: Default::default(),
//!     definition: "".into(),
//! };
//! let subscriber = bus.subscriber(topic.clone(), SubscriberOptions::default())?;
//! let publisher = bus.publisher(topic, PublisherOptions::default())?;
//! publisher.wait_for_subscribers(1, Duration::from_secs(1));
//! let mut loan = publisher.loan(8, &[4_000_000])?;
//! loan.part_mut(0).fill(7);
//! publisher.publish(loan, Stamp::default())?;
//! if let Some(message) = subscriber.take_timeout(Duration::from_secs(1))? {
//!     println!("{} bytes", message.part(0).bytes().len());
//! }
//! # Ok(())
//! # }
//! ```

mod block;
mod budget;
mod bus;
mod config;
mod connection;
mod content;
mod definition;
mod detail;
mod folder;
mod frame;
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "test-hooks")]
#[doc(hidden)]
pub mod hooks;
#[cfg(not(feature = "test-hooks"))]
mod hooks;
mod housekeeping;
mod loan;
mod losses;
mod message;
mod peer;
mod pool;
mod publisher;
#[doc(hidden)]
pub mod ring;
mod service;
mod space;
mod subscriber;
mod survey;
mod sys;
mod topic;
mod waitset;

pub use bus::{Bus, OpenError};
pub use config::{BusConfig, ConfigError};
pub use detail::{EndpointDetail, PublisherInfo, SubscriberInfo};
pub use loan::{Kept, Loan, LoanError, MAX_CONTROL, MAX_PARTS, PartsMut};
pub use losses::Losses;
pub use message::{Message, OwnPart, PartView};
pub use publisher::{
    CreateError, MemoryPolicy, PublishError, Published, Publisher, PublisherOptions, PublisherStats, Stamp,
    SubscriberPeer,
};
pub use service::{
    CallError, Client, ClientOptions, ClientStats, MAX_REJECTION, Pending, Reply, Request, RespondError,
    Server, ServerOptions, ServerStats, ServiceInfo, ServiceType,
};
pub use subscriber::{PublisherPeer, QueuePolicy, Subscriber, SubscriberOptions, SubscriberStats, TakeError};
pub use survey::{Silent, Survey};
pub use sys::limits::return_free_memory;
pub use topic::{
    EndpointInfo, Flavour, MAX_DEFINITION, MAX_NAME, Offer, Refusal, Reliability, Ros, TopicInfo, TopicType,
};
pub use waitset::{Interrupt, WaitSet};
