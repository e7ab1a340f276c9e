//! One topic of the domain on its way onto the bus: a publisher on the bus for each in the domain.

use crate::budget::Charge;
use crate::config::is_feedback;
use crate::early::Message;
use crate::hub::{GRACE, Hub, lock};
use crate::types::named_topic;
use crate::wire::{Id, Port, Seen};
use bridge::nodes::policy::{BEST_EFFORT, KEEP_LAST, RELIABLE, TRANSIENT_LOCAL, VOLATILE};
use bridge::nodes::{Kind, Qos};
use bridge::{Counts, Filter, TopicRule, Unfit};
use bus::{PublisherOptions, Stamp};
use ropewalk::{NodeError, Publisher};
use schema::Schema;
use stats::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Instant;

/// Maximum number of publishers of one topic.
const MAX_PUBLISHERS: usize = 1024;
/// A publisher may reserve 1/`PARTS` of its participant's memory.
const PARTS: u64 = 4;

/// One topic of the domain on its way onto the bus.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// Its name in ROS.
    pub(crate) topic: String,
    pub(crate) bus_topic: String,
    pub(crate) schema: Schema,
    pub(crate) rule: TopicRule,
    pub(crate) counts: Counts,
    /// Participant whose publisher was first.
    pub(crate) by: Id,
    filter: Mutex<Filter>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    publishers: BTreeMap<Id, Bound>,
    subscriptions: BTreeMap<Class, Port>,
    /// When the bus last had a subscriber.
    heard: Option<Instant>,
}

/// A publisher of the domain, and its counterpart on the bus.
#[derive(Debug)]
struct Bound {
    publisher: Publisher,
    class: Class,
    participant: Id,
    _share: Charge,
}

impl Bound {
    /// Whether anyone except this bridge is connected to it.
    fn has_subscribers(&self, hub: &Hub) -> bool {
        let subscribers = self.publisher.stats().subscribers;
        subscribers.iter().any(|s| !hub.is_own(s.id))
    }
}

/// Quality of service by which publishers are grouped. A subscription matches all publishers that offer at least what
/// it requests. The bridge takes each publisher's messages only from the subscription that requests exactly what the
/// publisher offers, so that no message arrives twice, and none less reliably than it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Class {
    is_reliable: bool,
    is_kept: bool,
}

impl Class {
    fn of(qos: &Qos) -> Self {
        Class {
            is_reliable: qos.reliability != BEST_EFFORT,
            is_kept: qos.durability == TRANSIENT_LOCAL,
        }
    }

    fn qos(self, depth: u32) -> Qos {
        Qos {
            history: KEEP_LAST,
            depth: depth.into(),
            reliability: if self.is_reliable { RELIABLE } else { BEST_EFFORT },
            durability: if self.is_kept { TRANSIENT_LOCAL } else { VOLATILE },
            ..Qos::default()
        }
    }
}

impl Incoming {
    pub(crate) fn new(
        topic: &str,
        bus_topic: String,
        schema: Schema,
        rule: &TopicRule,
        by: Id,
    ) -> Result<Self, Unfit> {
        Ok(Incoming {
            by,
            topic: topic.to_owned(),
            bus_topic,
            filter: Mutex::new(Filter::new(rule, &schema)?),
            schema,
            rule: rule.clone(),
            counts: Counts::default(),
            state: Mutex::default(),
        })
    }

