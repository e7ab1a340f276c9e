//! A lab's counters.

use serde::{Deserialize, Serialize};
use stats::{Drops, Histogram};
use std::net::Ipv4Addr;

/// A lab's counters, since it came up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The lab's name.
    pub name: String,
    /// The scenario it runs.
    pub scenario: String,
    /// Congestion control of TCP on its hosts.
    pub congestion_control: String,
    /// How long it has been up.
    pub uptime_s: f64,
    /// The hosts, in the scenario's order: along the chain.
    pub hosts: Vec<HostStatus>,
    /// The media, in the scenario's order.
    pub media: Vec<MediumStatus>,
    /// How punctual the emulator was.
    pub timing: Timing,
}

/// One host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostStatus {
    /// Its name, which every host of the lab resolves.
    pub name: String,
    /// Its address on its first medium.
    pub address: Ipv4Addr,
    /// All its devices.
    pub interfaces: Vec<InterfaceStatus>,
    /// IPv4 frames that its kernel passed to the emulator.
    pub sent_frames: u64,
    /// Frames that the emulator passed to its kernel.
    pub received_frames: u64,
    /// Frames that no medium carries: not IPv4 (ARP, IPv6), or addressed to no host of the medium.
    pub refused_frames: u64,
}

/// One host's device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterfaceStatus {
    /// Its name, which is its medium's.
    pub device: String,
    /// Its address.
    pub address: Ipv4Addr,
}

/// One medium.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MediumStatus {
    /// Its name.
    pub name: String,
    /// How long it was busy.
    pub busy_s: f64,
    /// How long any of its hosts sent or waited to send, for a channel; 0 for a wire.
    pub wanted_s: f64,
    /// Transmissions that overlapped with another host's.
    pub collisions: u64,
    /// Frames lost by the scenario's loss.
    pub lost_frames: u64,
    /// Frames that reached their host.
    pub delivered_frames: u64,
    /// IP bytes that reached their host.
    pub delivered_bytes: u64,
    /// Counters of each of its hosts.
    pub hosts: Vec<StationStatus>,
}

/// One host on one medium.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StationStatus {
    /// The host.
    pub host: String,
    /// Air that its transmissions occupied.
    pub air_s: f64,
    /// Transmissions, including retries.
    pub attempts: u64,
    /// Transmissions after the first of their frame.
    pub retries: u64,
    /// Number of frames currently in its device queue.
    pub queue_frames: usize,
    /// Largest number of frames that were ever in it.
    pub queue_high_water_frames: usize,
    /// Frames lost at this host, by reason.
    pub drops: Drops,
    /// Its access categories, the least urgent first; empty without EDCA.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub categories: Vec<CategoryStatus>,
}

/// One access category of one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CategoryStatus {
    /// The name in the standard, such as `AC_VO`.
    pub name: String,
    /// Transmissions, including retries.
    pub attempts: u64,
    /// Number of frames currently in its queue.
    pub queue_frames: usize,
    /// Largest number of frames that were ever in it.
    pub queue_high_water_frames: usize,
    /// Frames lost in it, by reason.
    pub drops: Drops,
}

/// How punctual the emulator was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Whether the run can be used.
    pub verdict: Verdict,
    /// Whether the run can be trusted at all: false without SCHED_FIFO, whatever the numbers.
    pub trusted: bool,
    /// What is wrong, and how to fix it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub remark: Option<String>,
    /// The emulator thread's scheduling.
    pub scheduling: String,
    /// Frames that were delivered.
    pub events: u64,
    /// Half of them were later than this, relative to their ideal time.
    pub lateness_p50_us: f64,
    /// One in a hundred was later than this.
    pub lateness_p99_us: f64,
    /// The latest.
    pub lateness_max_us: f64,
    /// Frames more than 5 ms late.
    pub stalls: u64,
    /// The distribution, in rising order; the last bucket has no bound.
    pub lateness: Vec<LatenessBucket>,
}

/// Frames up to this late, and later than the bucket before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatenessBucket {
    /// The bucket's upper bound.
    pub up_to_us: Option<u64>,
    /// Number of frames.
    pub events: u64,
}

/// Whether a run's timing is good enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The p99 is at most 0.3 ms and at most one frame was more than 5 ms late.
    Good,
    /// It is not good: run the experiment again.
    Rerun,
}

