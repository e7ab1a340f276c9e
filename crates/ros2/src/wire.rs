//! The interface of a bridge to a middleware of ROS 2, in ROS 2's terms: the endpoints of others, endpoints of its own,
//! and their events.

use bridge::nodes::{Kind, Qos};
use std::collections::BTreeMap;
use std::time::Duration;

/// An endpoint or a participant of the middleware.
pub(crate) type Id = [u8; 16];

/// An endpoint of this bridge. For a service, it stands for both requests and responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Port(pub(crate) u64);

/// A call that was sent.
pub(crate) type Call = i64;

/// The client that waits for a response, and its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Caller {
    /// The endpoint that sent the request.
    pub(crate) sender: Id,
    /// Destination of the response; equal to the sender if the request names none.
    pub(crate) reader: Id,
    /// The client's number of the request.
    pub(crate) number: i64,
}

/// Name and type of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    /// Full name in ROS of a topic or service.
    pub(crate) name: String,
    /// Its type in ROS 2's notation.
    pub(crate) type_name: String,
    /// Hash of a topic's type, or hashes of a service's request and response.
    pub(crate) hashes: [Option<[u8; 32]>; 2],
    /// Hash of the whole service, for an endpoint of this bridge.
    pub(crate) service: Option<[u8; 32]>,
    /// Priority that its messages request, 0 to 127, for an endpoint of this bridge.
    pub(crate) priority: Option<u8>,
}

/// An endpoint of another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) id: Id,
    pub(crate) kind: Kind,
    pub(crate) what: Named,
    pub(crate) qos: Qos,
    /// Its participant.
    pub(crate) participant: Id,
}

/// A node of another participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeenNode {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) endpoints: Vec<Id>,
}

/// Another participant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeenParticipant {
    pub(crate) enclave: String,
    pub(crate) nodes: Vec<SeenNode>,
    /// For a Ropewalk bridge.
    pub(crate) bridge: Option<Mark>,
}

/// How a Ropewalk bridge identifies itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Marks the messages that it brings onto a bus, so that no other bridge brings them back.
    pub(crate) graph: bridge::Graph,
    /// Whether it also carries what other bridges send.
    pub(crate) from_bridges: bool,
}

/// Whether an endpoint of a participant counts for this bridge, which carries what other bridges send if
/// `from_bridges`. An endpoint that receives counts if its bridge does.
pub(crate) fn counts(kind: Kind, of: Option<Mark>, from_bridges: bool) -> bool {
    match (of, kind) {
        (None, _) => true,
        (Some(_), Kind::Publisher | Kind::Service) => from_bridges,
        (Some(mark), Kind::Subscription | Kind::Client) => mark.from_bridges,
    }
}

/// Everything that others have at a given time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) endpoints: BTreeMap<Id, Seen>,
    pub(crate) participants: BTreeMap<Id, SeenParticipant>,
}

impl Picture {
    /// Whether an endpoint counts for this bridge: see [`counts`].
    pub(crate) fn counts(&self, seen: &Seen, from_bridges: bool) -> bool {
        let participant = self.participants.get(&seen.participant);
        counts(seen.kind, participant.and_then(|p| p.bridge), from_bridges)
    }
}

/// A node to show to others, with endpoints of this bridge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shown {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) ports: Vec<Port>,
}

/// An event. Payloads are CDR with its encapsulation header of 4 bytes.
#[derive(Debug)]
pub(crate) enum Event {
    /// A message on a topic.
    Message {
        port: Port,
        from: Id,
        payload: Vec<u8>,
        /// When it was written, in nanoseconds since the Unix epoch.
        time: Option<u64>,
    },
    /// A request to a service of this bridge.
    Request {
        port: Port,
        caller: Caller,
        payload: Vec<u8>,
    },
    /// The response to a call of this bridge.
    Response {
        port: Port,
        call: Call,
        payload: Vec<u8>,
    },
    /// Endpoints of others have changed.
    Changed,
}

/// Why the middleware failed to do something.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WireError(pub(crate) String);

/// A middleware of ROS 2.
pub(crate) trait Wire: Send + Sync + std::fmt::Debug {
    /// Returns what others have.
    fn picture(&self) -> Picture;

    /// Creates an endpoint of this kind.
    ///
    /// # Errors
    /// If its name or type is not valid in this middleware.
    fn open(&self, kind: Kind, what: &Named, qos: &Qos) -> Result<Port, WireError>;

    /// Ends an endpoint.
    fn close(&self, port: Port);

    /// Number of endpoints of others that an endpoint is connected to; for a service, those that both requests and
    /// responses reach.
    fn connected(&self, port: Port) -> usize;

    /// Publishes a message. Does not block.
    ///
    /// # Errors
    /// If it is too long, or the endpoint has ended.
    fn write(&self, port: Port, payload: Vec<u8>, time: u64) -> Result<(), WireError>;

    /// Sends a request with a timeout for its response.
    ///
    /// # Errors
    /// As [`Wire::write`].
    fn call(&self, port: Port, payload: Vec<u8>, within: Duration) -> Result<Call, WireError>;

    /// Sends a response.
    ///
    /// # Errors
    /// As [`Wire::write`].
    fn respond(&self, port: Port, to: Caller, payload: Vec<u8>) -> Result<(), WireError>;

    /// Gives up a request without a response.
    fn abandon(&self, _port: Port, _caller: Caller) {}

    /// Returns the reason why others cannot be discovered, if there is one.
    fn problem(&self) -> Option<String> {
        None
    }

    /// Shows exactly these nodes to others.
    fn show(&self, nodes: Vec<Shown>);

    /// Ends every endpoint and announces it, on behalf of all holders of this object. No further events follow.
    fn leave(&self) {}

    /// Returns the next event; waits for it at most `timeout`.
    fn next(&self, timeout: Duration) -> Option<Event>;

    /// Returns counts of what was refused, by reason.
    fn refused(&self) -> BTreeMap<&'static str, u64>;
}
