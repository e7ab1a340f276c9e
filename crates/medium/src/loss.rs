//! Loss of frames on the air. The MAC repairs it by retries.

use crate::rng::Rng;

/// How frames are lost on each link, independently of collisions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Every frame with the same probability, 0.0 to 1.0.
    Uniform(f64),
    /// Gilbert–Elliott: each link is in a good or a bad state, which may change before each frame.
    Gilbert {
        /// Probability of good → bad, per frame.
        to_bad: f64,
        /// Probability of bad → good, per frame; its inverse is the mean length of a burst.
        to_good: f64,
        /// Loss probability in the good state.
        good: f64,
        /// Loss probability in the bad state.
        bad: f64,
    },
}

impl Loss {
    /// No loss.
    pub const NONE: Loss = Loss::Uniform(0.0);

    pub(crate) fn is_valid(&self) -> bool {
        let ok = |p: f64| (0.0..=1.0).contains(&p);
        match *self {
            Loss::Uniform(p) => ok(p),
            Loss::Gilbert {
                to_bad,
                to_good,
                good,
                bad,
            } => [to_bad, to_good, good, bad].into_iter().all(ok),
        }
    }

    /// Whether the next frame of a link is lost; `in_bad` is that link's state.
    pub(crate) fn draw(&self, in_bad: &mut bool, rng: &mut Rng) -> bool {
        match *self {
            Loss::Uniform(p) => rng.chance(p),
            Loss::Gilbert {
                to_bad,
                to_good,
                good,
                bad,
            } => {
                if rng.chance(if *in_bad { to_good } else { to_bad }) {
                    *in_bad = !*in_bad;
                }
                rng.chance(if *in_bad { bad } else { good })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gilbert_has_its_mean_and_its_bursts() {
        let loss = Loss::Gilbert {
            to_bad: 0.1 / 2.7,
            to_good: 1.0 / 3.0,
            good: 0.0,
            bad: 1.0,
        };
        let (mut rng, mut bad) = (Rng::new(1), false);
        let (mut lost, mut bursts, mut last) = (0u32, 0u32, false);
        for _ in 0..100_000 {
            let l = loss.draw(&mut bad, &mut rng);
            lost += u32::from(l);
            bursts += u32::from(l && !last);
            last = l;
        }
        assert!((9_400..10_600).contains(&lost), "{lost}");
        let mean = f64::from(lost) / f64::from(bursts);
        assert!((2.8..3.2).contains(&mean), "bursts of {mean}");
    }
}