impl Timing {
    pub(crate) fn new(lateness: &crate::Lateness, scheduling: clock::Scheduling) -> Timing {
        let h: &Histogram = lateness.histogram();
        let us = |ns: u64| ns as f64 / 1e3;
        let trusted = matches!(scheduling, clock::Scheduling::Fifo(_));
        let remark = if !trusted {
            Some(
                "this run is not to be trusted: the emulator has no SCHED_FIFO; run as root, or allow it \
                 with `ulimit -r 99` (limits.conf: rtprio)",
            )
        } else if !lateness.good() {
            Some("the emulator was late: rerun on a machine with less load")
        } else {
            None
        };
        Timing {
            verdict: if lateness.good() {
                Verdict::Good
            } else {
                Verdict::Rerun
            },
            trusted,
            remark: remark.map(str::to_owned),
            scheduling: scheduling.to_string(),
            events: h.count(),
            lateness_p50_us: us(h.quantile(0.5)),
            lateness_p99_us: us(h.quantile(0.99)),
            lateness_max_us: us(h.max()),
            stalls: lateness.stalls(),
            lateness: buckets(h),
        }
    }

    /// Whether the time since an earlier status of the same lab can be used, by the measure of [`Timing::verdict`],
    /// which covers the lab's whole life.
    pub fn good_since(&self, before: &Timing) -> bool {
        let limit = crate::Lateness::P99_LIMIT.as_micros() as u64;
        let late = |t: &Timing| -> u64 {
            let beyond = t
                .lateness
                .iter()
                .filter(|b| b.up_to_us.is_none_or(|bound| bound > limit));
            beyond.map(|b| b.events).sum()
        };
        let late = late(self).saturating_sub(late(before));
        let events = self.events.saturating_sub(before.events);
        let stalls = self.stalls.saturating_sub(before.stalls);
        self.trusted && late * 100 <= events && stalls <= crate::Lateness::MOST_STALLS
    }
}

fn buckets(h: &Histogram) -> Vec<LatenessBucket> {
    let bounds = [10, 20, 50, 100, 200, 300, 500, 1_000, 2_000, 5_000];
    let (mut buckets, mut before) = (Vec::new(), 0);
    let cumulative = h.cumulative();
    for bound in bounds.into_iter().map(Some).chain([None]) {
        let within = cumulative.partition_point(|(ns, _)| bound.is_none_or(|us| *ns <= us * 1_000));
        let share = within.checked_sub(1).map_or(0.0, |i| cumulative[i].1);
        let count = (share * h.count() as f64).round() as u64;
        buckets.push(LatenessBucket {
            up_to_us: bound,
            events: count.saturating_sub(before),
        });
        before = count;
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lateness;
    use clock::Scheduling;
    use stats::Time;

    #[test]
    fn timing_separates_good_from_rerun_and_trusts_nothing_without_fifo() {
        let mut lateness = Lateness::default();
        for us in [5, 5, 15, 40, 40, 40] {
            lateness.record(Time(0), Time::from_micros(us));
        }
        let good = Timing::new(&lateness, Scheduling::Fifo(50));
        assert_eq!(
            (good.verdict, good.trusted, good.remark),
            (Verdict::Good, true, None)
        );
        let counts: Vec<u64> = good.lateness.iter().map(|b| b.events).collect();
        assert_eq!(counts, [2, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0]);
        let plain = Timing::new(&lateness, Scheduling::Other);
        assert!(!plain.trusted && plain.remark.is_some_and(|r| r.contains("not to be trusted")));
        lateness.record(Time(0), Time::from_millis(6));
        lateness.record(Time(0), Time::from_millis(6));
        let late = Timing::new(&lateness, Scheduling::Fifo(50));
        assert_eq!((late.verdict, late.stalls), (Verdict::Rerun, 2));
        assert_eq!(
            late.lateness.last().map(|b| (b.up_to_us, b.events)),
            Some((None, 2))
        );
    }

    #[test]
    fn a_lab_that_was_late_once_is_good_again_later() {
        let mut lateness = Lateness::default();
        let mut late = |us: u64, events: u32| {
            (0..events).for_each(|_| lateness.record(Time(0), Time::from_micros(us)));
            Timing::new(&lateness, Scheduling::Fifo(50))
        };
        let start = late(6_000, 2);
        let first = late(40, 1_000);
        assert_eq!((start.verdict, first.verdict), (Verdict::Rerun, Verdict::Rerun));
        assert!(first.good_since(&start));
        let one = late(6_000, 1);
        assert!(
            one.good_since(&start) && !one.good_since(&first),
            "one of one is no percent"
        );
        let tail = late(400, 20);
        assert!(!tail.good_since(&start));
        let untrusted = Timing {
            trusted: false,
            ..first
        };
        assert!(!untrusted.good_since(&start));
    }
}
