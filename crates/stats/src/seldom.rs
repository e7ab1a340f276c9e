//! Rate limit for log lines.

use crate::Time;
use core::time::Duration;

/// Admits the first line of a kind to a log, then one line per interval, which states how many events it stands for.
///
/// ```
/// use stats::{Seldom, Time};
/// use std::time::Duration;
///
/// let mut refusals = Seldom::every(Duration::from_secs(10));
/// assert_eq!(refusals.lets(Time::from_millis(0)), Some(0));
/// assert_eq!(refusals.lets(Time::from_millis(750)), None);
/// assert_eq!(refusals.lets(Time::from_millis(10_000)), Some(1)); // one more since the last line
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Seldom {
    interval: Duration,
    next: Option<Time>,
    unsaid: u64,
}

impl Seldom {
    /// At most one line per `interval`.
    pub const fn every(interval: Duration) -> Self {
        Seldom {
            interval,
            next: None,
            unsaid: 0,
        }
    }

    /// Records an event of the kind at `now`: returns `None` if it is not to be logged, otherwise the number of
    /// unlogged events since the last line.
    pub fn lets(&mut self, now: Time) -> Option<u64> {
        if self.next.is_some_and(|next| now < next) {
            self.unsaid += 1;
            return None;
        }
        self.next = Some(now + self.interval);
        Some(core::mem::take(&mut self.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_gives_one_line_each_interval_and_none_goes_uncounted() {
        let mut seldom = Seldom::every(Duration::from_secs(1));
        let said: Vec<u64> = (0..1000)
            .filter_map(|i| seldom.lets(Time::from_millis(10 * i)))
            .collect();
        assert_eq!(said, [0, 99, 99, 99, 99, 99, 99, 99, 99, 99]);
        assert_eq!(seldom.lets(Time::from_millis(60_000)), Some(99));
    }
}
