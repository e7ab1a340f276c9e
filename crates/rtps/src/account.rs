//! Accounts for memory that other participants make this one hold, charged before it is allocated: by participant,
//! address and total.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A limit in bytes, and the bytes charged. Every charge also counts towards the parent.
#[derive(Debug)]
pub(crate) struct Account {
    limit: AtomicUsize,
    used: AtomicUsize,
    parent: Option<Arc<Account>>,
}

impl Account {
    pub(crate) fn new(limit: usize, parent: Option<Arc<Account>>) -> Arc<Self> {
        Arc::new(Account {
            limit: AtomicUsize::new(limit),
            used: AtomicUsize::new(0),
            parent,
        })
    }

    /// Charges `bytes`, unless that exceeds a limit.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize) -> Option<Charge> {
        self.add(bytes).then(|| Charge {
            account: Arc::clone(self),
            bytes,
        })
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    pub(crate) fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Relaxed);
    }

    fn add(&self, bytes: usize) -> bool {
        let limit = self.limit.load(Relaxed);
        let added = self.used.fetch_update(Relaxed, Relaxed, |used| {
            used.checked_add(bytes).filter(|sum| *sum <= limit)
        });
        if added.is_err() {
            return false;
        }
        if self.parent.as_ref().is_none_or(|p| p.add(bytes)) {
            return true;
        }
        self.used.fetch_sub(bytes, Relaxed);
        false
    }

    fn sub(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Relaxed);
        if let Some(parent) = &self.parent {
            parent.sub(bytes);
        }
    }
}

/// Bytes that stay charged until this is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    account: Arc<Account>,
    bytes: usize,
}

impl Charge {
    /// Charges more. Returns `false` without effect if that exceeds a limit.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let grown = self.account.add(bytes);
        if grown {
            self.bytes += bytes;
        }
        grown
    }

    /// Releases all but `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let surplus = self.bytes.saturating_sub(bytes);
        self.account.sub(surplus);
        self.bytes -= surplus;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.sub(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_are_bounded_by_each_level_and_given_back() {
        let all = Account::new(100, None);
        let (a, b) = (
            Account::new(60, Some(all.clone())),
            Account::new(60, Some(all.clone())),
        );
        let mut first = a.take(50).expect("room");
        assert!(!first.grow(11), "its own limit");
        assert!(b.take(51).is_none(), "the sum's");
        assert_eq!((a.used(), b.used(), all.used()), (50, 0, 50));
        let second = b.take(50).expect("room");
        assert!(first.grow(0) && !first.grow(1));
        first.shrink_to(20);
        assert_eq!((a.used(), all.used()), (20, 70));
        drop((first, second));
        assert_eq!((a.used(), b.used(), all.used()), (0, 0, 0));
        assert!(a.take(usize::MAX).is_none());
        a.set_limit(10);
        assert!(a.take(11).is_none());
    }
}
