//! Doorbells on the subscriber's side: one for each subscriber, or one for many.

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
/// Cheap to clone. Give it to subscribers by
/// [`SubscriberOptions::with_wait_set`](crate::SubscriberOptions::with_wait_set).
///
/// In a poll loop of your own: poll [`WaitSet::as_fd`]; when it is readable, take from every subscriber until
/// it is empty; then call [`WaitSet::rearm`], and take again if it says so; then poll.
#[derive(Clone, Debug)]
pub struct WaitSet {
    pub(crate) waiter: Arc<Waiter>,
}

impl WaitSet {
    /// A set without subscribers.
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

    /// Waits until a message can be taken from one of the subscribers; false if `timeout` passed first, or if an
    /// [`Interrupt`] was used. Signals do not end it.
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

    /// What makes a thread that waits here return.
    pub fn interrupt(&self) -> Interrupt {
        Interrupt {
            waiter: self.waiter.clone(),
        }
    }

    /// If no subscriber has a message, makes the descriptor wait for the next one and gives false. Otherwise
    /// the descriptor is readable, and it gives true.
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

/// Makes a thread that waits for messages return without one. Cheap to clone; any thread may use it.
#[derive(Clone, Debug)]
pub struct Interrupt {
    pub(crate) waiter: Arc<Waiter>,
}

impl Interrupt {
    /// Ends one wait of the subscriber, or of its wait set: the one in progress, or else the next that finds no
    /// message. Several calls before that end one wait.
    pub fn wake(&self) {
        if !self.waiter.birth.is_foreign() {
            self.waiter.interrupted.store(true, Ordering::SeqCst);
            self.waiter.ring();
        }
    }
}

/// A doorbell and those who sleep at it.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) waker: Waker,
    birth: Birth,
    members: Mutex<Vec<Weak<SubCore>>>,
    /// What happened beside messages: peers that came or went.
    events: AtomicU64,
    /// Set by [`Interrupt::wake`], taken by one wait.
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

    /// Waits until the doorbell rings; false if `deadline` passed first.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> Result<bool, TakeError> {
        if self.birth.is_foreign() {
            return Err(TakeError::Forked);
        }
        self.waker
            .wait(deadline)
            .map_err(|source| TakeError::System { source })
    }

    /// Counts the caller as a sleeper. To be called before arming.
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

    /// Whether the caller must not sleep. To be asked after the doorbell was drained: whoever interrupts later
    /// rings it again.
    pub(crate) fn was_interrupted(&self) -> bool {
        self.interrupted.swap(false, Ordering::SeqCst)
    }

    pub(crate) fn ring(&self) {
        self.waker.ring();
    }

    /// How many events there were. Who waits for one reads this first, looks, and then sleeps only if it still
    /// reads the same after the doorbell was drained.
    pub(crate) fn events(&self) -> u64 {
        self.events.load(Ordering::SeqCst)
    }

    /// Something other than a message happened.
    pub(crate) fn announce(&self) {
        self.events.fetch_add(1, Ordering::SeqCst);
        self.ring();
    }
}

/// A condition variable for peers that come and go. It can wake a doorbell too, so that one thread waits for
/// messages and peers at once.
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
