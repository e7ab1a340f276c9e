//! The sending end of a topic.

use crate::block::{Label, Plan};
use crate::bus::Bus;
use crate::folder::SocketFile;
use crate::frame::{Frame, Info, RefuseCode, Role};
use crate::house::{Command, Core, Shared};
use crate::loan::{Loan, LoanError, MAX_CONTROL, MAX_PARTS};
use crate::losses::Losses;
use crate::peer::Attached;
use crate::pool::{BlockId, Pool, Short};
use crate::ring;
use crate::sys;
use crate::sys::fork::Birth;
use crate::sys::segment::page;
use crate::topic::{Refusal, RefusalLog, TopicType};
use stats::{DropReason, Drops, Time};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a publisher may use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublisherOptions {
    /// Most bytes of shared memory that it reserves. Default 256 MiB. Reserved only as needed.
    pub memory_limit: u64,
    /// Most bytes that one subscriber may keep from reuse, queued and held together; one message is always let
    /// through when it has none. Default: half of `memory_limit`. A subscriber may ask for less.
    pub subscriber_quota: Option<u64>,
    /// Most subscribers at a time. Default 256.
    pub max_subscribers: usize,
}

impl Default for PublisherOptions {
    fn default() -> Self {
        PublisherOptions {
            memory_limit: 256 << 20,
            subscriber_quota: None,
            max_subscribers: 256,
        }
    }
}

impl PublisherOptions {
    /// Sets the most bytes of shared memory.
    #[must_use]
    pub fn with_memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// Sets the most bytes that one subscriber may keep from reuse.
    #[must_use]
    pub fn with_subscriber_quota(mut self, bytes: u64) -> Self {
        self.subscriber_quota = Some(bytes);
        self
    }
}

/// When and where a message came into being.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Nanoseconds of `CLOCK_REALTIME`; `None` takes the clock at the moment of publishing.
    pub time: Option<Time>,
    /// Where the message came from first; `None` is this publisher. A link republishes what it received with
    /// the original origin, and so recognizes its own echo.
    pub origin: Option<u64>,
}

/// What became of a published message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// Its sequence number, from 1 up, per publisher.
    pub sequence: u64,
    /// In how many subscribers' queues it stands.
    pub queued_to: usize,
    /// What was lost by this call: older messages that made room, and copies that were not queued.
    pub dropped: Losses,
}

/// The sending end of a topic. It owns the memory that its messages stand in.
///
/// All methods may be called from any thread. Dropping it lets connected subscribers take what is queued.
#[derive(Debug)]
pub struct Publisher {
    core: Arc<PubCore>,
    /// Removes the socket from the folder.
    file: Option<SocketFile>,
    /// Keeps the housekeeping thread.
    bus: Bus,
}

impl Publisher {
    pub(crate) fn new(bus: &Bus, topic: TopicType, options: PublisherOptions) -> Result<Self, CreateError> {
        topic.check()?;
        check_option("memory_limit", options.memory_limit, 4096, 1 << 46)?;
        check_option("max_subscribers", options.max_subscribers as u64, 1, 65_536)?;
        let shared = bus.shared();
        if shared.birth.is_foreign() {
            return Err(CreateError::Forked);
        }
        let core = Arc::new(PubCore {
            id: sys::unique_id(),
            birth: shared.birth,
            state: Mutex::new(State {
                pool: Pool::new(options.memory_limit),
                attached: Vec::new(),
                banned: Vec::new(),
                sequence: 0,
                departed: Losses::default(),
                closed: false,
            }),
            topic,
            options,
            changed: Condvar::new(),
            refusals: RefusalLog::default(),
            shared: shared.clone(),
        });
        let (listener, file) = shared
            .folder
            .bind(&core.topic.topic, Role::Publisher, core.id)
            .map_err(|source| CreateError::System {
                what: "binding its socket",
                source,
            })?;
        shared.command(Command::Add(
            core.id,
            listener,
            Core::Publisher(Arc::downgrade(&core)),
        ));
        Ok(Publisher {
            core,
            file: Some(file),
            bus: bus.clone(),
        })
    }

