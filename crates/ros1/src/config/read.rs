//! How single values are written.

use super::ConfigError;
use serde::{Deserialize, Deserializer, de};
use serde_saphyr::Error;
use stats::quantity;

pub(super) fn syntax(error: &Error, place: &str) -> ConfigError {
    let place = match error.location() {
        Some(at) => format!("{place}:{}:{}", at.line(), at.column()),
        None => place.to_owned(),
    };
    let text = error.without_snippet().to_string();
    let text = text.lines().next().unwrap_or_default();
    // The library repeats the place.
    let text = text.split(" at line ").next().unwrap_or(text);
    ConfigError::Problem {
        place,
        problem: format!("{text}; `ropewalk ros1 --help` shows an example"),
    }
}

fn text<'de, D: Deserializer<'de>, T, E: std::fmt::Display>(
    d: D,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, D::Error> {
    parse(&String::deserialize(d)?)
        .map(Some)
        .map_err(de::Error::custom)
}

pub(super) fn maybe_size<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    text(d, quantity::bytes)
}

pub(super) fn maybe_duration<'de, D: Deserializer<'de>>(
    d: D,
) -> Result<Option<std::time::Duration>, D::Error> {
    text(d, quantity::duration)
}

pub(super) fn maybe_frequency<'de, D: Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
    text(d, quantity::frequency)
}

pub(super) fn frequencies<'de, D: Deserializer<'de>>(
    d: D,
) -> Result<std::collections::BTreeMap<String, f64>, D::Error> {
    let texts = std::collections::BTreeMap::<String, String>::deserialize(d)?;
    let read = |(frame, text): (String, String)| {
        let hz = quantity::frequency(&text).map_err(|e| de::Error::custom(format!("{frame}: {e}")))?;
        Ok((frame, hz))
    };
    texts.into_iter().map(read).collect()
}

pub(super) fn maybe_level<'de, D: Deserializer<'de>>(d: D) -> Result<Option<i128>, D::Error> {
    text(d, |name| {
        // rosgraph_msgs/Log
        Ok(match name {
            "debug" => 1,
            "info" => 2,
            "warn" => 4,
            "error" => 8,
            "fatal" => 16,
            _ => {
                return Err(format!(
                    "'{name}' is no level: write debug, info, warn, error or fatal"
                ));
            }
        })
    })
}
