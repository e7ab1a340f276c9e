//! Combines the numbers of several runs into those of a cell.

use super::setting::{Mode, Setting};
use super::trial::Trial;
use serde::{Deserialize, Serialize};
use stats::Histogram;

/// Result of one system under one setting, pooled over its runs. Absent: not measured by the experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Latency from the stamp, immediately before publishing, to the callback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<Latency>,
    /// The median of each run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub p50_by_run: Vec<f64>,
    /// The 99th percentile of each run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub p99_by_run: Vec<f64>,
    /// Share of received messages of those to be sent, over all subscribers (except the slow one).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_ratio: Option<f64>,
    /// Duration of the publish call alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish_us: Option<Quantiles>,
    /// Messages that the publisher refused for lack of memory, over all runs.
    pub refused: u64,
    /// Minimum number of messages that some subscriber missed although the publisher had not refused them: over all
    /// subscribers (except the slow one) and runs.
    #[serde(default)]
    pub lost: u64,
    /// From the stamp, immediately before a request is sent, to its reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_us: Option<Latency>,
    /// Half of the round-trip time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_round_trip_us: Option<Latency>,
    /// Messages per second that each subscriber received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages_per_s: Option<f64>,
    /// Payload that each subscriber received, in 10⁹ bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gb_per_s: Option<f64>,
    /// Processor time of all processes per sent message, including warm-up, excluding start and end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us_per_message: Option<f64>,
    /// Voluntary context switches of all threads of all processes, per sent message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voluntary_switches_per_message: Option<f64>,
    /// Peak resident memory of the process with the most, including shared memory that it touched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rss_mb: Option<f64>,
    /// The same, of the publisher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publisher_rss_mb: Option<f64>,
    /// The same, of the subscriber with the most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber_rss_mb: Option<f64>,
    /// Shared memory that was resident in the publisher at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_mb: Option<f64>,
    /// Copied payloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<Copies>,
    /// The slow subscriber.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<Slow>,
    /// The distribution: pairs of latency in µs and the share of messages at or below it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cumulative: Vec<(f64, f64)>,
    /// Share of the host's processor time that programs other than the peers used meanwhile.
    pub busy_by_others: f64,
    /// Share of the host's processor time that the hypervisor gave to other guests meanwhile.
    pub steal: f64,
}

/// A distribution in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Mean.
    pub mean: f64,
    /// Minimum.
    pub min: f64,
    /// First quartile.
    pub p25: f64,
    /// Median.
    pub p50: f64,
    /// Third quartile.
    pub p75: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Maximum.
    pub max: f64,
}

/// Two quantiles in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// Number of copies of the payload per message: copied bytes divided by the payload's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Copies {
    /// Within the publishing process.
    pub publisher_user: f64,
    /// From the publishing process into the kernel and back.
    pub publisher_kernel: f64,
    /// Within all subscribing processes together.
    pub subscribers_user: f64,
    /// Between the kernel and all subscribing processes together.
    pub subscribers_kernel: f64,
    /// Sum of these.
    pub total: f64,
}

/// The subscriber whose callback is slow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slow {
    /// Messages that it received, over all runs.
    pub received: u64,
    /// As a share of those to be sent.
    pub received_ratio: f64,
    /// Their age.
    pub latency_us: Option<Latency>,
    /// Longest run of consecutive messages.
    pub longest_run: u64,
}

impl Metrics {
    /// Returns the latency of a message, or of a round trip.
    pub(super) fn time_us(&self) -> Option<Latency> {
        self.latency_us.or(self.round_trip_us).or(self.half_round_trip_us)
    }
}

impl Latency {
    /// `None` without values. The values are in nanoseconds, and are multiplied by `share`.
    fn of(ns: &Histogram, share: f64) -> Option<Latency> {
        let us = |ns: f64| round(ns * share / 1e3);
        (!ns.is_empty()).then(|| Latency {
            mean: us(ns.mean()),
            min: us(ns.min() as f64),
            p25: us(ns.quantile(0.25) as f64),
            p50: us(ns.quantile(0.5) as f64),
            p75: us(ns.quantile(0.75) as f64),
            p99: us(ns.quantile(0.99) as f64),
            max: us(ns.max() as f64),
        })
    }
}

/// Three decimals: a nanosecond.
fn round(x: f64) -> f64 {
    (x * 1e3).round() / 1e3
}

fn histogram<'a>(values: impl IntoIterator<Item = &'a u64>) -> Histogram {
    let mut h = Histogram::new();
    values.into_iter().for_each(|v| h.record(*v));
    h
}

