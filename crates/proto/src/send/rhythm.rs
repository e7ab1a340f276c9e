//! Prediction of a topic's next message from earlier ones (decision 359).

use crate::policy::tuning::tuning;
use core::time::Duration;
use stats::Time;
use std::collections::VecDeque;

/// A message that is about to arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Foreseen {
    /// The earliest expected arrival.
    pub(crate) from: Time,
    /// The end of the wait for it.
    pub(crate) until: Time,
    /// The period of its source.
    pub(crate) period: Duration,
}

/// The rhythm of a topic's arrivals.
///
/// It uses medians throughout, so a late or missing message does not shift it: the period is the median slope of all
/// pairs of arrivals (Theil and Sen), the phase the median of the remainders.
#[derive(Debug, Default)]
pub(crate) struct Rhythm {
    arrivals: VecDeque<Time>,
    beat: Option<Beat>,
}

#[derive(Clone, Copy, Debug)]
struct Beat {
    period: Duration,
    /// When the last arrival was expected.
    last: Time,
    /// How far arrivals stray, without the worst one.
    spread: Duration,
}

impl Rhythm {
    /// A message arrived.
    pub(crate) fn arrived(&mut self, now: Time) {
        self.arrivals.push_back(now);
        if self.arrivals.len() > tuning().rhythm_arrivals {
            self.arrivals.pop_front();
        }
        self.beat = self.fit();
    }

    /// The next message, if there is a rhythm that has not stopped.
    pub(crate) fn next(&self, now: Time) -> Option<Foreseen> {
        let Beat { period, last, spread } = self.beat?;
        (1..=tuning().rhythm_misses)
            .map(|n| {
                let at = last + period * n;
                Foreseen {
                    from: at - spread,
                    until: at + spread + tuning().rhythm_grace,
                    period,
                }
            })
            .find(|f| f.until > now)
    }

    fn fit(&self) -> Option<Beat> {
        let first = *self.arrivals.front()?;
        if self.arrivals.len() < tuning().rhythm_enough {
            return None;
        }
        let times: Vec<f64> = self
            .arrivals
            .iter()
            .map(|t| t.since(first).as_secs_f64())
            .collect();
        let about = median(times.windows(2).map(|w| w[1] - w[0]).collect());
        if about <= 0.0 {
            return None;
        }
        // The beat that each arrival belongs to; some beats may be missing.
        let beats = times.windows(2).scan(0.0, |beat, w| {
            *beat += ((w[1] - w[0]) / about).round();
            Some(*beat)
        });
        let points: Vec<(f64, f64)> = std::iter::once(0.0)
            .chain(beats)
            .zip(times.iter().copied())
            .collect();
        let pairs = points
            .iter()
            .enumerate()
            .flat_map(|(i, a)| points[i + 1..].iter().map(move |b| (b.0 - a.0, b.1 - a.1)));
        let period = median(pairs.filter(|(n, _)| *n > 0.0).map(|(n, d)| d / n).collect());
        let phase = median(points.iter().map(|(n, t)| t - n * period).collect());
        let mut strays: Vec<f64> = points
            .iter()
            .map(|(n, t)| (t - phase - n * period).abs())
            .collect();
        strays.sort_by(f64::total_cmp);
        let spread = seconds(strays[strays.len() - 2])?;
        let period = seconds(period)?;
        if spread > tuning().rhythm_spread.min(period / 8) {
            return None;
        }
        Some(Beat {
            period,
            last: first + seconds(phase + points.last()?.0 * period.as_secs_f64()).unwrap_or_default(),
            spread,
        })
    }
}

fn seconds(s: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(s).ok()
}

/// The values must not be empty: all callers have some.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(arrivals: impl IntoIterator<Item = u64>) -> (Rhythm, Time) {
        let (mut r, mut last) = (Rhythm::default(), Time::ZERO);
        for us in arrivals {
            last = Time::from_micros(us);
            r.arrived(last);
        }
        (r, last)
    }

    #[test]
    fn a_periodic_source_is_foreseen_to_the_microsecond() {
        let (r, now) = after((0..20).map(|i| 777 + i * 20_000));
        let next = r.next(now).expect("a rhythm");
        assert!(next.from.since(now + Duration::from_micros(19_999)) < Duration::from_micros(2));
        assert!(next.until > next.from && next.until.since(next.from) < Duration::from_micros(105));
    }

    #[test]
    fn a_late_message_and_a_missing_one_do_not_shift_it() {
        let late = |i: u64| if i == 14 { 3_000 } else { (i % 3) * 50 };
        let (r, now) = after((0..20).filter(|i| *i != 16).map(|i| i * 20_000 + late(i)));
        let next = r.next(now).expect("a rhythm");
        let ideal = Time::from_micros(400_050);
        assert!(next.from <= ideal && ideal <= next.until, "{next:?}");
        assert!(
            next.until.since(next.from) < Duration::from_micros(400),
            "{next:?}"
        );
    }

    #[test]
    fn jitter_bursts_and_silence_are_no_rhythm() {
        let mut rng = medium::Rng::new(4);
        let (r, now) = after((0..40).map(|i| i * 20_000 + rng.below(12_000)));
        assert_eq!(r.next(now), None);
        let (r, now) = after((0..40).map(|i| i / 4 * 20_000));
        assert_eq!(r.next(now), None);
        let (r, now) = after([5; 30]);
        assert_eq!(r.next(now), None);
        let (r, now) = after((0..20).map(|i| i * 20_000));
        assert!(r.next(now + Duration::from_millis(39)).is_some());
        assert_eq!(r.next(now + Duration::from_millis(41)), None, "it has stopped");
    }
}
