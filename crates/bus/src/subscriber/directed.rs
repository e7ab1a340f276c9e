//! What services need from a subscriber in addition to its messages.

use super::{Subscriber, TakeError};
use crate::losses::Losses;
use crate::waitset::Waiter;
use std::sync::Arc;
use std::time::Instant;

impl Subscriber {
    /// Its doorbell.
    pub(crate) fn waiter(&self) -> &Arc<Waiter> {
        &self.core.waiter
    }

    /// Whether publisher `id` is connected.
    pub(crate) fn hears(&self, id: u64) -> bool {
        let state = self.core.lock();
        let mut sources = state.sources.iter();
        sources.any(|s| s.connection.publisher == id && !s.connection.has_ended())
    }

    /// Losses of this subscriber at publisher `id`, dropped or refused.
    pub(crate) fn losses_from(&self, id: u64) -> Losses {
        let state = self.core.lock();
        let found = state.sources.iter().find(|s| s.connection.publisher == id);
        found.map_or(Losses::default(), |s| s.connection.losses())
    }

    /// Disconnects publisher `id` for good because it broke the protocol.
    pub(crate) fn distrust(&self, id: u64, why: &'static str) {
        let mut state = self.core.lock();
        if let Some(i) = state.sources.iter().position(|s| s.connection.publisher == id) {
            state.sources[i].malformed += 1;
            state.distrust(i, why);
        }
    }

    /// If no message waits, silences the descriptor until the next one and returns false.
    pub(crate) fn arm_for_next(&self) -> bool {
        self.core.rearm()
    }

    /// Sleeps until a message can be taken, the doorbell rings, an event occurs after `seen`
    /// ([`Waiter::events`]), or `deadline` passes.
    pub(crate) fn sleep(&self, seen: u64, deadline: Option<Instant>) -> Result<(), TakeError> {
        let _asleep = self.core.waiter.fall_asleep();
        if self.core.rearm() || self.core.waiter.events() != seen {
            return Ok(());
        }
        self.core.waiter.wait(deadline).map(drop)
    }
}
