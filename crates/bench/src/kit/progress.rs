//! Progress of an experiment, on standard error.

use std::time::{Duration, Instant};

/// Time for starting, connecting and ending of processes, until it is measured.
const OVERHEAD: Duration = Duration::from_millis(1500);

/// How many steps are done, and how long the rest will take.
pub(crate) struct Progress {
    expected: Vec<Duration>,
    at: usize,
    began: Instant,
    what: String,
    /// Time that steps took beyond their expected time.
    overhead: Duration,
    measured: u32,
}

impl Progress {
    /// Progress of steps with these expected times.
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

    /// Starts the next step.
    pub(crate) fn begin(&mut self, what: String) {
        self.began = Instant::now();
        self.what = what;
    }

    /// Skips the next step.
    pub(crate) fn skip(&mut self) {
        self.at += 1;
    }

    /// Ends the current step with this result.
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
    fn the_remaining_time_decreases() {
        let mut p = Progress::new([Duration::from_secs(5); 3].into_iter());
        assert_eq!(p.left(), "19 s");
        p.skip();
        assert_eq!(p.left(), "13 s");
        p.skip();
        p.skip();
        assert_eq!(p.left(), "0 s");
    }
}
