//! Requests that wait for room in a server's queue. The participant with the fewest requests in progress is served
//! next.

use crate::budget::{Budget, Charge, participant_of};
use crate::wire::{Caller, Id};
use std::collections::VecDeque;
use std::time::Instant;

/// Maximum number of unanswered requests of one service, in total and per participant.
pub(crate) const MAX_OPEN: usize = 1024;
const MAX_OPEN_EACH: usize = 256;
/// Overhead of a request, in addition to its payload.
const EACH: usize = 128;

/// A waiting request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) caller: Caller,
    pub(crate) payload: Vec<u8>,
    pub(crate) until: Instant,
    _charge: Charge,
}

/// The waiting requests of one service.
#[derive(Debug, Default)]
pub(crate) struct Waiting(VecDeque<Request>);

impl Waiting {
    /// Whether a participant may have another request open, in addition to those that wait and those `under_way`.
    pub(crate) fn has_room<'a>(&'a self, of: Id, under_way: impl Iterator<Item = &'a Caller>) -> bool {
        let (mut all, mut each) = (0, 0);
        for caller in self.0.iter().map(|r| &r.caller).chain(under_way) {
            all += 1;
            each += usize::from(participant_of(caller.sender) == participant_of(of));
        }
        all < MAX_OPEN && each < MAX_OPEN_EACH
    }

    /// Queues a request. Returns `false` if there is no memory for it.
    pub(crate) fn push(&mut self, budget: &Budget, caller: Caller, payload: &[u8], until: Instant) -> bool {
        let Some(_charge) = budget.take(caller.sender, EACH + payload.len()) else {
            return false;
        };
        self.0.push_back(Request {
            caller,
            payload: payload.to_vec(),
            until,
            _charge,
        });
        true
    }

    /// Puts a request back in front of all others.
    pub(crate) fn put_back(&mut self, request: Request) {
        self.0.push_front(request);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes and returns the request to serve next.
    pub(crate) fn next<'a>(
        &mut self,
        under_way: impl Iterator<Item = &'a Caller> + Clone,
    ) -> Option<Request> {
        let busy = |r: &Request| {
            let same = under_way
                .clone()
                .filter(|c| participant_of(c.sender) == participant_of(r.caller.sender));
            same.count()
        };
        let mut first: Vec<(usize, usize)> = Vec::new();
        let mut seen = Vec::new();
        for (at, request) in self.0.iter().enumerate() {
            let of = participant_of(request.caller.sender);
            if !seen.contains(&of) {
                seen.push(of);
                first.push((busy(request), at));
            }
        }
        let (_, at) = first.into_iter().min()?;
        self.0.remove(at)
    }

    /// Removes and returns the requests whose time is over.
    pub(crate) fn late(&mut self, now: Instant) -> Vec<Request> {
        let (late, left) = self.0.drain(..).partition(|r| r.until <= now);
        self.0 = left;
        Vec::from(late as VecDeque<Request>)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn caller(participant: u8, number: i64) -> Caller {
        Caller {
            sender: [participant; 16],
            reader: [participant; 16],
            number,
        }
    }

    #[test]
    fn open_requests_are_bounded_for_each_participant_and_in_sum() {
        let (budget, mut waiting) = (Budget::waiting(), Waiting::default());
        let until = Instant::now() + Duration::from_secs(9);
        let under_way: Vec<Caller> = (0..10).map(|n| caller(1, n)).collect();
        let mut kept = [0; 2];
        for n in 0..3_000 {
            for (i, participant) in [1, 2 + (n % 100) as u8].into_iter().enumerate() {
                let one = caller(participant, n);
                if waiting.has_room(one.sender, under_way.iter()) {
                    assert!(waiting.push(&budget, one, &[0; 8], until));
                    kept[i] += 1;
                }
            }
        }
        assert_eq!(kept, [MAX_OPEN_EACH - 10, MAX_OPEN - MAX_OPEN_EACH]);
        assert_eq!(waiting.late(until).len(), MAX_OPEN - 10);
        assert!(!waiting.push(&budget, caller(1, 0), &vec![0; 65 << 20], until));
    }

    #[test]
    fn the_participant_with_the_fewest_pending_requests_is_next() {
        let (budget, mut waiting) = (Budget::waiting(), Waiting::default());
        let until = Instant::now() + Duration::from_secs(9);
        for (participant, number) in [(1, 1), (1, 2), (2, 1), (1, 3), (3, 1)] {
            waiting.push(&budget, caller(participant, number), &[], until);
        }
        let mut under_way: Vec<Caller> = (10..14).map(|n| caller(1, n)).collect();
        let mut turns = Vec::new();
        while let Some(next) = waiting.next(under_way.iter()) {
            turns.push((next.caller.sender[0], next.caller.number));
            under_way.push(next.caller);
        }
        assert_eq!(turns, [(2, 1), (3, 1), (1, 1), (1, 2), (1, 3)]);
    }
}
