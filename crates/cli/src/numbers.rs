//! Numbers of the command line: what is no number, or one that makes no sense, is refused before anything is done.

use std::ops::RangeInclusive;

/// Longest time that is taken, in seconds: some 30 years.
const LONGEST: f64 = 1e9;

/// A number of seconds, 0 or more.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    within(text, 0.0..=LONGEST).ok_or_else(|| "give a number of seconds, 0 or more".into())
}

/// How long something lasts, in seconds: more than none.
pub(crate) fn duration(text: &str) -> Result<f64, String> {
    within(text, 1e-9..=LONGEST).ok_or_else(|| "give a number of seconds above 0".into())
}

/// How often something is done, in Hz.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    within(text, 1e-6..=1e6).ok_or_else(|| "give a rate in Hz above 0, at most 1000000".into())
}

/// How many times as fast as it was.
pub(crate) fn speed(text: &str) -> Result<f64, String> {
    within(text, 1e-6..=1e6)
        .ok_or_else(|| "give how many times as fast, a speed above 0, at most 1000000".into())
}

/// How many of something: at least one.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let good = text.parse().ok().filter(|n: &u64| *n > 0);
    good.ok_or_else(|| "give a whole number above 0".into())
}

/// Whether it is a number and not infinite, also as the `float` that messages have.
pub(crate) fn is_moderate(number: f64) -> bool {
    number.abs() <= f64::from(f32::MAX)
}

/// NaN lies in no range.
fn within(text: &str, range: RangeInclusive<f64>) -> Option<f64> {
    text.parse().ok().filter(|number| range.contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_refused() {
        for parse in [seconds, duration, rate, speed] {
            assert_eq!(parse("2.5"), Ok(2.5));
            for bad in ["nan", "NaN", "inf", "-inf", "-1", "1e300", "", "1s", "0x1"] {
                assert!(parse(bad).is_err(), "{bad}");
            }
        }
        assert_eq!(seconds("0"), Ok(0.0));
        for parse in [duration, rate, speed] {
            assert!(parse("0").is_err() && parse("1e-300").is_err());
        }
        assert!(
            is_moderate(-3e38) && !is_moderate(f64::NAN) && !is_moderate(1e39) && !is_moderate(f64::INFINITY)
        );
        assert_eq!(count("3"), Ok(3));
        for bad in ["0", "-1", "1.5", "nan"] {
            assert!(count(bad).is_err(), "{bad}");
        }
    }
}
