//! One topic of the bus on its way into ROS: a queue and a thread for each subscriber in ROS.

use crate::body::Outgoing;
use crate::config::TopicRule;
use crate::header::{BRIDGE, Header};
use crate::hub::{Hub, lock};
use crate::listener::Accepted;
use crate::net::Timed;
use crate::peers::{Reason, Standing};
use crate::subscription::prepare;
use bridge::{Counts, Filter, Unfit};
use bus::{Interrupt, SubscriberOptions, TakeError};
use schema::Schema;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Maximum number of subscribers of one topic, of those that are unknown peers, and of those that are one unknown peer.
const MAX_LISTENERS: usize = 64;
const MAX_UNKNOWN: usize = 48;
const MAX_OF_UNKNOWN: usize = 16;
/// Maximum number of publishers on the bus whose last message is kept for late joiners.
const MAX_KEPT: usize = 64;
/// A subscriber that takes nothing for this long is disconnected.
const STALL: Duration = Duration::from_secs(30);
/// How often a subscriber that gets nothing is checked for a closed connection.
const LOOK: Duration = Duration::from_secs(1);
/// Timeout for a peer's part of the greeting.
const GREETING: Duration = Duration::from_secs(5);

/// One topic of the bus on its way into ROS.
#[derive(Debug)]
pub(crate) struct Publication {
    /// Its name in ROS.
    pub(crate) topic: String,
    pub(crate) bus_topic: String,
    pub(crate) schema: Schema,
    latched: bool,
    depth: usize,
    pub(crate) counts: Counts,
    interrupt: Interrupt,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    next: u64,
    listeners: BTreeMap<u64, Arc<Listener>>,
    /// The last message of each publisher on the bus, in the order in which the publishers appeared.
    kept: VecDeque<(u64, Arc<Outgoing>)>,
}

/// A subscriber in ROS.
#[derive(Debug)]
struct Listener {
    name: String,
    standing: Standing,
    stream: Arc<TcpStream>,
    queue: Mutex<Queue>,
    ready: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Arc<Outgoing>>,
    closed: bool,
}

