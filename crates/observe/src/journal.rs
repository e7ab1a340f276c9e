//! Events on links, found between two pictures. Keeps the newest.

use crate::{Direction, Drops, Peer, Topic, TopicState, View};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Bytes of events that are kept; the oldest make room.
const BYTES: usize = 256 << 10;
/// Memory of an event in bytes, without its texts.
const OVERHEAD: usize = 256;
/// A topic's losses have ended when it has lost nothing for this long, in seconds.
const CALM_S: f64 = 10.0;
/// A rate has changed when it differs by this share from the one that was noted.
const RATE_CHANGE: f64 = 0.2;
/// Changes by operators that wait to be seen in a state.
const MAX_CLAIMS: usize = 64;
/// How long they wait, in seconds.
const CLAIM_S: f64 = 10.0;

/// Links that are remembered; silent ones make room.
const MAX_LINKS: usize = 64;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its number; one more than the event before.
    pub number: u64,
    /// When it was seen, in seconds since 1970.
    pub at: f64,
    /// The link; empty for a recording.
    pub link: String,
    /// The event.
    #[serde(flatten)]
    pub kind: Happened,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Happened {
    /// A link of this host answers.
    LinkAnswers,
    /// A link of this host no longer answers.
    LinkSilent,
    /// A link was restarted.
    LinkRestarted,
    /// A peer is up.
    PeerUp {
        /// The peer.
        peer: String,
        /// How long it was down, in seconds, if that was seen.
        after_s: Option<f64>,
    },
    /// A peer is down.
    PeerDown {
        /// The peer.
        peer: String,
    },
    /// The rate towards a peer changed.
    RateChanged {
        /// The peer.
        peer: String,
        /// The previous rate.
        from_mbit_s: f64,
        /// The new rate.
        to_mbit_s: f64,
    },
    /// A topic appeared.
    TopicAppeared(Name),
    /// A topic is gone.
    TopicGone(Name),
    /// A topic flows again, or does not flow.
    StateChanged {
        /// The topic.
        #[serde(flatten)]
        name: Name,
        /// The old state.
        from: TopicState,
        /// The new state.
        to: TopicState,
    },
    /// A topic began to lose messages.
    LosesMessages {
        /// The topic.
        #[serde(flatten)]
        name: Name,
        /// Losses a second.
        lost_hz: f64,
        /// The first losses by reason.
        drops: Drops,
    },
    /// A topic has lost no message for some seconds.
    LosesNoMore {
        /// The topic.
        #[serde(flatten)]
        name: Name,
        /// How many it lost.
        lost: u64,
        /// Duration of the losses, in seconds.
        for_s: f64,
    },
    /// A setting of a topic changed.
    SettingChanged {
        /// The topic.
        #[serde(flatten)]
        name: Name,
        /// The setting, as the link's service `set` calls it.
        setting: String,
        /// The old value, as that service takes it.
        from: String,
        /// The new value.
        to: String,
        /// The operator, if this process made the change.
        by: Option<String>,
    },
    /// An operator started a recording on this host.
    RecordingStarted {
        /// Names and patterns of its topics; empty for all topics.
        topics: Vec<String>,
        /// The operator.
        by: String,
    },
    /// A recording on this host ended.
    RecordingEnded {
        /// Its file; empty if the file could not be created.
        file: String,
        /// Messages in the file.
        messages: u64,
        /// Messages lost before they reached the file.
        lost: u64,
        /// The operator, unless it ended on its own.
        by: Option<String>,
        /// The reason, if it ended on its own.
        why: Option<String>,
    },
}

/// A topic of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Name {
    /// Its name for people.
    pub topic: String,
    /// Direction.
    pub direction: Direction,
    /// The other end, as the service `set` calls it.
    pub peer: String,
}

/// The newest events of all links.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    events: VecDeque<Event>,
    bytes: usize,
    next: u64,
    links: BTreeMap<String, Memory>,
    claims: VecDeque<Claim>,
}

