//! A bridge's own publishers on the bus.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long the bus may still name a publisher after its end.
const REMEMBERED: Duration = Duration::from_secs(10);

/// The identities of a bridge's own publishers on the bus, and when they ended.
#[derive(Debug, Default)]
pub struct Own(BTreeMap<u64, Option<Instant>>);

impl Own {
    /// Adds a publisher.
    pub fn begins(&mut self, publisher: u64) {
        self.0.insert(publisher, None);
    }

    /// Notes the end of a publisher. Answers of the bus may still name it for a while.
    pub fn ends(&mut self, publisher: u64, now: Instant) {
        self.0
            .retain(|_, ended| ended.is_none_or(|at| now.duration_since(at) < REMEMBERED));
        self.0.insert(publisher, Some(now));
    }

    /// Returns whether a publisher is the bridge's own, or was a moment ago.
    pub fn has(&self, publisher: u64) -> bool {
        self.0.contains_key(&publisher)
    }
}
