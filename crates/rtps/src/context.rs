//! What endpoints act by.

use crate::send::Outbox;
use crate::timers::{Timer, Timers};
use core::time::Duration;

/// The time, what is to be sent, and what is to be done later.
pub(crate) struct Context<'a> {
    pub(crate) now: Duration,
    pub(crate) outbox: &'a mut Outbox,
    pub(crate) timers: &'a mut Timers<Timer>,
}

/// Whether a count of a submessage is newer than the last one seen. It may wrap.
pub(crate) fn is_newer(count: u32, seen: Option<u32>) -> bool {
    seen.is_none_or(|seen| count.wrapping_sub(seen) as i32 > 0)
}
