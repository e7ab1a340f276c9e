//! Quantities as people write them: `6Mbit/s`, `250ms`, `4MiB`, `30Hz`, `20%`.

use std::time::Duration;

/// A quantity that could not be parsed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("'{text}' is not a {what}: write {example}")]
pub struct QuantityError {
    text: String,
    what: &'static str,
    example: &'static str,
}

/// Parses a bit rate, such as `6Mbit/s`, `500 kbit/s` or `1e6bit/s`, into bits per second; more than zero, at most 1
/// Tbit/s.
pub fn bit_rate(text: &str) -> Result<u64, QuantityError> {
    let units = [("gbit/s", 1e9), ("mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)];
    let value = scaled(text, &units).filter(|v| (1.0..=1e12).contains(v));
    value
        .map(|v| v.round() as u64)
        .ok_or_else(|| bad(text, "bit rate above zero", "for example 6Mbit/s or 500kbit/s"))
}

/// Parses a duration, such as `250ms`, `2 s` or `100us`; at most a day.
pub fn duration(text: &str) -> Result<Duration, QuantityError> {
    let units = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("min", 60.0),
        ("h", 3600.0),
    ];
    // Capitals are other units: `S` is siemens, `H` is henry.
    let is_plain = !text.chars().any(|c| c.is_uppercase() && c != 'E');
    let value = scaled(text, &units).filter(|v| is_plain && (0.0..=86_400.0).contains(v));
    value
        .map(Duration::from_secs_f64)
        .ok_or_else(|| bad(text, "duration", "for example 250ms or 2s"))
}

/// Parses a size, such as `64KiB`, `4MB` or `1000B`, into bytes; at most 1 TiB.
pub fn bytes(text: &str) -> Result<u64, QuantityError> {
    let units = [
        ("kib", 1024.0),
        ("mib", 1024.0 * 1024.0),
        ("gib", 1024.0 * 1024.0 * 1024.0),
        ("kb", 1e3),
        ("mb", 1e6),
        ("gb", 1e9),
        ("b", 1.0),
    ];
    let value = scaled(text, &units).filter(|v| (0.0..=1.1e12).contains(v));
    value
        .map(|v| v.round() as u64)
        .ok_or_else(|| bad(text, "size", "for example 64KiB or 4MB"))
}

/// Parses a frequency, such as `30Hz` or `0.5Hz`; more than zero, at most 1 MHz.
pub fn frequency(text: &str) -> Result<f64, QuantityError> {
    let units = [("khz", 1e3), ("hz", 1.0)];
    let value = scaled(text, &units).filter(|v| *v > 0.0 && *v <= 1e6);
    value.ok_or_else(|| bad(text, "frequency above zero", "for example 30Hz"))
}

/// Parses a share, such as `20%`, `0.5 %` or `0.2`, into a number from 0 to 1.
pub fn share(text: &str) -> Result<f64, QuantityError> {
    let units = [("%", 0.01), ("", 1.0)];
    let value = scaled(text, &units).filter(|v| (0.0..=1.0).contains(v));
    value.ok_or_else(|| bad(text, "share of 0 to 100 %", "for example 20% or 0.2"))
}

fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim().to_lowercase();
    let split = text
        .find(|c: char| c == '%' || c.is_alphabetic() && c != 'e')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = units.iter().find(|(name, _)| *name == unit.trim())?.1;
    let number: f64 = number.trim().parse().ok()?;
    number.is_finite().then_some(number * factor)
}

fn bad(text: &str, what: &'static str, example: &'static str) -> QuantityError {
    QuantityError {
        text: text.to_owned(),
        what,
        example,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!(bit_rate("6Mbit/s"), Ok(6_000_000));
        assert_eq!(bit_rate(" 500 kbit/s "), Ok(500_000));
        assert_eq!(bit_rate("1e6bit/s"), Ok(1_000_000));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5 s"), Ok(Duration::from_millis(1500)));
        assert_eq!(bytes("4MiB"), Ok(4 << 20));
        assert_eq!(bytes("1000 B"), Ok(1000));
        assert_eq!(frequency("0.5Hz"), Ok(0.5));
        assert_eq!(
            (share("20%"), share("0.2"), share("100 %")),
            (Ok(0.2), Ok(0.2), Ok(1.0))
        );
    }

    #[test]
    fn refuses_what_makes_no_sense_and_says_how_to_write_it() {
        for text in [
            "0Mbit/s",
            "0",
            "-1Mbit/s",
            "6",
            "6MB/s",
            "",
            "Mbit/s",
            "infbit/s",
            "nanbit/s",
            "1e99Mbit/s",
        ] {
            let error = bit_rate(text).expect_err(text);
            assert!(error.to_string().contains("6Mbit/s"), "{error}");
        }
        assert!(duration("5").is_err() && duration("-1s").is_err() && duration("1e9s").is_err());
        for text in ["100mS", "1S", "1H"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert!(bytes("4MiBs").is_err());
        assert!(frequency("0Hz").is_err());
        assert!(share("101%").is_err() && share("-1%").is_err() && share("2").is_err() && share("").is_err());
    }
}
