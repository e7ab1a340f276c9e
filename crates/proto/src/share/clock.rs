//! Relation of a peer's clock to ours (decision 359).

use core::time::Duration;
use stats::Time;
use std::collections::VecDeque;

/// Largest drift between two clocks, as a part of the time that passes: 50 parts per million each.
const DRIFT: f64 = 100e-6;
/// The best sample of each span is kept, for this many spans.
const SPAN: Duration = Duration::from_secs(1);
const SPANS: usize = 16;

/// How far a peer's clock is ahead of this host's, and how far that may be off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// Nanoseconds; negative where it is behind.
    pub ahead_ns: i64,
    /// Half the round trip of the sample, plus what the clocks may have drifted apart since.
    pub uncertainty: Duration,
    /// Likely error: half of what neither the airtimes nor the drift explain.
    pub likely: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Time,
    ahead_ns: i64,
    /// Half the round trip, and half of the part that airtimes do not explain.
    half: Duration,
    unexplained: Duration,
}

impl Sample {
    fn at(&self, now: Time) -> ClockOffset {
        let drifted = now.since(self.at).mul_f64(DRIFT);
        ClockOffset {
            ahead_ns: self.ahead_ns,
            uncertainty: self.half + drifted,
            likely: self.unexplained + drifted,
        }
    }
}

/// One exchange: a datagram that asked, and its receipt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    /// When it was sent and when its receipt arrived, by our clock.
    pub(crate) sent: Time,
    pub(crate) back: Time,
    /// When the receipt was sent, by the peer's clock, and how long the peer had held the datagram.
    pub(crate) theirs: Time,
    pub(crate) held: Duration,
    /// Time of the paths there and back that airtimes explain.
    pub(crate) there: Duration,
    pub(crate) here: Duration,
}

/// The offset of one peer's clock (the principle of RFC 5905, section 8): of all exchanges, the one with the least
/// delay is nearest to the truth, until drift has outrun it.
///
/// The estimate corrects for the different airtimes of the two paths. The stated uncertainty is half the round trip all
/// the same; it holds as long as neither path was faster than its airtime.
#[derive(Debug, Default)]
pub(crate) struct PeerClock {
    samples: VecDeque<Sample>,
    /// The peer's own measurement.
    reported: Option<Sample>,
}

impl PeerClock {
    /// An exchange was completed.
    pub(crate) fn learn(&mut self, e: Exchange) {
        let trip = e.back.since(e.sent).saturating_sub(e.held);
        let ns = |d: Duration| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX);
        // The middle of each path, by each clock.
        let there = e.theirs.signed_since(e.sent).saturating_sub(ns(e.held));
        let here = e.theirs.signed_since(e.back);
        let ahead = there
            .saturating_sub(ns(e.there))
            .saturating_add(here.saturating_add(ns(e.here)));
        let sample = Sample {
            at: e.back,
            ahead_ns: ahead / 2,
            half: trip / 2,
            unexplained: trip.saturating_sub(e.there + e.here) / 2,
        };
        // Both cannot be true: the peer's clock was set, or it lied. The latest one counts.
        if let Some(o) = self.offset(e.back)
            && Duration::from_nanos(o.ahead_ns.abs_diff(sample.ahead_ns)) > o.uncertainty + sample.half
        {
            self.clear();
        }
        match self.samples.back_mut() {
            Some(last) if e.back < span(last.at) => {
                if sample.at(e.back).likely < last.at(e.back).likely {
                    // It stays the sample of its span.
                    *last = sample;
                }
            }
            _ => self.samples.push_back(sample),
        }
        if self.samples.len() > SPANS {
            self.samples.pop_front();
        }
    }

    /// The peer reports that our clock is `ahead` of its own.
    pub(crate) fn peer_reports(&mut self, now: Time, ahead_us: i64, uncertainty_us: u64, likely_us: u64) {
        let us = |n: u64| Duration::from_micros(n.min(1 << 40));
        self.reported = Some(Sample {
            at: now,
            ahead_ns: ahead_us.saturating_mul(-1000),
            half: us(uncertainty_us),
            unexplained: us(likely_us),
        });
    }

    /// The peer's clock relative to ours, as well as it is known.
    pub(crate) fn offset(&self, now: Time) -> Option<ClockOffset> {
        let own = self.samples.iter().map(|s| s.at(now)).min_by_key(|o| o.likely);
        own.or_else(|| self.reported.map(|s| s.at(now)))
    }

    /// The peer has a new session, whose clock may be different.
    pub(crate) fn clear(&mut self) {
        *self = PeerClock::default();
    }
}

