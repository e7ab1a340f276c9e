//! A local writer: the samples it keeps, and the readers it is matched with (DDSI-RTPS 2.5, section 8.4.9).

mod answer;
mod history;
mod proxy;

use crate::config::{EndpointConfig, Pace, WriteError};
use crate::context::Context;
use crate::qos;
use crate::send::{Change, Job, Target, route};
use crate::timers::Timer;
use crate::wire::encode;
use crate::wire::endpoint::EndpointData;
use crate::wire::ids::{EntityId, Guid};
use crate::wire::inline::InlineQos;
use crate::wire::submessage::Heartbeat;
use crate::wire::time::Timestamp;
use core::time::Duration;
use history::History;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use proxy::{PROXY, ReaderProxy};

/// First interval after a sample at which readers are asked what they have; it doubles until they have everything.
const FIRST_HEARTBEAT: Duration = Duration::from_millis(20);
const SLOWEST_HEARTBEAT: Duration = Duration::from_secs(1);

/// A writer of a user topic or of discovery.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) id: EntityId,
    pub(crate) data: Arc<EndpointData>,
    depth: usize,
    keep_all: bool,
    max_bytes: usize,
    history: History,
    proxies: BTreeMap<Guid, ReaderProxy>,
    /// Destinations that receive each sample once: the addresses of the matched readers.
    routes: Vec<Route>,
    count: u32,
    interval: Duration,
    /// A sample was refused, and the program waits for room.
    refused: bool,
}

/// An address of a participant with matched readers.
#[derive(Debug)]
struct Route {
    target: Target,
    pace: Pace,
    /// The only reader there, or unknown for several.
    reader: EntityId,
    reliable: bool,
    /// The reader whose account is charged.
    payer: Guid,
}

/// A sample to write.
#[derive(Debug)]
pub(crate) struct New {
    pub(crate) payload: Arc<[u8]>,
    pub(crate) key: bool,
    pub(crate) inline: InlineQos,
    pub(crate) timestamp: Option<Timestamp>,
}

impl Writer {
    pub(crate) fn new(id: EntityId, data: Arc<EndpointData>, config: &EndpointConfig) -> Self {
        let (depth, keep_all) = match config.qos.history {
            qos::History::KeepLast(depth) => (depth.max(1) as usize, false),
            qos::History::KeepAll => (config.max_samples.max(1), true),
        };
        Writer {
            id,
            data,
            depth,
            keep_all,
            max_bytes: config.max_bytes.min(u32::MAX as usize),
            history: History::default(),
            proxies: BTreeMap::new(),
            routes: Vec::new(),
            count: 0,
            interval: FIRST_HEARTBEAT,
            refused: false,
        }
    }

    /// Whether samples must stay after they are sent.
    fn keeps(&self) -> bool {
        self.data.qos.keeps() || self.proxies.values().any(|p| p.reliable)
    }

    /// Whether a sample of `len` bytes would be refused.
    pub(crate) fn is_full(&self, len: usize) -> bool {
        self.keep_all
            && self.keeps()
            && (self.history.len() >= self.depth || self.history.bytes().saturating_add(len) > self.max_bytes)
    }

    /// Keeps a sample and sends it to each address once. Returns its number.
    pub(crate) fn write(&mut self, cx: &mut Context<'_>, new: New) -> Result<i64, WriteError> {
        let len = new.payload.len();
        if len > self.max_bytes {
            return Err(WriteError::TooLong {
                len,
                most: self.max_bytes,
            });
        }
        if self.is_full(len) {
            self.refused = true;
            return Err(WriteError::Full);
        }
        let keep = self.keeps();
        while !self.keep_all
            && keep
            && (self.history.len() >= self.depth || self.history.bytes() + len > self.max_bytes)
            && let Some(old) = self.history.pop()
        {
            cx.outbox.cancel(self.id, old.sequence);
        }
        let change = Arc::new(Change {
            sequence: self.history.last() + 1,
            payload: new.payload,
            key: new.key,
            inline: new.inline,
            timestamp: new.timestamp,
        });
        self.history.add(&change, keep);
        for to in &self.routes {
            let charge = self.proxies.get(&to.payer).and_then(ReaderProxy::job);
            // A reliable reader without room requests the sample again.
            let Some(charge) = charge else { continue };
            let mut job = Job::new(
                to.target,
                route(self.id, to.reader, &change),
                Arc::clone(&change),
                charge,
            );
            job.heartbeat = to.reliable;
            cx.outbox.push(cx.now, to.pace, job, self.depth, self.max_bytes);
        }
        if self.routes.iter().any(|r| r.reliable) {
            self.interval = FIRST_HEARTBEAT;
            cx.timers
                .set_earlier(Timer::Writer(self.id), cx.now + FIRST_HEARTBEAT);
        }
        Ok(change.sequence)
    }

    /// Retracts a sample: readers without it receive a GAP.
    pub(crate) fn retract(&mut self, cx: &mut Context<'_>, sequence: i64) {
        if self.history.remove(sequence).is_some() {
            cx.outbox.cancel(self.id, sequence);
        }
    }

