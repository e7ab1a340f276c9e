//! Services: a request to one server, and its reply, over two topics.
//!
//! A client publishes requests and subscribes to replies; a server does the reverse. Both pairs of endpoints
//! have paired identities, so that each side knows which publisher belongs to which subscriber. Requests and
//! replies are messages like any other, with a correlation header, and are queued to one subscriber alone.
//! The bytes stand in `docs/wire/bus.md`.

mod calls;
mod client;
mod correlation;
mod error;
mod server;
mod survey;

pub use client::{Client, ClientOptions, ClientStats, Pending, Reply};
pub use error::{CallError, RespondError};
pub use server::{Request, Server, ServerOptions, ServerStats};
pub use survey::ServiceInfo;

use crate::sys;
use crate::topic::{Flavour, TopicType};
use std::sync::Arc;

/// What follows a service's name in its two topics. `?` stands in no topic's name that a user may choose.
const REQUEST: &str = "?request";
const REPLY: &str = "?reply";

/// The longest text of a rejection, in bytes; longer ones are cut.
pub const MAX_REJECTION: usize = 1024;

/// A service and its type. Servers and clients connect only if name, type name and hash are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceType {
    /// Such as `/add_two_ints`; not empty, at most 247 bytes.
    pub service: String,
    /// Such as `roscpp_tutorials/TwoInts`; at most [`MAX_NAME`](crate::MAX_NAME) bytes.
    pub type_name: String,
    /// The MD5 of the service, as ROS 1 computes it.
    pub type_hash: [u8; 16],
    /// Which ROS the type is of. With a common sum, clients and servers of both ROS meet: then their requests and replies are the
    /// same bytes.
    pub flavour: Flavour,
    /// The full text of the definition, for tools; not compared. At most
    /// [`MAX_DEFINITION`](crate::MAX_DEFINITION) bytes.
    pub definition: Arc<str>,
}

impl ServiceType {
    fn topic(&self, suffix: &str) -> TopicType {
        TopicType {
            // An empty name must stay one, to be refused.
            topic: match &*self.service {
                "" => String::new(),
                name => format!("{name}{suffix}"),
            },
            type_name: self.type_name.clone(),
            type_hash: self.type_hash,
            flavour: self.flavour,
            definition: self.definition.clone(),
        }
    }

    fn requests(&self) -> TopicType {
        self.topic(REQUEST)
    }

    fn replies(&self) -> TopicType {
        self.topic(REPLY)
    }
}

/// A fresh pair of identities: the publisher's, the subscriber's.
fn pair() -> (u64, u64) {
    // Never 0, which stands for nobody.
    let publisher = (sys::unique_id() & !1).max(2);
    (publisher, partner(publisher))
}

/// The other identity of a pair.
fn partner(id: u64) -> u64 {
    id ^ 1
}
