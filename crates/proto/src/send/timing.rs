//! When to retransmit: round trips to one peer, and losses on the path to it.

use core::time::Duration;
use stats::Time;
use std::collections::VecDeque;

/// Datagrams whose sending time is remembered.
const MOST: usize = 4096;
/// Round trip before the first measurement.
const FIRST: Duration = Duration::from_millis(200);
/// How long an acknowledgement may wait to ride along ([`crate::receive`]), and be late by chance.
const MARGIN: Duration = Duration::from_millis(35);
/// A report on fewer datagrams waits for the next.
const ENOUGH: u64 = 16;
/// Weight of earlier reports after a new one.
const MEMORY: f64 = 0.7;
/// Loss that is assumed at first: datagrams lost, and datagrams sent.
const PRIOR: (f64, f64) = (1.0, 15.0);
/// Chance that all copies are lost, which sets their number: an ordered topic waits for the lost message, and at a long
/// round trip that is dozens of messages.
const REMAINING: f64 = 0.00005;
/// At most this many copies; and a single one below this share of loss.
const MOST_COPIES: u32 = 7;
const CLEAN: f64 = 0.01;
/// Loss assumed for copies until the peer has reported any: at a long round trip that takes seconds, and a message that
/// loses all its copies meanwhile holds up dozens.
const FEARED: f64 = 0.2;
/// Parity per lost byte, and the relative addition for each datagram in a burst. Determined in `medium`:
/// `docs/decisions/092-forward-error-correction.md`.
const PARITY: f64 = 3.0;
const PER_BURST: f64 = 0.5;
/// The first copy follows after a quarter of the round trip, within these bounds: real loss comes in bursts.
const NEAREST: Duration = Duration::from_millis(10);
const WIDEST: Duration = Duration::from_millis(100);

/// When unacknowledged data is retransmitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Timing {
    /// Longest time that an acknowledgement takes, by experience.
    pub(crate) patience: Duration,
    /// Wait before the second copy; each further copy waits longer than the one before.
    pub(crate) spacing: Duration,
    /// Number of copies sent before an acknowledgement can have been missed.
    pub(crate) copies: u32,
    /// Bytes of parity for each byte.
    pub(crate) redundancy: f64,
    /// Share of datagrams that are lost, the number of samples behind it, and how many are lost in a row.
    pub(crate) loss: f64,
    pub(crate) samples: f64,
    pub(crate) burst: f64,
}

/// What acknowledgements and reports show about the path to one peer.
#[derive(Debug)]
pub(crate) struct Way {
    /// When the datagrams from number `first` on were sent.
    sent: VecDeque<Time>,
    first: u64,
    /// Round trip and its mean deviation, smoothed as in RFC 6298.
    smoothed: Option<(Duration, Duration)>,
    /// The last report: newest, arrived, gaps.
    reported: (u64, u64, u64),
    /// Datagrams sent and lost, and runs of lost ones, with older ones weighing less.
    weight: (f64, f64, f64),
    /// Whether the peer has reported on that.
    has_report: bool,
}

impl Default for Way {
    fn default() -> Self {
        Way {
            sent: VecDeque::new(),
            first: 0,
            smoothed: None,
            reported: (0, 0, 0),
            weight: (PRIOR.1, PRIOR.0, PRIOR.0),
            has_report: false,
        }
    }
}

impl Way {
    /// A datagram of this number, one more than the last, was handed over.
    pub(crate) fn sent(&mut self, now: Time, number: u64) {
        if self.first + self.sent.len() as u64 != number {
            self.sent.clear();
            self.first = number;
        }
        self.sent.push_back(now);
        if self.sent.len() > MOST {
            self.sent.pop_front();
            self.first += 1;
        }
    }

    /// The peer has had this datagram for `held`.
    pub(crate) fn answered(&mut self, now: Time, number: u64, held: Duration) {
        let at = number
            .checked_sub(self.first)
            .and_then(|i| usize::try_from(i).ok());
        let Some(at) = at.and_then(|i| self.sent.get(i)) else {
            return;
        };
        let rtt = now.since(*at).saturating_sub(held);
        self.smoothed = Some(self.smoothed.map_or((rtt, rtt / 2), |(s, v)| {
            ((s * 7 + rtt) / 8, (v * 3 + s.abs_diff(rtt)) / 4)
        }));
    }

