//! What a publisher does when memory is short.

use super::State;
use crate::loan::LoanError;
use crate::peer::Attached;
use crate::pool::{BlockId, Short};
use stats::DropReason;

impl State {
    pub(super) fn find_block(&mut self, len: u64) -> Result<BlockId, LoanError> {
        if let Some(block) = self.pool.reuse(len) {
            return Ok(block);
        }
        self.reap();
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
            if !self.disconnect_pinning() && (self.keeps_queued || !self.drop_from_largest()) {
                return Err(self.explain(short, len));
            }
        }
    }

    /// Lets go of one that keeps memory by not answering; it may connect again when it lives. False if there is
    /// none.
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

    /// Takes the oldest queued message of the subscriber that has the most bytes; false if nothing is queued.
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

    fn explain(&self, short: Short, wanted: u64) -> LoanError {
        match short {
            Short::Limit => {
                let mut held: Vec<BlockId> = self.attached.iter().flat_map(Attached::blocks).collect();
                held.sort_unstable();
                held.dedup();
                let held = held.into_iter().map(|b| self.pool.len_of(b)).sum();
                let loaned = self.pool.used().saturating_sub(held);
                LoanError::MemoryShort {
                    wanted,
                    held,
                    loaned,
                    limit: self.pool.limit(),
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
