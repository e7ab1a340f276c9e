//! One doorbell for many subscribers.

use crate::bus::{Bus, OpenError};
use crate::subscriber::TakeError;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// One doorbell for many subscribers: a publisher that feeds several of them rings once.
///
/// Cheap to clone. Give it to subscribers by
/// [`SubscriberOptions::with_wait_set`](crate::SubscriberOptions::with_wait_set).
///
/// In a poll loop of your own: poll [`WaitSet::as_fd`]; when it is readable, take from every subscriber until
/// it is empty; then call [`WaitSet::rearm`], and take again if it says so; then poll.
#[derive(Clone, Debug)]
pub struct WaitSet {}

impl WaitSet {
    /// A set without subscribers.
    pub fn new(bus: &Bus) -> Result<WaitSet, OpenError> {
        let _ = bus;
        todo!()
    }

    /// Waits until a message can be taken from one of the subscribers; false if `timeout` passed first.
    /// Interrupted waits go on.
    pub fn wait(&self, timeout: Duration) -> Result<bool, TakeError> {
        let _ = timeout;
        todo!()
    }

    /// If no subscriber has a message, makes the descriptor wait for the next one and gives false. Otherwise
    /// the descriptor is readable, and it gives true.
    pub fn rearm(&self) -> Result<bool, TakeError> {
        todo!()
    }
}

impl AsFd for WaitSet {
    /// Readable when something can be taken: for select, poll, epoll. Do not read from it.
    fn as_fd(&self) -> BorrowedFd<'_> {
        todo!()
    }
}
