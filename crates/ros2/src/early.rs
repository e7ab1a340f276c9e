//! Messages that arrive before the bridge has checked their publishers: messages kept for late subscribers arrive at
//! once.

use crate::budget::{Budget, Charge, participant_of};
use crate::wire::{Id, Port};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Maximum number of queued messages, in total and per participant.
const MAX_EARLY: usize = 1024;
const MAX_EARLY_EACH: usize = 256;
/// Overhead of a message, in addition to its payload.
const EACH: usize = 128;
/// How long a message is kept.
const PATIENCE: Duration = Duration::from_secs(3);

/// Messages of publishers that the bridge does not know yet.
#[derive(Debug, Default)]
pub(crate) struct Early(VecDeque<(Message, Charge)>);

/// A message of such a publisher.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) port: Port,
    pub(crate) from: Id,
    pub(crate) payload: Vec<u8>,
    pub(crate) time: Option<u64>,
    pub(crate) came: Instant,
}

impl Early {
    /// Keeps a message. Returns `false` if there is no room.
    pub(crate) fn keep(&mut self, budget: &Budget, message: Message) -> bool {
        self.sweep(message.came);
        let same = self
            .0
            .iter()
            .filter(|(m, _)| participant_of(m.from) == participant_of(message.from));
        if self.0.len() >= MAX_EARLY || same.count() >= MAX_EARLY_EACH {
            return false;
        }
        let charge = budget.take(message.from, EACH + message.payload.len());
        charge.is_some_and(|charge| {
            self.0.push_back((message, charge));
            true
        })
    }

    /// Removes and returns the messages for which `is` holds, in order of arrival.
    pub(crate) fn take(&mut self, is: impl Fn(Port, Id) -> bool, now: Instant) -> Vec<Message> {
        self.sweep(now);
        let (taken, left): (VecDeque<_>, _) = self.0.drain(..).partition(|(m, _)| is(m.port, m.from));
        self.0 = left;
        taken.into_iter().map(|(message, _)| message).collect()
    }

    fn sweep(&mut self, now: Instant) {
        let is_old = |m: &Message| now.saturating_duration_since(m.came) > PATIENCE;
        while self.0.front().is_some_and(|(m, _)| is_old(m)) {
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(participant: u8, publisher: u8, len: usize, came: Instant) -> Message {
        let mut from = [participant; 16];
        from[15] = publisher;
        Message {
            port: Port(1),
            from,
            payload: vec![0; len],
            time: None,
            came,
        }
    }

    #[test]
    fn early_messages_are_bounded_for_each_participant_and_in_sum() {
        let now = Instant::now();
        let (budget, mut early) = (Budget::waiting(), Early::default());
        let mut keep =
            |participant, publisher, len, at| early.keep(&budget, message(participant, publisher, len, at));
        let kept = (0..2_000).filter(|n| keep(1, *n as u8, 10, now)).count();
        assert_eq!(kept, MAX_EARLY_EACH, "whichever publisher it names");
        let kept = (0..2_000)
            .filter(|n| keep(2 + (n % 50) as u8, 0, 10, now))
            .count();
        assert_eq!(kept, MAX_EARLY - MAX_EARLY_EACH);
        let later = now + 2 * PATIENCE;
        assert!(!keep(1, 0, 65 << 20, later), "too long for what may wait");
        assert!(keep(1, 0, 60 << 20, later), "the old are gone");
        assert!(!keep(1, 1, 5 << 20, later) && keep(2, 1, 5 << 20, later));
    }

    #[test]
    fn messages_of_one_sender_are_taken_in_order() {
        let now = Instant::now();
        let (budget, mut early) = (Budget::waiting(), Early::default());
        for n in 0..6 {
            early.keep(&budget, message(n % 2, 0, usize::from(n), now));
        }
        let taken = early.take(|port, from| port == Port(1) && from[0] == 1, now);
        assert_eq!(
            taken.iter().map(|m| m.payload.len()).collect::<Vec<_>>(),
            [1, 3, 5]
        );
        assert_eq!(early.take(|_, _| true, now).len(), 3);
        early.keep(&budget, message(1, 0, 1, now));
        assert!(early.take(|_, _| true, now + 2 * PATIENCE).is_empty());
    }
}
