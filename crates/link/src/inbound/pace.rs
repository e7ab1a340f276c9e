//! Messages of reliable topics are published at their subscribers' pace.

use bus::Publisher;
use stats::Time;
use std::collections::BTreeMap;
use std::time::Duration;

/// A subscriber whose queue stays full for so long is waited for no longer, until it takes something: what it loses then is counted
/// (`not_taken`), and the others go on.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// Since when which subscribers hold up which publishers.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    full: BTreeMap<(u64, u64), Time>,
}

impl Pace {
    /// Whether a message of so many bytes can be published without a loss for anybody who is waited for.
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

    /// A publisher is no more.
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
        assert!(!pace.judge(at(9_000), 1, &[7, 8]), "another one is waited for");
        assert!(pace.judge(at(9_001), 1, &[7]), "it took something");
        // It takes again: from now on it is waited for again.
        assert!(pace.judge(at(9_100), 1, &[]) && !pace.judge(at(9_200), 1, &[7]));
        assert!(!pace.judge(at(9_200), 2, &[7]), "publishers are apart");
        pace.forget(1);
        assert_eq!(pace.full.len(), 1);
    }
}
