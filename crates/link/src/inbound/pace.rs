//! Publishes messages of reliable topics at their subscribers' pace.

use bus::Publisher;
use stats::Time;
use std::collections::BTreeMap;
use std::time::Duration;

/// A subscriber whose queue stays full for this long no longer holds up the others until it takes a message.
/// Its losses meanwhile are counted (`not_taken`).
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// Since when which subscribers hold up which publishers.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    full: BTreeMap<(u64, u64), Time>,
}

impl Pace {
    /// Returns whether a message of this many bytes can be published without loss for any subscriber that is
    /// waited for.
    pub(crate) fn takes(&mut self, now: Time, publisher: &Publisher, bytes: u64) -> bool {
        self.judge(now, publisher.id(), &publisher.full_subscribers(bytes))
    }

    fn judge(&mut self, now: Time, publisher: u64, full: &[u64]) -> bool {
        self.full.retain(|(p, s), _| *p != publisher || full.contains(s));
        for subscriber in full {
            self.full.entry((publisher, *subscriber)).or_insert(now);
        }
        let mut held_up = self.full.range((publisher, 0)..=(publisher, u64::MAX));
        held_up.all(|(_, since)| now >= *since + PATIENCE)
    }

    /// Forgets a publisher that has ended.
    pub(crate) fn forget(&mut self, publisher: u64) {
        self.full.retain(|(p, _), _| *p != publisher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_subscriber_is_waited_for_once_in_a_stall() {
        let mut pace = Pace::default();
        let at = Time::from_millis;
        assert!(pace.judge(at(0), 1, &[]));
        assert!(!pace.judge(at(0), 1, &[7]) && !pace.judge(at(1_999), 1, &[7]));
        assert!(pace.judge(at(2_000), 1, &[7]) && pace.judge(at(9_000), 1, &[7]));
        assert!(!pace.judge(at(9_000), 1, &[7, 8]), "another one holds it up");
        assert!(pace.judge(at(9_001), 1, &[7]), "it took something");
        // It takes messages again: from now on it is waited for again.
        assert!(pace.judge(at(9_100), 1, &[]) && !pace.judge(at(9_200), 1, &[7]));
        assert!(!pace.judge(at(9_200), 2, &[7]), "publishers are independent");
        pace.forget(1);
        assert_eq!(pace.full.len(), 1);
    }
}
