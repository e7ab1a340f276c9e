//! How far the in-flight limit opens while receipts clock the sending at an unknown rate (decision 359).

use super::Recent;
use super::flight::ASKS;
use super::tuning::tuning;
use core::time::Duration;
use stats::Time;

/// Datagrams that may be in flight beyond the least, found as TCP Vegas does (Brakmo and Peterson 1995).
///
/// Any excess over the shortest round trip is queueing delay, so of `limit` datagrams in flight the part
/// `1 - shortest / now` waits in one. As long as hardly any waits the path is not full, and the limit grows; if several
/// do, it shrinks. `now` is the shortest round trip of the last few, because jitter is no queue.
#[derive(Debug)]
pub(crate) struct Opening {
    more: usize,
    shortest: Recent<Duration>,
    /// The shortest of the present round.
    round: Option<Duration>,
    /// Receipts in the present round.
    receipts: usize,
    /// Whether the limit was about used up in it.
    filled: bool,
    /// Whether something waited in the last round.
    waits: bool,
}

impl Opening {
    pub(crate) fn new() -> Self {
        Opening {
            more: 0,
            shortest: Recent::least(tuning().path_span),
            round: None,
            receipts: 0,
            filled: false,
            waits: false,
        }
    }

    pub(crate) fn get(&self) -> usize {
        self.more
    }

    /// Whether the path is full: something waits in a queue.
    pub(crate) fn fills_path(&self) -> bool {
        self.waits
    }

    /// A receipt of a full datagram came after `round_trip`. `least` may be in flight in any case; `filled`: the limit
    /// was about used up. `jitter`: by how much round trips of a long path vary without a queue.
    pub(crate) fn receipt(
        &mut self,
        now: Time,
        round_trip: Duration,
        jitter: Duration,
        least: usize,
        filled: bool,
    ) {
        self.shortest.add(now, round_trip);
        self.round = Some(self.round.map_or(round_trip, |r| r.min(round_trip)));
        self.receipts += 1;
        self.filled |= filled;
        let limit = least + self.more;
        if self.receipts < tuning().opening_receipts.max(limit / ASKS) {
            return;
        }
        let shortest = self.shortest.get().unwrap_or_default();
        let (recent, filled) = (
            self.round.take().unwrap_or_default(),
            std::mem::take(&mut self.filled),
        );
        self.receipts = 0;
        let waits = recent.saturating_sub(shortest + jitter);
        let queued = limit as f64 * waits.as_secs_f64() / recent.as_secs_f64().max(1e-9);
        self.waits = queued > tuning().opening_least;
        if queued > tuning().opening_most {
            self.more -= self.more.div_ceil(4);
        } else if filled && !self.waits {
            self.more = (self.more + limit.div_ceil(2)).min(tuning().breadth_most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// The limit after a thousand round trips on a path that takes `alone`, and serves a datagram in `service`.
    fn limit(alone: Duration, service: Duration, jitter: Duration) -> usize {
        let (mut opening, mut now) = (Opening::new(), Time::from_millis(1));
        let mut rng = medium::Rng::new(7);
        opening.receipt(now, alone, jitter, 2, false);
        for _ in 0..1000 {
            let limit = 2 + opening.get();
            let queue = (service * limit as u32).saturating_sub(alone);
            let strays = jitter.mul_f64(rng.below(1000) as f64 / 1000.0);
            now += service;
            opening.receipt(now, alone + queue + strays, jitter, 2, true);
        }
        2 + opening.get()
    }

    #[test]
    fn it_opens_until_the_path_is_full_and_no_further() {
        assert!(limit(2 * MS, 2 * MS, Duration::ZERO) <= 3, "the least fills it");
        for (path, jitter) in [(20, 0), (100, 0), (100, 5)] {
            let limit = limit(path * MS, MS, jitter * MS) as u32;
            assert!(
                (path * 3 / 4..=path * 3 / 2 + jitter + 4).contains(&limit),
                "{path} ms: {limit}"
            );
        }
    }

    #[test]
    fn it_neither_opens_unused_nor_stays_open_when_the_path_becomes_slower() {
        let (mut opening, now) = (Opening::new(), Time::from_millis(1));
        (0..1000).for_each(|_| opening.receipt(now, 10 * MS, Duration::ZERO, 2, false));
        assert_eq!(opening.get(), 0);
        (0..100).for_each(|_| opening.receipt(now, 10 * MS, Duration::ZERO, 2, true));
        assert!(opening.get() > 10 && !opening.fills_path());
        (0..1000).for_each(|_| opening.receipt(now, 50 * MS, Duration::ZERO, 2, true));
        assert!(opening.get() <= 3 && opening.fills_path(), "{opening:?}");
    }
}
