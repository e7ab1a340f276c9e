//! Messages that arrive past their deadline.

use super::{Fate, Receiver, WINDOW};
use crate::body::Sink;
use crate::wire::DataHead;
use stats::DropReason;

impl Receiver {
    /// The rest of a message arrived past its deadline: gives the message up and counts it.
    pub(crate) fn late(&mut self, head: &DataHead, sink: &mut impl Sink) {
        let Some(t) = self.topics.get_mut(&head.topic).filter(|t| t.accepted) else {
            return;
        };
        if t.partials.iter().any(|p| p.seq == head.seq) {
            self.remove(head.topic, head.seq, DropReason::Expired, sink);
        } else if t.window.fate(head.seq) == Fate::Open && head.seq < t.window.top().saturating_add(WINDOW) {
            t.lost(head.seq, DropReason::Expired);
        }
    }
}
