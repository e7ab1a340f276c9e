//! Complete messages: they are delivered, or wait for those before them or for the sink.
//!
//! A message of a reliable topic counts as delivered once the sink has handed it on without a loss. While the sink
//! cannot ([`Sink::takes`]), the message waits here, whole: it is acknowledged as complete but not as settled, so its
//! sender keeps it in its window and retransmits nothing of it.

use super::window::Fate;
use super::{Receiver, Slot};
use crate::body::Sink;
use core::time::Duration;
use stats::{DropReason, Time};

/// Interval at which a sink that does not accept a message is asked again.
const RETRY: Duration = Duration::from_millis(2);

/// Whether messages wait for the sink.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeldUp {
    any: bool,
    /// When the sink was last asked.
    asked: Time,
}

impl HeldUp {
    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.any.then(|| self.asked + RETRY)
    }
}

impl Receiver {
    /// Memory of the message at `at`, if it was loaned.
    pub(super) fn slot(&self, topic: u32, at: usize) -> Option<Slot> {
        self.topics.get(&topic)?.partials.get(at)?.slot
    }

    /// The message at `at` is complete: delivers it and those that waited for it, unless it has to wait itself.
    pub(super) fn complete(&mut self, topic: u32, at: usize, sink: &mut impl Sink) {
        let Some(t) = self.topics.get_mut(&topic) else {
            return;
        };
        if t.tracker.is_none() {
            return self.finish(topic, at, sink);
        }
        if let Some(p) = t.partials.get_mut(at) {
            p.whole = true;
        }
        self.finish_awaited(topic, sink);
    }

    /// Delivers the complete message at `at`.
    fn finish(&mut self, topic: u32, at: usize, sink: &mut impl Sink) {
        let Some(t) = self.topics.get_mut(&topic) else {
            return;
        };
        let p = t.partials.swap_remove(at);
        let (bytes, cost) = (p.message.geometry.total_len(), p.cost());
        let outcome = p.slot.map_or(Err(DropReason::ReceiverMemory), |s| sink.finish(s));
        let outrun = t.deliver(p.seq, bytes, outcome);
        let reason = match t.tracker {
            Some(_) => DropReason::OutOfOrder,
            None => DropReason::Incomplete,
        };
        self.partials -= 1;
        self.partial_bytes -= cost;
        for seq in outrun {
            self.remove(topic, seq, reason, sink);
        }
    }

    /// Delivers waiting messages, as long as it is their turn and the sink takes them.
    pub(super) fn finish_awaited(&mut self, topic: u32, sink: &mut impl Sink) {
        while let Some(t) = self.topics.get(&topic)
            && let Some(seq) = t.awaited()
            && let Some(at) = t.partials.iter().position(|p| p.seq == seq)
        {
            if t.partials[at].slot.is_some_and(|slot| !sink.takes(slot)) {
                self.held_up.any = true;
                return;
            }
            self.finish(topic, at, sink);
        }
    }

    /// Asks the sink again, if it is due.
    pub(super) fn retry(&mut self, now: Time, sink: &mut impl Sink) {
        if self.held_up.next_timeout().is_none_or(|t| t > now) {
            return;
        }
        self.held_up = HeldUp {
            any: false,
            asked: now,
        };
        let lossy = self.lossy;
        let waits = self.topics.iter().filter(|(_, t)| t.awaited().is_some());
        for id in waits.map(|(id, _)| *id).collect::<Vec<_>>() {
            let before = self.topics.get(&id).map_or(0, |t| t.partials.len());
            self.finish_awaited(id, sink);
            let Some(t) = self.topics.get_mut(&id) else {
                continue;
            };
            // They wait for a subscriber here and no longer depend on their peer.
            t.partials
                .iter_mut()
                .filter(|p| p.whole)
                .for_each(|p| p.touched = now);
            if let Some(tracker) = t.tracker.as_mut().filter(|_| t.partials.len() < before) {
                tracker.owe(now, lossy);
            }
        }
    }

    /// The sender sends nothing more of a message that is not settled.
    pub(super) fn give_up_for_good(&mut self, topic: u32, seq: u64, sink: &mut impl Sink) {
        let Some(t) = self.topics.get_mut(&topic) else {
            return;
        };
        let at = t.partials.iter().position(|p| p.seq == seq);
        match at.map(|at| (at, &t.partials[at])) {
            Some((at, p)) if p.whole && p.slot.is_some_and(|slot| sink.takes(slot)) => {
                return self.finish(topic, at, sink);
            }
            Some((at, _)) => {
                let p = t.partials.swap_remove(at);
                self.partials -= 1;
                self.partial_bytes -= p.cost();
                p.release(DropReason::Expired, sink);
            }
            None if t.fate(seq) != Fate::Open => return,
            None => {}
        }
        t.abandon(seq);
    }
}
