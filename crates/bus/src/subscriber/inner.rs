//! What the subscriber's handle and the housekeeping thread share.

use super::fetched::Fetched;
use super::options::SubscriberOptions;
use super::sources::{Source, State};
use super::{PublisherPeer, SubscriberStats, TakeError};
use crate::budget::Holder;
use crate::connection::Connection;
use crate::detail::{EndpointDetail, SubscriberInfo};
use crate::frame::Info;
use crate::losses::Losses;
use crate::message::Message;
use crate::ring::{self, Consumer};
use crate::sys;
use crate::sys::fork::Birth;
use crate::sys::process::Peer;
use crate::topic::{RefusalLog, TopicType};
use crate::waitset::{Changed, Waiter};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What the subscriber's handle and the housekeeping thread share.
#[derive(Debug)]
pub(crate) struct SubCore {
    pub(crate) id: u64,
    pub(crate) topic: TopicType,
    pub(crate) refusals: RefusalLog,
    pub(crate) options: SubscriberOptions,
    pub(crate) waiter: Arc<Waiter>,
    /// Whether the doorbell is this subscriber's alone.
    pub(super) alone: bool,
    pub(super) birth: Birth,
    pub(super) state: Mutex<State>,
    pub(super) changed: Changed,
    /// Code that reads what is taken, to be fetched after waking.
    pub(super) readers: Fetched,
}

/// Publishers that one subscriber takes from. Each costs a ring of the subscriber's own depth, and a socket.
const MAX_PUBLISHERS: usize = 1024;
/// Dead publishers whose queues are kept until they were taken from.
pub(super) const MAX_DEAD: usize = 8;

impl SubCore {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self, arm: bool) -> Result<Option<Message>, TakeError> {
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

    /// Fetches the code that takes and reads a message all at once, right after waking: fetched line by line as it runs, it
    /// takes longer than it runs.
    pub(super) fn fetch_code(&self) {
        /// About as long as the straight path through taking, in bytes.
        const TAKE: usize = 2560;
        /// With what stands beside it: the consumer's other functions.
        const NEXT: usize = 1024;
        sys::prefetch(Self::take as *const u8, TAKE);
        sys::prefetch(Consumer::next::<[AtomicU64]> as *const u8, NEXT);
        self.readers.fetch();
    }

    pub(super) fn rearm(&self) -> bool {
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

    /// Looks for messages until `end` without being rung: publishers make no system call meanwhile. False if there
    /// is none, or the wait was interrupted.
    pub(super) fn spin(&self, end: Instant) -> bool {
        let state = self.lock();
        if !self.waiter.has_sleepers() {
            state.arm(false);
        }
        drop(state);
        loop {
            if self.is_ready() {
                return true;
            }
            if self.waiter.is_interrupted() || Instant::now() >= end {
                return false;
            }
            std::hint::spin_loop();
        }
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
            segment: Default::default(),
            seen,
            next: 1,
            last: 0,
            received: 0,
            malformed: 0,
            crowded: 0,
            unmapped: 0,
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

    /// Whether there is a place for one more publisher, of `peer`; if not, why.
    pub(crate) fn admits(&self, peer: Peer) -> Result<(), String> {
        let state = self.lock();
        let (all, max) = (state.alive(), MAX_PUBLISHERS);
        if all >= max {
            return Err(format!(
                "the subscriber has {max} publishers, the most it accepts"
            ));
        }
        let holder = Holder::of(peer);
        let alive = state.sources.iter().filter(|s| !s.connection.has_ended());
        let has = alive.filter(|s| s.connection.holder() == holder).count();
        if !holder.may_have_another(has, max) {
            return Err(format!(
                "{holder} has {has} of the subscriber's {max} places for publishers, and gets no more"
            ));
        }
        Ok(())
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

    /// The number of the last message that was taken from `publisher` in a connection that ended, 0 if none:
    /// whoever connects again must not get a message twice.
    pub(crate) fn last_taken(&self, publisher: u64) -> u64 {
        let state = self.lock();
        let kept = state
            .sources
            .iter()
            .filter(|s| s.connection.publisher == publisher);
        kept.map(|s| s.last)
            .chain(
                state
                    .left
                    .iter()
                    .filter(|(id, _)| *id == publisher)
                    .map(|(_, n)| *n),
            )
            .max()
            .unwrap_or(0)
    }

    /// A publisher is gone; what it queued can still be taken.
    pub(crate) fn publisher_ended(&self) {
        let mut state = self.lock();
        state.forget_dead();
        // It may have died between queueing and ringing.
        if state.is_ready() {
            self.waiter.ring();
        }
        drop(state);
        self.changed.notify_all();
    }

    pub(super) fn stats(&self) -> SubscriberStats {
        let state = self.lock();
        let mut stats = SubscriberStats {
            received: state.received,
            ..SubscriberStats::default()
        };
        let mut drops = state.departed;
        for source in &state.sources {
            let losses = source.losses();
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

    pub(crate) fn info(&self, domain: u32) -> Info {
        let stats = self.stats();
        let options = &self.options;
        Info {
            domain,
            id: self.id,
            connected: stats.publishers.len() as u32,
            messages: stats.received,
            memory: 0,
            topic: self.topic.clone(),
            detail: EndpointDetail::Subscriber(SubscriberInfo {
                depth: options.depth,
                max_held: options.max_held,
                queue_policy: options.queue_policy,
                history: options.history,
                held: stats.held as u32,
                drops: stats.drops,
            }),
            refusals: self.refusals.reasons(),
        }
    }
}
