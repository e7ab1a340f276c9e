//! Telemetry for a controller: finds the topics and receives their messages.

use super::gate::Gate;
use super::robot::setup;
use super::{frame, names, types};
use crate::sync::lock;
use crate::transport::{ControllerSink, Listen, TransportError};
use bus::TakeError;
use ropewalk::{Node, Schema, Subscriber, SubscriberOptions, WaitSet};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum messages of a topic that wait; beyond that the oldest are lost.
const DEPTH: u32 = 64;
/// Maximum number of topics that are subscribed.
const MOST_TOPICS: usize = 1024;
/// Interval of the searches for topics if all are wanted: soon after a find, and later.
const SOON: Duration = Duration::from_millis(200);
const LATER: Duration = Duration::from_secs(1);
/// For how long after a find more topics are expected.
const RESTLESS: Duration = Duration::from_secs(10);
/// How long silent programs of the bus may delay one search.
const PATIENCE: Duration = Duration::from_millis(500);

/// Delivers the messages of a robot's topics.
pub(super) struct Listener {
    node: Node,
    robot: String,
    schema: Schema,
    wait_set: WaitSet,
    wanted: Mutex<Wanted>,
    changed: Condvar,
}

struct Wanted {
    /// Whether all topics are wanted, which [`Listener::search`] finds.
    all: bool,
    topics: BTreeSet<String>,
    closed: bool,
    /// Whether it changed since the receiving thread looked.
    is_new: bool,
}

impl Listener {
    pub(super) fn new(node: &Node, robot: &str) -> Result<Self, TransportError> {
        Ok(Listener {
            node: node.clone(),
            robot: robot.to_owned(),
            // The publisher sets its priority.
            schema: types::telemetry(0).map_err(setup)?,
            wait_set: node.wait_set().map_err(setup)?,
            wanted: Mutex::new(Wanted {
                all: true,
                topics: BTreeSet::new(),
                closed: false,
                is_new: false,
            }),
            changed: Condvar::new(),
        })
    }

    /// Sets which telemetry is wanted.
    pub(super) fn listen(&self, streams: Listen<'_>) {
        let mut wanted = lock(&self.wanted);
        match streams {
            Listen::All => wanted.all = true,
            Listen::To(streams) => {
                wanted.all = false;
                let topics = streams
                    .iter()
                    .flat_map(|s| names::topics(&self.robot, s.kind, s.channel));
                wanted.topics = topics.take(MOST_TOPICS).collect();
            }
        }
        wanted.is_new = true;
        drop(wanted);
        self.wake();
    }

    pub(super) fn close(&self) {
        lock(&self.wanted).closed = true;
        self.wake();
    }

    fn wake(&self) {
        self.changed.notify_all();
        self.wait_set.interrupt().wake();
    }

    /// Starts the two threads.
    pub(super) fn start(
        self: &Arc<Self>,
        gate: &Gate,
        sink: &Arc<dyn ControllerSink>,
    ) -> std::io::Result<[JoinHandle<()>; 2]> {
        let (receiving, searching) = (self.clone(), self.clone());
        let (gate, sink) = (gate.clone(), sink.clone());
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        Ok([
            thread("remote-telemetry").spawn(move || receiving.receive(&gate, &*sink))?,
            thread("remote-search").spawn(move || searching.search())?,
        ])
    }

    /// Searches for topics as long as all are wanted.
    fn search(&self) {
        let prefix = names::telemetry(&self.robot);
        let mut last_find = Instant::now();
        loop {
            // A failed search finds nothing.
            let all = self.node.bus().topics(PATIENCE).unwrap_or_default();
            let is_one = |name: &str| name.starts_with(&prefix);
            let found = all
                .into_iter()
                .filter(|t| is_one(&t.topic.topic) && !t.publishers.is_empty());
            let mut wanted = lock(&self.wanted);
            for topic in found {
                if wanted.all && wanted.topics.len() < MOST_TOPICS && wanted.topics.insert(topic.topic.topic)
                {
                    wanted.is_new = true;
                    last_find = Instant::now();
                }
            }
            if wanted.is_new {
                self.wait_set.interrupt().wake();
            }
            let pause = match last_find.elapsed() < RESTLESS {
                true => SOON,
                false => LATER,
            };
            let rests = |w: &mut Wanted| !w.closed;
            let waited = self.changed.wait_timeout_while(wanted, pause, rests);
            wanted = waited.unwrap_or_else(PoisonError::into_inner).0;
            while !wanted.all && !wanted.closed {
                wanted = self.changed.wait(wanted).unwrap_or_else(PoisonError::into_inner);
                last_find = Instant::now();
            }
            if wanted.closed {
                return;
            }
        }
    }

    /// Delivers messages until the gate is closed.
    fn receive(&self, gate: &Gate, sink: &dyn ControllerSink) {
        let mut subscribers = BTreeMap::new();
        let mut buffer = Vec::new();
        loop {
            let topics = {
                let mut wanted = lock(&self.wanted);
                if wanted.closed {
                    return;
                }
                std::mem::take(&mut wanted.is_new).then(|| wanted.topics.clone())
            };
            if let Some(topics) = topics {
                self.subscribe(&mut subscribers, &topics);
            }
            let mut came = false;
            for subscriber in subscribers.values() {
                match subscriber.take() {
                    Ok(Some(message)) => {
                        let Some(_pass) = gate.enter() else { return };
                        came = true;
                        let lost = message.lost().total();
                        if lost > 0 {
                            sink.lost(lost);
                        }
                        match frame::read(&message, &mut buffer) {
                            Ok(frame) => sink.telemetry(frame),
                            Err(error) => {
                                tracing::debug!(%error, topic = subscriber.topic(), "not telemetry")
                            }
                        }
                    }
                    // All messages are dropped after reading, so that the hold limit is never reached.
                    Ok(None) | Err(TakeError::HoldLimit { .. }) => {}
                    Err(error) => {
                        tracing::error!(%error, "stopped receiving telemetry");
                        return;
                    }
                }
            }
            if !came && let Err(error) = self.wait_set.wait(Duration::MAX) {
                tracing::error!(%error, "stopped receiving telemetry");
                return;
            }
        }
    }

    fn subscribe(&self, subscribers: &mut BTreeMap<String, Subscriber>, topics: &BTreeSet<String>) {
        subscribers.retain(|topic, _| topics.contains(topic));
        for topic in topics {
            if subscribers.contains_key(topic) {
                continue;
            }
            let options = SubscriberOptions::default()
                .with_depth(DEPTH)
                .with_wait_set(&self.wait_set);
            match self.node.dynamic_subscriber_with(topic, &self.schema, options) {
                Ok(subscriber) => drop(subscribers.insert(topic.clone(), subscriber)),
                Err(error) => tracing::error!(%error, "cannot receive telemetry"),
            }
        }
    }
}
