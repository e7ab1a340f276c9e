//! Reads the state of this host's bus and links once a second.

use crate::picture::{Bus, BusTopic, Link, VERSION};
use crate::robots::robots;
use crate::{AskError, Asked, Event, Happened, History, Journal, LinkState, Links, Picture, View};
use bus::Survey;
use ropewalk::Node;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often it looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// The shortest time between two readings, after a change.
const SOON: Duration = Duration::from_millis(200);
/// How long a link may take for each step of an answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// Topics of the bus that a picture lists.
const MAX_TOPICS: usize = 1024;
/// Topics of one link that a picture lists.
const MAX_LINK_TOPICS: usize = 1024;

/// Observes this host's bus and its links in a thread of its own.
///
/// Dropping it ends the thread.
#[derive(Debug)]
pub struct Observer {
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    node: Node,
    stopped: AtomicBool,
    hurry: AtomicBool,
    seen: Mutex<Seen>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Seen {
    number: u64,
    json: Arc<Value>,
    links: Links,
    journal: Journal,
    history: History,
}

/// State that the thread keeps between two readings.
#[derive(Default)]
struct Memory {
    /// State, view and when each link last answered.
    links: BTreeMap<String, (LinkState, Option<View>)>,
    /// Messages of each topic's publishers, and when they were counted.
    counts: BTreeMap<String, u64>,
    counted: Option<Instant>,
    rates: BTreeMap<String, f64>,
}

impl Observer {
    /// Observes the bus of `node`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(node: Node) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            node,
            stopped: AtomicBool::new(false),
            hurry: AtomicBool::new(false),
            seen: Mutex::default(),
            changed: Condvar::new(),
        });
        let of_thread = shared.clone();
        let thread = std::thread::Builder::new()
            .name("observe".into())
            .spawn(move || of_thread.run())?;
        Ok(Observer {
            shared,
            thread: Some(thread),
        })
    }

    /// The newest picture's number and its JSON ([`Picture::json`]); null and 0 before the first reading.
    pub fn newest(&self) -> (u64, Arc<Value>) {
        let seen = self.shared.seen();
        (seen.number, seen.json.clone())
    }

    /// Waits for a picture after the one with the number `after`, at most `patience`.
    pub fn wait(&self, after: u64, patience: Duration) -> Option<(u64, Arc<Value>)> {
        let seen = self.shared.seen();
        let waiting = |seen: &mut Seen| seen.number <= after && !self.shared.stopped.load(Ordering::Relaxed);
        let waited = self.shared.changed.wait_timeout_while(seen, patience, waiting);
        let seen = waited.unwrap_or_else(PoisonError::into_inner).0;
        (seen.number > after).then(|| (seen.number, seen.json.clone()))
    }

    /// Events after the one with the number `after`.
    pub fn events(&self, after: u64) -> Vec<Event> {
        self.shared.seen().journal.since(after).cloned().collect()
    }

    /// Ten minutes of rates ([`History::json`]).
    pub fn history(&self) -> Value {
        let history = self.shared.seen().history.clone();
        history.json()
    }

    /// Changes a topic of a link, as its service `set` does; the journal names `by`. Returns the resulting settings.
    ///
    /// # Errors
    /// A line from here or from the link.
    pub fn set(
        &self,
        (link, topic, peer): (&str, &str, Option<&str>),
        changes: &[String],
        by: &str,
    ) -> Result<Vec<String>, String> {
        let asked = self.shared.seen().links.get(link).cloned();
        let asked = asked.ok_or_else(|| format!("there is no link {link:?} on this host"))?;
        let settings = || changes.iter().filter_map(|c| Some(c.split_once('=')?.0));
        for setting in settings() {
            let mut seen = self.shared.seen();
            seen.journal.claim(unix_time(), link, topic, setting, by);
        }
        let done = asked.set(topic, peer, changes, PATIENCE);
        // A link that did not answer may have made the change.
        if let Err(AskError::Refused(_) | AskError::Absent(_) | AskError::Unusable(_)) = done {
            for setting in settings() {
                self.shared.seen().journal.unclaim(link, topic, setting, by);
            }
        }
        let now = done.map_err(|e| e.to_string())?;
        self.hurry();
        Ok(now)
    }

    /// Adds to the journal an event that does not belong to a link.
    pub fn note(&self, kind: Happened) {
        self.shared.seen().journal.add(unix_time(), "", kind);
        self.hurry();
    }

    /// Reads the state again soon.
    fn hurry(&self) {
        self.shared.hurry.store(true, Ordering::Relaxed);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            Thread::unpark(thread.thread());
            let _ = thread.join();
        }
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut memory = Memory::default();
        while !self.stopped.load(Ordering::Relaxed) {
            let start = Instant::now();
            self.look(&mut memory);
            loop {
                let hurry = self.hurry.load(Ordering::Relaxed);
                let pause = if hurry { SOON } else { INTERVAL };
                let left = pause.saturating_sub(start.elapsed());
                if left.is_zero() || self.stopped.load(Ordering::Relaxed) {
                    break;
                }
                std::thread::park_timeout(left);
            }
            self.hurry.store(false, Ordering::Relaxed);
        }
    }

    fn look(&self, memory: &mut Memory) {
        let survey = match self.node.survey() {
            Ok(survey) => survey,
            Err(error) => return tracing::warn!(%error, "cannot read the bus"),
        };
        let asked = {
            let mut seen = self.seen();
            seen.links.update(&self.node, &survey);
            seen.links.clone()
        };
        let states: BTreeMap<&str, Option<LinkState>> =
            asked.iter().map(|link| (link.name(), state(link))).collect();
        let at = unix_time();
        let mut picture = Picture {
            version: VERSION,
            at,
            links: BTreeMap::new(),
            bus: memory.bus(&survey),
            robots: BTreeMap::new(),
        };
        let mut seen = self.seen();
        for (name, state) in states {
            let answers = state.is_some();
            match state {
                Some(state) => memory.link(at, name, state, &mut seen.journal),
                None => seen.journal.silent(at, name),
            }
            if let Some((_, Some(view))) = memory.links.get(name) {
                let view = view.clone();
                picture.links.insert(name.to_owned(), Link { answers, view });
            }
        }
        let gone: Vec<_> = memory
            .links
            .keys()
            .filter(|n| asked.get(n).is_none())
            .cloned()
            .collect();
        for name in gone {
            memory.links.remove(&name);
            seen.journal.silent(at, &name);
        }
        let mut services = survey.services();
        services.retain(|s| !s.servers.is_empty());
        let served = services.iter().map(|s| s.service.service.as_str());
        picture.robots = robots(served, &picture.links, &picture.bus.topics);
        let answering = picture.links.values().filter(|l| l.answers).map(|l| &l.view);
        seen.history.add(at, answering);
        seen.json = Arc::new(picture.json());
        seen.number += 1;
        drop(seen);
        self.changed.notify_all();
    }
}

