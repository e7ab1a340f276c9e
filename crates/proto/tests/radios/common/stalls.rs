//! Processors that are taken from a host now and then.

use medium::Rng;
use stats::Time;
use std::time::Duration;

/// Average interval at which a processor is taken from its host, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Stalls {
    pub every: Duration,
    pub mean: Duration,
}

pub struct Processor {
    stalls: Option<Stalls>,
    rng: Rng,
    /// The present or next stall.
    from: Time,
    until: Time,
}

impl Processor {
    pub fn new(stalls: Option<Stalls>, seed: u64) -> Processor {
        Processor {
            stalls,
            rng: Rng::new(seed),
            from: Time::ZERO,
            until: Time::ZERO,
        }
    }

    /// When it runs, from `now` on.
    pub fn runs(&mut self, now: Time) -> Time {
        let Some(s) = self.stalls else { return now };
        while self.until <= now {
            self.from = self.until + self.random(s.every);
            self.until = self.from + self.random(s.mean);
        }
        if self.from <= now { self.until } else { now }
    }

    /// Exponentially distributed.
    fn random(&mut self, mean: Duration) -> Duration {
        const PARTS: u64 = 1 << 32;
        let left = (self.rng.below(PARTS) + 1) as f64 / PARTS as f64;
        mean.mul_f64(-left.ln())
    }
}