    /// Reserves a block with a control part of `control_len` bytes and one data part per entry of `part_lens`
    /// (at most [`MAX_PARTS`](crate::MAX_PARTS)), each aligned to 64 bytes.
    ///
    /// The pages exist when it returns: writing them cannot fail. If memory is short, the queued messages of
    /// the largest consumer are dropped, oldest first; then it fails. Usually takes well under a microsecond;
    /// makes system calls only when memory must grow. The content is undefined (bytes of older messages).
    pub fn loan(&self, control_len: usize, part_lens: &[usize]) -> Result<Loan, LoanError> {
        let core = &self.core;
        if core.birth.is_foreign() {
            return Err(LoanError::Forked);
        }
        if part_lens.len() > MAX_PARTS {
            return Err(LoanError::TooManyParts {
                count: part_lens.len(),
            });
        }
        if control_len > MAX_CONTROL {
            return Err(LoanError::ControlTooLong { len: control_len });
        }
        let limit = core.options.memory_limit;
        let plan = Plan::new(control_len, part_lens)
            .ok_or(LoanError::TooLarge {
                wanted: u64::MAX,
                limit,
            })
            .and_then(|h| {
                // Memory is reserved by whole pages.
                let pages = h.total().checked_next_multiple_of(page()).unwrap_or(u64::MAX);
                if pages > limit {
                    Err(LoanError::TooLarge {
                        wanted: h.total(),
                        limit,
                    })
                } else {
                    Ok(h)
                }
            })?;
        let mut state = core.lock();
        let block = state.find_block(plan.total())?;
        let grow = state.pool.has_grown();
        let Some((start, memory)) = state.pool.address(block) else {
            return Err(LoanError::TooLarge {
                wanted: plan.total(),
                limit,
            });
        };
        drop(state);
        if grow {
            core.shared.command(Command::Grow(Arc::downgrade(core)));
        }
        crate::hooks::step("loaned");
        Ok(Loan::new(core.clone(), block, plan, start, memory))
    }

    /// Queues the message to every connected subscriber and wakes those that sleep. Never blocks and never
    /// waits for the housekeeping thread.
    pub fn publish(&self, loan: Loan, stamp: Stamp) -> Result<Published, PublishError> {
        let core = &self.core;
        if core.birth.is_foreign() {
            return Err(PublishError::Forked);
        }
        if !loan.belongs_to(core) {
            return Err(PublishError::ForeignLoan);
        }
        let time = stamp.time.map_or_else(sys::realtime_ns, Time::as_nanos);
        let mut guard = core.lock();
        let state = &mut *guard;
        state.sequence += 1;
        let sequence = state.sequence;
        let origin = stamp.origin.unwrap_or(core.id);
        let block = loan.seal(Label {
            sequence,
            stamp: time,
            origin,
        });
        crate::hooks::step("publish-sealed");
        let mut done = Published {
            sequence,
            ..Published::default()
        };
        if !state.attached.is_empty() {
            state.distribute(block, &mut done);
            if state.remove_hostile() {
                core.changed.notify_all();
            }
        }
        state.pool.unshare(block);
        Ok(done)
    }

    /// The topic and its type.
    pub fn topic(&self) -> &TopicType {
        &self.core.topic
    }

    /// Unique among all endpoints of the bus; the origin of its messages unless another is given.
    pub fn id(&self) -> u64 {
        self.core.id
    }

    /// The bus it is on.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// How many subscribers are connected and ready to take.
    pub fn subscriber_count(&self) -> usize {
        if self.core.birth.is_foreign() {
            return 0;
        }
        self.core.lock().subscriber_count()
    }

    /// Blocks until at least `n` subscribers are connected; false if `timeout` passed first.
    pub fn wait_for_subscribers(&self, n: usize, timeout: Duration) -> bool {
        if self.core.birth.is_foreign() {
            return false;
        }
        let state = self.core.lock();
        let few = |s: &mut State| s.subscriber_count() < n;
        match self.core.changed.wait_timeout_while(state, timeout, few) {
            Ok((_, waited)) => !waited.timed_out(),
            Err(poisoned) => !poisoned.into_inner().1.timed_out(),
        }
    }

