//! Received telemetry: delivers it to callbacks and queues, and keeps the latest value of each kind and channel.

use super::core::Core;
use crate::clock::now;
use crate::inbox::{Inbox, Queue};
use crate::kind::TelemetryKind;
use crate::own;
use crate::sync::{lock, read, write};
use crate::transport::{ControllerSink, Listen, Stream, Wire};
use crate::{decode, telemetry};
use prost::bytes::Bytes;
use prost::{DecodeError, Message};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, RwLock, Weak};
use std::time::Duration;

/// Maximum bytes of the latest values that are kept, of all kinds together.
const KEPT_BYTES: usize = 256 << 20;
/// Maximum frames, and their bytes, that wait until the robot has announced the meaning of their numbers.
const WAITING: usize = 64;
const WAITING_BYTES: usize = 32 << 20;

/// Metadata of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// 0 where there is only one.
    pub channel: u8,
    /// Number that the robot counts up per kind and channel, from 1; 0 on version 6's wire, which has none.
    pub sequence: u64,
    /// Number of missing values of this kind and channel since the first received one.
    pub lost: u64,
}

type Callback = Arc<Mutex<dyn FnMut(&[u8], Info) + Send>>;

#[derive(Default)]
pub(crate) struct Streams {
    known: Mutex<BTreeMap<String, BTreeMap<u8, Arc<Heard>>>>,
    kept: Mutex<usize>,
    waiting: Mutex<VecDeque<Bytes>>,
    /// By kind and channel, with the kind's priority. `None`: everything.
    watched: Mutex<Option<BTreeMap<(String, u8), u8>>>,
}

#[derive(Default)]
struct Heard {
    latest: Mutex<Latest>,
    callbacks: RwLock<Vec<Callback>>,
}

#[derive(Default)]
struct Latest {
    run: u64,
    sequence: u64,
    lost: u64,
    body: Option<Bytes>,
}

impl Streams {
    fn get(&self, kind: &str, channel: u8) -> Arc<Heard> {
        let mut known = lock(&self.known);
        // The key is created only once: frames are frequent.
        if let Some(heard) = known.get(kind).and_then(|channels| channels.get(&channel)) {
            return heard.clone();
        }
        known
            .entry(kind.to_owned())
            .or_default()
            .entry(channel)
            .or_default()
            .clone()
    }

    pub(crate) fn clear(&self) {
        let known = std::mem::take(&mut *lock(&self.known));
        for heard in known.values().flat_map(BTreeMap::values) {
            write(&heard.callbacks).clear();
        }
    }

    fn is_watched(&self, kind: &str, channel: u8) -> bool {
        lock(&self.watched)
            .as_ref()
            .is_none_or(|w| w.contains_key(&(kind.to_owned(), channel)))
    }

    fn wait(&self, frame: Bytes) -> bool {
        let mut waiting = lock(&self.waiting);
        let bytes: usize = waiting.iter().map(Bytes::len).sum();
        let room = waiting.len() < WAITING && bytes + frame.len() <= WAITING_BYTES;
        if room {
            waiting.push_back(frame);
        }
        room
    }
}

impl Core {
    /// Handles a telemetry frame of Ropewalk's own wire.
    pub(crate) fn receive_telemetry(self: &Arc<Self>, frame: Bytes) {
        let arrived = now();
        let Ok(telemetry) = own::Telemetry::decode(frame.clone()) else {
            return self.counters.dropped("malformed", 1);
        };
        let name = {
            let mut state = lock(&self.state);
            state.stamps.heard(telemetry.run, telemetry.stamp, arrived);
            let known = state.known.as_ref().filter(|known| known.run == telemetry.run);
            known
                .and_then(|known| known.telemetry_names.get(&telemetry.number))
                .cloned()
        };
        self.mark_heard(arrived);
        let Some(name) = name else {
            // The frame is from a robot that was not greeted, or of a kind that it did not have then.
            if !self.streams.wait(frame) {
                self.counters.dropped("unknown_kind", 1);
            }
            self.forget_meeting();
            return self.greet();
        };
        self.deliver(&name, &telemetry);
    }