/// The end of the span in which `t` lies.
fn span(t: Time) -> Time {
    let n = SPAN.as_nanos() as u64;
    Time((t.0 / n + 1).saturating_mul(n))
}

impl ClockOffset {
    /// The time of the peer's clock when this host's shows `ours`.
    pub fn theirs(&self, ours: Time) -> Time {
        Time(ours.0.saturating_add_signed(self.ahead_ns))
    }

    /// The time of this host's clock when the peer's shows `theirs`.
    pub fn ours(&self, theirs: Time) -> Time {
        Time(theirs.0.saturating_add_signed(self.ahead_ns.saturating_neg()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AHEAD: u64 = 7_000_000_000;

    /// A peer whose clock is 7 s ahead and runs 40 ppm fast; with waits of up to `jitter` µs on each path.
    fn exchange(rng: &mut medium::Rng, sent: Time, jitter: u64) -> (Exchange, i64) {
        let us = Duration::from_micros;
        let (there, here, held) = (us(2_200), us(400), us(rng.below(500)));
        let wait = [us(rng.below(jitter)), us(rng.below(jitter))];
        let arrived = sent + there + wait[0];
        let left = arrived + held;
        let theirs = |t: Time| Time(t.0 + AHEAD + t.0 / 25_000);
        let back = left + here + wait[1];
        let truth = theirs(back).signed_since(back);
        let e = Exchange {
            sent,
            back,
            theirs: theirs(left),
            held,
            there,
            here,
        };
        (e, truth)
    }

    #[test]
    fn the_truth_lies_within_what_is_stated_and_is_near() {
        let mut rng = medium::Rng::new(3);
        let mut clock = PeerClock::default();
        for i in 0..1000u64 {
            let (e, truth) = exchange(&mut rng, Time::from_millis(20 * i), 3_000);
            clock.learn(e);
            let found = clock.offset(e.back).expect("an offset");
            let error = found.ahead_ns.abs_diff(truth);
            assert!(
                u128::from(error) <= found.uncertainty.as_nanos(),
                "{error} ns at {i}: {found:?}"
            );
            assert!(
                u128::from(error) <= found.likely.as_nanos() + 1_000,
                "{error} ns at {i}: {found:?}"
            );
            assert!(i < 50 || error < 300_000, "{error} ns after {i} exchanges");
        }
        let later = Time::from_millis(120_000);
        let far = clock.offset(later).expect("an offset");
        assert!(
            far.uncertainty > Duration::from_millis(9),
            "drift widens it: {far:?}"
        );
    }

    #[test]
    fn a_clock_that_was_set_is_believed_again() {
        let mut rng = medium::Rng::new(4);
        let mut clock = PeerClock::default();
        for i in 0..100u64 {
            let (e, truth) = exchange(&mut rng, Time::from_millis(20 * i), 3_000);
            let step = Duration::from_secs(if i < 60 { 0 } else { 90 });
            clock.learn(Exchange {
                theirs: e.theirs + step,
                ..e
            });
            let found = clock.offset(e.back).expect("an offset");
            let error = found.ahead_ns.abs_diff(truth + step.as_nanos() as i64);
            assert!(
                u128::from(error) <= found.uncertainty.as_nanos(),
                "{error} ns at {i}"
            );
        }
    }

    #[test]
    fn the_peers_estimate_is_used_where_nothing_was_measured() {
        let mut clock = PeerClock::default();
        assert_eq!(clock.offset(Time(5)), None);
        clock.peer_reports(Time(5), -250, 400, 40);
        let o = clock.offset(Time(5)).expect("reported");
        assert_eq!((o.ahead_ns, o.likely), (250_000, Duration::from_micros(40)));
        assert_eq!(
            o.ours(o.theirs(Time::from_millis(9_000))),
            Time::from_millis(9_000)
        );
        clock.peer_reports(Time(5), i64::MIN, u64::MAX, u64::MAX);
        let o = clock.offset(Time(5)).expect("reported");
        o.ours(Time(0));
        o.theirs(Time(u64::MAX));
    }
}
