//! The last messages, kept for late joiners.

use crate::losses::Losses;
use crate::peer::Attached;
use crate::pool::{BlockId, Pool};
use crate::ring;
use crate::sys;
use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;

/// The last messages of a publisher, without gaps. It counts as one user of each of their blocks.
#[derive(Debug)]
pub(super) struct History {
    depth: usize,
    /// Sequence and block, oldest first.
    kept: VecDeque<(u64, BlockId)>,
}

impl History {
    pub(super) fn new(depth: u32) -> Self {
        History {
            depth: depth as usize,
            kept: VecDeque::with_capacity(depth as usize),
        }
    }

    /// Whether messages are kept at all.
    pub(super) fn is_kept(&self) -> bool {
        self.depth > 0
    }

    /// Takes over its publisher's use of a block that was just published. Call it only if messages are kept.
    #[inline(never)]
    pub(super) fn keep(&mut self, sequence: u64, block: BlockId, pool: &mut Pool) {
        if self.kept.len() == self.depth
            && let Some((_, oldest)) = self.kept.pop_front()
        {
            pool.unshare(oldest);
        }
        self.kept.push_back((sequence, block));
    }

    /// Gives up the oldest messages until a block becomes free, but never the newest message. Returns false
    /// if that frees nothing because subscribers use the blocks too.
    pub(super) fn shrink(&mut self, pool: &mut Pool) -> bool {
        let older = self.kept.len().saturating_sub(1);
        let Some(i) = (0..older).find(|i| pool.users(self.kept[*i].1) == 1) else {
            return false;
        };
        // Older messages go too, so that the rest has no gap.
        self.kept.drain(..=i).for_each(|(_, block)| pool.unshare(block));
        true
    }

    /// Queues messages after number `after` to a late joiner: the newest, at most `most`, and only as many as
    /// fit its queue and its quota. None of them is counted as lost.
    pub(super) fn replay(&self, to: &mut Attached, most: u32, after: u64, pool: &mut Pool) {
        let mut bytes = 0u64;
        let fitting = self.kept.iter().rev().take_while(|(sequence, block)| {
            bytes = bytes.saturating_add(pool.len_of(*block));
            *sequence > after && (bytes <= to.quota() || bytes == pool.len_of(*block))
        });
        let count = fitting.take(to.depth().min(most as usize)).count();
        let now = sys::monotonic_ns();
        let mut any = false;
        to.replaying = true;
        for (_, block) in self.kept.iter().skip(self.kept.len() - count) {
            to.offer(pool, *block, pool.locate(*block), now, &mut Losses::default());
            any |= to.pushed;
        }
        to.replaying = false;
        to.pushed = any;
        if any {
            <[AtomicU64] as ring::Memory>::fence();
            if to.must_ring() {
                to.bell.ring();
            }
        }
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.kept.iter().map(|(_, block)| *block)
    }

    pub(super) fn clear(&mut self, pool: &mut Pool) {
        self.kept.drain(..).for_each(|(_, block)| pool.unshare(block));
    }
}
