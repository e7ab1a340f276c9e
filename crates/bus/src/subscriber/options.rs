//! How a subscriber queues and waits.

use crate::waitset::WaitSet;

/// How a subscriber queues and waits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SubscriberOptions {
    /// Messages that each publisher may queue; then its oldest makes room. Default 16, at most 4,096.
    pub depth: u32,
    /// Messages of each publisher that may be held (taken and not dropped) at a time. Default 16, at most 4,096.
    pub max_held: u32,
    /// Bytes of each publisher's memory that may be queued and held. Default: what the publisher allows.
    pub max_held_bytes: u64,
    /// Wake through this set instead of a doorbell of its own.
    pub wait_set: Option<WaitSet>,
}

impl Default for SubscriberOptions {
    fn default() -> Self {
        SubscriberOptions {
            depth: 16,
            max_held: 16,
            max_held_bytes: u64::MAX,
            wait_set: None,
        }
    }
}

impl SubscriberOptions {
    /// Sets the depth of the queue.
    #[must_use]
    pub fn with_depth(mut self, depth: u32) -> Self {
        self.depth = depth;
        self
    }

    /// Sets how many messages may be held.
    #[must_use]
    pub fn with_max_held(mut self, max_held: u32) -> Self {
        self.max_held = max_held;
        self
    }

    /// Sets how many bytes may be queued and held.
    #[must_use]
    pub fn with_max_held_bytes(mut self, bytes: u64) -> Self {
        self.max_held_bytes = bytes;
        self
    }

    /// Wakes through `set`.
    #[must_use]
    pub fn with_wait_set(mut self, set: &WaitSet) -> Self {
        self.wait_set = Some(set.clone());
        self
    }
}
