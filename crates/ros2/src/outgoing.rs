//! One topic of the bus on its way into the domain: a publisher in the domain for each on the bus.

use crate::config::is_feedback;
use crate::hub::{GRACE, Hub, lock};
use crate::types::named_topic;
use crate::wire::Port;
use bridge::nodes::policy::TRANSIENT_LOCAL;
use bridge::nodes::{Kind, Qos};
use bridge::{Counts, Filter, TopicRule, Unfit};
use bus::{Interrupt, SubscriberOptions, TakeError};
use ropewalk::Message;
use schema::Schema;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Longest queue on the bus that a publisher can request.
const MAX_DEPTH: u32 = 1024;
/// Maximum number of publishers of one topic.
const MAX_PUBLISHERS: usize = 1024;

/// One topic of the bus on its way into the domain.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// Its name in ROS.
    pub(crate) topic: String,
    pub(crate) bus_topic: String,
    pub(crate) schema: Schema,
    pub(crate) rule: TopicRule,
    pub(crate) counts: Counts,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    publishers: BTreeMap<u64, Bound>,
    /// Messages of publishers that the bridge has not checked yet, or that a subscriber in the domain is about to
    /// discover.
    early: VecDeque<Message>,
    /// Whether the domain has a subscriber.
    is_awaited: bool,
    filter: Filter,
    subscription: Option<Subscription>,
    /// When the bus last had the topic.
    seen: Instant,
}

#[derive(Debug)]
struct Bound {
    port: Port,
    qos: Qos,
    /// When the bus last had the publisher.
    seen: Instant,
}

/// The subscriber on the bus, whose thread forwards messages.
#[derive(Debug)]
struct Subscription {
    id: u64,
    interrupt: Interrupt,
    is_closed: Arc<AtomicBool>,
}

