//! The receiving end of a topic.

use crate::message::Message;
use crate::topic::{Refusal, TopicType};
use crate::waitset::WaitSet;
use stats::Drops;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

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

/// The receiving end of a topic.
///
/// All methods may be called from any thread.
#[derive(Debug)]
pub struct Subscriber {}

impl Subscriber {
    /// Takes a message if one is queued: the oldest of all publishers, by the moment of queueing. Never blocks.
    ///
    /// When it finds nothing and the subscriber has a doorbell of its own, the descriptor stops being readable
    /// until something comes. Readiness is level-triggered: a loop that polls [`Subscriber::as_fd`] and takes
    /// one message each time misses nothing. With a [`WaitSet`] see [`WaitSet::rearm`].
    pub fn take(&self) -> Result<Option<Message>, TakeError> {
        todo!()
    }

    /// As [`Subscriber::take`], but finding nothing leaves the doorbell as it is: for callers that spin, so that
    /// publishers need not ring. Before sleeping on the descriptor call [`Subscriber::take`].
    pub fn take_busy(&self) -> Result<Option<Message>, TakeError> {
        todo!()
    }

    /// Takes a message, waiting for one at most `timeout`. Interrupted waits go on.
    pub fn take_timeout(&self, timeout: Duration) -> Result<Option<Message>, TakeError> {
        let _ = timeout;
        todo!()
    }

    /// Waits until a message can be taken; false if `timeout` passed first.
    pub fn wait(&self, timeout: Duration) -> Result<bool, TakeError> {
        let _ = timeout;
        todo!()
    }

    /// The topic and its type.
    pub fn topic(&self) -> &TopicType {
        todo!()
    }

    /// Unique among all endpoints of the bus.
    pub fn id(&self) -> u64 {
        todo!()
    }

    /// How many publishers are connected.
    pub fn publisher_count(&self) -> usize {
        todo!()
    }

    /// Blocks until at least `n` publishers are connected; false if `timeout` passed first.
    pub fn wait_for_publishers(&self, n: usize, timeout: Duration) -> bool {
        let _ = (n, timeout);
        todo!()
    }

    /// What it has received and lost.
    pub fn stats(&self) -> SubscriberStats {
        todo!()
    }

    /// The last 16 peers that did not connect, and why.
    pub fn refusals(&self) -> Vec<Refusal> {
        todo!()
    }
}

impl AsFd for Subscriber {
    /// Readable when something can be taken: for select, poll, epoll. Do not read from it.
    fn as_fd(&self) -> BorrowedFd<'_> {
        todo!()
    }
}

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

/// Why nothing could be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TakeError {
    /// Messages are queued, but as many are held as may be.
    #[error("{held} messages are held, the most allowed: drop one, or raise max_held")]
    HoldLimit {
        /// Messages held.
        held: usize,
    },
    /// Waiting failed.
    #[error("cannot wait: {source}")]
    System {
        /// What the system said.
        source: std::io::Error,
    },
    /// The process was forked after the subscriber was made.
    #[error("this subscriber belongs to the parent process: make a new one after fork")]
    Forked,
}
