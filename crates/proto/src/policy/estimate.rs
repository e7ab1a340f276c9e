//! Estimate of the medium's rate where none is configured.

use super::flight::Lesson;
use super::tuning::tuning;
use crate::airtime::AirtimeModel;
use core::time::Duration;
use std::collections::VecDeque;

/// Learns the rate towards one peer.
///
/// A sample is the spacing at which two datagrams arrive that were handed over together: the second waited in the
/// device queue while the first was served, so the spacing is its service time, whatever receipts, clocks and the
/// sender's own pace do. The estimate is the median. Once the sender paces by it there are no such pairs; then round
/// trips are compared with it, which only a faster radio shortens.
#[derive(Debug)]
pub(crate) struct Estimate {
    guess: AirtimeModel,
    samples: VecDeque<u64>,
    current: Option<AirtimeModel>,
    contradictions: u32,
    /// The longest contradicting round trip, relative to the estimate.
    longest: f64,
    lost: u64,
}

impl Estimate {
    /// `guess` is used until there is an estimate.
    pub(crate) fn new(guess: AirtimeModel) -> Self {
        Estimate {
            guess,
            samples: VecDeque::new(),
            current: None,
            contradictions: 0,
            longest: 0.0,
            lost: 0,
        }
    }

    /// Number of times it ceased to hold.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Cost of datagrams, and whether that is more than a guess.
    pub(crate) fn airtime(&self) -> (AirtimeModel, bool) {
        (self.current.unwrap_or(self.guess), self.current.is_some())
    }

    /// Takes the measurements from a receipt. `path` is the delay of the path itself, `receipt` the length of the
    /// datagram that carried it. Returns true if that makes an estimate.
    pub(crate) fn learn(&mut self, lesson: Lesson, path: Duration, receipt: usize) -> bool {
        if let Some(rtt) = lesson.round_trip {
            self.hold_against(rtt.saturating_sub(path), lesson.bytes, receipt);
        }
        let Some(service) = lesson.service.filter(|_| self.current.is_none()) else {
            return false;
        };
        self.samples.push_back(self.guess.rate_of(lesson.bytes, service));
        if self.samples.len() > tuning().estimate_samples {
            self.samples.pop_front();
        }
        self.current = self.fit();
        self.current.is_some()
    }

    /// A datagram and its receipt took at most `rtt` together. A peer that sends little may have no pairs for long, and
    /// would otherwise trust an outdated rate: its claims of the air would last as long as at that rate.
    fn hold_against(&mut self, rtt: Duration, bytes: usize, receipt: usize) {
        let model = self.airtime().0;
        let believed = model.airtime(bytes, 1) + model.airtime(receipt, 1);
        if rtt >= believed.mul_f64(tuning().estimate_faster) {
            (self.contradictions, self.longest) = (0, 0.0);
            return;
        }
        self.contradictions += 1;
        self.longest = self.longest.max(rtt.as_secs_f64() / believed.as_secs_f64());
        if self.contradictions < tuning().contradictions {
            return;
        }
        let longest = self.longest;
        if self.current.is_some() {
            self.forget();
        }
        // The round trips include the cost of a frame besides its bits, so the rate is at least this.
        self.guess = self
            .guess
            .at_rate((model.rate_bits as f64 / longest.max(tuning().estimate_least)) as u64);
        (self.contradictions, self.longest) = (0, 0.0);
    }

    /// It no longer holds.
    pub(crate) fn forget(&mut self) {
        if let Some(model) = self.current.take() {
            self.lost += 1;
            self.guess = AirtimeModel {
                gain: self.guess.gain,
                ..model
            };
        }
        self.samples.clear();
        (self.contradictions, self.longest) = (0, 0.0);
    }

    fn fit(&self) -> Option<AirtimeModel> {
        let n = self.samples.len();
        if n < tuning().estimate_enough {
            return None;
        }
        let mut rates: Vec<u64> = self.samples.iter().copied().collect();
        rates.sort_unstable();
        let model = |i: usize| self.guess.at_rate(rates[i]);
        let service = |i: usize| model(i).with_gain(1.0).airtime(tuning().packet, 1).as_secs_f64();
        let spread = service(n / 4) - service(n - 1 - n / 4);
        let middle = model(n / 2);
        (spread <= tuning().estimate_spread * service(n / 2)).then(|| match middle.gain {
            Some(_) => middle,
            None => middle.with_gain(tuning().estimate_gain),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lesson(service: Duration) -> Lesson {
        Lesson {
            bytes: 1472,
            service: Some(service),
            ..Lesson::default()
        }
    }

    #[test]
    fn it_finds_the_rate_among_back_offs_and_outliers() {
        let mut rng = medium::Rng::new(9);
        for mbit in [1, 2, 6, 11, 24] {
            let mut e = Estimate::new(AirtimeModel::wifi(6_000_000));
            let truth = AirtimeModel::wifi(mbit * 1_000_000)
                .with_gain(1.0)
                .airtime(1472, 1);
            for i in 0.. {
                assert!(i < 64, "no estimate at {mbit} Mbit/s");
                let back_off = Duration::from_micros(9 * rng.below(16));
                let outlier = Duration::from_millis(if i % 7 == 3 { 9 } else { 0 });
                let service = truth - Duration::from_nanos(67_500) + back_off + outlier;
                if e.learn(lesson(service), Duration::ZERO, 30) {
                    break;
                }
            }
            let found = e.airtime().0.with_gain(1.0).airtime(1472, 1);
            let error = found.as_secs_f64() / truth.as_secs_f64() - 1.0;
            assert!(error.abs() < 0.07, "{mbit} Mbit/s: off by {error}");
        }
    }

    #[test]
    fn shorter_round_trips_end_it() {
        let mut e = Estimate::new(AirtimeModel::wifi(6_000_000));
        while !e.learn(lesson(Duration::from_millis(12)), Duration::ZERO, 30) {}
        let quick = Lesson {
            bytes: 1472,
            round_trip: Some(Duration::from_millis(3)),
            ..Lesson::default()
        };
        for left in (0..tuning().contradictions).rev() {
            e.learn(quick, Duration::ZERO, 30);
            assert_eq!(e.airtime().1, left > 0);
        }
    }

    #[test]
    fn who_sends_little_learns_by_round_trips_that_it_is_faster() {
        let mut e = Estimate::new(AirtimeModel::wifi(1_000_000));
        let truth = AirtimeModel::wifi(6_000_000).with_gain(1.0);
        for _ in 0..10 * tuning().contradictions {
            let quick = Lesson {
                bytes: 200,
                round_trip: Some(truth.airtime(200, 1) + truth.airtime(30, 1)),
                ..Lesson::default()
            };
            e.learn(quick, Duration::ZERO, 30);
        }
        let (model, estimated) = e.airtime();
        let rate = model.rate_bits as f64 / 6e6;
        assert!((0.6..1.0).contains(&rate) && !estimated, "{rate} of it");
        // A slower round trip says nothing: it may have waited.
        let slow = Lesson {
            round_trip: Some(Duration::from_millis(90)),
            ..lesson(Duration::ZERO)
        };
        (0..9).for_each(|_| {
            assert!(!e.learn(
                Lesson {
                    service: None,
                    ..slow
                },
                Duration::ZERO,
                30
            ))
        });
        assert_eq!(e.airtime().0, model);
    }
}