/// Pools the runs of one system under one setting.
pub(super) fn pool(setting: &Setting, trials: &[Trial]) -> Metrics {
    let mut metrics = Metrics::default();
    let n = trials.len().max(1) as f64;
    metrics.busy_by_others = round(trials.iter().map(|t| t.others.busy).sum::<f64>() / n);
    metrics.steal = round(trials.iter().map(|t| t.others.steal).sum::<f64>() / n);
    metrics.refused = trials.iter().map(|t| t.published.refused).sum();
    if setting.mode == Mode::PingPong {
        let all = histogram(trials.iter().flat_map(|t| &t.round_trip_ns));
        metrics.half_round_trip_us = Latency::of(&all, 0.5);
        metrics.p50_by_run = by_run(trials, 0.5, 0.5, |t| histogram(&t.round_trip_ns));
        return metrics;
    }
    if setting.mode == Mode::Call {
        let all = histogram(trials.iter().flat_map(|t| &t.round_trip_ns));
        metrics.round_trip_us = Latency::of(&all, 1.0);
        metrics.p50_by_run = by_run(trials, 0.5, 1.0, |t| histogram(&t.round_trip_ns));
        metrics.p99_by_run = by_run(trials, 0.99, 1.0, |t| histogram(&t.round_trip_ns));
        return metrics;
    }
    let fast = usize::from(setting.slow_us.is_some());
    let latencies = |t: &Trial| histogram(t.received.iter().skip(fast).flat_map(|r| &r.latency_ns));
    let mut all = Histogram::new();
    trials.iter().for_each(|t| all.merge(&latencies(t)));
    metrics.latency_us = Latency::of(&all, 1.0);
    metrics.p50_by_run = by_run(trials, 0.5, 1.0, latencies);
    metrics.p99_by_run = by_run(trials, 0.99, 1.0, latencies);
    metrics.cumulative = all
        .cumulative()
        .iter()
        .map(|(ns, share)| (round(*ns as f64 / 1e3), round4(*share)))
        .collect();
    let due =
        |trials: &[Trial], subscribers: f64| trials.len() as f64 * subscribers * f64::from(setting.messages);
    let subscribers = f64::from(setting.subscribers) - fast as f64;
    if subscribers > 0.0 && !trials.is_empty() {
        metrics.received_ratio = Some(round4(all.count() as f64 / due(trials, subscribers)));
    }
    metrics.lost = trials.iter().map(|t| lost(t, fast)).sum();
    let publish = histogram(trials.iter().flat_map(|t| &t.published.publish_ns));
    metrics.publish_us = Latency::of(&publish, 1.0).map(|l| Quantiles {
        p50: l.p50,
        p99: l.p99,
    });
    if setting.rate == 0.0 && subscribers > 0.0 {
        // The warm-up is part of the window, and takes its share of it.
        let warm = f64::from(setting.warmup + setting.messages) / f64::from(setting.messages.max(1));
        let window: f64 = trials.iter().map(|t| t.window.as_secs_f64()).sum();
        let rate = all.count() as f64 / subscribers * warm / window.max(1e-9);
        metrics.messages_per_s = Some(round(rate));
        metrics.gb_per_s = Some(round(rate * setting.size as f64 / 1e9));
    }
    usage(&mut metrics, setting, trials);
    if setting.slow_us.is_some() {
        metrics.slow = Some(slow(setting, trials));
    }
    if setting.count_copies {
        metrics.copies = copies(setting, trials);
    }
    metrics
}

/// Messages that the publisher did not refuse but a subscriber missed. Some systems refuse a message if only one of
/// several subscribers has no room for it, so a subscriber may have more messages than were published.
fn lost(trial: &Trial, skip: usize) -> u64 {
    let received = trial.received.iter().skip(skip);
    received
        .map(|r| trial.published.published.saturating_sub(r.received))
        .sum()
}

fn round4(x: f64) -> f64 {
    (x * 1e4).round() / 1e4
}

fn by_run(trials: &[Trial], q: f64, share: f64, values: impl Fn(&Trial) -> Histogram) -> Vec<f64> {
    trials
        .iter()
        .map(|t| round(values(t).quantile(q) as f64 * share / 1e3))
        .collect()
}

