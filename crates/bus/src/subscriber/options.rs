//! How a subscriber queues and waits.

use crate::waitset::WaitSet;
use std::time::Duration;

/// How a subscriber queues and waits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SubscriberOptions {
    /// Messages that each publisher may queue. Default 16, at most 4,096.
    pub depth: u32,
    /// What a full queue loses. Default: [`QueuePolicy::DropOldest`].
    pub queue_policy: QueuePolicy,
    /// How many of the messages that publishers keep for late joiners are wanted, of each publisher; those that
    /// do not fit `depth` and the quota are left out, the oldest first. Default: all that are offered.
    pub history: u32,
    /// Messages of each publisher that may be held (taken and not dropped) at a time. Default 16, at most 4,096.
    pub max_held: u32,
    /// Bytes of each publisher's memory that may be queued and held. Default: what the publisher allows.
    pub max_held_bytes: u64,
    /// How long blocking takes and waits look for a message before they sleep. Meanwhile publishers make no system
    /// call for this subscriber, and the processor is busy. Default 0, at most an hour.
    pub spin: Duration,
    /// Wake through this set instead of a doorbell of its own.
    pub wait_set: Option<WaitSet>,
    /// Whether its descriptor also becomes readable when publishers come or go. Default: no.
    pub announces: bool,
    /// Whether the subscriber also takes messages of the type's namesake of the other ROS, and converts them. Default: `ropewalk`'s
    /// subscribers do, the bus's own do not.
    pub conversion: Option<bool>,
}

/// What a full queue loses. A queue is full when `depth` messages wait, when the subscriber's quota of bytes is
/// used up, or when more messages are held than it said it would hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueuePolicy {
    /// Its oldest messages make room: what is taken is as new as can be.
    #[default]
    DropOldest,
    /// The new message is not queued: what waits stays. When memory is short the publisher's own policy
    /// ([`MemoryPolicy`](crate::MemoryPolicy)) may still take what waits.
    DropNewest,
}

impl Default for SubscriberOptions {
    fn default() -> Self {
        SubscriberOptions {
            depth: 16,
            queue_policy: QueuePolicy::DropOldest,
            history: u32::MAX,
            max_held: 16,
            max_held_bytes: u64::MAX,
            spin: Duration::ZERO,
            wait_set: None,
            announces: false,
            conversion: None,
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

    /// Sets what a full queue loses.
    #[must_use]
    pub fn with_queue_policy(mut self, policy: QueuePolicy) -> Self {
        self.queue_policy = policy;
        self
    }

    /// Sets how many kept messages are wanted on joining; 0 for none.
    #[must_use]
    pub fn with_history(mut self, messages: u32) -> Self {
        self.history = messages;
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

    /// Sets how long blocking takes and waits spin before they sleep.
    ///
    /// While one spins, and after one that found a message by spinning, the descriptor is silent: whoever also polls
    /// [`Subscriber::as_fd`](crate::Subscriber) calls [`Subscriber::take`](crate::Subscriber::take) until it finds
    /// nothing before polling.
    #[must_use]
    pub fn with_spin(mut self, spin: Duration) -> Self {
        self.spin = spin;
        self
    }

    /// Makes the descriptor readable when publishers connect or disconnect, too. A poller then takes until the queue is empty, and reads
    /// the publishers from [`SubscriberStats`](crate::SubscriberStats).
    #[must_use]
    pub fn with_announcements(mut self) -> Self {
        self.announces = true;
        self
    }

    /// Sets whether messages of the type's namesake of the other ROS are taken, too
    /// ([`Message::ros`](crate::Message::ros) says which they are of).
    #[must_use]
    pub fn with_conversion(mut self, converts: bool) -> Self {
        self.conversion = Some(converts);
        self
    }

    /// Wakes through `set`.
    #[must_use]
    pub fn with_wait_set(mut self, set: &WaitSet) -> Self {
        self.wait_set = Some(set.clone());
        self
    }
}
