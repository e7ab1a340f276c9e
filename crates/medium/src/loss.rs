//! Loss by chance or by a recorded trace.

use crate::rng::Rng;
use core::time::Duration;

/// How frames or packets are lost on each link, independently of collisions.
#[derive(Clone, Debug, PartialEq)]
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
    /// Frame by frame, `true` for lost; each link begins at the first and starts over after the last.
    Trace(Vec<bool>),
    /// A probability that changes over time: each value holds from its time after the start of the medium until the
    /// next. Nothing is lost before the first.
    OverTime(Vec<(Duration, f64)>),
}

/// State of one direction of one link in its loss.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossState {
    bad: bool,
    next: usize,
}

/// Why a trace could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line} of the loss trace is `{text}`: give 0 (received) or 1 (lost) on every line, or on every \
     line seconds and a probability, `2.5 0.1`, in order of time"
)]
pub struct TraceError {
    /// Counted from 1; 0 if there is no entry at all.
    pub line: usize,
    /// Its content.
    pub text: String,
}

impl Loss {
    /// No loss.
    pub const NONE: Loss = Loss::Uniform(0.0);

    /// Parses a trace: lines of `0` (received) and `1` (lost) for one frame each, or lines of seconds since the start
    /// and a probability. Empty lines and text after a `#` are ignored.
    ///
    /// # Errors
    /// [`TraceError`] names the line.
    pub fn from_trace(text: &str) -> Result<Loss, TraceError> {
        let (mut frames, mut steps) = (Vec::new(), Vec::<(Duration, f64)>::new());
        for (i, text) in text.lines().enumerate() {
            let entry = text.split('#').next().unwrap_or_default();
            let fields: Vec<&str> = entry.split_whitespace().collect();
            let understood = match fields[..] {
                [] => true,
                [lost @ ("0" | "1")] if steps.is_empty() => {
                    frames.push(lost == "1");
                    true
                }
                [at, p] if frames.is_empty() => step(at, p)
                    .filter(|(at, _)| steps.last().is_none_or(|(last, _)| last < at))
                    .map(|s| steps.push(s))
                    .is_some(),
                _ => false,
            };
            if !understood {
                return Err(TraceError {
                    line: i + 1,
                    text: text.chars().take(80).collect(),
                });
            }
        }
        match (frames.is_empty(), steps.is_empty()) {
            (false, _) => Ok(Loss::Trace(frames)),
            (true, false) => Ok(Loss::OverTime(steps)),
            (true, true) => Err(TraceError {
                line: 0,
                text: String::new(),
            }),
        }
    }

    /// Whether the next frame of a link is lost, `elapsed` after the start of the medium.
    pub(crate) fn draw(&self, state: &mut LossState, elapsed: Duration, rng: &mut Rng) -> bool {
        match self {
            Loss::Uniform(p) => rng.chance(*p),
            Loss::Gilbert {
                to_bad,
                to_good,
                good,
                bad,
            } => {
                if rng.chance(if state.bad { *to_good } else { *to_bad }) {
                    state.bad = !state.bad;
                }
                rng.chance(if state.bad { *bad } else { *good })
            }
            Loss::Trace(frames) => {
                let i = if state.next < frames.len() { state.next } else { 0 };
                state.next = i + 1;
                frames.get(i).copied().unwrap_or(false)
            }
            Loss::OverTime(steps) => rng.chance(now(steps, elapsed).copied().unwrap_or(0.0)),
        }
    }
}

/// The value of a table of steps at `elapsed`; `None` before the first.
pub(crate) fn now<T>(steps: &[(Duration, T)], elapsed: Duration) -> Option<&T> {
    let n = steps.partition_point(|(at, _)| *at <= elapsed);
    steps.get(n.checked_sub(1)?).map(|(_, value)| value)
}

fn step(at: &str, p: &str) -> Option<(Duration, f64)> {
    let at = Duration::try_from_secs_f64(at.parse().ok()?).ok()?;
    let p = p.parse().ok().filter(|p| (0.0..=1.0).contains(p))?;
    Some((at, p))
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
        let (mut rng, mut state) = (Rng::new(1), LossState::default());
        let (mut lost, mut bursts, mut last) = (0u32, 0u32, false);
        for _ in 0..100_000 {
            let l = loss.draw(&mut state, Duration::ZERO, &mut rng);
            lost += u32::from(l);
            bursts += u32::from(l && !last);
            last = l;
        }
        assert!((9_400..10_600).contains(&lost), "{lost}");
        let mean = f64::from(lost) / f64::from(bursts);
        assert!((2.8..3.2).contains(&mean), "bursts of {mean}");
    }

    #[test]
    fn traces_are_read_and_followed() {
        let (mut rng, mut state) = (Rng::new(1), LossState::default());
        let frames = Loss::from_trace("# recorded\n0\n1 # a loss\n\n0\n").expect("a trace");
        let seen = [(); 5].map(|()| frames.draw(&mut state, Duration::ZERO, &mut rng));
        assert_eq!(seen, [false, true, false, false, true], "starts over");

        let steps = Loss::from_trace("1 1.0\n2.5 0").expect("a trace");
        let mut at = |ms| steps.draw(&mut state, Duration::from_millis(ms), &mut rng);
        assert_eq!([999, 1000, 2499, 2500].map(&mut at), [false, true, true, false]);

        for (bad, line) in [
            ("0\n2", 2),
            ("1 0.5\n1 0.2", 2),
            ("0 1.5", 1),
            ("0\n1 0.5", 2),
            ("-1 0", 1),
            ("#", 0),
        ] {
            assert_eq!(Loss::from_trace(bad).expect_err(bad).line, line, "{bad}");
        }
    }
}