/// A link's state; `None` if the link does not report one.
fn state(link: &Asked) -> Option<LinkState> {
    let reported = link.state(PATIENCE);
    let read = reported.map_err(|e: AskError| e.to_string());
    match read.and_then(|text| LinkState::parse(&text).map_err(|e| e.to_string())) {
        Ok(mut state) => {
            state.sent.truncate(MAX_LINK_TOPICS);
            state.received.truncate(MAX_LINK_TOPICS);
            Some(state)
        }
        Err(error) => {
            tracing::debug!(link = link.name(), error, "a link does not report its state");
            None
        }
    }
}

impl Memory {
    fn link(&mut self, at: f64, name: &str, state: LinkState, journal: &mut Journal) {
        let Some((before, old)) = self.links.get(name) else {
            self.links.insert(name.to_owned(), (state, None));
            return;
        };
        let restarted = is_restarted(before, &state);
        let view = View::between(before, &state);
        journal.note(at, old.as_ref(), &view, restarted);
        self.links.insert(name.to_owned(), (state, Some(view)));
    }

    fn bus(&mut self, survey: &Survey) -> Bus {
        let mut bus = Bus::default();
        let mut counts = BTreeMap::<String, u64>::new();
        let now = Instant::now();
        let span = self.counted.map(|then| (now - then).as_secs_f64());
        // Right after a change there is too little time between two readings.
        let is_due = span.is_none_or(|s| s >= INTERVAL.as_secs_f64() / 2.0);
        for info in survey.topics.iter().filter(|t| !t.is_of_service()) {
            let name = &info.topic.topic;
            if name.split('/').any(|part| part.starts_with('_')) {
                continue;
            }
            let messages: u64 = info.publishers.iter().map(|p| p.messages).sum();
            *counts.entry(name.clone()).or_default() += messages;
            if bus.topics.len() >= MAX_TOPICS && !bus.topics.contains_key(name) {
                bus.more += 1;
                continue;
            }
            let topic = bus.topics.entry(name.clone()).or_insert_with(|| BusTopic {
                type_name: info.topic.type_name.clone(),
                ..BusTopic::default()
            });
            topic.publishers += info.publishers.len() as u64;
            topic.subscribers += info.subscribers.len() as u64;
        }
        if is_due {
            self.rates.clear();
            for (name, messages) in &counts {
                if let (Some(span), Some(before)) = (span, self.counts.get(name)) {
                    let more = messages.checked_sub(*before).unwrap_or(*messages);
                    self.rates.insert(name.clone(), more as f64 / span);
                }
            }
            self.counts = counts;
            self.counted = Some(now);
        }
        for (name, topic) in &mut bus.topics {
            topic.hz = self.rates.get(name).copied();
        }
        bus
    }
}

