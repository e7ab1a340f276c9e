//! Limits of what a client can make the server hold.

use std::time::Duration;

/// Open connections of all clients.
pub(crate) const CONNECTIONS: usize = 64;
/// Connections that speak WebSocket.
pub(crate) const CLIENTS: usize = 16;
/// Time from the start of a connection to the end of its first request's head.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(5);
/// Length of a request's head in bytes.
pub(crate) const HEAD: usize = 16 << 10;
/// Length of a message of a client in bytes.
pub(crate) const MESSAGE: usize = 1 << 20;
/// Bytes that wait for one client, with the message that is being written.
pub(crate) const QUEUED: usize = 16 << 20;
/// Time for which a client may read nothing while something waits for it.
pub(crate) const STALLED: Duration = Duration::from_secs(30);

/// Limits of what clients can make the server hold; `docs/budgets.md` states the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Open connections.
    pub connections: usize,
    /// WebSocket clients among them.
    pub clients: usize,
    /// Time for the head of the first request.
    pub handshake: Duration,
    /// Bytes of a request's head.
    pub head: usize,
    /// Bytes of one message of a client, all fragments together.
    pub message: usize,
    /// Bytes that wait for one client, with the message that is being written.
    pub queued: usize,
    /// Time for which a client may read nothing while something waits for it; then it is disconnected.
    pub stalled: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: CONNECTIONS,
            clients: CLIENTS,
            handshake: HANDSHAKE,
            head: HEAD,
            message: MESSAGE,
            queued: QUEUED,
            stalled: STALLED,
        }
    }
}