/// Why a topic of the bus cannot go into ROS.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PublicationError {
    #[error("{0}")]
    Filter(#[from] Unfit),
    #[error("{0}")]
    Bus(#[from] ropewalk::NodeError),
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
}

impl Publication {
    /// Subscribes to the topic on the bus, and forwards messages until [`Publication::stop`].
    pub(crate) fn start(
        hub: &Arc<Hub>,
        topic: String,
        bus_topic: String,
        schema: Schema,
        rule: &TopicRule,
        latched: bool,
    ) -> Result<Arc<Publication>, PublicationError> {
        let filter = Filter::new(rule, &schema)?;
        let depth = rule.depth();
        // All queues together, one message on its way to each subscriber, those kept, and the next one.
        let most = depth as usize + MAX_LISTENERS + MAX_KEPT + 2;
        let options = SubscriberOptions::default()
            .with_depth(depth)
            .with_history(if latched { u32::MAX } else { 0 })
            .with_max_held(most as u32);
        let subscriber = hub.node.dynamic_subscriber_with(&bus_topic, &schema, options)?;
        let publication = Arc::new(Publication {
            topic,
            bus_topic,
            schema,
            latched,
            depth: depth as usize,
            counts: Counts::default(),
            interrupt: subscriber.interrupt(),
            state: Mutex::default(),
        });
        let (this, hub) = (publication.clone(), hub.clone());
        let thread = std::thread::Builder::new().name("bus-subscriber".into());
        thread.spawn(move || this.pump(&hub, &subscriber, filter))?;
        Ok(publication)
    }

    /// Number of subscribers.
    pub(crate) fn connected(&self) -> usize {
        lock(&self.state).listeners.len()
    }

    /// Names of the subscribers.
    pub(crate) fn listeners(&self) -> Vec<String> {
        lock(&self.state)
            .listeners
            .values()
            .map(|l| l.name.clone())
            .collect()
    }

    /// Ends the publication; subscribers still get what is queued.
    pub(crate) fn stop(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        state.kept.clear();
        for listener in state.listeners.values() {
            lock(&listener.queue).closed = true;
            listener.ready.notify_all();
        }
        drop(state);
        self.interrupt.wake();
    }

    fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }

    fn pump(&self, hub: &Hub, subscriber: &ropewalk::Subscriber, mut filter: Filter) {
        clock::nice_thread(clock::FORWARDING_NICE);
        while !self.is_closed() {
            let message = match subscriber.take_timeout(Duration::MAX) {
                Ok(Some(message)) => message,
                Ok(None) => continue,
                Err(TakeError::HoldLimit { .. }) => {
                    // Subscribers hold more than they should be able to: wait for them.
                    std::thread::sleep(Duration::from_millis(10));
                    continue;
                }
                Err(error) => {
                    hub.problem(
                        &self.topic,
                        format_args!("messages from the bus have ended: {error}"),
                    );
                    return;
                }
            };
            // Messages from this ROS graph do not go back to it, whichever bridge brought them.
            if hub.is_from_here(message.origin()) {
                continue;
            }
            let publisher = message.bus().publisher();
            let (outgoing, len) = if filter.reads() {
                let parts: Vec<&[u8]> = (0..message.part_count())
                    .map(|i| message.part(i).bytes())
                    .collect();
                let value = self.schema.decode(message.control(), &parts);
                let value = match value {
                    Ok(value) => value,
                    Err(error) => {
                        self.counts.failed();
                        hub.problem(
                            &self.topic,
                            format_args!("a message from the bus does not have the topic's type: {error}"),
                        );
                        continue;
                    }
                };
                let bytes = filter
                    .apply(clock::monotonic(), value)
                    .and_then(|v| self.schema.encode_ros1(&v).ok());
                let Some(bytes) = bytes else {
                    self.counts.filtered();
                    continue;
                };
                let len = bytes.len();
                (Outgoing::Bytes(bytes), len)
            } else if filter.due(clock::monotonic()) {
                let len = message.control().len()
                    + (0..message.part_count())
                        .map(|i| message.bus().part_len(i))
                        .sum::<usize>();
                (Outgoing::Block(message), len)
            } else {
                self.counts.filtered();
                continue;
            };
            self.counts.passed(len);
            self.push(publisher, &Arc::new(outgoing));
        }
    }

    fn push(&self, publisher: u64, message: &Arc<Outgoing>) {
        let mut state = lock(&self.state);
        for listener in state.listeners.values() {
            let mut queue = lock(&listener.queue);
            if queue.messages.len() >= self.depth {
                queue.messages.pop_front();
                self.counts.dropped();
            }
            queue.messages.push_back(message.clone());
            listener.ready.notify_one();
        }
        if self.latched {
            match state.kept.iter_mut().find(|(p, _)| *p == publisher) {
                Some((_, kept)) => *kept = message.clone(),
                None => {
                    if state.kept.len() >= MAX_KEPT {
                        state.kept.pop_front();
                    }
                    state.kept.push_back((publisher, message.clone()));
                }
            }
        }
    }

    /// Serves a subscriber whose header has been read, until it or the topic ends.
    pub(crate) fn serve(&self, hub: &Hub, accepted: &Accepted, header: &Header) {
        let stream = &accepted.stream;
        let refused = self.difference(header).or_else(|| {
            let refusal = self.refusal(&lock(&self.state), accepted.standing)?;
            hub.peers.refuse(Reason::Connection, &refusal);
            Some(refusal)
        });
        let mut timed = Timed::new(stream, GREETING);
        if let Some(error) = refused {
            hub.problem(&format!("{} to {}", self.topic, header.caller()), &error);
            let _ = Header::new(&[("error", &error)]).write(&mut timed);
            return;
        }
        hub.forget(&format!("{} to {}", self.topic, header.caller()));
        let answer = Header::new(&[
            ("callerid", hub.name()),
            ("topic", &self.topic),
            ("type", self.schema.name()),
            ("md5sum", &self.schema.md5_hex()),
            ("message_definition", &self.schema.definition()),
            ("latching", if self.latched { "1" } else { "0" }),
            (BRIDGE, "1"),
        ]);
        let greeted = prepare(stream).and_then(|()| answer.write(&mut timed));
        if greeted.is_err() {
            return;
        }
        accepted.settle();
        let Some((id, listener)) = self.enrol(accepted, header.caller()) else {
            return;
        };
        if let Err(error) = self.send_all(&listener) {
            tracing::debug!(%error, topic = self.topic, listener = header.caller(), "a subscriber is gone");
        }
        lock(&self.state).listeners.remove(&id);
    }

    /// Returns why there is no room for another subscriber.
    fn refusal(&self, state: &State, standing: Standing) -> Option<String> {
        let listeners: Vec<Standing> = state.listeners.values().map(|l| l.standing).collect();
        refusal(&self.topic, &listeners, standing)
    }

    fn enrol(&self, accepted: &Accepted, name: &str) -> Option<(u64, Arc<Listener>)> {
        let mut state = lock(&self.state);
        if state.closed || self.refusal(&state, accepted.standing).is_some() {
            return None;
        }
        let kept = state.kept.iter().map(|(_, m)| m.clone()).collect();
        let listener = Arc::new(Listener {
            name: name.to_owned(),
            standing: accepted.standing,
            stream: accepted.stream.clone(),
            queue: Mutex::new(Queue {
                messages: kept,
                closed: false,
            }),
            ready: Condvar::new(),
        });
        let id = state.next;
        state.next += 1;
        state.listeners.insert(id, listener.clone());
        Some((id, listener))
    }

    /// Returns why a subscriber cannot have this topic, for both ends.
    fn difference(&self, header: &Header) -> Option<String> {
        let asked = |key| header.get(key).filter(|v| *v != "*");
        let (caller, topic) = (header.caller(), &self.topic);
        let Some(sum) = header.get("md5sum") else {
            return Some(format!("{caller} requests {topic} without an md5sum"));
        };
        let (name, ours) = (self.schema.name(), self.schema.md5_hex());
        if let Some(kind) = asked("type").filter(|k| *k != name) {
            return Some(format!(
                "{caller} requests {topic} as {kind}, but it is a {name}: subscribe with that type"
            ));
        }
        (sum != "*" && sum != ours).then(|| {
            format!(
                "{caller} requests {topic} ({name}) with md5 {sum}, but its publisher on the bus has {ours}: build both \
                 against the same {name}.msg"
            )
        })
    }

    fn send_all(&self, listener: &Listener) -> io::Result<()> {
        let mut stream = &*listener.stream;
        stream.set_write_timeout(Some(STALL))?;
        loop {
            let message = {
                let mut queue = lock(&listener.queue);
                loop {
                    if let Some(message) = queue.messages.pop_front() {
                        break message;
                    }
                    if queue.closed {
                        let _ = stream.shutdown(Shutdown::Both);
                        return Ok(());
                    }
                    let waited = listener.ready.wait_timeout(queue, LOOK);
                    let (back, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                    queue = back;
                    if timeout.timed_out() && is_gone(stream) {
                        return Ok(());
                    }
                }
            };
            match message.send(&self.schema, &mut stream) {
                Ok(_) => {}
                // Its publisher wrote invalid data, which does not affect this subscriber.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    self.counts.failed();
                    tracing::warn!(topic = self.topic, %error, "a message from the bus does not have the topic's type");
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Returns why there is no room for `standing` in addition to these subscribers of a topic.
fn refusal(topic: &str, listeners: &[Standing], standing: Standing) -> Option<String> {
    let unknown = || listeners.iter().filter(|l| !l.known);
    let alike = unknown().filter(|l| l.peer == standing.peer).count();
    if listeners.len() >= MAX_LISTENERS || !standing.known && unknown().count() >= MAX_UNKNOWN {
        Some(format!("{topic} already has {} subscribers", listeners.len()))
    } else if !standing.known && alike >= MAX_OF_UNKNOWN {
        Some(format!(
            "{} already has {alike} subscribers of {topic}; known hosts (`peers`) may have {MAX_LISTENERS}",
            standing.peer
        ))
    } else {
        None
    }
}

/// Whether the other end has closed. It never sends anything, so readable means closed.
fn is_gone(stream: &TcpStream) -> bool {
    use rustix::net::{RecvFlags, recv};
    let mut byte = [0; 1];
    match recv(stream, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((_, n)) => n == 0,
        Err(error) => !matches!(error, rustix::io::Errno::AGAIN | rustix::io::Errno::INTR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::Peer;

    fn standing(host: u8, known: bool) -> Standing {
        Standing {
            peer: Peer::of([10, 0, 0, host].into()),
            known,
            master: false,
        }
    }

    #[test]
    fn listeners_of_one_unknown_host_leave_places_to_others() {
        let mut listeners = Vec::new();
        let mut come = |standing: Standing| {
            let comes = (0..1000).take_while(|_| {
                let fits = refusal("/t", &listeners, standing).is_none();
                listeners.extend(fits.then_some(standing));
                fits
            });
            comes.count()
        };
        let unknown: Vec<usize> = (1..=4).map(|host| come(standing(host, false))).collect();
        assert_eq!(unknown, [MAX_OF_UNKNOWN, MAX_OF_UNKNOWN, MAX_OF_UNKNOWN, 0]);
        assert_eq!(come(standing(9, true)), MAX_LISTENERS - MAX_UNKNOWN);
    }
}
