//! One topic of the bus on its way into the domain: a publisher there for each that the bus has.

use crate::hub::{Hub, lock};
use crate::types::named_topic;
use crate::wire::Port;
use bridge::nodes::policy::TRANSIENT_LOCAL;
use bridge::nodes::{Kind, Qos};
use bridge::{Counts, Filter, TopicRule, Unfit};
use bus::{Interrupt, SubscriberOptions, TakeError};
use ropewalk::Message;
use schema::Schema;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Publishers of one topic.
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
    /// Its subscriber on the bus.
    id: u64,
    interrupt: Interrupt,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    is_closed: bool,
    publishers: BTreeMap<u64, Bound>,
    /// Messages of publishers that the bridge has not looked at yet.
    early: VecDeque<Message>,
    filter: Filter,
}

#[derive(Debug)]
struct Bound {
    port: Port,
    qos: Qos,
}

/// Why a topic of the bus cannot come into the domain.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutgoingError {
    #[error("{0}")]
    Filter(#[from] Unfit),
    #[error("{0}")]
    Bus(#[from] ropewalk::NodeError),
    #[error("no thread: {0}")]
    Thread(#[from] std::io::Error),
}

impl Outgoing {
    /// Subscribes to the topic of the bus, and hands on what comes until [`Outgoing::end`].
    pub(crate) fn start(
        hub: &Arc<Hub>,
        topic: String,
        bus_topic: String,
        schema: Schema,
        rule: &TopicRule,
    ) -> Result<Arc<Self>, OutgoingError> {
        let filter = Filter::new(rule, &schema)?;
        let depth = rule.depth();
        // What queues hold, those that wait for their publisher, and the next.
        let options = SubscriberOptions::default()
            .with_depth(depth)
            .with_history(u32::MAX)
            .with_max_held(depth + 2);
        let subscriber = hub.node.subscriber_with(&bus_topic, &schema, options)?;
        let id = subscriber.bus().id();
        hub.begins(id);
        let outgoing = Arc::new(Outgoing {
            topic,
            bus_topic,
            schema,
            rule: rule.clone(),
            counts: Counts::default(),
            id,
            interrupt: subscriber.interrupt(),
            state: Mutex::new(State {
                is_closed: false,
                publishers: BTreeMap::new(),
                early: VecDeque::new(),
                filter,
            }),
        });
        let (this, hub) = (outgoing.clone(), hub.clone());
        let thread = std::thread::Builder::new().name("ros2-outgoing".into());
        thread.spawn(move || this.pump(&hub, &subscriber))?;
        Ok(outgoing)
    }

    /// These publish it on the bus.
    pub(crate) fn update(&self, hub: &Hub, publishers: &BTreeMap<u64, Qos>) {
        let mut state = lock(&self.state);
        state.publishers.retain(|id, bound| {
            let stays = publishers.get(id) == Some(&bound.qos);
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
                    format_args!("more than {MAX_PUBLISHERS} publishers; the others are left out"),
                );
                break;
            }
            match hub
                .wire
                .open(Kind::Publisher, &named_topic(&self.topic, &self.schema), qos)
            {
                Ok(port) => drop(state.publishers.insert(*id, Bound { port, qos: *qos })),
                Err(error) => hub.problem(&self.topic, error),
            }
        }
        let known: BTreeSet<u64> = state.publishers.keys().copied().collect();
        let early = std::mem::take(&mut state.early);
        for message in early {
            if known.contains(&message.bus().publisher()) {
                self.send(hub, &mut state, message);
            } else {
                state.early.push_back(message);
            }
        }
    }

    /// The domain's publisher for one of the bus.
    pub(crate) fn port(&self, publisher: u64) -> Option<Port> {
        lock(&self.state).publishers.get(&publisher).map(|b| b.port)
    }

    /// Its publishers in the domain.
    pub(crate) fn ports(&self) -> Vec<Port> {
        lock(&self.state).publishers.values().map(|b| b.port).collect()
    }

    pub(crate) fn end(&self, hub: &Hub) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        state.early.clear();
        for bound in std::mem::take(&mut state.publishers).into_values() {
            hub.wire.close(bound.port);
        }
        drop(state);
        self.interrupt.wake();
        hub.ends(self.id);
        hub.forget(&self.topic);
    }

    fn pump(&self, hub: &Hub, subscriber: &ropewalk::Subscriber) {
        loop {
            let message = match subscriber.take_timeout(Duration::MAX) {
                Ok(message) => message,
                Err(TakeError::HoldLimit { .. }) => {
                    // Messages wait for their publisher's counterpart, which the next round makes.
                    lock(&self.state).early.pop_front();
                    continue;
                }
                Err(error) => {
                    return hub.problem(&self.topic, format_args!("no more comes from the bus: {error}"));
                }
            };
            let mut state = lock(&self.state);
            if state.is_closed {
                return;
            }
            let Some(message) = message else { continue };
            // What came from this domain does not go back to it, whichever bridge brought it.
            if hub.is_from_here(message.origin()) {
                continue;
            }
            if state.publishers.contains_key(&message.bus().publisher()) {
                self.send(hub, &mut state, message);
                continue;
            }
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
        let is_kept = bound.qos.durability == TRANSIENT_LOCAL;
        let port = bound.port;
        if !is_kept && hub.wire.connected(port) == 0 {
            return;
        }
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
        hub.problem(&self.topic, format_args!("a message does not cross: {error}"));
    }
}
