//! What stands on standard error while it runs.

use super::System;
use super::metrics::Metrics;
use super::setting::Setting;
use std::time::{Duration, Instant};

/// Starting, connecting and ending of processes, until it is measured.
const OVERHEAD: Duration = Duration::from_millis(1500);

/// How far it is, and how long it will go on.
pub(super) struct Progress {
    expected: Vec<Duration>,
    at: usize,
    began: Instant,
    what: String,
    /// What steps took beyond what was expected of them.
    overhead: Duration,
    measured: u32,
}

impl Progress {
    pub(super) fn new(expected: impl Iterator<Item = Duration>) -> Self {
        let progress = Progress {
            expected: expected.collect(),
            at: 0,
            began: Instant::now(),
            what: String::new(),
            overhead: Duration::ZERO,
            measured: 0,
        };
        eprintln!("{} runs, about {}", progress.expected.len(), progress.left());
        progress
    }

    pub(super) fn begin(&mut self, setting: &Setting, system: System) {
        self.began = Instant::now();
        self.what = format!(
            "{} {} × {} {system}",
            setting.experiment.name(),
            bytes(setting.size),
            setting.subscribers
        );
    }

    pub(super) fn skip(&mut self) {
        self.at += 1;
    }

    pub(super) fn done(&mut self, metrics: &Metrics) {
        let time = metrics.time_us();
        let time = time.map_or_else(
            || "no message came".into(),
            |l| format!("p50 {:.2} µs, p99 {:.2} µs", l.p50, l.p99),
        );
        let lost = metrics.received_ratio.filter(|r| *r < 1.0);
        let lost = lost.map_or_else(String::new, |r| format!(", {:.1} % lost", (1.0 - r) * 100.0));
        self.step(&format!("{time}{lost}"));
    }

    pub(super) fn failed(&mut self, why: &str) {
        self.step(&format!("FAILED: {why}"));
    }

    fn step(&mut self, result: &str) {
        self.overhead += self.began.elapsed().saturating_sub(self.expected[self.at]);
        self.measured += 1;
        self.at += 1;
        eprintln!(
            "[{}/{}] {}: {result}; {} left",
            self.at,
            self.expected.len(),
            self.what,
            self.left()
        );
    }

    fn left(&self) -> String {
        let rest = self.expected.get(self.at..).unwrap_or_default();
        let overhead = self.overhead.checked_div(self.measured).unwrap_or(OVERHEAD);
        let left = (rest.iter().sum::<Duration>() + overhead * rest.len() as u32).as_secs();
        match left {
            0..100 => format!("{left} s"),
            100..6000 => format!("{} min", left.div_ceil(60)),
            _ => format!("{:.1} h", left as f64 / 3600.0),
        }
    }
}

/// A size for people.
pub(super) fn bytes(size: u64) -> String {
    match size {
        s if s >= 1 << 20 && s % (1 << 20) == 0 => format!("{} MiB", s >> 20),
        s if s >= 1 << 10 && s % (1 << 10) == 0 => format!("{} KiB", s >> 10),
        s => format!("{s} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_grows_less() {
        let mut p = Progress::new([Duration::from_secs(5); 3].into_iter());
        assert_eq!(p.left(), "19 s");
        p.skip();
        assert_eq!(p.left(), "13 s");
        p.skip();
        p.skip();
        assert_eq!(p.left(), "0 s");
        assert_eq!(bytes(4 << 20), "4 MiB");
        assert_eq!((bytes(4096), bytes(300)), ("4 KiB".into(), "300 B".into()));
    }
}