    /// The robot has announced the meaning of its numbers: handles the frames that waited, or drops those without a
    /// meaning.
    pub(crate) fn deliver_waiting(&self) {
        let waited = std::mem::take(&mut *lock(&self.streams.waiting));
        let Some(known) = lock(&self.state).known.clone() else {
            return;
        };
        for frame in waited {
            let Ok(telemetry) = own::Telemetry::decode(frame) else {
                continue;
            };
            match known.telemetry_names.get(&telemetry.number) {
                Some(name) if telemetry.run == known.run => self.deliver(name, &telemetry),
                _ => self.counters.dropped("unknown_kind", 1),
            }
        }
    }

    fn deliver(&self, name: &str, telemetry: &own::Telemetry) {
        let Ok(channel) = u8::try_from(telemetry.channel) else {
            return self.counters.dropped("malformed", 1);
        };
        let sequence = Some((telemetry.run, telemetry.sequence));
        self.deliver_body(name, channel, sequence, telemetry.body.clone());
    }

    /// Delivers a value to its callbacks and queues. `sequence` is the robot's run and sequence number, if the wire has
    /// them.
    pub(crate) fn deliver_body(&self, name: &str, channel: u8, sequence: Option<(u64, u64)>, body: Bytes) {
        if !self.streams.is_watched(name, channel) {
            return;
        }
        self.counters.received(name, body.len(), now());
        let heard = self.streams.get(name, channel);
        let info = {
            let mut latest = lock(&heard.latest);
            if let Some((run, sequence)) = sequence {
                if latest.run != run {
                    latest.run = run;
                    latest.sequence = sequence.saturating_sub(1);
                }
                if sequence <= latest.sequence {
                    return self.counters.dropped("out_of_order", 1);
                }
                let lost = sequence - latest.sequence - 1;
                if lost > 0 {
                    latest.lost = latest.lost.saturating_add(lost);
                    self.counters.dropped("lost_on_the_way", lost);
                }
                latest.sequence = sequence;
            }
            let mut kept = lock(&self.streams.kept);
            *kept -= latest.body.take().map_or(0, |b| b.len());
            if *kept + body.len() <= KEPT_BYTES {
                *kept += body.len();
                latest.body = Some(body.clone());
            } else {
                self.counters.dropped("not_kept", 1);
            }
            Info {
                channel,
                sequence: latest.sequence,
                lost: latest.lost,
            }
        };
        let callbacks = read(&heard.callbacks).clone();
        for callback in callbacks {
            self.counters
                .guarded("a callback for telemetry", || lock(&callback)(&body, info));
        }
    }

    pub(crate) fn latest<K: TelemetryKind>(&self, channel: u8) -> Option<K::Body> {
        decode::body(K::NAME, self.latest_kind(&telemetry::Entry::of::<K>(), channel)?).ok()
    }

    pub(crate) fn latest_kind(&self, kind: &telemetry::Entry, channel: u8) -> Option<Bytes> {
        self.names.learn(kind);
        let heard = self.streams.get(kind.name, channel);
        lock(&heard.latest).body.clone()
    }

    pub(crate) fn on<K: TelemetryKind>(
        self: &Arc<Self>,
        channel: u8,
        mut callback: impl FnMut(K::Body, &Info) + Send + 'static,
    ) {
        let parse = move |body: &[u8], info: &Info| {
            decode::body::<K::Body>(K::NAME, body).map(|body| callback(body, info))
        };
        self.on_kind(&telemetry::Entry::of::<K>(), channel, parse);
    }

    pub(crate) fn on_kind(
        self: &Arc<Self>,
        kind: &telemetry::Entry,
        channel: u8,
        mut callback: impl FnMut(&[u8], &Info) -> Result<(), DecodeError> + Send + 'static,
    ) {
        let core: Weak<Core> = Arc::downgrade(self);
        let callback = move |body: &[u8], info: Info| {
            if callback(body, &info).is_err()
                && let Some(core) = core.upgrade()
            {
                core.counters.dropped("malformed", 1);
            }
        };
        self.names.learn(kind);
        write(&self.streams.get(kind.name, channel).callbacks).push(Arc::new(Mutex::new(callback)));
        let listed = lock(&self.streams.watched).is_some();
        if listed {
            self.watch_kind(kind, channel);
        }
    }

