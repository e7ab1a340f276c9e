//! Estimate of a path's rate where none is configured (decision 359).

use super::flight::{Lesson, Train};
use super::tuning::tuning;
use crate::airtime::AirtimeModel;
use core::time::Duration;
use std::collections::VecDeque;

/// Learns the rate towards one peer.
///
/// A pair is two datagrams that were handed over together: the second waited in the device queue while the first was
/// served, so the spacing at which they arrive is its service time, whatever receipts, clocks and the sender's own pace
/// do. Where relays or jitter change the spacing of pairs, trains are measured: what arrived one after another while
/// always more was on its way. The estimate is the median pair, or about the fastest train, since others and the
/// sender's pauses only slow trains down. Once the sender paces by it there are no such samples; then round trips are
/// compared with it, which only a faster medium shortens.
#[derive(Debug)]
pub(crate) struct Estimate {
    /// The medium as configured, at any rate.
    medium: AirtimeModel,
    guess: AirtimeModel,
    hops: u32,
    pairs: VecDeque<AirtimeModel>,
    trains: VecDeque<AirtimeModel>,
    /// The train that is still too short.
    train: Train,
    current: Option<AirtimeModel>,
    contradictions: u32,
    /// The longest contradicting round trip, relative to the estimate.
    longest: f64,
    lost: u64,
}

