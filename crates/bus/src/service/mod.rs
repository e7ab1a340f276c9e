//! Services: a request to one server, and its reply, over two topics.
//!
//! A client publishes requests and subscribes to replies; a server does the reverse. On both sides the two
//! endpoints have paired identities, so each side knows which publisher belongs to which subscriber. Requests
//! and replies are ordinary messages with a correlation header, queued to a single subscriber.
//! `docs/wire/bus.md` specifies the bytes (decision 034).

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

/// Suffixes of a service's two topics. Users cannot choose a topic name with `?`.
const REQUEST: &str = "?request";
const REPLY: &str = "?reply";

/// Maximum length of a rejection's text, in bytes; longer texts are cut.
pub const MAX_REJECTION: usize = 1024;

/// A service and its type. Servers and clients connect only if name, type name and hash are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceType {
    /// For example `/add_two_ints`; not empty, at most 247 bytes.
    pub service: String,
    /// For example `roscpp_tutorials/TwoInts`; at most [`MAX_NAME`](crate::MAX_NAME) bytes.
    pub type_name: String,
    /// The MD5 sum of the service, as ROS 1 computes it.
    pub type_hash: [u8; 16],
    /// The ROS version of the type. With a common sum, clients and servers of ROS 1 and ROS 2 connect: their
    /// requests and replies then have the same bytes.
    pub flavour: Flavour,
    /// The full text of the definition, for tools; not compared. At most
    /// [`MAX_DEFINITION`](crate::MAX_DEFINITION) bytes.
    pub definition: Arc<str>,
}

impl ServiceType {
    fn topic(&self, suffix: &str) -> TopicType {
        TopicType {
            // Leave an empty name empty, so that it is refused.
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

/// A fresh pair of identities: the publisher's and the subscriber's.
fn pair() -> (u64, u64) {
    // Never 0, which means no endpoint.
    let publisher = (sys::unique_id() & !1).max(2);
    (publisher, partner(publisher))
}

/// Returns the other identity of a pair.
fn partner(id: u64) -> u64 {
    id ^ 1
}
