//! When to dial a peer (decision 071).

use std::time::{Duration, Instant};

/// Time between two attempts: a returning radio is noticed within it.
const INTERVAL: Duration = Duration::from_millis(400);
/// The same interval, and the silence before the first attempt, while another way leads to the peer: over
/// 802.11 a frame to a host out of reach is tried eight times, and frames behind it in the device queue wait
/// for that long.
const SELDOM: Duration = Duration::from_secs(2);
/// Delay of the end that is second by name, so that the other end dials first.
const BACK_OFF: Duration = Duration::from_millis(150);
/// A peer that was silent for this long may have moved or restarted: dial it in parallel to the existing
/// connection.
const SILENCE: Duration = Duration::from_millis(750);
/// Pause after the other end refused this host: an immediate retry would be refused again.
const REFUSED: Duration = Duration::from_secs(2);
/// An unanswered attempt is given up after this time. It is long enough for paths with delays of seconds, and
/// short enough that QUIC does not retransmit.
pub(in crate::carrier) const PATIENCE: Duration = Duration::from_millis(3_200);

#[derive(Debug)]
pub(in crate::carrier) struct Dial {
    next: Instant,
    /// Whether another path leads to the peer.
    elsewhere: bool,
}

impl Dial {
    pub(in crate::carrier) fn new(now: Instant, first: bool) -> Self {
        Dial {
            next: if first { now } else { now + BACK_OFF },
            elsewhere: false,
        }
    }

    /// Returns whether to start an attempt. `alive` is when the peer last gave a sign of life, `answered`
    /// whether a current attempt got an answer.
    pub(in crate::carrier) fn due(&mut self, now: Instant, alive: Option<Instant>, answered: bool) -> bool {
        let (silence, interval) = match self.elsewhere {
            true => (SELDOM, SELDOM),
            false => (SILENCE, INTERVAL),
        };
        if let Some(t) = alive {
            self.next = self.next.max(t + silence);
        }
        if now < self.next {
            return false;
        }
        self.next = now + interval;
        !answered
    }

    /// Another way now leads to the peer, or none any longer: then dial it often again.
    pub(in crate::carrier) fn leads_elsewhere(&mut self, now: Instant, elsewhere: bool) {
        if self.elsewhere && !elsewhere {
            self.next = self.next.min(now + INTERVAL);
        }
        self.elsewhere = elsewhere;
    }

    /// The other end refused an attempt.
    pub(in crate::carrier) fn refused(&mut self, now: Instant) {
        self.next = self.next.max(now + REFUSED);
    }

    /// When to call `due` again.
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
        assert!(!dial.due(at(950), None, true), "one has an answer: wait for it");
        assert!(!dial.due(at(1400), Some(at(1300)), false), "heard");
        assert!(!dial.due(at(2000), Some(at(1300)), false));
        assert!(dial.due(at(2050), Some(at(1300)), false), "silent");
        dial.refused(at(2100));
        assert!(!dial.due(at(4000), None, false));
        assert!(dial.due(at(4100), None, false));
    }

    #[test]
    fn silent_peers_are_dialled_rarely_while_another_route_exists() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut dial = Dial::new(start, true);
        let mut attempts = |from, to, heard, elsewhere| {
            let mut due = Vec::new();
            for ms in from..to {
                dial.leads_elsewhere(at(ms), elsewhere);
                if dial.due(at(ms), Some(at(heard)), false) {
                    due.push(ms);
                }
            }
            due
        };
        assert_eq!(attempts(0, 7_000, 0, true), [2_000, 4_000, 6_000]);
        assert_eq!(attempts(7_000, 8_000, 0, false), [7_400, 7_800], "no way is left");
        assert_eq!(
            attempts(8_000, 11_000, 0, true),
            [8_200, 10_200],
            "there is one again"
        );
        assert_eq!(attempts(11_000, 14_000, 11_500, true), [13_500], "it is alive");
    }
}
