//! Counters and current state of a publisher.

use crate::losses::Losses;
use stats::Drops;

/// Counters and current state of a publisher.
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
    /// Reserved bytes in retired segments that subscribers still map.
    pub memory_pinned: u64,
    /// Number of segments, including retired ones.
    pub segments: usize,
    /// All connected subscribers.
    pub subscribers: Vec<SubscriberPeer>,
    /// Losses of all subscribers, including departed ones.
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
    /// Messages waiting in its queue.
    pub queued: usize,
    /// Messages that it has taken and not yet released.
    pub held: usize,
    /// Maximum number of messages in its queue.
    pub depth: usize,
    /// Bytes queued and held.
    pub bytes: u64,
    /// Maximum bytes that may be queued and held.
    pub quota: u64,
    /// Whether it reported that it takes messages.
    pub ready: bool,
    /// Whether it reported that it takes no further messages.
    pub closing: bool,
    /// What it lost.
    pub drops: Drops,
}

/// The result of publishing a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// Its sequence number, starting at 1, per publisher.
    pub sequence: u64,
    /// Number of subscribers that it was queued to.
    pub queued_to: usize,
    /// Messages lost by this call: older messages that made room, and copies that were not queued.
    pub dropped: Losses,
}
