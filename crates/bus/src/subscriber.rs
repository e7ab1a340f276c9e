//! The receiving end of a topic.

use crate::bus::Bus;
use crate::connection::Connection;
use crate::folder::SocketFile;
use crate::frame::{Info, Role};
use crate::house::{Command, Core};
use crate::losses::Losses;
use crate::message::Message;
use crate::publisher::{CreateError, check_option};
use crate::ring::{self, Consumer, Geometry};
use crate::sys;
use crate::sys::fork::Birth;
use crate::topic::{Refusal, RefusalLog, TopicType};
use crate::waitset::{WaitSet, Waiter};
use stats::{DropReason, Drops};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How a subscriber queues and waits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SubscriberOptions {
    /// Messages that each publisher may queue; then its oldest makes room. Default 16, at most 4,096.
    pub depth: u32,
    /// Messages of each publisher that may be held (taken and not dropped) at a time. Default 16, at most 4,096.
    pub max_held: u32,
    /// Bytes of each publisher's memory that may be queued and held. Default: what the publisher allows.
    pub max_held_bytes: u64,
    /// Wake through this set instead of a doorbell of its own.
    pub wait_set: Option<WaitSet>,
}

impl Default for SubscriberOptions {
    fn default() -> Self {
        SubscriberOptions {
            depth: 16,
            max_held: 16,
            max_held_bytes: u64::MAX,
            wait_set: None,
        }
    }
}

impl SubscriberOptions {
    /// Sets the depth of the queue.
    #[must_use]
    pub fn with_depth(mut self, depth: u32) -> Self {
        self.depth = depth;
        self
    }

    /// Sets how many messages may be held.
    #[must_use]
    pub fn with_max_held(mut self, max_held: u32) -> Self {
        self.max_held = max_held;
        self
    }

    /// Sets how many bytes may be queued and held.
    #[must_use]
    pub fn with_max_held_bytes(mut self, bytes: u64) -> Self {
        self.max_held_bytes = bytes;
        self
    }

    /// Wakes through `set`.
    #[must_use]
    pub fn with_wait_set(mut self, set: &WaitSet) -> Self {
        self.wait_set = Some(set.clone());
        self
    }
}

/// The receiving end of a topic.
///
/// All methods may be called from any thread.
#[derive(Debug)]
pub struct Subscriber {
    core: Arc<SubCore>,
    /// Removes the socket from the folder.
    file: Option<SocketFile>,
    /// Keeps the housekeeping thread.
    bus: Bus,
}

impl Subscriber {
    pub(crate) fn new(bus: &Bus, topic: TopicType, options: SubscriberOptions) -> Result<Self, CreateError> {
        topic.check()?;
        let max = u64::from(Geometry::MAX);
        check_option("depth", u64::from(options.depth), 1, max)?;
        check_option("max_held", u64::from(options.max_held), 1, max)?;
        let shared = bus.shared();
        if shared.birth.is_foreign() {
            return Err(CreateError::Forked);
        }
        let system = |what| move |source| CreateError::System { what, source };
        let (waiter, alone) = match &options.wait_set {
            Some(set) => (set.waiter.clone(), false),
            None => {
                let waiter = Waiter::new(shared.config.group.is_some(), shared.birth);
                (Arc::new(waiter.map_err(system("making a doorbell"))?), true)
            }
        };
        let core = Arc::new(SubCore {
            id: sys::unique_id(),
            topic,
            refusals: RefusalLog::default(),
            depth: options.depth,
            max_held: options.max_held,
            max_held_bytes: options.max_held_bytes,
            waiter,
            alone,
            birth: shared.birth,
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let (listener, file) = shared
            .folder
            .bind(&core.topic.topic, Role::Subscriber, core.id)
            .map_err(system("binding its socket"))?;
        if !alone {
            core.waiter.join(&core);
        }
        shared.command(Command::Add(
            core.id,
            listener,
            Core::Subscriber(Arc::downgrade(&core)),
        ));
        Ok(Subscriber {
            core,
            file: Some(file),
            bus: bus.clone(),
        })
    }

    /// Takes a message if one is queued: the oldest of all publishers, by the moment of queueing. Never blocks.
    ///
    /// When it finds nothing and the subscriber has a doorbell of its own, the descriptor stops being readable
    /// until something comes. Readiness is level-triggered: a loop that polls [`Subscriber::as_fd`] and takes
    /// one message each time misses nothing. With a [`WaitSet`] see [`WaitSet::rearm`].
    pub fn take(&self) -> Result<Option<Message>, TakeError> {
        self.core.take(self.core.alone)
    }

    /// As [`Subscriber::take`], but finding nothing leaves the doorbell as it is: for callers that spin, so that
    /// publishers need not ring. Before sleeping on the descriptor call [`Subscriber::take`].
    pub fn take_busy(&self) -> Result<Option<Message>, TakeError> {
        self.core.take(false)
    }

    /// Takes a message, waiting for one at most `timeout`. Interrupted waits go on.
    ///
    /// Of a subscriber in a [`WaitSet`] it waits on the whole set's doorbell, and so also wakes for the others.
    pub fn take_timeout(&self, timeout: Duration) -> Result<Option<Message>, TakeError> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            if let Some(message) = self.core.take(false)? {
                return Ok(Some(message));
            }
            if !self.wait_until(deadline)? {
                return Ok(None);
            }
        }
    }