    /// Adds a reader. A reliable one requests the samples kept for it; a best-effort one is sent them unasked.
    pub(crate) fn add_reader(
        &mut self,
        cx: &mut Context<'_>,
        guid: Guid,
        mut proxy: ReaderProxy,
        late: bool,
    ) {
        proxy.start = if late && self.data.qos.keeps() {
            self.history.first()
        } else {
            self.history.last() + 1
        };
        proxy.acked = proxy.start - 1;
        if !proxy.reliable {
            for change in self.history.iter().filter(|c| c.sequence >= proxy.start) {
                if let Some(charge) = proxy.job() {
                    let to = route(self.id, guid.entity, change);
                    let job = Job::new(proxy.target, to, Arc::clone(change), charge);
                    cx.outbox
                        .push(cx.now, proxy.pace, job, self.depth, self.max_bytes);
                }
            }
        }
        let (reliable, target, pace) = (proxy.reliable, proxy.target, proxy.pace);
        self.proxies.insert(guid, proxy);
        self.find_routes();
        if reliable {
            let heartbeat = self.heartbeat(guid.entity, false);
            self.send_heartbeat(cx, target, pace, &heartbeat);
            self.interval = FIRST_HEARTBEAT;
            cx.timers
                .set_earlier(Timer::Writer(self.id), cx.now + FIRST_HEARTBEAT);
        }
    }

    /// Forgets a reader. Returns `true` if a program that waits for room has it now.
    pub(crate) fn remove_reader(&mut self, cx: &mut Context<'_>, guid: Guid) -> bool {
        let Some(proxy) = self.proxies.remove(&guid) else {
            return false;
        };
        cx.outbox.forget_reader(self.id, guid.entity, proxy.target);
        self.find_routes();
        self.prune()
    }

    pub(crate) fn readers(&self) -> impl Iterator<Item = Guid> + '_ {
        self.proxies.keys().copied()
    }

    /// Readers that have shown that they know this writer, and best-effort readers, which cannot show it.
    pub(crate) fn mutual(&self) -> impl Iterator<Item = Guid> + '_ {
        let known = self
            .proxies
            .iter()
            .filter(|(_, p)| !p.reliable || p.count.is_some());
        known.map(|(guid, _)| *guid)
    }

    fn find_routes(&mut self) {
        let mut routes: BTreeMap<Target, Route> = BTreeMap::new();
        for (guid, proxy) in &self.proxies {
            routes
                .entry(proxy.target)
                .and_modify(|r| {
                    r.reader = EntityId::UNKNOWN;
                    r.reliable |= proxy.reliable;
                })
                .or_insert(Route {
                    target: proxy.target,
                    pace: proxy.pace,
                    reader: guid.entity,
                    reliable: proxy.reliable,
                    payer: *guid,
                });
        }
        self.routes = routes.into_values().collect();
    }

    /// Drops samples that no reader can still request. Returns `true` if a program that waits for room has it now.
    fn prune(&mut self) -> bool {
        let reliable = self.proxies.values().filter(|p| p.reliable);
        let acked = reliable.map(|p| p.acked).min().unwrap_or(i64::MAX);
        if self.data.qos.keeps() {
            // Late joiners do not need to know that an instance is gone.
            self.history.prune(acked, |c| c.inline.gone);
        } else {
            self.history.prune(acked, |_| true);
        }
        let room = self.refused && !self.is_full(0);
        self.refused &= !room;
        room
    }

    /// Announces the kept samples to one reader or all.
    fn heartbeat(&mut self, reader: EntityId, last_word: bool) -> Heartbeat {
        self.count = self.count.wrapping_add(1);
        Heartbeat {
            reader,
            writer: self.id,
            first: self.history.first(),
            last: self.history.last(),
            count: self.count,
            last_word,
            liveliness: false,
        }
    }

    /// The heartbeat that accompanies a sample. It requests an answer only if samples wait for one.
    pub(crate) fn heartbeat_with_sample(&mut self, reader: EntityId) -> Heartbeat {
        let pressed = self.keep_all && self.history.len() * 2 > self.depth;
        self.heartbeat(reader, !pressed)
    }

    fn send_heartbeat(&self, cx: &mut Context<'_>, target: Target, pace: Pace, heartbeat: &Heartbeat) {
        let mut bytes = Vec::new();
        encode::heartbeat(&mut bytes, heartbeat);
        cx.outbox.control(cx.now, target, pace, bytes);
    }

    /// Asks readers that lack samples what they have, unless these samples are still queued.
    pub(crate) fn on_timer(&mut self, cx: &mut Context<'_>) {
        let last = self.history.last();
        let mut asked: BTreeMap<Target, (Pace, EntityId)> = BTreeMap::new();
        for (guid, proxy) in self.proxies.iter().filter(|(_, p)| p.lacks(last)) {
            asked
                .entry(proxy.target)
                .and_modify(|(_, reader)| *reader = EntityId::UNKNOWN)
                .or_insert((proxy.pace, guid.entity));
        }
        if asked.is_empty() {
            return;
        }
        for (target, (pace, reader)) in asked {
            if !cx.outbox.is_sending(self.id, target) {
                let heartbeat = self.heartbeat(reader, false);
                self.send_heartbeat(cx, target, pace, &heartbeat);
            }
        }
        let at = cx.now + self.interval;
        self.interval = (self.interval * 2).min(SLOWEST_HEARTBEAT);
        cx.timers.set_earlier(Timer::Writer(self.id), at);
    }
}
