//! Code to prefetch when a subscriber wakes.

use crate::sys;
use std::sync::OnceLock;

/// Up to four ranges of code: the start and the number of bytes of each.
#[derive(Debug, Default)]
pub(crate) struct Fetched([OnceLock<(usize, usize)>; 4]);

/// Maximum bytes to fetch per range: fetching must take less time than it saves.
const MOST: usize = 4096;

impl Fetched {
    /// Adds a range, unless it is already there. Returns false if there is no room.
    pub(super) fn add(&self, start: *const u8, len: usize) -> bool {
        let range = (start.addr(), len.min(MOST));
        self.0.iter().any(|place| *place.get_or_init(|| range) == range)
    }

    pub(super) fn fetch(&self) {
        for (start, len) in self.0.iter().filter_map(OnceLock::get) {
            sys::prefetch(std::ptr::without_provenance(*start), *len);
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
        assert!(fetched.add(at(8), usize::MAX), "named again");
        // Prefetching an unreadable address does no harm.
        fetched.fetch();
    }
}