    /// What it has done and what it holds.
    pub fn stats(&self) -> PublisherStats {
        if self.core.birth.is_foreign() {
            return PublisherStats::default();
        }
        let mut guard = self.core.lock();
        let state = &mut *guard;
        state.reap();
        let mut drops = state.departed;
        state.attached.iter().for_each(|a| drops.merge(&a.losses));
        PublisherStats {
            published: state.sequence,
            memory_reserved: state.pool.reserved(),
            memory_used: state.pool.used(),
            memory_pinned: state.pool.pinned(),
            segments: state.pool.segment_count(),
            subscribers: state.attached.iter().map(Attached::report).collect(),
            drops: drops.drops(),
        }
    }

    /// The last 16 peers that did not connect, and why.
    pub fn refusals(&self) -> Vec<Refusal> {
        if self.core.birth.is_foreign() {
            Vec::new()
        } else {
            self.core.refusals.list()
        }
    }

    /// Overwrites the data parts of a published message through the publisher's own mapping, where it stood:
    /// what a subscriber then sees was never copied. For tests of just that.
    #[cfg(feature = "test-hooks")]
    #[doc(hidden)]
    pub fn poison(&self, part: *const u8, len: usize, byte: u8) {
        let mapped = self.core.lock().pool.contains(part, len);
        assert!(mapped, "only the publisher's own memory is poisoned");
        // SAFETY: the range lies inside a segment that is mapped writable, as was just checked; this process
        // has no reference to it, since the loan is gone.
        unsafe { std::ptr::write_bytes(part.cast_mut(), byte, len) };
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        if self.core.birth.is_foreign() {
            return;
        }
        // First the name, so that nobody connects any more; then the connections.
        self.file = None;
        self.core.shared.command(Command::Remove(self.core.id));
        let mut guard = self.core.lock();
        let state = &mut *guard;
        state.closed = true;
        for mut attached in state.attached.drain(..) {
            attached.socket.hang_up();
            attached.clear(&mut state.pool);
        }
    }
}

/// What the publisher's handle, its loans and the housekeeping thread share.
#[derive(Debug)]
pub(crate) struct PubCore {
    pub(crate) id: u64,
    pub(crate) topic: TopicType,
    pub(crate) refusals: RefusalLog,
    birth: Birth,
    options: PublisherOptions,
    state: Mutex<State>,
    changed: Condvar,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct State {
    pool: Pool,
    attached: Vec<Attached>,
    /// Subscribers that broke the rules; the last few.
    banned: Vec<u64>,
    sequence: u64,
    departed: Losses,
    /// The handle is gone; loans may still be there.
    closed: bool,
}

impl PubCore {
    /// No user code runs under the lock and no step of ours leaves the state half done, so a panic elsewhere
    /// does not make it unusable.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An unpublished loan's block.
    pub(crate) fn give_back(&self, block: BlockId) {
        if !self.birth.is_foreign() {
            self.lock().pool.unshare(block);
        }
    }

    /// Whether subscriber `id` may attach; if not, why.
    pub(crate) fn admits(&self, id: u64) -> Result<(), (RefuseCode, String)> {
        let state = self.lock();
        if state.attached.iter().any(|a| a.id == id) {
            return Err((RefuseCode::Duplicate, "connected already".into()));
        }
        if state.banned.contains(&id) {
            return Err((
                RefuseCode::Mismatch,
                "this subscriber broke the ring's rules before".into(),
            ));
        }
        let max = self.options.max_subscribers;
        if state.attached.len() >= max {
            return Err((
                RefuseCode::Busy,
                format!("the publisher has {max} subscribers, the most it accepts"),
            ));
        }
        Ok(())
    }

    /// The most bytes that a subscriber that asks for `wanted` may have queued and held.
    pub(crate) fn quota(&self, wanted: u64) -> u64 {
        self.options
            .subscriber_quota
            .unwrap_or(self.options.memory_limit / 2)
            .min(wanted)
    }

    pub(crate) fn attach(&self, attached: Attached) {
        let mut state = self.lock();
        if state.closed {
            return attached.socket.hang_up();
        }
        state.attached.push(attached);
        drop(state);
        self.changed.notify_all();
    }

