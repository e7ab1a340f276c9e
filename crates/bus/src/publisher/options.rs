//! What a publisher may use.

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
