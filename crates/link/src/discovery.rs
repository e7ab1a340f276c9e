//! Discovers the type of a topic from its publishers, and notices when the type changes or the publishers
//! end. Services are discovered by the servers that take their requests.

use crate::names::{Line, covers};
use crate::periodic::PeriodicThread;
use bridge::is_pattern;
use bus::{Bus, EndpointDetail, TopicType};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

/// Interval at which to survey the bus while a topic has no publisher,
const INTERVAL: Duration = Duration::from_millis(200);
/// and while all have one, to notice changes.
const CALM_INTERVAL: Duration = Duration::from_secs(1);
/// How long silent endpoints may delay one round.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long after the last find of a pattern more topics are expected.
const RESTLESS: Duration = Duration::from_secs(10);
/// Most topics that patterns find, and most services.
pub(crate) const MOST_BY_PATTERN: usize = 512;
/// How long a topic must be without a publisher before it counts as gone: a restarted node is back by then.
const GONE_AFTER: Duration = Duration::from_secs(3);

/// A change of a topic on this host's bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It has a publisher of this type, possibly another type than before.
    Type(TopicType),
    /// It has had no publisher for a while.
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

/// The combined offers of a topic's publishers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offers {
    /// Number of publishers that keep messages for late joiners.
    pub(crate) latching: u32,
    /// Whether they retransmit lost messages, if all agree.
    pub(crate) reliable: Option<bool>,
    /// Most messages that any of them keeps for a slow subscriber; 0 if none offers a depth.
    pub(crate) depth: u32,
}

impl Offers {
    fn of<'a>(publishers: impl Iterator<Item = &'a EndpointDetail>) -> Self {
        let offers = publishers.filter_map(|detail| match detail {
            EndpointDetail::Publisher(p) => Some(&p.offer),
            _ => None,
        });
        let mut out = Offers::default();
        for (i, offer) in offers.enumerate() {
            let reliable = offer.reliability.map(|r| r == bus::Reliability::Reliable);
            out.latching += u32::from(offer.history > 0);
            out.reliable = reliable.filter(|_| i == 0 || out.reliable == reliable);
            out.depth = out.depth.max(offer.depth);
        }
        out
    }
}

/// A thread that looks for publishers of the wanted topics. A survey of the bus blocks, and the radio thread
/// must not.
pub(crate) struct Discovery {
    // Dropped first, so that a full channel does not hold up the thread.
    found: Receiver<(Found, Offers)>,
    _thread: PeriodicThread,
}

impl Discovery {
    /// Starts looking for topics, and for services that match patterns. Calls `wake` after each find. Ignores
    /// endpoints for which `own` returns true.
    pub(crate) fn start(
        bus: Bus,
        (wanted, services): (BTreeSet<String>, BTreeSet<String>),
        own: impl Fn(u64) -> bool + Send + 'static,
        wake: impl Fn() + Send + 'static,
    ) -> std::io::Result<Self> {
        let (sender, found) = sync_channel(2 * wanted.len() + 2 * MOST_BY_PATTERN);
        let mut watch = Watch::new(Instant::now(), wanted, services);
        let thread = PeriodicThread::start("link-discovery", move || {
            if watch.topics.is_empty() && watch.patterns.is_empty() && watch.services.is_empty() {
                return None;
            }
            // A failed survey shows nothing.
            if let Ok(all) = bus.topics(PATIENCE) {
                let by_others = all.into_iter().filter(|i| match is_request(&i.topic.topic) {
                    true => i.subscribers.iter().any(|s| !own(s.id)),
                    false => i.publishers.iter().any(|p| !own(p.id)),
                });
                let (live, offers): (Vec<_>, Vec<_>) = by_others
                    .map(|i| {
                        let others = i.publishers.iter().filter(|p| !own(p.id));
                        (i.topic, Offers::of(others.map(|p| &p.detail)))
                    })
                    .unzip();
                for event in watch.round(Instant::now(), &live) {
                    let place = match &event {
                        Found::Type(kind) => live.iter().position(|t| is_same(t, kind)),
                        Found::Gone(_) => None,
                    };
                    let offers = place.and_then(|i| offers.get(i)).copied();
                    sender.send((event, offers.unwrap_or_default())).ok()?;
                    wake();
                }
            }
            Some(match watch.is_calm(Instant::now()) {
                true => CALM_INTERVAL,
                false => INTERVAL,
            })
        })?;
        Ok(Discovery {
            found,
            _thread: thread,
        })
    }