    /// Waits until a message can be taken; false if `timeout` passed first. True also when messages are queued
    /// but as many are held as may be: taking then says so.
    pub fn wait(&self, timeout: Duration) -> Result<bool, TakeError> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    /// The topic and its type.
    pub fn topic(&self) -> &TopicType {
        &self.core.topic
    }

    /// Unique among all endpoints of the bus.
    pub fn id(&self) -> u64 {
        self.core.id
    }

    /// The bus it is on.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// How many publishers are connected.
    pub fn publisher_count(&self) -> usize {
        if self.core.birth.is_foreign() {
            return 0;
        }
        self.core.lock().alive()
    }

    /// Blocks until at least `n` publishers are connected; false if `timeout` passed first.
    pub fn wait_for_publishers(&self, n: usize, timeout: Duration) -> bool {
        if self.core.birth.is_foreign() {
            return false;
        }
        match self
            .core
            .changed
            .wait_timeout_while(self.core.lock(), timeout, |s| s.alive() < n)
        {
            Ok((_, waited)) => !waited.timed_out(),
            Err(poisoned) => !poisoned.into_inner().1.timed_out(),
        }
    }

    /// What it has received and lost.
    pub fn stats(&self) -> SubscriberStats {
        if self.core.birth.is_foreign() {
            return SubscriberStats::default();
        }
        let state = self.core.lock();
        let mut stats = SubscriberStats {
            received: state.received,
            ..SubscriberStats::default()
        };
        let mut drops = state.departed;
        for source in &state.sources {
            let mut losses = source.connection.losses();
            losses.add(DropReason::Malformed, source.malformed);
            drops.merge(&losses);
            stats.held += source.connection.held();
            if source.connection.has_ended() {
                continue;
            }
            stats.publishers.push(PublisherPeer {
                id: source.connection.publisher,
                pid: source.connection.peer.pid,
                uid: source.connection.peer.uid,
                received: source.received,
                held: source.connection.held(),
                drops: losses.drops(),
            });
        }
        stats.drops = drops.drops();
        stats
    }

    /// The last 16 peers that did not connect, and why.
    pub fn refusals(&self) -> Vec<Refusal> {
        if self.core.birth.is_foreign() {
            Vec::new()
        } else {
            self.core.refusals.list()
        }
    }

    fn wait_until(&self, deadline: Option<Instant>) -> Result<bool, TakeError> {
        if self.core.birth.is_foreign() {
            return Err(TakeError::Forked);
        }
        let set = (!self.core.alone).then(|| WaitSet {
            waiter: self.core.waiter.clone(),
        });
        loop {
            let ready = match &set {
                None => self.core.rearm(),
                // Another member's messages keep the doorbell ringing; they must not keep us from sleeping.
                Some(set) => {
                    self.core.is_ready() || {
                        set.rearm()?;
                        self.core.is_ready()
                    }
                }
            };
            if ready || self.core.lock().is_stuck() {
                return Ok(true);
            }
            if !self.core.waiter.wait(deadline)? {
                return Ok(false);
            }
            if set.is_some() {
                // Do not spin at full speed while others let their messages lie.
                std::thread::yield_now();
                if deadline.is_some_and(|d| Instant::now() >= d) && !self.core.is_ready() {
                    return Ok(false);
                }
            }
        }
    }
}

impl AsFd for Subscriber {
    /// Readable when something can be taken: for select, poll, epoll. Do not read from it.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.core.waiter.waker.as_fd()
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        if self.core.birth.is_foreign() {
            return;
        }
        self.file = None;
        self.bus.shared().command(Command::Remove(self.core.id));
        let sources = std::mem::take(&mut self.core.lock().sources);
        for source in sources {
            // Messages that are still held keep the connection; the publisher must know that no more are taken.
            source.connection.close();
        }
    }
}

