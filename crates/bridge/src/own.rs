//! A bridge's own publishers on the bus.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long a publisher that ended may still be named by the bus.
const REMEMBERED: Duration = Duration::from_secs(10);

/// The identities of the bus's publishers that are a bridge's, and when they ended.
#[derive(Debug, Default)]
pub struct Own(BTreeMap<u64, Option<Instant>>);

impl Own {
    /// A publisher begins.
    pub fn begins(&mut self, publisher: u64) {
        self.0.insert(publisher, None);
    }

    /// A publisher ends. Answers of the bus may still name it for a while.
    pub fn ends(&mut self, publisher: u64, now: Instant) {
        self.0
            .retain(|_, ended| ended.is_none_or(|at| now.duration_since(at) < REMEMBERED));
        self.0.insert(publisher, Some(now));
    }

    /// Whether a publisher is, or was a moment ago, the bridge's own.
    pub fn has(&self, publisher: u64) -> bool {
        self.0.contains_key(&publisher)
    }
}