/// State that the journal keeps of a link.
#[derive(Clone, Debug, Default)]
struct Memory {
    silent: bool,
    down_since: BTreeMap<String, f64>,
    rates: BTreeMap<String, f64>,
    losing: BTreeMap<String, Losing>,
}

#[derive(Clone, Debug)]
struct Losing {
    since: f64,
    last: f64,
    lost: u64,
}

/// A change that an operator made here.
#[derive(Clone, Debug)]
struct Claim {
    at: f64,
    link: String,
    topic: String,
    setting: String,
    by: String,
}

impl Name {
    fn of(t: &Topic) -> Self {
        // The final receiver if there is one, whichever relay leads to it.
        let peer = match t.to.as_slice() {
            [one] => one,
            _ => &t.peer,
        };
        Name {
            topic: t.topic.clone(),
            direction: t.direction,
            peer: peer.clone(),
        }
    }

    fn len(&self) -> usize {
        self.topic.len() + self.peer.len()
    }
}

impl Happened {
    /// Bytes of its texts.
    fn len(&self) -> usize {
        match self {
            Happened::LinkAnswers | Happened::LinkSilent | Happened::LinkRestarted => 0,
            Happened::PeerUp { peer, .. }
            | Happened::PeerDown { peer }
            | Happened::RateChanged { peer, .. } => peer.len(),
            Happened::TopicAppeared(name) | Happened::TopicGone(name) => name.len(),
            Happened::StateChanged { name, from, to } => name.len() + from.as_str().len() + to.as_str().len(),
            Happened::LosesMessages { name, drops, .. } => {
                name.len() + drops.keys().map(|k| k.len() + 64).sum::<usize>()
            }
            Happened::LosesNoMore { name, .. } => name.len(),
            Happened::SettingChanged {
                name,
                setting,
                from,
                to,
                by,
            } => {
                let by = by.as_ref().map_or(0, String::len);
                name.len() + setting.len() + from.len() + to.len() + by
            }
            Happened::RecordingStarted { topics, by } => {
                topics.iter().map(|topic| topic.len() + 64).sum::<usize>() + by.len()
            }
            Happened::RecordingEnded { file, by, why, .. } => {
                let texts = by.iter().chain(why).map(String::len);
                file.len() + texts.sum::<usize>()
            }
        }
    }
}

impl Journal {
    /// Events after the one with the number `after`; 0 for all.
    pub fn since(&self, after: u64) -> impl Iterator<Item = &Event> {
        let skipped = self.events.partition_point(|e| e.number <= after);
        self.events.range(skipped..)
    }

    /// The number of the newest event; 0 if there is none.
    pub fn newest(&self) -> u64 {
        self.next
    }

    /// Notes that `by` changed a setting, so that the event names the operator.
    pub fn claim(&mut self, at: f64, link: &str, topic: &str, setting: &str, by: &str) {
        if self.claims.len() >= MAX_CLAIMS {
            self.claims.pop_front();
        }
        self.claims.push_back(Claim {
            at,
            link: link.into(),
            topic: topic.into(),
            setting: setting.into(),
            by: by.into(),
        });
    }

    /// Takes back the newest such claim: the link refused the change.
    pub fn unclaim(&mut self, link: &str, topic: &str, setting: &str, by: &str) {
        let refused = [link, topic, setting, by];
        let is_refused = |c: &Claim| [&c.link, &c.topic, &c.setting, &c.by].map(String::as_str) == refused;
        if let Some(i) = self.claims.iter().rposition(is_refused) {
            self.claims.remove(i);
        }
    }

    /// Notes that a link does not answer.
    pub fn silent(&mut self, at: f64, link: &str) {
        let Some(memory) = self.links.get_mut(link).filter(|m| !m.silent) else {
            return;
        };
        memory.silent = true;
        self.add(at, link, Happened::LinkSilent);
    }

