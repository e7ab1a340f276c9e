//! How single values are written in a configuration.

use serde::{Deserialize, Deserializer, de};
use stats::quantity;

fn text<'de, D: Deserializer<'de>, T, E: std::fmt::Display>(
    d: D,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, D::Error> {
    parse(&String::deserialize(d)?)
        .map(Some)
        .map_err(de::Error::custom)
}

/// Bytes, such as `64MiB`.
///
/// # Errors
/// What is wrong with the text.
pub fn maybe_size<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    text(d, quantity::bytes)
}

/// A time, such as `5s`.
///
/// # Errors
/// What is wrong with the text.
pub fn maybe_duration<'de, D: Deserializer<'de>>(d: D) -> Result<Option<std::time::Duration>, D::Error> {
    text(d, quantity::duration)
}

/// A frequency, such as `10Hz`.
///
/// # Errors
/// What is wrong with the text.
pub fn maybe_frequency<'de, D: Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
    text(d, quantity::frequency)
}

/// Frequencies, each under a name.
///
/// # Errors
/// What is wrong, and in which text.
pub fn frequencies<'de, D: Deserializer<'de>>(
    d: D,
) -> Result<std::collections::BTreeMap<String, f64>, D::Error> {
    let texts = std::collections::BTreeMap::<String, String>::deserialize(d)?;
    let read = |(frame, text): (String, String)| {
        let hz = quantity::frequency(&text).map_err(|e| de::Error::custom(format!("{frame}: {e}")))?;
        Ok((frame, hz))
    };
    texts.into_iter().map(read).collect()
}

pub(crate) fn maybe_level<'de, D: Deserializer<'de>>(d: D) -> Result<Option<i128>, D::Error> {
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
                    "'{name}' is not a level: write debug, info, warn, error or fatal"
                ));
            }
        })
    })
}
