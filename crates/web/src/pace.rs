//! Measures how fast a client receives, by its answers to pings after long messages (decision 348). No clock.

use std::time::{Duration, Instant};

/// A message of at least this length is followed by a ping, and waits until the client has received the previous long
/// one. Nothing can overtake a message on its connection, so at most one long message delays an urgent one.
pub(crate) const LONG: usize = 32 << 10;
/// Time for which a message that can be made smaller may occupy the connection.
const TARGET: Duration = Duration::from_millis(25);
/// Bytes of such a message before the first answer.
const FIRST: usize = 256 << 10;
/// Bytes that it may have at any rate.
const LEAST: usize = 16 << 10;
/// How long a ping of its own counts: if the client was busy when it answered, the next one shows a shorter round trip.
const ALONE: Duration = Duration::from_secs(2);
/// Shorter times than this cannot be measured.
const RESOLUTION: Duration = Duration::from_micros(500);
/// If a client does not answer for this long, long messages no longer wait for it until it answers again.
const SILENT: Duration = Duration::from_secs(5);

/// The payload of a ping.
pub(crate) type Number = [u8; 4];

/// Measurements of one client's connection.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    next: u32,
    /// The number of the last ping, when its message began, and the bytes up to it.
    under_way: Option<(Number, Instant, usize)>,
    /// Shortest time until an answer.
    round_trip: Option<Duration>,
    /// When the last ping was sent that no message preceded.
    alone: Option<Instant>,
    /// Bytes a second.
    rate: Option<f64>,
    silent: bool,
}

impl Pace {
    /// Returns the number of the ping that follows `bytes`, which began at `since`.
    pub(crate) fn sent(&mut self, since: Instant, bytes: usize) -> Number {
        let number = self.next.to_be_bytes();
        self.next = self.next.wrapping_add(1);
        self.under_way = Some((number, since, bytes));
        number
    }

    /// Whether a ping follows a message of this length. Once messages have become so small that none is long, those show
    /// whether the client is faster again.
    pub(crate) fn measures(&self, bytes: usize) -> bool {
        bytes >= if self.room() < LONG { LEAST / 2 } else { LONG }
    }

    /// Returns the number of the ping that goes before a long message, now and then: how long an answer takes by itself.
    pub(crate) fn alone(&mut self, now: Instant) -> Option<Number> {
        let known = self.alone.is_some_and(|at| now < at + ALONE) || self.silent || self.under_way.is_some();
        (!known).then(|| {
            self.alone = Some(now);
            self.sent(now, 0)
        })
    }

    /// The client answered a ping. Answers to pings before the last one are ignored.
    pub(crate) fn answered(&mut self, now: Instant, number: &[u8]) {
        let Some((_, since, bytes)) = self.under_way.take_if(|(last, ..)| last == number) else {
            return;
        };
        self.silent = false;
        let took = now.saturating_duration_since(since);
        if bytes > 0 {
            let own = took.saturating_sub(self.round_trip.unwrap_or_default());
            let rate = bytes as f64 / own.max(RESOLUTION).as_secs_f64();
            // Down at once, since something urgent waits.
            self.rate = match self.rate {
                Some(before) if rate > before => Some((before + rate) / 2.0),
                _ => Some(rate),
            };
        }
        self.round_trip = Some(self.round_trip.map_or(took, |least| least.min(took)));
    }

    /// Until when long messages wait for an answer, if they do.
    pub(crate) fn waits(&mut self, now: Instant) -> Option<Instant> {
        let (_, since, _) = self.under_way?;
        let until = since + SILENT;
        self.silent |= now >= until;
        (!self.silent).then_some(until)
    }

    /// Bytes that a message should have so that it does not occupy the connection for long.
    pub(crate) fn room(&self) -> usize {
        match self.rate {
            _ if self.silent => usize::MAX,
            None => FIRST,
            Some(rate) => ((rate * TARGET.as_secs_f64()) as usize).max(LEAST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn the_rate_of_a_slow_client_is_found_and_rises_again() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        let first = pace.alone(now).unwrap();
        assert!(pace.waits(now).is_some() && pace.alone(now).is_none());
        pace.answered(now + ms(10), &first);
        assert_eq!(
            (pace.waits(now), pace.alone(now), pace.room()),
            (None, None, FIRST)
        );
        // 2.5 MB a second beyond the round trip.
        for _ in 0..3 {
            let ping = pace.sent(now, 250_000);
            assert!(pace.waits(now).is_some());
            now += ms(110);
            pace.answered(now, b"else");
            assert!(pace.waits(now).is_some());
            pace.answered(now, &ping);
            assert_eq!((pace.waits(now), pace.room()), (None, 62_500));
        }
        for _ in 0..6 {
            let ping = pace.sent(now, 62_500);
            now += ms(10);
            pace.answered(now, &ping);
        }
        assert!(pace.room() > 1_000_000, "{pace:?}");
    }

    #[test]
    fn a_client_that_was_slow_for_a_moment_gets_whole_images_again() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        let first = pace.alone(now).unwrap();
        pace.answered(now + ms(1), &first);
        assert!(!pace.measures(LONG - 1) && pace.measures(LONG));
        let slow = pace.sent(now, 250_000);
        now += SILENT / 2;
        pace.answered(now, &slow);
        assert_eq!(pace.room(), LEAST);
        for _ in 0..20 {
            let bytes = pace.room() - 1_000;
            assert!(pace.measures(bytes), "{pace:?}");
            let ping = pace.sent(now, bytes);
            now += ms(2);
            pace.answered(now, &ping);
        }
        assert!(pace.room() > 200_000, "{pace:?}");
    }

    #[test]
    fn a_client_that_was_busy_at_first_is_not_taken_for_a_faster_one() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        let first = pace.alone(now).unwrap();
        now += ms(60);
        pace.answered(now, &first);
        // 200 kB a second.
        for _ in 0..40 {
            if let Some(alone) = pace.alone(now) {
                now += ms(1);
                pace.answered(now, &alone);
            }
            let bytes = pace.room().min(200_000);
            let ping = pace.sent(now, bytes);
            now += ms(1 + bytes as u64 / 200);
            pace.answered(now, &ping);
        }
        assert_eq!(pace.room(), LEAST, "{pace:?}");
    }

    #[test]
    fn a_client_that_never_answers_is_waited_for_once() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        pace.sent(now, 1 << 20);
        assert_eq!(pace.waits(now), Some(now + SILENT));
        assert_eq!(pace.waits(now + SILENT), None);
        let last = pace.sent(now + SILENT, 1 << 20);
        assert_eq!((pace.waits(now + SILENT), pace.room()), (None, usize::MAX));
        pace.answered(now + SILENT + ms(100), &last);
        assert!(pace.room() < 1 << 20);
        pace.sent(now + SILENT * 2, 1 << 20);
        assert!(pace.waits(now + SILENT * 2).is_some());
    }
}