/// Why the bridge cannot subscribe to a topic of the bus.
#[derive(Debug, thiserror::Error)]
enum HearError {
    #[error("{0}")]
    Bus(#[from] ropewalk::NodeError),
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

impl Outgoing {
    pub(crate) fn new(
        topic: String,
        bus_topic: String,
        schema: Schema,
        rule: &TopicRule,
    ) -> Result<Arc<Self>, Unfit> {
        let filter = Filter::new(rule, &schema)?;
        Ok(Arc::new(Outgoing {
            topic,
            bus_topic,
            schema,
            rule: rule.clone(),
            counts: Counts::default(),
            state: Mutex::new(State {
                publishers: BTreeMap::new(),
                early: VecDeque::new(),
                is_awaited: false,
                filter,
                subscription: None,
                seen: Instant::now(),
            }),
        }))
    }

    /// Updates the bus's publishers; `is_awaited` says whether the domain has a subscriber. The bridge subscribes on
    /// the bus once a subscriber is connected. It stays subscribed while one is connected or the bus keeps messages for
    /// late subscribers, so that none crosses twice.
    pub(crate) fn update(
        self: &Arc<Self>,
        hub: &Arc<Hub>,
        publishers: &BTreeMap<u64, Qos>,
        is_awaited: bool,
    ) {
        let mut state = lock(&self.state);
        state.is_awaited = is_awaited;
        let now = Instant::now();
        state.publishers.retain(|id, bound| {
            let stays = match publishers.get(id) {
                Some(qos) => *qos == bound.qos,
                None => now.saturating_duration_since(bound.seen) < GRACE,
            };
            if publishers.contains_key(id) {
                bound.seen = now;
            }
            if !stays {
                hub.wire.close(bound.port);
            }
            stays
        });
        for (id, qos) in publishers {
            if state.publishers.contains_key(id) {
                continue;
            }
            if state.publishers.len() >= MAX_PUBLISHERS {
                hub.problem(
                    &self.topic,
                    format_args!("more than {MAX_PUBLISHERS} publishers: ignoring the others"),
                );
                break;
            }
            let what = named_topic(&self.topic, &self.schema);
            match hub.wire.open(Kind::Publisher, &what, qos) {
                Ok(port) => {
                    let (qos, seen) = (*qos, now);
                    state.publishers.insert(*id, Bound { port, qos, seen });
                }
                Err(error) => hub.problem(&self.topic, error),
            }
        }
        let early = std::mem::take(&mut state.early);
        for message in early {
            self.take(hub, &mut state, message);
        }
        let mut ports = state.publishers.values().map(|bound| bound.port);
        let is_subscribed = is_feedback(&self.topic) || ports.any(|port| hub.wire.connected(port) > 0);
        let is_kept = publishers.values().any(|qos| qos.durability == TRANSIENT_LOCAL);
        match &state.subscription {
            None if is_subscribed => match self.hear(hub, publishers) {
                Ok(subscription) => state.subscription = Some(subscription),
                Err(error) => hub.problem(&self.topic, error),
            },
            Some(_) if !is_subscribed && !is_kept => state.end_subscription(hub),
            _ => {}
        }
    }

    fn hear(
        self: &Arc<Self>,
        hub: &Arc<Hub>,
        publishers: &BTreeMap<u64, Qos>,
    ) -> Result<Subscription, HearError> {
        // As many as the publishers keep, unless the rule sets a depth.
        let kept = publishers.values().map(|qos| qos.depth).max().unwrap_or(0);
        let kept = u32::try_from(kept).unwrap_or(MAX_DEPTH).min(MAX_DEPTH);
        let depth = self.rule.depth.unwrap_or_else(|| kept.max(self.rule.depth()));
        // The queue, the messages that wait for their publisher, and the next one.
        let options = SubscriberOptions::default()
            .with_depth(depth)
            .with_history(u32::MAX)
            .with_max_held(depth + 2);
        let subscriber = hub
            .node
            .dynamic_subscriber_with(&self.bus_topic, &self.schema, options)?;
        let id = subscriber.bus().id();
        hub.begins(id);
        let subscription = Subscription {
            id,
            interrupt: subscriber.interrupt(),
            is_closed: Arc::default(),
        };
        let (this, hub, is_closed) = (self.clone(), hub.clone(), subscription.is_closed.clone());
        let thread = std::thread::Builder::new().name("ros2-outgoing".into());
        thread.spawn(move || this.pump(&hub, &subscriber, &is_closed))?;
        Ok(subscription)
    }

    /// Records that the bus has the topic now.
    pub(crate) fn seen(&self, now: Instant) {
        lock(&self.state).seen = now;
    }

    /// Time since the bus last had the topic.
    pub(crate) fn unseen(&self, now: Instant) -> Duration {
        now.saturating_duration_since(lock(&self.state).seen)
    }

    /// Returns the domain's publisher for one of the bus.
    pub(crate) fn port(&self, publisher: u64) -> Option<Port> {
        lock(&self.state).publishers.get(&publisher).map(|b| b.port)
    }

    /// Its publishers in the domain.
    pub(crate) fn ports(&self) -> Vec<Port> {
        lock(&self.state).publishers.values().map(|b| b.port).collect()
    }

    pub(crate) fn end(&self, hub: &Hub) {
        let mut state = lock(&self.state);
        state.early.clear();
        for bound in std::mem::take(&mut state.publishers).into_values() {
            hub.wire.close(bound.port);
        }
        state.end_subscription(hub);
        hub.forget(&self.topic);
    }

    fn pump(&self, hub: &Hub, subscriber: &ropewalk::Subscriber, is_closed: &AtomicBool) {
        clock::nice_thread(clock::FORWARDING_NICE);
        loop {
            let message = match subscriber.take_timeout(Duration::MAX) {
                Ok(message) => message,
                Err(TakeError::HoldLimit { .. }) => {
                    // Messages wait for their publisher's counterpart, which the next round creates.
                    lock(&self.state).early.pop_front();
                    continue;
                }
                Err(error) => {
                    return hub.problem(
                        &self.topic,
                        format_args!("messages from the bus have ended: {error}"),
                    );
                }
            };
            let mut state = lock(&self.state);
            if is_closed.load(Ordering::Acquire) {
                return;
            }
            let Some(message) = message else { continue };
            // Messages from this domain do not go back to it, whichever bridge brought them.
            if hub.is_from_here(message.origin()) {
                continue;
            }
            self.take(hub, &mut state, message);
        }
    }

    /// Sends a message, or keeps it until a subscriber has discovered its publisher's counterpart.
    fn take(&self, hub: &Hub, state: &mut State, message: Message) {
        let bound = state.publishers.get(&message.bus().publisher());
        let is_ready =
            bound.map(|bound| bound.qos.durability == TRANSIENT_LOCAL || hub.wire.connected(bound.port) > 0);
        if is_ready == Some(true) {
            return self.send(hub, state, message);
        }
        if is_ready.is_none() || state.is_awaited {
            if state.early.len() >= self.rule.depth() as usize {
                state.early.pop_front();
                self.counts.dropped();
            }
            state.early.push_back(message);
        }
    }

    fn send(&self, hub: &Hub, state: &mut State, message: Message) {
        let Some(bound) = state.publishers.get(&message.bus().publisher()) else {
            return;
        };
        let port = bound.port;
        let bytes = if state.filter.reads() {
            let passing = match message.value() {
                Ok(value) => state.filter.apply(clock::monotonic(), value),
                Err(error) => return self.fail(hub, error),
            };
            let Some(passing) = passing else {
                return self.counts.filtered();
            };
            self.schema.encode_cdr(&passing).map_err(|e| e.to_string())
        } else if state.filter.due(clock::monotonic()) {
            message.cdr().map_err(|e| e.to_string())
        } else {
            return self.counts.filtered();
        };
        let time = message.stamp().as_nanos();
        let sent = bytes.and_then(|bytes| {
            let len = bytes.len();
            let sent = hub.wire.write(port, bytes, time);
            sent.map(|()| len).map_err(|e| e.to_string())
        });
        match sent {
            Ok(len) => self.counts.passed(len),
            Err(error) => self.fail(hub, error),
        }
    }

    fn fail(&self, hub: &Hub, error: impl std::fmt::Display) {
        self.counts.failed();
        hub.problem(&self.topic, format_args!("cannot forward a message: {error}"));
    }
}

impl State {
    fn end_subscription(&mut self, hub: &Hub) {
        if let Some(subscription) = self.subscription.take() {
            subscription.is_closed.store(true, Ordering::Release);
            subscription.interrupt.wake();
            hub.ends(subscription.id);
        }
    }
}
