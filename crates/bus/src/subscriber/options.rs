//! How a subscriber queues and waits.

use crate::waitset::WaitSet;
use std::time::Duration;

/// How a subscriber queues and waits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SubscriberOptions {
    /// Number of messages that each publisher may queue. Default: 16, at most 4,096.
    pub depth: u32,
    /// Which message a full queue loses. Default: [`QueuePolicy::DropOldest`].
    pub queue_policy: QueuePolicy,
    /// How many of the messages that each publisher keeps for late joiners are wanted. Those that do not fit
    /// `depth` and the quota are left out, oldest first. Default: all that are offered.
    pub history: u32,
    /// Number of messages of each publisher that may be held (taken and not dropped) at a time. Default: 16,
    /// at most 4,096.
    pub max_held: u32,
    /// Bytes of each publisher's memory that may be queued and held. Default: what the publisher allows.
    pub max_held_bytes: u64,
    /// How long blocking takes and waits spin before they sleep. During that time publishers make no system
    /// call for this subscriber, and the processor is busy. Default: 0, at most an hour.
    pub spin: Duration,
    /// Whether it also wakes when a publisher begins to fill a message. Default: no.
    pub early_wake: bool,
    /// Wake through this set instead of the subscriber's own doorbell.
    pub wait_set: Option<WaitSet>,
    /// Whether its descriptor also becomes readable when publishers connect or disconnect. Default: no.
    pub announces: bool,
    /// Whether the subscriber also takes messages of the same type from the other ROS version, and converts
    /// them. By default `ropewalk`'s subscribers do, and the bus's own do not.
    pub conversion: Option<bool>,
}

/// Which message a full queue loses. A queue is full when `depth` messages wait, when the subscriber's quota
/// of bytes is used up, or when more messages are held than the subscriber announced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueuePolicy {
    /// The oldest messages make room, so messages are as recent as possible.
    #[default]
    DropOldest,
    /// The new message is not queued, and waiting messages stay. If memory is short, the publisher's own
    /// policy ([`MemoryPolicy`](crate::MemoryPolicy)) may still drop waiting messages.
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
            early_wake: false,
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

    /// Sets which message a full queue loses.
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
    /// During a spin, and after one that found a message, the descriptor is silent. A caller that also polls
    /// [`Subscriber::as_fd`](crate::Subscriber) must call [`Subscriber::take`](crate::Subscriber::take) until
    /// it finds nothing before polling.
    #[must_use]
    pub fn with_spin(mut self, spin: Duration) -> Self {
        self.spin = spin;
        self
    }

    /// Sets whether it also wakes when a publisher loans a message, before the message is filled and published.
    ///
    /// After some milliseconds of sleep, waking and everything that follows is slow, because none of the code is in the
    /// processor's caches. With this option, the code has run once by the time the message arrives. The cost is a
    /// second wake-up for each message, unless the publisher published within the last millisecond. The descriptor
    /// becomes readable for the early wake-up, too: a caller that polls it then finds nothing to take, and polls again
    /// after [`Subscriber::rearm`](crate::Subscriber::rearm) or [`Subscriber::take`](crate::Subscriber::take).
    #[must_use]
    pub fn with_early_wake(mut self, wakes: bool) -> Self {
        self.early_wake = wakes;
        self
    }

    /// Makes the descriptor also readable when publishers connect or disconnect. A poller then takes until
    /// the queue is empty, and reads the publishers from [`SubscriberStats`](crate::SubscriberStats).
    #[must_use]
    pub fn with_announcements(mut self) -> Self {
        self.announces = true;
        self
    }

    /// Sets whether messages of the same type from the other ROS version are also taken
    /// ([`Message::ros`](crate::Message::ros) returns their version).
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
