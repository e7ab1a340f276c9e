//! Remembers something about each publisher. Nearly always, the same publisher sends again.

use std::collections::HashMap;

/// Maximum number of publishers to remember; beyond this, all but the newest are forgotten.
const MAX_REMEMBERED: usize = 4096;

/// A value per publisher. The last one requested is found without a search.
#[derive(Debug, Default)]
pub(crate) struct Memo<T> {
    newest: (u64, T),
    others: HashMap<u64, T>,
}

impl<T: Default> Memo<T> {
    /// The value for a publisher, initially the default.
    pub(crate) fn of(&mut self, publisher: u64) -> &mut T {
        if self.newest.0 != publisher {
            self.turn_to(publisher);
        }
        &mut self.newest.1
    }

    #[cold]
    #[inline(never)]
    fn turn_to(&mut self, publisher: u64) {
        let known = self.others.remove(&publisher).unwrap_or_default();
        let (before, its) = std::mem::replace(&mut self.newest, (publisher, known));
        if self.others.len() >= MAX_REMEMBERED {
            self.others.clear();
        }
        self.others.insert(before, its);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_publisher_has_its_own_and_too_many_are_forgotten() {
        let mut memo = Memo::<u64>::default();
        for round in 0..3 {
            for id in 1..100 {
                let known = memo.of(id);
                assert_eq!(*known, round * id);
                *known += id;
            }
        }
        for id in 100..2 * MAX_REMEMBERED as u64 + 200 {
            *memo.of(id) = id;
            assert_eq!(*memo.of(id), id);
        }
        assert_eq!(*memo.of(1), 0);
        assert!(memo.others.len() <= MAX_REMEMBERED);
    }
}
