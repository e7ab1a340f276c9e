//! State that the parts of one bus share with its housekeeping thread, and the commands for that thread.

use crate::budget::Budget;
use crate::config::BusConfig;
use crate::folder::Folder;
use crate::publisher::PubCore;
use crate::subscriber::SubCore;
use crate::survey::Answers;
use crate::sys::doorbell::Doorbell;
use crate::sys::epoll::Epoll;
use crate::sys::fork::Birth;
use crate::sys::socket::Listener;
use crate::topic::Refusal;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// State that all parts of one bus share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: BusConfig,
    pub(crate) folder: Folder,
    pub(crate) birth: Birth,
    pub(crate) epoll: Epoll,
    /// What peers hold in this process.
    pub(crate) budget: Arc<Budget>,
    pub(super) commands: Mutex<Vec<Command>>,
    /// Doorbells of other processes, by the pipe's identity: several publishers ring one doorbell through one
    /// descriptor.
    doorbells: Mutex<BTreeMap<u64, Weak<Doorbell>>>,
    /// What endpoints answered to the last survey.
    pub(crate) answers: Mutex<Answers>,
    pub(super) stop: AtomicBool,
}

/// A command for the housekeeping thread.
#[derive(Debug)]
pub(crate) enum Command {
    /// Accept connections for an endpoint, and look for its peers.
    Add(u64, Listener, Core),
    /// An endpoint is gone.
    Remove(u64),
    /// A connection of a subscriber is gone.
    Forget(u64),
    /// Reserve memory ahead of time.
    Grow(Weak<PubCore>),
}

/// An endpoint of this process.
#[derive(Clone, Debug)]
pub(crate) enum Core {
    Publisher(Weak<PubCore>),
    Subscriber(Weak<SubCore>),
}

impl Shared {
    pub(crate) fn new(config: BusConfig, folder: Folder) -> io::Result<Self> {
        Ok(Shared {
            config,
            folder,
            birth: Birth::here()?,
            epoll: Epoll::new()?,
            budget: Budget::new(),
            commands: Mutex::default(),
            doorbells: Mutex::default(),
            answers: Mutex::default(),
            stop: AtomicBool::new(false),
        })
    }

    /// Sends a command to the housekeeping thread; does not wait.
    pub(crate) fn command(&self, command: Command) {
        self.commands
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(command);
        self.epoll.wake();
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.epoll.wake();
    }

    pub(super) fn doorbell(&self, fds: &[OwnedFd]) -> io::Result<Arc<Doorbell>> {
        let mut bells = self.doorbells.lock().unwrap_or_else(PoisonError::into_inner);
        bells.retain(|_, bell| bell.strong_count() > 0);
        let fresh = Doorbell::open(fds)?;
        let identity = Doorbell::identity(fds)?;
        Ok(match bells.get(&identity).and_then(Weak::upgrade) {
            Some(bell) => bell,
            None => {
                let bell = Arc::new(fresh);
                bells.insert(identity, Arc::downgrade(&bell));
                bell
            }
        })
    }
}

impl Core {
    /// Whether the endpoint is connected to `peer`, or is itself gone.
    pub(super) fn is_connected(&self, peer: u64) -> bool {
        match self {
            Core::Publisher(core) => core.upgrade().is_none_or(|c| c.is_attached(peer)),
            Core::Subscriber(core) => core.upgrade().is_none_or(|c| c.is_connected(peer)),
        }
    }

    pub(super) fn refuse(&self, refusal: Refusal) {
        match self {
            Core::Publisher(core) => core
                .upgrade()
                .into_iter()
                .for_each(|c| c.refusals.add(refusal.clone())),
            Core::Subscriber(core) => core
                .upgrade()
                .into_iter()
                .for_each(|c| c.refusals.add(refusal.clone())),
        }
    }
}
