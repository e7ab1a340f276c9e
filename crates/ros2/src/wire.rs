//! What a bridge needs of a middleware of ROS 2, in ROS 2's words: what others have there, endpoints of its own, and what comes by them.

use bridge::nodes::{Kind, Qos};
use std::collections::BTreeMap;
use std::time::Duration;

/// An endpoint or a participant of the middleware.
pub(crate) type Id = [u8; 16];

/// An endpoint of this bridge: of a service it stands for the requests and the responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Port(pub(crate) u64);

/// A call that was sent.
pub(crate) type Call = i64;

/// Who waits for a response, and to which request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Caller {
    /// The endpoint that sent the request.
    pub(crate) sender: Id,
    /// Where the response goes to; the sender, if it does not say.
    pub(crate) reader: Id,
    /// The request's number there.
    pub(crate) number: i64,
}

/// What an endpoint is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    /// The full name in ROS of a topic or service.
    pub(crate) name: String,
    /// Its type as ROS 2 writes it.
    pub(crate) type_name: String,
    /// The hash of a topic's type; of a service's request and response.
    pub(crate) hashes: [Option<[u8; 32]>; 2],
    /// The hash of a service as a whole, of an endpoint of this bridge.
    pub(crate) service: Option<[u8; 32]>,
    /// The priority that its messages ask for, 0 to 127, of an endpoint of this bridge.
    pub(crate) priority: Option<u8>,
}

/// An endpoint of another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) id: Id,
    pub(crate) kind: Kind,
    pub(crate) what: Named,
    pub(crate) qos: Qos,
    /// Whose it is.
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
    /// Of a bridge like this one: what marks the messages that it brings onto a bus, so that no other brings them back.
    pub(crate) bridge: Option<bridge::Graph>,
}

/// All that others have at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) endpoints: BTreeMap<Id, Seen>,
    pub(crate) participants: BTreeMap<Id, SeenParticipant>,
}

/// A node that is shown to others, with endpoints of this bridge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shown {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) ports: Vec<Port>,
}

/// What comes. Payloads are CDR with its encapsulation header of 4 bytes.
#[derive(Debug)]
pub(crate) enum Event {
    /// A message of a topic.
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
    /// What others have is another.
    Changed,
}

/// Why the middleware does not do something.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WireError(pub(crate) String);

/// A middleware of ROS 2.
pub(crate) trait Wire: Send + Sync + std::fmt::Debug {
    /// What others have.
    fn picture(&self) -> Picture;

    /// Makes an endpoint of a kind.
    ///
    /// # Errors
    /// If its name or type is none there.
    fn open(&self, kind: Kind, what: &Named, qos: &Qos) -> Result<Port, WireError>;

    /// Ends an endpoint.
    fn close(&self, port: Port);

    /// How many endpoints of others an endpoint is connected to; of a service those that both requests and responses reach.
    fn connected(&self, port: Port) -> usize;

    /// Publishes a message. Does not block.
    ///
    /// # Errors
    /// If it is too long, or the endpoint has ended.
    fn write(&self, port: Port, payload: Vec<u8>, time: u64) -> Result<(), WireError>;

    /// Sends a request, whose response is waited for this long.
    ///
    /// # Errors
    /// As [`Wire::write`].
    fn call(&self, port: Port, payload: Vec<u8>, within: Duration) -> Result<Call, WireError>;

    /// Sends a response.
    ///
    /// # Errors
    /// As [`Wire::write`].
    fn respond(&self, port: Port, to: Caller, payload: Vec<u8>) -> Result<(), WireError>;

    /// A request gets no response.
    fn abandon(&self, _port: Port, _caller: Caller) {}

    /// What keeps others from being found, if something does.
    fn problem(&self) -> Option<String> {
        None
    }

    /// Shows these nodes to others, and no more.
    fn show(&self, nodes: Vec<Shown>);

    /// Ends every endpoint, and says so to others, for all that still hold this. Nothing comes any more.
    fn leave(&self) {}

    /// What comes next; waits at most this long.
    fn next(&self, timeout: Duration) -> Option<Event>;

    /// What was refused, by reason.
    fn refused(&self) -> BTreeMap<&'static str, u64>;
}
