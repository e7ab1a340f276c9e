//! A callback that may be set at any time.

use crate::sync::{read, write};
use std::sync::RwLock;

pub(crate) struct Slot<T>(RwLock<Option<T>>);

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Slot(RwLock::new(None))
    }
}

impl<T: Clone> Slot<T> {
    pub(crate) fn set(&self, callback: Option<T>) {
        // Dropped outside the lock: it may own the last handle of something that stops.
        let _old = std::mem::replace(&mut *write(&self.0), callback);
    }

    pub(crate) fn get(&self) -> Option<T> {
        read(&self.0).clone()
    }
}
