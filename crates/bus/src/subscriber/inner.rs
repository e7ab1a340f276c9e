//! State that the subscriber's handle and the housekeeping thread share.

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

/// State that the subscriber's handle and the housekeeping thread share.
#[derive(Debug)]
pub(crate) struct SubCore {
    pub(crate) id: u64,
    pub(crate) topic: TopicType,
    pub(crate) refusals: RefusalLog,
    pub(crate) options: SubscriberOptions,
    pub(crate) waiter: Arc<Waiter>,
    /// Whether the doorbell belongs to this subscriber alone.
    pub(super) alone: bool,
    pub(super) birth: Birth,
    pub(super) state: Mutex<State>,
    pub(super) changed: Changed,
    /// Code that reads taken messages, to be prefetched after waking.
    pub(super) readers: Fetched,
}

/// Maximum number of publishers that one subscriber takes from. Each costs a ring of the subscriber's own
/// depth, and a socket.
const MAX_PUBLISHERS: usize = 1024;
/// Number of dead publishers whose queues are kept until they are empty.
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

    /// Prefetches the code that takes and reads a message in one go, right after waking. Fetching it line by
    /// line as it runs takes longer than running it.
    pub(super) fn fetch_code(&self) {
        /// Approximate length of the straight path through taking, in bytes.
        const TAKE: usize = 2560;
        /// The consumer's other functions, which are adjacent.
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

    /// Checks for messages until `end` without the doorbell, so publishers make no system call in that time.
    /// Returns false if there is none or the wait was interrupted.
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

    /// Adds a publisher that accepted this subscriber.
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
            held_too_many: 0,
            unmapped: 0,
            passed_over: 0,
        });
        let dead = state.sources.iter().filter(|s| s.connection.has_ended()).count();
        if dead > MAX_DEAD
            && let Some(i) = state.sources.iter().position(|s| s.connection.has_ended())
        {
            state.forget(i);
        }
        // Messages queued since the publisher accepted this subscriber may have rung before anything could be
        // taken.
        if !ring::is_armed(ready.ring()) {
            self.waiter.ring();
        }
        drop(state);
        ready.ready();
        self.changed.notify_all();
    }

    /// Whether there is room for one more publisher of `peer`; the error says why not.
    pub(crate) fn admits(&self, peer: Peer) -> Result<(), String> {
        let state = self.lock();
        let (all, max) = (state.alive(), MAX_PUBLISHERS);
        if all >= max {
            return Err(format!(
                "the subscriber already has {max} publishers, which is its limit"
            ));
        }
        let holder = Holder::of(peer);
        let alive = state.sources.iter().filter(|s| !s.connection.has_ended());
        let has = alive.filter(|s| s.connection.holder() == holder).count();
        if !holder.may_have_another(has, max) {
            return Err(format!(
                "{holder} has {has} of the subscriber's {max} places for publishers, which is its limit"
            ));
        }
        Ok(())
    }

    /// Whether publisher `publisher` is connected, or must never be.
    pub(crate) fn is_connected(&self, publisher: u64) -> bool {
        let state = self.lock();
        state.distrusted.contains(&publisher)
            || state
                .sources
                .iter()
                .any(|s| s.connection.publisher == publisher && !s.connection.has_ended())
    }

    /// The number of the last message taken from `publisher` in a connection that ended; 0 if none. A
    /// publisher that reconnects must not deliver a message twice.
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

    /// Handles the end of a publisher. Its queued messages can still be taken.
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
