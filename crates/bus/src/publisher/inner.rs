//! State that the publisher's handle, its loans and the housekeeping thread share.

use super::Published;
use super::history::History;
use super::{PublisherOptions, PublisherStats};
use crate::budget::Holder;
use crate::detail::{EndpointDetail, PublisherInfo};
use crate::frame::{Frame, Info, RefuseCode, Wishes};
use crate::housekeeping::Shared;
use crate::losses::Losses;
use crate::peer::{Attached, Terms};
use crate::pool::{BlockId, Pool};
use crate::ring;
use crate::subscriber::QueuePolicy;
use crate::sys;
use crate::sys::fork::Birth;
use crate::sys::process::Peer;
use crate::topic::{Offer, RefusalLog, TopicType};
use crate::waitset::Changed;
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// State that the publisher's handle, its loans and the housekeeping thread share.
#[derive(Debug)]
pub(crate) struct PubCore {
    pub(crate) id: u64,
    pub(crate) topic: TopicType,
    pub(crate) refusals: RefusalLog,
    pub(super) birth: Birth,
    pub(super) options: PublisherOptions,
    pub(super) state: Mutex<State>,
    pub(super) changed: Changed,
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) pool: Pool,
    pub(super) attached: Vec<Attached>,
    /// Subscribers that broke the protocol; the last few.
    pub(super) banned: Vec<u64>,
    pub(super) sequence: u64,
    /// Number of messages that were lost before they reached this publisher.
    pub(super) skipped: u64,
    pub(super) history: History,
    /// Loans refused because memory was short.
    pub(super) refused: u64,
    /// Whether a loan has waited without success since the last successful one.
    pub(super) stalled: bool,
    pub(super) clock: sys::Wall,
    /// Whether it publishes in quick succession. Then it looks at released blocks after ringing, since a peer
    /// may be waiting for the reply to what it just took. Otherwise it looks when it loans, where nobody
    /// waits. A service's requests and replies are always treated as hurried: each goes to one peer, which is
    /// looked at then.
    pub(super) hurried: bool,
    /// When it last published.
    pub(super) last: u64,
    pub(super) departed: Losses,
    /// Whether the handle is gone; loans may still exist.
    pub(super) closed: bool,
}

impl PubCore {
    /// No user code runs under the lock and no step of this crate leaves the state half changed, so a panic
    /// elsewhere does not make it unusable.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs after a message was published: does work ahead of the next loan, and handles failures.
    #[inline(never)]
    pub(super) fn look_after(&self, state: &mut State, now: u64) {
        let left = if state.hurried {
            state.clock.prepare(now);
            state.reap()
        } else {
            state.remove_hostile()
        };
        if left {
            self.changed.notify_all();
        }
    }

    /// Returns the block of an unpublished loan, or one that was kept.
    pub(crate) fn give_back(&self, block: BlockId) {
        if !self.birth.is_foreign() {
            self.lock().pool.unshare(block);
        }
    }

    /// Adds a user of a loan's block.
    pub(crate) fn keep(&self, block: BlockId) {
        if !self.birth.is_foreign() {
            self.lock().pool.share(block);
        }
    }

    /// Whether subscriber `id` of `peer` may attach; the error says why not.
    pub(crate) fn admits(&self, id: u64, peer: Peer) -> Result<(), (RefuseCode, String)> {
        let state = self.lock();
        if state.attached.iter().any(|a| a.id == id) {
            return Err((RefuseCode::Duplicate, "connected already".into()));
        }
        if state.banned.contains(&id) {
            return Err((
                RefuseCode::Mismatch,
                "this subscriber has corrupted its ring before".into(),
            ));
        }
        let max = self.options.max_subscribers;
        if state.attached.len() >= max {
            return Err((
                RefuseCode::Busy,
                format!("the publisher already has {max} subscribers, which is its limit"),
            ));
        }
        let holder = Holder::of(peer);
        let has = state.attached.iter().filter(|a| a.holder() == holder).count();
        if !holder.may_have_another(has, max) {
            return Err((
                RefuseCode::Busy,
                format!(
                    "{holder} has {has} of the publisher's {max} places for subscribers, which is its limit"
                ),
            ));
        }
        Ok(())
    }

    /// Returns the limits for a subscriber with these wishes.
    pub(crate) fn terms(&self, wishes: &Wishes) -> Terms {
        Terms {
            quota: self.options.quota(wishes.max_bytes),
            queue: wishes.queue,
            yields: wishes.queue == QueuePolicy::DropOldest && self.options.memory_policy.drops() > 0,
        }
    }

