//! The sending end of a topic.

mod directed;
mod error;
mod history;
mod inner;
mod options;
mod pace;
mod report;
mod shortage;

pub(crate) use directed::Directed;
use directed::Purpose;
pub(crate) use error::check_option;
pub use error::{CreateError, PublishError};
use history::History;
pub(crate) use inner::PubCore;
use inner::State;
pub use options::{MemoryPolicy, PublisherOptions};
pub use report::{Published, PublisherStats, SubscriberPeer};

use crate::block::{Label, Plan};
use crate::bus::Bus;
use crate::folder::SocketFile;
use crate::frame::Role;
use crate::housekeeping::{Command, Core};
use crate::loan::{Loan, LoanError, MAX_CONTROL, MAX_PARTS};
use crate::losses::Losses;
use crate::peer::Attached;
use crate::pool::Pool;
use crate::sys;
use crate::sys::segment::page;
use crate::topic::{Refusal, RefusalLog, TopicType};
use crate::waitset::Changed;
use stats::Time;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// When and where a message was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Nanoseconds of `CLOCK_REALTIME`; `None` reads the clock when publishing.
    pub time: Option<Time>,
    /// The original source of the message; `None` means this publisher. A link republishes received messages
    /// with their original origin, and so recognizes its own echo.
    pub origin: Option<u64>,
}

/// The sending end of a topic. It owns the memory of its messages.
///
/// All methods may be called from any thread. After it is dropped, connected subscribers can still take the
/// queued messages.
#[derive(Debug)]
pub struct Publisher {
    core: Arc<PubCore>,
    /// Removes the socket from the folder.
    file: Option<SocketFile>,
    /// Keeps the housekeeping thread alive.
    bus: Bus,
}

/// Below this interval between messages, in nanoseconds, a publisher finds its caches warm and is short of
/// time.
const HURRY: u64 = 1_000_000;

impl Publisher {
    pub(crate) fn new(bus: &Bus, topic: TopicType, options: PublisherOptions) -> Result<Self, CreateError> {
        Self::with(bus, topic, options, Purpose::Topic)
    }

