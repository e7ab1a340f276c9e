//! What a publisher does when memory is short (decision 030).

use super::inner::{PubCore, State};
use super::options::MemoryPolicy;
use crate::loan::LoanError;
use crate::peer::Attached;
use crate::pool::{BlockId, Short};
use stats::DropReason;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

/// Interval at which a waiting loan checks for released memory: short at first, then longer.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
/// Interval at which it asks its caller whether to keep waiting.
const ASKED_EACH: Duration = Duration::from_millis(50);

impl PubCore {
    /// Returns a block of `len` bytes with one user, as the policy allows. Waits only under
    /// [`MemoryPolicy::Block`], without the lock and while `go_on` returns true.
    pub(super) fn find_block(
        &self,
        len: u64,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(MutexGuard<'_, State>, BlockId), LoanError> {
        let policy = self.options.memory_policy;
        let mut deadline = None;
        let mut asked = None;
        let mut pause = FIRST_PAUSE;
        loop {
            let mut state = self.lock();
            let at_hand = if state.hurried {
                state.pool.reuse(len)
            } else {
                None
            };
            let found = match at_hand {
                Some(block) => Ok(block),
                None => {
                    if state.reap() {
                        self.changed.notify_all();
                    }
                    state.find_block(len, policy)
                }
            };
            let error = match found {
                Ok(block) => {
                    state.stalled = false;
                    return Ok((state, block));
                }
                Err(error) => error,
            };
            if let (MemoryPolicy::Block(timeout), LoanError::MemoryShort { .. }) = (policy, &error)
                && !state.stalled
            {
                let now = Instant::now();
                let left = deadline
                    .get_or_insert(now + timeout)
                    .saturating_duration_since(now);
                if !left.is_zero() {
                    drop(state);
                    if now.duration_since(*asked.get_or_insert(now)) >= ASKED_EACH {
                        asked = Some(now);
                        if !go_on() {
                            self.lock().refused += 1;
                            return Err(error);
                        }
                    }
                    std::thread::sleep(pause.min(left));
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    continue;
                }
                state.stalled = true;
            }
            state.refused += 1;
            return Err(error);
        }
    }
}

impl State {
    /// Call it after [`State::reap`].
    fn find_block(&mut self, len: u64, policy: MemoryPolicy) -> Result<BlockId, LoanError> {
        let mut drops = policy.drops();
        loop {
            if let Some(block) = self.pool.reuse(len) {
                return Ok(block);
            }
            let attached = &mut self.attached;
            let short = match self.pool.grow(len, |id| {
                attached
                    .iter_mut()
                    .filter_map(|a| a.retire(id).then_some(()))
                    .count()
            }) {
                Ok(block) => return Ok(block),
                Err(short) => short,
            };
            if self.disconnect_pinning() || self.history.shrink(&mut self.pool) {
                continue;
            }
            if drops == 0 || !self.drop_from_largest() {
                return Err(self.explain(short, len, policy));
            }
            drops -= 1;
        }
    }

    /// Disconnects a subscriber that pins memory by not answering; it may reconnect once it runs again.
    /// Returns false if there is none.
    fn disconnect_pinning(&mut self) -> bool {
        let Some(i) = self.attached.iter().position(Attached::pins_for_long) else {
            return false;
        };
        let a = &self.attached[i];
        tracing::warn!(
            pid = a.peer.pid,
            subscriber = a.id,
            "disconnected a subscriber that unmaps nothing"
        );
        self.remove(i);
        true
    }

    /// Takes the oldest queued message from the subscriber that has the most bytes. Returns false if nothing
    /// is queued.
    fn drop_from_largest(&mut self) -> bool {
        loop {
            let largest = self
                .attached
                .iter_mut()
                .filter(|a| a.queued() > 0)
                .max_by_key(|a| a.bytes());
            let Some(attached) = largest else { return false };
            match attached.drop_oldest(&mut self.pool, DropReason::MemoryShort) {
                Ok(true) => return true,
                Ok(false) => {}
                Err(hostile) => {
                    attached.hostile = Some(hostile);
                    self.remove_hostile();
                    return true;
                }
            }
        }
    }

    fn explain(&self, short: Short, wanted: u64, policy: MemoryPolicy) -> LoanError {
        match short {
            Short::Limit => {
                // A block with several users counts once, for the first of them that has it.
                let mut counted: Vec<BlockId> = Vec::new();
                let mut bytes = |blocks: &mut dyn Iterator<Item = BlockId>| {
                    let mut sum = 0;
                    for block in blocks {
                        if let Err(i) = counted.binary_search(&block) {
                            counted.insert(i, block);
                            sum += self.pool.len_of(block);
                        }
                    }
                    sum
                };
                let held = bytes(&mut self.attached.iter().flat_map(Attached::held_blocks));
                let queued = bytes(&mut self.attached.iter().flat_map(Attached::blocks));
                let history = bytes(&mut self.history.blocks());
                LoanError::MemoryShort {
                    wanted,
                    held,
                    queued,
                    history,
                    loaned: self.pool.used().saturating_sub(held + queued + history),
                    limit: self.pool.limit(),
                    policy,
                }
            }
            Short::System { available, which } => LoanError::SystemMemory {
                wanted,
                available,
                which,
            },
            Short::FileSize { wanted, limit } => LoanError::FileSizeLimit { wanted, limit },
            Short::Failed { what, source } => LoanError::System { what, source },
        }
    }
}
