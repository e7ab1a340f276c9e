//! Limits on what the peers of one bus may make this process hold: descriptors, ring memory, address space of
//! segments, and copies of control parts.
//!
//! One peer gets at most half, so it cannot lock the others out. A [`Holder`] is therefore one process of
//! this user, or all processes of another user together, because a malicious user can start any number of
//! them. Processes of this user in other PID namespaces cannot be distinguished and count as one. Connections
//! of this process to itself are not limited (decision 271).

use crate::sys::limits;
use crate::sys::process::Peer;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Descriptors of one connection: its socket, and either the doorbell or the watch on the peer's process.
pub(crate) const CONNECTION: u64 = 2;
/// Descriptors of one segment of a publisher.
pub(crate) const SEGMENT: u64 = 1;
/// Limit on the descriptors that peers hold. Each of them needs at most one mapping, and the kernel allows a
/// process 65,530 mappings (`vm.max_map_count`).
const MAX_DESCRIPTORS: u64 = 49_152;
/// Bytes of rings that subscribers create. This process may have to pay for them, since a hostile subscriber
/// can leave holes in the memory.
const MAX_RING_BYTES: u64 = 512 << 20;
/// Bytes of control parts that this process's subscribers may copy from one holder's messages, until the
/// messages are dropped. Two control parts of the maximum length fit.
const MAX_COPIED: u64 = 160 << 20;
/// Bytes of address space for the publishers' segments. A process has 128 TiB on most machines.
const MAX_SPACE: u64 = 1 << 46;
/// Up to this many places are given without regard to the holder.
const SMALL: usize = 8;

/// The owner of a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holder {
    /// This process.
    Own,
    /// Another process of this user.
    Process(i32),
    /// All processes of another user.
    User(u32),
}

impl Holder {
    pub(crate) fn of(peer: Peer) -> Holder {
        if peer.uid != rustix::process::geteuid().as_raw() {
            Holder::User(peer.uid)
        } else if peer.pid == std::process::id() as i32 {
            Holder::Own
        } else {
            Holder::Process(peer.pid)
        }
    }

    /// Whether this holder, which already has `has` of `places`, may take one more.
    pub(crate) fn may_have_another(self, has: usize, places: usize) -> bool {
        self == Holder::Own || has < (places / 2).max(SMALL.min(places))
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Own => f.write_str("this process"),
            Holder::Process(0) => f.write_str("the processes of other PID namespaces together"),
            Holder::Process(pid) => write!(f, "process {pid}"),
            Holder::User(uid) => write!(f, "user {uid}"),
        }
    }
}

/// What peers hold in this process, by holder.
#[derive(Debug)]
pub(crate) struct Budget {
    descriptors: u64,
    held: Mutex<BTreeMap<Holder, Held>>,
    copies: Mutex<BTreeMap<Holder, Weak<Copies>>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Held {
    descriptors: u64,
    ring_bytes: u64,
    space: u64,
}

impl Budget {
    /// Allows peers three quarters of the descriptors that this process may open; the rest is for its own.
    pub(crate) fn new() -> Arc<Self> {
        Self::of(limits::open_files() / 4 * 3)
    }

    fn of(descriptors: u64) -> Arc<Self> {
        Arc::new(Budget {
            descriptors: descriptors.min(MAX_DESCRIPTORS),
            held: Mutex::default(),
            copies: Mutex::default(),
        })
    }

    /// Takes `descriptors` for a peer until the grant is dropped. The error names the resource that is
    /// exhausted.
    pub(crate) fn take(self: &Arc<Self>, peer: Peer, descriptors: u64) -> Result<Grant, String> {
        let mut grant = Grant {
            budget: self.clone(),
            holder: Holder::of(peer),
            held: Held::default(),
        };
        grant.add(Held {
            descriptors,
            ..Held::default()
        })?;
        Ok(grant)
    }

