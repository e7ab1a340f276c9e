//! When to dial a peer.

use std::time::{Duration, Instant};

/// Time between two attempts: a radio that returns is noticed within it.
const INTERVAL: Duration = Duration::from_millis(400);
/// The end that is second by name lets the first dial first.
const COURTESY: Duration = Duration::from_millis(150);
/// A peer that was not heard for this long may have moved or restarted: dial, beside the connection that is there.
const SILENCE: Duration = Duration::from_millis(750);
/// After the other end refused us; it will hardly change its mind at once.
const REFUSED: Duration = Duration::from_secs(2);
/// Attempts under way at once for one peer, so that paths of seconds succeed too.
pub(in crate::carrier) const MAX_ATTEMPTS: usize = 8;

#[derive(Debug)]
pub(in crate::carrier) struct Dial {
    next: Instant,
}

impl Dial {
    pub(in crate::carrier) fn new(now: Instant, first: bool) -> Self {
        Dial {
            next: if first { now } else { now + COURTESY },
        }
    }

    /// Whether to begin an attempt now. `alive` is when the peer was last heard, `answered` whether an attempt that
    /// is under way got an answer.
    pub(in crate::carrier) fn due(&mut self, now: Instant, alive: Option<Instant>, answered: bool) -> bool {
        if let Some(t) = alive {
            self.next = self.next.max(t + SILENCE);
        }
        if now < self.next {
            return false;
        }
        self.next = now + INTERVAL;
        !answered
    }

    /// The other end refused an attempt.
    pub(in crate::carrier) fn refused(&mut self, now: Instant) {
        self.next = self.next.max(now + REFUSED);
    }

    /// When to ask again.
    pub(in crate::carrier) fn next(&self) -> Instant {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dials_until_heard_and_again_in_silence() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut dial = Dial::new(start, false);
        assert!(!dial.due(at(0), None, false), "the first by name goes first");
        assert!(dial.due(at(150), None, false));
        assert!(!dial.due(at(200), None, false));
        assert!(dial.due(at(550), None, false));
        assert!(!dial.due(at(950), None, true), "one was answered: wait for it");
        assert!(!dial.due(at(1400), Some(at(1300)), false), "heard");
        assert!(!dial.due(at(2000), Some(at(1300)), false));
        assert!(dial.due(at(2050), Some(at(1300)), false), "silent");
        dial.refused(at(2100));
        assert!(!dial.due(at(4000), None, false));
        assert!(dial.due(at(4100), None, false));
    }
}
