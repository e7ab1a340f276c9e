//! Context in which endpoints act.

use crate::send::Outbox;
use crate::timers::{Timer, Timers};
use core::time::Duration;

/// The time, the messages to send, and the timers.
pub(crate) struct Context<'a> {
    pub(crate) now: Duration,
    pub(crate) outbox: &'a mut Outbox,
    pub(crate) timers: &'a mut Timers<Timer>,
}

/// Whether the count of a submessage is newer than the last one seen. Counts may wrap.
pub(crate) fn is_newer(count: u32, seen: Option<u32>) -> bool {
    seen.is_none_or(|seen| count.wrapping_sub(seen) as i32 > 0)
}