fn usage(metrics: &mut Metrics, setting: &Setting, trials: &[Trial]) {
    let sent = trials.len() as f64 * f64::from(setting.warmup + setting.messages);
    let used = || trials.iter().flat_map(|t| &t.used);
    if used().next().is_none() || sent == 0.0 {
        return;
    }
    let cpu: f64 = used().map(|(u, _)| u.cpu.as_secs_f64() * 1e6).sum();
    let switches: u64 = used().map(|(u, _)| u.voluntary_switches).sum();
    metrics.cpu_us_per_message = Some(round(cpu / sent));
    metrics.voluntary_switches_per_message = Some(round(switches as f64 / sent));
    let mb = |bytes: Option<u64>| bytes.map(|b| round(b as f64 / 1e6));
    let publishers = || trials.iter().filter_map(|t| t.used.first());
    metrics.max_rss_mb = mb(used().map(|(_, m)| m.peak).max());
    metrics.publisher_rss_mb = mb(publishers().map(|(_, m)| m.peak).max());
    metrics.subscriber_rss_mb = mb(trials
        .iter()
        .flat_map(|t| t.used.iter().skip(1))
        .map(|(_, m)| m.peak)
        .max());
    metrics.shared_mb = mb(publishers().map(|(_, m)| m.shared).max());
}

fn slow(setting: &Setting, trials: &[Trial]) -> Slow {
    let received = || trials.iter().filter_map(|t| t.received.first());
    let count = received().map(|r| r.received).sum();
    let due = trials.len() as f64 * f64::from(setting.messages);
    Slow {
        received: count,
        received_ratio: round4(count as f64 / due.max(1.0)),
        latency_us: Latency::of(&histogram(received().flat_map(|r| &r.latency_ns)), 1.0),
        longest_run: received().map(|r| longest_run(&r.sequence)).max().unwrap_or(0),
    }
}

/// Returns the length of the longest run of consecutive numbers.
fn longest_run(sequence: &[u64]) -> u64 {
    let mut longest = 0;
    let mut length = 0;
    let mut next = None;
    for s in sequence {
        length = if next == Some(*s) { length + 1 } else { 1 };
        longest = longest.max(length);
        next = s.checked_add(1);
    }
    longest
}

fn copies(setting: &Setting, trials: &[Trial]) -> Option<Copies> {
    let payloads = trials.len() as f64 * f64::from(setting.warmup + setting.messages) * setting.size as f64;
    let counts = || trials.iter().map(|t| &t.copies);
    if payloads == 0.0 || counts().any(|c| c.is_empty()) {
        return None;
    }
    let share = |bytes: u64| round(bytes as f64 / payloads);
    let first = || counts().filter_map(|c| c.first());
    let rest = || counts().flat_map(|c| c.iter().skip(1));
    let mut copies = Copies {
        publisher_user: share(first().map(|c| c.user_copies_bytes).sum()),
        publisher_kernel: share(first().map(|c| c.kernel_in_bytes + c.kernel_out_bytes).sum()),
        subscribers_user: share(rest().map(|c| c.user_copies_bytes).sum()),
        subscribers_kernel: share(rest().map(|c| c.kernel_in_bytes + c.kernel_out_bytes).sum()),
        total: 0.0,
    };
    copies.total = round(
        copies.publisher_user + copies.publisher_kernel + copies.subscribers_user + copies.subscribers_kernel,
    );
    Some(copies)
}

#[cfg(test)]
mod tests {
    use super::super::Experiment;
    use super::super::copies::CopyCount;
    use super::*;
    use crate::kit::line::{Published, Received};
    use crate::kit::usage::{Memory, Usage};
    use std::time::Duration;

    fn received(latency_us: &[u64], sequence: &[u64]) -> Received {
        Received {
            received: sequence.len() as u64,
            latency_ns: latency_us.iter().map(|us| us * 1000).collect(),
            sequence: sequence.to_vec(),
        }
    }

    fn setting() -> Setting {
        Setting {
            warmup: 0,
            messages: 4,
            ..Setting::plain(Experiment::Fig7, 1000, 2)
        }
    }

