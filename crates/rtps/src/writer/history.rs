//! The samples that a writer keeps.

use crate::send::Change;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Samples by number, and their total bytes.
#[derive(Debug, Default)]
pub(super) struct History {
    changes: BTreeMap<i64, Arc<Change>>,
    bytes: usize,
    /// Number of the newest sample ever written.
    last: i64,
}

impl History {
    pub(super) fn last(&self) -> i64 {
        self.last
    }

    /// Oldest number that is kept; if there is none, the next one.
    pub(super) fn first(&self) -> i64 {
        self.changes.keys().next().copied().unwrap_or(self.last + 1)
    }

    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn get(&self, sequence: i64) -> Option<&Arc<Change>> {
        self.changes.get(&sequence)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Change>> {
        self.changes.values()
    }

    /// Counts the newest sample, and keeps it if `keep`.
    pub(super) fn add(&mut self, change: &Arc<Change>, keep: bool) {
        self.last = self.last.max(change.sequence);
        if keep {
            self.bytes += change.payload.len();
            self.changes.insert(change.sequence, Arc::clone(change));
        }
    }

    pub(super) fn remove(&mut self, sequence: i64) -> Option<Arc<Change>> {
        let change = self.changes.remove(&sequence)?;
        self.bytes -= change.payload.len();
        Some(change)
    }

    pub(super) fn pop(&mut self) -> Option<Arc<Change>> {
        let first = *self.changes.keys().next()?;
        self.remove(first)
    }

    /// Drops samples up to a number if `done` holds for them.
    pub(super) fn prune(&mut self, upto: i64, done: impl Fn(&Change) -> bool) {
        let gone: Vec<_> = self
            .changes
            .range(..=upto)
            .filter(|(_, c)| done(c))
            .map(|(n, _)| *n)
            .collect();
        for sequence in gone {
            self.remove(sequence);
        }
    }
}