    /// The next change, and the offers of the topic's publishers.
    pub(crate) fn next(&self) -> Option<(Found, Offers)> {
        self.found.try_recv().ok()
    }
}

/// Returns whether a topic carries requests.
fn is_request(topic: &str) -> bool {
    matches!(Line::parse(topic), Some(Line::Request(_)))
}

/// The state of the wanted topics.
struct Watch {
    /// The type last reported, and when a publisher of it was last seen.
    topics: BTreeMap<String, Option<(TopicType, Instant)>>,
    /// Topics that match are wanted once they are found, and until they are gone.
    patterns: BTreeSet<String>,
    /// The same for services, by the topics of their requests.
    services: BTreeSet<String>,
    last_find: Instant,
    /// Whether patterns have matched more names than are carried.
    is_full: bool,
}

impl Watch {
    fn new(now: Instant, wanted: BTreeSet<String>, services: BTreeSet<String>) -> Self {
        let (patterns, topics): (BTreeSet<_>, BTreeSet<_>) = wanted.into_iter().partition(|t| is_pattern(t));
        Watch {
            topics: topics.into_iter().map(|t| (t, None)).collect(),
            patterns,
            services,
            last_find: now,
            is_full: false,
        }
    }

    /// Returns whether a pattern matches this topic, or the service whose requests it carries.
    fn is_of_pattern(&self, name: &str) -> bool {
        match Line::parse(name) {
            Some(Line::Request(service)) => self.services.iter().any(|p| covers(p, service)),
            _ => self.patterns.iter().any(|p| covers(p, name)),
        }
    }

    fn is_calm(&self, now: Instant) -> bool {
        let finds = !self.patterns.is_empty() || !self.services.is_empty();
        let expects = finds && now.duration_since(self.last_find) < RESTLESS;
        self.topics.values().all(Option::is_some) && !expects
    }