/// What the subscriber's handle and the housekeeping thread share.
#[derive(Debug)]
pub(crate) struct SubCore {
    pub(crate) id: u64,
    pub(crate) topic: TopicType,
    pub(crate) refusals: RefusalLog,
    pub(crate) depth: u32,
    pub(crate) max_held: u32,
    pub(crate) max_held_bytes: u64,
    pub(crate) waiter: Arc<Waiter>,
    /// Whether the doorbell is this subscriber's alone.
    alone: bool,
    birth: Birth,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    sources: Vec<Source>,
    received: u64,
    departed: Losses,
    /// Publishers that broke the rules; the last few.
    distrusted: Vec<u64>,
}

/// One publisher's ring.
#[derive(Debug)]
struct Source {
    connection: Arc<Connection>,
    consumer: Consumer,
    /// Losses as of the last take.
    seen: Losses,
    received: u64,
    malformed: u64,
    /// How often in a row another source was preferred although this one had a message.
    passed_over: u32,
}

/// A publisher that claims that its messages are the oldest cannot keep others waiting for longer than this.
const PATIENCE: u32 = 64;
/// Dead publishers whose queues are kept until they were taken from.
const MAX_DEAD: usize = 8;

impl SubCore {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, arm: bool) -> Result<Option<Message>, TakeError> {
        if self.birth.is_foreign() {
            return Err(TakeError::Forked);
        }
        let mut guard = self.lock();
        let state = &mut *guard;
        loop {
            while let Some(i) = state.oldest() {
                if let Some(message) = state.take_from(i) {
                    return Ok(Some(message));
                }
                if state.sources.len() <= 1 {
                    break;
                }
            }
            state.forget_dead();
            if arm && self.rearm_locked(state) {
                continue;
            }
            if state.is_stuck() {
                let held = state.sources.iter().map(|s| s.connection.held()).sum();
                return Err(TakeError::HoldLimit { held });
            }
            return Ok(None);
        }
    }

    fn rearm(&self) -> bool {
        self.rearm_locked(&mut self.lock())
    }

    fn rearm_locked(&self, state: &mut State) -> bool {
        let state = std::cell::RefCell::new(state);
        ring::rearm(
            &self.waiter.waker,
            || state.borrow_mut().is_ready(),
            |armed| state.borrow().arm(armed),
            <[AtomicU64] as ring::Memory>::fence,
        )
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.lock().is_ready()
    }

    pub(crate) fn arm(&self, armed: bool) {
        self.lock().arm(armed);
    }

    /// A publisher welcomed us.
    pub(crate) fn add(&self, connection: Arc<Connection>) {
        let mut state = self.lock();
        let consumer = Consumer::new(connection.geometry);
        let seen = Losses::default();
        let ready = connection.clone();
        state.sources.push(Source {
            connection,
            consumer,
            seen,
            received: 0,
            malformed: 0,
            passed_over: 0,
        });
        let dead = state.sources.iter().filter(|s| s.connection.has_ended()).count();
        if dead > MAX_DEAD
            && let Some(i) = state.sources.iter().position(|s| s.connection.has_ended())
        {
            state.forget(i);
        }
        // What was queued since the publisher let us in may have rung before there was anything to take.
        if !ring::is_armed(ready.ring()) {
            self.waiter.ring();
        }
        drop(state);
        ready.ready();
        self.changed.notify_all();
    }

    /// Whether publisher `publisher` is connected, or must not be.
    pub(crate) fn is_connected(&self, publisher: u64) -> bool {
        let state = self.lock();
        state.distrusted.contains(&publisher)
            || state
                .sources
                .iter()
                .any(|s| s.connection.publisher == publisher && !s.connection.has_ended())
    }

    /// A publisher is gone; what it queued can still be taken.
    pub(crate) fn publisher_ended(&self) {
        self.lock().forget_dead();
        self.changed.notify_all();
    }

    pub(crate) fn info(&self, domain: u32) -> Info {
        let state = self.lock();
        Info {
            role: Role::Subscriber,
            domain,
            id: self.id,
            connected: state.alive() as u32,
            messages: state.received,
            memory: 0,
            topic: self.topic.clone(),
        }
    }
}

impl State {
    fn alive(&self) -> usize {
        self.sources.iter().filter(|s| !s.connection.has_ended()).count()
    }

