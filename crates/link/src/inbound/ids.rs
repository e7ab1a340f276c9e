//! The daemon's own endpoints on the bus.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The ids of this daemon's own publishers on the bus, which are not sources, and of its servers, which are
/// not services of this host.
#[derive(Clone, Default)]
pub(crate) struct Ids(Arc<Mutex<BTreeSet<u64>>>);

impl Ids {
    fn all(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn insert(&self, id: u64) {
        self.all().insert(id);
    }

    pub(crate) fn remove(&self, id: u64) {
        self.all().remove(&id);
    }

    pub(crate) fn contains(&self, id: u64) -> bool {
        self.all().contains(&id)
    }
}
