//! Why nothing could be taken.

/// Why nothing could be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TakeError {
    /// Messages are queued, but the limit of held messages is reached.
    #[error("{held} messages are held, which is the limit: drop one, or raise max_held")]
    HoldLimit {
        /// Messages held.
        held: usize,
    },
    /// Waiting failed.
    #[error("cannot wait: {source}")]
    System {
        /// The system error.
        source: std::io::Error,
    },
    /// The process was forked after the subscriber was created.
    #[error("this subscriber belongs to the parent process: create a new one after fork")]
    Forked,
}
