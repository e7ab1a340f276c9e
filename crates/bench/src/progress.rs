//! What stands on standard error while an experiment runs.

use std::time::{Duration, Instant};

/// Starting, connecting and ending of processes, until it is measured.
const OVERHEAD: Duration = Duration::from_millis(1500);

/// How far it is, and how long it will go on.
pub(crate) struct Progress {
    expected: Vec<Duration>,
    at: usize,
    began: Instant,
    what: String,
    /// What steps took beyond what was expected of them.
    overhead: Duration,
    measured: u32,
}

impl Progress {
    /// Of steps that are expected to take so long each.
    pub(crate) fn new(expected: impl Iterator<Item = Duration>) -> Self {
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

    /// The next step begins.
    pub(crate) fn begin(&mut self, what: String) {
        self.began = Instant::now();
        self.what = what;
    }

    /// The next step is left out.
    pub(crate) fn skip(&mut self) {
        self.at += 1;
    }

    /// The step that has begun ended in this.
    pub(crate) fn done(&mut self, result: &str) {
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
    }
}
