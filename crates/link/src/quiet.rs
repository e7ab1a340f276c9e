//! Lines of the log that a peer, a stranger or a publisher could repeat as often as they like.

use stats::Seldom;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How often the log says that something of one kind happens.
pub(crate) const INTERVAL: Duration = Duration::from_secs(10);

/// What one kind of line shares in the whole process: one each [`INTERVAL`] at most.
pub(crate) struct Quiet(Mutex<Seldom>);

impl Quiet {
    pub(crate) const fn new() -> Self {
        Quiet(Mutex::new(Seldom::every(INTERVAL)))
    }

    /// `None` if it is not to be logged now, else how many like it were not since the last line.
    pub(crate) fn lets(&self) -> Option<u64> {
        let mut seldom = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seldom.lets(clock::monotonic())
    }
}
