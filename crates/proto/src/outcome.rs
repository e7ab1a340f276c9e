//! Outcomes of the messages of reliable topics.

use crate::config::TopicId;
use core::time::Duration;
use stats::{DropReason, Time};
use std::collections::VecDeque;

/// Outcomes of a topic that wait to be fetched; above this the oldest are dropped. The counters keep them.
const MOST: usize = 1024;

/// Outcome of one message of a reliable topic, as returned by [`crate::Radio::next_outcome`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its topic.
    pub topic: TopicId,
    /// Its stamp when it was offered.
    pub stamp: Time,
    /// Its origin when it was offered.
    pub origin: u64,
    /// Its outcome.
    pub end: End,
}

/// Outcome of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The receiver has handed it on, and its acknowledgement arrived this long after the message was offered.
    Delivered(Duration),
    /// It was given up, or the receiver refused it. The receiver may still have a message that was given up: then only
    /// the acknowledgement was lost.
    Lost(DropReason),
}

/// Outcomes that the caller has not fetched yet, by stamp and origin.
#[derive(Debug, Default)]
pub(crate) struct Outcomes(VecDeque<(Time, u64, End)>);

impl Outcomes {
    pub(crate) fn push(&mut self, stamp: Time, origin: u64, end: End) {
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back((stamp, origin, end));
    }

    pub(crate) fn pop(&mut self) -> Option<(Time, u64, End)> {
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_outcomes_are_forgotten() {
        let mut outcomes = Outcomes::default();
        for n in 0..MOST as u64 + 5 {
            outcomes.push(Time::ZERO, n, End::Lost(DropReason::Expired));
        }
        let left: Vec<u64> = core::iter::from_fn(|| outcomes.pop())
            .map(|(_, n, _)| n)
            .collect();
        assert_eq!((left.len(), left[0]), (MOST, 5));
    }
}
