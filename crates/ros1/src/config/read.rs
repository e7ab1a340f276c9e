//! How single values are written.

use super::ConfigError;
use serde_saphyr::Error;

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