    /// Updates the domain's publishers, each with the full name of its node. The bridge subscribes in the domain once the
    /// bus has a subscriber. It stays subscribed while the bus has one or keeps messages for late subscribers.
    pub(crate) fn update(&self, hub: &Hub, publishers: &[(&Seen, String)], is_subscribed: bool) {
        let mut state = lock(&self.state);
        let now = Instant::now();
        // A subscriber that is too busy to answer queries is still connected.
        if is_subscribed
            || is_feedback(&self.topic)
            || state.publishers.values().any(|bound| bound.has_subscribers(hub))
        {
            state.heard = Some(now);
        }
        // Subscribers come and go, and opening a subscription takes time.
        let is_subscribed = state
            .heard
            .is_some_and(|heard| now.saturating_duration_since(heard) < GRACE);
        let there: BTreeSet<Id> = publishers.iter().map(|(p, _)| p.id).collect();
        state.publishers.retain(|id, bound| {
            let stays = there.contains(id);
            if !stays {
                hub.ends(bound.publisher.bus().id());
            }
            stays
        });
        for (seen, node) in publishers {
            if state.publishers.contains_key(&seen.id) {
                continue;
            }
            if state.publishers.len() >= MAX_PUBLISHERS {
                hub.problem(
                    &self.topic,
                    format_args!("more than {MAX_PUBLISHERS} publishers: ignoring the others"),
                );
                break;
            }
            let Some(share) = hub.publishers.take(seen.participant, 1) else {
                hub.problem(
                    &self.topic,
                    format_args!("ignoring the publisher of {node}: its process has the maximum number of publishers on this bridge"),
                );
                continue;
            };
            match self.bind(hub, seen, node, share) {
                Ok(bound) => drop(state.publishers.insert(seen.id, bound)),
                Err(error) => hub.problem(&self.topic, error),
            }
        }
        self.take_early(hub, &state);
        let classes: BTreeSet<Class> = state.publishers.values().map(|b| b.class).collect();
        // A new subscription receives kept messages again: end none whose messages the bus keeps, so that none crosses
        // twice.
        let is_kept = |class: &Class| class.is_kept && self.rule.latched.unwrap_or(true);
        state.subscriptions.retain(|class, port| {
            let stays = classes.contains(class) && (is_subscribed || is_kept(class));
            if !stays {
                hub.wire.close(*port);
            }
            stays
        });
        for class in classes.into_iter().filter(|_| is_subscribed) {
            if state.subscriptions.contains_key(&class) {
                continue;
            }
            let what = named_topic(&self.topic, &self.schema);
            match hub
                .wire
                .open(Kind::Subscription, &what, &class.qos(self.rule.depth()))
            {
                Ok(port) => drop(state.subscriptions.insert(class, port)),
                Err(error) => hub.problem(&self.topic, error),
            }
        }
    }

    fn bind(&self, hub: &Hub, seen: &Seen, node: &str, share: Charge) -> Result<Bound, NodeError> {
        let class = Class::of(&seen.qos);
        let is_latched = self.rule.latched.unwrap_or(class.is_kept);
        let mut options = PublisherOptions::default();
        options.history = if is_latched { self.rule.depth() } else { 0 };
        options.node = node.to_owned();
        options.reliability = Some(match class.is_reliable {
            true => bus::Reliability::Reliable,
            false => bus::Reliability::BestEffort,
        });
        let most = hub.config.participant_memory() / PARTS;
        options.memory_limit = options.memory_limit.min(most);
        Ok(Bound {
            publisher: hub.publish(&self.bus_topic, &self.schema, options)?,
            class,
            participant: seen.participant,
            _share: share,
        })
    }

    /// Its subscriptions in the domain.
    pub(crate) fn ports(&self) -> Vec<Port> {
        lock(&self.state).subscriptions.values().copied().collect()
    }

    /// Returns the bus's publisher for one of the domain.
    pub(crate) fn on_bus(&self, publisher: Id) -> Option<u64> {
        let state = lock(&self.state);
        state.publishers.get(&publisher).map(|b| b.publisher.bus().id())
    }

    /// Number of publishers of the domain that it receives from.
    pub(crate) fn connected(&self) -> usize {
        lock(&self.state).publishers.len()
    }

    /// Adds what the messages of each participant have reserved on the bus, in bytes.
    pub(crate) fn add_reserved(&self, to: &mut BTreeMap<Id, u64>) {
        for bound in lock(&self.state).publishers.values() {
            *to.entry(bound.participant).or_default() += bound.publisher.stats().memory_reserved;
        }
    }

