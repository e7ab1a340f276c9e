//! Current problems.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most problems that are remembered, and the longest text of one, in characters: any peer that connects can
/// cause some.
const MAX_PROBLEMS: usize = 1024;
const MAX_TEXT: usize = 1024;

/// Current problems, by what they concern. Each is logged once.
#[derive(Debug, Default)]
pub struct Problems(Mutex<BTreeMap<String, String>>);

impl Problems {
    /// Records a problem with `what`, and logs a warning unless it is the same as the last.
    pub fn tell(&self, what: &str, problem: impl std::fmt::Display) {
        let (what, problem) = (printable(what), printable(&problem.to_string()));
        if note(&mut self.all(), &what, &problem) {
            tracing::warn!("{what}: {problem}");
        }
    }

    /// Removes the problem with `what`, which works again.
    pub fn solved(&self, what: &str) {
        if self.all().remove(&printable(what)).is_some() {
            tracing::info!("{what}: good again");
        }
    }

    /// Forgets `what`, which no longer exists.
    pub fn forget(&self, what: &str) {
        self.all().remove(&printable(what));
    }

    /// All current problems.
    pub fn list(&self) -> BTreeMap<String, String> {
        self.all().clone()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records a problem with `what`. Returns whether it is new.
fn note(problems: &mut BTreeMap<String, String>, what: &str, problem: &str) -> bool {
    if problems.get(what).is_some_and(|known| known == problem) {
        return false;
    }
    if problems.len() >= MAX_PROBLEMS && !problems.contains_key(what) {
        problems.pop_first();
    }
    problems.insert(what.to_owned(), problem.to_owned());
    true
}

/// Makes a foreign text printable: one line of at most 1,024 characters.
pub fn printable(text: &str) -> String {
    stats::text::printable(text).chars().take(MAX_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_bounded_in_number_and_length() {
        let mut problems = BTreeMap::new();
        for n in 0..2 * MAX_PROBLEMS {
            assert!(note(&mut problems, &format!("{n:05}"), "bad"));
        }
        assert_eq!(problems.len(), MAX_PROBLEMS);
        let last = format!("{:05}", 2 * MAX_PROBLEMS - 1);
        assert!(!note(&mut problems, &last, "bad") && note(&mut problems, &last, "worse"));
        let long = "\u{1b}ä".repeat(MAX_TEXT);
        let reported = printable(&long);
        assert_eq!(
            (reported.chars().count(), reported.contains('\u{1b}')),
            (MAX_TEXT, false)
        );
    }
}
