//! Log messages that a peer, an unknown host or a publisher could cause at will.

use stats::Seldom;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Rate limit for one kind of log message in the whole process: at most one per [`Quiet::INTERVAL`].
#[derive(Debug)]
pub struct Quiet(Mutex<Seldom>);

impl Default for Quiet {
    fn default() -> Self {
        Self::new()
    }
}

impl Quiet {
    /// Least interval between log messages of one kind.
    pub const INTERVAL: Duration = Duration::from_secs(10);

    /// A limit of its own, for a `static`.
    #[must_use]
    pub const fn new() -> Self {
        Quiet(Mutex::new(Seldom::every(Self::INTERVAL)))
    }

    /// Returns `None` if the message must not be logged at present, else the number of suppressed messages
    /// since the last one.
    pub fn lets(&self) -> Option<u64> {
        let mut seldom = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seldom.lets(crate::monotonic())
    }
}
