//! What happens to those who knock.

use std::time::{Duration, Instant};

/// Handshakes under way that others began.
const MAX_HALF_OPEN: usize = 64;
/// The same from one address.
const MAX_SAME: usize = 4;
/// Handshakes begun in one second, since each costs a key agreement and a signature.
const MAX_RATE: u32 = 50;

#[derive(Debug, PartialEq, Eq)]
pub(in crate::carrier) enum Verdict {
    /// Nothing is sent, nothing kept.
    Ignore,
    /// It is to show that it receives at its address, of which nothing is kept.
    Retry,
    /// The handshake begins.
    Accept,
}

/// Decides about first packets, at a bounded rate.
#[derive(Debug)]
pub(in crate::carrier) struct Incoming {
    second: Instant,
    begun: u32,
}

impl Incoming {
    pub(in crate::carrier) fn new(now: Instant) -> Self {
        Incoming {
            second: now,
            begun: 0,
        }
    }

    /// Decides. `knocked` is whether the sender showed that it knows the team's secret, or is still to be asked, `validated`
    /// whether it is known to receive at its address, `known` whether a peer is configured there, and the last how many
    /// handshakes are under way in all and with that address.
    pub(in crate::carrier) fn decide(
        &mut self,
        knocked: bool,
        validated: bool,
        known: bool,
        (all, same): (usize, usize),
        now: Instant,
    ) -> Verdict {
        if !knocked {
            return Verdict::Ignore;
        }
        // A peer where we expect it is spared a round trip, once at a time.
        if !validated && (!known || same > 0) {
            return Verdict::Retry;
        }
        if now.saturating_duration_since(self.second) >= Duration::from_secs(1) {
            *self = Incoming::new(now);
        }
        if same >= MAX_SAME || (!known && all >= MAX_HALF_OPEN) || self.begun >= MAX_RATE {
            return Verdict::Ignore;
        }
        self.begun += 1;
        Verdict::Accept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_cost_nothing_and_floods_little() {
        let now = Instant::now();
        let mut i = Incoming::new(now);
        assert_eq!(i.decide(false, false, true, (0, 0), now), Verdict::Ignore);
        assert_eq!(i.decide(true, false, false, (0, 0), now), Verdict::Retry);
        assert_eq!(i.decide(true, false, true, (0, 0), now), Verdict::Accept);
        assert_eq!(i.decide(true, false, true, (1, 1), now), Verdict::Retry);
        assert_eq!(i.decide(true, true, false, (64, 0), now), Verdict::Ignore);
        assert_eq!(i.decide(true, true, true, (64, 1), now), Verdict::Accept);
        assert_eq!(i.decide(true, true, true, (64, 4), now), Verdict::Ignore);
        let accepted = (0..1000).filter(|_| i.decide(true, true, false, (0, 0), now) == Verdict::Accept);
        assert_eq!(accepted.count(), 48);
        let later = now + Duration::from_secs(1);
        assert_eq!(i.decide(true, true, false, (0, 0), later), Verdict::Accept);
    }
}
