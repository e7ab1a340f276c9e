//! Functions for publishers that republish other senders' messages: they report whether subscribers keep up, and return
//! memory early.

use super::Publisher;

impl Publisher {
    /// Returns the subscribers that would lose a message if one of `len` bytes, all parts together, were
    /// published now: either this message, or an older one that makes room for it. Never blocks.
    pub fn full_subscribers(&self, len: u64) -> Vec<u64> {
        if self.core.birth.is_foreign() {
            return Vec::new();
        }
        let mut state = self.core.lock();
        if state.reap() {
            self.core.changed.notify_all();
        }
        let full = state.attached.iter().filter(|a| a.is_full(len));
        full.map(|a| a.id).collect()
    }

    /// Bytes of shared memory reserved, including retired segments that subscribers still map.
    pub fn reserved(&self) -> u64 {
        if self.core.birth.is_foreign() {
            return 0;
        }
        let state = self.core.lock();
        state.pool.reserved() + state.pool.pinned()
    }

    /// Limits the memory to reserve from now on, at most to
    /// [`memory_limit`](crate::PublisherOptions::memory_limit). Memory beyond that stays reserved until it is
    /// idle.
    pub fn limit_memory(&self, bytes: u64) {
        if !self.core.birth.is_foreign() {
            let mut state = self.core.lock();
            let bytes = bytes.saturating_sub(state.pool.pinned());
            state.pool.set_limit(bytes.min(self.core.options.memory_limit));
        }
    }

    /// Total number of messages that its subscribers lost, including departed ones.
    pub fn lost(&self) -> u64 {
        if self.core.birth.is_foreign() {
            return 0;
        }
        let state = self.core.lock();
        let lost = state.attached.iter().map(|a| a.losses.total());
        lost.fold(state.departed.total(), u64::saturating_add)
    }

    /// Returns all memory that no message uses, instead of keeping it for future messages. Subscribers that
    /// map it are notified to unmap it.
    pub fn trim(&self) {
        if self.core.birth.is_foreign() {
            return;
        }
        let mut guard = self.core.lock();
        let state = &mut *guard;
        if state.reap() {
            self.core.changed.notify_all();
        }
        let attached = &mut state.attached;
        state.pool.trim(|id| {
            let retired = attached.iter_mut().filter_map(|a| a.retire(id).then_some(()));
            retired.count()
        });
    }
}
