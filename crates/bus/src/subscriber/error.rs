//! Why nothing could be taken.

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
