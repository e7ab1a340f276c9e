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

/// The highest speed or turn of a robot, in m/s or rad/s.
pub(crate) fn limit(text: &str) -> Result<f64, String> {
    within(text, 0.0..=1e3).ok_or_else(|| "give a number from 0 to 1000".into())
}

/// A speed, relative to the original.
pub(crate) fn speed(text: &str) -> Result<f64, String> {
    within(text, 1e-6..=1e6).ok_or_else(|| "give the speed as a factor above 0, at most 1000000".into())
}

/// A time in seconds since 1970 as a date and a time of day, in UTC.
pub(crate) fn date(seconds: u64) -> String {
    // Years begin in March here, so that a leap day is the last day of a year; eras have 400 years.
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
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
    fn times_are_dates() {
        assert_eq!(date(0), "1970-01-01 00:00:00");
        assert_eq!(date(951_868_799), "2000-02-29 23:59:59");
        assert_eq!(date(1_600_000_000), "2020-09-13 12:26:40");
        assert_eq!(date(4_107_542_400), "2100-03-01 00:00:00");
    }

    #[test]
    fn nonsensical_numbers_are_refused() {
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
