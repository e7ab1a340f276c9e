//! Numbers on the command line: an invalid number is an error before the command has any effect.

use std::ops::RangeInclusive;

/// Longest time that is accepted, in seconds: about 30 years.
const LONGEST: f64 = 1e9;

/// A time in seconds, 0 or more.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    within(text, 0.0..=LONGEST).ok_or_else(|| "give a number of seconds, 0 or more".into())
}

/// A duration in seconds, above 0.
pub(crate) fn duration(text: &str) -> Result<f64, String> {
    within(text, 1e-9..=LONGEST).ok_or_else(|| "give a number of seconds above 0".into())
}

/// A rate in Hz.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    within(text, 1e-6..=1e6).ok_or_else(|| "give a rate in Hz above 0, at most 1000000".into())
}

/// A speed, relative to the original.
pub(crate) fn speed(text: &str) -> Result<f64, String> {
    within(text, 1e-6..=1e6)
        .ok_or_else(|| "give how many times as fast, a speed above 0, at most 1000000".into())
}

/// A count of at least one.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let good = text.parse().ok().filter(|n: &u64| *n > 0);
    good.ok_or_else(|| "give a whole number above 0".into())
}

/// Whether a number is finite, also as the `float` of messages.
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
