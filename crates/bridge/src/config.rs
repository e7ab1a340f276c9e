//! A bridge's configuration: reading it, and finding the rule for a name.

use crate::name::{best, renamed};
use crate::{ServiceRule, TopicRule};
use serde::de::DeserializeOwned;
use serde_saphyr::{Location, Spanned};
use std::path::{Path, PathBuf};

/// Largest configuration file that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The text cannot be used.
    #[error("{place}: {problem}")]
    Problem {
        /// File, line and column.
        place: String,
        /// What is wrong, and what to write.
        problem: String,
    },
}

/// Reads the text of a configuration file.
///
/// # Errors
/// [`ConfigError::File`].
pub fn read_config(path: &Path) -> Result<String, ConfigError> {
    let fail = |reason: String| ConfigError::File {
        path: path.to_owned(),
        reason,
    };
    let len = std::fs::metadata(path).map_err(|e| fail(e.to_string()))?.len();
    if len > MAX_FILE {
        return Err(fail(format!(
            "{len} bytes: a configuration has at most {MAX_FILE}"
        )));
    }
    std::fs::read_to_string(path).map_err(|e| fail(e.to_string()))
}

/// Reads a configuration, without checking its values. `place` is its name in errors, `command` the command
/// whose help shows an example.
///
/// # Errors
/// [`ConfigError::Problem`], with line and column.
pub fn parse_config<T: DeserializeOwned>(text: &str, place: &str, command: &str) -> Result<T, ConfigError> {
    serde_saphyr::from_str(text).map_err(|error| {
        let at = error.location();
        let text = error.without_snippet().to_string();
        let text = text.lines().next().unwrap_or_default();
        // The library repeats the place.
        let text = schema::with_suggestion(text.split(" at line ").next().unwrap_or(text));
        problem_at(at, place, format!("{text}; `{command} --help` shows an example"))
    })
}

/// A problem of a configuration, with its place if known.
pub fn problem_at(location: Option<Location>, place: &str, problem: String) -> ConfigError {
    let place = match location.filter(|l| l.line() > 0) {
        Some(l) => format!("{place}:{}:{}", l.line(), l.column()),
        None => place.to_owned(),
    };
    ConfigError::Problem { place, problem }
}

/// A rule that does not come from a file, and so has no place.
pub fn unplaced<T>(rule: T) -> Spanned<T> {
    Spanned::new(rule, Location::UNKNOWN, Location::UNKNOWN)
}

/// The rules of a configuration, each with its place.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// For topics.
    pub topics: &'a [Spanned<TopicRule>],
    /// For services.
    pub services: &'a [Spanned<ServiceRule>],
}

impl<'a> Rules<'a> {
    /// Returns whether there is none.
    pub fn is_empty(self) -> bool {
        self.topics.is_empty() && self.services.is_empty()
    }

    /// Checks each rule, and that no two rules contradict each other about a name.
    ///
    /// # Errors
    /// [`ConfigError::Problem`], with line and column.
    pub fn check(self, place: &str) -> Result<(), ConfigError> {
        let mut seen: &[Spanned<TopicRule>] = &[];
        for (i, rule) in self.topics.iter().enumerate() {
            let twice = seen.iter().find_map(|r| r.value.clash(&rule.value));
            if let Some(problem) = rule.value.check().err().or(twice) {
                return Err(problem_at(Some(rule.referenced), place, problem));
            }
            seen = self.topics.get(..=i).unwrap_or_default();
        }
        let mut names = std::collections::BTreeSet::new();
        for rule in self.services {
            let name = &rule.value.name;
            let twice = (!names.insert(name)).then(|| format!("{name} is listed twice: keep one"));
            if let Some(problem) = rule.value.check().err().or(twice) {
                return Err(problem_at(Some(rule.referenced), place, problem));
            }
        }
        Ok(())
    }

    /// The rule for a ROS topic that crosses to the bus, and its name on the bus.
    pub fn topic_to_bus(self, ros: &str) -> Option<(&'a TopicRule, String)> {
        let rules = self.topics.iter().map(|r| &r.value);
        let rule = best(rules, |r| (&r.name, r.direction.is_to_bus()), ros)?;
        Some((rule, renamed(&rule.name, rule.bus_name(), ros)))
    }

    /// The rule for a topic of the bus that crosses to ROS, and its name in ROS.
    pub fn topic_to_ros(self, bus: &str) -> Option<(&'a TopicRule, String)> {
        let rules = self.topics.iter().map(|r| &r.value);
        let rule = best(rules, |r| (r.bus_name(), r.direction.is_to_ros()), bus)?;
        Some((rule, renamed(rule.bus_name(), &rule.name, bus)))
    }

    /// As [`Rules::topic_to_bus`], for a service.
    pub fn service_to_bus(self, ros: &str) -> Option<(&'a ServiceRule, String)> {
        let rules = self.services.iter().map(|r| &r.value);
        let rule = best(rules, |r| (&r.name, r.direction.is_to_bus()), ros)?;
        Some((rule, renamed(&rule.name, rule.bus_name(), ros)))
    }

    /// As [`Rules::topic_to_ros`], for a service.
    pub fn service_to_ros(self, bus: &str) -> Option<(&'a ServiceRule, String)> {
        let rules = self.services.iter().map(|r| &r.value);
        let rule = best(rules, |r| (r.bus_name(), r.direction.is_to_ros()), bus)?;
        Some((rule, renamed(rule.bus_name(), &rule.name, bus)))
    }
}
