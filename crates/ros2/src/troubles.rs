//! Problems that keep names from crossing, reported while they last.

use crate::hub::Hub;
use std::collections::BTreeSet;
use std::fmt::Display;

/// Maximum number of problems at a time.
const MAX_TROUBLES: usize = 256;

/// Names that a rule lists but that cannot cross, for one kind and direction.
#[derive(Debug, Default)]
pub(crate) struct Troubles {
    before: BTreeSet<String>,
    now: BTreeSet<String>,
}

impl Troubles {
    /// Reports a problem that keeps `what` from crossing.
    pub(crate) fn report(&mut self, hub: &Hub, what: &str, problem: impl Display) {
        if self.note(what) {
            hub.problem(what, problem);
        }
    }

    /// Call after checking everything: clears the problems of names that are gone or cross now.
    pub(crate) fn settle(&mut self, hub: &Hub) {
        for what in self.gone() {
            hub.forget(&what);
        }
    }

    fn note(&mut self, what: &str) -> bool {
        let fits = self.now.len() < MAX_TROUBLES || self.now.contains(what);
        if fits {
            self.now.insert(what.to_owned());
        }
        fits
    }

    fn gone(&mut self) -> Vec<String> {
        let now = std::mem::take(&mut self.now);
        let before = std::mem::replace(&mut self.before, now);
        before.difference(&self.before).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_of_what_does_not_cross_are_bounded_and_end_with_it() {
        let mut troubles = Troubles::default();
        let noted = (0..1_000).filter(|n| troubles.note(&format!("/{n:04}"))).count();
        assert_eq!((noted, troubles.gone().len()), (MAX_TROUBLES, 0));
        assert!(troubles.note("/0000"));
        assert_eq!(troubles.gone().len(), MAX_TROUBLES - 1);
        assert_eq!(troubles.gone(), ["/0000"]);
    }
}