    pub(crate) fn is_attached(&self, id: u64) -> bool {
        self.lock().attached.iter().any(|a| a.id == id)
    }

    /// The subscriber is gone: everything it had is free at once.
    pub(crate) fn detach(&self, id: u64) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(i) = state.attached.iter().position(|a| a.id == id) {
            state.remove(i);
            self.changed.notify_all();
        }
    }

    /// A frame from a connected subscriber; false if it is none that it may send.
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

    /// Reserves memory ahead of need, in the housekeeping thread; publishing goes on meanwhile.
    pub(crate) fn grow_ahead(&self) {
        let plan = self.lock().pool.plan();
        if let Some(plan) = plan {
            let done = plan.carry_out();
            self.lock().pool.finish(&plan, done);
        }
    }

    pub(crate) fn info(&self, domain: u32) -> Info {
        let state = self.lock();
        Info {
            role: Role::Publisher,
            domain,
            id: self.id,
            connected: state.attached.len() as u32,
            messages: state.sequence,
            memory: state.pool.reserved(),
            topic: self.topic.clone(),
        }
    }
}

impl State {
    fn subscriber_count(&self) -> usize {
        self.attached
            .iter()
            .filter(|a| a.ready && !a.is_closing())
            .count()
    }

    /// Pushes to all rings first and then rings the sleepers, each doorbell once: a subscriber that is woken
    /// must not take the processor from the pushes to the others.
    fn distribute(&mut self, block: BlockId, done: &mut Published) {
        let at = self.pool.locate(block);
        let now = sys::monotonic_ns();
        for attached in &mut self.attached {
            attached.offer(&mut self.pool, block, at, now, &mut done.dropped);
            done.queued_to += usize::from(attached.pushed);
        }
        crate::hooks::step("publish-pushed");
        <[AtomicU64] as ring::Memory>::fence();
        for i in 0..self.attached.len() {
            if self.attached[i].must_ring() {
                let (before, this) = (&self.attached[..i], &self.attached[i]);
                if !before.iter().any(|a| a.rung && Arc::ptr_eq(&a.bell, &this.bell)) {
                    this.bell.ring();
                }
                self.attached[i].rung = true;
            }
        }
        self.attached.iter_mut().for_each(|a| a.rung = false);
        crate::hooks::step("publish-rung");
    }

    fn find_block(&mut self, len: u64) -> Result<BlockId, LoanError> {
        if let Some(block) = self.pool.reuse(len) {
            return Ok(block);
        }
        self.reap();
        loop {
            if let Some(block) = self.pool.reuse(len) {
                return Ok(block);
            }
            let attached = &mut self.attached;
            let short = match self.pool.grow(len, |id| {
                attached
                    .iter_mut()
                    .filter_map(|a| a.retire(id).then_some(()))
                    .count()
            }) {
                Ok(block) => return Ok(block),
                Err(short) => short,
            };
            if !self.disconnect_pinning() && !self.drop_from_largest() {
                return Err(self.explain(short, len));
            }
        }
    }

    /// Lets go of one that keeps memory by not answering; it may connect again when it lives. False if there is
    /// none.
    fn disconnect_pinning(&mut self) -> bool {
        let Some(i) = self.attached.iter().position(Attached::pins_for_long) else {
            return false;
        };
        let a = &self.attached[i];
        tracing::warn!(
            pid = a.peer.pid,
            subscriber = a.id,
            "disconnected a subscriber that unmaps nothing"
        );
        self.remove(i);
        true
    }

    /// Takes the oldest queued message of the subscriber that has the most bytes; false if nothing is queued.
    fn drop_from_largest(&mut self) -> bool {
        loop {
            let largest = self
                .attached
                .iter_mut()
                .filter(|a| a.queued() > 0)
                .max_by_key(|a| a.bytes());
            let Some(attached) = largest else { return false };
            match attached.drop_oldest(&mut self.pool, DropReason::MemoryShort) {
                Ok(true) => return true,
                Ok(false) => {}
                Err(hostile) => {
                    attached.hostile = Some(hostile);
                    self.remove_hostile();
                    return true;
                }
            }
        }
    }