    /// The peer reports that `came` datagrams up to number `newest` arrived, with `gaps` gaps. Returns true if the
    /// report is of use.
    pub(crate) fn arrivals(&mut self, newest: u64, came: u64, gaps: u64) -> bool {
        let next = newest.saturating_add(1);
        let (sent, here, torn) = (
            next.checked_sub(self.reported.0),
            came.checked_sub(self.reported.1),
            gaps.checked_sub(self.reported.2),
        );
        // A late or false report is of no use.
        let (Some(sent), Some(here), Some(torn)) = (sent, here, torn) else {
            return false;
        };
        if here > sent || torn > sent || sent < ENOUGH {
            return false;
        }
        // Before the first report the peer may have been down.
        if self.reported == (0, 0, 0) {
            self.reported = (next, came, gaps);
            return false;
        }
        let (s, l, t) = self.weight;
        self.weight = (
            s * MEMORY + sent as f64,
            l * MEMORY + (sent - here) as f64,
            t * MEMORY + torn as f64,
        );
        (self.reported, self.has_report) = ((next, came, gaps), true);
        true
    }

    /// The peer has a new session, which counts from zero.
    pub(crate) fn renew(&mut self) {
        self.reported = (0, 0, 0);
    }

    /// Share of datagrams that are lost.
    pub(crate) fn loss(&self) -> f64 {
        let (sent, lost, _) = self.weight;
        (lost / sent.max(1.0)).clamp(0.0, 1.0)
    }

    /// Average number of datagrams lost in a row; 1 if none was lost.
    pub(crate) fn burst(&self) -> f64 {
        let (_, lost, runs) = self.weight;
        (lost / runs.max(1.0)).max(1.0)
    }

    pub(crate) fn timing(&self) -> Timing {
        let (rtt, deviation) = self.smoothed.unwrap_or((FIRST, Duration::ZERO));
        let loss = self.loss();
        let feared = if self.has_report { loss } else { loss.max(FEARED) };
        Timing {
            patience: rtt + deviation * 4 + MARGIN,
            spacing: (rtt / 4).clamp(NEAREST, WIDEST),
            redundancy: (loss * PARITY * (1.0 + self.burst() * PER_BURST)).min(1.0),
            samples: self.weight.0,
            burst: self.burst(),
            loss,
            copies: match feared {
                l if l < CLEAN => 1,
                l => ((REMAINING.ln() / l.min(0.9).ln()).ceil() as u32).clamp(2, MOST_COPIES),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_follow_the_reported_loss() {
        let mut w = Way::default();
        assert_eq!(w.timing().copies, 7, "nothing is known");
        for i in 1..=10u64 {
            w.arrivals(100 * i - 1, 80 * i, 16 * i);
        }
        assert!(
            (0.18..0.22).contains(&w.loss()) && w.timing().copies == 7,
            "{w:?}"
        );
        assert!((1.2..1.3).contains(&w.burst()), "{w:?}");
        w.arrivals(500, 400, 80);
        w.arrivals(u64::MAX, u64::MAX, 0);
        assert!((0.18..0.22).contains(&w.loss()), "late and false reports: {w:?}");
        for i in 11..=40u64 {
            w.arrivals(100 * i - 1, 800 + 100 * (i - 10), 160);
        }
        assert_eq!(w.timing().copies, 1, "{w:?}");
    }

    #[test]
    fn patience_follows_the_round_trip() {
        let mut w = Way::default();
        w.answered(Time::from_millis(5), 3, Duration::ZERO);
        assert_eq!(w.timing().patience, FIRST + MARGIN, "nothing was sent");
        for n in 7..5_000u64 {
            let now = Time::from_millis(n * 10);
            w.sent(now, n);
            w.answered(now + Duration::from_millis(25), n, Duration::from_millis(5));
        }
        let t = w.timing();
        assert!(
            t.patience < Duration::from_millis(60) && t.spacing == NEAREST,
            "{t:?}"
        );
        assert!(w.sent.len() <= MOST);
    }
}
