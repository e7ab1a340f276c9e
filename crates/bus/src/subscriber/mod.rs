//! The receiving end of a topic.

mod directed;
mod error;
mod fetched;
mod inner;
mod options;
mod report;
mod sources;

pub use error::TakeError;
pub(crate) use inner::SubCore;
pub use options::{QueuePolicy, SubscriberOptions};
pub use report::{PublisherPeer, SubscriberStats};

use crate::bus::Bus;
use crate::folder::SocketFile;
use crate::frame::Role;
use crate::housekeeping::{Command, Core};
use crate::message::Message;
use crate::publisher::{CreateError, check_option};
use crate::ring::Geometry;
use crate::subscriber::sources::State;
use crate::sys;
use crate::topic::{Refusal, RefusalLog, TopicType};
use crate::waitset::{Changed, Interrupt, WaitSet, Waiter};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The receiving end of a topic.
///
/// All methods may be called from any thread.
#[derive(Debug)]
pub struct Subscriber {
    core: Arc<SubCore>,
    /// Removes the socket from the folder.
    file: Option<SocketFile>,
    /// Keeps the housekeeping thread alive.
    bus: Bus,
}

impl Subscriber {
    pub(crate) fn new(bus: &Bus, topic: TopicType, options: SubscriberOptions) -> Result<Self, CreateError> {
        Self::with(bus, topic, options, sys::unique_id())
    }