    /// The source whose first message was queued first; the only one, if there is only one.
    fn oldest(&mut self) -> Option<usize> {
        if let [only] = &mut self.sources[..] {
            // Whether it has a message the take itself finds out.
            return (!only.connection.is_at_limit()).then_some(0);
        }
        let mut best: Option<(u32, u64, usize)> = None;
        for (i, source) in self.sources.iter_mut().enumerate() {
            let Some(time) = source.peek() else { continue };
            // First those that waited too long, then by time.
            let rank = u32::from(source.passed_over < PATIENCE);
            source.passed_over = source.passed_over.saturating_add(1);
            if best.is_none_or(|(r, t, _)| (rank, time) < (r, t)) {
                best = Some((rank, time, i));
            }
        }
        let (.., i) = best?;
        self.sources[i].passed_over = 0;
        Some(i)
    }

    /// `None` if the message was dropped in the meantime, or is malformed.
    fn take_from(&mut self, i: usize) -> Option<Message> {
        let source = &mut self.sources[i];
        let connection = &source.connection;
        let taken = source.consumer.take(connection.ring())?;
        crate::hooks::step("taken");
        connection.hold();
        let Some(parsed) = connection.parse(&taken) else {
            connection.release(&taken, Vec::new());
            source.malformed += 1;
            tracing::warn!(
                pid = connection.peer.pid,
                publisher = connection.publisher,
                "left a publisher that queued a malformed block"
            );
            connection.leave();
            self.distrusted.push(connection.publisher);
            if self.distrusted.len() > 64 {
                self.distrusted.remove(0);
            }
            self.forget(i);
            return None;
        };
        let mut lost = Losses::default();
        // The sum stands beside the message; the counts, which the publisher shares with nobody else, only where
        // it changed.
        if taken.place.lost != source.seen.total() {
            let losses = connection.losses();
            lost = losses.since(&source.seen);
            source.seen = losses;
        }
        source.received += 1;
        self.received += 1;
        Some(Message::new(connection.clone(), taken, parsed, lost))
    }

    fn is_ready(&mut self) -> bool {
        self.sources.iter_mut().any(|s| s.peek().is_some())
    }

    /// Whether messages are queued that cannot be taken before others are dropped.
    fn is_stuck(&mut self) -> bool {
        let mut sources = self.sources.iter_mut();
        sources.any(|s| s.connection.is_at_limit() && s.consumer.peek(s.connection.ring()).is_some())
    }

    fn arm(&self, armed: bool) {
        self.sources
            .iter()
            .for_each(|s| ring::arm(s.connection.ring(), armed));
    }

    /// Lets go of publishers that are gone and whose queues are empty.
    fn forget_dead(&mut self) {
        let mut i = 0;
        while i < self.sources.len() {
            let s = &mut self.sources[i];
            if s.connection.has_ended() && s.consumer.peek(s.connection.ring()).is_none() {
                self.forget(i);
            } else {
                i += 1;
            }
        }
    }

    fn forget(&mut self, i: usize) {
        let source = self.sources.remove(i);
        let mut losses = source.connection.losses();
        losses.add(DropReason::Malformed, source.malformed);
        // Only those that died in great numbers, unread, leave something here.
        losses.add(
            DropReason::QueueFull,
            source.consumer.backlog(source.connection.ring()),
        );
        self.departed.merge(&losses);
    }
}

impl Source {
    /// When the oldest message that may be taken was queued.
    fn peek(&mut self) -> Option<u64> {
        if self.connection.is_at_limit() {
            None
        } else {
            self.consumer.peek(self.connection.ring())
        }
    }
}

/// What a subscriber has received and lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriberStats {
    /// Messages taken.
    pub received: u64,
    /// Messages taken and not yet dropped.
    pub held: usize,
    /// What was lost, as the publishers count it, departed ones included.
    pub drops: Drops,
    /// Each connected publisher.
    pub publishers: Vec<PublisherPeer>,
}

/// A connected publisher, as the subscriber sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublisherPeer {
    /// Its identity.
    pub id: u64,
    /// Its process (0 if it lives in another PID namespace).
    pub pid: i32,
    /// Its user.
    pub uid: u32,
    /// Messages taken from it.
    pub received: u64,
    /// Messages of it that are held.
    pub held: usize,
    /// What it dropped for this subscriber.
    pub drops: Drops,
}

/// Why nothing could be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TakeError {
    /// Messages are queued, but as many are held as may be.
    #[error("{held} messages are held, the most allowed: drop one, or raise max_held")]
    HoldLimit {
        /// Messages held.
        held: usize,
    },
    /// Waiting failed.
    #[error("cannot wait: {source}")]
    System {
        /// What the system said.
        source: std::io::Error,
    },
    /// The process was forked after the subscriber was made.
    #[error("this subscriber belongs to the parent process: make a new one after fork")]
    Forked,
}