    /// Compares the published types with the known ones.
    fn round(&mut self, now: Instant, live: &[TopicType]) -> Vec<Found> {
        let mut events = Vec::new();
        for name in live.iter().map(|t| &t.topic) {
            let of_requests = is_request(name);
            let alike = || self.topics.keys().filter(|t| is_request(t) == of_requests);
            if !self.is_of_pattern(name) || self.topics.contains_key(name) {
                continue;
            }
            if alike().count() < MOST_BY_PATTERN {
                self.topics.insert(name.clone(), None);
                self.last_find = now;
            } else if !std::mem::replace(&mut self.is_full, true) {
                tracing::warn!(
                    name,
                    "patterns match more than {MOST_BY_PATTERN} names: this one and further ones are left out, until \
                     others end"
                );
            }
        }
        for (name, known) in &mut self.topics {
            let mut types = live.iter().filter(|t| t.topic == *name);
            // While publishers disagree, the current type stays.
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
        let mut topics = std::mem::take(&mut self.topics);
        topics.retain(|name, known| known.is_some() || !self.is_of_pattern(name));
        self.topics = topics;
        events
    }
}

/// Compares without the definition's text: the hash decides, and subscribers may not know the text.
fn is_same(a: &TopicType, b: &TopicType) -> bool {
    (&a.topic, &a.type_name, a.type_hash, a.flavour.ros)
        == (&b.topic, &b.type_name, b.type_hash, b.flavour.ros)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(topic: &str, type_name: &str) -> TopicType {
        TopicType {
            topic: topic.into(),
            type_name: type_name.into(),
            type_hash: [type_name.len() as u8; 16],
            flavour: Default::default(),
            definition: "".into(),
        }
    }

    #[test]
    fn types_are_reported_once_changes_again_and_ends_after_a_delay() {
        let start = Instant::now();
        let at = |s: u64| start + Duration::from_secs(s);
        let mut w = Watch::new(start, BTreeSet::from(["/a".into(), "/b".into()]), BTreeSet::new());
        let (one, two) = (kind("/a", "t/One"), kind("/a", "t/Other"));
        let other = kind("/c", "t/One");
        assert!(!w.is_calm(start));
        assert_eq!(
            w.round(at(0), &[one.clone(), other.clone()]),
            [Found::Type(one.clone())]
        );
        assert_eq!(w.round(at(1), std::slice::from_ref(&one)), []);
        // Two publishers that disagree change nothing. When the first ends, the second counts.
        assert_eq!(w.round(at(2), &[two.clone(), one.clone()]), []);
        assert_eq!(w.round(at(3), &[two.clone(), other]), [Found::Type(two.clone())]);
        assert_eq!(w.round(at(4), &[kind("/b", "t/One"), two]).len(), 1);
        assert!(w.is_calm(at(4)));
        assert_eq!(w.round(at(6), &[kind("/b", "t/One")]), [], "it may come back");
        assert_eq!(w.round(at(7), &[kind("/b", "t/One")]), [Found::Gone("/a".into())]);
        assert_eq!(w.round(at(20), &[kind("/b", "t/One")]), [], "it ends once");
        assert_eq!(w.round(at(21), std::slice::from_ref(&one))[0], Found::Type(one));
    }

    #[test]
    fn topics_of_a_pattern_are_wanted_as_they_come_and_go() {
        let start = Instant::now();
        let at = |s: u64| start + Duration::from_secs(s);
        let wanted = BTreeSet::from(["/t/*".into(), "/a".into()]);
        let mut w = Watch::new(start, wanted, BTreeSet::new());
        let one = kind("/t/one", "t/One");
        let others = [kind("/tt", "t/One"), kind("/t/add?reply", "t/One")];
        assert_eq!(w.round(at(0), &others), []);
        assert_eq!(
            w.round(at(1), &[one.clone(), others[0].clone()]),
            [Found::Type(one.clone())]
        );
        assert!(!w.is_calm(at(2)), "/a is missing");
        assert_eq!(w.round(at(2), &[one.clone(), kind("/a", "t/One")]).len(), 1);
        assert!(!w.is_calm(at(3)) && w.is_calm(at(12)));
        assert_eq!(
            w.round(at(20), &[kind("/a", "t/One")]),
            [Found::Gone("/t/one".into())]
        );
        assert!(!w.topics.contains_key("/t/one"));
        assert_eq!(
            w.round(at(22), &[kind("/a", "t/One"), one.clone()]),
            [Found::Type(one)]
        );
        let many: Vec<_> = (0..2 * MOST_BY_PATTERN)
            .map(|i| kind(&format!("/t/{i}"), "t/One"))
            .collect();
        assert!(w.round(at(23), &many).len() < MOST_BY_PATTERN);
    }

    #[test]
    fn services_of_a_pattern_are_found_by_their_servers() {
        let start = Instant::now();
        let mut w = Watch::new(start, BTreeSet::new(), BTreeSet::from(["/*".into()]));
        let live = [
            "/arm/grasp?request",
            "/scan",
            "/_link/x?request",
            "/arm/grasp?reply",
        ];
        let live = live.map(|name| kind(name, "t/One"));
        assert_eq!(w.round(start, &live), [Found::Type(live[0].clone())]);
        let later = start + Duration::from_secs(4);
        assert_eq!(w.round(later, &[]), [Found::Gone("/arm/grasp?request".into())]);
        assert!(w.topics.is_empty());
    }

    #[test]
    fn offers_are_what_all_publishers_say() {
        let publisher = |history, reliability, depth| {
            let mut info = bus::PublisherInfo::default();
            info.offer.history = history;
            info.offer.reliability = reliability;
            info.offer.depth = depth;
            EndpointDetail::Publisher(info)
        };
        let reliable = || publisher(0, Some(bus::Reliability::Reliable), 5);
        let best_effort = || publisher(1, Some(bus::Reliability::BestEffort), 10);
        let unsaid = || publisher(2, None, 0);
        for (all, expected) in [
            (vec![], (0, None, 0)),
            (vec![reliable(), reliable()], (0, Some(true), 5)),
            (vec![best_effort()], (1, Some(false), 10)),
            (vec![reliable(), best_effort()], (1, None, 10)),
            (vec![unsaid(), reliable()], (1, None, 5)),
            (vec![reliable(), best_effort(), reliable()], (1, None, 10)),
        ] {
            let offers = Offers::of(all.iter());
            assert_eq!((offers.latching, offers.reliable, offers.depth), expected);
        }
    }
}
