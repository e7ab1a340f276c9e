//! Result of a check.

use serde_json::{Value, json};
use stats::text::printable;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// As it should be, or for information only.
    Ok,
    /// Works, but may be late or fail under load.
    Warning,
    /// Does not work.
    Problem,
}

/// Finding of one check, with the mend.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) level: Level,
    check: &'static str,
    found: String,
    mend: Option<String>,
    numbers: Option<Value>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Finding {
        Finding {
            level: Level::Ok,
            check,
            found: found.into(),
            mend: None,
            numbers: None,
        }
    }

    pub(super) fn warning(check: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Finding {
        Finding {
            level: Level::Warning,
            mend: Some(mend.into()),
            ..Finding::ok(check, found)
        }
    }

    pub(super) fn problem(check: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Finding {
        Finding {
            level: Level::Problem,
            ..Finding::warning(check, found, mend)
        }
    }

    /// Adds numbers for programs, with units in the names.
    pub(super) fn with_numbers(mut self, numbers: Value) -> Finding {
        self.numbers = Some(numbers);
        self
    }

    pub(super) fn json(&self) -> Value {
        let level = match self.level {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Problem => "problem",
        };
        json!({"check": self.check, "level": level, "found": self.found, "mend": self.mend, "numbers": self.numbers})
    }

    /// The finding on one line, and the mend on a second.
    pub(super) fn text(&self, colour: bool) -> String {
        let (mark, code) = match self.level {
            Level::Ok => ("ok     ", "32"),
            Level::Warning => ("warning", "33"),
            Level::Problem => ("PROBLEM", "31;1"),
        };
        let mark = if colour {
            format!("\x1b[{code}m{mark}\x1b[0m")
        } else {
            mark.to_owned()
        };
        let mut text = format!("{mark}  {:<18} {}\n", self.check, printable(&self.found));
        if let Some(mend) = &self.mend {
            text += &format!("{:28} mend: {}\n", "", printable(mend));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mend_stands_below_its_finding() {
        let text = Finding::warning("governor", "powersave", "set performance").text(false);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("warning  governor"), "{}", lines[0]);
        assert_eq!(lines[1].trim(), "mend: set performance");
        assert!(!text.contains('\x1b'));
    }

    #[test]
    fn levels_are_ordered_by_gravity() {
        assert!(Level::Ok < Level::Warning && Level::Warning < Level::Problem);
    }
}