    fn explain(&self, short: Short, wanted: u64) -> LoanError {
        match short {
            Short::Limit => {
                let mut held: Vec<BlockId> = self.attached.iter().flat_map(Attached::blocks).collect();
                held.sort_unstable();
                held.dedup();
                let held = held.into_iter().map(|b| self.pool.len_of(b)).sum();
                let loaned = self.pool.used().saturating_sub(held);
                LoanError::MemoryShort {
                    wanted,
                    held,
                    loaned,
                    limit: self.pool.limit(),
                }
            }
            Short::System { available, which } => LoanError::SystemMemory {
                wanted,
                available,
                which,
            },
            Short::FileSize { wanted, limit } => LoanError::FileSizeLimit { wanted, limit },
            Short::Failed { what, source } => LoanError::System { what, source },
        }
    }

    fn reap(&mut self) {
        for attached in &mut self.attached {
            if let Err(hostile) = attached.reap(&mut self.pool) {
                attached.hostile = Some(hostile);
            }
        }
        self.remove_hostile();
    }

    /// Disconnects those that broke the rules. Their blocks are free at once: they cannot write them, so reuse
    /// hurts nobody but themselves.
    fn remove_hostile(&mut self) -> bool {
        let mut any = false;
        while let Some(i) = self.attached.iter().position(|a| a.hostile.is_some()) {
            let a = &self.attached[i];
            tracing::warn!(pid = a.peer.pid, subscriber = a.id, found = ?a.hostile,
                "disconnected a subscriber that wrote an impossible state into its ring");
            self.banned.push(a.id);
            if self.banned.len() > 64 {
                self.banned.remove(0);
            }
            self.remove(i);
            any = true;
        }
        any
    }

    fn remove(&mut self, i: usize) {
        let mut attached = self.attached.swap_remove(i);
        attached.clear(&mut self.pool);
        attached.socket.hang_up();
        self.departed.merge(&attached.losses);
    }
}

pub(crate) fn check_option(what: &'static str, value: u64, min: u64, max: u64) -> Result<(), CreateError> {
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(CreateError::Option {
            what,
            value,
            min,
            max,
        })
    }
}

/// What a publisher has done and what it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublisherStats {
    /// Messages published.
    pub published: u64,
    /// Bytes of shared memory reserved, against [`PublisherOptions::memory_limit`].
    pub memory_reserved: u64,
    /// Of these, bytes in loaned, queued or held blocks.
    pub memory_used: u64,
    /// Of the reserved bytes, those in retired segments that subscribers still map.
    pub memory_pinned: u64,
    /// Segments, retired ones included.
    pub segments: usize,
    /// Each connected subscriber.
    pub subscribers: Vec<SubscriberPeer>,
    /// Losses of all subscribers, departed ones included.
    pub drops: Drops,
}

/// A connected subscriber, as the publisher sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriberPeer {
    /// Its identity.
    pub id: u64,
    /// Its process (0 if it lives in another PID namespace).
    pub pid: i32,
    /// Its user.
    pub uid: u32,
    /// Messages that wait in its queue.
    pub queued: usize,
    /// Messages that it has taken and not yet released.
    pub held: usize,
    /// Bytes queued and held.
    pub bytes: u64,
    /// What it lost.
    pub drops: Drops,
}

/// Why a message was not published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The loan is another publisher's.
    #[error("the loan belongs to another publisher")]
    ForeignLoan,
    /// The process was forked after the publisher was made.
    #[error("this publisher belongs to the parent process: make a new one after fork")]
    Forked,
}

/// Why a publisher or a subscriber cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The topic's or the type's name is empty or too long.
    #[error("the {what} has {len} bytes: it must have 1 to {max}")]
    Name {
        /// Which name.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The longest allowed.
        max: usize,
    },
    /// An option is out of its range.
    #[error("{what} is {value}: it must be from {min} to {max}")]
    Option {
        /// Which option.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The least allowed.
        min: u64,
        /// The most allowed.
        max: u64,
    },
    /// A system call failed.
    #[error("cannot make the endpoint ({what}): {source}")]
    System {
        /// What failed.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// The process was forked after the bus was opened.
    #[error("this bus belongs to the parent process: open a new one after fork")]
    Forked,
}
