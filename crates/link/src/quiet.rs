//! Log messages that a peer, an unknown host or a publisher could cause at will.

use stats::Seldom;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Least interval between log messages of one kind.
pub(crate) const INTERVAL: Duration = Duration::from_secs(10);

/// Rate limit for one kind of log message in the whole process: at most one per [`INTERVAL`].
pub(crate) struct Quiet(Mutex<Seldom>);

impl Quiet {
    pub(crate) const fn new() -> Self {
        Quiet(Mutex::new(Seldom::every(INTERVAL)))
    }

    /// Returns `None` if the message must not be logged at present, else the number of suppressed messages
    /// since the last one.
    pub(crate) fn lets(&self) -> Option<u64> {
        let mut seldom = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seldom.lets(clock::monotonic())
    }
}
