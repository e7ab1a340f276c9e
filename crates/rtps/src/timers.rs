//! Timers.

use crate::wire::ids::{EntityId, Guid, GuidPrefix};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

/// An action that a participant takes at a certain time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// Announces itself.
    Announce,
    /// Asserts the liveliness of its writers.
    Liveliness,
    /// Ends the lease of another participant.
    Lease(GuidPrefix),
    /// A local writer sends heartbeats to its readers.
    Writer(EntityId),
    /// A local reader answers a writer, or requests what is missing.
    Reader(EntityId, Guid),
}

/// At most one time per key.
#[derive(Debug)]
pub(crate) struct Timers<K> {
    by_time: BTreeSet<(Duration, K)>,
    by_key: BTreeMap<K, Duration>,
}

impl<K: Ord + Copy> Timers<K> {
    pub(crate) fn new() -> Self {
        Timers {
            by_time: BTreeSet::new(),
            by_key: BTreeMap::new(),
        }
    }

    /// Sets the time and replaces any earlier setting; `None` clears it.
    pub(crate) fn set(&mut self, key: K, at: Option<Duration>) {
        if let Some(old) = self.by_key.remove(&key) {
            self.by_time.remove(&(old, key));
        }
        if let Some(at) = at {
            self.by_key.insert(key, at);
            self.by_time.insert((at, key));
        }
    }

    /// Sets the time, unless an earlier one is set.
    pub(crate) fn set_earlier(&mut self, key: K, at: Duration) {
        if self.by_key.get(&key).is_none_or(|old| *old > at) {
            self.set(key, Some(at));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.by_time.clear();
        self.by_key.clear();
    }

    pub(crate) fn next(&self) -> Option<Duration> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Removes and returns the key that is due first, if any is due.
    pub(crate) fn pop(&mut self, now: Duration) -> Option<K> {
        let (at, key) = *self.by_time.first().filter(|(at, _)| *at <= now)?;
        self.by_time.remove(&(at, key));
        self.by_key.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_due_once_and_in_order() {
        let ms = Duration::from_millis;
        let mut timers = Timers::new();
        timers.set('a', Some(ms(5)));
        timers.set('b', Some(ms(3)));
        timers.set_earlier('a', ms(9));
        timers.set_earlier('b', ms(1));
        assert_eq!((timers.next(), timers.pop(ms(0))), (Some(ms(1)), None));
        assert_eq!(
            [timers.pop(ms(5)), timers.pop(ms(5)), timers.pop(ms(5))],
            [Some('b'), Some('a'), None]
        );
        timers.set('c', Some(ms(1)));
        timers.set('c', None);
        assert_eq!(timers.next(), None);
    }
}
