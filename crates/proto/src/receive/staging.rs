//! The beginnings of large messages, before their memory is loaned.
//!
//! One fragment states the length of the whole message. If that alone took memory, a hundred bytes would reserve as
//! much as the largest message takes. So a message that is longer than any that its topic has delivered waits here
//! until a share of it has arrived; only then is its block loaned, and the waiting bytes are copied into it,
//! once (decision 271).

use super::Receiver;
use super::topic::Partial;
use crate::body::Sink;
use stats::DropReason;

/// The part of a message that has to arrive first: a peer makes this host reserve at most this many times the bytes
/// that it sends.
const SHARE: u32 = 16;
/// Cost of a fragment in addition to its bytes.
const EACH: usize = 64;

/// Fragments that wait for the memory of their message.
#[derive(Debug, Default)]
pub(crate) struct Staging {
    fragments: Vec<(u32, Vec<u8>)>,
    held: usize,
}

impl Staging {
    pub(super) fn keep(&mut self, offset: u32, bytes: &[u8]) {
        self.held += bytes.len() + EACH;
        self.fragments.push((offset, bytes.to_vec()));
    }
}

impl Partial {
    /// Whether enough of it has arrived for its memory to be loaned.
    fn deserves_memory(&self) -> bool {
        let total = self.message.geometry.total_len();
        match &self.collector {
            Some(c) => c.is_worth(SHARE),
            None => self.ranges.covers(total) || self.staging.held >= (total / SHARE) as usize,
        }
    }
}

impl Receiver {
    /// Loans memory for the message at `at` if enough of it has arrived, and writes the waiting bytes into it. Returns
    /// false if the message is given up instead, for lack of memory.
    pub(super) fn settle_in(&mut self, topic: u32, at: usize, sink: &mut impl Sink) -> bool {
        let Some(t) = self.topics.get_mut(&topic) else {
            return false;
        };
        let at_once = self.limits.at_once.max(t.proven);
        let Some(p) = t.partials.get_mut(at) else {
            return false;
        };
        let total = p.message.geometry.total_len();
        if p.slot.is_some() || total > at_once && !p.deserves_memory() {
            return true;
        }
        match sink.begin(&p.message) {
            Ok(slot) => {
                p.slot = Some(slot);
                for (offset, bytes) in std::mem::take(&mut p.staging).fragments {
                    t.counts.staged_bytes += bytes.len() as u64;
                    sink.write(slot, offset, &bytes);
                }
                for (offset, bytes) in p.collector.iter().flat_map(|c| c.pieces_kept()) {
                    sink.write(slot, offset, bytes);
                }
                true
            }
            Err(reason) => {
                let p = t.partials.swap_remove(at);
                self.partials -= 1;
                self.partial_bytes -= p.cost();
                self.refuse(topic, p.seq, reason);
                false
            }
        }
    }

    /// Counts a message that has no place here. Lack of room is temporary, and a reliable message is sent again.
    pub(super) fn refuse(&mut self, topic: u32, seq: u64, reason: DropReason) {
        let Some(t) = self.topics.get_mut(&topic) else {
            return;
        };
        let passing = matches!(
            reason,
            DropReason::ReassemblyFull | DropReason::ReceiverMemory | DropReason::Incomplete
        );
        if t.tracker.is_none() || !passing {
            t.lost(seq, reason);
        }
    }
}