    pub(crate) fn inbox<K: TelemetryKind>(self: &Arc<Self>, channel: u8, queue: Queue) -> TelemetryQueue<K> {
        let inbox = Arc::new(Inbox::new(queue));
        let (own, core) = (inbox.clone(), Arc::downgrade(self));
        self.on::<K>(channel, move |body, info| {
            if own.push((body, *info))
                && let Some(core) = core.upgrade()
            {
                core.counters.dropped("not_polled", 1);
            }
        });
        TelemetryQueue(inbox)
    }

    pub(crate) fn watch<K: TelemetryKind>(&self, channel: u8) {
        self.watch_kind(&telemetry::Entry::of::<K>(), channel);
    }

    fn watch_kind(&self, kind: &telemetry::Entry, channel: u8) {
        let key = (kind.name.to_owned(), channel);
        lock(&self.streams.watched)
            .get_or_insert_default()
            .insert(key, kind.priority);
        self.listen();
    }

    pub(crate) fn unwatch<K: TelemetryKind>(&self, channel: u8) {
        lock(&self.streams.watched)
            .get_or_insert_default()
            .remove(&(K::NAME.to_owned(), channel));
        self.listen();
    }

    pub(crate) fn watch_all(&self) {
        lock(&self.streams.watched).take();
        self.listen();
    }

    pub(crate) fn watched(&self) -> Option<Vec<(String, u8)>> {
        lock(&self.streams.watched)
            .as_ref()
            .map(|w| w.keys().cloned().collect())
    }

    fn listen(&self) {
        let watched = lock(&self.streams.watched).clone();
        let streams: Option<Vec<Stream<'_>>> = watched.as_ref().map(|watched| {
            let streams = watched.iter();
            streams
                .map(|((kind, channel), priority)| Stream {
                    kind,
                    channel: *channel,
                    priority: *priority,
                })
                .collect()
        });
        for end in &self.telemetry {
            end.listen(match &streams {
                None => Listen::All,
                Some(streams) => Listen::To(streams),
            });
        }
    }
}

/// Values of one kind and channel that wait to be taken: see [`Controller::queue`](super::Controller::queue).
pub struct TelemetryQueue<K: TelemetryKind>(Arc<Inbox<(K::Body, Info)>>);

impl<K: TelemetryKind> TelemetryQueue<K> {
    /// Returns the oldest value, without blocking.
    pub fn try_take(&self) -> Option<(K::Body, Info)> {
        self.0.try_take()
    }

    /// Returns the oldest value; blocks until there is one, at most for `timeout`.
    pub fn take(&self, timeout: Duration) -> Option<(K::Body, Info)> {
        self.0.take(timeout)
    }
}

impl<K: TelemetryKind> std::fmt::Debug for TelemetryQueue<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TelemetryQueue({})", K::NAME)
    }
}

/// The interface through which transports call a controller.
pub(super) struct Sink {
    pub(super) core: Arc<Core>,
    /// Whether telemetry of this end is delivered.
    pub(super) telemetry: bool,
    pub(super) wire: Wire,
}

impl ControllerSink for Sink {
    fn telemetry(&self, frame: &[u8]) {
        if !self.telemetry || self.core.has_ended() {
            return;
        }
        match self.wire {
            Wire::Own => self.core.receive_telemetry(Bytes::copy_from_slice(frame)),
            Wire::V6 => self.core.receive_telemetry_v6(frame),
        }
    }

    fn lost(&self, frames: u64) {
        self.core.counters.dropped("lost_by_transport", frames);
    }

    fn connected(&self, connected: bool) {
        if connected {
            self.core.reachable();
        }
    }
}
