//! Changes of a topic in the syntax for operators: `priority=100`.

use crate::config::MAX_EVERY;
use crate::quantity;
use proto::{MAX_PRIORITY, TopicChange};
use std::str::FromStr;
use std::time::Duration;

/// Settings that can change while a link runs.
const KEYS: &str =
    "priority=0…127, depth=N, deadline=100ms (or none), rate_limit=5Hz (or none), every=N, min_share=5%";
/// Largest value of `depth`.
const MAX_DEPTH: u32 = 1024;

/// Changes of a topic, each at most once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Change(pub(crate) TopicChange);

/// Why a change was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// There was no change at all.
    #[error("nothing to change: give {KEYS}")]
    Nothing,
    /// The text is not `key=value`, or the key is unknown.
    #[error("'{text}' is not a change{}: give {KEYS}", like_key(text))]
    Unknown {
        /// The text.
        text: String,
    },
    /// A key was given twice.
    #[error("{key} is given twice")]
    Twice {
        /// The key.
        key: String,
    },
    /// The value is out of bounds or malformed.
    #[error("{key}={value}: {problem}")]
    Value {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
}

impl Change {
    /// Reads changes such as `["priority=100", "deadline=none"]`.
    ///
    /// # Errors
    /// [`ChangeError`] names the first wrong change.
    pub fn parse(texts: &[impl AsRef<str>]) -> Result<Change, ChangeError> {
        let mut change = TopicChange::default();
        if texts.is_empty() {
            return Err(ChangeError::Nothing);
        }
        for text in texts {
            let text = text.as_ref();
            let unknown = || ChangeError::Unknown {
                text: text.chars().take(80).collect(),
            };
            let (key, value) = text.split_once('=').ok_or_else(unknown)?;
            let wrong = |problem: String| ChangeError::Value {
                key: key.into(),
                value: value.chars().take(80).collect(),
                problem,
            };
            let is_new = match key {
                "priority" => set(
                    &mut change.priority,
                    whole(value, 0, MAX_PRIORITY).map_err(wrong)?,
                ),
                "depth" => set(&mut change.depth, whole(value, 1, MAX_DEPTH).map_err(wrong)?),
                "every" => set(&mut change.every, whole(value, 1, MAX_EVERY).map_err(wrong)?),
                "min_share" => {
                    let share = quantity::share(value).map_err(|e| e.to_string());
                    let share = share.and_then(|s| {
                        let fits = (0.0..=0.9).contains(&s).then_some(s);
                        fits.ok_or_else(|| "give 0% to 90%".to_string())
                    });
                    set(&mut change.min_share, share.map_err(wrong)?)
                }
                "deadline" => set(&mut change.deadline, optional(value, duration).map_err(wrong)?),
                "rate_limit" => set(
                    &mut change.max_rate,
                    optional(value, |v| quantity::frequency(v).map_err(|e| e.to_string())).map_err(wrong)?,
                ),
                _ => return Err(unknown()),
            };
            if !is_new {
                return Err(ChangeError::Twice { key: key.into() });
            }
        }
        Ok(Change(change))
    }
}

/// Suggests a key, if the text has one that is misspelt.
fn like_key(text: &str) -> String {
    let known = KEYS.split(", ").filter_map(|form| form.split('=').next());
    let key = text.split_once('=').map(|(key, _)| key);
    schema::did_you_mean(key.and_then(|key| schema::nearest(key, known)))
}

/// Sets a value; false if there was one already.
fn set<T>(to: &mut Option<T>, value: T) -> bool {
    to.replace(value).is_none()
}

fn whole<T: FromStr + PartialOrd + std::fmt::Display>(text: &str, least: T, most: T) -> Result<T, String> {
    let number = text.parse().ok().filter(|n| (&least..=&most).contains(&n));
    number.ok_or_else(|| format!("give a whole number, {least} to {most}"))
}

fn duration(text: &str) -> Result<Duration, String> {
    quantity::duration(text).map_err(|e| e.to_string())
}

fn optional<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, String> {
    match text {
        "none" => Ok(None),
        text => read(text).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read() {
        let read = Change::parse(&[
            "priority=127",
            "depth=4",
            "deadline=100ms",
            "rate_limit=2.5Hz",
            "every=3",
            "min_share=5%",
        ]);
        let expected = TopicChange {
            priority: Some(127),
            depth: Some(4),
            deadline: Some(Some(Duration::from_millis(100))),
            max_rate: Some(Some(2.5)),
            every: Some(3),
            min_share: Some(0.05),
        };
        assert_eq!(read, Ok(Change(expected)));
        let none = Change::parse(&["deadline=none", "rate_limit=none"]).expect("is good");
        assert_eq!((none.0.deadline, none.0.max_rate), (Some(None), Some(None)));
        assert_eq!(none.0.priority, None);
    }

    #[test]
    fn invalid_changes_are_named_with_the_fix() {
        let refusal = |text: &[&str]| Change::parse(text).expect_err("is bad").to_string();
        for (text, named, fix) in [
            ("priority=128", "priority=128", "0 to 127"),
            ("priority=", "priority=", "0 to 127"),
            ("priority", "'priority'", "priority=0…127"),
            ("priorty=3", "'priorty=3'", "depth=N"),
            ("depth=0", "depth=0", "1 to 1024"),
            ("min_share=95%", "min_share=95%", "90%"),
            ("every=-1", "every=-1", "1 to"),
            ("deadline=soon", "deadline=soon", "ms"),
            ("rate_limit=0Hz", "rate_limit=0Hz", "Hz"),
            ("=", "'='", "depth=N"),
            ("", "''", "depth=N"),
        ] {
            let error = refusal(&[text]);
            assert!(error.contains(named) && error.contains(fix), "{text}: {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
        assert!(refusal(&[]).contains("nothing to change"));
        assert!(refusal(&["depth=1", "depth=2"]).contains("twice"));
        assert!(refusal(&[&"x".repeat(1 << 20)]).len() < 400);
    }
}