    /// Notes the events between two views of a link. `before` is `None` for the first view; `restarted` says whether
    /// the link restarted between them.
    pub fn note(&mut self, at: f64, before: Option<&View>, now: &View, restarted: bool) {
        let mut memory = self.links.remove(&now.link).unwrap_or(Memory {
            silent: true,
            ..Memory::default()
        });
        let mut found = Vec::new();
        if std::mem::take(&mut memory.silent) {
            found.push(Happened::LinkAnswers);
        }
        if restarted {
            found.push(Happened::LinkRestarted);
        }
        for peer in &now.peers {
            let old = before.and_then(|b| b.peers.iter().find(|p| p.name == peer.name));
            memory.peer(at, old, peer, &mut found);
        }
        self.topics(at, before, now, &mut memory, &mut found);
        memory.calm(at, now, &mut found);
        if self.links.len() >= MAX_LINKS {
            self.links.retain(|_, memory| !memory.silent);
        }
        self.links.insert(now.link.clone(), memory);
        for kind in found {
            self.add(at, &now.link, kind);
        }
        self.claims.retain(|c| at - c.at < CLAIM_S);
    }

    fn topics(
        &mut self,
        at: f64,
        before: Option<&View>,
        now: &View,
        memory: &mut Memory,
        found: &mut Vec<Happened>,
    ) {
        let old: BTreeMap<String, &Topic> = before
            .map(|b| b.topics.iter().map(|t| (t.id(), t)).collect())
            .unwrap_or_default();
        let mut gone = old.clone();
        for topic in &now.topics {
            let id = topic.id();
            gone.remove(&id);
            match old.get(&id) {
                None if before.is_some() => found.push(Happened::TopicAppeared(Name::of(topic))),
                None => {}
                Some(old) => {
                    if old.state != topic.state {
                        found.push(Happened::StateChanged {
                            name: Name::of(topic),
                            from: old.state.clone(),
                            to: topic.state.clone(),
                        });
                    }
                    for ((setting, from), (_, to)) in settings(old).into_iter().zip(settings(topic)) {
                        if from == to {
                            continue;
                        }
                        let claimed = self.claims.iter().position(|c| {
                            (c.link.as_str(), c.topic.as_str(), c.setting.as_str())
                                == (now.link.as_str(), topic.topic.as_str(), setting)
                        });
                        found.push(Happened::SettingChanged {
                            name: Name::of(topic),
                            setting: setting.into(),
                            from,
                            to,
                            by: claimed.and_then(|i| self.claims.remove(i)).map(|claim| claim.by),
                        });
                    }
                }
            }
            if topic.lost_hz > 0.0 && before.is_some() {
                let known = old.get(&id).map(|o| &o.drops);
                memory.loses(at, id, (known, topic), now.interval_s, found);
            }
        }
        for (id, topic) in gone {
            memory.losing.remove(&id);
            found.push(Happened::TopicGone(Name::of(topic)));
        }
    }

    /// Adds an event; `link` is empty if the event does not belong to a link.
    pub(crate) fn add(&mut self, at: f64, link: &str, kind: Happened) {
        self.next += 1;
        let event = Event {
            number: self.next,
            at,
            link: link.into(),
            kind,
        };
        self.bytes += event.len();
        self.events.push_back(event);
        while self.bytes > BYTES {
            let Some(oldest) = self.events.pop_front() else {
                break;
            };
            self.bytes -= oldest.len();
        }
    }
}

impl Event {
    fn len(&self) -> usize {
        OVERHEAD + self.link.len() + self.kind.len()
    }
}

