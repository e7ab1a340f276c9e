//! Limits on what participants may have of a resource, charged before it is used.

use crate::hub::lock;
use crate::wire::Id;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Maximum number of queued bytes of messages and requests, in total and per participant.
const MAX_WAITING: usize = 256 << 20;
const MAX_WAITING_EACH: usize = 64 << 20;
/// Maximum number of publishers on the bus, in total and per participant.
const MAX_PUBLISHERS: usize = 4096;
const MAX_PUBLISHERS_EACH: usize = 1024;

/// A participant: in DDS, the first twelve bytes of its endpoints' identities.
type ParticipantId = [u8; 12];

/// Returns the participant of an endpoint.
pub(crate) fn participant_of(endpoint: Id) -> ParticipantId {
    let mut out = ParticipantId::default();
    out.copy_from_slice(&endpoint[..12]);
    out
}

/// The limit of a resource, in total and per participant.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Shares>);

#[derive(Debug)]
struct Shares {
    most: usize,
    most_each: usize,
    spent: Mutex<Spent>,
}

#[derive(Debug, Default)]
struct Spent {
    all: usize,
    each: BTreeMap<ParticipantId, usize>,
}

/// An amount that stays charged until this is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Budget,
    participant: ParticipantId,
    count: usize,
}

impl Budget {
    fn new(most: usize, most_each: usize) -> Self {
        Budget(Arc::new(Shares {
            most,
            most_each,
            spent: Mutex::default(),
        }))
    }

    /// The budget for queued bytes of messages and requests.
    pub(crate) fn waiting() -> Self {
        Budget::new(MAX_WAITING, MAX_WAITING_EACH)
    }

    /// The budget for publishers on the bus.
    pub(crate) fn publishers() -> Self {
        Budget::new(MAX_PUBLISHERS, MAX_PUBLISHERS_EACH)
    }

    /// Charges `count` to the participant of this endpoint. Returns `None` if that exceeds a limit.
    pub(crate) fn take(&self, endpoint: Id, count: usize) -> Option<Charge> {
        let participant = participant_of(endpoint);
        let mut spent = lock(&self.0.spent);
        let each = spent
            .each
            .get(&participant)
            .copied()
            .unwrap_or(0)
            .saturating_add(count);
        let all = spent.all.saturating_add(count);
        if all > self.0.most || each > self.0.most_each {
            return None;
        }
        spent.all = all;
        spent.each.insert(participant, each);
        let budget = self.clone();
        Some(Charge {
            budget,
            participant,
            count,
        })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut spent = lock(&self.budget.0.spent);
        spent.all -= self.count;
        if let Some(each) = spent.each.get_mut(&self.participant) {
            *each -= self.count;
            if *each == 0 {
                spent.each.remove(&self.participant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_bounded_by_participant_and_in_sum_and_given_back() {
        for (budget, most, most_each) in [
            (Budget::waiting(), MAX_WAITING, MAX_WAITING_EACH),
            (Budget::publishers(), MAX_PUBLISHERS, MAX_PUBLISHERS_EACH),
        ] {
            let (one, mut kept) = (most_each / 64, Vec::new());
            for n in 0..200 {
                // A different endpoint of one participant each time.
                let mut id = [1; 16];
                id[15] = n;
                kept.extend(budget.take(id, one));
            }
            assert_eq!(kept.len(), 64);
            for n in 0..2_000 {
                kept.extend(budget.take([2 + (n % 100) as u8; 16], one));
            }
            assert_eq!(kept.len(), most / one);
            assert!(budget.take([255; 16], usize::MAX).is_none());
            kept.clear();
            let spent = lock(&budget.0.spent);
            assert_eq!((spent.all, spent.each.len()), (0, 0));
        }
    }
}
