//! What moves a link's datagrams.

use std::os::fd::BorrowedFd;
use std::time::Duration;

/// A peer of a carrier: its index in the order in which the carrier was given its peers.
pub type PeerIndex = usize;

/// What became of a datagram handed to [`Carrier::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is on its way.
    Taken,
    /// The carrier is not ready; nothing was taken. Offer it again once [`Carrier::ready`].
    NotReady,
    /// This one could not be sent (no route, peer unreachable, too large for the path); the carrier goes on.
    Lost,
}

/// A datagram that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// From whom.
    pub peer: PeerIndex,
    /// Its length in bytes; its content is at the start of the caller's buffer.
    pub len: usize,
}

/// A carrier that cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CarrierError {
    /// The local address cannot be used.
    #[error("cannot bind {address}: {source}; choose a free address under `radio.bind`")]
    Bind {
        /// The address asked for.
        address: std::net::SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The socket failed for good.
    #[error("the carrier's socket failed while it was {doing}: {source}")]
    Socket {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Moves datagrams between this host and its peers.
///
/// The contract that keeps priorities whole: a carrier holds **at most one** datagram that the medium has
/// not taken yet, and [`Carrier::ready`] is true only while it would take exactly one more at once. Queues
/// inside a carrier's library are to be kept empty by not being ready. All calls return at once.
pub trait Carrier: Send {
    /// The largest datagram in bytes.
    fn max_datagram(&self) -> usize;

    /// Bytes that the carrier and the layers below it add to every datagram, up to and with IP.
    fn overhead(&self) -> usize;

    /// Whether exactly one more datagram would be taken now.
    fn ready(&mut self) -> bool;

    /// Takes one datagram for `peer`. `priority` (0–127) lets the carrier mark it for the network (DSCP).
    ///
    /// # Errors
    /// Only where the carrier cannot go on at all; a lost datagram is [`Sent::Lost`].
    fn send(&mut self, peer: PeerIndex, priority: u8, datagram: &[u8]) -> Result<Sent, CarrierError>;

    /// Copies the next datagram that came into `buffer`; `None` if there is none. Datagrams of strangers
    /// are dropped here and counted by [`Carrier::refused`].
    ///
    /// # Errors
    /// Only where the carrier cannot go on at all.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<Received>, CarrierError>;

    /// A descriptor that is readable when [`Carrier::receive`] has something.
    fn readable(&self) -> BorrowedFd<'_>;

    /// A descriptor to wait on for writability while [`Carrier::ready`] is false.
    fn writable(&self) -> BorrowedFd<'_>;

    /// Does the carrier's own timed work and says how soon it wants to be called again.
    fn service(&mut self) -> Option<Duration> {
        None
    }

    /// Datagrams dropped because they came from nobody this carrier knows, or were too large.
    fn refused(&self) -> u64;
}
