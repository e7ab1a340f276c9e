//! How single values are written, and the defaults of fields.

use super::{ConfigError, Ros2, address};
use crate::quantity;
use serde::{Deserialize, Deserializer, de};
use serde_saphyr::Error;
use std::net::SocketAddr;
use std::time::Duration;

/// Largest value of `every`.
pub(crate) const MAX_EVERY: u32 = 1_000_000;

pub(super) fn syntax(error: &Error, place: &str) -> ConfigError {
    let place = match error.location() {
        Some(at) => format!("{place}:{}:{}", at.line(), at.column()),
        None => place.to_owned(),
    };
    let problem = problem_text(error.without_snippet());
    ConfigError::Syntax { place, problem }
}

/// What is wrong and what to write, on one line and without the place.
fn problem_text(error: &Error) -> String {
    match error {
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("`{key}` is written twice here: keep one")
        }
        Error::Eof { .. } => {
            "the text ends where a key or value should follow: `ropewalk link --help` shows an example".into()
        }
        Error::Unexpected { expected, .. } if expected.contains("sequence") => {
            "a list belongs here, such as [{name: base}]: `ropewalk link --help` shows an example".into()
        }
        Error::Unexpected { expected, .. } if expected.contains("mapping") => {
            "keys with values belong here, such as `host: robot`: `ropewalk link --help` shows an example"
                .into()
        }
        Error::Unexpected { .. } => "a single value belongs here, such as 100, /scan or 6Mbit/s".into(),
        Error::InvalidScalar { ty: "bool", .. } => "`true` or `false` belongs here".into(),
        Error::InvalidScalar { .. } => "a number belongs here, such as 100".into(),
        Error::NullIntoString { .. } => {
            "the value of this key is missing: write it, or leave the key out".into()
        }
        Error::SerdeMissingField { field, .. } => {
            format!("missing field `{field}`: write it here; `ropewalk link --help` shows an example")
        }
        Error::UnknownAnchor { .. } => {
            "no `&` defines what this `*` refers to: define it, or put the text in quotes".into()
        }
        other => {
            // The library repeats the place.
            let text = other.to_string();
            let text = text.lines().next().unwrap_or_default();
            let text = text.split(" at line ").next().unwrap_or(text);
            match is_of_the_scanner(text) {
                true => format!(
                    "{text}: look at the spaces in front of this line and the one above (no tabs), and at brackets and quotes"
                ),
                false => schema::with_suggestion(text),
            }
        }
    }
}

/// The library uses one kind of error for its scanner's messages and for our own, which already name a fix.
fn is_of_the_scanner(text: &str) -> bool {
    [
        "while ",
        "unclosed ",
        "mapping values ",
        "simple key",
        "block ",
        "did not find",
        "invalid indentation",
    ]
    .iter()
    .any(|start| text.starts_with(start))
}

/// Escapes control characters in a problem, which may quote any input.
pub(super) fn on_one_line(problem: &str) -> String {
    let mut line = String::with_capacity(problem.len());
    for c in problem.chars() {
        match c {
            c if c.is_control() => line.extend(c.escape_default()),
            c => line.push(c),
        }
    }
    line
}

pub(super) fn one() -> u8 {
    1
}

pub(super) fn yes() -> bool {
    true
}

pub(super) fn all_of_them() -> u32 {
    1
}

pub(super) fn middle() -> u8 {
    50
}

fn text<'de, D: Deserializer<'de>, T, E: std::fmt::Display>(
    d: D,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<T, D::Error> {
    parse(&String::deserialize(d)?).map_err(de::Error::custom)
}

/// `true`, `false` or `graph`.
pub(super) fn ros2<'de, D: Deserializer<'de>>(d: D) -> Result<Ros2, D::Error> {
    struct Visitor;
    impl de::Visitor<'_> for Visitor {
        type Value = Ros2;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("`true`, `false` or `graph`")
        }

        fn visit_bool<E: de::Error>(self, all: bool) -> Result<Ros2, E> {
            Ok(if all { Ros2::All } else { Ros2::No })
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Ros2, E> {
            match text {
                "graph" => Ok(Ros2::Graph),
                other => Err(E::custom(format_args!(
                    "`ros2: {other}` is unknown: write `true` for all topics and services, or `graph` for the listed ones"
                ))),
            }
        }
    }
    d.deserialize_any(Visitor)
}

pub(super) fn maybe_size<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    text(d, quantity::bytes).map(Some)
}

pub(super) fn maybe_duration<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Duration>, D::Error> {
    text(d, quantity::duration).map(Some)
}

pub(super) fn maybe_frequency<'de, D: Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
    text(d, quantity::frequency).map(Some)
}

pub(super) fn share<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    text(d, quantity::share)
}

pub(super) fn all() -> f64 {
    1.0
}

pub(super) fn a_tenth() -> f64 {
    0.1
}

/// A whole number within a range.
fn number<'de, D: Deserializer<'de>, T: TryFrom<i64>>(
    d: D,
    what: &str,
    range: std::ops::RangeInclusive<i64>,
) -> Result<T, D::Error> {
    let value = i64::deserialize(d)?;
    let fits = Some(value).filter(|v| range.contains(v));
    fits.and_then(|v| T::try_from(v).ok()).ok_or_else(|| {
        let (least, most) = range.into_inner();
        de::Error::custom(format!("{what} is {value}; it must be {least} to {most}"))
    })
}

pub(super) fn maybe_depth<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u16>, D::Error> {
    number(d, "depth", 1..=4096).map(Some)
}

pub(super) fn calls<'de, D: Deserializer<'de>>(d: D) -> Result<u16, D::Error> {
    number(d, "depth", 1..=256)
}

pub(super) fn hops<'de, D: Deserializer<'de>>(d: D) -> Result<u8, D::Error> {
    number(d, "radio.hops", 1..=16)
}

pub(super) fn every<'de, D: Deserializer<'de>>(d: D) -> Result<u32, D::Error> {
    number(d, "every", 1..=i64::from(MAX_EVERY))
}

pub(super) fn maybe_baud<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u32>, D::Error> {
    number(d, "baud", 300..=100_000_000).map(Some)
}

pub(super) fn spreading<'de, D: Deserializer<'de>>(d: D) -> Result<u8, D::Error> {
    number(d, "spreading", 7..=12)
}

pub(super) fn bandwidth<'de, D: Deserializer<'de>>(d: D) -> Result<u32, D::Error> {
    number(d, "bandwidth", 7_800..=2_000_000)
}

pub(super) fn coding<'de, D: Deserializer<'de>>(d: D) -> Result<u8, D::Error> {
    number(d, "coding", 1..=4)
}

pub(super) fn maybe_mtu<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u16>, D::Error> {
    number(d, "mtu", 576..=1500).map(Some)
}

pub(super) fn maybe_address<'de, D: Deserializer<'de>>(d: D) -> Result<Option<SocketAddr>, D::Error> {
    text(d, address::parse).map(Some)
}

pub(super) fn priority<'de, D: Deserializer<'de>>(d: D) -> Result<u8, D::Error> {
    let value = i64::deserialize(d)?;
    u8::try_from(value)
        .ok()
        .filter(|p| *p <= proto::MAX_PRIORITY)
        .ok_or_else(|| {
            de::Error::custom(format!(
                "priority {value}: it must be 0 to 127, higher goes first"
            ))
        })
}
