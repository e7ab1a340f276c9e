//! Free space of one segment: a list of free ranges, sorted and merged.

/// Every block, and every data part in it, starts and ends at a multiple of this.
pub(crate) const ALIGN: u64 = 64;

/// Free ranges of a segment. Takes the lowest one that fits, so that the used part stays low and dense.
#[derive(Debug)]
pub(crate) struct Space {
    len: u64,
    free: Vec<(u64, u64)>,
}

impl Space {
    pub(crate) fn new(len: u64) -> Self {
        let mut free = Vec::with_capacity(64);
        free.push((0, len));
        Space { len, free }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.free == [(0, self.len)]
    }

    /// Returns the lowest offset at which `len` bytes fit, if they end at or before `end`.
    pub(crate) fn find(&self, len: u64, end: u64) -> Option<u64> {
        let (start, _) = self.free.iter().find(|(_, size)| *size >= len)?;
        (start + len <= end).then_some(*start)
    }

    /// Takes `len` bytes at `start`, which [`Space::find`] returned.
    pub(crate) fn take(&mut self, start: u64, len: u64) {
        let i = self.free.partition_point(|(s, _)| *s < start);
        debug_assert!(self.free[i].0 == start && self.free[i].1 >= len);
        if self.free[i].1 == len {
            self.free.remove(i);
        } else {
            self.free[i] = (start + len, self.free[i].1 - len);
        }
    }

    /// Returns `len` bytes at `start`.
    pub(crate) fn give(&mut self, start: u64, len: u64) {
        let i = self.free.partition_point(|(s, _)| *s < start);
        let joins_before = i > 0 && self.free[i - 1].0 + self.free[i - 1].1 == start;
        let joins_after = self.free.get(i).is_some_and(|(s, _)| start + len == *s);
        match (joins_before, joins_after) {
            (true, true) => {
                self.free[i - 1].1 += len + self.free[i].1;
                self.free.remove(i);
            }
            (true, false) => self.free[i - 1].1 += len,
            (false, true) => self.free[i] = (start, len + self.free[i].1),
            (false, false) => self.free.insert(i, (start, len)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn neighbours_merge_whatever_the_order() {
        let mut s = Space::new(300);
        for start in [0, 100, 200] {
            assert_eq!(s.find(100, 300), Some(start));
            s.take(start, 100);
        }
        assert_eq!(s.find(1, 300), None);
        s.give(100, 100);
        s.give(0, 100);
        s.give(200, 100);
        assert!(s.is_idle());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 256 }, failure_persistence: None, ..Default::default() })]
        #[test]
        fn ranges_never_overlap_and_all_return(ops in prop::collection::vec((any::<bool>(), 1u64..40, any::<usize>()), 1..200)) {
            let mut s = Space::new(64 * 100);
            let mut used: Vec<(u64, u64)> = vec![];
            for (take, units, pick) in ops {
                let len = units * 64;
                if take {
                    if let Some(at) = s.find(len, 6400) {
                        prop_assert!(at + len <= 6400);
                        prop_assert!(used.iter().all(|(a, l)| at + len <= *a || a + l <= at));
                        s.take(at, len);
                        used.push((at, len));
                    }
                } else if !used.is_empty() {
                    let (at, len) = used.swap_remove(pick % used.len());
                    s.give(at, len);
                }
            }
            for (at, len) in used {
                s.give(at, len);
            }
            prop_assert!(s.is_idle());
        }
    }
}