/// Whether a link restarted between two states: its counts only grow.
fn is_restarted(before: &LinkState, now: &LinkState) -> bool {
    now.radio.bytes < before.radio.bytes || now.uptime_clock_s < before.uptime_clock_s
}

/// Seconds since 1970.
pub fn unix_time() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use ropewalk::{Callback, Flavour, Registry};
    use std::sync::atomic::AtomicU64;

    #[test]
    fn the_second_state_of_a_link_is_the_first_that_is_shown() {
        let (mut memory, mut journal) = (Memory::default(), Journal::default());
        memory.link(1.0, "robot", sample::state(1.0, 100, 90), &mut journal);
        assert!(memory.links["robot"].1.is_none());
        memory.link(2.0, "robot", sample::state(2.0, 150, 130), &mut journal);
        let view = memory.links["robot"].1.clone().expect("a view");
        assert_eq!(view.topics[0].sent_hz, Some(50.0));
        memory.link(3.0, "robot", sample::state(3.0, 10, 9), &mut journal);
        let kinds: Vec<_> = journal.since(0).map(|e| e.kind.clone()).collect();
        assert!(kinds.contains(&crate::Happened::LinkRestarted), "{kinds:?}");
    }

    /// A link whose topic has `priority`, and which refuses each change.
    fn refusing(node: &Node, priority: &Arc<AtomicU64>) -> [Callback; 2] {
        let mut registry = Registry::new(Flavour::Ros1);
        registry
            .add_service("ropewalk_link/State", "---\nstring json")
            .unwrap();
        registry
            .add_service(
                "ropewalk_link/SetTopic",
                "string topic\nstring peer\nstring[] changes\n---\nstring[] now",
            )
            .unwrap();
        let state = registry.service("ropewalk_link/State").unwrap();
        let set = registry.service("ropewalk_link/SetTopic").unwrap();
        let (response, priority, start) = (state.response().clone(), priority.clone(), Instant::now());
        let state = node.dynamic_service("/link/robot/state", &state, move |_| {
            let mut state = sample::json(start.elapsed().as_secs_f64(), 100, 90);
            state["sent"][0]["priority"] = priority.load(Ordering::Relaxed).into();
            let answer = serde_json::json!({ "json": state.to_string() });
            response.value_from_json(&answer).map_err(|e| e.to_string())
        });
        let set = node.dynamic_service("/link/robot/set", &set, |_| Err("no".into()));
        [state.unwrap(), set.unwrap()]
    }

    #[test]
    fn a_change_that_the_link_refused_names_no_operator_later() {
        let folder = tempfile::Builder::new().prefix("rw").tempdir().unwrap();
        let node =
            |name| Node::with_config(name, ropewalk::BusConfig::new(folder.path().join("bus"))).unwrap();
        let (priority, other) = (Arc::new(AtomicU64::new(5)), node("link"));
        let _link = refusing(&other, &priority);
        let observer = Observer::start(node("watch")).unwrap();
        let mut newest = 0;
        let mut wait = |what: &str, is: &dyn Fn(&Value) -> bool| {
            let start = Instant::now();
            loop {
                assert!(start.elapsed() < Duration::from_secs(60), "{what}");
                match observer.wait(newest, INTERVAL) {
                    Some((number, picture)) if is(&picture) => return newest = number,
                    Some((number, _)) => newest = number,
                    None => {}
                }
            }
        };
        wait("the link is observed", &|picture| {
            picture["links"]["robot"]["view"].is_object()
        });
        let which = ("robot", "/far/scan", None);
        let refused = observer.set(which, &["priority=200".into()], "drive at 127.0.0.1");
        assert_eq!(refused, Err("no".into()));
        priority.store(6, Ordering::Relaxed);
        wait("the change of another operator is observed", &|_| {
            observer
                .events(0)
                .iter()
                .any(|event| matches!(event.kind, Happened::SettingChanged { by: None, .. }))
        });
    }
}
