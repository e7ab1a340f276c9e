//! What a subscriber has received and lost.

use stats::Drops;

/// What a subscriber has received and lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriberStats {
    /// Messages taken.
    pub received: u64,
    /// Messages taken and not yet dropped.
    pub held: usize,
    /// What was lost, as the publishers count it, departed ones included.
    pub drops: Drops,
    /// Each connected publisher.
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
    /// Messages of it that are held.
    pub held: usize,
    /// What it dropped for this subscriber.
    pub drops: Drops,
}
