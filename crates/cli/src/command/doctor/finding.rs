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

/// Finding of one check, and how to fix it.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) level: Level,
    check: &'static str,
    found: String,
    fix: Option<String>,
    numbers: Option<Value>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Finding {
        Finding {
            level: Level::Ok,
            check,
            found: found.into(),
            fix: None,
            numbers: None,
        }
    }

    pub(super) fn warning(check: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding {
            level: Level::Warning,
            fix: Some(fix.into()),
            ..Finding::ok(check, found)
        }
    }

    pub(super) fn problem(check: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding {
            level: Level::Problem,
            ..Finding::warning(check, found, fix)
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
        json!({"check": self.check, "level": level, "found": self.found, "fix": self.fix, "numbers": self.numbers})
    }

    /// The finding, and below it how to fix it, in lines of at most `width` characters.
    pub(super) fn text(&self, colour: bool, width: usize) -> String {
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
        let mut text = format!("{mark}  {:<18} ", self.check);
        let mut lines = wrapped(&printable(&self.found), width, MARGIN);
        if let Some(fix) = &self.fix {
            lines.extend(wrapped(&format!("fix: {}", printable(fix)), width, MARGIN));
        }
        text += &lines.join(&format!("\n{:MARGIN$}", ""));
        text + "\n"
    }
}

/// Width of the columns before a finding.
const MARGIN: usize = 28;
/// Least width of a finding, in a narrow terminal.
const LEAST: usize = 20;

/// Wraps a text to lines that fit behind a margin, except for longer words.
fn wrapped(text: &str, width: usize, margin: usize) -> Vec<String> {
    let room = width.saturating_sub(margin).max(LEAST);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fix_is_printed_below_its_finding() {
        let text = Finding::warning("governor", "powersave", "set performance").text(false, usize::MAX);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("warning  governor"), "{}", lines[0]);
        assert_eq!(lines[1].trim(), "fix: set performance");
        assert!(!text.contains('\x1b'));
    }

    #[test]
    fn lines_are_wrapped_behind_the_margin() {
        let fix = "set the governor to performance, or accept that messages are late";
        let text = Finding::warning("CPU governor", "powersave", fix).text(false, 60);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= 60), "{text}");
        assert!(
            lines[0].starts_with("warning  CPU governor       powersave"),
            "{text}"
        );
        let indent = " ".repeat(MARGIN);
        assert!(lines[1..].iter().all(|line| line.starts_with(&indent)), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.ends_with(fix), "{text}");
    }

    #[test]
    fn levels_are_ordered_by_gravity() {
        assert!(Level::Ok < Level::Warning && Level::Warning < Level::Problem);
    }
}