    /// Accepts a subscriber. It first gets the messages kept for late joiners, at most `history` of them and
    /// none up to number `after`, and then everything that is published from now on. From its `Welcome` on it
    /// relies on receiving everything that is published; there is no gap between the two.
    pub(crate) fn attach(&self, mut attached: Attached, history: u32, after: u64) -> io::Result<()> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.closed {
            attached.socket.hang_up();
            return Ok(());
        }
        attached.socket.send(&Frame::Welcome.encode(), &[])?;
        crate::hooks::step("welcome-sent");
        state
            .history
            .replay(&mut attached, history, after, &mut state.pool);
        state.attached.push(attached);
        state.remove_hostile();
        drop(guard);
        self.changed.notify_all();
        Ok(())
    }

    pub(crate) fn is_attached(&self, id: u64) -> bool {
        self.lock().attached.iter().any(|a| a.id == id)
    }

    /// Removes a subscriber that is gone. Everything it had is free at once.
    pub(crate) fn detach(&self, id: u64) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(i) = state.attached.iter().position(|a| a.id == id) {
            state.remove(i);
            self.changed.notify_all();
        }
    }

    /// Handles a frame from a connected subscriber. Returns false if the subscriber may not send it.
    pub(crate) fn hear(&self, id: u64, frame: &Frame) -> bool {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(attached) = state.attached.iter_mut().find(|a| a.id == id) else {
            return false;
        };
        match frame {
            Frame::Unmapped { id } => attached.unmapped(*id, &mut state.pool),
            Frame::Ready => {
                attached.ready = true;
                self.changed.notify_all();
            }
            Frame::Closing => {
                if let Err(hostile) = attached.close(&mut state.pool) {
                    attached.hostile = Some(hostile);
                    state.remove_hostile();
                }
                self.changed.notify_all();
            }
            _ => return false,
        }
        true
    }

    /// Reserves memory ahead of need, in the housekeeping thread, while publishing continues.
    pub(crate) fn grow_ahead(&self) {
        let plan = self.lock().pool.plan();
        if let Some(plan) = plan {
            let done = plan.carry_out();
            self.lock().pool.finish(&plan, done);
        }
    }

    pub(super) fn stats(&self) -> PublisherStats {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.reap();
        let mut drops = state.departed;
        state.attached.iter().for_each(|a| drops.merge(&a.losses));
        PublisherStats {
            published: state.sequence - state.skipped,
            refused: state.refused,
            memory_reserved: state.pool.reserved(),
            memory_used: state.pool.used(),
            memory_pinned: state.pool.pinned(),
            segments: state.pool.segment_count(),
            subscribers: state.attached.iter().map(Attached::report).collect(),
            drops: drops.drops(),
        }
    }

    /// What it announces about itself.
    pub(crate) fn offer(&self) -> Offer {
        self.options.offer()
    }

    pub(crate) fn info(&self, domain: u32) -> Info {
        let stats = self.stats();
        Info {
            domain,
            id: self.id,
            connected: stats.subscribers.len() as u32,
            messages: stats.published,
            memory: stats.memory_reserved,
            topic: self.topic.clone(),
            detail: EndpointDetail::Publisher(PublisherInfo {
                memory_limit: self.options.memory_limit,
                memory_policy: self.options.memory_policy,
                offer: self.offer(),
                stats,
            }),
            refusals: self.refusals.reasons(),
        }
    }
}

impl State {
    pub(super) fn subscriber_count(&self) -> usize {
        self.connected().count()
    }

    /// Identities of the subscribers that are connected.
    pub(super) fn connected(&self) -> impl Iterator<Item = u64> {
        let connected = self.attached.iter().filter(|a| a.ready && !a.is_closing());
        connected.map(|a| a.id)
    }

    /// Pushes to all rings. [`State::ring`] is called afterwards, so that a woken subscriber does not take
    /// the processor away before the others have the message. Returns false if a push was not plain; a
    /// subscriber may then have been found hostile.
    #[inline(always)]
    pub(super) fn distribute(&mut self, block: BlockId, now: u64, done: &mut Published) -> bool {
        let at = self.pool.locate(block);
        let mut plain = true;
        for attached in &mut self.attached {
            plain &= attached.offer(&mut self.pool, block, at, now, &mut done.dropped);
            done.queued_to += usize::from(attached.pushed);
        }
        crate::hooks::step("publish-pushed");
        plain
    }

    /// Rings the doorbells of sleeping subscribers that got a message, each doorbell once.
    #[inline(always)]
    pub(super) fn ring(&mut self) {
        <[AtomicU64] as ring::Memory>::fence();
        let mut any_rung = false;
        for i in 0..self.attached.len() {
            if self.attached[i].must_ring() {
                let (before, this) = (&self.attached[..i], &self.attached[i]);
                if !before.iter().any(|a| a.rung && Arc::ptr_eq(&a.bell, &this.bell)) {
                    this.bell.ring();
                }
                self.attached[i].rung = true;
                any_rung = true;
            }
        }
        if any_rung {
            self.attached.iter_mut().for_each(|a| a.rung = false);
        }
        crate::hooks::step("publish-rung");
    }

    /// Reads what all subscribers took and released. Returns true if that revealed a hostile one, which is
    /// then removed.
    pub(super) fn reap(&mut self) -> bool {
        for attached in &mut self.attached {
            if let Err(hostile) = attached.reap(&mut self.pool) {
                attached.hostile = Some(hostile);
            }
        }
        self.remove_hostile()
    }

    /// Disconnects subscribers that broke the protocol. Their blocks are free at once: subscribers cannot
    /// write to them, so reuse harms only the hostile one.
    pub(super) fn remove_hostile(&mut self) -> bool {
        let mut any = false;
        while let Some(i) = self.attached.iter().position(|a| a.hostile.is_some()) {
            let a = &self.attached[i];
            tracing::warn!(
                "disconnected subscriber {} of process {}: {}",
                a.id,
                a.peer.pid,
                a.hostile.as_ref().map(ToString::to_string).unwrap_or_default()
            );
            self.banned.push(a.id);
            if self.banned.len() > 64 {
                self.banned.remove(0);
            }
            self.remove(i);
            any = true;
        }
        any
    }

    pub(super) fn remove(&mut self, i: usize) {
        let mut attached = self.attached.swap_remove(i);
        // It must not take queued messages any more, since their blocks are about to be reused. If it
        // reconnects, it gets them again as history.
        let _ = attached.close(&mut self.pool);
        attached.clear(&mut self.pool);
        attached.socket.hang_up();
        self.departed.merge(&attached.losses);
    }
}
