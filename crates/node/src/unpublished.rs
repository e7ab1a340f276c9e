//! The warning of a subscriber that waits although nobody publishes its topic.

use crate::NodeError;
use bus::Bus;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long a subscriber exists before it warns: longer than programs that start together take to find each other.
const WARNS_AFTER: Duration = Duration::from_secs(5);
/// How long silent endpoints may delay the search for similar names.
const PATIENCE: Duration = Duration::from_millis(500);

/// The state of one subscriber.
#[derive(Debug)]
pub(crate) struct Unpublished {
    bus: Bus,
    since: Instant,
    is_done: AtomicBool,
}

impl Unpublished {
    pub(crate) fn new(bus: Bus) -> Self {
        let (since, is_done) = (Instant::now(), AtomicBool::new(false));
        Unpublished { bus, since, is_done }
    }

    /// Time until the warning is due; `None` if it was already.
    pub(crate) fn due(&self) -> Option<Duration> {
        let is_done = self.is_done.load(Relaxed);
        (!is_done).then(|| WARNS_AFTER.saturating_sub(self.since.elapsed()))
    }

    /// The warning, unless there is or was a publisher. Blocks for at most half a second.
    pub(crate) fn warning(&self, subscriber: &bus::Subscriber) -> Option<String> {
        let topic = &subscriber.topic().topic;
        let is_published =
            || subscriber.stats().received > 0 || subscriber.wait_for_publishers(1, Duration::ZERO);
        if self.is_done.swap(true, Relaxed) || is_published() {
            return None;
        }
        if let Some(refusal) = subscriber.refusals().pop() {
            return Some(format!("no publisher of {topic} fits: {}", refusal.reason));
        }
        let mut topics = self.bus.topics(PATIENCE).unwrap_or_default();
        topics.retain(|t| !t.is_of_service() && !t.publishers.is_empty());
        let near = schema::nearest(topic, topics.iter().map(|t| t.topic.topic.as_str()));
        let error = NodeError::NoPublisher {
            near: near.map(str::to_owned),
            topic: topic.clone(),
            waited: WARNS_AFTER,
        };
        Some(format!("still waiting: {error}"))
    }
}
