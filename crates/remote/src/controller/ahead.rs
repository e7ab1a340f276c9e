//! How many pieces of a file are requested ahead.

use std::time::Duration;

/// The minimum keeps a short path busy. The maximum is 16 MiB, which is more than 60 Mbit/s carries in a round trip of
/// 2 s.
const LEAST: usize = 2;
const MOST: usize = 64;
/// After this many slow pieces in a row, with at most the minimum in flight, the path has changed.
const MANY: u32 = 8;

/// Window of pieces in flight that fills the path without a long queue.
///
/// A piece takes as long as the path until the path is full; beyond that, each further piece in flight makes all of
/// them slower. So the window grows with each piece that takes less than twice as long as the quickest. It shrinks by a
/// quarter with a piece that takes more than three times as long; pieces that were requested before that do not shrink
/// it again. A larger window would also delay the commands of other controllers. The quickest time is forgotten only
/// when next to nothing is in flight: pieces that wait behind each other do not measure the path.
#[derive(Debug)]
pub(super) struct Ahead {
    pieces: usize,
    quickest: Option<Duration>,
    /// The quickest of the last slow pieces, and their number.
    slow: (Duration, u32),
    /// Number of outstanding pieces that were requested before the window shrank.
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
    /// Returns how many pieces may be in flight.
    pub(super) fn pieces(&self) -> usize {
        self.pieces
    }

    /// A piece arrived, `took` after its request.
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

    /// A piece was refused, or never arrived.
    pub(super) fn failed(&mut self) {
        self.pieces = (self.pieces / 2).max(LEAST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Fetches `count` pieces over a path with this round trip that carries one piece in `service`. Returns the time
    /// that it took, and the number of pieces in flight at the end.
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
        // 10 Mbit/s: a piece takes 210 ms. Round trips of 2 s, 600 ms and 10 ms.
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
