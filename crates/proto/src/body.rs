//! The two interfaces of the engine: the source and the destination of bytes.

use crate::announcement::Announcement;
use crate::arriving::Arriving;
use crate::config::{PeerId, RemoteTopic, TopicId};
use crate::geometry::Geometry;
use crate::route::Route;
use stats::{DropReason, Time};

/// A message that can be sent: its bytes stay where they are until a fragment with them is due. Latched messages are
/// cloned, so a clone should be another handle to the same bytes.
pub trait Body: Clone {
    /// Lengths of its parts. Must not change.
    fn geometry(&self) -> Geometry;

    /// Copies `to.len()` bytes from flat offset `offset` straight into the datagram. The engine never asks beyond the
    /// geometry's total length.
    fn copy_at(&self, offset: u32, to: &mut [u8]);

    /// Its progress, if it is sent while it is still arriving ([`crate::Taken::arriving`]). The engine then asks only
    /// for bytes that have arrived.
    fn arriving(&self) -> Option<&Arriving> {
        None
    }
}

/// Plain bytes, all of them in the control part.
impl Body for Vec<u8> {
    fn geometry(&self) -> Geometry {
        // A body longer than 4 GiB sends nothing rather than something wrong.
        Geometry::new(u32::try_from(self.len()).unwrap_or(0), &[])
            .unwrap_or_else(|_| unreachable!("no parts"))
    }

    fn copy_at(&self, offset: u32, to: &mut [u8]) {
        let at = offset as usize;
        to.copy_from_slice(&self[at..at + to.len()]);
    }
}

/// A message to send, with the metadata that the receiver needs.
#[derive(Clone, Debug)]
pub struct Message<B> {
    /// Its bytes.
    pub body: B,
    /// When its source created it, by the source's clock. Carried unchanged.
    pub stamp: Time,
    /// The publisher that created it, carried unchanged; 0 if that does not matter (and costs no bytes).
    pub origin: u64,
    /// Its route beyond the peer, where its topic may go over relays.
    pub route: Option<Route>,
    /// When it expires, by this host's clock, if its topic is reliable; `None`: by the topic's expiry.
    pub expires: Option<Time>,
}

impl<B> Message<B> {
    /// A message without an origin.
    pub fn new(body: B, stamp: Time) -> Self {
        Message {
            body,
            stamp,
            origin: 0,
            route: None,
            expires: None,
        }
    }
}

/// A message whose first fragment (any of them) has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Incoming {
    /// The peer that sent it.
    pub peer: PeerId,
    /// The peer's number for the topic, as in [`Sink::topic_announced`].
    pub topic: RemoteTopic,
    /// Its number within the topic and the session, without gaps at the sender.
    pub seq: u64,
    /// The source's stamp, by the source's clock.
    pub stamp: Time,
    /// The publisher that created it.
    pub origin: u64,
    /// Its route from here, as its first fragment states it; only for topics with [`crate::Announcement::via`].
    pub route: Option<Route>,
    /// When it expires, by this host's clock, if its sender stated that; earlier by a round trip, to be on the safe
    /// side.
    pub expires: Option<Time>,
    /// Lengths of its parts; the total is within [`crate::ReceiveLimits::max_message`].
    pub geometry: Geometry,
}

/// The sink's identifier of memory that it loaned for one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u64);

/// Whether the receiver wants an announced topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The receiver takes its messages.
    Accept,
    /// The peer must not send it: it is not configured here, or its type differs.
    Refuse,
}

/// Why a peer is no longer up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Down {
    /// Nothing was received for [`crate::RadioConfig::lost_after`]. It may come back with the same session.
    Lost,
    /// It greeted with a new session: it has restarted, and announces its topics again.
    Restarted,
    /// [`crate::Radio::remove_peer`] was called.
    Removed,
}

/// A peer's description of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerInfo {
    /// Its host id.
    pub host: u64,
    /// Its host name, at most 64 B.
    pub name: String,
    /// Identifies its run.
    pub session: u32,
    /// Largest message that it accepts, in bytes.
    pub max_message: u32,
}

/// Destination of received messages: each is written straight into memory that the sink loans.
///
/// A message begins with its first fragment or, if it is longer than any that its topic has delivered, when a share of
/// it has arrived. Between `begin` and exactly one of `finish` or `abort`, `write` is called with each byte of the
/// message at most once, in any order. All methods are called from [`crate::Radio::handle`],
/// [`crate::Radio::handle_timeout`] or [`crate::Radio::remove_peer`], never concurrently; keep them short.
pub trait Sink {
    /// Loans memory for a message.
    ///
    /// # Errors
    /// The reason under which the message is counted as lost, usually [`DropReason::ReceiverMemory`]. The sink is not
    /// asked again for that message.
    fn begin(&mut self, message: &Incoming) -> Result<Slot, DropReason>;

    /// Writes `bytes` at flat offset `offset`, always within the geometry.
    fn write(&mut self, slot: Slot, offset: u32, bytes: &[u8]);

    /// More of an incomplete message has arrived: its first `ready` bytes, and maybe some beyond.
    fn grown(&mut self, slot: Slot, ready: u32) {
        let _ = (slot, ready);
    }

    /// Whether [`Sink::finish`] would hand this message on without losing this message or another. While it would not,
    /// a message of a reliable topic waits, and its sender with it; the sink is asked again every few milliseconds.
    fn takes(&mut self, slot: Slot) -> bool {
        let _ = slot;
        true
    }

    /// All bytes are there: hand the message on.
    ///
    /// # Errors
    /// The reason under which the message is counted as lost if it cannot be handed on.
    fn finish(&mut self, slot: Slot) -> Result<(), DropReason>;

    /// The message will not be completed: release its memory.
    fn abort(&mut self, slot: Slot, reason: DropReason);

    /// A peer announced a topic, or announced it again (after a change or a restart).
    fn topic_announced(&mut self, peer: PeerId, topic: RemoteTopic, announcement: &Announcement) -> Verdict {
        let _ = (peer, topic, announcement);
        Verdict::Accept
    }

    /// A peer withdrew a topic: it sends nothing more of it unless it announces the topic again.
    fn topic_withdrawn(&mut self, peer: PeerId, topic: RemoteTopic) {
        let _ = (peer, topic);
    }

    /// A peer currently needs no messages of this topic of this host for the hosts in `to`.
    fn topic_unwanted(&mut self, peer: PeerId, topic: TopicId, to: u64) {
        let _ = (peer, topic, to);
    }

    /// The peer and this host hear each other.
    fn peer_up(&mut self, peer: PeerId, info: &PeerInfo) {
        let _ = (peer, info);
    }

    /// A peer that was up is gone, or a lost peer has restarted.
    fn peer_down(&mut self, peer: PeerId, why: Down) {
        let _ = (peer, why);
    }
}
