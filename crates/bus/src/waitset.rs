//! Doorbells on the subscriber's side: one per subscriber, or one for many.

use crate::bus::{Bus, OpenError};
use crate::ring::{self, Bell, Memory};
use crate::subscriber::{SubCore, TakeError};
use crate::sys::doorbell::Waker;
use crate::sys::fork::Birth;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// One doorbell for many subscribers: a publisher that feeds several of them rings once.
///
/// Cheap to clone. Pass it to subscribers with
/// [`SubscriberOptions::with_wait_set`](crate::SubscriberOptions::with_wait_set).
///
/// In your own poll loop: poll [`WaitSet::as_fd`]; when it is readable, take from every subscriber until it
/// is empty; then call [`WaitSet::rearm`], and take again if it returns true; then poll.
#[derive(Clone, Debug)]
pub struct WaitSet {
    pub(crate) waiter: Arc<Waiter>,
}

impl WaitSet {
    /// Creates a set without subscribers.
    pub fn new(bus: &Bus) -> Result<WaitSet, OpenError> {
        let shared = bus.shared();
        if shared.birth.is_foreign() {
            return Err(OpenError::Forked);
        }
        let waiter =
            Waiter::new(shared.config.group.is_some(), shared.birth).map_err(|source| OpenError::System {
                what: "making a doorbell",
                source,
            })?;
        Ok(WaitSet {
            waiter: Arc::new(waiter),
        })
    }

    /// Waits until a message can be taken from one of the subscribers. Returns false if `timeout` passes
    /// first or an [`Interrupt`] is used. Signals do not end the wait.
    pub fn wait(&self, timeout: Duration) -> Result<bool, TakeError> {
        let deadline = Instant::now().checked_add(timeout);
        let _asleep = self.waiter.fall_asleep();
        loop {
            if self.rearm()? {
                return Ok(true);
            }
            if self.waiter.was_interrupted() {
                return Ok(false);
            }
            if !self.waiter.wait(deadline)? {
                return Ok(false);
            }
        }
    }

    /// Returns a handle that ends the wait of a thread that waits here.
    pub fn interrupt(&self) -> Interrupt {
        Interrupt {
            waiter: self.waiter.clone(),
        }
    }

    /// If no subscriber has a message, silences the descriptor until the next one and returns false.
    /// Otherwise leaves the descriptor readable and returns true.
    pub fn rearm(&self) -> Result<bool, TakeError> {
        if self.waiter.birth.is_foreign() {
            return Err(TakeError::Forked);
        }
        let mut members = self.waiter.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.retain(|m| m.strong_count() > 0);
        let members: &[Weak<SubCore>] = &members;
        let each = || members.iter().filter_map(Weak::upgrade);
        Ok(ring::rearm(
            &self.waiter.waker,
            || each().any(|m| m.is_ready()),
            |armed| each().for_each(|m| m.arm(armed)),
            <[AtomicU64] as Memory>::fence,
        ))
    }
}

impl AsFd for WaitSet {
    /// Readable when something can be taken: for select, poll, epoll. Do not read from it.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waiter.waker.as_fd()
    }
}

/// Ends a thread's wait for messages without a message. Cheap to clone; any thread may use it.
#[derive(Clone, Debug)]
pub struct Interrupt {
    pub(crate) waiter: Arc<Waiter>,
}

impl Interrupt {
    /// Ends one wait of the subscriber, or of its wait set: the wait in progress, otherwise the next one that
    /// finds no message. Several calls before that end only one wait.
    pub fn wake(&self) {
        if !self.waiter.birth.is_foreign() {
            self.waiter.interrupted.store(true, Ordering::SeqCst);
            self.waiter.ring();
        }
    }
}

/// A doorbell and the threads that sleep on it.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) waker: Waker,
    birth: Birth,
    members: Mutex<Vec<Weak<SubCore>>>,
    /// Number of events other than messages: peers that connected or disconnected.
    events: AtomicU64,
    /// Set by [`Interrupt::wake`], consumed by one wait.
    interrupted: AtomicBool,
    /// Threads that sleep here or are about to; they arm the rings.
    sleepers: AtomicUsize,
}

/// One of [`Waiter::sleepers`].
#[derive(Debug)]
pub(crate) struct Asleep<'a>(&'a Waiter);

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        self.0.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Waiter {
    pub(crate) fn new(shared: bool, birth: Birth) -> std::io::Result<Self> {
        Ok(Waiter {
            waker: Waker::new(shared)?,
            birth,
            members: Mutex::default(),
            events: AtomicU64::new(0),
            interrupted: AtomicBool::new(false),
            sleepers: AtomicUsize::new(0),
        })
    }

    pub(crate) fn join(&self, member: &Arc<SubCore>) {
        self.members
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::downgrade(member));
    }

    /// Waits until the doorbell rings. Returns false if `deadline` passes first.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> Result<bool, TakeError> {
        if self.birth.is_foreign() {
            return Err(TakeError::Forked);
        }
        self.waker
            .wait(deadline)
            .map_err(|source| TakeError::System { source })
    }

    /// Counts the caller as a sleeper. Call it before arming.
    pub(crate) fn fall_asleep(&self) -> Asleep<'_> {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        Asleep(self)
    }

    pub(crate) fn has_sleepers(&self) -> bool {
        self.sleepers.load(Ordering::SeqCst) > 0
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Whether the caller must not sleep. Call it after draining the doorbell: a later interrupt rings it
    /// again.
    pub(crate) fn was_interrupted(&self) -> bool {
        self.interrupted.swap(false, Ordering::SeqCst)
    }

    pub(crate) fn ring(&self) {
        self.waker.ring();
    }

    /// Number of events so far. A thread that waits for one reads this first, checks its condition, and then
    /// sleeps only if the number is unchanged after draining the doorbell.
    pub(crate) fn events(&self) -> u64 {
        self.events.load(Ordering::SeqCst)
    }

    /// Records an event other than a message.
    pub(crate) fn announce(&self) {
        self.events.fetch_add(1, Ordering::SeqCst);
        self.ring();
    }
}

/// A condition variable for peers that connect and disconnect. It can also wake a doorbell, so that one
/// thread waits for messages and peers at once.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    condition: Condvar,
    observer: Option<Arc<Waiter>>,
}

impl Changed {
    pub(crate) fn new(observer: Option<Arc<Waiter>>) -> Self {
        Changed {
            condition: Condvar::new(),
            observer,
        }
    }

    pub(crate) fn notify_all(&self) {
        self.condition.notify_all();
        if let Some(waiter) = &self.observer {
            waiter.announce();
        }
    }
}

impl Deref for Changed {
    type Target = Condvar;

    fn deref(&self) -> &Condvar {
        &self.condition
    }
}
