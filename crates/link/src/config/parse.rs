//! How single values are written, and what a field is that is left out.

use super::ConfigError;
use crate::quantity;
use serde::{Deserialize, Deserializer, de};
use std::time::Duration;

pub(super) fn syntax(error: &serde_saphyr::Error, place: &str) -> ConfigError {
    let place = match error.location() {
        Some(at) => format!("{place}:{}:{}", at.line(), at.column()),
        None => place.to_owned(),
    };
    // The library repeats the place and may draw the line; one line is asked for here.
    let text = error.without_snippet().to_string();
    let problem = text.lines().next().unwrap_or_default();
    let problem = problem.split(" at line ").next().unwrap_or(problem);
    ConfigError::Syntax {
        place,
        problem: problem.to_owned(),
    }
}

/// A problem that quotes what was written, whatever that is.
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

pub(super) fn a_tenth() -> f64 {
    0.1
}

pub(super) fn priority<'de, D: Deserializer<'de>>(d: D) -> Result<u8, D::Error> {
    let value = i64::deserialize(d)?;
    u8::try_from(value).ok().filter(|p| *p <= 127).ok_or_else(|| {
        de::Error::custom(format!(
            "priority {value}: it must be 0 to 127, higher goes first"
        ))
    })
}
