//! The bytes of a message that have arrived.

/// Most separate runs; more are refused: an honest sender leaves one gap per lost datagram.
const MAX_RUNS: usize = 4096;
/// Short messages may have fewer: one per this many bytes, in addition to the few that any may have. So runs cost less
/// than the bytes.
const BYTES_A_RUN: u32 = 64;
const FEW_RUNS: usize = 16;

/// How many separate runs a message of `total` bytes may have.
pub(crate) fn most_runs(total: u32) -> usize {
    ((total / BYTES_A_RUN) as usize + FEW_RUNS).min(MAX_RUNS)
}

/// Disjoint, sorted, non-touching runs of received bytes.
#[derive(Debug, Default)]
pub(crate) struct Ranges(Vec<(u32, u32)>);

impl Ranges {
    pub(crate) const NONE: Ranges = Ranges(Vec::new());

    /// Adds `from..to` and calls `new` for each part of it that was missing. Returns false, and changes nothing, if
    /// there would be more than `most` runs.
    pub(crate) fn insert(&mut self, from: u32, to: u32, most: usize, mut new: impl FnMut(u32, u32)) -> bool {
        if from >= to {
            return true;
        }
        // Runs that overlap or touch from..to.
        let first = self.0.partition_point(|r| r.1 < from);
        let last = self.0.partition_point(|r| r.0 <= to);
        if first == last && self.0.len() >= most {
            return false;
        }
        let (mut at, mut merged) = (from, (from, to));
        for &(a, b) in &self.0[first..last] {
            if at < a {
                new(at, a.min(to));
            }
            at = at.max(b);
            merged = (merged.0.min(a), merged.1.max(b));
        }
        if at < to {
            new(at, to);
        }
        self.0.splice(first..last, [merged]);
        true
    }

    /// Whether `0..len` is complete.
    pub(crate) fn covers(&self, len: u32) -> bool {
        len == 0 || self.0.first() == Some(&(0, len))
    }

    /// The bytes of `0..len` that have not arrived.
    pub(crate) fn missing(&self, len: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let ends = self.0.iter().copied().chain([(len, len)]);
        let mut at = 0;
        ends.filter_map(move |(from, to)| {
            let gap = (at, from.min(len));
            at = to;
            (gap.0 < gap.1).then_some(gap)
        })
    }

    /// The first byte that has not arrived.
    pub(crate) fn first_missing(&self) -> u32 {
        self.0.first().filter(|r| r.0 == 0).map_or(0, |r| r.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reports_each_byte_once_whatever_the_order() {
        let mut rng = medium::Rng::new(3);
        for _ in 0..500 {
            let (mut have, mut ranges) = ([false; 64], Ranges::default());
            for _ in 0..20 {
                let a = rng.below(65) as u32;
                let b = rng.below(65) as u32;
                let (a, b) = (a.min(b), a.max(b));
                let mut fresh = Vec::new();
                assert!(ranges.insert(a, b, MAX_RUNS, |x, y| fresh.extend(x..y)));
                let want: Vec<u32> = (a..b).filter(|i| !have[*i as usize]).collect();
                assert_eq!(fresh, want);
                have[a as usize..b as usize].fill(true);
                let missing = have.iter().position(|h| !h);
                assert_eq!(ranges.first_missing() as usize, missing.unwrap_or(64));
                assert_eq!(ranges.covers(64), missing.is_none());
                let reported: Vec<u32> = ranges.missing(64).flat_map(|(a, b)| a..b).collect();
                assert_eq!(
                    reported,
                    (0..64).filter(|i| !have[*i as usize]).collect::<Vec<_>>()
                );
                assert!(ranges.0.windows(2).all(|w| w[0].1 < w[1].0), "{ranges:?}");
            }
        }
    }

    #[test]
    fn runs_are_bounded() {
        let mut r = Ranges::default();
        for i in 0..MAX_RUNS as u32 {
            assert!(r.insert(2 * i, 2 * i + 1, MAX_RUNS, |_, _| ()));
        }
        assert!(!r.insert(20_000, 20_001, MAX_RUNS, |_, _| panic!("nothing is changed")));
        assert!(
            r.insert(1, 2, MAX_RUNS, |_, _| ()),
            "joining runs is always possible"
        );
        assert!(Ranges::default().covers(0));
    }
}
