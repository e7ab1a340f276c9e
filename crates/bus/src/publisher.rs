//! The sending end of a topic.

use crate::loan::{Loan, LoanError};
use crate::losses::Losses;
use crate::topic::{Refusal, TopicType};
use stats::{Drops, Time};
use std::time::Duration;

/// What a publisher may use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublisherOptions {
    /// Most bytes of shared memory that it reserves. Default 256 MiB. Reserved only as needed.
    pub memory_limit: u64,
    /// Most bytes that one subscriber may keep from reuse, queued and held together; one message is always let
    /// through when it has none. Default: half of `memory_limit`. A subscriber may ask for less.
    pub subscriber_quota: Option<u64>,
    /// Most subscribers at a time. Default 256.
    pub max_subscribers: usize,
}

impl Default for PublisherOptions {
    fn default() -> Self {
        PublisherOptions {
            memory_limit: 256 << 20,
            subscriber_quota: None,
            max_subscribers: 256,
        }
    }
}

impl PublisherOptions {
    /// Sets the most bytes of shared memory.
    #[must_use]
    pub fn with_memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// Sets the most bytes that one subscriber may keep from reuse.
    #[must_use]
    pub fn with_subscriber_quota(mut self, bytes: u64) -> Self {
        self.subscriber_quota = Some(bytes);
        self
    }
}

/// When and where a message came into being.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Nanoseconds of `CLOCK_REALTIME`; `None` takes the clock at the moment of publishing.
    pub time: Option<Time>,
    /// Where the message came from first; `None` is this publisher. A link republishes what it received with
    /// the original origin, and so recognizes its own echo.
    pub origin: Option<u64>,
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

/// The sending end of a topic. It owns the memory that its messages stand in.
///
/// All methods may be called from any thread. Dropping it lets connected subscribers take what is queued.
#[derive(Debug)]
pub struct Publisher {}

impl Publisher {
    /// Reserves a block with a control part of `control_len` bytes and one data part per entry of `part_lens`
    /// (at most [`MAX_PARTS`](crate::MAX_PARTS)), each aligned to 64 bytes.
    ///
    /// The pages exist when it returns: writing them cannot fail. If memory is short, the queued messages of
    /// the largest consumer are dropped, oldest first; then it fails. Usually takes well under a microsecond;
    /// makes system calls only when memory must grow. The content is undefined (bytes of older messages).
    pub fn loan(&self, control_len: usize, part_lens: &[usize]) -> Result<Loan, LoanError> {
        let _ = (control_len, part_lens);
        todo!()
    }

    /// Queues the message to every connected subscriber and wakes those that sleep. Never blocks and never
    /// waits for the housekeeping thread.
    pub fn publish(&self, loan: Loan, stamp: Stamp) -> Result<Published, PublishError> {
        let _ = (loan, stamp);
        todo!()
    }

    /// The topic and its type.
    pub fn topic(&self) -> &TopicType {
        todo!()
    }

    /// Unique among all endpoints of the bus; the origin of its messages unless another is given.
    pub fn id(&self) -> u64 {
        todo!()
    }

    /// How many subscribers are connected.
    pub fn subscriber_count(&self) -> usize {
        todo!()
    }

    /// Blocks until at least `n` subscribers are connected; false if `timeout` passed first.
    pub fn wait_for_subscribers(&self, n: usize, timeout: Duration) -> bool {
        let _ = (n, timeout);
        todo!()
    }

    /// What it has done and what it holds.
    pub fn stats(&self) -> PublisherStats {
        todo!()
    }

    /// The last 16 peers that did not connect, and why.
    pub fn refusals(&self) -> Vec<Refusal> {
        todo!()
    }
}

/// What a publisher has done and what it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublisherStats {
    /// Messages published.
    pub published: u64,
    /// Bytes of shared memory reserved, against [`PublisherOptions::memory_limit`].
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
    /// Bytes queued and held.
    pub bytes: u64,
    /// What it lost.
    pub drops: Drops,
}

/// Why a message was not published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The loan is another publisher's.
    #[error("the loan belongs to another publisher")]
    ForeignLoan,
    /// The process was forked after the publisher was made.
    #[error("this publisher belongs to the parent process: make a new one after fork")]
    Forked,
}

/// Why a publisher or a subscriber cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The topic's or the type's name is empty or too long.
    #[error("the {what} has {len} bytes: it must have 1 to {max}")]
    Name {
        /// Which name.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The longest allowed.
        max: usize,
    },
    /// An option is out of its range.
    #[error("{what} is {value}: it must be from {min} to {max}")]
    Option {
        /// Which option.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The least allowed.
        min: u64,
        /// The most allowed.
        max: u64,
    },
    /// A system call failed.
    #[error("cannot make the endpoint ({what}): {source}")]
    System {
        /// What failed.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// The process was forked after the bus was opened.
    #[error("this bus belongs to the parent process: open a new one after fork")]
    Forked,
}