impl Estimate {
    /// `guess` is used until there is an estimate of the path, which has `hops`.
    pub(crate) fn new(guess: AirtimeModel, hops: u32) -> Self {
        Estimate {
            medium: guess,
            guess,
            hops: hops.max(1),
            pairs: VecDeque::new(),
            trains: VecDeque::new(),
            train: Train::default(),
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

    /// Takes the measurements from a receipt. `path` is the delay of the path itself and `varies` the mean deviation of
    /// round trips; `receipt` is the length of the datagram that carried it. Returns true if that makes an estimate.
    pub(crate) fn learn(&mut self, lesson: Lesson, path: Duration, varies: Duration, receipt: usize) -> bool {
        if let Some(rtt) = lesson.round_trip {
            self.hold_against(rtt.saturating_sub(path), lesson.bytes, receipt);
        }
        if self.current.is_some() {
            return false;
        }
        let pair = lesson.service.filter(|_| self.hops == 1);
        let pair = pair.map(|service| self.medium.of(lesson.bytes, service));
        // Next to a host's own radio, pairs agree as soon as the rate stays the same.
        let is_far = self.hops > 1 || !path.is_zero();
        if !is_far {
            self.trains.clear();
        }
        let train = self.couple(lesson.train.filter(|_| is_far), varies);
        if pair.is_none() && train.is_none() {
            return false;
        }
        for (samples, new) in [(&mut self.pairs, pair), (&mut self.trains, train)] {
            samples.extend(new);
            if samples.len() > tuning().estimate_samples {
                samples.pop_front();
            }
        }
        self.current = self.fit();
        self.current.is_some()
    }

    /// Lengthens the train. Returns what it shows once it is long enough.
    fn couple(&mut self, more: Option<Train>, varies: Duration) -> Option<AirtimeModel> {
        let Some(more) = more else {
            self.train = Train::default();
            return None;
        };
        let train = &mut self.train;
        train.datagrams += more.datagrams;
        train.bytes += more.bytes;
        train.took += more.took;
        if train.datagrams < tuning().train || train.took < varies * tuning().train_varies {
            return None;
        }
        let Train {
            datagrams,
            bytes,
            took,
        } = std::mem::take(train);
        let service = took / u32::try_from(datagrams).unwrap_or(u32::MAX) / self.hops;
        Some(self.medium.of(bytes / datagrams, service))
    }

    /// A datagram and its receipt took at most `rtt` together. A peer that sends little may have no pairs for long, and
    /// would otherwise trust an outdated rate: its claims of the air would last as long as at that rate.
    fn hold_against(&mut self, rtt: Duration, bytes: usize, receipt: usize) {
        let model = self.airtime().0;
        let believed = model.airtime(bytes, self.hops) + model.airtime(receipt, self.hops);
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
        self.pairs.clear();
        self.trains.clear();
        self.train = Train::default();
        (self.contradictions, self.longest) = (0, 0.0);
    }

    fn fit(&self) -> Option<AirtimeModel> {
        let gain = match self.hops {
            1 => tuning().estimate_gain,
            _ => tuning().trains_gain,
        };
        let model = self.median_pair().or_else(|| self.fast_train())?;
        Some(model.with_gain(model.gain.unwrap_or(gain)))
    }

    /// The median pair, if the middle half agrees.
    fn median_pair(&self) -> Option<AirtimeModel> {
        let n = self.pairs.len();
        agreed(&self.pairs, |pairs| {
            (pairs[n / 4], pairs[(n - 1) / 2], pairs[n - 1 - n / 4])
        })
    }

    /// About the fastest train, if half of them agree with it.
    fn fast_train(&self) -> Option<AirtimeModel> {
        let n = self.trains.len();
        agreed(&self.trains, |trains| {
            (trains[n / 8], trains[n / 8], trains[n / 2])
        })
    }
}

/// The sample in the middle of three that `choose` takes from the sorted ones, the fastest first, if the outer two are
/// close to each other.
fn agreed(
    samples: &VecDeque<AirtimeModel>,
    choose: impl Fn(&[AirtimeModel]) -> (AirtimeModel, AirtimeModel, AirtimeModel),
) -> Option<AirtimeModel> {
    if samples.len() < tuning().estimate_enough {
        return None;
    }
    let mut sorted: Vec<AirtimeModel> = samples.iter().copied().collect();
    sorted.sort_by_key(service);
    let (fast, middle, slow) = choose(&sorted);
    let spread = service(&slow).saturating_sub(service(&fast));
    (spread <= service(&middle).mul_f64(tuning().estimate_spread)).then_some(middle)
}

/// How long a medium takes for a packet.
fn service(medium: &AirtimeModel) -> Duration {
    medium.with_gain(1.0).airtime(tuning().packet, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_DELAY: Duration = Duration::ZERO;

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
            let mut e = Estimate::new(AirtimeModel::wifi(6_000_000), 1);
            let truth = AirtimeModel::wifi(mbit * 1_000_000)
                .with_gain(1.0)
                .airtime(1472, 1);
            for i in 0.. {
                assert!(i < 64, "no estimate at {mbit} Mbit/s");
                let back_off = Duration::from_micros(9 * rng.below(16));
                let outlier = Duration::from_millis(if i % 7 == 3 { 9 } else { 0 });
                let service = truth - Duration::from_nanos(67_500) + back_off + outlier;
                if e.learn(lesson(service), NO_DELAY, NO_DELAY, 30) {
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
        let mut e = Estimate::new(AirtimeModel::wifi(6_000_000), 1);
        while !e.learn(lesson(Duration::from_millis(12)), NO_DELAY, NO_DELAY, 30) {}
        let quick = Lesson {
            bytes: 1472,
            round_trip: Some(Duration::from_millis(3)),
            ..Lesson::default()
        };
        for left in (0..tuning().contradictions).rev() {
            e.learn(quick, NO_DELAY, NO_DELAY, 30);
            assert_eq!(e.airtime().1, left > 0);
        }
    }

    #[test]
    fn quiet_senders_learn_a_faster_rate_from_round_trips() {
        let mut e = Estimate::new(AirtimeModel::wifi(1_000_000), 1);
        let truth = AirtimeModel::wifi(6_000_000).with_gain(1.0);
        for _ in 0..10 * tuning().contradictions {
            let quick = Lesson {
                bytes: 200,
                round_trip: Some(truth.airtime(200, 1) + truth.airtime(30, 1)),
                ..Lesson::default()
            };
            e.learn(quick, NO_DELAY, NO_DELAY, 30);
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
                NO_DELAY,
                NO_DELAY,
                30
            ))
        });
        assert_eq!(e.airtime().0, model);
    }
}