    fn with(
        bus: &Bus,
        topic: TopicType,
        mut options: PublisherOptions,
        purpose: Purpose,
    ) -> Result<Self, CreateError> {
        topic.check()?;
        options.check()?;
        if matches!(purpose, Purpose::Service { .. }) {
            // Each message is somebody's request or reply, so no queued message makes room for another.
            options.subscriber_quota = Some(options.quota(u64::MAX));
            options.memory_policy = MemoryPolicy::WorstEffort;
            options.history = 0;
        }
        let shared = bus.shared();
        if shared.birth.is_foreign() {
            return Err(CreateError::Forked);
        }
        let hurried = matches!(purpose, Purpose::Service { .. });
        let (id, observer) = match purpose {
            Purpose::Topic => (sys::unique_id(), None),
            Purpose::Service { id, observer } => (id, observer),
        };
        let core = Arc::new(PubCore {
            id,
            birth: shared.birth,
            state: Mutex::new(State {
                pool: Pool::new(options.memory_limit),
                attached: Vec::new(),
                banned: Vec::new(),
                sequence: 0,
                skipped: 0,
                history: History::new(options.history),
                refused: 0,
                stalled: false,
                clock: sys::Wall::default(),
                hurried,
                last: 0,
                departed: Losses::default(),
                closed: false,
            }),
            topic,
            options,
            changed: Changed::new(observer),
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
    /// The pages exist when it returns, so writing to them cannot fail. If memory is short, it does what the
    /// [`MemoryPolicy`] says: drop queued messages, fail, or wait. Only [`MemoryPolicy::Block`] ever blocks.
    /// A loan usually takes well under a microsecond; it makes system calls only when memory must grow. The
    /// content is undefined (bytes of older messages).
    pub fn loan(&self, control_len: usize, part_lens: &[usize]) -> Result<Loan, LoanError> {
        self.reserve(control_len, part_lens, Plan::new, &|| true)
    }

    /// Like [`Publisher::loan`], for callers that may have to stop waiting, for instance on a signal. Under
    /// [`MemoryPolicy::Block`], `go_on` is called about every 50 ms, without holding a lock. If it returns
    /// false, the loan fails as if its time had run out; the next loan waits again.
    ///
    /// # Errors
    /// As for [`Publisher::loan`].
    pub fn loan_while(
        &self,
        control_len: usize,
        part_lens: &[usize],
        go_on: &dyn Fn() -> bool,
    ) -> Result<Loan, LoanError> {
        self.reserve(control_len, part_lens, Plan::new, go_on)
    }

    fn reserve(
        &self,
        control_len: usize,
        part_lens: &[usize],
        plan: fn(usize, &[usize]) -> Option<Plan>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Loan, LoanError> {
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
        let plan = plan(control_len, part_lens)
            .ok_or(LoanError::TooLarge {
                wanted: u64::MAX,
                limit,
            })
            .and_then(|h| {
                // Memory is reserved in whole pages.
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
        let (mut state, block) = core.find_block(plan.total(), go_on)?;
        let grow = state.pool.has_grown();
        let Some(start) = state.pool.address(block) else {
            return Err(LoanError::TooLarge {
                wanted: plan.total(),
                limit,
            });
        };
        if !state.hurried {
            // There is time for this while the block is filled, and none once a subscriber waits for the
            // message.
            state.attached.iter().for_each(Attached::touch);
            state.clock.prepare(sys::monotonic_ns());
            Self::fetch_code();
            state.attached.iter().for_each(Attached::wake_early);
        }
        drop(state);
        if grow {
            core.shared.command(Command::Grow(Arc::downgrade(core)));
        }
        crate::hooks::step("loaned");
        Ok(Loan::new(core.clone(), block, &plan, start))
    }

    /// Queues the message to every connected subscriber and wakes those that sleep. Never blocks and never
    /// waits for the housekeeping thread.
    // The steps of every message are inline in one piece, from top to bottom; everything else is in separate
    // functions. `fetch_code` relies on this.
    #[inline(never)]
    pub fn publish(&self, loan: Loan, stamp: Stamp) -> Result<Published, PublishError> {
        self.put::<true>(loan, stamp)
    }

    /// Like [`Publisher::publish`], but sleeping subscribers are woken only by [`Publisher::ring`]. For
    /// several messages in a row, each of which would wake the same subscriber. A subscriber that is awake
    /// takes the message at once.
    #[inline(never)]
    pub fn publish_quietly(&self, loan: Loan, stamp: Stamp) -> Result<Published, PublishError> {
        self.put::<false>(loan, stamp)
    }

    /// Records that this many messages were lost before they reached this publisher, for example on the way
    /// from another host. The next message's sequence number is higher by this amount, so subscribers notice
    /// the loss.
    pub fn skip(&self, lost: u64) {
        if self.core.birth.is_foreign() {
            return;
        }
        let mut state = self.core.lock();
        // No real source loses that many; enough numbers remain for the messages themselves.
        let lost = lost.min((u64::MAX >> 1).saturating_sub(state.sequence));
        state.sequence += lost;
        state.skipped += lost;
    }

    /// Wakes sleeping subscribers that have messages from [`Publisher::publish_quietly`]. Never blocks.
    pub fn ring(&self) {
        if self.core.birth.is_foreign() {
            return;
        }
        let mut state = self.core.lock();
        state.attached.iter_mut().for_each(Attached::schedule_owed);
        state.ring();
    }

    #[inline(always)]
    fn put<const RING: bool>(&self, loan: Loan, stamp: Stamp) -> Result<Published, PublishError> {
        let core = &self.core;
        if core.birth.is_foreign() || !loan.belongs_to(core) {
            return Err(self.refuse(loan));
        }
        let mut guard = core.lock();
        let state = &mut *guard;
        let now = sys::monotonic_ns();
        let time = stamp
            .time
            .map_or_else(|| state.clock.realtime(now), Time::as_nanos);
        state.hurried = now.saturating_sub(state.last) < HURRY;
        state.last = now;
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
        let plain = state.distribute(block, now, &mut done);
        if RING {
            state.ring();
        } else {
            state.attached.iter_mut().for_each(Attached::is_owed);
        }
        if state.hurried || !plain {
            core.look_after(state, now);
        }
        if state.history.is_kept() {
            state.history.keep(sequence, block, &mut state.pool);
        } else {
            state.pool.unshare(block);
        }
        Ok(done)
    }

    /// Returns why `loan` cannot be published here.
    #[cold]
    #[inline(never)]
    fn refuse(&self, loan: Loan) -> PublishError {
        drop(loan);
        if self.core.birth.is_foreign() {
            PublishError::Forked
        } else {
            PublishError::ForeignLoan
        }
    }

    /// Prefetches the code of [`Publisher::publish`] while a message is being prepared.
    fn fetch_code() {
        /// Approximate length of the straight path through it, in bytes.
        const LEN: usize = 2304;
        sys::prefetch(Self::publish as *const u8, LEN);
    }

    /// The topic and its type.
    pub fn topic(&self) -> &TopicType {
        &self.core.topic
    }

    /// Unique among all endpoints of the bus. The origin of its messages unless another is given.
    pub fn id(&self) -> u64 {
        self.core.id
    }

    /// The bus that it belongs to.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Number of subscribers that are connected and ready to take messages.
    pub fn subscriber_count(&self) -> usize {
        if self.core.birth.is_foreign() {
            return 0;
        }
        self.core.lock().subscriber_count()
    }

    /// Calls `each` with the identity of every connected subscriber. Allocates no memory. `each` must not use
    /// this publisher.
    pub fn each_subscriber(&self, each: impl FnMut(u64)) {
        if self.core.birth.is_foreign() {
            return;
        }
        let mut state = self.core.lock();
        // Those that have left are not counted.
        state.reap();
        state.connected().for_each(each);
    }

    /// Blocks until at least `n` subscribers are connected. Returns false if `timeout` passes first.
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
        self.core.stats()
    }

    /// The last 16 peers that were refused, and the reasons.
    pub fn refusals(&self) -> Vec<Refusal> {
        if self.core.birth.is_foreign() {
            Vec::new()
        } else {
            self.core.refusals.list()
        }
    }

    /// Overwrites the data parts of a published message in place, through the publisher's own mapping. A test
    /// can then show that a subscriber's view was never copied.
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
        // Remove the name first, so that nobody connects any more; then close the connections.
        self.file = None;
        crate::hooks::step("close-unnamed");
        self.core.shared.command(Command::Remove(self.core.id));
        let mut guard = self.core.lock();
        let state = &mut *guard;
        state.closed = true;
        for mut attached in state.attached.drain(..) {
            attached.socket.hang_up();
            crate::hooks::step("close-hung-up");
            attached.clear(&mut state.pool);
        }
        state.history.clear(&mut state.pool);
    }
}
