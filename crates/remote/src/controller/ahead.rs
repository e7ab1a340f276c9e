//! How many pieces of a file are asked for ahead.

use std::time::Duration;

/// As few as keep a short path busy, and as many as are asked for at most: 16 MiB, more than 60 Mbit/s carry in a round trip of 2 s.
const LEAST: usize = 2;
const MOST: usize = 64;
/// Of how many pieces the quickest counts, in this span and the one before.
const SPAN: u32 = 32;

/// So many that the path is full and nothing waits long in it.
///
/// A piece takes as long as the path is, until as many are under way as it holds; from then on it takes longer the more there are.
/// So their number grows with each piece that took less than twice what the quickest did, and shrinks with one that took more
/// than three times that: behind it commands of others would wait, too.
#[derive(Debug)]
pub(super) struct Ahead {
    pieces: usize,
    quickest: [Option<Duration>; 2],
    seen: u32,
}

impl Default for Ahead {
    fn default() -> Self {
        Ahead {
            pieces: LEAST,
            quickest: [None; 2],
            seen: 0,
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
        if self.seen >= SPAN {
            self.quickest = [None, self.quickest[0]];
            self.seen = 0;
        }
        self.seen += 1;
        self.quickest[0] = Some(self.quickest[0].map_or(took, |q| q.min(took)));
        let quickest = self.quickest.iter().flatten().min().copied().unwrap_or(took);
        if took < quickest * 2 {
            self.pieces = (self.pieces + 1).min(MOST);
        } else if took > quickest * 3 {
            self.pieces = (self.pieces - 1).max(LEAST);
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
            assert!(took < full + round_trip * 4, "{round_trip:?}: {took:?}, {full:?}");
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
