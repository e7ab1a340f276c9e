//! Finds out of which type a topic is, from whoever publishes it, and notices when that changes or ends. Services
//! are found by whoever takes their requests.

use crate::services::REQUEST;
use crate::worker::Worker;
use bus::{Bus, TopicType};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

/// How often the bus is asked while a topic has no publisher,
const INTERVAL: Duration = Duration::from_millis(200);
/// and while all have one, to notice changes.
const CALM_INTERVAL: Duration = Duration::from_secs(1);
/// How long silent endpoints may hold up one round.
const PATIENCE: Duration = Duration::from_millis(500);
/// So long a topic must be without publisher before it counts as gone: a node that is started anew is back by then.
const GONE_AFTER: Duration = Duration::from_secs(3);

/// What happened to a topic on this host's bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Somebody publishes it, of this type; maybe of another type than before.
    Type(TopicType),
    /// Nobody has published it for a while.
    Gone(String),
}

impl Found {
    /// The topic's name.
    pub(crate) fn topic(&self) -> &str {
        match self {
            Found::Type(kind) => &kind.topic,
            Found::Gone(topic) => topic,
        }
    }
}

/// A thread that looks for publishers of the wanted topics; asking the bus blocks, and the radio may not.
pub(crate) struct Discovery {
    // Dropped first, so that a full channel does not keep the thread.
    found: Receiver<Found>,
    _worker: Worker,
}

impl Discovery {
    /// Starts looking; `wake` is called after each find. Publishers that `own` holds for do not count.
    pub(crate) fn start(
        bus: Bus,
        wanted: BTreeSet<String>,
        own: impl Fn(u64) -> bool + Send + 'static,
        wake: impl Fn() + Send + 'static,
    ) -> std::io::Result<Self> {
        let (sender, found) = sync_channel(2 * wanted.len());
        let mut watch = Watch::new(wanted);
        let worker = Worker::start("link-discovery", move || {
            if watch.topics.is_empty() {
                return None;
            }
            // A survey that failed shows nothing.
            if let Ok(all) = bus.topics(PATIENCE) {
                let by_others = all
                    .into_iter()
                    .filter(|i| match i.topic.topic.ends_with(REQUEST) {
                        true => !i.subscribers.is_empty(),
                        false => i.publishers.iter().any(|p| !own(p.id)),
                    });
                let live: Vec<_> = by_others.map(|i| i.topic).collect();
                for event in watch.round(Instant::now(), &live) {
                    sender.send(event).ok()?;
                    wake();
                }
            }
            Some(if watch.is_calm() { CALM_INTERVAL } else { INTERVAL })
        })?;
        Ok(Discovery {
            found,
            _worker: worker,
        })
    }

    /// The next thing that happened.
    pub(crate) fn next(&self) -> Option<Found> {
        self.found.try_recv().ok()
    }
}

/// What is known of the wanted topics.
struct Watch {
    /// The type last told, and when a publisher of it was last seen.
    topics: BTreeMap<String, Option<(TopicType, Instant)>>,
}

impl Watch {
    fn new(wanted: BTreeSet<String>) -> Self {
        Watch {
            topics: wanted.into_iter().map(|t| (t, None)).collect(),
        }
    }

    fn is_calm(&self) -> bool {
        self.topics.values().all(Option::is_some)
    }

    /// Compares the types that are published with what is known.
    fn round(&mut self, now: Instant, live: &[TopicType]) -> Vec<Found> {
        let mut events = Vec::new();
        for (name, known) in &mut self.topics {
            let mut types = live.iter().filter(|t| t.topic == *name);
            // While publishers disagree, the type that is sent stays.
            let same = |t: &&TopicType| known.as_ref().is_some_and(|(kind, _)| is_same(kind, t));
            match types.clone().find(same).or_else(|| types.next()) {
                Some(t) => {
                    if known.as_ref().is_none_or(|(kind, _)| !is_same(kind, t)) {
                        events.push(Found::Type(t.clone()));
                    }
                    *known = Some((t.clone(), now));
                }
                None if known
                    .as_ref()
                    .is_some_and(|(_, seen)| now.duration_since(*seen) >= GONE_AFTER) =>
                {
                    events.push(Found::Gone(name.clone()));
                    *known = None;
                }
                None => {}
            }
        }
        events
    }
}

/// The definition's text does not count: the hash decides, and who subscribes may not know the text.
fn is_same(a: &TopicType, b: &TopicType) -> bool {
    (&a.topic, &a.type_name, a.type_hash) == (&b.topic, &b.type_name, b.type_hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(topic: &str, type_name: &str) -> TopicType {
        TopicType {
            topic: topic.into(),
            type_name: type_name.into(),
            type_hash: [type_name.len() as u8; 16],
            definition: "".into(),
        }
    }

    #[test]
    fn types_are_told_once_changes_anew_and_ends_after_a_while() {
        let start = Instant::now();
        let at = |s: u64| start + Duration::from_secs(s);
        let mut w = Watch::new(BTreeSet::from(["/a".into(), "/b".into()]));
        let (one, two) = (kind("/a", "t/One"), kind("/a", "t/Other"));
        let other = kind("/c", "t/One");
        assert!(!w.is_calm());
        assert_eq!(
            w.round(at(0), &[one.clone(), other.clone()]),
            [Found::Type(one.clone())]
        );
        assert_eq!(w.round(at(1), std::slice::from_ref(&one)), []);
        // Two publishers that disagree change nothing; when the first ends, the second counts.
        assert_eq!(w.round(at(2), &[two.clone(), one.clone()]), []);
        assert_eq!(w.round(at(3), &[two.clone(), other]), [Found::Type(two.clone())]);
        assert_eq!(w.round(at(4), &[kind("/b", "t/One"), two]).len(), 1);
        assert!(w.is_calm());
        assert_eq!(w.round(at(6), &[kind("/b", "t/One")]), [], "it may come back");
        assert_eq!(w.round(at(7), &[kind("/b", "t/One")]), [Found::Gone("/a".into())]);
        assert_eq!(w.round(at(20), &[kind("/b", "t/One")]), [], "it ends once");
        assert_eq!(w.round(at(21), std::slice::from_ref(&one))[0], Found::Type(one));
    }
}
