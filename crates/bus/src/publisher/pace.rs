//! For whoever publishes what others sent: whether subscribers keep up, and memory that is given back early.

use super::Publisher;

impl Publisher {
    /// The subscribers that would lose something if a message of so many bytes, all parts together, were published now: this
    /// message, or an older one that would make room for it. Never blocks.
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

    /// Bytes of shared memory that it has reserved, those in retired segments that subscribers still map included.
    pub fn reserved(&self) -> u64 {
        if self.core.birth.is_foreign() {
            return 0;
        }
        let state = self.core.lock();
        state.pool.reserved() + state.pool.pinned()
    }

    /// From now on it reserves no more than so many bytes, and never more than its
    /// [`memory_limit`](crate::PublisherOptions::memory_limit). What it has beyond that stays until it is idle.
    pub fn limit_memory(&self, bytes: u64) {
        if !self.core.birth.is_foreign() {
            let mut state = self.core.lock();
            let bytes = bytes.saturating_sub(state.pool.pinned());
            state.pool.set_limit(bytes.min(self.core.options.memory_limit));
        }
    }

    /// How many messages its subscribers lost in all, departed ones included.
    pub fn lost(&self) -> u64 {
        if self.core.birth.is_foreign() {
            return 0;
        }
        let state = self.core.lock();
        let lost = state.attached.iter().map(|a| a.losses.total());
        lost.fold(state.departed.total(), u64::saturating_add)
    }

    /// Gives up all memory in which no message stands any more, instead of keeping it for the next. Subscribers that map it are told
    /// to unmap it.
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