impl Memory {
    fn peer(&mut self, at: f64, old: Option<&Peer>, peer: &Peer, found: &mut Vec<Happened>) {
        let name = peer.name.clone();
        match (old.map(|p| p.up), peer.up) {
            (Some(true), false) => {
                self.down_since.insert(name.clone(), at);
                found.push(Happened::PeerDown { peer: name.clone() });
            }
            (Some(false), true) => {
                let after_s = self.down_since.remove(&name).map(|since| at - since);
                let peer = name.clone();
                found.push(Happened::PeerUp { peer, after_s });
            }
            // It was lost and came back in between.
            (Some(true), true) if old.is_some_and(|o| o.lost < peer.lost) => {
                found.push(Happened::PeerDown { peer: name.clone() });
                let peer = name.clone();
                found.push(Happened::PeerUp { peer, after_s: None });
            }
            _ => {}
        }
        let Some(rate) = peer.rate_mbit_s else {
            return;
        };
        match self.rates.get(&name).copied() {
            None => drop(self.rates.insert(name, rate)),
            Some(noted) if (rate - noted).abs() > RATE_CHANGE * noted => {
                self.rates.insert(name.clone(), rate);
                found.push(Happened::RateChanged {
                    peer: name,
                    from_mbit_s: noted,
                    to_mbit_s: rate,
                });
            }
            Some(_) => {}
        }
    }

    fn loses(
        &mut self,
        at: f64,
        id: String,
        (old, topic): (Option<&Drops>, &Topic),
        interval_s: f64,
        found: &mut Vec<Happened>,
    ) {
        let lost = (topic.lost_hz * interval_s).round() as u64;
        if let Some(losing) = self.losing.get_mut(&id) {
            losing.last = at;
            losing.lost += lost;
            return;
        }
        let losing = Losing {
            since: at - interval_s,
            last: at,
            lost,
        };
        self.losing.insert(id, losing);
        found.push(Happened::LosesMessages {
            name: Name::of(topic),
            lost_hz: topic.lost_hz,
            drops: since(old, &topic.drops),
        });
    }

    /// Ends the losses of topics that have lost nothing for a while.
    fn calm(&mut self, at: f64, now: &View, found: &mut Vec<Happened>) {
        for topic in &now.topics {
            let id = topic.id();
            if self.losing.get(&id).is_some_and(|l| at - l.last >= CALM_S)
                && let Some(losing) = self.losing.remove(&id)
            {
                found.push(Happened::LosesNoMore {
                    name: Name::of(topic),
                    lost: losing.lost,
                    for_s: losing.last - losing.since,
                });
            }
        }
    }
}

/// Losses since `old`, by reason.
fn since(old: Option<&Drops>, now: &Drops) -> Drops {
    let before = |reason: &String| old.and_then(|o| o.get(reason)).copied().unwrap_or(0);
    let more = now
        .iter()
        .map(|(reason, n)| (reason.clone(), n.saturating_sub(before(reason))));
    more.filter(|(_, n)| *n > 0).collect()
}

