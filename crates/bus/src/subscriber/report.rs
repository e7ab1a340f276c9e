//! Counters of received and lost messages of a subscriber.

use stats::Drops;

/// Counters of received and lost messages of a subscriber.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriberStats {
    /// Messages taken.
    pub received: u64,
    /// Messages taken and not yet dropped.
    pub held: usize,
    /// Losses as the publishers count them, including departed ones.
    pub drops: Drops,
    /// All connected publishers.
    pub publishers: Vec<PublisherPeer>,
}

/// A connected publisher, as the subscriber sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublisherPeer {
    /// Its identity.
    pub id: u64,
    /// Its process (0 if it lives in another PID namespace).
    pub pid: i32,
    /// Its user.
    pub uid: u32,
    /// Messages taken from it.
    pub received: u64,
    /// Messages from it that are held.
    pub held: usize,
    /// Messages that it dropped for this subscriber.
    pub drops: Drops,
}