    /// Returns the counter for copies of a holder's control parts. Copies of this process's own messages are
    /// not counted.
    pub(crate) fn copies(&self, holder: Holder) -> Option<Arc<Copies>> {
        if holder == Holder::Own {
            return None;
        }
        let mut all = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(&holder).and_then(Weak::upgrade) {
            return Some(known);
        }
        all.retain(|_, copies| copies.strong_count() > 0);
        let new = Arc::new(Copies::default());
        all.insert(holder, Arc::downgrade(&new));
        Some(new)
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<Holder, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of one holder's control parts that this process has copied.
#[derive(Debug, Default)]
pub(crate) struct Copies(AtomicU64);

impl Copies {
    /// Counts `bytes` more. Returns false, without counting them, if that exceeds the limit.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        let fits = before.saturating_add(bytes) <= MAX_COPIED;
        if !fits {
            self.give(bytes);
        }
        fits
    }

    pub(crate) fn give(&self, bytes: u64) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A share of the budget; dropping it returns the share.
#[derive(Debug)]
pub(crate) struct Grant {
    budget: Arc<Budget>,
    holder: Holder,
    held: Held,
}

impl Grant {
    pub(crate) fn holder(&self) -> Holder {
        self.holder
    }

    /// Adds the memory of a ring.
    pub(crate) fn add_ring(&mut self, bytes: u64) -> Result<(), String> {
        self.add(Held {
            ring_bytes: bytes,
            ..Held::default()
        })
    }

    /// Adds the address space of a segment.
    pub(crate) fn add_space(&mut self, bytes: u64) -> Result<(), String> {
        self.add(Held {
            space: bytes,
            ..Held::default()
        })
    }

    fn add(&mut self, more: Held) -> Result<(), String> {
        if self.holder == Holder::Own {
            return Ok(());
        }
        let mut held = self.budget.held();
        let sum = |f: fn(&Held) -> u64| held.values().map(f).sum::<u64>();
        let theirs = held.get(&self.holder).copied().unwrap_or_default();
        let limits = [
            (
                "descriptors",
                more.descriptors,
                theirs.descriptors,
                sum(|h| h.descriptors),
                self.budget.descriptors,
            ),
            (
                "bytes of rings",
                more.ring_bytes,
                theirs.ring_bytes,
                sum(|h| h.ring_bytes),
                MAX_RING_BYTES,
            ),
            (
                "bytes of address space",
                more.space,
                theirs.space,
                sum(|h| h.space),
                MAX_SPACE,
            ),
        ];
        for (what, more, theirs, all, most) in limits.into_iter().filter(|(_, more, ..)| *more > 0) {
            if all.saturating_add(more) > most {
                return Err(format!("{all} {what} of at most {most} are in use by peers"));
            }
            if theirs.saturating_add(more) > most / 2 {
                return Err(format!(
                    "{} has {theirs} {what}, its limit is {}",
                    self.holder,
                    most / 2
                ));
            }
        }
        let entry = held.entry(self.holder).or_default();
        for held in [entry, &mut self.held] {
            held.descriptors += more.descriptors;
            held.ring_bytes += more.ring_bytes;
            held.space += more.space;
        }
        Ok(())
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if self.held == Held::default() {
            return;
        }
        let mut held = self.budget.held();
        if let Some(entry) = held.get_mut(&self.holder) {
            entry.descriptors -= self.held.descriptors;
            entry.ring_bytes -= self.held.ring_bytes;
            entry.space -= self.held.space;
            if *entry == Held::default() {
                held.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(pid: i32, uid: u32) -> Peer {
        Peer { pid, uid }
    }

    #[test]
    fn one_process_or_one_other_user_gets_half_and_gives_it_back() {
        let own = rustix::process::geteuid().as_raw();
        let budget = Budget::of(100);
        let take = |pid, uid| budget.take(peer(pid, uid), CONNECTION);
        let first: Vec<_> = std::iter::from_fn(|| take(1, own).ok()).collect();
        assert_eq!(first.len(), 25);
        let text = take(1, own).unwrap_err();
        assert!(text.contains("process 1 has 50 descriptors"), "{text}");
        // Processes of another user share one budget.
        let other: Vec<_> = (1..).map_while(|pid| take(pid, own + 1).ok()).collect();
        assert_eq!(other.len(), 25);
        let text = take(2, own).unwrap_err();
        assert!(text.contains("100 descriptors of at most 100"), "{text}");
        drop(other);
        let mut grant = take(2, own).unwrap();
        grant.add_ring(MAX_RING_BYTES / 2).unwrap();
        assert!(grant.add_ring(1).is_err());
        grant.add_space(MAX_SPACE / 2).unwrap();
        assert!(grant.add_space(1).is_err());
        drop((grant, first));
        assert!(budget.held().is_empty());
        let itself = std::process::id() as i32;
        assert!((0..200).map(|_| take(itself, own)).all(|g| g.is_ok()));
    }

    #[test]
    fn copies_are_counted_by_holder_and_given_back() {
        let budget = Budget::of(100);
        let (one, other) = (Holder::Process(1), Holder::User(2));
        let first = budget.copies(one).unwrap();
        assert!(first.take(MAX_COPIED) && !first.take(1));
        assert!(!budget.copies(one).unwrap().take(1), "the same account");
        assert!(budget.copies(other).unwrap().take(MAX_COPIED));
        first.give(1);
        assert!(budget.copies(one).unwrap().take(1));
        assert!(budget.copies(Holder::Own).is_none());
        drop(first);
        let _ = budget.copies(other);
        assert_eq!(budget.copies.lock().unwrap().len(), 1);
    }

    #[test]
    fn few_slots_go_to_the_first_holder_and_at_most_half_of_many_to_one() {
        let holder = Holder::Process(7);
        let gets = |places| {
            (0..)
                .take_while(|n| *n < places && holder.may_have_another(*n, places))
                .count()
        };
        assert_eq!([1, 2, 8, 9, 16, 256].map(gets), [1, 2, 8, 8, 8, 128]);
        assert!(Holder::Own.may_have_another(255, 256));
    }
}
