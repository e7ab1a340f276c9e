//! What the driver of calls has to do, and the contents that pass through.

use super::failure::Failed;
use super::found::Of;
use super::header::Header;
use proto::PeerId;
use stats::Time;
use std::time::Duration;

/// Identifies a service that peers serve, or that this host serves for one peer. Never reused.
pub(crate) type EndpointId = u64;

/// Identifies a peer's request at the server of this host. Never reused.
pub(crate) type Ticket = u64;

/// A request or a reply from the radio, without its header.
pub(crate) trait Content {
    /// The control part.
    fn control(&mut self) -> &[u8];
}

/// Something for the driver to do. `C` is a received content, `K` a caller of this host.
#[derive(Debug)]
pub(crate) enum Event<C, K> {
    /// A peer's service can be called from here.
    Up(EndpointId),
    /// It cannot be called for now, or any more. These calls end with it, as if the server had died.
    Down(EndpointId, Vec<K>),
    /// A peer's request for this host's server, to be answered by its ticket.
    Request {
        endpoint: EndpointId,
        ticket: Ticket,
        peer: PeerId,
        content: C,
        /// How long the caller still waits.
        timeout: Duration,
    },
    /// This host's server is no longer needed for an endpoint, and its requests are void.
    Unused(EndpointId),
    /// The end of a call of this host.
    Ended(K, Result<C, Failed>),
}

/// A call by a caller of this host.
#[derive(Debug)]
pub(crate) struct Asked<K> {
    pub(crate) endpoint: EndpointId,
    pub(crate) caller: K,
    /// How long the caller waits.
    pub(crate) timeout: Duration,
}

/// The times of a message from the radio.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// When it was complete.
    pub(crate) at: Time,
    /// When it was sent, by its sender's clock.
    pub(crate) stamp: Time,
    /// When its caller stops waiting, as reported by relays.
    pub(crate) expires: Option<Time>,
}

/// A complete message of a service.
pub(super) struct Arrived<C> {
    pub(super) of: Of,
    /// For replies: the endpoint whose calls it may answer.
    pub(super) endpoint: EndpointId,
    pub(super) header: Header,
    pub(super) content: C,
    /// Its length, with the header.
    pub(super) bytes: u64,
    pub(super) times: Times,
}
