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
use crate::house::{Command, Core};
use crate::message::Message;
use crate::publisher::{CreateError, check_option};
use crate::ring::Geometry;
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
    /// Keeps the housekeeping thread.
    bus: Bus,
}

impl Subscriber {
    pub(crate) fn new(bus: &Bus, topic: TopicType, options: SubscriberOptions) -> Result<Self, CreateError> {
        Self::with(bus, topic, options, sys::unique_id())
    }

    /// With an identity of the caller's.
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
            state: Mutex::default(),
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

    /// Takes a message, waiting for one at most `timeout`; `Duration::MAX` is for ever, and saves setting a timer.
    /// Signals do not end the wait; an [`Interrupt`] does, with `None`. With [`SubscriberOptions::with_spin`] it spins first.
    ///
    /// Of a subscriber in a [`WaitSet`] it waits on the whole set's doorbell, and so also wakes for the others.
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

    /// [`Subscriber::take_timeout`] with a doorbell of its own and without spinning: after waking it looks once.
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

    /// Whether a message can be taken. If not, the descriptor stops being readable until one can: as [`WaitSet::rearm`], for who polls it.
    ///
    /// # Errors
    /// [`TakeError::Forked`].
    pub fn rearm(&self) -> Result<bool, TakeError> {
        if self.core.birth.is_foreign() {
            return Err(TakeError::Forked);
        }
        Ok(self.core.rearm() || self.core.lock().is_stuck())
    }

    /// Waits until a message can be taken; false if `timeout` passed first, or an [`Interrupt`] was used. True also
    /// when messages are queued but as many are held as may be: taking then says so.
    pub fn wait(&self, timeout: Duration) -> Result<bool, TakeError> {
        self.wait_until(Instant::now().checked_add(timeout), true)
    }

    /// As [`Subscriber::wait`], but while as many messages are held as may be it waits on, until one of them is
    /// dropped: after [`TakeError::HoldLimit`] in a loop.
    pub fn wait_takeable(&self, timeout: Duration) -> Result<bool, TakeError> {
        self.wait_until(Instant::now().checked_add(timeout), false)
    }

    /// Names code that will read the messages: `len` bytes from `start` on, at most 4,096, and four such ranges.
    ///
    /// After some milliseconds of sleep none of it is in the processor's caches, and fetching it as it runs takes longer than
    /// running it. So whenever [`Subscriber::take_timeout`] was woken, without a wait set and without spinning, the processor is
    /// asked to fetch all of it while the message is being taken. A hint: any address may be named, and what is too many is ignored.
    pub fn fetch_when_woken(&self, start: *const u8, len: usize) {
        self.core.readers.add(start, len);
    }

    /// Asks for that at once: for who waits for its descriptor, as soon as that is readable.
    pub fn woken(&self) {
        self.core.fetch_code();
    }

    /// What makes a thread that waits for messages of this subscriber return.
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
        self.core.stats()
    }

    /// The last 16 peers that did not connect, and why.
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
                // Another member's messages keep the doorbell ringing; they must not keep us from sleeping.
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
        crate::hooks::step("close-unnamed");
        self.bus.shared().command(Command::Remove(self.core.id));
        let sources = std::mem::take(&mut self.core.lock().sources);
        for source in sources {
            // Messages that are still held keep the connection; the publisher must know that no more are taken.
            source.connection.close();
        }
    }
}
