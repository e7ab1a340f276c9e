//! The newest messages of a latched topic, for late joiners.

use super::topic::Pending;
use crate::body::{Body, Message};
use std::collections::VecDeque;

/// The newest messages, oldest first.
pub(crate) struct Latch<B>(VecDeque<Latched<B>>);

struct Latched<B> {
    message: Message<B>,
    /// Order of arrival over all topics.
    arrival: u64,
    /// Whether the peer has been away since.
    missed: bool,
}

impl<B> Default for Latch<B> {
    fn default() -> Self {
        Latch(VecDeque::new())
    }
}

impl<B: Body> Latch<B> {
    /// Keeps a message as one of the newest `depth`. `missed`: the peer is away.
    pub(crate) fn keep(&mut self, message: &Message<B>, arrival: u64, missed: bool, depth: u32) {
        self.0.push_back(Latched {
            message: message.clone(),
            arrival,
            missed,
        });
        self.keep_last(depth);
    }

    /// Keeps at most the newest `depth`.
    pub(crate) fn keep_last(&mut self, depth: u32) {
        let over = self.0.len().saturating_sub(depth as usize);
        self.0.drain(..over);
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The messages due to the peer, except those in `waiting`: all of them if it is `new`, otherwise those that it
    /// missed.
    pub(crate) fn due<'a>(
        &mut self,
        new: bool,
        waiting: impl Iterator<Item = &'a Pending<B>>,
    ) -> Vec<(Message<B>, u64)>
    where
        B: 'a,
    {
        let waiting: Vec<u64> = waiting.map(|p| p.arrival).collect();
        let mut due = Vec::new();
        for l in &mut self.0 {
            if (new || l.missed) && !waiting.contains(&l.arrival) {
                // For a late joiner the wait starts when it joins.
                let message = Message {
                    expires: None,
                    ..l.message.clone()
                };
                due.push((message, l.arrival));
            }
            l.missed = false;
        }
        due
    }
}
