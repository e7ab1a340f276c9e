//! Impairments between the air and the next host: delay, loss, reordering, duplicates.

use crate::loss::{Loss, LossState};
use crate::rng::Rng;
use core::time::Duration;
use stats::Time;

/// Time that packets take in addition to the time on the air or wire.
#[derive(Clone, Debug, PartialEq)]
pub enum Delay {
    /// Always the same.
    Fixed(Duration),
    /// Evenly between two bounds.
    Uniform {
        /// Least delay.
        min: Duration,
        /// Greatest delay.
        max: Duration,
    },
    /// Normally distributed and never negative (so a `std` near the mean raises the mean). The tails end at six `std`:
    /// it is the sum of twelve uniform draws, which every machine computes alike.
    Normal {
        /// Mean delay.
        mean: Duration,
        /// Standard deviation.
        std: Duration,
    },
    /// A heavy tail: `min` plus a Lomax (Pareto II) variable of shape 2, cut at `max`. The cut lowers the mean by the
    /// share that lies beyond it.
    Pareto {
        /// Least delay.
        min: Duration,
        /// Mean delay before the cut.
        mean: Duration,
        /// Greatest delay.
        max: Duration,
    },
}

impl Delay {
    /// No delay.
    pub const NONE: Delay = Delay::Fixed(Duration::ZERO);

    fn draw(&self, rng: &mut Rng) -> Duration {
        match *self {
            Delay::Fixed(d) => d,
            Delay::Uniform { min, max } => min.saturating_add(scaled(max.saturating_sub(min), rng.unit())),
            Delay::Normal { mean, std } => {
                let z = (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
                if z < 0.0 {
                    mean.saturating_sub(scaled(std, -z))
                } else {
                    mean.saturating_add(scaled(std, z))
                }
            }
            Delay::Pareto { min, mean, max } => {
                // unit() is never 1, so the root is never taken of zero.
                let excess = 1.0 / (1.0 - rng.unit()).sqrt() - 1.0;
                min.saturating_add(scaled(mean.saturating_sub(min), excess))
                    .min(max)
            }
        }
    }
}

impl From<Duration> for Delay {
    fn from(fixed: Duration) -> Delay {
        Delay::Fixed(fixed)
    }
}

/// Packets that are held back so that later ones overtake them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Share of the packets, 0.0 to 1.0.
    pub share: f64,
    /// How much longer they are under way.
    pub late: Duration,
}

/// Impairments of the IP packets in one direction of a link after they have crossed the air or wire.
///
/// Nothing repairs them: the MAC does not retry a packet lost here (as with `tc netem`). At most 250,000 packets of a
/// medium are under way at once; further ones are lost.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Loss of packets.
    pub loss: Loss,
    /// Time under way.
    pub delay: Delay,
    /// Whether packets that drew a shorter delay wait for those before them. Without this a distributed delay reorders
    /// packets.
    pub keep_order: bool,
    /// Packets held back on purpose.
    pub reorder: Reorder,
    /// Share of packets that arrive twice, 0.0 to 1.0. Each copy draws its own delay.
    pub duplicate: f64,
}

impl Path {
    /// A path that changes nothing.
    pub const CLEAR: Path = Path {
        loss: Loss::NONE,
        delay: Delay::NONE,
        keep_order: true,
        reorder: Reorder {
            share: 0.0,
            late: Duration::ZERO,
        },
        duplicate: 0.0,
    };

    /// A path with only a delay.
    pub fn delay(delay: impl Into<Delay>) -> Path {
        Path {
            delay: delay.into(),
            ..Path::CLEAR
        }
    }

    /// A path with only loss.
    pub fn loss(loss: Loss) -> Path {
        Path { loss, ..Path::CLEAR }
    }

    /// When a packet that sets out at `t` arrives, and when its copy does; `None` if it is lost.
    pub(crate) fn transit(
        &self,
        t: Time,
        elapsed: Duration,
        state: &mut PathState,
        rng: &mut Rng,
    ) -> Option<(Time, Option<Time>)> {
        if self.loss.draw(&mut state.loss, elapsed, rng) {
            return None;
        }
        let copies = rng.chance(self.duplicate);
        let first = self.due(t, state, rng);
        Some((first, copies.then(|| self.due(t, state, rng))))
    }

    fn due(&self, t: Time, state: &mut PathState, rng: &mut Rng) -> Time {
        let due = t + self.delay.draw(rng);
        if rng.chance(self.reorder.share) {
            return due + self.reorder.late;
        }
        let due = if self.keep_order { due.max(state.last) } else { due };
        state.last = due;
        due
    }
}

impl Default for Path {
    fn default() -> Path {
        Path::CLEAR
    }
}

/// State of one direction of a link in its path.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathState {
    loss: LossState,
    /// When the last packet that keeps its order arrives.
    pub(crate) last: Time,
}

fn scaled(d: Duration, by: f64) -> Duration {
    // `as` saturates.
    Duration::from_nanos((d.as_nanos() as f64 * by).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(delay: &Delay) -> (f64, f64, f64, f64) {
        let mut rng = Rng::new(3);
        let ms: Vec<f64> = (0..100_000)
            .map(|_| delay.draw(&mut rng).as_secs_f64() * 1e3)
            .collect();
        let mean = ms.iter().sum::<f64>() / ms.len() as f64;
        let var = ms.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / ms.len() as f64;
        let min = ms.iter().copied().fold(f64::INFINITY, f64::min);
        (mean, var.sqrt(), min, ms.iter().copied().fold(0.0, f64::max))
    }

    #[test]
    fn distributions_have_their_moments() {
        let ms = Duration::from_millis;
        let (mean, std, min, max) = draws(&Delay::Uniform {
            min: ms(10),
            max: ms(30),
        });
        assert!(
            (mean - 20.0).abs() < 0.1 && (std - 5.77).abs() < 0.1,
            "{mean} {std}"
        );
        assert!(min >= 10.0 && max <= 30.0);
        let (mean, std, ..) = draws(&Delay::Normal {
            mean: ms(50),
            std: ms(5),
        });
        assert!(
            (mean - 50.0).abs() < 0.1 && (std - 5.0).abs() < 0.1,
            "{mean} {std}"
        );
        let (.., min, _) = draws(&Delay::Normal {
            mean: ms(1),
            std: ms(5),
        });
        assert_eq!(min, 0.0);
        // Mean of the cut tail: mean − (mean − min)² / (max − 2·min + mean) = 20 − 100 / 1000.
        let (mean, _, min, max) = draws(&Delay::Pareto {
            min: ms(10),
            mean: ms(20),
            max: ms(1000),
        });
        assert!((mean - 19.9).abs() < 0.2, "{mean}");
        assert!(min >= 10.0 && max == 1000.0, "{min} {max}");
    }
}