    pub(crate) fn end(&self, hub: &Hub) {
        self.update(hub, &[], false);
        hub.forget(&self.topic);
    }

    /// Handles a message. `reserved` returns what the messages of a participant have reserved on the bus.
    pub(crate) fn message(&self, hub: &Hub, message: Message, reserved: impl FnOnce(Id) -> u64) {
        let state = lock(&self.state);
        let Some(bound) = state.publishers.get(&message.from) else {
            // The next round checks its publisher.
            if !lock(&hub.early).keep(&hub.budget, message) {
                self.counts.failed();
            }
            return;
        };
        let (participant, len) = (bound.participant, message.payload.len() as u64);
        if state.subscriptions.get(&bound.class) != Some(&message.port) {
            return;
        }
        // The reserved memory is counted over all topics.
        drop(state);
        if !hub.may_reserve(participant, len, || reserved(participant)) {
            return self.refuse(hub);
        }
        self.publish(hub, &lock(&self.state), &message);
    }

    /// Publishes messages that arrived before their publisher was known.
    fn take_early(&self, hub: &Hub, state: &State) {
        let is_own = |port, from: Id| {
            let bound = state.publishers.get(&from);
            bound.is_some_and(|b| state.subscriptions.get(&b.class) == Some(&port))
        };
        let early = lock(&hub.early).take(is_own, Instant::now());
        for message in early {
            let Some(bound) = state.publishers.get(&message.from) else {
                continue;
            };
            // Nothing of this publisher is on the bus yet.
            if hub.may_reserve(bound.participant, message.payload.len() as u64, || 0) {
                self.publish(hub, state, &message);
            } else {
                self.refuse(hub);
            }
        }
    }

    fn refuse(&self, hub: &Hub) {
        self.counts.failed();
        let most = hub.config.participant_memory();
        hub.problem(
            &self.topic,
            format_args!("the messages of one participant take more than {most} bytes on the bus: raise `participant_memory` if this is intended"),
        );
    }

    fn publish(&self, hub: &Hub, state: &State, message: &Message) {
        let (len, most) = (message.payload.len() as u64, hub.config.max_message());
        let most = self.rule.max_message.unwrap_or(most);
        if len > most {
            self.counts.failed();
            return hub.problem(
                &self.topic,
                format_args!("a message has {len} bytes, more than the limit of {most}: raise `max_message`"),
            );
        }
        let Some(bound) = state.publishers.get(&message.from) else {
            return;
        };
        let (publisher, payload) = (&bound.publisher, &message.payload[..]);
        let stamp = Stamp {
            time: message.time.map(Time),
            origin: Some(hub.origin(publisher.bus().id())),
        };
        let mut filter = lock(&self.filter);
        let filtered;
        let bytes = if filter.reads() {
            match self.filtered(&mut filter, payload) {
                Some(bytes) => {
                    filtered = bytes;
                    &filtered[..]
                }
                None => return self.counts.filtered(),
            }
        } else if filter.due(clock::monotonic()) {
            payload
        } else {
            return self.counts.filtered();
        };
        drop(filter);
        match publisher.publish_cdr_stamped(bytes, stamp) {
            Ok(_) => self.counts.passed(bytes.len()),
            Err(error) => {
                self.counts.failed();
                hub.problem(&self.topic, error);
            }
        }
    }

    /// Returns the part of a message that crosses. A message that does not have the topic's type passes, so that the
    /// publisher refuses it.
    fn filtered(&self, filter: &mut Filter, payload: &[u8]) -> Option<Vec<u8>> {
        let Ok(value) = self.schema.decode_cdr(payload) else {
            return Some(payload.to_vec());
        };
        let value = filter.apply(clock::monotonic(), value)?;
        self.schema.encode_cdr(&value).ok()
    }
}
