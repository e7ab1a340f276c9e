//! What a publisher has done and what it holds.

use crate::losses::Losses;
use stats::Drops;

/// What a publisher has done and what it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublisherStats {
    /// Messages published.
    pub published: u64,
    /// Loans refused because memory was short.
    pub refused: u64,
    /// Bytes of shared memory reserved, against [`PublisherOptions::memory_limit`](crate::PublisherOptions::memory_limit).
    pub memory_reserved: u64,
    /// Of these, bytes in loaned, queued or held blocks.
    pub memory_used: u64,
    /// Of the reserved bytes, those in retired segments that subscribers still map.
    pub memory_pinned: u64,
    /// Segments, retired ones included.
    pub segments: usize,
    /// Each connected subscriber.
    pub subscribers: Vec<SubscriberPeer>,
    /// Losses of all subscribers, departed ones included.
    pub drops: Drops,
}

/// A connected subscriber, as the publisher sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriberPeer {
    /// Its identity.
    pub id: u64,
    /// Its process (0 if it lives in another PID namespace).
    pub pid: i32,
    /// Its user.
    pub uid: u32,
    /// Messages that wait in its queue.
    pub queued: usize,
    /// Messages that it has taken and not yet released.
    pub held: usize,
    /// Most messages that its queue takes.
    pub depth: usize,
    /// Bytes queued and held.
    pub bytes: u64,
    /// Most bytes that may be queued and held.
    pub quota: u64,
    /// Whether it has said that it takes.
    pub ready: bool,
    /// Whether it has said that it takes no more.
    pub closing: bool,
    /// What it lost.
    pub drops: Drops,
}

/// What became of a published message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// Its sequence number, from 1 up, per publisher.
    pub sequence: u64,
    /// In how many subscribers' queues it stands.
    pub queued_to: usize,
    /// What was lost by this call: older messages that made room, and copies that were not queued.
    pub dropped: Losses,
}
