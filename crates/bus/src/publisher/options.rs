//! Limits of a publisher, and what it does when they are reached.

use super::error::{CreateError, check_option};
use crate::ring::Geometry;
use crate::topic::{Offer, Reliability};
use std::fmt;
use std::time::Duration;

/// Limits and properties of a publisher.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublisherOptions {
    /// Maximum bytes of shared memory. Default: 256 MiB, reserved only as needed.
    pub memory_limit: u64,
    /// Maximum bytes that one subscriber may keep from reuse, queued and held together. A subscriber that has
    /// nothing always gets one message. Default: half of `memory_limit`, or all of it if the memory policy
    /// never drops messages ([`MemoryPolicy::WorstEffort`], [`MemoryPolicy::Block`]). A subscriber may ask
    /// for less.
    pub subscriber_quota: Option<u64>,
    /// Maximum number of subscribers at a time. Default: 256.
    pub max_subscribers: usize,
    /// What to do when a loan finds no memory. Default: [`MemoryPolicy::BestEffort`].
    pub memory_policy: MemoryPolicy,
    /// How many of the last messages are kept for late joiners; 1 is what ROS calls latching. They count
    /// against `memory_limit`, which must also fit one more message. Default: 0, at most 4,096.
    pub history: u32,
    /// The node that publishes, such as `/talker`, announced to peers ([`Offer`]). Default: empty, not
    /// announced.
    pub node: String,
    /// Whether lost messages are retransmitted, as information for bridges and recorders. Default: not
    /// announced.
    pub reliability: Option<Reliability>,
    /// How many messages are kept for a slow subscriber, as information for bridges and recorders: on the bus
    /// a subscriber chooses that itself. Default: 0, not announced.
    pub depth: u32,
}

/// What a publisher does when a loan finds no memory: the publication policies of TZC (section III-E).
///
/// Before any of them applies, the publisher gives up older history, but never its newest message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryPolicy {
    /// New messages matter more than old ones: queued messages of the largest consumer are dropped, oldest
    /// first, until the loan fits or nothing is queued.
    #[default]
    BestEffort,
    /// Queued and held messages are never dropped, neither for memory nor for a quota. The loan is refused
    /// instead, so subscribers see contiguous runs. A subscriber whose own quota is used up loses only the
    /// new message. The length of its queue, and what happens when it is full, remain the subscriber's
    /// choice.
    WorstEffort,
    /// At most this many messages, at least 1, are dropped for one loan; then it is refused.
    Medium(u32),
    /// The loan waits at most this long for subscribers to release memory; nothing is dropped. It waits once per stall:
    /// after a wait without success, loans are refused at once until one succeeds again. At most one hour.
    Block(Duration),
}

impl MemoryPolicy {
    /// How many queued messages one loan may drop.
    pub(crate) fn drops(self) -> u32 {
        match self {
            MemoryPolicy::BestEffort => u32::MAX,
            MemoryPolicy::Medium(n) => n,
            MemoryPolicy::WorstEffort | MemoryPolicy::Block(_) => 0,
        }
    }
}

impl fmt::Display for MemoryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryPolicy::BestEffort => f.write_str("best effort"),
            MemoryPolicy::WorstEffort => f.write_str("worst effort"),
            MemoryPolicy::Medium(n) => write!(f, "medium effort ({n})"),
            MemoryPolicy::Block(timeout) => write!(f, "block ({timeout:?})"),
        }
    }
}

impl Default for PublisherOptions {
    fn default() -> Self {
        PublisherOptions {
            memory_limit: 256 << 20,
            subscriber_quota: None,
            max_subscribers: 256,
            memory_policy: MemoryPolicy::BestEffort,
            history: 0,
            node: String::new(),
            reliability: None,
            depth: 0,
        }
    }
}

impl PublisherOptions {
    /// Sets the maximum bytes of shared memory.
    #[must_use]
    pub fn with_memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// Sets the maximum bytes that one subscriber may keep from reuse.
    #[must_use]
    pub fn with_subscriber_quota(mut self, bytes: u64) -> Self {
        self.subscriber_quota = Some(bytes);
        self
    }

    /// Sets what to do when a loan finds no memory.
    #[must_use]
    pub fn with_memory_policy(mut self, policy: MemoryPolicy) -> Self {
        self.memory_policy = policy;
        self
    }

    /// Sets how many of the last messages are kept for late joiners.
    #[must_use]
    pub fn with_history(mut self, messages: u32) -> Self {
        self.history = messages;
        self
    }

    /// Sets the node that publishes, such as `/talker`.
    #[must_use]
    pub fn with_node(mut self, node: impl Into<String>) -> Self {
        self.node = node.into();
        self
    }

    /// Sets whether lost messages are retransmitted, as announced to peers.
    #[must_use]
    pub fn with_reliability(mut self, reliability: Reliability) -> Self {
        self.reliability = Some(reliability);
        self
    }

    /// Sets how many messages are kept for a slow subscriber, as announced to peers.
    #[must_use]
    pub fn with_depth(mut self, depth: u32) -> Self {
        self.depth = depth;
        self
    }

    /// What is announced to peers that connect.
    pub(crate) fn offer(&self) -> Offer {
        Offer {
            node: self.node.clone(),
            history: self.history,
            reliability: self.reliability,
            depth: self.depth,
        }
    }

    pub(crate) fn check(&self) -> Result<(), CreateError> {
        self.offer().check()?;
        check_option("memory_limit", self.memory_limit, 4096, 1 << 46)?;
        check_option("max_subscribers", self.max_subscribers as u64, 1, 65_536)?;
        check_option("history", u64::from(self.history), 0, u64::from(Geometry::MAX))?;
        match self.memory_policy {
            MemoryPolicy::Medium(n) => {
                check_option("the medium policy's number", u64::from(n), 1, u64::from(u32::MAX))
            }
            MemoryPolicy::Block(timeout) => check_option(
                "the block policy's timeout in seconds",
                timeout.as_secs(),
                0,
                3600,
            ),
            MemoryPolicy::BestEffort | MemoryPolicy::WorstEffort => Ok(()),
        }
    }

    /// Maximum bytes that a subscriber asking for `wanted` may have queued and held.
    pub(crate) fn quota(&self, wanted: u64) -> u64 {
        let all = if self.memory_policy.drops() == 0 {
            self.memory_limit
        } else {
            self.memory_limit / 2
        };
        self.subscriber_quota.unwrap_or(all).min(wanted)
    }
}