    /// Creates a subscriber with the caller's choice of identity.
    pub(crate) fn with(
        bus: &Bus,
        mut topic: TopicType,
        options: SubscriberOptions,
        id: u64,
    ) -> Result<Self, CreateError> {
        topic.check()?;
        if options.conversion != Some(true) {
            topic.flavour.common = [0; 16];
        }
        let max = u64::from(Geometry::MAX);
        check_option("depth", u64::from(options.depth), 1, max)?;
        check_option("max_held", u64::from(options.max_held), 1, max)?;
        check_option("spin in seconds", options.spin.as_secs(), 0, 3600)?;
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
        let changed = Changed::new(options.announces.then(|| waiter.clone()));
        let core = Arc::new(SubCore {
            id,
            topic,
            refusals: RefusalLog::default(),
            options: options.clone(),
            waiter,
            alone,
            birth: shared.birth,
            state: Mutex::new(State {
                early_wake: options.early_wake,
                ..State::default()
            }),
            changed,
            readers: Default::default(),
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

    /// Takes a message if one is queued: the oldest of all publishers, by time of queueing. Never blocks.
    ///
    /// If it finds nothing and the subscriber has its own doorbell, the descriptor becomes unreadable until a
    /// message arrives. Readiness is level-triggered: a loop that polls [`Subscriber::as_fd`] and takes one
    /// message each time misses nothing. With a [`WaitSet`] see [`WaitSet::rearm`].
    pub fn take(&self) -> Result<Option<Message>, TakeError> {
        self.core.take(self.core.alone)
    }

    /// Like [`Subscriber::take`], but leaves the doorbell as it is if it finds nothing: for callers that
    /// spin, so that publishers need not ring. Call [`Subscriber::take`] before sleeping on the descriptor.
    pub fn take_busy(&self) -> Result<Option<Message>, TakeError> {
        self.core.take(false)
    }

    /// Takes a message, waiting for one at most `timeout`; `Duration::MAX` waits forever and avoids setting a
    /// timer. Signals do not end the wait; an [`Interrupt`] ends it with `None`. With
    /// [`SubscriberOptions::with_spin`] it spins first.
    ///
    /// A subscriber in a [`WaitSet`] waits on the set's doorbell, and so also wakes for the other
    /// subscribers.
    pub fn take_timeout(&self, timeout: Duration) -> Result<Option<Message>, TakeError> {
        let deadline = Instant::now().checked_add(timeout);
        if let Some(message) = self.core.take(false)? {
            return Ok(Some(message));
        }
        if self.core.alone && self.core.options.spin.is_zero() {
            return self.take_asleep(deadline);
        }
        while self.wait_until(deadline, true)? {
            if let Some(message) = self.core.take(false)? {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// [`Subscriber::take_timeout`] with its own doorbell and without spinning: after waking it checks once.
    fn take_asleep(&self, deadline: Option<Instant>) -> Result<Option<Message>, TakeError> {
        let _asleep = self.core.waiter.fall_asleep();
        loop {
            if let Some(message) = self.core.take(true)? {
                return Ok(Some(message));
            }
            if self.core.waiter.was_interrupted() || !self.core.waiter.wait(deadline)? {
                return Ok(None);
            }
            self.core.fetch_code();
        }
    }

    /// Whether a message can be taken. If not, the descriptor becomes unreadable until one can. Like
    /// [`WaitSet::rearm`], for callers that poll this subscriber's descriptor.
    ///
    /// # Errors
    /// [`TakeError::Forked`].
    pub fn rearm(&self) -> Result<bool, TakeError> {
        if self.core.birth.is_foreign() {
            return Err(TakeError::Forked);
        }
        Ok(self.core.rearm() || self.core.lock().is_stuck())
    }

    /// Whether a publisher loaned a message and has not published it yet, with
    /// [`SubscriberOptions::with_early_wake`]. Only between waking and the next [`Subscriber::rearm`] or
    /// [`Subscriber::take`].
    pub fn is_expecting(&self) -> bool {
        !self.core.birth.is_foreign() && self.core.lock().is_expecting()
    }

    /// Waits until a message can be taken. Returns false if `timeout` passes first or an [`Interrupt`] is
    /// used. Also returns true if messages are queued but the limit of held messages is reached: taking then
    /// returns the error.
    pub fn wait(&self, timeout: Duration) -> Result<bool, TakeError> {
        self.wait_until(Instant::now().checked_add(timeout), true)
    }

    /// Like [`Subscriber::wait`], but while the limit of held messages is reached it keeps waiting until one
    /// of them is dropped. For loops, after [`TakeError::HoldLimit`].
    pub fn wait_takeable(&self, timeout: Duration) -> Result<bool, TakeError> {
        self.wait_until(Instant::now().checked_add(timeout), false)
    }

    /// Names code that will read the messages: `len` bytes from `start`, at most 4,096, in at most four such
    /// ranges.
    ///
    /// After some milliseconds of sleep none of this code is in the processor's caches, and fetching it as it
    /// runs takes longer than running it. So when [`Subscriber::take_timeout`] wakes, without a wait set and
    /// without spinning, the processor prefetches all of it while the message is being taken. This is a hint:
    /// any address is allowed, and ranges beyond the limit are ignored.
    pub fn fetch_when_woken(&self, start: *const u8, len: usize) {
        self.core.readers.add(start, len);
    }

    /// Starts the same prefetch at once: for callers that poll the descriptor, as soon as it is readable.
    pub fn woken(&self) {
        self.core.fetch_code();
    }

    /// Returns a handle that ends the wait of a thread that waits for messages of this subscriber.
    pub fn interrupt(&self) -> Interrupt {
        Interrupt {
            waiter: self.core.waiter.clone(),
        }
    }

    /// Whether it wakes through `set`.
    pub fn is_in(&self, set: &WaitSet) -> bool {
        Arc::ptr_eq(&self.core.waiter, &set.waiter)
    }

    /// The topic and its type.
    pub fn topic(&self) -> &TopicType {
        &self.core.topic
    }

    /// Unique among all endpoints of the bus.
    pub fn id(&self) -> u64 {
        self.core.id
    }

    /// The bus that it belongs to.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Number of connected publishers.
    pub fn publisher_count(&self) -> usize {
        if self.core.birth.is_foreign() {
            return 0;
        }
        self.core.lock().alive()
    }

    /// Calls `each` with the identity of every connected publisher. Allocates no memory. `each` must not use
    /// this subscriber.
    pub fn each_publisher(&self, each: impl FnMut(u64)) {
        if !self.core.birth.is_foreign() {
            self.core.lock().connected().for_each(each);
        }
    }

    /// Blocks until at least `n` publishers are connected. Returns false if `timeout` passes first.
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

    /// Counters of received and lost messages.
    pub fn stats(&self) -> SubscriberStats {
        if self.core.birth.is_foreign() {
            return SubscriberStats::default();
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

    fn wait_until(&self, deadline: Option<Instant>, tell_stuck: bool) -> Result<bool, TakeError> {
        if self.core.birth.is_foreign() {
            return Err(TakeError::Forked);
        }
        let spin = self.core.options.spin;
        if !spin.is_zero() {
            let end = Instant::now() + spin;
            if self.core.spin(deadline.map_or(end, |d| d.min(end))) {
                return Ok(true);
            }
        }
        let _asleep = self.core.waiter.fall_asleep();
        let set = (!self.core.alone).then(|| WaitSet {
            waiter: self.core.waiter.clone(),
        });
        loop {
            let ready = match &set {
                None => self.core.rearm(),
                // Messages of other subscribers in the set keep the doorbell ringing; they must not keep this
                // one from sleeping.
                Some(set) => {
                    self.core.is_ready() || {
                        set.rearm()?;
                        self.core.is_ready()
                    }
                }
            };
            if ready || tell_stuck && self.core.lock().is_stuck() {
                return Ok(true);
            }
            if self.core.waiter.was_interrupted() {
                return Ok(false);
            }
            if !self.core.waiter.wait(deadline)? {
                return Ok(false);
            }
            if set.is_some() {
                // Do not spin at full speed while other subscribers leave their messages queued.
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
        crate::hooks::step("close-unnamed");
        self.bus.shared().command(Command::Remove(self.core.id));
        let sources = std::mem::take(&mut self.core.lock().sources);
        for source in sources {
            // Held messages keep the connection alive, so the publisher must learn that no further ones are
            // taken.
            source.connection.close();
        }
    }
}
