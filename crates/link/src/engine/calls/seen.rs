//! Tracks the calls already received from a host, so that none is executed twice.

use super::header::CallId;
use std::collections::VecDeque;

/// Calls that are this much older than the newest count as seen, since they would be very late.
const SPAN: u64 = 4096;
const WORDS: usize = (SPAN / 64) as usize;
/// Past runs of a host that are remembered, so that a late request of one does not count as new.
const RUNS: usize = 8;

/// The calls of one host.
#[derive(Debug)]
pub(crate) struct Seen {
    run: u32,
    newest: u64,
    /// One bit per call, for the last [`SPAN`].
    bits: [u64; WORDS],
    over: VecDeque<u32>,
}

impl Default for Seen {
    fn default() -> Self {
        Seen {
            run: 0,
            newest: 0,
            bits: [0; WORDS],
            over: VecDeque::new(),
        }
    }
}

impl Seen {
    /// Returns whether a call is new, and records it.
    pub(crate) fn is_new(&mut self, call: CallId) -> bool {
        if call.run != self.run {
            if self.over.contains(&call.run) {
                return false;
            }
            if self.run != 0 {
                self.over.truncate(RUNS - 1);
                self.over.push_front(self.run);
            }
            (self.run, self.newest, self.bits) = (call.run, 0, [0; WORDS]);
        }
        if call.number > self.newest {
            let ahead = call.number - self.newest;
            if ahead >= SPAN {
                self.bits = [0; WORDS];
            } else {
                // Each bit is reused for a number that is `SPAN` higher.
                for n in self.newest + 1..call.number {
                    self.clear(n);
                }
            }
            self.newest = call.number;
            self.set(call.number);
            return true;
        }
        if self.newest - call.number >= SPAN || self.has(call.number) {
            return false;
        }
        self.set(call.number);
        true
    }

    fn position(number: u64) -> (usize, u64) {
        ((number / 64 % WORDS as u64) as usize, 1 << (number % 64))
    }

    fn has(&self, number: u64) -> bool {
        let (word, bit) = Self::position(number);
        self.bits[word] & bit != 0
    }

    fn set(&mut self, number: u64) {
        let (word, bit) = Self::position(number);
        self.bits[word] |= bit;
    }

    fn clear(&mut self, number: u64) {
        let (word, bit) = Self::position(number);
        self.bits[word] &= !bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn call(run: u32, number: u64) -> CallId {
        CallId { run, number }
    }

    #[test]
    fn each_call_is_new_once_in_whatever_order_they_come() {
        let mut seen = Seen::default();
        let mut known = BTreeSet::new();
        let mut x = 5u64;
        for base in 0..20_000u64 {
            x = x
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            // Within the span of the newest, and occasionally far ahead.
            let ahead = if x >> 52 == 0 { SPAN + 10 } else { (x >> 33) % 1000 };
            let number = 1 + base + ahead;
            let newest = known.last().copied().unwrap_or(0u64);
            let in_reach = number + SPAN > newest;
            assert_eq!(
                seen.is_new(call(1, number)),
                in_reach && known.insert(number),
                "{number} after {newest}"
            );
            if !in_reach {
                known.insert(number);
            }
        }
        for number in known {
            assert!(!seen.is_new(call(1, number)));
        }
        assert!(seen.is_new(call(1, u64::MAX)));
        assert!(!seen.is_new(call(1, u64::MAX)));
        assert!(!seen.is_new(call(1, 1)), "too old to tell");
    }

    #[test]
    fn a_run_that_is_over_calls_no_more() {
        let mut seen = Seen::default();
        assert!(seen.is_new(call(7, 1)));
        assert!(seen.is_new(call(8, 1)), "another run starts from 1 again");
        assert!(!seen.is_new(call(7, 2)), "late, of the run before");
        assert!(seen.is_new(call(8, 2)));
    }
}
