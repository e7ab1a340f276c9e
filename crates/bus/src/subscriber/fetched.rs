//! What the processor is asked to fetch when a subscriber wakes.

use crate::sys;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Ranges of code, a few.
#[derive(Debug, Default)]
pub(crate) struct Fetched([Range; 4]);

#[derive(Debug, Default)]
struct Range {
    start: AtomicUsize,
    len: AtomicUsize,
}

/// No range is fetched beyond this many bytes: fetching has to stay shorter than what it saves.
const MOST: usize = 4096;

impl Fetched {
    /// Adds a range; false if there are as many as may be.
    pub(super) fn add(&self, start: *const u8, len: usize) -> bool {
        let len = len.min(MOST);
        let mut ranges = self.0.iter();
        ranges.any(|range| {
            let free = range
                .start
                .compare_exchange(0, start.addr(), Ordering::Relaxed, Ordering::Relaxed);
            if free.is_ok() {
                range.len.store(len, Ordering::Relaxed);
            }
            free.is_ok() || free == Err(start.addr())
        })
    }

    pub(super) fn fetch(&self) {
        for range in &self.0 {
            let start = std::ptr::without_provenance(range.start.load(Ordering::Relaxed));
            sys::prefetch(start, range.len.load(Ordering::Relaxed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_ranges_are_kept_whatever_they_name() {
        let fetched = Fetched::default();
        let at = |address| std::ptr::without_provenance::<u8>(address);
        for start in [at(8), at(usize::MAX), at(8), at(1 << 40), at(4096)] {
            assert!(fetched.add(start, usize::MAX));
        }
        assert!(!fetched.add(at(16), 1));
        assert!(fetched.add(at(8), 1), "named again");
        // What can be read nowhere is asked for without harm.
        fetched.fetch();
    }
}
