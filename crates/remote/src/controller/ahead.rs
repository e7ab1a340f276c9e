//! How many pieces of a file are asked for ahead.

use std::time::Duration;

/// As few as keep a short path busy, and as many as are asked for at most: 16 MiB, more than 60 Mbit/s carry in a round trip of 2 s.
const LEAST: usize = 2;
const MOST: usize = 64;
/// So many slow ones in a row, with no more than the least under way, show that the path is another than it was.
const MANY: u32 = 8;

/// So many that the path is full and nothing waits long in it.
///
/// A piece takes as long as the path is, until as many are under way as it holds; from then on it takes longer the more there are.
/// So their number grows with each piece that took less than twice what the quickest did, and shrinks by a quarter with one that took
/// more than three times that, and again only by what was asked for since: behind them commands of others would wait, too. The quickest is forgotten only where next to nothing is
/// under way: what waits behind itself is no measure.
#[derive(Debug)]
pub(super) struct Ahead {
    pieces: usize,
    quickest: Option<Duration>,
    /// The quickest of the last slow ones, and how many those are.
    slow: (Duration, u32),
    /// So many that come were asked for before the number shrank.
    old: usize,
}

impl Default for Ahead {
    fn default() -> Self {
        Ahead {
            pieces: LEAST,
            quickest: None,
            slow: (Duration::MAX, 0),
            old: 0,
        }
    }
}

impl Ahead {
    /// How many may be under way.
    pub(super) fn pieces(&self) -> usize {
        self.pieces
    }

    /// A piece came, so long after it was asked for.
    pub(super) fn came(&mut self, took: Duration) {
        let quickest = self.quickest.map_or(took, |q| q.min(took));
        self.quickest = Some(quickest);
        if self.old > 0 {
            self.old -= 1;
            return;
        }
        if took <= quickest * 3 {
            self.slow = (Duration::MAX, 0);
            if took < quickest * 2 {
                self.pieces = (self.pieces + 1).min(MOST);
            }
        } else if self.pieces > LEAST {
            self.old = self.pieces;
            self.pieces = (self.pieces * 3 / 4).max(LEAST);
        } else {
            self.slow = (self.slow.0.min(took), self.slow.1 + 1);
            if self.slow.1 == MANY {
                self.quickest = Some(self.slow.0);
                self.slow = (Duration::MAX, 0);
            }
        }
    }

    /// One was refused, or never came.
    pub(super) fn failed(&mut self) {
        self.pieces = (self.pieces / 2).max(LEAST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Fetches so many pieces over a path of this round trip that carries one in `service`: how long that took, and how many were
    /// under way at the end.
    fn fetch(ahead: &mut Ahead, count: u32, round_trip: Duration, service: Duration) -> (Duration, usize) {
        let (mut now, mut free) = (Duration::ZERO, Duration::ZERO);
        let mut under_way = VecDeque::new();
        for _ in 0..count {
            while under_way.len() < ahead.pieces() {
                free = free.max(now) + service;
                under_way.push_back((now, free + round_trip));
            }
            let (asked, comes) = under_way.pop_front().expect("at least one");
            now = now.max(comes);
            ahead.came(now - asked);
        }
        (now, under_way.len())
    }

    #[test]
    fn a_long_path_is_filled_and_a_short_one_holds_little() {
        let ms = Duration::from_millis;
        // 10 Mbit/s: a piece in 210 ms. Round trips of 2 s, 600 ms, 10 ms.
        for (round_trip, least, most) in [(ms(2_000), 11, 35), (ms(600), 4, 14), (ms(10), 2, 4)] {
            let (took, under_way) = fetch(&mut Ahead::default(), 200, round_trip, ms(210));
            let full = ms(210) * 200 + round_trip;
            assert!(took < full + round_trip * 5, "{round_trip:?}: {took:?}, {full:?}");
            assert!((least..=most).contains(&under_way), "{round_trip:?}: {under_way}");
        }
        let (_, under_way) = fetch(&mut Ahead::default(), 500, ms(2_000), ms(10));
        assert_eq!(under_way + 1, MOST);
    }

    #[test]
    fn it_follows_a_path_that_changes() {
        let ms = Duration::from_millis;
        let mut ahead = Ahead::default();
        fetch(&mut ahead, 200, ms(2_000), ms(100));
        let (_, short) = fetch(&mut ahead, 200, ms(10), ms(100));
        assert!(short <= 4, "{short}");
        let (_, long) = fetch(&mut ahead, 300, ms(2_000), ms(100));
        assert!(long >= 20, "{long}");
        (0..10).for_each(|_| ahead.failed());
        assert_eq!(ahead.pieces(), LEAST);
    }
}