/// The settings of a topic, as the link's service `set` takes them.
fn settings(t: &Topic) -> Vec<(&'static str, String)> {
    let mut all = vec![("priority", t.priority.to_string())];
    if let Some(s) = &t.settings {
        let optional =
            |value: Option<f64>, unit: &str| value.map_or("none".to_owned(), |v| format!("{v}{unit}"));
        all.push(("depth", s.depth.to_string()));
        all.push(("deadline", optional(s.deadline_ms, "ms")));
        all.push(("rate_limit", optional(s.rate_limit_hz, "Hz")));
        all.push(("every", s.every.to_string()));
        all.push(("min_share", format!("{}%", s.min_share * 100.0)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::view;

    fn kinds(journal: &Journal, after: u64) -> Vec<&Happened> {
        journal.since(after).map(|e| &e.kind).collect()
    }

    #[test]
    fn each_change_is_noted_once_with_who_made_it() {
        let (mut journal, first) = (Journal::default(), view());
        journal.note(1.0, None, &first, false);
        assert_eq!(kinds(&journal, 0), [&Happened::LinkAnswers]);
        let mut now = first.clone();
        now.topics.iter_mut().for_each(|t| t.lost_hz = 0.0);
        now.peers[0].up = false;
        now.peers[0].rate_mbit_s = Some(4.0);
        now.topics[0].priority = 7;
        now.topics[1].priority = 8;
        journal.claim(1.5, "robot", "/far/scan", "priority", "drive at 127.0.0.1");
        journal.note(2.0, Some(&first), &now, false);
        let found = kinds(&journal, 1);
        assert_eq!(found.len(), 4, "{found:#?}");
        assert_eq!(found[0], &Happened::PeerDown { peer: "base".into() });
        let Happened::SettingChanged {
            name, from, to, by, ..
        } = found[2]
        else {
            panic!("{found:#?}")
        };
        let text = |s: &str| Some(s.to_owned());
        assert_eq!(
            (name.peer.as_str(), from.as_str(), to.as_str()),
            ("far", "100", "7")
        );
        assert_eq!(by, &text("drive at 127.0.0.1"));
        assert!(matches!(found[3], Happened::SettingChanged { by: None, .. }));
        // An unchanged picture adds no event.
        journal.note(3.0, Some(&now), &now, false);
        assert_eq!(journal.newest(), 5);
        let mut up = now.clone();
        up.peers[0].up = true;
        up.topics.remove(0);
        journal.note(5.0, Some(&now), &up, true);
        let found = kinds(&journal, 5);
        assert_eq!(found[0], &Happened::LinkRestarted);
        let peer = "base".to_owned();
        let after_s = Some(3.0);
        assert_eq!(found[1], &Happened::PeerUp { peer, after_s });
        assert!(matches!(found[2], Happened::TopicGone(name) if name.topic == "/far/scan"));
        journal.silent(6.0, "robot");
        journal.silent(7.0, "robot");
        assert_eq!(kinds(&journal, 8), [&Happened::LinkSilent]);
    }

    #[test]
    fn losses_are_one_event_when_they_begin_and_one_when_they_end() {
        let (mut journal, mut now) = (Journal::default(), view());
        now.topics.truncate(1);
        now.interval_s = 1.0;
        journal.note(0.0, None, &now, false);
        for at in 1..5 {
            let before = now.clone();
            *now.topics[0].drops.get_mut("replaced").unwrap() += 5;
            journal.note(f64::from(at), Some(&before), &now, false);
        }
        now.topics[0].lost_hz = 0.0;
        for at in 5..30 {
            journal.note(f64::from(at), Some(&now.clone()), &now, false);
        }
        let found = kinds(&journal, 1);
        assert_eq!(found.len(), 2, "{found:#?}");
        assert!(
            matches!(found[0], Happened::LosesMessages { lost_hz: 5.0, drops, .. } if drops.len() == 1 && drops["replaced"] == 5)
        );
        assert!(matches!(
            found[1],
            Happened::LosesNoMore {
                lost: 20,
                for_s: 4.0,
                ..
            }
        ));
    }

    #[test]
    fn the_oldest_events_make_room() {
        let mut journal = Journal::default();
        for n in 0..10_000 {
            let peer = "x".repeat(n % 300);
            journal.add(0.0, "link", Happened::PeerDown { peer });
        }
        assert!(journal.bytes <= BYTES && journal.events.len() > 400);
        let sum: usize = journal.events.iter().map(Event::len).sum();
        assert_eq!(journal.bytes, sum);
        assert_eq!(journal.since(9_990).count(), 10);
        assert_eq!(journal.since(0).count(), journal.events.len());
        for n in 0..1000 {
            journal.claim(0.0, "l", &n.to_string(), "priority", "x");
        }
        assert_eq!(journal.claims.len(), MAX_CLAIMS);
        for n in 0..1000 {
            let link = n.to_string();
            let view = View {
                link,
                ..View::default()
            };
            journal.note(0.0, None, &view, false);
            journal.silent(0.0, &view.link);
            assert!(journal.links.len() <= MAX_LINKS);
        }
    }

    #[test]
    fn an_event_is_flat_json() {
        let mut journal = Journal::default();
        let name = Name {
            topic: "/scan".into(),
            ..Name::default()
        };
        journal.add(1.5, "robot", Happened::TopicAppeared(name));
        let json = serde_json::to_value(journal.since(0).next()).unwrap();
        let expected = serde_json::json!({ "number": 1, "at": 1.5, "link": "robot", "what": "topic_appeared",
            "topic": "/scan", "direction": "out", "peer": "" });
        assert_eq!(json, expected);
    }
}