    #[test]
    fn runs_are_pooled_and_reported_per_run() {
        let trial = |a: u64, b: u64| Trial {
            received: vec![received(&[a; 4], &[0, 1, 2, 3]), received(&[b; 3], &[0, 2, 3])],
            published: Published {
                published: 3,
                refused: 1,
                publish_ns: vec![2_000, 2_000, 6_000],
            },
            used: vec![
                (
                    Usage {
                        cpu: Duration::from_micros(40),
                        voluntary_switches: 4,
                    },
                    Memory {
                        peak: 5_000_000,
                        shared: 1_000_000,
                    },
                ),
                (
                    Usage {
                        cpu: Duration::from_micros(20),
                        voluntary_switches: 8,
                    },
                    Memory {
                        peak: 7_000_000,
                        shared: 0,
                    },
                ),
            ],
            ..Trial::default()
        };
        let m = pool(&setting(), &[trial(10, 30), trial(20, 40)]);
        let l = m.latency_us.expect("latency");
        assert_eq!(
            (l.min, l.max, l.mean),
            (10.0, 40.0, (4.0 * 30.0 + 3.0 * 70.0) / 14.0_f64).map_round()
        );
        assert!((l.p50 - 20.0).abs() < 0.2, "{l:?}");
        assert_eq!(m.p50_by_run.len(), 2);
        assert_eq!(m.received_ratio, Some(0.875));
        assert_eq!(m.refused, 2);
        assert!((m.publish_us.expect("publish").p50 - 2.0).abs() < 0.02);
        assert_eq!(m.cpu_us_per_message, Some(15.0));
        assert_eq!(m.voluntary_switches_per_message, Some(3.0));
        assert_eq!(
            (m.publisher_rss_mb, m.subscriber_rss_mb, m.shared_mb),
            (Some(5.0), Some(7.0), Some(1.0))
        );
        assert_eq!(m.messages_per_s, None);
    }

    trait MapRound {
        fn map_round(self) -> (f64, f64, f64);
    }
    impl MapRound for (f64, f64, f64) {
        fn map_round(self) -> (f64, f64, f64) {
            (round(self.0), round(self.1), round(self.2))
        }
    }

    #[test]
    fn the_slow_subscriber_is_reported_separately() {
        let setting = Setting {
            slow_us: Some(1),
            ..setting()
        };
        let trial = Trial {
            received: vec![received(&[900, 900], &[0, 3]), received(&[10; 4], &[0, 1, 2, 3])],
            ..Trial::default()
        };
        let m = pool(&setting, &[trial]);
        assert_eq!(m.received_ratio, Some(1.0));
        assert_eq!(m.latency_us.expect("latency").max, 10.0);
        let slow = m.slow.expect("slow");
        assert_eq!(
            (slow.received, slow.received_ratio, slow.longest_run),
            (2, 0.5, 1)
        );
        assert_eq!(longest_run(&[1, 2, 3, 7, 8]), 3);
        assert_eq!(longest_run(&[]), 0);
    }

    #[test]
    fn refused_messages_are_not_counted_as_lost() {
        let beside = |published: u64, fast: &[u64]| Trial {
            received: vec![received(&[9], &[0]), received(&vec![1; fast.len()], fast)],
            published: Published {
                published,
                refused: 4 - published,
                publish_ns: vec![],
            },
            ..Trial::default()
        };
        let setting = Setting {
            slow_us: Some(1),
            ..setting()
        };
        let m = pool(&setting, &[beside(1, &[0]), beside(4, &[0, 2, 3])]);
        assert_eq!((m.refused, m.lost, m.received_ratio), (3, 1, Some(0.5)));
        // Refused because of the slow subscriber, but received by the other.
        assert_eq!(pool(&setting, &[beside(1, &[0, 1, 2, 3])]).lost, 0);
    }

    #[test]
    fn copies_are_counted_in_payloads() {
        let setting = Setting {
            count_copies: true,
            ..setting()
        };
        let one = CopyCount {
            user_copies_bytes: 4000,
            kernel_in_bytes: 0,
            kernel_out_bytes: 8000,
        };
        let trial = Trial {
            copies: vec![
                one,
                CopyCount {
                    user_copies_bytes: 2000,
                    ..one
                },
            ],
            ..Trial::default()
        };
        let c = pool(&setting, &[trial]).copies.expect("copies");
        assert_eq!(
            (c.publisher_user, c.publisher_kernel, c.subscribers_user, c.total),
            (1.0, 2.0, 0.5, 5.5)
        );
    }

    #[test]
    fn without_a_schedule_there_is_a_throughput() {
        let setting = Setting {
            rate: 0.0,
            ..setting()
        };
        let both = || received(&[1; 4], &[0, 1, 2, 3]);
        let trial = Trial {
            received: vec![both(), both()],
            window: Duration::from_millis(2),
            ..Trial::default()
        };
        let m = pool(&setting, &[trial]);
        assert_eq!((m.messages_per_s, m.gb_per_s), (Some(2000.0), Some(0.002)));
    }

    #[test]
    fn nothing_gives_no_numbers() {
        let m = pool(&setting(), &[]);
        assert_eq!((m.latency_us, m.received_ratio), (None, None));
        assert!(m.busy_by_others.is_finite());
    }
}
